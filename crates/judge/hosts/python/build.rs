//! Compiles the loop of `gauntlet-python-loop` to a shared library that the crate embeds: cargo itself cannot hand the
//! library of one package to another.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let sources = "../python-loop/src";
    println!("cargo:rerun-if-changed={sources}");
    // The loop is compiled with these files too.
    for file in [
        "activity.rs",
        "burst.rs",
        "cupti.rs",
        "opening.rs",
        "seal.ptx",
        "turns.rs",
    ] {
        println!("cargo:rerun-if-changed=../../worker/src/{file}");
    }
    let library = PathBuf::from(env::var("OUT_DIR")?).join("loop.so");
    let mut compiler = Command::new(env::var("RUSTC")?);
    compiler
        .args([
            "--crate-name",
            "python_loop",
            "--crate-type",
            "cdylib",
            "--edition",
            "2024",
        ])
        .args([
            "-Copt-level=3",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "--cap-lints=allow",
        ])
        .args(["--target", &env::var("TARGET")?])
        .arg("-o")
        .arg(&library)
        .arg(format!("{sources}/lib.rs"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let status = compiler.status()?;
    if !status.success() {
        return Err(format!("the loop of Python kernels does not compile: {status}").into());
    }
    println!("cargo:rustc-env=GAUNTLET_PYTHON_LOOP={}", library.display());
    Ok(())
}
