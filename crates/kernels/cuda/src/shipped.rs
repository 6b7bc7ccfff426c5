//! The variants that are shipped: what the compile gate compiles, on machines without a GPU too.
//!
//! They are the steps of the staircase, each with every result format and in both forms where a step changes how
//! results are made, and the widths that the fastest kernels are tuned over. GPUs before Hopper have those whose kernels
//! need nothing of it, in sizes that fit the 99 KiB of shared memory of an L4's block. Blackwell has the native kernel's.

mod attention;
mod gemm;
mod native;

use std::time::Instant;

use gauntlet_device::{Arch, Device};
use gauntlet_problems::{Operation, OutputFormat, Schedule, TokenFormat};
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::{Plan, PlanError, Target, Variant, mixture, plan, repacking};
use gauntlet_cuda::CompileError;
use gauntlet_cuda::compiler::{Compiler, Origin};

/// A schedule for a form and a result, with a problem that has both.
#[derive(Debug, Clone, PartialEq)]
pub struct Shipped {
    /// Its name: the kernel, what the schedule adds, then form and result where they are not plain and fp16.
    pub name: String,
    /// A problem of that form and result.
    pub problem: Operation,
    /// The words.
    pub schedule: Schedule,
}

/// A shipped kernel that no schedule selects: a step of a layer beside its products.
#[derive(Debug, Clone, PartialEq)]
pub struct ShippedKernel {
    /// Its name: the kernel, and the format of its results where it is not fp16.
    pub name: String,
    /// The kernel.
    pub variant: Variant,
}

/// What the compiler made of a shipped variant: of the kernel that computes the result, unless something else is said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CheckedVariant {
    /// Its name.
    pub name: String,
    /// Its file under `kernels/`, without `.cu`.
    pub file: String,
    /// The schedule; none for a kernel that no schedule selects.
    pub schedule: Option<Schedule>,
    /// Registers of a thread.
    pub registers: u32,
    /// Most registers of a thread for a block to fit a multiprocessor.
    pub registers_allowed: u32,
    /// Bytes that a thread spills.
    pub spill_bytes: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Most bytes of shared memory of a block on the device.
    pub shared_allowed: u32,
    /// The compiler's warnings, of all its kernels.
    pub warnings: Vec<String>,
    /// Seconds it took to compile; none if it was compiled before and kept.
    pub seconds: Option<f64>,
    /// Budgets broken, by all its kernels; empty if they are within all.
    pub broken: Vec<String>,
}

/// All shipped variants for an architecture, in the order of the staircase; none if no kernel is built for it.
pub fn shipped(arch: Arch) -> Vec<Shipped> {
    match arch {
        Arch::Sm80 | Arch::Sm89 => {
            let mut shipped = gemm::unified();
            shipped.extend(gemm::narrow(8, 4));
            shipped.extend(attention::before_hopper(arch));
            shipped
        }
        Arch::Sm90a => {
            let mut shipped = gemm::rows();
            shipped.extend(gemm::swapped());
            shipped.extend(gemm::unified());
            shipped.extend(gemm::narrow(16, 16));
            shipped.extend(attention::shipped());
            shipped
        }
        Arch::Sm100a => native::shipped(),
        Arch::Cpu => Vec::new(),
    }
}

/// All shipped kernels for an architecture that no schedule selects.
pub fn shipped_kernels(arch: Arch) -> Vec<ShippedKernel> {
    let kernels = [
        ("mixture, arrange", mixture::arrange()),
        ("mixture, count", mixture::count()),
        ("mixture, combine", mixture::combine(OutputFormat::F16)),
        ("mixture, combine, bf16", mixture::combine(OutputFormat::Bf16)),
        ("mixture, combine, f32", mixture::combine(OutputFormat::F32)),
        ("repack", repacking::repack(TokenFormat::F16)),
        ("repack, bf16", repacking::repack(TokenFormat::Bf16)),
    ];
    let named = kernels.map(|(name, variant)| ShippedKernel {
        name: name.to_owned(),
        variant,
    });
    let runs = |kernel: &ShippedKernel| kernel.variant.source.runs_on(arch);
    named.into_iter().filter(runs).collect()
}

impl ShippedKernel {
    /// Compiles it and checks its budgets, as [`Shipped::check`].
    ///
    /// # Errors
    /// If it does not compile.
    pub fn check(&self, compiler: &Compiler, device: &Device) -> Result<CheckedVariant, CheckError> {
        check_kernel(&self.name, None, &self.variant, compiler, device)
    }
}

impl Shipped {
    /// Plans it for a device.
    ///
    /// # Errors
    /// If no kernel supports the schedule, or the device has no kernels.
    pub fn plan(&self, device: &Device) -> Result<Box<dyn Plan>, CheckError> {
        let arch = device.arch;
        let planned = match Target::of(device) {
            Some(target) => plan(&self.problem, &self.schedule, target),
            None => Err(PlanError::Architecture { arch, kernel: "CUDA" }),
        };
        planned.map_err(|source| CheckError::Plan {
            name: self.name.clone(),
            source,
        })
    }

