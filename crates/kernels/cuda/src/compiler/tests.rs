//! These tests need NVRTC, not a GPU. Without it they print a note and pass, unless `GAUNTLET_REQUIRE_COMPILER` is set.

use std::fs;
use std::sync::{Arc, Mutex};

use gauntlet_problems::TokenFormat;

use gauntlet_cuda::compiler::Compiler;

use super::*;
use crate::plan::{Source, repacking};
use crate::shipped;

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

/// Small kernels.
fn token_kernels() -> [Variant; 2] {
    ["0", "1"].map(|format| Variant {
        source: Source::Tokens,
        defines: [("OVERLAP", "1".to_owned()), ("FORMAT", format.to_owned())].into(),
        threads: 512,
        shared_bytes: 0,
        registers: 128,
    })
}

#[test]
fn of_several_errors_the_first_variants_is_told_and_what_compiles_is_kept() {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let [right, mut wrong] = token_kernels();
    wrong.defines.insert("FORMAT", "nonsense".to_owned());
    let mut worse = wrong.clone();
    worse.defines.insert("FORMAT", "more".to_owned());
    let error = compile_all(&compiler, &[&wrong, &right, &worse], Arch::Sm90a).unwrap_err();
    assert_eq!(Err(error), wrong.compile(&compiler, Arch::Sm90a));
    let kept = right.compile(&compiler, Arch::Sm90a).unwrap();
    assert_eq!(kept.origin, Origin::Cache);
}

/// Every eighth width, and the widest.
#[test]
fn some_widths_of_wgmma_compile() {
    compile_wgmma(source::widths().step_by(8).chain(source::widths().last()));
}

#[test]
#[ignore = "seconds: every width"]
fn all_widths_of_wgmma_compile() {
    compile_wgmma(source::widths());
}

/// Both forms of these widths, in one kernel: checks that the generated header is valid.
fn compile_wgmma(widths: impl Iterator<Item = usize>) {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let uses: String = widths
        .map(|width| format!("use<{width}>(sums, a, rows, columns);\n"))
        .collect();
    let text = format!(
        r#"
#include "wgmma.cuh"
template <int N> __device__ void use(float* out, const u32 (&a)[4], u64 rows, u64 columns) {{
  float sums[N / 2];
  for (int index = 0; index < N / 2; index++) sums[index] = out[index];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  Wgmma<N>::registers(sums, a, columns);
  Wgmma<N>::shared(sums, rows, columns);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int index = 0; index < N / 2; index++) out[index] = sums[index];
}}
extern "C" __global__ void __launch_bounds__(128) all(float* sums, u64 rows, u64 columns) {{
  u32 a[4] = {{1, 2, 3, threadIdx.x}};
  {uses}
}}
"#
    );
    let text = Text {
        file: File {
            name: "test.cu",
            text: &text,
        },
        headers: source::headers(),
        options: ["--gpu-architecture=sm_90a", "--ptxas-options=-v", "--std=c++17"]
            .map(str::to_owned)
            .into(),
        kernel: None,
    };
    let (made, _) = compiler.kept(&text, "test", &|_| ()).unwrap();
    assert_eq!(made.report.warnings, Vec::<String>::new());
    assert_eq!(made.report.resources["all"].spill_bytes, 0);
}

/// Traced builds of these variants keep the same budgets, and untraced builds contain no tracing code. One variant of
/// each kernel is tested, and two of the rows kernel; loaders of other rows variants may spill when they are traced.
#[test]
fn traced_builds_compile_and_others_have_no_trace() {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let names = [
        "rows, 3 stages",
        "rows, dynamic",
        "swapped, static, 64 tokens",
        "narrow, 16 tokens",
        "unified, sorted, 128 tokens",
    ];
    for name in names {
        let shipped = shipped(Arch::Sm90a)
            .into_iter()
            .find(|one| one.name == name)
            .unwrap();
        let plan = shipped
            .plan(&gauntlet_device::Device::builtin("h200").unwrap())
            .unwrap();
        let has_buffer = |variant: &Variant| {
            let compiled = variant.compile(&compiler, Arch::Sm90a).unwrap();
            assert_eq!(compiled.warnings, Vec::<String>::new(), "{variant}");
            assert_eq!(compiled.resources.spill_bytes, 0, "{variant}");
            assert!(compiled.resources.registers <= variant.registers, "{variant}");
            compiled.cubin.windows(7).any(|bytes| bytes == b"\0trace\0")
        };
        for variant in plan.variants() {
            assert!(has_buffer(&variant.traced()), "{variant}");
            assert!(!has_buffer(variant), "{variant}");
        }
    }
}

#[test]
fn another_architecture_is_refused_by_name() {
    let Some((compiler, _folder)) = compiler() else {
        return;
    };
    let variant = Variant {
        source: Source::Rows,
        defines: [("STAGES", "4".to_owned())].into(),
        threads: 128,
        shared_bytes: 0,
        registers: 255,
    };
    let error = variant.compile(&compiler, Arch::Sm100a).unwrap_err().to_string();
    assert!(
        error.starts_with("rows (STAGES=4) cannot be built for sm_100a"),
        "{error}"
    );
}

/// Only a text that is the same, for a driver that accepts the code, and undamaged, is taken from a folder.
#[test]
fn kernels_made_beforehand_are_found() {
    let Some((compiler, folder)) = compiler() else {
        return;
    };
    let made = folder.path().join("made");
    let [kernel, other] = [TokenFormat::Bf16, TokenFormat::F16].map(repacking::repack);
    let names = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&names);
    let compiler = compiler.telling(move |name| heard.lock().unwrap().push(name.to_owned()));
    compile_beforehand(&compiler, std::slice::from_ref(&kernel), Arch::Sm90a, &made).unwrap();
    assert_eq!(*names.lock().unwrap(), [kernel.to_string()]);

    let major = compiler.major_version();
    assert!(Beforehand::open(&made, (major - 1) * 1000 + 90).is_none());
    assert!(Beforehand::open(&folder.path().join("none"), major * 1000).is_none());
    let opened = Beforehand::open(&made, (major + 1) * 1000).unwrap();
    let found = opened.find(&kernel, Arch::Sm90a.into()).unwrap();
    assert!(found.cubin.starts_with(b"\x7fELF"));
    let compiled = kernel.compile(&compiler, Arch::Sm90a).unwrap();
    assert_eq!(
        (found.entry, found.resources),
        (compiled.entry, compiled.resources)
    );
    assert!(opened.find(&other, Arch::Sm90a.into()).is_none());
    assert!(opened.find(&kernel, Arch::Sm100a.into()).is_none());

    let [file] = fs::read_dir(&made)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "cubin"))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    assert!(opened.find(&kernel, Arch::Sm90a.into()).is_none());
}
