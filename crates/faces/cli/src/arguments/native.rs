//! Arguments of the workers of compiled kernels.

use clap::Args;

/// What only the workers of kernels take.
#[derive(Debug, Args)]
pub struct NativeWorkerArguments {
    /// The function's arguments in order, as in 'x,y,rows,cols' (library); the table beside the library by default.
    #[arg(long, value_name = "LIST")]
    pub arguments: Option<String>,
    /// The function's pointers are to memory of the GPU, and it takes a stream (library).
    #[arg(long)]
    pub on_gpu: bool,
    /// The function returns an int, 0 if it succeeded (library).
    #[arg(long)]
    pub returns_int: bool,
}
