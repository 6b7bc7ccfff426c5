//! NVIDIA's driver, as far as it is needed here: thin wrappers over `cudarc`'s bindings whose errors name the call and
//! what it was for, and whose handles free what they hold.

mod context;
mod device;
mod error;
mod gate;
mod kernel;
mod memory;
mod stream;
mod tensor_map;

pub use context::Context;
pub use device::{Device, UnsupportedGpu, driver_version};
pub use error::{CallError, DriverError};
pub use gate::{Closed, Gate};
pub use kernel::{Function, FunctionAttributes, LaunchShape};
pub use memory::{CallMemory, DeviceMemory};
pub use stream::{Event, Graph, Stream};
pub use tensor_map::{MAP_BYTES, encode};
