//! The native kernel on the benchmark cases of the competition, whose grids are too large to be interpreted whole: some blocks of
//! the true grid run, with the true operands, and the tiles that they compute are compared with the oracle.
//!
//! Blocks that together compute all parts of a tile's depth are a unit. Of each case those units run that compute the first and
//! the last tile, tiles at the edges of groups, and drawn ones. With a counter (`order: dynamic`) any block computes any tile,
//! so there the sampled tiles stand last in the table, and the counter begins before them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use gauntlet_device::Arch;
use gauntlet_families::{operations, suite};
use gauntlet_problems::resources::fewest_steps;
use gauntlet_problems::{
    Form, GemmShape, GroupedGemm, Inputs, Lookup, Operation, Order, Output, OutputFormat, Schedule,
};
use gauntlet_ptx::Memory;
use gauntlet_task::{Coverage, ErrorMeasures, Expected, Grid, InputKind};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Kernels, compiler, read, run};
use crate::plan::fixture::ADDRESSES;
use crate::plan::native::NativePlan;
use crate::plan::{Group, Plan, Target, Tile};
use crate::shipped::{Shipped, shipped};
use gauntlet_cuda::compiler::Compiler;

const ARCH: Arch = Arch::Sm100a;

/// The number of multiprocessors: close to the 148 of a B200, and chosen so that all parts of a tile go to neighbouring blocks or
/// pairs.
const PROCESSORS: u32 = 144;

/// Blocks, or pairs, that run in the dynamic order.
const DYNAMIC_BLOCKS: u32 = 2;

/// A benchmark case with operands like the competition's.
struct Case {
    name: String,
    gemm: GroupedGemm,
    inputs: Inputs,
}

/// The benchmark cases of a form.
fn cases(form: Form) -> Vec<Case> {
    let name = match form {
        Form::Plain => "group-gemm",
        Form::Swiglu => "dual-gemm",
    };
    let of_case = |case: &gauntlet_task::Case| match gauntlet_tiled_family::operation(&case.sizes) {
        Some(problem @ Operation::GroupedGemm(gemm)) => Case {
            name: format!("{name} {}", case.name),
            gemm: gemm.clone(),
            inputs: operations::generate(problem, InputKind::Competition, 5),
        },
        _ => panic!("{} is no GEMM", case.name),
    };
    suite(name).unwrap().benchmark.iter().map(of_case).collect()
}

/// The outcome of a variant on a case.
#[derive(Debug)]
struct Found {
    blocks: usize,
    grid: u32,
    tiles: usize,
    all_tiles: usize,
    elements: usize,
    took: Duration,
}

impl Found {
    fn print(&self, variant: &str, case: &str) {
        println!(
            "{{\"variant\":{variant:?},\"case\":{case:?},\"blocks\":{},\"of-blocks\":{},\"tiles\":{},\"of-tiles\":{},\
             \"elements\":{},\"seconds\":{:.2}}}",
            self.blocks,
            self.grid,
            self.tiles,
            self.all_tiles,
            self.elements,
            self.took.as_secs_f64()
        );
    }
}

/// The sampled part of a problem under a schedule.
struct Sample {
    /// Indices of the tiles, in the order of the plan.
    tiles: Vec<usize>,
    /// The blocks that run, ascending.
    blocks: Vec<u32>,
}

