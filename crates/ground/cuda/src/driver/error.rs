//! Driver errors, with the name of the call and its purpose.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;

use cudarc::driver::sys::{self, CUresult};
use thiserror::Error;

/// Why the driver cannot be used, or the error it reported.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DriverError {
    /// There is no driver.
    #[error(
        "no NVIDIA driver: the dynamic linker finds no libcuda.so; install NVIDIA's driver; all but the cuda executor does without"
    )]
    NoDriver,
    /// The driver is older than the functions called here.
    #[error(
        "the NVIDIA driver is of CUDA {}.{}, and at least 12.8 is needed; update the driver",
        version / 1000, version % 1000 / 10
    )]
    TooOld {
        /// The driver's version: 1000 × major + 10 × minor.
        version: i32,
    },
    /// No such device.
    #[error("no GPU {ordinal}: the driver knows {count}, counted from 0; `gauntlet doctor` lists them")]
    NoDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// A variable of a kernel's module whose size differs from that of the data to be written to it.
    #[error(
        "{variable} has {size} B, and {given} B are to be written to it: kernel and host are at odds, which is a fault \
         of gauntlet-kernels-cuda; please report it"
    )]
    VariableSize {
        /// The names of the variable and its kernel.
        variable: String,
        /// Its bytes on the device.
        size: usize,
        /// Bytes to be written.
        given: usize,
    },
    /// A call failed.
    #[error("{0}")]
    Call(CallError),
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// The name of the driver function.
    pub call: &'static str,
    /// The purpose of the call, such as a kernel; empty if there is no particular one.
    pub subject: String,
    /// The driver's name of the error, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    /// The driver's description of the error.
    pub text: String,
    code: CUresult,
}

impl CallError {
    /// Whether the context is unusable: every later call in this process would fail too.
    pub fn is_sticky(&self) -> bool {
        matches!(
            self.code,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
                | CUresult::CUDA_ERROR_LAUNCH_FAILED
                | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
                | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
                | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUresult::CUDA_ERROR_INVALID_PC
                | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUresult::CUDA_ERROR_ASSERT
                | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
                | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
        )
    }

    /// A remedy, where one is known.
    fn remedy(&self) -> &'static str {
        match self.code {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => "use a smaller problem or fewer copies of the operands",
            CUresult::CUDA_ERROR_INVALID_IMAGE
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => {
                "the machine code is for sm_90a (H100, H200), and a driver takes that of its own major CUDA version; \
                 `gauntlet doctor` tells both versions"
            }
            CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
                "the block needs more registers or shared memory than a multiprocessor has; use a smaller tile, fewer \
                 stages or fewer threads"
            }
            CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE => {
                "a cluster has at most 8 blocks, and the grid whole clusters"
            }
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS => {
                "`compute-sanitizer` names the line"
            }
            CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
                "the driver's library and its kernel module differ: reboot, or reload the module"
            }
            CUresult::CUDA_ERROR_NO_DEVICE => {
                "the driver sees no GPU: check CUDA_VISIBLE_DEVICES and `nvidia-smi`"
            }
            _ => "",
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            subject,
            name,
            text,
            ..
        } = self;
        if !subject.is_empty() {
            write!(formatter, "{subject}: ")?;
        }
        write!(formatter, "{call} answers {name} ({text})")?;
        match self.remedy() {
            "" => Ok(()),
            remedy => write!(formatter, "; {remedy}"),
        }
    }
}

impl DriverError {
    /// Adds the purpose of the call to the error.
    #[must_use]
    pub fn about(mut self, subject: impl fmt::Display) -> Self {
        if let Self::Call(error) = &mut self
            && error.subject.is_empty()
        {
            error.subject = subject.to_string();
        }
        self
    }

    /// Whether the context is unusable.
    pub fn is_sticky(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_sticky())
    }
}

/// Converts the driver's status code for a call to a result.
pub(super) fn check(call: &'static str, code: CUresult) -> Result<(), DriverError> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let words = |function: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = ptr::null();
        // SAFETY: the driver is loaded, since it returned `code`. It either points `text` to a static string or leaves
        // it unchanged.
        let known = unsafe { function(code, &raw mut text) } == CUresult::CUDA_SUCCESS && !text.is_null();
        // SAFETY: the string ends in zero.
        known.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    Err(DriverError::Call(CallError {
        call,
        subject: String::new(),
        name: words(sys::cuGetErrorName).unwrap_or_else(|| format!("{code:?}")),
        text: words(sys::cuGetErrorString).unwrap_or_else(|| "no description".to_owned()),
        code,
    }))
}

/// Calls a driver function and names it in the error.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $crate::driver::error::check(
            stringify!($function),
            cudarc::driver::sys::$function($($argument),*),
        )
    };
}
pub(super) use call;

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: CUresult) -> DriverError {
        DriverError::Call(CallError {
            call: "cuLaunchKernelEx",
            subject: String::new(),
            name: format!("{code:?}"),
            text: "words".to_owned(),
            code,
        })
    }

    #[test]
    fn a_message_names_kernel_call_error_and_remedy() {
        let error = error(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert!(!error.is_sticky());
        let text = error.about("rows (STAGES=2)").about("somebody else").to_string();
        assert_eq!(
            text,
            "rows (STAGES=2): cuLaunchKernelEx answers CUDA_ERROR_OUT_OF_MEMORY (words); use a smaller problem or \
             fewer copies of the operands"
        );
    }

    #[test]
    fn what_ends_a_context_is_told_from_what_does_not() {
        assert!(error(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS).is_sticky());
        assert!(error(CUresult::CUDA_ERROR_LAUNCH_FAILED).is_sticky());
        assert!(!error(CUresult::CUDA_ERROR_INVALID_VALUE).is_sticky());
        assert!(!DriverError::NoDriver.is_sticky());
    }
}
