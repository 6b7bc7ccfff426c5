//! Kernels on the device: machine code, attributes and launches.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute as Attribute, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUmodule,
};

use super::context::Context;
use super::error::{DriverError, call, check};
use super::stream::Stream;

/// A kernel on the device.
#[derive(Debug)]
pub struct Function {
    context: Context,
    module: CUmodule,
    handle: CUfunction,
    name: String,
    threads: u32,
    shared_bytes: u32,
}

/// A kernel's resources, as the driver reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: stack and spills.
    pub local_bytes: u32,
    /// Bytes of static shared memory.
    pub static_shared_bytes: u32,
    /// Resident blocks of a multiprocessor.
    pub blocks_per_processor: u32,
}

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks.
    pub grid: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Whether it may begin before the previous launch has ended. Only for a kernel that itself waits with
    /// `griddepcontrol.wait` before it touches data that the previous launch wrote.
    pub overlapping: bool,
}

/// The shape of a launch in three dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Blocks of a cluster in x, y and z.
    pub cluster: [u32; 3],
}

impl Function {
    /// Loads the machine code; `name` is for messages. Launches have `threads` threads a block and `shared_bytes` of
    /// dynamic shared memory.
    ///
    /// # Errors
    /// If the driver refuses the code, the code has no such entry, or the device has less shared memory than requested.
    pub fn new(
        context: &Context,
        cubin: &[u8],
        entry: &str,
        name: &str,
        threads: u32,
        shared_bytes: u32,
    ) -> Result<Self, DriverError> {
        context.make_current()?;
        let about = |error: DriverError| error.about(name);
        let mut function = Self {
            context: context.clone(),
            module: ptr::null_mut(),
            handle: ptr::null_mut(),
            name: name.to_owned(),
            threads,
            shared_bytes,
        };
        // An entry name that contains a zero byte cannot exist; the empty name makes the driver report that.
        let entry = CString::new(entry).unwrap_or_default();
        // SAFETY: a cubin contains its own size; the entry name ends in zero.
        unsafe {
            call!(cuModuleLoadData(&raw mut function.module, cubin.as_ptr().cast())).map_err(about)?;
            call!(cuModuleGetFunction(
                &raw mut function.handle,
                function.module,
                entry.as_ptr()
            ))
            .map_err(about)?;
        }
        let size = i32::try_from(shared_bytes).unwrap_or(i32::MAX);
        // SAFETY: the function belongs to a loaded module.
        unsafe {
            call!(cuFuncSetAttribute(
                function.handle,
                Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                size
            ))
        }
        .map_err(|error| error.about(format_args!("{name} with {shared_bytes} bytes of shared memory")))?;
        Ok(function)
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its resources.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn attributes(&self) -> Result<FunctionAttributes, DriverError> {
        self.context.make_current()?;
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the function belongs to a loaded module.
            unsafe { call!(cuFuncGetAttribute(&raw mut value, attribute, self.handle)) }
                .map_err(|error| error.about(&self.name))?;
            Ok::<_, DriverError>(u32::try_from(value).unwrap_or(0))
        };
        let mut blocks = 0;
        let threads = i32::try_from(self.threads).unwrap_or(i32::MAX);
        // SAFETY: as above.
        unsafe {
            call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.handle,
                threads,
                self.shared_bytes as usize
            ))
        }
        .map_err(|error| error.about(&self.name))?;
        Ok(FunctionAttributes {
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            blocks_per_processor: u32::try_from(blocks).unwrap_or(0),
        })
    }

    /// The bytes of each of its parameters, in order.
    ///
    /// # Errors
    /// If the driver reports an error other than that there are no more parameters.
    pub fn parameter_bytes(&self) -> Result<Vec<usize>, DriverError> {
        self.context.make_current()?;
        let mut bytes = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function belongs to a loaded module; both results are local variables.
            let found =
                unsafe { sys::cuFuncGetParamInfo(self.handle, bytes.len(), &raw mut offset, &raw mut size) };
            if found == sys::CUresult::CUDA_ERROR_INVALID_VALUE {
                return Ok(bytes);
            }
            check("cuFuncGetParamInfo", found).map_err(|error| error.about(&self.name))?;
            bytes.push(size);
        }
    }

    /// Overwrites a whole variable of the module and waits for the copy.
    ///
    /// # Errors
    /// If there is no such variable, or its size differs from that of `bytes`.
    pub fn set(&self, variable: &CStr, bytes: &[u8]) -> Result<(), DriverError> {
        self.context.make_current()?;
        let subject = format!("{} of {}", variable.to_string_lossy(), self.name);
        let about = |error: DriverError| error.about(&subject);
        let (mut address, mut size) = (0, 0);
        // SAFETY: the module is loaded; the name ends in zero.
        unsafe {
            call!(cuModuleGetGlobal_v2(
                &raw mut address,
                &raw mut size,
                self.module,
                variable.as_ptr()
            ))
        }
        .map_err(about)?;
        if bytes.len() != size {
            return Err(DriverError::VariableSize {
                variable: subject,
                size,
                given: bytes.len(),
            });
        }
        // SAFETY: the sizes of source and destination are equal.
        unsafe {
            call!(cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), size))?;
            call!(cuStreamSynchronize(ptr::null_mut()))
        }
        .map_err(about)
    }

    /// Launches it on a stream; its one parameter is `parameter`, by value.
    ///
    /// # Errors
    /// If the driver refuses, or earlier work failed.
    ///
    /// # Safety
    /// The parameter must have the kernel's parameter type. The memory it points to must have the sizes that the kernel
    /// assumes and live until the stream's work is done.
    pub unsafe fn launch(
        &self,
        shape: LaunchShape,
        parameter: &[u8],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        let dimensions = Dimensions {
            grid: [shape.grid, 1, 1],
            block: [self.threads, 1, 1],
            cluster: [shape.cluster, 1, 1],
        };
        // SAFETY: the caller promises it.
        unsafe { self.queue(dimensions, shape.overlapping, &[parameter], stream) }.map_err(|error| {
            error.about(format_args!(
                "{} in {} blocks, {} a cluster",
                self.name, shape.grid, shape.cluster
            ))
        })
    }

    /// Launches it on a stream with these arguments, each by value.
    ///
    /// # Errors
    /// If the driver refuses, or earlier work failed.
    ///
    /// # Safety
    /// There must be as many arguments as the kernel has parameters, each at least as long as its parameter. The memory
    /// they point to must have the sizes that the kernel assumes and live until the stream's work is done.
    pub unsafe fn launch_with(
        &self,
        dimensions: Dimensions,
        arguments: &[&[u8]],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller promises it.
        unsafe { self.queue(dimensions, false, arguments, stream) }.map_err(|error| {
            let Dimensions { grid, block, cluster } = dimensions;
            error.about(format_args!(
                "{} with grid {grid:?}, block {block:?}, cluster {cluster:?}",
                self.name
            ))
        })
    }

    /// # Safety
    /// As [`launch_with`](Self::launch_with).
    unsafe fn queue(
        &self,
        Dimensions { grid, block, cluster }: Dimensions,
        overlapping: bool,
        arguments: &[&[u8]],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        let mut attributes = launch_attributes(cluster, overlapping);
        let config = CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: self.shared_bytes,
            hStream: stream.handle(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let mut parameters: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| argument.as_ptr().cast_mut().cast())
            .collect();
        // SAFETY: the configuration lives through the call; the driver copies the arguments, whose sizes it knows from
        // the kernel. The caller promises the rest.
        unsafe {
            call!(cuLaunchKernelEx(
                &raw const config,
                self.handle,
                parameters.as_mut_ptr(),
                ptr::null_mut()
            ))
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        if !self.module.is_null() && self.context.make_current().is_ok() {
            // SAFETY: loaded once, unloaded once; the driver waits for the kernel's launches.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

fn launch_attributes(cluster: [u32; 3], overlapping: bool) -> Vec<CUlaunchAttribute> {
    let attribute = |id, value| CUlaunchAttribute {
        id,
        pad: [0; 4],
        value,
    };
    let mut attributes = Vec::with_capacity(2);
    if cluster != [1, 1, 1] {
        let mut value = CUlaunchAttributeValue { pad: [0; 64] };
        value.clusterDim.x = cluster[0];
        value.clusterDim.y = cluster[1];
        value.clusterDim.z = cluster[2];
        attributes.push(attribute(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            value,
        ));
    }
    if overlapping {
        attributes.push(attribute(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            CUlaunchAttributeValue {
                programmaticStreamSerializationAllowed: 1,
            },
        ));
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_those_that_the_shape_needs() {
        assert!(launch_attributes([1, 1, 1], false).is_empty());
        let both = launch_attributes([2, 1, 1], true);
        // SAFETY: only fields that were written are read.
        unsafe {
            assert_eq!(
                both[0].id,
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            );
            let dimension = both[0].value.clusterDim;
            assert_eq!((dimension.x, dimension.y, dimension.z), (2, 1, 1));
            assert_eq!(both[1].value.programmaticStreamSerializationAllowed, 1);
        }
    }
}
