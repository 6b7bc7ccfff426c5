//! Calls that are planned on the device: the same launches with many routings give the bits of the host's plans.

use gauntlet_problems::{Form, OutputFormat, Roles, Setup, TokenFormat};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::plan::ScaleLayout;
use crate::plan::fixture::collect;
use crate::plan::swapped::{Epilogue, RoutedPlan};

/// More than a warp of the planning kernel places at a time.
const EXPERTS: usize = 37;
const ROWS: usize = 40;
/// A plan serves calls of fewer rows than it is for.
const PLANNED_ROWS: usize = ROWS + 3;
/// Two blocks of weight rows, and a depth that is no multiple of a chunk.
const SIZES: (usize, usize) = (136, 144);

fn schedule(form: Form, width: usize, order: Order, packing: Packing) -> Schedule {
    Schedule {
        tile: [if form == Form::Swiglu { 64 } else { 128 }, width, 128].into(),
        stages: 3,
        roles: Roles::Specialised,
        lookup: gauntlet_problems::Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        order,
        packing,
        ..Schedule::baseline()
    }
}

fn layer(tokens: TokenFormat, form: Form, counts: &[usize]) -> GroupedGemm {
    layer_of(tokens, form, counts, SIZES)
}

fn layer_of(tokens: TokenFormat, form: Form, counts: &[usize], (n, k): (usize, usize)) -> GroupedGemm {
    GroupedGemm {
        groups: counts.iter().map(|&m| GemmShape { m, n, k }).collect(),
        form,
        output: OutputFormat::F32,
        tokens,
    }
}

/// Token counts of all experts: none, all to one, few busy ones, and any.
fn routings() -> Vec<Vec<usize>> {
    let mut generator = ChaCha8Rng::seed_from_u64(3);
    let mut one = vec![0; EXPERTS];
    one[31] = ROWS;
    let mut found = vec![vec![0; EXPERTS], one];
    for busy in [2, 3, 7, EXPERTS] {
        let mut counts = vec![0; EXPERTS];
        let experts: Vec<usize> = (0..busy).map(|_| generator.random_range(0..EXPERTS)).collect();
        for _ in 0..generator.random_range(ROWS / 2..=ROWS) {
            counts[experts[generator.random_range(0..busy)]] += 1;
        }
        found.push(counts);
    }
    found
}

fn ends(counts: &[usize]) -> Vec<i32> {
    let ends = counts.iter().scan(0, |end, count| {
        *end += *count as i32;
        Some(*end)
    });
    ends.collect()
}

/// A routed call that is prepared once.
struct Prepared {
    plan: RoutedPlan,
    kernels: Vec<Arc<Kernel>>,
    memory: Memory,
    addresses: Addresses,
    queued: Vec<plan::Launch>,
}

impl Prepared {
    /// With the weights of these inputs, which have all rows in the first group.
    fn new(
        compiler: &Compiler,
        layer: &GroupedGemm,
        schedule: &Schedule,
        inputs: &[GroupInputs],
        ends_are_ready: bool,
    ) -> Self {
        Self::of_memory(
            compiler,
            layer,
            schedule,
            inputs,
            ends_are_ready,
            (Memory::new(), None),
        )
    }

    fn of_memory(
        compiler: &Compiler,
        layer: &GroupedGemm,
        schedule: &Schedule,
        inputs: &[GroupInputs],
        ends_are_ready: bool,
        (mut memory, epilogue): (Memory, Option<Epilogue>),
    ) -> Self {
        let plan = RoutedPlan::new(layer, PLANNED_ROWS, schedule, target(Arch::Sm90a), epilogue).unwrap();
        let operands = of_gemm(&mut memory, layer, schedule.packing, ScaleLayout::Rows, inputs);
        let needed = plan.memory(&operands.weights);
        let maps = needed.maps.iter();
        let maps = maps.flat_map(|map| encoded(map, operands.address(map))).collect();
        let addresses = Addresses {
            operands: [
                operands.rows[0],
                memory.allocate(vec![0; 4 * EXPERTS]),
                u64::from(ends_are_ready),
            ],
            scales: operands.scales,
            factors: [1.0; OPERANDS],
            output: memory.allocate_unwritten(ROWS * layer.groups[0].n * 4),
            tables: memory.allocate(needed.tables),
            maps: memory.allocate(maps),
            workspace: memory.allocate_unwritten(needed.workspace_bytes),
            counters: memory.allocate(vec![0; needed.counter_bytes]),
            rows: ROWS,
        };
        Self {
            kernels: read(compiler, &plan, Arch::Sm90a),
            queued: plan.launches(&addresses),
            plan,
            memory,
            addresses,
        }
    }

