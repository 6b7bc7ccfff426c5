//! These tests need NVRTC, not a GPU. Without it they print a note and pass, unless `GAUNTLET_REQUIRE_COMPILER` is set.

use std::fs;
use std::sync::{Arc, Mutex};

use super::*;

fn compiler() -> Option<(Compiler, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    match Compiler::new() {
        Ok(compiler) => Some((compiler.with_cache(folder.path()), folder)),
        Err(error) if std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A text as kernels are written, with a definition.
fn text(text: &str, width: usize) -> Text<'_> {
    let file = File {
        name: "test.cu",
        text,
    };
    let options = [
        "--gpu-architecture=sm_90a".to_owned(),
        "--ptxas-options=-v".to_owned(),
        format!("--define-macro=WIDTH={width}"),
    ];
    Text {
        file,
        headers: &[],
        options: options.into(),
        kernel: None,
    }
}

fn translate(compiler: &Compiler, source: &str) -> Result<(Entry, Origin), CompileError> {
    compiler.kept(&text(source, 8), "test (WIDTH=8)", &|name| compiler.say(name))
}

const COPY: &str = r#"
extern "C" __global__ void copy(const unsigned* numbers, unsigned* sums) {
  __shared__ unsigned staged[32 * WIDTH];
  staged[threadIdx.x] = numbers[threadIdx.x];
  __syncthreads();
  sums[threadIdx.x] = staged[31 - threadIdx.x];
}
"#;

#[test]
fn sources_become_machine_code_and_stay_in_the_cache() {
    let Some((compiler, folder)) = compiler() else {
        return;
    };
    let (made, origin) = translate(&compiler, COPY).unwrap();
    assert_eq!(origin, Origin::Compiler);
    assert!(made.cubin.starts_with(b"\x7fELF"), "a cubin is an ELF file");
    let resources = made.report.resources["copy"];
    assert_eq!(resources.static_shared_bytes, 4 * 32 * 8);
    assert_eq!((resources.spill_bytes, resources.stack_bytes), (0, 0));
    assert!((1..=64).contains(&resources.registers), "{resources:?}");

    let (again, origin) = translate(&compiler, COPY).unwrap();
    assert_eq!((again, origin), (made.clone(), Origin::Cache));

    for file in fs::read_dir(folder.path()).unwrap() {
        fs::write(file.unwrap().path(), "damaged").unwrap();
    }
    let (rebuilt, origin) = translate(&compiler, COPY).unwrap();
    assert_eq!((rebuilt.cubin, origin), (made.cubin, Origin::Compiler));
}

#[test]
fn what_is_compiled_is_told_before_and_what_is_kept_is_not() {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let compiler = compiler.telling(move |name| heard.lock().unwrap().push(name.to_owned()));
    for _ in 0..2 {
        translate(&compiler, COPY).unwrap();
    }
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
}

#[test]
fn sources_are_compiled_side_by_side_and_told_in_the_callers_thread() {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let caller = std::thread::current().id();
    let mut compiler = compiler.telling(move |name| {
        assert_eq!(std::thread::current().id(), caller);
        heard.lock().unwrap().push(name.to_owned());
    });
    compiler.nvrtc = compiler.nvrtc.in_pairs();
    let compile = |width: usize| {
        let compiler = &compiler;
        move |tell: Told<'_>| compiler.kept(&text(COPY, width), &width.to_string(), tell)
    };
    let made = compiler.side_by_side([compile(8), compile(16)]).unwrap();
    assert!(made.iter().all(|(_, origin)| *origin == Origin::Compiler));
    let mut told = told.lock().unwrap().clone();
    told.sort();
    assert_eq!(told, ["16", "8"]);
    for (width, (entry, _)) in [8, 16].into_iter().zip(made) {
        let kept = compiler.kept(&text(COPY, width), "test", &|_| ()).unwrap();
        assert_eq!(kept, (entry, Origin::Cache));
    }
    let nothing: [fn(Told<'_>) -> Result<(), CompileError>; 0] = [];
    assert_eq!(compiler.side_by_side(nothing), Ok(Vec::new()));
}

#[test]
fn a_cache_that_cannot_be_written_is_no_failure() {
    let Some((compiler, folder)) = compiler() else {
        return;
    };
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (_, origin) = translate(&compiler.with_cache(&file), COPY).unwrap();
    assert!(matches!(origin, Origin::NotKept(_)), "{origin:?}");
}

#[test]
fn definitions_decide_what_is_cached() {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let [narrow, wide] = [8, 16].map(|width| compiler.kept(&text(COPY, width), "test", &|_| ()).unwrap());
    assert_eq!(wide.1, Origin::Compiler, "not the narrow one's entry");
    assert_eq!(narrow.0.report.resources["copy"].static_shared_bytes, 1024);
    assert_eq!(wide.0.report.resources["copy"].static_shared_bytes, 2048);
}

#[test]
fn an_error_names_variant_file_and_line() {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let text = "extern \"C\" __global__ void wrong(float* p) {\n  p[0] = q;\n}\n";
    let error = translate(&compiler, text).unwrap_err().to_string();
    let head = "test (WIDTH=8) does not compile: test.cu:2: identifier \"q\" is undefined";
    assert!(error.starts_with(head), "{error}");

    let text = "extern \"C\" __global__ void wrong() { asm volatile(\"what.is.this;\"); }\n";
    let error = translate(&compiler, text).unwrap_err().to_string();
    assert!(error.contains("input, line"), "{error}");
}
