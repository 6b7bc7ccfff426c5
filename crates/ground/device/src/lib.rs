//! Descriptions of devices that run candidates; every figure has a unit and a source.
//!
//! GPUs come from TOML, embedded or the user's own; the CPU at hand is detected. An unknown figure is absent, never
//! guessed: readers decide how to proceed without it.
//!
//! ```
//! use gauntlet_device::Device;
//!
//! let h200 = Device::builtin("h200")?;
//! assert_eq!(h200.processors.get(), 132.0);
//! assert!(h200.processors.source().contains("NVIDIA"));
//!
//! let unknown = Device::builtin("h20").unwrap_err().to_string();
//! assert!(unknown.contains("h200"));
//! # Ok::<(), gauntlet_device::DeviceError>(())
//! ```

mod accuracy;
mod arch;
mod device;
mod dimension;
mod error;
mod figure;
mod host;
mod memory;
mod model_test;
mod pipeline;

pub use accuracy::{Accuracy, MAX_MEAN_ERROR, MIN_RANK_CORRELATION, on_record};
pub use arch::Arch;
pub use device::{Cpu, Device, Gpu, Launch, Memory};
pub use dimension::{
    Bandwidth, ByteRate, Bytes, Count, Cycles, Dimension, FlopRate, Flops, Frequency, OperationRate, Ratio,
    Time,
};
pub use error::DeviceError;
pub use figure::{Fact, Figure, Measurement};
pub use memory::{available_bytes, memory_kills, memory_limit};
pub use model_test::ModelTest;
pub use pipeline::{BlockBarrier, BulkCopy, Pipeline, Products, Stores};
