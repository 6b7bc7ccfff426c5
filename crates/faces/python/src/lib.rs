//! The native part of the Python package `gauntlet`: the command in the interpreter's process, NVFP4 tensors, and the
//! CPU kernels.
//!
//! The package's Python modules are its only callers. They check arguments by name and hand over flat, contiguous arrays
//! with the sizes beside them; this crate checks again what memory safety needs, and computes without the interpreter's
//! lock. Errors become Python exceptions, and so do panics.

mod attention;
mod checkpoint;
mod command;
mod cuda;
mod engine;
mod error;
mod gemm;
mod judge;
mod percent;
mod stack;
mod tensor;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::attention::attention;
    #[pymodule_export]
    use crate::checkpoint::{layers, read_layer};
    #[pymodule_export]
    use crate::command::{main, version, visible};
    #[pymodule_export]
    use crate::cuda::{CudaLibrary, Ragged, Shape, pack_steps};
    #[pymodule_export]
    use crate::engine::{set_threads, threads};
    #[pymodule_export]
    use crate::gemm::{Matrices, grouped_mm, grouped_mm_of_floats, moe};
    #[pymodule_export]
    use crate::judge::{Failed, Refused, add_pairs, ask};
    #[pymodule_export]
    use crate::percent::{percent, signed, span};
    #[pymodule_export]
    use crate::stack::Stack;
    #[pymodule_export]
    use crate::tensor::{dequantize, quantize};
}
