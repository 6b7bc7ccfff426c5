//! Compiles a C program against the header and the library, and runs it. Skipped where there is no `cc`.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The exit status of a program that needs a GPU and finds none.
const NO_GPU: i32 = 77;

const EXPECTED: &str = "\
bytes 768 of 768
plain 32 32
1 output_bytes = 4: the result takes 768; gauntlet_plan_output_bytes says so
swiglu 1024.000
floats 24 24
1 count = 1: the plan has 2 groups; give tokens and weights for each
1 tokens = 4: tokens without scales are GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_F32
attention 1.5
steps 2048 256
rows 384 48
row 1: 25 48, then 0; scales 56, then 0
1 weights in steps for nvfp4 tokens: they are for tokens of 16 bits; repack others with `pack`
1 tokens = 2: the tokens of a layer are GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_NVFP4
1 rows of 40 values: one scale covers 16 values along a row; pad rows with zeros to 48 values
1 packed_scales is null; give an address
1 packing = 7: give GAUNTLET_ROWS, GAUNTLET_FRAGMENTS or GAUNTLET_STEPS
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
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-pthread"]);
    compiler.arg("-I").arg(crate_folder.join("include")).arg(source);
    compiler.arg("-L").arg(&libraries).args(["-lgauntlet", "-ldl"]);
    compiler
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(program);
    compiler.status().ok().map(|status| status.success())
}

/// The output of a program of the folder; `None` without a compiler.
fn ran(name: &str) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    // The interface is plain C11; the programs also use POSIX.
    let language = ["-std=c11", "-D_POSIX_C_SOURCE=200809L"];
    let Some(is_compiled) = compiled(&language, &source, &program) else {
        println!("skipped: there is no `cc`");
        return None;
    };
    assert!(is_compiled);
    Some(Command::new(&program).output().unwrap())
}

#[test]
fn a_c_program_uses_the_kernels() {
    let Some(output) = ran("kernels") else { return };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), EXPECTED);
}

const LIMITS: &str = "\
1 2147483648 sequences of 1 heads are more than 1048576 heads in all; split the problem
1 18446744073709551615 sequences of 1 heads are more than 1048576 heads in all; split the problem
1 2147483648 sequences of 0 heads are more than 1048576 heads in all; split the problem
1 1 sequences of 4611686018427387904 heads are more than 1048576 heads in all; split the problem
0 \n\
1 of 274877906944 bytes
3 the result has 274877906944 byte
fork: exit 0
fork beside a call: exit 0
fork beside a call: exit 0
fork beside a call: exit 0
fork beside a call: exit 0
fork beside a call: exit 0
parent 0
";

#[test]
fn nothing_that_a_program_passes_ends_it_and_forked_children_compute() {
    let Some(output) = ran("limits") else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), LIMITS, "{said}");
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_layer_gives_the_same_for_each_order_of_its_weights() {
    let Some(output) = ran("packed_layer") else { return };
    let words = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(NO_GPU) => println!("skipped: {words}"),
        code => assert_eq!(
            code,
            Some(0),
            "{}{words}",
            String::from_utf8_lossy(&output.stdout)
        ),
    }
}
