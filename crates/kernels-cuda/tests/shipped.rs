//! Every shipped variant compiles within its budgets, wherever the compiler is, GPU or not.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_device::{Arch, Device};
use gauntlet_kernels_cuda::compiler::Compiler;
use gauntlet_kernels_cuda::{CheckError, shipped};
use gauntlet_operations::Operation;
use rayon::prelude::*;

/// The compiler, unless there is none and none is required.
fn compiler() -> Option<Compiler> {
    match Compiler::new() {
        Ok(compiler) => Some(compiler),
        Err(error) => {
            assert!(
                std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none(),
                "GAUNTLET_REQUIRE_COMPILER is set, and {error}"
            );
            println!("skipped: {error}");
            None
        }
    }
}

#[test]
fn some_compile_within_their_budgets() {
    compile(13);
}

#[test]
#[ignore = "minutes: every shipped variant for four architectures, as `gauntlet compile` does it"]
fn all_compile_within_their_budgets() {
    compile(1);
}

/// Compiles every `step`th shipped variant.
fn compile(step: usize) {
    let Some(compiler) = compiler() else { return };
    let devices = ["h200", "l4", "a100", "b200"].map(|name| Device::builtin(name).unwrap());
    let all: Vec<_> = devices
        .iter()
        .flat_map(|device| shipped(device.arch).into_iter().map(move |one| (one, device)))
        .step_by(step)
        .collect();
    // All together they take minutes on one core.
    let broken: Vec<_> = all
        .par_iter()
        .filter_map(|(one, device)| match one.check(&compiler, device) {
            Ok(checked) if checked.broken.is_empty() => None,
            Ok(checked) => Some(format!(
                "{}, {}: {}",
                device.name,
                checked.name,
                checked.broken.join("; ")
            )),
            Err(error) => Some(format!("{}, {error}", device.name)),
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn another_architecture_is_refused_by_name() {
    let Some(compiler) = compiler() else { return };
    let device = Device::builtin("b200").unwrap();
    let of_attention = shipped(Arch::Sm90a)
        .into_iter()
        .filter(|one| matches!(one.problem, Operation::Attention(_)));
    for one in of_attention {
        match one.check(&compiler, &device) {
            Err(error @ CheckError::Plan { .. }) => {
                assert!(error.to_string().contains("sm_100a"), "{error}");
            }
            other => panic!("{}: {other:?}", one.name),
        }
    }
}
