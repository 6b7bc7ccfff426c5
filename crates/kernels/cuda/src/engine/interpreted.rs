//! Checks every shipped kernel against the oracle without a GPU: kernels are compiled to PTX and interpreted, in two
//! orders of events, of which one is watched for races. These tests need NVRTC; without it they print a note and pass, unless `GAUNTLET_REQUIRE_COMPILER`
//! is set.

mod attention;
mod drawn;
mod gemm;
mod heads;
mod mistakes;
mod mixture;
mod native;
mod parts;
mod ragged;
mod repacking;
mod routed;
mod sampled;
mod scales;
mod small;
mod steps;
mod variants;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_problems::{
    AttentionInputs, GemmShape, GroupInputs, GroupedGemm, Inputs, Operation, Order, Output, Packing, Schedule,
};
use gauntlet_ptx::{Fault, Kernel, Launch, Memory, TensorMap};
use gauntlet_task::{Coverage, ErrorMeasures, InputKind};

use self::small::{sequences, small, small_attention};
use super::layout::{Layout, assembled};
use super::operands::repack;
use super::setup::weight_address;
use crate::packing::PackingError;
use crate::plan::{
    self, Addresses, Map, MappedOperands, Matrix, OPERANDS, Plan, ScaleLayout, Swizzle, Target, Variant,
    Weights,
};
use crate::shipped::Shipped;
use gauntlet_cuda::compiler::Compiler;

/// Few enough multiprocessors that each block of a persistent kernel gets several tiles.
const PROCESSORS: u32 = 2;

/// A GPU of an architecture with [`PROCESSORS`] multiprocessors.
fn target(arch: Arch) -> Target {
    Target::of_arch(arch, PROCESSORS)
}

/// Widest tiles where a kernel has code for many widths, of both steps between them: at 256 its compilation to PTX takes six
/// seconds.
const MAX_SORTED_TOKENS: usize = 96;

/// The kernels of a plan, read.
struct Kernels {
    problem: Operation,
    packing: Packing,
    scales: ScaleLayout,
    plan: Box<dyn Plan>,
    kernels: Vec<Arc<Kernel>>,
    /// Scales of all of Q, K and V that are part of the launch in place of those in memory.
    factors: Option<[f32; OPERANDS]>,
}

impl Kernels {
    fn new(compiler: &Compiler, problem: &Operation, schedule: &Schedule, arch: Arch) -> Self {
        let plan = plan::plan(problem, schedule, target(arch)).unwrap();
        let kernels = read(compiler, plan.as_ref(), arch);
        Self::of_plan(plan, problem, schedule, arch, kernels)
    }

