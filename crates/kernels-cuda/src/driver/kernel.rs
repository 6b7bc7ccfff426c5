//! Kernels: machine code on the device, its attributes, and launches.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute as Attribute, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUmodule,
};

use super::context::Context;
use super::error::{DriverError, call};
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

/// What a kernel takes up, as the driver tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: stack and spills.
    pub local_bytes: u32,
    /// Bytes of shared memory fixed in the source.
    pub static_shared_bytes: u32,
    /// Blocks that a multiprocessor holds at once.
    pub blocks_per_processor: u32,
}

/// How one launch goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks.
    pub grid: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Whether it may begin before the launch before it has ended: only for a kernel that waits itself, by
    /// `griddepcontrol.wait`, before it touches what that one wrote.
    pub overlapping: bool,
}

impl Function {
    /// Loads the machine code; `name` is for messages. Launches have `threads` threads a block and `shared_bytes` of
    /// dynamic shared memory.
    ///
    /// # Errors
    /// If the driver refuses the code, it has no such entry, or the device has not that much shared memory.
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
        // An entry with a zero byte is no entry.
        let entry = CString::new(entry).unwrap_or_default();
        // SAFETY: a cubin carries its own size; the entry ends in zero.
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
        // SAFETY: the function is of a module that is loaded.
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

    /// What it takes up.
    ///
    /// # Errors
    /// If the driver does not tell.
    pub fn attributes(&self) -> Result<FunctionAttributes, DriverError> {
        self.context.make_current()?;
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the function is of a module that is loaded.
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

    /// Writes a variable of the module, all of it, and waits for it.
    ///
    /// # Errors
    /// If there is no such variable, or it is not as long as `bytes`.
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
        // SAFETY: as much is copied as there is on either side.
        unsafe {
            call!(cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), size))?;
            call!(cuStreamSynchronize(ptr::null_mut()))
        }
        .map_err(about)
    }

    /// Launches it on a stream; its one parameter is `parameter`, by value.
    ///
    /// # Errors
    /// If the driver refuses, or work before it failed.
    ///
    /// # Safety
    /// The parameter must be what the kernel takes, and what it points to must be of the sizes that the kernel takes it
    /// for and live until the stream's work is done.
    pub unsafe fn launch(
        &self,
        shape: LaunchShape,
        parameter: &[u8],
        stream: &Stream,
    ) -> Result<(), DriverError> {
        let mut attributes = launch_attributes(shape);
        let config = CUlaunchConfig {
            gridDimX: shape.grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: self.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.shared_bytes,
            hStream: stream.handle(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let mut parameters: [*mut c_void; 1] = [parameter.as_ptr().cast_mut().cast()];
        // SAFETY: the configuration lives through the call; the driver copies the parameter, of which it knows the size
        // from the kernel. The rest is the caller's promise.
        unsafe {
            call!(cuLaunchKernelEx(
                &raw const config,
                self.handle,
                parameters.as_mut_ptr(),
                ptr::null_mut()
            ))
        }
        .map_err(|error| {
            error.about(format_args!(
                "{} in {} blocks, {} a cluster",
                self.name, shape.grid, shape.cluster
            ))
        })
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        if !self.module.is_null() && self.context.make_current().is_ok() {
            // SAFETY: loaded once, unloaded once; the driver waits for launches of it.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

fn launch_attributes(shape: LaunchShape) -> Vec<CUlaunchAttribute> {
    let attribute = |id, value| CUlaunchAttribute {
        id,
        pad: [0; 4],
        value,
    };
    let mut attributes = Vec::with_capacity(2);
    if shape.cluster > 1 {
        let mut value = CUlaunchAttributeValue { pad: [0; 64] };
        value.clusterDim.x = shape.cluster;
        value.clusterDim.y = 1;
        value.clusterDim.z = 1;
        attributes.push(attribute(
            CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            value,
        ));
    }
    if shape.overlapping {
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
        let shape = |cluster, overlapping| LaunchShape {
            grid: 132,
            cluster,
            overlapping,
        };
        assert!(launch_attributes(shape(1, false)).is_empty());
        let both = launch_attributes(shape(2, true));
        // SAFETY: the fields read are those written.
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
