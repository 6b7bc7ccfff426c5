//! Running kernels: worker processes, the operand and result files that they exchange, and the tools that inspect
//! kernels.

mod artefacts;
mod device_watch;
mod failure;
pub mod instruments;
mod operands;
mod rotation;
pub mod sets;
mod side_by_side;
mod sweep;
mod traced;
mod trial;
mod workers;
mod workshop;

pub use device_watch::{DeviceReading, DeviceWatch};
pub use failure::ExaminationFailure;
pub use operands::{Operands, Readers};
pub use rotation::{cache_to_leave, copies, last_level_cache};
pub use side_by_side::side_by_side;
pub use sweep::{Fault, Sweep, SweepPoint, SweepReport, sweep};
pub use traced::traced;
pub use trial::{Tried, fetch, poison_for, run_once, try_case};
pub use workers::{CudaWorker, Executor, Workers};
pub use workshop::Workshop;