impl Sample {
    /// Units that compute the first tile and the last, tiles on both sides of borders of groups, a tile with rows or columns
    /// beyond its group, and drawn ones, until there are `units`.
    fn draw(gemm: &GroupedGemm, schedule: &Schedule, plan: &NativePlan, grid: u32, units: usize) -> Self {
        let tiles = plan.tiles();
        let (split, blocks_a_tile) = (schedule.split_k, schedule.cluster.m as u32);
        let clusters = (grid / blocks_a_tile) as usize;
        let unit = |tile: usize| tile * split % clusters / split;
        let border = |index: &usize| tiles[*index].group != tiles[*index - 1].group;
        let borders: Vec<usize> = (1..tiles.len()).filter(border).collect();
        let edge = (0..tiles.len()).find(|index| {
            let [(_, rows), (_, columns)] = extent(gemm, schedule, &tiles[*index]);
            rows < schedule.tile.m || columns < schedule.tile.n
        });
        let mut random = ChaCha8Rng::seed_from_u64(units as u64);
        let mut wanted = vec![0, tiles.len() - 1];
        wanted.extend(edge);
        if let Some(border) = borders.get(random.random_range(0..borders.len().max(1))) {
            wanted.extend([border - 1, *border]);
        }
        let mut chosen = BTreeSet::new();
        let drawn = std::iter::repeat_with(|| random.random_range(0..tiles.len())).take(8 * units);
        for tile in wanted.into_iter().chain(drawn) {
            if chosen.len() < units {
                chosen.insert(if schedule.order == Order::Dynamic {
                    tile
                } else {
                    unit(tile)
                });
            }
        }
        if schedule.order == Order::Dynamic {
            return Self {
                tiles: chosen.into_iter().collect(),
                blocks: (0..DYNAMIC_BLOCKS * blocks_a_tile).collect(),
            };
        }
        let of_unit = |unit: &usize| {
            let first = (unit * split) as u32 * blocks_a_tile;
            first..first + split as u32 * blocks_a_tile
        };
        Self {
            tiles: (0..tiles.len())
                .filter(|tile| chosen.contains(&unit(*tile)))
                .collect(),
            blocks: chosen.iter().flat_map(of_unit).collect(),
        }
    }
}

/// The first row and column of a tile, each with the number that there are.
fn extent(gemm: &GroupedGemm, schedule: &Schedule, tile: &Tile) -> [(usize, usize); 2] {
    let shape = &gemm.groups[tile.group as usize];
    let (rows, columns) = match schedule.swap_ab {
        true => (shape.n, shape.m),
        false => (shape.m, shape.n),
    };
    let (row, column) = (tile.row as usize, tile.column as usize);
    [
        (row, (rows - row).min(schedule.tile.m)),
        (column, (columns - column).min(schedule.tile.n)),
    ]
}

/// Interprets some blocks of a variant on a case; none if the variant does not take the case.
///
/// # Errors
/// If a block faults, or a result is wrong.
fn interpret(compiler: &Compiler, one: &Shipped, case: &Case, units: usize) -> Option<Result<Found, String>> {
    let Operation::GroupedGemm(own) = &one.problem else {
        panic!("{} is no GEMM", one.name);
    };
    let gemm = GroupedGemm {
        output: own.output,
        ..case.gemm.clone()
    };
    let problem = Operation::GroupedGemm(gemm.clone());
    let mut schedule = one.schedule.clone();
    schedule.split_k = schedule.split_k.min(fewest_steps(&schedule, &problem));
    let plan = NativePlan::new(&gemm, &schedule, Target::of_arch(ARCH, PROCESSORS)).ok()?;
    let began = Instant::now();
    let read = read(compiler, &plan, ARCH);
    let said = |text: String| format!("{}, {}: {text}", one.name, case.name);

    let all = plan.tiles().to_vec();
    let grid = plan.launches(&ADDRESSES)[0].grid;
    let sample = Sample::draw(&gemm, &schedule, &plan, grid, units);
    let kernels = Kernels::of_plan(Box::new(plan), &problem, &schedule, ARCH, read);
    let output = match kernels.sampled(&case.inputs, &sample, &schedule) {
        Ok(output) => output,
        Err(fault) => return Some(Err(said(fault))),
    };
    let tiles: Vec<Tile> = sample.tiles.iter().map(|tile| all[*tile]).collect();
    let elements = match compare(&problem, &gemm, &schedule, case, &tiles, &output) {
        Ok(elements) => elements,
        Err(fault) => return Some(Err(said(fault))),
    };
    Some(Ok(Found {
        blocks: sample.blocks.len(),
        grid,
        tiles: tiles.len(),
        all_tiles: all.len(),
        elements,
        took: began.elapsed(),
    }))
}

