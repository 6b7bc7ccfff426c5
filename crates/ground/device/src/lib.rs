//! Descriptions of devices that run candidates; every figure has a unit and a source.
//!
//! GPUs come from TOML, embedded or the user's own; the CPU at hand is detected. An unknown figure is absent, never
//! guessed: readers decide how to proceed without it.

mod arch;
pub mod calibration;
mod device;
mod dimension;
mod error;
mod figure;
mod host;
mod model_test;
mod pipeline;

pub use arch::Arch;
pub use calibration::{Calibration, CalibrationError};
pub use device::{Cpu, Device, Gpu, Launch, Memory};
pub use dimension::{
    Bandwidth, ByteRate, Bytes, Count, Cycles, Dimension, FlopRate, Flops, Frequency, OperationRate, Ratio,
    Time,
};
pub use error::DeviceError;
pub use figure::{Fact, Figure, Measurement};
pub use model_test::ModelTest;
pub use pipeline::{BlockBarrier, BulkCopy, Pipeline, Products, Stores};
