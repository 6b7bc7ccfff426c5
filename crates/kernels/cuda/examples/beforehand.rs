//! Compiles the kernels that calls choose by themselves on an H100 or H200 into a folder, for a package that ships them:
//!
//! `cargo run --release -p gauntlet-kernels-cuda --example beforehand -- FOLDER`
//!
//! It needs NVRTC (`scripts/install-cuda-compiler`), but no GPU, and takes minutes.

use std::error::Error;
use std::path::Path;

use gauntlet_cuda::compiler::Compiler;
use gauntlet_kernels_cuda::api::beforehand;
use gauntlet_kernels_cuda::compiler::compile_beforehand;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(folder) = std::env::args_os().nth(1) else {
        return Err("give the folder for the kernels".into());
    };
    let kernels = beforehand::kernels()?;
    eprintln!("{} kernels for {}", kernels.len(), beforehand::ARCH);
    let compiler = Compiler::new()?.telling(|name| eprintln!("{name}"));
    compile_beforehand(&compiler, &kernels, beforehand::ARCH, Path::new(&folder))?;
    Ok(())
}
