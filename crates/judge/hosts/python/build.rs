//! Compiles the loop of `gauntlet-python-loop` to a shared library that the crate embeds: cargo itself cannot hand the
//! library of one package to another.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    let calls = folder.join("libgauntlet_calls.rlib");
    compile("../../calls/src", "gauntlet_calls", "rlib", &calls, &[])?;
    let library = folder.join("loop.so");
    let depends = format!("--extern=gauntlet_calls={}", calls.display());
    compile(
        "../python-loop/src",
        "python_loop",
        "cdylib",
        &library,
        &[&depends],
    )?;
    println!("cargo:rustc-env=GAUNTLET_PYTHON_LOOP={}", library.display());
    Ok(())
}

/// Compiles the crate with these sources to `output`.
fn compile(
    sources: &str,
    name: &str,
    kind: &str,
    output: &Path,
    depends: &[&str],
) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={sources}");
    let mut compiler = Command::new(env::var("RUSTC")?);
    compiler
        .args(["--crate-name", name, "--crate-type", kind, "--edition", "2024"])
        .args([
            "-Copt-level=3",
            "-Clto",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "--cap-lints=allow",
        ])
        .args(["--target", &env::var("TARGET")?])
        .args(depends)
        .arg("-o")
        .arg(output)
        .arg(format!("{sources}/lib.rs"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let status = compiler.status()?;
    if !status.success() {
        return Err(format!("the loop of Python kernels does not compile: {name}: {status}").into());
    }
    Ok(())
}
