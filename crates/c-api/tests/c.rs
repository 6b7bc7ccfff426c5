//! Compiles a C program against the header and the library, and runs it. Skipped where there is no `cc`.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

const EXPECTED: &str = "\
bytes 768 of 768
plain 32 32
1 output_bytes = 4: the result takes 768; gauntlet_plan_output_bytes says so
swiglu 1024.000
floats 24 24
1 count = 1: the plan has 2 groups; give tokens and weights for each
1 tokens = 4: tokens without scales are GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_F32
attention 1.5
1 20 columns: one scale covers 16 values along a row, so the number must be a multiple of 16; pad the rows with zeros to 32
1 elements is null; give an address
1 matrix is null; give an address
1 engine is null; give an address
1 group 0: K = 20 is not a multiple of 16, the values that share a scale; try 16 or 32
1 output = 4: results are GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_F32
1 library is null; give an address
1 layer is null; give an address
1 queue is null; give an address
no error: ''
";

/// The folder of the library that cargo built beside this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test
        .ancestors()
        .find(|folder| folder.join("libgauntlet.so").is_file());
    folder.unwrap().to_owned()
}

/// Compiles with every warning as an error; `None` without a compiler.
fn compiled(language: &[&str], source: &Path, program: &Path) -> Option<bool> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = libraries();
    let mut compiler = Command::new("cc");
    compiler
        .args(language)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compiler.arg("-I").arg(crate_folder.join("include")).arg(source);
    compiler.arg("-L").arg(&libraries).arg("-lgauntlet");
    compiler
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(program);
    compiler.status().ok().map(|status| status.success())
}

#[test]
fn a_c_program_uses_the_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kernels");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/kernels.c");
    let Some(is_compiled) = compiled(&["-std=c11"], &source, &program) else {
        println!("skipped: there is no `cc`");
        return;
    };
    assert!(is_compiled);
    let output = Command::new(&program).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), EXPECTED);
}