    /// Runs the prepared launches with other tokens and ends.
    fn run(&mut self, layer: &GroupedGemm, inputs: &[GroupInputs], ends: &[i32], seed: u64) -> Vec<u8> {
        let layout = Layout::new(layer, ScaleLayout::Rows);
        let pieces = layout.pieces(inputs);
        let tokens = assembled(layout.token_bytes, &pieces.tokens);
        let scales = assembled(layout.token_scale_bytes, &pieces.token_scales);
        for (address, bytes) in [
            (self.addresses.operands[0], tokens.as_slice()),
            (self.addresses.scales[0], &scales),
            (self.addresses.operands[1], bytemuck::cast_slice(ends)),
        ] {
            self.memory.contents_mut(address).unwrap()[..bytes.len()].copy_from_slice(bytes);
        }
        self.memory
            .contents_mut(self.addresses.output)
            .unwrap()
            .fill(0xFF);
        run(
            &self.plan,
            &self.kernels,
            &self.queued,
            &mut self.memory,
            seed,
            None,
        )
        .unwrap();
        self.memory.contents(self.addresses.output).unwrap().to_vec()
    }
}

fn generated(problem: &GroupedGemm) -> Vec<GroupInputs> {
    let problem = Operation::GroupedGemm(problem.clone());
    match operations::generate(&problem, InputKind::Wide, 5) {
        Inputs::GroupedGemm(inputs) => inputs,
        Inputs::Attention(_) => panic!("the problem is a GEMM"),
    }
}

fn check(tokens: TokenFormat, form: Form, schedule: &Schedule) {
    if compiler().is_some() {
        assert_eq!(check_sizes(tokens, form, schedule, SIZES), 0);
    }
}

/// How many routings have other bits than the host's plan that splits no tile.
fn check_sizes(tokens: TokenFormat, form: Form, schedule: &Schedule, sizes: (usize, usize)) -> usize {
    let Some(compiler) = compiler() else { return 1 };
    let mut differ = 0;
    let mut all = vec![0; EXPERTS];
    all[0] = ROWS;
    let layer_of = |counts: &[usize]| layer_of(tokens, form, counts, sizes);
    let whole = layer_of(&all);
    let mut prepared = Prepared::new(
        &compiler,
        &whole,
        schedule,
        &generated(&whole),
        form == Form::Swiglu,
    );
    for (seed, counts) in routings().iter().enumerate() {
        let problem = layer_of(counts);
        let inputs = generated(&problem);
        let found = prepared.run(&problem, &inputs, &ends(counts), seed as u64);
        let operation = Operation::GroupedGemm(problem);
        let whole = Schedule {
            split_k: 1,
            ..schedule.clone()
        };
        let kernels = Kernels::new(&compiler, &operation, &whole, Arch::Sm90a);
        let expected = kernels.run(&[Inputs::GroupedGemm(inputs)], 0).unwrap();
        let (own, rest) = found.split_at(expected[0].bytes.len());
        differ += usize::from(own != expected[0].bytes);
        assert_close(own, &expected[0].bytes, &format!("{counts:?}"));
        assert!(
            rest.iter().all(|byte| *byte == 0xFF),
            "rows beyond the last end were written: {counts:?}"
        );
    }
    differ
}

