//! Every shipped variant compiles within its budgets, wherever the compiler is, GPU or not.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use gauntlet_cuda::compiler::Compiler;
use gauntlet_device::{Arch, Device};
use gauntlet_kernels_cuda::plan::{Code, Target, plan};
use gauntlet_kernels_cuda::{CheckError, Shipped, shipped, shipped_kernels};
use gauntlet_problems::{Operation, Roles};
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

/// The variant in the middle of those of each kernel on each GPU.
fn one_of_each_kernel<G: Copy>(
    all: Vec<(Shipped, G)>,
    target: impl Fn(G) -> (String, Target),
) -> Vec<(Shipped, G)> {
    let mut kernels: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (one, gpu) in all {
        let (name, target) = target(gpu);
        let source = plan(&one.problem, &one.schedule, target)
            .unwrap()
            .variant()
            .source;
        kernels.entry((name, source)).or_default().push((one, gpu));
    }
    let middle = |mut variants: Vec<_>| variants.swap_remove(variants.len() / 2);
    kernels.into_values().map(middle).collect()
}

/// Every shipped variant with its device.
fn all_shipped(devices: &[Device]) -> Vec<(Shipped, &Device)> {
    devices
        .iter()
        .flat_map(|device| shipped(device.arch).into_iter().map(move |one| (one, device)))
        .collect()
}

fn devices() -> [Device; 4] {
    ["h200", "l4", "a100", "b200"].map(|name| Device::builtin(name).unwrap())
}

#[test]
fn each_kernel_compiles_within_its_budgets() {
    let devices = devices();
    let target = |device: &Device| (device.name.clone(), Target::of(device).unwrap());
    compile(&one_of_each_kernel(all_shipped(&devices), target));
}

#[test]
fn kernels_without_a_schedule_compile_within_their_budgets() {
    let Some(compiler) = compiler() else { return };
    let device = Device::builtin("h200").unwrap();
    let kernels = shipped_kernels(device.arch);
    assert!(!kernels.is_empty());
    for kernel in kernels {
        let checked = kernel.check(&compiler, &device).unwrap();
        assert_eq!(checked.broken, Vec::<String>::new(), "{}", kernel.name);
    }
}

#[test]
#[ignore = "minutes: every shipped variant for four architectures, as `gauntlet compile` does it"]
fn all_compile_within_their_budgets() {
    compile(&all_shipped(&devices()));
}

fn compile(all: &[(Shipped, &Device)]) {
    let Some(compiler) = compiler() else { return };
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

/// GPUs newer than Hopper run the kernels that need nothing of it. A B200 has room for more than an L4; of the others some have as
/// little.
fn newer_gpus() -> [(Code, Target); 3] {
    let target = |name| Target::of(&Device::builtin(name).unwrap()).unwrap();
    let (l4, b200) = (target("l4"), target("b200").for_common_kernels());
    [
        (Code::Arch(Arch::Sm100a), b200),
        (Code::Newer(10, 3), b200),
        (Code::Newer(12, 0), l4),
    ]
}

/// Every variant that is shipped for Ada, with each of them.
fn all_for_newer() -> Vec<(Shipped, (Code, Target))> {
    let of_ada = shipped(Arch::Sm89);
    let on = |gpu| of_ada.iter().map(move |one| (one.clone(), gpu));
    newer_gpus().into_iter().flat_map(on).collect()
}

/// Each of the three kernels on one of the GPUs, and each GPU with one of the kernels.
#[test]
fn each_kernel_compiles_for_newer_gpus() {
    let each = one_of_each_kernel(all_for_newer(), |(code, target)| (code.to_string(), target));
    let (gpus, kernels) = (newer_gpus().len(), 3);
    assert_eq!(each.len(), gpus * kernels);
    let diagonal: Vec<_> = each.into_iter().step_by(kernels + 1).collect();
    compile_for_newer(&diagonal);
}

#[test]
#[ignore = "minutes: every variant shipped for Ada, for three newer GPUs"]
fn all_compile_for_newer_gpus() {
    compile_for_newer(&all_for_newer());
}

fn compile_for_newer(all: &[(Shipped, (Code, Target))]) {
    let Some(compiler) = compiler() else { return };
    let over = |(one, (code, target)): &(Shipped, (Code, Target))| -> Option<String> {
        let plan = plan(&one.problem, &one.schedule, *target).unwrap();
        plan.variants().into_iter().find_map(|variant| {
            let compiled = match variant.compile(&compiler, *code) {
                Ok(compiled) => compiled,
                Err(error) => return Some(format!("{code}, {}: {error}", one.name)),
            };
            let resources = compiled.resources;
            let shared = (resources.static_shared_bytes + variant.shared_bytes) as usize;
            let fits = resources.registers <= variant.registers
                && resources.spill_bytes == 0
                && shared <= target.block_shared_bytes
                && compiled.warnings.is_empty();
            (!fits).then(|| format!("{code}, {}: {resources:?}, {:?}", one.name, compiled.warnings))
        })
    };
    let broken: Vec<_> = all.par_iter().filter_map(over).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Blackwell takes attention by `mma.sync`, and refuses what needs Hopper.
#[test]
fn what_needs_hopper_is_refused_by_name() {
    let Some(compiler) = compiler() else { return };
    let device = Device::builtin("b200").unwrap();
    let mut of_attention = shipped(Arch::Sm90a);
    of_attention.retain(|one| matches!(one.problem, Operation::Attention(_)));
    let needs_hopper = |one: &&Shipped| one.schedule.roles == Roles::Specialised;
    assert!(of_attention.iter().any(|one| !needs_hopper(&one)));
    for one in of_attention.iter().filter(needs_hopper) {
        match one.check(&compiler, &device) {
            Err(error @ CheckError::Plan { .. }) => {
                assert!(error.to_string().contains("needs a Hopper GPU"), "{error}");
            }
            other => panic!("{}: {other:?}", one.name),
        }
    }
}
