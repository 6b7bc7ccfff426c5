//! Checks every shipped kernel against the oracle without a GPU: kernels are compiled to PTX and interpreted, in two
//! orders of events. These tests need NVRTC; without it they print a note and pass, unless `GAUNTLET_REQUIRE_COMPILER`
//! is set.

mod attention;
mod drawn;
mod mistakes;
mod native;
mod routed;
mod rules;

use std::ops::Range;

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_operations::{
    Attention, AttentionInputs, GemmShape, GroupInputs, GroupedGemm, Inputs, Operation, Order, Output,
    Packing, Schedule, Sequence,
};
use gauntlet_ptx::{Fault, Kernel, Launch, Memory, TensorMap};
use gauntlet_task::{Coverage, ErrorMeasures, InputKind};
use rayon::prelude::*;

use self::rules::rules;
use super::layout::{Layout, assembled};
use super::operands::repack;
use super::setup::weight_address;
use crate::compiler::Compiler;
use crate::packing::PackingError;
use crate::plan::{
    self, Addresses, Map, Matrix, OPERANDS, Plan, ScaleLayout, Source, Swizzle, Target, Weights,
};
use crate::shipped::{Shipped, shipped};

/// Few enough multiprocessors that each block of a persistent kernel gets several tiles.
const PROCESSORS: u32 = 2;

/// A GPU of an architecture with so few multiprocessors.
fn target(arch: Arch) -> Target {
    Target::of_arch(arch, PROCESSORS)
}

/// Widest tiles where a kernel has code for every width: at 256 its compilation to PTX takes a quarter of a minute.
const MOST_SORTED_TOKENS: usize = 72;

/// The kernels of a plan, read.
struct Kernels {
    problem: Operation,
    packing: Packing,
    scales: ScaleLayout,
    plan: Box<dyn Plan>,
    kernels: Vec<Kernel>,
}

impl Kernels {
    fn new(compiler: &Compiler, problem: &Operation, schedule: &Schedule, arch: Arch) -> Self {
        let plan = plan::plan(problem, schedule, target(arch)).unwrap();
        let kernels = read(plan.as_ref(), |variant| compiler.ptx(variant, arch).unwrap());
        Self::of_plan(plan, problem, schedule, arch, kernels)
    }

    fn of_plan(
        plan: Box<dyn Plan>,
        problem: &Operation,
        schedule: &Schedule,
        arch: Arch,
        kernels: Vec<Kernel>,
    ) -> Self {
        Self {
            problem: problem.clone(),
            packing: schedule.packing,
            scales: ScaleLayout::of(arch),
            kernels,
            plan,
        }
    }

    /// Runs a call for each set of operands. Each has its own tables and result, but all share one workspace and one
    /// set of counters, as calls on a device do; launches overlap where they may. The seed determines the order of
    /// events.
    fn run(&self, sets: &[Inputs], seed: u64) -> Result<Vec<Output>, Fault> {
        let mut memory = Memory::new();
        let operands: Vec<_> = sets.iter().map(|set| self.operands(&mut memory, set)).collect();
        let needed: Vec<_> = operands
            .iter()
            .map(|operands| self.plan.memory(&operands.weights))
            .collect();
        let workspace = memory.allocate_unwritten(needed[0].workspace_bytes);
        let counters = memory.allocate(vec![0; needed[0].counter_bytes]);
        let calls = operands.iter().zip(needed).map(|(operands, needed)| {
            let maps = needed.maps.iter();
            let maps = maps.flat_map(|map| encoded(map, operands.address(map))).collect();
            Addresses {
                operands: operands.rows,
                scales: operands.scales,
                output: memory.allocate_unwritten(self.problem.output_bytes()),
                tables: memory.allocate(needed.tables),
                maps: memory.allocate(maps),
                workspace,
                counters,
            }
        });
        let calls: Vec<_> = calls.collect();
        let queued: Vec<_> = calls
            .iter()
            .flat_map(|addresses| self.plan.launches(addresses))
            .collect();
        run(self.plan.as_ref(), &self.kernels, &queued, &mut memory, seed)?;
        let result = |call: &Addresses| memory.contents(call.output).unwrap().to_vec();
        Ok(calls
            .iter()
            .map(|call| Output::new(&self.problem, result(call)).unwrap())
            .collect())
    }

    fn operands(&self, memory: &mut Memory, inputs: &Inputs) -> Operands {
        match (&self.problem, inputs) {
            (Operation::GroupedGemm(gemm), Inputs::GroupedGemm(inputs)) => {
                of_gemm(memory, gemm, self.packing, self.scales, inputs)
            }
            (Operation::Attention(_), Inputs::Attention(inputs)) => of_attention(memory, inputs),
            _ => panic!("the inputs are of another family"),
        }
    }
}