impl Kernels {
    /// The result of a call of which only sampled blocks run.
    fn sampled(&self, inputs: &Inputs, sample: &Sample, schedule: &Schedule) -> Result<Output, String> {
        let mut memory = Memory::new();
        let operands = self.operands(&mut memory, inputs);
        let mut needed = self.plan.memory(&operands.weights);
        let workspace = memory.allocate_unwritten(needed.workspace_bytes);
        let mut counters = vec![0; needed.counter_bytes];
        if schedule.order == Order::Dynamic {
            assert_eq!(schedule.lookup, Lookup::Precomputed, "the table holds tiles");
            let groups = self.problem.parts().len() * size_of::<Group>();
            let table = &mut needed.tables[groups.next_multiple_of(128)..];
            let skipped = move_last(table, &sample.tiles) * schedule.split_k;
            counters[..4].copy_from_slice(&(skipped as u32).to_le_bytes());
        }
        let counters = memory.allocate(counters);
        let call = self.call(&mut memory, &operands, needed, [workspace, counters]);
        let queued = self.plan.launches(&call);
        let only = Some(sample.blocks.as_slice());
        run(self.plan.as_ref(), &self.kernels, &queued, &mut memory, 3, only)
            .map_err(|fault| fault.to_string())?;
        Ok(Output::new(&self.problem, memory.contents(call.output).unwrap().to_vec()).unwrap())
    }
}

/// Moves these entries of a table of tiles behind all others; returns how many others there are.
fn move_last(table: &mut [u8], last: &[usize]) -> usize {
    let entries: Vec<Vec<u8>> = table
        .chunks_exact(size_of::<Tile>())
        .map(<[u8]>::to_vec)
        .collect();
    let others = (0..entries.len()).filter(|index| !last.contains(index));
    let order: Vec<usize> = others.chain(last.iter().copied()).collect();
    for (to, from) in table.chunks_exact_mut(size_of::<Tile>()).zip(&order) {
        to.copy_from_slice(&entries[*from]);
    }
    entries.len() - last.len()
}