/// Parts of a tile are added in another order.
fn assert_close(found: &[u8], expected: &[u8], about: &str) {
    let (found, expected): (Vec<f32>, Vec<f32>) = (collect(found), collect(expected));
    let most = expected.iter().map(|value| value.abs()).fold(0.0, f32::max);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(
            (found - expected).abs() <= 1e-5 * most,
            "{found} for {expected}: {about}"
        );
    }
}

/// An odd number of tiles of a deep product, which two blocks can only share by its depth: the bits tell that they do.
#[test]
fn tiles_are_split_where_that_is_quicker() {
    for (tokens, form, packing, n) in [
        (TokenFormat::Bf16, Form::Plain, Packing::Steps, 264),
        (TokenFormat::F16, Form::Swiglu, Packing::Canonical, 136),
    ] {
        let schedule = Schedule {
            split_k: 4,
            ..schedule(form, 24, Order::Sorted, packing)
        };
        assert!(check_sizes(tokens, form, &schedule, (n, 4 << 10)) > 0, "{form:?}");
    }
}

#[test]
fn brain_floats_in_tiles_of_all_widths() {
    check(
        TokenFormat::Bf16,
        Form::Plain,
        &schedule(Form::Plain, 24, Order::Sorted, Packing::Canonical),
    );
}

#[test]
fn nvfp4_tokens_and_two_products() {
    check(
        TokenFormat::Nvfp4,
        Form::Swiglu,
        &schedule(Form::Swiglu, 16, Order::Sorted, Packing::Canonical),
    );
}

#[test]
fn repacked_weights_in_tiles_of_one_width() {
    let schedule = schedule(Form::Plain, 16, Order::Static, Packing::Fragments);
    check(TokenFormat::F16, Form::Plain, &schedule);
}

#[test]
fn tokens_as_they_lie_in_memory() {
    for (tokens, form, order) in [
        (TokenFormat::Bf16, Form::Plain, Order::Sorted),
        (TokenFormat::F16, Form::Swiglu, Order::Static),
    ] {
        check(tokens, form, &schedule(form, 24, order, Packing::Steps));
    }
}

/// Ends that no routing has read and write nothing outside of the call's memory.
#[test]
fn wrong_ends_stay_within_the_memory() {
    for packing in [Packing::Canonical, Packing::Steps] {
        wrong_ends(packing);
    }
}

fn wrong_ends(packing: Packing) {
    let Some(compiler) = compiler() else { return };
    let mut all = vec![0; EXPERTS];
    all[0] = ROWS;
    let whole = layer(TokenFormat::Bf16, Form::Plain, &all);
    let inputs = generated(&whole);
    let schedule = schedule(Form::Plain, 16, Order::Sorted, packing);
    let mut prepared = Prepared::new(&compiler, &whole, &schedule, &inputs, false);
    let mut generator = ChaCha8Rng::seed_from_u64(9);
    for seed in 0..2 {
        let mut ends: Vec<i32> = (0..EXPERTS).map(|_| generator.random_range(-20..90)).collect();
        ends[5] = i32::MIN;
        ends[7] = i32::MAX;
        prepared.run(&whole, &inputs, &ends, generator.next_u64() + seed);
    }
}

#[test]
fn products_of_several_sizes_are_refused() {
    let mut unequal = layer(TokenFormat::Bf16, Form::Plain, &[0, 0]);
    unequal.groups[1].n = 8;
    let schedule = schedule(Form::Plain, 16, Order::Sorted, Packing::Canonical);
    let error = RoutedPlan::new(&unequal, 4, &schedule, Target::hopper(132), None).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("product 1 is 8×144, and the first 136×144: "),
        "{error}"
    );
}

