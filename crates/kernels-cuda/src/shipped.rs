//! The variants that are shipped: what the compile gate compiles, on machines without a GPU too.
//!
//! They are the steps of the staircase, each with every result format and in both forms where a step changes how
//! results are made, and the widths that the fastest kernels are tuned over. GPUs before Hopper have those whose kernels
//! need nothing of it, in sizes that fit the 99 KiB of shared memory of an L4's block. Blackwell has the native kernel's.

mod attention;
mod native;

use std::time::Instant;

use gauntlet_device::{Arch, Device};
use gauntlet_operations::{Epilogue, Lookup, Order, Packing, Roles, Schedule, Setup, Tile};
use gauntlet_operations::{Form, GemmShape, GroupedGemm, Operation, OutputFormat, TokenFormat};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compiler::{Compiler, Origin};
use crate::error::CompileError;
use crate::plan::{Plan, PlanError, Target, Variant, plan};

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

/// What the compiler made of a shipped variant: of the kernel that computes the result, unless something else is said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CheckedVariant {
    /// Its name.
    pub name: String,
    /// Its file under `kernels/`, without `.cu`.
    pub file: String,
    /// The schedule.
    pub schedule: Schedule,
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
            let mut shipped = unified();
            shipped.extend(narrow(8, 4));
            shipped.extend(attention::before_hopper(arch));
            shipped
        }
        Arch::Sm90a => {
            let mut shipped = rows();
            shipped.extend(swapped());
            shipped.extend(unified());
            shipped.extend(narrow(16, 16));
            shipped.extend(attention::shipped());
            shipped
        }
        Arch::Sm100a => native::shipped(),
        Arch::Cpu => Vec::new(),
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
        let check = |variant: &Variant| self.check_kernel(variant, compiler, device);
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

    fn check_kernel(
        &self,
        variant: &Variant,
        compiler: &Compiler,
        device: &Device,
    ) -> Result<CheckedVariant, CheckError> {
        let begun = Instant::now();
        let compiled = compiler.compile(variant, device.arch)?;
        let seconds = (compiled.origin != Origin::Cache).then(|| begun.elapsed().as_secs_f64());
        let shared_allowed = device
            .gpu
            .as_ref()
            .map_or(0, |gpu| gpu.shared_memory_block.get() as u32);
        let mut checked = CheckedVariant {
            name: self.name.clone(),
            file: compiled.entry.to_owned(),
            schedule: self.schedule.clone(),
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

const PLAIN: (Form, OutputFormat) = (Form::Plain, OutputFormat::F16);

/// The forms and results that are shipped.
const RESULTS: [(Form, OutputFormat); 4] = [
    PLAIN,
    (Form::Plain, OutputFormat::Bf16),
    (Form::Plain, OutputFormat::F32),
    (Form::Swiglu, OutputFormat::F16),
];

/// A mixture of groups, one of them empty, none a multiple of any tile.
fn problem((form, output): (Form, OutputFormat), tokens: &[usize]) -> Operation {
    Operation::GroupedGemm(GroupedGemm {
        groups: tokens
            .iter()
            .map(|&m| GemmShape { m, n: 4096, k: 7168 })
            .collect(),
        form,
        output,
        tokens: Default::default(),
    })
}

fn variant(name: &str, result: (Form, OutputFormat), tokens: &[usize], schedule: Schedule) -> Shipped {
    let form = match result.0 {
        Form::Plain => "",
        Form::Swiglu => ", dual",
    };
    let output = match result.1 {
        OutputFormat::F16 => "",
        OutputFormat::Bf16 => ", bf16",
        OutputFormat::F32 => ", f32",
    };
    Shipped {
        name: format!("{name}{form}{output}"),
        problem: problem(result, tokens),
        schedule,
    }
}

const MANY: [usize; 3] = [80, 0, 248];
const FEW: [usize; 2] = [1, 13];

/// The staircase with tokens as rows, a step after the other.
fn rows() -> Vec<Shipped> {
    let plain = Schedule {
        tile: Tile::from([128, 128, 128]),
        ..Schedule::baseline()
    };
    let with = |stages: usize| Schedule {
        stages,
        ..plain.clone()
    };
    let staged = Schedule {
        epilogue: Epilogue::Staged,
        ..with(3)
    };
    let specialised = Schedule {
        roles: Roles::Specialised,
        ..staged.clone()
    };
    let persistent = |order| Schedule {
        order,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..specialised.clone()
    };
    let split = Schedule {
        split_k: 4,
        ..persistent(Order::Sorted)
    };
    let mut steps = vec![("rows, one stage".to_owned(), with(1))];
    steps.extend((2..=4).map(|stages| (format!("rows, {stages} stages"), with(stages))));
    steps.extend([
        ("rows, staged epilogue".to_owned(), staged),
        ("rows, specialised".to_owned(), specialised.clone()),
        ("rows, static".to_owned(), persistent(Order::Static)),
        ("rows, sorted".to_owned(), persistent(Order::Sorted)),
        ("rows, dynamic".to_owned(), persistent(Order::Dynamic)),
        ("rows, split".to_owned(), split),
    ]);
    let mut shipped: Vec<_> = steps
        .into_iter()
        .map(|(name, schedule)| variant(&name, PLAIN, &MANY, schedule))
        .collect();
    for epilogue in [Epilogue::Direct, Epilogue::Staged] {
        // Two products hold twice the sums and twice the weights.
        for result in &RESULTS[1..] {
            let schedule = Schedule {
                tile: Tile::from([128, 64, 128]),
                epilogue,
                ..with(2)
            };
            let name = format!("rows, {epilogue} epilogue, half a tile");
            shipped.push(variant(&name, *result, &MANY, schedule));
        }
    }
    shipped
}

/// Weights as rows: each form and result sorted, then widths and orders. With sorted tiles a kernel contains code for
/// every width up to its widest; at 256 that takes the compiler a minute, so there is only one such kernel for each
/// result.
fn swapped() -> Vec<Shipped> {
    let swapped = |rows: usize, width: usize, order: Order| Schedule {
        tile: Tile::from([rows, width, 128]),
        stages: 3,
        roles: Roles::Specialised,
        order,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let mut shipped = Vec::new();
    for result in RESULTS {
        // In the dual form a tile's rows are those of each of the two weights.
        let rows = if result.0 == Form::Swiglu { 64 } else { 128 };
        let sorted = swapped(rows, 256, Order::Sorted);
        shipped.push(variant("swapped, sorted", result, &MANY, sorted));
    }
    for width in [64, 128, 256] {
        let name = format!("swapped, static, {width} tokens");
        shipped.push(variant(&name, PLAIN, &MANY, swapped(128, width, Order::Static)));
    }
    let per_tile = swapped(128, 192, Order::PerTile);
    shipped.push(variant("swapped, per tile", PLAIN, &MANY, per_tile));
    let dual = swapped(64, 128, Order::Static);
    shipped.push(variant("swapped, static", RESULTS[3], &MANY, dual));
    let split = Schedule {
        split_k: 4,
        ..swapped(128, 64, Order::Sorted)
    };
    shipped.push(variant("swapped, split", PLAIN, &MANY, split));
    for (result, schedule) in [
        (PLAIN, swapped(128, 256, Order::Sorted)),
        (RESULTS[3], swapped(64, 256, Order::Sorted)),
        (PLAIN, swapped(128, 64, Order::Static)),
    ] {
        let (order, width) = (schedule.order, schedule.tile.n);
        let name = format!("swapped, {order}, {width} tokens, repacked");
        shipped.push(variant(&name, result, &MANY, repacked(schedule)));
    }
    let (plain, dual) = (swapped(128, 256, Order::Sorted), swapped(64, 256, Order::Sorted));
    for (format, result, schedule) in [
        (TokenFormat::Bf16, RESULTS[1], repacked(plain)),
        (TokenFormat::Bf16, RESULTS[3], dual),
        (TokenFormat::Bf16, RESULTS[2], swapped(128, 64, Order::Static)),
        (TokenFormat::F16, PLAIN, swapped(128, 128, Order::Static)),
    ] {
        let name = format!("swapped, {}", schedule.order);
        shipped.push(with_tokens(&name, format, result, &MANY, schedule));
    }
    shipped
}

/// Weights as rows, without Hopper's instructions: every result in the order that is chosen automatically, then widths,
/// stages and orders, repacked weights, and tokens of 16 bits.
fn unified() -> Vec<Shipped> {
    let unified = |rows: usize, width: usize, stages: usize, order: Order| Schedule {
        tile: Tile::from([rows, width, 128]),
        stages,
        order,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let sorted = |rows: usize, width: usize, stages: usize| unified(rows, width, stages, Order::Sorted);
    let mut shipped = Vec::new();
    for result in RESULTS {
        let rows = if result.0 == Form::Swiglu { 64 } else { 128 };
        shipped.push(variant("unified, sorted", result, &MANY, sorted(rows, 64, 3)));
    }
    let wide = sorted(128, 128, 2);
    let per_tile = unified(128, 64, 2, Order::PerTile);
    let split = Schedule {
        split_k: 4,
        ..unified(128, 32, 4, Order::PerTile)
    };
    let fixed = unified(64, 96, 2, Order::Static);
    shipped.extend([
        variant("unified, sorted, 128 tokens", PLAIN, &MANY, wide.clone()),
        variant(
            "unified, sorted, 128 tokens",
            RESULTS[3],
            &MANY,
            sorted(64, 128, 2),
        ),
        variant("unified, split", PLAIN, &MANY, split),
        variant("unified, per tile", PLAIN, &MANY, per_tile),
        variant("unified, static", RESULTS[3], &MANY, fixed),
        variant(
            "unified, sorted, 128 tokens, repacked",
            PLAIN,
            &MANY,
            repacked(wide),
        ),
        variant(
            "unified, sorted, repacked",
            RESULTS[3],
            &MANY,
            repacked(sorted(64, 64, 3)),
        ),
    ]);
    for (format, result, schedule) in [
        (TokenFormat::Bf16, RESULTS[1], repacked(sorted(128, 64, 3))),
        (TokenFormat::Bf16, RESULTS[3], sorted(64, 128, 2)),
        (TokenFormat::Bf16, RESULTS[2], sorted(128, 128, 2)),
        (TokenFormat::F16, PLAIN, sorted(128, 32, 4)),
    ] {
        shipped.push(with_tokens("unified, sorted", format, result, &MANY, schedule));
    }
    shipped
}

/// A kernel on 16-bit tokens.
fn with_tokens(
    name: &str,
    format: TokenFormat,
    result: (Form, OutputFormat),
    tokens: &[usize],
    schedule: Schedule,
) -> Shipped {
    let name = format!("{name}, {format} tokens");
    let mut shipped = variant(&name, result, tokens, schedule);
    if let Operation::GroupedGemm(gemm) = &mut shipped.problem {
        gemm.tokens = format;
    }
    shipped
}

fn repacked(schedule: Schedule) -> Schedule {
    Schedule {
        packing: Packing::Fragments,
        ..schedule
    }
}

/// Few tokens, in the plain form with this many warps, and with tokens of 16 bits.
fn narrow(warps: usize, warps_with_halves: usize) -> Vec<Shipped> {
    // Weight rows and the depth of a step as each form is best served (`Choice::Automatic`): half of the warps where a block
    // has half of the rows of each weight.
    let narrow_of = |warps: usize, rows: usize, width: usize| Schedule {
        tile: Tile::from([rows, width, 4 * warps * rows]),
        stages: 2,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let narrow = |rows: usize, width: usize| narrow_of(warps, rows, width);
    let on_halves = |rows: usize, width: usize| narrow_of(warps_with_halves, rows, width);
    let mut shipped: Vec<_> = [8, 16]
        .into_iter()
        .map(|width| variant(&format!("narrow, {width} tokens"), PLAIN, &FEW, narrow(32, width)))
        .collect();
    for result in &RESULTS[1..] {
        let rows = if result.0 == Form::Swiglu { 16 } else { 32 };
        shipped.push(variant("narrow, 16 tokens", *result, &FEW, narrow(rows, 16)));
    }
    for (format, result, schedule) in [
        (TokenFormat::Bf16, RESULTS[1], repacked(on_halves(32, 16))),
        (TokenFormat::Bf16, RESULTS[3], on_halves(16, 8)),
        (TokenFormat::F16, RESULTS[2], on_halves(32, 8)),
    ] {
        shipped.push(with_tokens("narrow", format, result, &FEW, schedule));
    }
    for (result, rows) in [(PLAIN, 32), (RESULTS[3], 16)] {
        let schedule = repacked(narrow(rows, 16));
        shipped.push(variant("narrow, 16 tokens, repacked", result, &FEW, schedule));
    }
    shipped
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, HashSet};

    use gauntlet_tiles::check;

    use super::*;
    use crate::plan::Source;

    #[test]
    fn each_has_a_name_of_its_own_is_accepted_by_the_device_and_planned() {
        for (name, kernels) in [("h200", 8), ("l4", 4), ("a100", 4), ("b200", 1)] {
            check_shipped(&Device::builtin(name).unwrap(), kernels);
        }
        assert!(shipped(Arch::Cpu).is_empty());
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
            schedule: Schedule::baseline(),
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
