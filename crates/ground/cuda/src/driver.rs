//! Thin wrappers over `cudarc`'s bindings of NVIDIA's driver. Errors name the call and its purpose, and handles free
//! the resources they own.

mod capture;
mod context;
mod device;
mod error;
mod hold;
mod host_memory;
mod kernel;
mod memory;
mod stream;
mod tensor_map;

pub use capture::RelaxedCapture;
pub use context::Context;
pub use device::{Device, driver_version};
pub use error::{CallError, DriverError};
pub use hold::{Hold, Holding};
pub use host_memory::HostMemory;
pub use kernel::{Dimensions, Function, FunctionAttributes, LaunchShape};
pub use memory::{CallMemory, DeviceMemory};
pub use stream::{Event, Graph, Stream};
pub use tensor_map::{Element, MAP_BYTES, Swizzle, TensorMap, encode};