    /// Compiles its kernels and checks their budgets: registers and shared memory that let a block fit, no spills, no
    /// warnings (the assembler warns where it serialises wgmma).
    ///
    /// # Errors
    /// If it cannot be planned, or does not compile.
    pub fn check(&self, compiler: &Compiler, device: &Device) -> Result<CheckedVariant, CheckError> {
        let plan = self.plan(device)?;
        let check =
            |variant: &Variant| check_kernel(&self.name, Some(&self.schedule), variant, compiler, device);
        let mut checked = check(plan.variant())?;
        if let Some(preparation) = plan.preparation() {
            let other = check(preparation)?;
            let named = other
                .broken
                .iter()
                .map(|broken| format!("{}: {broken}", other.file));
            checked.broken.extend(named);
            checked.warnings.extend(other.warnings);
        }
        Ok(checked)
    }
}

fn check_kernel(
    name: &str,
    schedule: Option<&Schedule>,
    variant: &Variant,
    compiler: &Compiler,
    device: &Device,
) -> Result<CheckedVariant, CheckError> {
    let begun = Instant::now();
    let compiled = variant.compile(compiler, device.arch)?;
    let seconds = (compiled.origin != Origin::Cache).then(|| begun.elapsed().as_secs_f64());
    let shared_allowed = device
        .gpu
        .as_ref()
        .map_or(0, |gpu| gpu.shared_memory_block.get() as u32);
    let mut checked = CheckedVariant {
        name: name.to_owned(),
        file: compiled.entry.to_owned(),
        schedule: schedule.cloned(),
        registers: compiled.resources.registers,
        registers_allowed: variant.registers,
        spill_bytes: compiled.resources.spill_bytes,
        shared_bytes: compiled.resources.static_shared_bytes + variant.shared_bytes,
        shared_allowed,
        warnings: compiled.warnings,
        seconds,
        broken: Vec::new(),
    };
    checked.broken = checked.over_budget();
    Ok(checked)
}

impl CheckedVariant {
    fn over_budget(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.registers > self.registers_allowed {
            broken.push(format!(
                "{} registers where {} fit",
                self.registers, self.registers_allowed
            ));
        }
        if self.spill_bytes > 0 {
            broken.push(format!("spills {} B", self.spill_bytes));
        }
        if self.shared_bytes > self.shared_allowed {
            broken.push(format!(
                "{} B of shared memory where a block has {}",
                self.shared_bytes, self.shared_allowed
            ));
        }
        broken.extend(self.warnings.first().cloned());
        broken
    }
}

/// Why a shipped variant could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No kernel can do it.
    #[error("{name}: {source}")]
    Plan {
        /// The variant.
        name: String,
        /// Why.
        source: PlanError,
    },
    /// It does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, HashSet};

    use gauntlet_families::operations::check;

    use super::*;
    use crate::plan::Source;

    #[test]
    fn each_has_a_name_of_its_own_is_accepted_by_the_device_and_planned() {
        for (name, kernels) in [("h200", 9), ("l4", 4), ("a100", 4), ("b200", 1)] {
            check_shipped(&Device::builtin(name).unwrap(), kernels);
        }
        assert!(shipped(Arch::Cpu).is_empty());
    }

    #[test]
    fn kernels_without_a_schedule_are_for_hopper() {
        let files: BTreeSet<_> = shipped_kernels(Arch::Sm90a)
            .iter()
            .map(|kernel| kernel.variant.source)
            .collect();
        assert_eq!(
            files,
            BTreeSet::from([Source::Arrange, Source::Count, Source::Combine, Source::Repack])
        );
        for arch in [Arch::Sm80, Arch::Sm89, Arch::Sm100a, Arch::Cpu] {
            assert_eq!(shipped_kernels(arch), []);
        }
    }

    fn check_shipped(device: &Device, kernels: usize) {
        let mut sources: BTreeMap<Source, usize> = BTreeMap::new();
        let mut variants = HashSet::new();
        let shipped = shipped(device.arch);
        for one in &shipped {
            assert_eq!(check(&one.schedule, &one.problem, device), [], "{}", one.name);
            let plan = one
                .plan(device)
                .unwrap_or_else(|error| panic!("{}: {error}", one.name));
            for variant in plan.variants() {
                *sources.entry(variant.source).or_default() += 1;
            }
            variants.insert(plan.variant().clone());
        }
        let names: BTreeSet<_> = shipped.iter().map(|one| &one.name).collect();
        assert_eq!(names.len(), shipped.len());
        assert_eq!(sources.len(), kernels, "{sources:?}");
        assert!(
            variants.len() * 4 >= shipped.len() * 3,
            "{} kernels",
            variants.len()
        );
    }

    #[test]
    fn what_is_over_budget_is_told() {
        let within = CheckedVariant {
            name: "rows".to_owned(),
            file: "rows".to_owned(),
            schedule: None,
            registers: 168,
            registers_allowed: 168,
            spill_bytes: 0,
            shared_bytes: 1000,
            shared_allowed: 1000,
            warnings: Vec::new(),
            seconds: None,
            broken: Vec::new(),
        };
        assert_eq!(within.over_budget(), Vec::<String>::new());
        let over = CheckedVariant {
            registers: 169,
            spill_bytes: 8,
            shared_bytes: 1001,
            warnings: vec!["C7510".to_owned()],
            ..within
        };
        assert_eq!(over.over_budget().len(), 4);
    }
}