/// The kernels of a plan, from the PTX of each variant.
fn read(plan: &dyn Plan, ptx: impl Fn(&plan::Variant) -> String) -> Vec<Kernel> {
    let variants = plan.variants().into_iter();
    variants
        .map(|variant| Kernel::read(&ptx(variant), variant.source.entry()).unwrap())
        .collect()
}

/// Runs launches of a plan one after another, overlapping where they may.
fn run(
    plan: &dyn Plan,
    kernels: &[Kernel],
    queued: &[plan::Launch],
    memory: &mut Memory,
    seed: u64,
) -> Result<(), Fault> {
    let variants = plan.variants();
    let launches = queued.iter().map(|launch| {
        let variant = variants[launch.pass as usize];
        Launch {
            kernel: &kernels[launch.pass as usize],
            grid: [launch.grid, 1, 1],
            block: [variant.threads, 1, 1],
            cluster: launch.cluster,
            shared_bytes: variant.shared_bytes,
            parameter: &launch.parameter,
            overlaps: variant.overlaps(),
        }
    });
    gauntlet_ptx::run(&launches.collect::<Vec<_>>(), memory, seed)
}

/// Where operands lie in the interpreter's memory.
struct Operands {
    rows: [u64; OPERANDS],
    scales: [u64; OPERANDS],
    weights: Vec<Weights>,
}

impl Operands {
    /// Where a map's matrix begins; 0 if it is not there.
    fn address(&self, map: &Map) -> u64 {
        match map.matrix {
            Matrix::Tokens | Matrix::Query => self.rows[0],
            Matrix::Key => self.rows[1],
            Matrix::Value => self.rows[2],
            _ => weight_address(map, &self.weights),
        }
    }
}

fn of_gemm(
    memory: &mut Memory,
    gemm: &GroupedGemm,
    packing: Packing,
    scales: ScaleLayout,
    inputs: &[GroupInputs],
) -> Operands {
    let layout = Layout::new(gemm, scales);
    let pieces = layout.pieces(inputs);
    let tokens = memory.allocate(assembled(layout.token_bytes, &pieces.tokens));
    let token_scales = memory.allocate(assembled(layout.token_scale_bytes, &pieces.token_scales));
    let canonical = assembled(layout.weight_bytes, &pieces.weights);
    let base = memory.allocate(canonical.clone());
    let mut weights = layout.weights(inputs, base);
    if packing == Packing::Fragments {
        let place = |bytes| Ok::<_, PackingError>(memory.allocate(bytes));
        repack(gemm, &canonical, base, &mut weights, place).unwrap();
    }
    Operands {
        rows: [tokens, 0, 0],
        scales: [token_scales, 0, 0],
        weights,
    }
}

fn of_attention(memory: &mut Memory, AttentionInputs { query, key, value }: &AttentionInputs) -> Operands {
    let tensors = [query, key, value];
    Operands {
        rows: tensors.map(|tensor| memory.allocate(tensor.bytes.clone())),
        scales: tensors.map(|tensor| memory.allocate(bytemuck::cast_slice(&tensor.scales).to_vec())),
        weights: Vec::new(),
    }
}

/// A map in the interpreter's form; zeros for a map of an absent matrix.
fn encoded(map: &Map, address: u64) -> [u8; 128] {
    if address == 0 || map.sizes.contains(&0) {
        return [0; 128];
    }
    let swizzle = match map.swizzle {
        Swizzle::None => gauntlet_ptx::Swizzle::None,
        Swizzle::Bytes64 => gauntlet_ptx::Swizzle::Bytes64,
        Swizzle::Bytes128 => gauntlet_ptx::Swizzle::Bytes128,
    };
    TensorMap {
        address: address + map.offset,
        element_bytes: map.element.bytes(),
        sizes: map.sizes.clone(),
        boxes: map.boxes.clone(),
        swizzle,
    }
    .encode()
}

/// A problem like the one that a variant is shipped for, but small enough to be interpreted.
fn small(problem: &Operation) -> Operation {
    match problem {
        Operation::GroupedGemm(gemm) => Operation::GroupedGemm(small_gemm(gemm)),
        Operation::Attention(attention) => Operation::Attention(small_attention(attention)),
    }
}

/// Groups: one whose results can be stored in whole lines, an empty one, and one with odd sizes. No chunk divides the
/// depths. They are deep enough to use all buffers more than once; with few tokens, every warp of a block gets its own
/// chunks.
fn small_gemm(of: &GroupedGemm) -> GroupedGemm {
    let most = of.groups.iter().map(|group| group.m).max().unwrap_or(0);
    let (tokens, depths) = match most {
        ..=16 => ([13, 0, 1], [2320, 256, 6160]),
        _ => ([67, 0, 21], [784, 256, 1296]),
    };
    let rows = [136, 16, 75];
    let groups = tokens.into_iter().zip(rows.into_iter().zip(depths));
    GroupedGemm {
        groups: groups.map(|(m, (n, k))| GemmShape { m, n, k }).collect(),
        form: of.form,
        output: of.output,
        tokens: of.tokens,
    }
}