/// Launches depend on the sizes alone; the workspace has room for the worst routing, not for all tokens in each group.
#[test]
fn launches_and_memory_follow_from_the_number_of_rows() {
    let layer = layer(TokenFormat::Bf16, Form::Plain, &[0; 128]);
    let schedule = schedule(Form::Plain, 256, Order::Sorted, Packing::Canonical);
    let bytes = |rows| {
        let plan = RoutedPlan::new(&layer, rows, &schedule, Target::hopper(132), None).unwrap();
        plan.memory(&[]).workspace_bytes
    };
    // Each group may fill up its last eight of 16384 tokens, of 256 values of two bytes; tables take some kilobytes.
    let converted = (16384 + 8 * 128) * 256 * 2;
    assert!(
        (converted..converted + (256 << 10)).contains(&bytes(16384)),
        "{}",
        bytes(16384)
    );
    let none = RoutedPlan::new(&layer, 0, &schedule, Target::hopper(132), None).unwrap();
    assert!(none.launches(&crate::plan::fixture::ADDRESSES).is_empty());
}

/// Biases of both weights, and gpt-oss's activation, beside what plain products and plain code make of them.
#[test]
fn biases_and_limits_follow_the_sums() {
    let Some(compiler) = compiler() else { return };
    let (n, _) = SIZES;
    let mut counts = vec![0; EXPERTS];
    (counts[1], counts[9], counts[36]) = (5, 26, 9);
    let problem = |form| layer(TokenFormat::Bf16, form, &counts);
    let mut generator = ChaCha8Rng::seed_from_u64(21);
    let mut biases = || {
        (0..EXPERTS * n)
            .map(|_| generator.random_range(-9.0..9.0_f32))
            .collect::<Vec<_>>()
    };
    let biases = [biases(), biases()];
    let operation = Operation::GroupedGemm(problem(Form::Swiglu));
    let Inputs::GroupedGemm(inputs) = operations::generate(&operation, InputKind::Competition, 6) else {
        panic!("the problem is a GEMM")
    };
    let with = |second: bool| {
        let own = inputs.iter().map(|group| GroupInputs {
            b: if second {
                group.b2.clone().unwrap()
            } else {
                group.b.clone()
            },
            b2: None,
            a: group.a.clone(),
        });
        own.collect::<Vec<_>>()
    };
    let run = |form, inputs: &[GroupInputs], epilogue: Option<[Vec<f32>; 2]>| {
        let schedule = schedule(form, 24, Order::Sorted, Packing::Steps);
        let mut memory = Memory::new();
        let epilogue = epilogue.map(|biases| Epilogue {
            biases: biases.map(|own| memory.allocate(bytemuck::cast_slice(&own).to_vec())),
            bias_format: OutputFormat::F32,
            alpha: 1.702,
            beta: 1.0,
            limit: 7.0,
        });
        let placed = (memory, epilogue);
        let problem = problem(form);
        let mut prepared = Prepared::of_memory(&compiler, &problem, &schedule, inputs, false, placed);
        collect::<f32>(&prepared.run(&problem, inputs, &ends(&counts), 2))
    };
    let [first, second] = [false, true].map(|which| run(Form::Plain, &with(which), None));
    let groups = counts
        .iter()
        .enumerate()
        .flat_map(|(group, &m)| std::iter::repeat_n(group, m));
    let groups: Vec<_> = groups.collect();
    let bias = |which: usize, at: usize| biases[which][groups[at / n] * n + at % n];
    let plain = run(Form::Plain, &with(false), Some(biases.clone()));
    let dual = run(Form::Swiglu, &inputs, Some(biases.clone()));
    assert_eq!(dual.len(), ROWS * n);
    for at in 0..ROWS * n {
        let (sum, other) = (first[at] + bias(0, at), second[at] + bias(1, at));
        assert!((plain[at] - sum).abs() <= 1e-5 * (first[at].abs() + 9.0), "{at}");
        let (gate, up) = (sum.min(7.0), other.clamp(-7.0, 7.0));
        let expected = gate / (1.0 + (-1.702 * gate).exp()) * (up + 1.0);
        assert!(
            (dual[at] - expected).abs() <= 1e-4 * (1.0 + expected.abs()),
            "{at}: {} for {expected}",
            dual[at]
        );
    }
}
