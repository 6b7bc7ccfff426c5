//! Every shipped GEMM kernel against the oracle, without a GPU: compiled to PTX and interpreted, in several orders of events. These
//! need NVRTC; where there is none they say so and pass, unless `GAUNTLET_REQUIRE_COMPILER` is set.

use gauntlet_lab::Correctness;
use gauntlet_lab::gates::fault;
use gauntlet_problem::{
    Case, Coverage, ErrorMeasures, GemmShape, GroupInputs, GroupedGemm, InputKind, Inputs, Oracle, Output,
    OutputFormat, Problem, Tolerance,
};
use gauntlet_ptx::{Kernel, Launch, Memory, TensorMap};
use gauntlet_schedule::{Order, Packing, Schedule};
use rayon::prelude::*;

use super::layout::{Layout, Piece};
use super::setup::weight_address;
use crate::compiler::Compiler;
use crate::packing::pack;
use crate::plan::{self, Addresses, Map, Plan, Swizzle, Weights};
use crate::shipped::{Shipped, shipped};

/// Few multiprocessors, so that blocks that stay have several tiles each.
const PROCESSORS: u32 = 3;

/// Widest tiles where a kernel has code for every width: at 256 its compilation to PTX takes a quarter of a minute.
const MOST_SORTED_TOKENS: usize = 72;

/// Everything of a call in the interpreter's memory.
struct Call {
    plan: Box<dyn Plan>,
    kernels: Vec<Kernel>,
    memory: Memory,
    addresses: Addresses,
    problem: Problem,
}

impl Call {
    fn new(compiler: &Compiler, gemm: &GroupedGemm, schedule: &Schedule, inputs: &[GroupInputs]) -> Self {
        let problem = Problem::GroupedGemm(gemm.clone());
        let plan = plan::plan(&problem, schedule, PROCESSORS).unwrap();
        let read = |variant: &plan::Variant| {
            Kernel::read(&compiler.ptx(variant).unwrap(), variant.source.entry()).unwrap()
        };
        let kernels = plan.variants().into_iter().map(read).collect();
        let mut memory = Memory::new();
        let layout = Layout::new(gemm);
        let pieces = layout.pieces(inputs);
        let tokens = memory.allocate(assembled(layout.token_bytes, &pieces.tokens));
        let token_scales = memory.allocate(assembled(layout.token_scale_bytes, &pieces.token_scales));
        let canonical = assembled(layout.weight_bytes, &pieces.weights);
        let base = memory.allocate(canonical.clone());
        let mut weights = layout.weights(inputs, base);
        if schedule.packing == Packing::Fragments {
            repack(&mut memory, gemm, &canonical, base, &mut weights);
        }
        let needed = plan.memory(&weights);
        let maps = needed
            .maps
            .iter()
            .flat_map(|map| encoded(map, weight_address(map, &weights)))
            .collect();
        let addresses = Addresses {
            operands: [tokens, 0, 0],
            scales: [token_scales, 0, 0],
            output: memory.allocate_unwritten(problem.output_bytes()),
            tables: memory.allocate(needed.tables),
            maps: memory.allocate(maps),
            workspace: memory.allocate_unwritten(needed.workspace_bytes),
            counters: memory.allocate(vec![0; needed.counter_bytes]),
        };
        Self {
            plan,
            kernels,
            memory,
            addresses,
            problem,
        }
    }

    /// Computes once, in the order of events that a seed draws.
    fn run(&mut self, seed: u64) -> Result<Output, String> {
        let variants = self.plan.variants();
        for launch in self.plan.launches(&self.addresses) {
            let variant = variants[launch.pass as usize];
            let interpreted = Launch {
                blocks: launch.grid,
                cluster: launch.cluster,
                threads: variant.threads,
                shared_bytes: variant.shared_bytes,
                parameter: &launch.parameter,
                seed,
            };
            gauntlet_ptx::run(
                &self.kernels[launch.pass as usize],
                &interpreted,
                &mut self.memory,
            )
            .map_err(|fault| fault.to_string())?;
        }
        let bytes = self.memory.contents(self.addresses.output).unwrap().to_vec();
        Ok(Output::new(&self.problem, bytes).unwrap())
    }
}

fn assembled(bytes: usize, pieces: &[Piece<'_>]) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    for (begin, piece) in pieces {
        buffer[*begin..][..piece.len()].copy_from_slice(piece);
    }
    buffer
}