/// Sequences that no tile divides; the first leaves most of a block without queries. They are equal if those of the
/// variant are, because its kernel may rely on it.
fn small_attention(of: &Attention) -> Attention {
    let alike = of.sequences.iter().all(|one| *one == of.sequences[0]);
    let lengths = if alike {
        [(256, 256), (256, 256)]
    } else {
        [(1, 500), (77, 131)]
    };
    Attention {
        sequences: sequences(lengths),
        heads: 2,
        kv_heads: 1,
        ..of.clone()
    }
}

fn sequences(lengths: [(usize, usize); 2]) -> Vec<Sequence> {
    lengths.map(|(queries, keys)| Sequence { queries, keys }).to_vec()
}

fn compiler() -> Option<Compiler> {
    match Compiler::new() {
        Ok(compiler) => Some(compiler),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

/// The schedule with tiles that the interpreter's small problems fill. A kernel for tiles of all widths would contain
/// code for each width.
fn narrowed(schedule: &Schedule) -> Schedule {
    let mut narrowed = schedule.clone();
    if schedule.swap_ab && schedule.order == Order::Sorted {
        narrowed.tile.n = schedule.tile.n.min(MOST_SORTED_TOKENS);
    }
    narrowed
}

/// The error in a kernel's results, if any, after two consecutive calls, in two orders of events.
fn wrong(compiler: &Compiler, arch: Arch, one: &Shipped, inputs: InputKind) -> Option<String> {
    wrong_on(compiler, arch, one, small(&one.problem), inputs)
}

fn wrong_on(
    compiler: &Compiler,
    arch: Arch,
    one: &Shipped,
    problem: Operation,
    inputs: InputKind,
) -> Option<String> {
    let sets = [7, 8].map(|seed| operations::generate(&problem, inputs, seed));
    wrong_with(compiler, arch, one, &problem, inputs, &sets)
}

/// The same with these operands of a given kind.
fn wrong_with(
    compiler: &Compiler,
    arch: Arch,
    one: &Shipped,
    problem: &Operation,
    inputs: InputKind,
    sets: &[Inputs; 2],
) -> Option<String> {
    let kernels = Kernels::new(compiler, problem, &narrowed(&one.schedule), arch);
    wrong_kernels(&kernels, one, inputs, sets, 0..2)
}

/// The same of kernels that have been read.
fn wrong_kernels(
    kernels: &Kernels,
    one: &Shipped,
    inputs: InputKind,
    sets: &[Inputs; 2],
    seeds: Range<u64>,
) -> Option<String> {
    let problem = &kernels.problem;
    let expected = sets
        .each_ref()
        .map(|set| operations::expected(problem, set, Coverage::Full).unwrap());
    let rules = rules(problem, &one.schedule);
    let rightness = operations::sizes(problem).unwrap().rightness(Some(inputs));
    let mut first = None;
    for seed in seeds {
        let outputs = match kernels.run(sets, seed) {
            Ok(outputs) => outputs,
            Err(fault) => return Some(format!("{}, {inputs}, seed {seed}: {fault}", one.name)),
        };
        for (call, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
            let errors =
                ErrorMeasures::between(&operations::output(problem, output), expected, rules.tolerance);
            if let Some(fault) = rules.fault(&errors, rightness) {
                return Some(format!("{}, call {call}, seed {seed}: {fault}", one.name));
            }
        }
        let bytes: Vec<_> = outputs.into_iter().map(|output| output.bytes).collect();
        if *first.get_or_insert_with(|| bytes.clone()) != bytes {
            return Some(format!("{}, {inputs}: other bits with seed {seed}", one.name));
        }
    }
    None
}

/// A variant that is also shipped for Hopper has mostly the same code on an older architecture, so only every sixth of them is
/// interpreted there.
const PART: usize = 6;

/// Variants of a kernel that an ordinary test interprets; the long tests interpret all.
const FEW: usize = 2;

/// Interprets at most `most` variants of one kernel for an architecture, evenly spread over the list, with the kinds of inputs in
/// turn. Of variants that are also shipped for Hopper, every [`PART`]th counts.
fn interpret(source: Source, arch: Arch, most: usize) {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped(arch);
    let of_source = |one: &&Shipped| {
        let plan = plan::plan(&one.problem, &one.schedule, target(arch)).unwrap();
        plan.variant().source == source
    };
    let mut tried: Vec<_> = shipped.iter().filter(of_source).collect();
    if arch != Arch::Sm90a {
        let on_hopper = crate::shipped::shipped(Arch::Sm90a);
        let mut number = 0;
        tried.retain(|one| {
            number += 1;
            number % PART == 0 || !on_hopper.contains(one)
        });
    }
    let step = tried.len().div_ceil(most).max(1);
    let tried: Vec<_> = tried
        .into_iter()
        .zip(InputKind::ALL.into_iter().cycle())
        .step_by(step)
        .collect();
    assert!(!tried.is_empty());
    let wrong: Vec<_> = tried
        .into_par_iter()
        .filter_map(|(one, inputs)| wrong(&compiler, arch, one, inputs))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The kernels, each with the architectures that it is interpreted for. Those that need nothing of Hopper are built for
/// the architectures before it too: conversions from e4m3 and products of bf16 are other instructions on sm_80, and launches
/// do not overlap.
const KERNELS: [(Source, &[Arch]); 8] = {
    const HOPPER: &[Arch] = &[Arch::Sm90a];
    const BLACKWELL: &[Arch] = &[Arch::Sm100a];
    const ALL: &[Arch] = &[Arch::Sm80, Arch::Sm89, Arch::Sm90a];
    [
        (Source::Rows, HOPPER),
        (Source::Swapped, HOPPER),
        (Source::Unified, ALL),
        (Source::Narrow, ALL),
        (Source::Native, BLACKWELL),
        (Source::AttentionUnified, ALL),
        (Source::AttentionSpecialised, HOPPER),
        (Source::AttentionResident, HOPPER),
    ]
};

fn interpret_kernels(most: usize) {
    for (source, architectures) in KERNELS {
        for arch in architectures {
            interpret(source, *arch, most);
        }
    }
}

#[test]
fn some_variants_of_each_kernel_are_right() {
    interpret_kernels(FEW);
}

#[test]
#[ignore = "minutes: every shipped variant"]
fn all_variants_of_each_kernel_are_right() {
    interpret_kernels(usize::MAX);
}

/// Tiles narrow enough that the ring holds more units than the two places of scales serve: first tiles of two chunks,
/// then deep ones, several a block.
#[test]
fn scales_of_weights_wait_for_their_place() {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped(Arch::Sm90a);
    for name in ["swapped, sorted", "swapped, sorted, dual"] {
        let one = shipped.iter().find(|one| one.name == name).unwrap();
        let Operation::GroupedGemm(gemm) = &one.problem else {
            panic!("{name} is no GEMM");
        };
        let group = |k| GemmShape { m: 5, n: 200, k };
        for depths in [&[256; 6][..], &[2560; 2], &[768, 1792, 256]] {
            let problem = Operation::GroupedGemm(GroupedGemm {
                groups: depths.iter().map(|&k| group(k)).collect(),
                ..gemm.clone()
            });
            let wrong = wrong_on(&compiler, Arch::Sm90a, one, problem, InputKind::Wide);
            assert_eq!(wrong, None, "{depths:?}");
        }
    }
}

/// Depths that are no multiple of a chunk, and a bf16 range that fp16 does not have; of every `step`th variant.
fn interpret_sixteen_bits(step: usize) {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped(Arch::Sm90a);
    let half = shipped
        .iter()
        .filter(|one| matches!(&one.problem, Operation::GroupedGemm(gemm) if gemm.tokens.is_half()));
    for one in half.step_by(step) {
        for inputs in [InputKind::Wide, InputKind::Outliers, InputKind::Adversarial] {
            assert_eq!(wrong(&compiler, Arch::Sm90a, one, inputs), None, "{}", one.name);
        }
    }
}

#[test]
fn some_tokens_of_sixteen_bits() {
    interpret_sixteen_bits(5);
}

#[test]
#[ignore = "minutes: every variant"]
fn all_tokens_of_sixteen_bits() {
    interpret_sixteen_bits(1);
}

/// Depths that are odd multiples of 16, weight rows that are odd multiples of 8, and token counts next to those of tiles.
#[test]
fn sizes_that_no_tile_divides() {
    let Some(compiler) = compiler() else { return };
    let shapes = [(1, 8, 16), (7, 24, 272), (129, 72, 48), (0, 8, 16)];
    let groups = shapes.map(|(m, n, k)| GemmShape { m, n, k }).to_vec();
    let shipped = shipped(Arch::Sm90a);
    let of_halves = shipped.iter().filter_map(|one| match &one.problem {
        Operation::GroupedGemm(gemm) if gemm.tokens.is_half() => Some((one, gemm)),
        _ => None,
    });
    let tried: Vec<_> = of_halves.collect();
    let wrong: Vec<_> = tried
        .into_par_iter()
        .filter_map(|(one, gemm)| {
            let problem = Operation::GroupedGemm(GroupedGemm {
                groups: groups.clone(),
                ..gemm.clone()
            });
            wrong_on(&compiler, Arch::Sm90a, one, problem, InputKind::Wide)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