    fn of_plan(
        plan: Box<dyn Plan>,
        problem: &Operation,
        schedule: &Schedule,
        arch: Arch,
        kernels: Vec<Arc<Kernel>>,
    ) -> Self {
        Self {
            problem: problem.clone(),
            packing: schedule.packing,
            scales: ScaleLayout::of(target(arch).for_problem(problem).arch),
            kernels,
            plan,
            factors: None,
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
        let calls = operands
            .iter()
            .zip(needed)
            .map(|(operands, needed)| self.call(&mut memory, operands, needed, [workspace, counters]));
        let calls: Vec<_> = calls.collect();
        let queued: Vec<_> = calls
            .iter()
            .flat_map(|addresses| self.plan.launches(addresses))
            .collect();
        run(
            self.plan.as_ref(),
            &self.kernels,
            &queued,
            &mut memory,
            seed,
            None,
        )?;
        let result = |call: &Addresses| memory.contents(call.output).unwrap().to_vec();
        Ok(calls
            .iter()
            .map(|call| Output::new(&self.problem, result(call)).unwrap())
            .collect())
    }

    /// The addresses of a call, for which tables, maps and result are allocated.
    fn call(
        &self,
        memory: &mut Memory,
        operands: &Operands,
        needed: plan::Memory,
        [workspace, counters]: [u64; 2],
    ) -> Addresses {
        let maps = needed.maps.iter();
        let maps = maps.flat_map(|map| encoded(map, operands.address(map))).collect();
        Addresses {
            operands: operands.rows,
            scales: match self.factors {
                Some(_) => [0; OPERANDS],
                None => operands.scales,
            },
            factors: self.factors.unwrap_or([1.0; OPERANDS]),
            output: memory.allocate_unwritten(self.problem.output_bytes()),
            tables: memory.allocate(needed.tables),
            maps: memory.allocate(maps),
            workspace,
            counters,
            rows: 0,
        }
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

/// A variant's kernel, empty until it is read.
type Slot = Arc<OnceLock<Arc<Kernel>>>;

/// The kernels that tests of this process have read. Tests try one variant on many problems, and compiling it takes as long
/// as interpreting it on one.
static KERNELS: LazyLock<Mutex<HashMap<(Variant, Arch), Slot>>> = LazyLock::new(Mutex::default);

/// The kernels of a plan.
fn read(compiler: &Compiler, plan: &dyn Plan, arch: Arch) -> Vec<Arc<Kernel>> {
    let variants = plan.variants().into_iter();
    variants.map(|variant| kernel(compiler, variant, arch)).collect()
}

/// A variant's kernel, compiled at the first call.
fn kernel(compiler: &Compiler, variant: &Variant, arch: Arch) -> Arc<Kernel> {
    let slot = {
        let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kernels.entry((variant.clone(), arch)).or_default())
    };
    let read = || {
        let ptx = variant.ptx(compiler, arch).unwrap();
        Arc::new(Kernel::read(&ptx, variant.source.entry()).unwrap())
    };
    Arc::clone(slot.get_or_init(read))
}

/// Runs launches of a plan one after another, overlapping where they may; all blocks, or only some of each launch.
fn run(
    plan: &dyn Plan,
    kernels: &[Arc<Kernel>],
    queued: &[plan::Launch],
    memory: &mut Memory,
    seed: u64,
    only: Option<&[u32]>,
) -> Result<(), Fault> {
    let variants = plan.variants();
    let parameters: Vec<_> = queued.iter().map(parameter).collect();
    let launches = queued.iter().zip(&parameters).map(|(launch, parameter)| {
        let place = plan.place(launch.pass);
        let variant = variants[place];
        Launch {
            kernel: &kernels[place],
            grid: [launch.grid, 1, 1],
            block: [variant.threads, 1, 1],
            cluster: launch.cluster,
            shared_bytes: variant.shared_bytes,
            parameter,
            overlaps: variant.overlaps(),
            only,
        }
    });
    // Watching takes longer, and finds races in whichever order of events.
    let run = if seed == 1 {
        gauntlet_ptx::watch
    } else {
        gauntlet_ptx::run
    };
    run(&launches.collect::<Vec<_>>(), memory, seed)
}

/// The parameter of a launch, with the maps of its operands.
fn parameter(launch: &plan::Launch) -> Vec<u8> {
    let Some(operands) = launch.mapped else {
        return launch.parameter.clone();
    };
    let maps = operands.maps();
    let maps: Vec<u8> = maps
        .iter()
        .flat_map(|map| encoded(map, operands.address(map)))
        .collect();
    MappedOperands::complete(&launch.parameter, &maps)
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
    if packing != Packing::Canonical {
        let place = |bytes| Ok::<_, PackingError>(memory.allocate(bytes));
        repack(gemm, packing, &canonical, base, &mut weights, place).unwrap();
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
        strides: TensorMap::strides_without_gaps(&map.sizes, map.element.bytes()),
        boxes: map.boxes.clone(),
        swizzle,
    }
    .encode()
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
        narrowed.tile.n = schedule.tile.n.min(MAX_SORTED_TOKENS);
    }
    narrowed
}

/// The error in a kernel's results, if any, after two consecutive calls, in two orders of events.
fn wrong(compiler: &Compiler, arch: Arch, one: &Shipped, inputs: InputKind) -> Option<String> {
    wrong_on(compiler, arch, one, small(one), inputs)
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
    let rules = operations::rules(problem, &one.schedule);
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