/// As [`super::Operands`] does on a device.
fn repack(memory: &mut Memory, gemm: &GroupedGemm, canonical: &[u8], base: u64, weights: &mut [Weights]) {
    let of_matrix = |begin: u64, length: usize| &canonical[(begin - base) as usize..][..length];
    for (shape, weights) in gemm.groups.iter().zip(weights) {
        let (rows, depth) = (shape.n, plan::depth(shape.k));
        for matrix in 0..plan::matrices(gemm) {
            let (values, scales) = (&mut weights.packed[matrix], &mut weights.scales[matrix]);
            let packed = pack(
                rows,
                depth,
                of_matrix(*values, rows * depth / 2),
                of_matrix(*scales, rows * depth / 16),
            )
            .unwrap();
            *values = memory.allocate(packed.values);
            *scales = memory.allocate(packed.scales);
        }
    }
}

/// A map as the interpreter reads it; zeros for one of nothing.
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

/// A problem of a shipped variant's form and result that an interpreter can do: an empty group, odd sizes, and a depth that no chunk
/// divides.
fn small(one: &Shipped) -> Option<GroupedGemm> {
    let Problem::GroupedGemm(of) = &one.problem else {
        return None;
    };
    let most = of.groups.iter().map(|group| group.m).max()?;
    let tokens = if most > 16 { [21, 0, 67] } else { [1, 0, 13] };
    let shapes = [(75, 528), (16, 256), (130, 784)];
    Some(GroupedGemm {
        groups: tokens
            .into_iter()
            .zip(shapes)
            .map(|(m, (n, k))| GemmShape { m, n, k })
            .collect(),
        form: of.form,
        output: of.output,
    })
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

/// The schedule with tiles that the interpreter's small problems fill: a kernel for tiles of all widths has code for each.
fn narrowed(schedule: &Schedule) -> Schedule {
    let mut narrowed = schedule.clone();
    if schedule.swap_ab && schedule.order == Order::Sorted {
        narrowed.tile.n = schedule.tile.n.min(MOST_SORTED_TOKENS);
    }
    narrowed
}

/// What is wrong with a kernel's results, if anything: two calls one after another, events in two orders.
fn wrong(compiler: &Compiler, one: &Shipped, inputs: InputKind) -> Option<String> {
    let gemm = small(one)?;
    let problem = Problem::GroupedGemm(gemm.clone());
    let operands = Inputs::generate(&problem, inputs, 7);
    let expected = Oracle::compute(&problem, &operands, Coverage::Full).unwrap();
    let Inputs::GroupedGemm(groups) = &operands else {
        return None;
    };
    let mut call = Call::new(compiler, &gemm, &narrowed(&one.schedule), groups);
    let rules = rules(gemm.output);
    let case = Case {
        name: one.name.clone(),
        problem,
        inputs,
        data: None,
        speed_of_light: None,
    };
    let mut first = None;
    for seed in 0..2 {
        let output = match call.run(seed) {
            Ok(output) => output,
            Err(fault) => return Some(format!("{}, {inputs}, seed {seed}: {fault}", one.name)),
        };
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        if let Some(fault) = fault(&case, inputs, &errors, &rules) {
            return Some(format!("{}, seed {seed}: {fault}", one.name));
        }
        if *first.get_or_insert_with(|| output.bytes.clone()) != output.bytes {
            return Some(format!("{}, {inputs}: other bits with seed {seed}", one.name));
        }
    }
    None
}

/// The lab's rules, which are made for f16; bf16 has three bits fewer.
fn rules(output: OutputFormat) -> Correctness {
    let rules = Correctness::default();
    let coarser = if output == OutputFormat::Bf16 { 8.0 } else { 1.0 };
    Correctness {
        tolerance: Tolerance {
            relative: coarser * rules.tolerance.relative,
            ..rules.tolerance
        },
        nrmse: coarser * rules.nrmse,
        ..rules
    }
}

#[test]
fn every_gemm_kernel_computes_what_the_oracle_says() {
    let Some(compiler) = compiler() else { return };
    let shipped = shipped();
    let tried = InputKind::ALL.into_iter().cycle();
    let wrong: Vec<_> = shipped
        .iter()
        .zip(tried)
        .collect::<Vec<_>>()
        .into_par_iter()
        .filter_map(|(one, inputs)| wrong(&compiler, one, inputs))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