/// Compares tiles with the oracle, and finds whether anything else was written; returns how many elements were compared.
fn compare(
    problem: &Operation,
    gemm: &GroupedGemm,
    schedule: &Schedule,
    case: &Case,
    tiles: &[Tile],
    output: &Output,
) -> Result<usize, String> {
    let Inputs::GroupedGemm(inputs) = &case.inputs else {
        return Err("no operands of a GEMM".to_owned());
    };
    let mut grids: Vec<Vec<Grid>> = gemm.groups.iter().map(|_| Vec::new()).collect();
    for tile in tiles {
        let [rows, columns] =
            extent(gemm, schedule, tile).map(|(first, count)| (first..first + count).collect());
        let (tokens, weights) = if schedule.swap_ab {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let group = tile.group as usize;
        grids[group].push(gauntlet_gemm::grid(gemm.form, &inputs[group], tokens, weights));
    }
    let expected = Expected::new(Coverage::Full, &problem.outputs(), grids);
    // What was not written is NaN; only the sampled tiles are there to be compared.
    let size = gemm.output.bytes();
    let mut filled = output.clone();
    let mut written = 0;
    for element in filled.bytes.chunks_exact_mut(size) {
        match element.iter().all(|byte| *byte == 0xFF) {
            true => element.fill(0),
            false => written += 1,
        }
    }
    if written != expected.elements() {
        let elements = expected.elements();
        return Err(format!(
            "{written} elements were written, and the tiles have {elements}"
        ));
    }
    let found = operations::output(problem, &filled);
    let rules = operations::rules(problem, schedule);
    let errors = ErrorMeasures::between(&found, &expected, rules.tolerance);
    if gemm.form == Form::Plain && errors.unequal > 0 {
        return Err(format!("{} results have other bits", errors.unequal));
    }
    let rightness = operations::sizes(problem)?.rightness(Some(InputKind::Competition));
    if let Some(fault) = rules.fault(&errors, rightness) {
        return Err(fault.to_string());
    }
    Ok(written)
}

/// Interprets every `step`th variant, from the first, on the cases of its form whose place among them `takes` accepts; `units` of
/// each grid. Prints a line of JSON for each. Returns how many tiles of each case were right.
fn interpret_all(step: usize, units: usize, takes: impl Fn(usize) -> bool + Sync) -> BTreeMap<String, usize> {
    let Some(compiler) = compiler() else {
        return BTreeMap::new();
    };
    let all = [cases(Form::Plain), cases(Form::Swiglu)];
    let variants: Vec<_> = shipped(ARCH).into_iter().step_by(step).collect();
    let of_variant = |one: &Shipped| {
        let Operation::GroupedGemm(own) = &one.problem else {
            panic!("{} is no GEMM", one.name);
        };
        let cases = all[usize::from(own.form == Form::Swiglu)].iter().enumerate();
        let tried = cases.filter(|(place, _)| takes(*place)).filter_map(|(_, case)| {
            let found = interpret(&compiler, one, case, units)?;
            if let Ok(found) = &found {
                found.print(&one.name, &case.name);
            }
            Some(found.map(|found| (case.name.clone(), found.tiles)))
        });
        tried.collect::<Vec<_>>()
    };
    let tried: Vec<Result<(String, usize), String>> = variants.par_iter().flat_map_iter(of_variant).collect();
    let (right, wrong): (Vec<_>, Vec<_>) = tried.into_iter().partition(Result::is_ok);
    let wrong: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut counts = BTreeMap::new();
    for (case, tiles) in right.into_iter().flatten() {
        *counts.entry(case).or_insert(0) += tiles;
    }
    counts
}

#[test]
fn some_blocks_of_small_benchmark_cases_are_exact() {
    let counts = interpret_all(9, 1, |place| place == 3);
    assert!(counts.is_empty() || counts.len() == 2, "{counts:?}");
}

#[test]
#[ignore = "minutes: blocks of every shipped variant on every benchmark case"]
fn blocks_of_all_benchmark_cases_are_exact() {
    let counts = interpret_all(1, 6, |_| true);
    assert!(counts.is_empty() || counts.len() == 8, "{counts:?}");
}

#[test]
fn a_table_is_rotated_to_its_sampled_tiles() {
    let tile = |group| Tile {
        group,
        row: 0,
        column: 0,
        steps: 1,
    };
    let mut table = bytemuck::cast_slice(&[0, 1, 2, 3].map(tile)).to_vec();
    assert_eq!(move_last(&mut table, &[1, 2]), 2);
    assert_eq!(table, bytemuck::cast_slice::<Tile, u8>(&[0, 3, 1, 2].map(tile)));
}

#[test]
fn a_wrong_element_and_one_beside_the_sample_are_seen() {
    let gemm = GroupedGemm {
        groups: vec![GemmShape { m: 5, n: 192, k: 256 }],
        form: Form::Plain,
        output: OutputFormat::F32,
        tokens: Default::default(),
    };
    let problem = Operation::GroupedGemm(gemm.clone());
    let case = Case {
        name: "small".to_owned(),
        inputs: operations::generate(&problem, InputKind::Competition, 1),
        gemm: gemm.clone(),
    };
    let schedule = Schedule {
        tile: [128, 128, 256].into(),
        ..Schedule::baseline()
    };
    let second = Tile {
        group: 0,
        row: 0,
        column: 128,
        steps: 1,
    };
    let expected = operations::expected(&problem, &case.inputs, Coverage::Full).unwrap();
    let output = |changed: Option<(usize, f32)>| {
        let mut bytes = vec![0xFF; problem.output_bytes()];
        let mut set =
            |index: usize, value: f32| bytes[4 * index..][..4].copy_from_slice(&value.to_le_bytes());
        let of_tile = expected.values().filter(|(_, index, _)| index % 192 >= 128);
        of_tile.for_each(|(_, index, value)| set(index, value as f32));
        if let Some((index, value)) = changed {
            set(index, value);
        }
        Output::new(&problem, bytes).unwrap()
    };
    let said = |output: &Output| compare(&problem, &gemm, &schedule, &case, &[second], output);
    assert_eq!(said(&output(None)), Ok(5 * 64));
    assert_eq!(
        said(&output(Some((130, 0.5)))),
        Err("1 results have other bits".to_owned())
    );
    let outside = said(&output(Some((127, 0.5)))).unwrap_err();
    assert_eq!(outside, "321 elements were written, and the tiles have 320");
}
