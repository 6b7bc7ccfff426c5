//! The grouped GEMM task's implementation of the judge's interface.

use gauntlet_device::{Arch, Device};
use gauntlet_parameters::{Space, Table, Value};
use gauntlet_problems::resources::kernel_arch;
use gauntlet_problems::{
    Choice, Epilogue, Form, GemmShape, GroupedGemm, Inputs, Lookup, Maps, Operation, Order, Packing, Roles,
    Schedule, Setup,
};
use gauntlet_simulate::Problem;
use gauntlet_task::{Coverage, DEEP, Fault, Grid, InputKind, Rightness, SMALLEST, Sizes, Task, WrittenSizes};
use gauntlet_tiled_family::constraints::{Rules, Situation};
use gauntlet_tiled_family::{TiledFamily, TiledSizes};
use schemars::{Schema, SchemaGenerator};

use crate::{constraints, written};

/// Grouped GEMM on NVFP4 operands.
pub const GEMM: &dyn Task = &GemmFamily;

/// Grouped GEMM on NVFP4 operands.
#[derive(Debug)]
pub struct GemmFamily;

/// The suites that come with the task.
const SUITES: [(&str, &str); 2] = [
    ("group-gemm", include_str!("../suites/group-gemm.toml")),
    ("dual-gemm", include_str!("../suites/dual-gemm.toml")),
];

impl Task for GemmFamily {
    fn name(&self) -> &'static str {
        "grouped-gemm"
    }

    fn summary(&self) -> &'static str {
        "grouped GEMM on NVFP4 operands, plain or dual with SwiGLU"
    }

    fn parameters(&self) -> &'static Table {
        Schedule::table_of_gemm()
    }

    fn suites(&self) -> &'static [(&'static str, &'static str)] {
        &SUITES
    }

    fn read(&self, written: &WrittenSizes) -> Result<Sizes, Fault> {
        let sizes = written::read(written)?;
        TiledSizes::<Self>::checked(sizes).map_err(|message| written.fault(message))
    }

    fn written_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        written::schema(generator)
    }

    fn open(&self, record: &serde_json::Value) -> Result<Sizes, String> {
        TiledSizes::<Self>::recorded(record)
    }

    fn claims(&self, names: &[&str]) -> bool {
        names.iter().any(|name| ["m", "n", "k", "g"].contains(name))
    }

    fn inline_table(&self, words: &[(String, String)]) -> Result<String, String> {
        written::from_words(words)
    }
}

impl TiledFamily for GemmFamily {
    type Sizes = GroupedGemm;

    const TASK: &'static dyn Task = GEMM;

    fn sizes_of(operation: &Operation) -> Option<&GroupedGemm> {
        match operation {
            Operation::GroupedGemm(gemm) => Some(gemm),
            Operation::Attention(_) => None,
        }
    }

    fn problem(sizes: &GroupedGemm) -> Problem {
        crate::problem(sizes)
    }

    fn rules(situation: &Situation<Self>) -> Rules<Self> {
        constraints::rules(situation)
    }

    fn generate(sizes: &GroupedGemm, kind: InputKind, seed: u64) -> Inputs {
        Inputs::GroupedGemm(crate::generate(sizes, kind, seed))
    }

    fn grids(sizes: &GroupedGemm, inputs: &Inputs, coverage: Coverage) -> Option<Vec<Vec<Grid>>> {
        match inputs {
            Inputs::GroupedGemm(groups) => Some(crate::grids(sizes, groups, coverage)),
            Inputs::Attention(_) => None,
        }
    }

    /// Weights.
    fn constant_inputs(sizes: &GroupedGemm) -> Vec<String> {
        let inputs = Operation::GroupedGemm(sizes.clone()).inputs().into_iter();
        let is_weights = |name: &String| name.contains(".b.") || name.contains(".b2.");
        inputs.map(|spec| spec.name).filter(is_weights).collect()
    }

    fn sample(_sizes: &GroupedGemm, seed: u64) -> Coverage {
        Coverage::Sampled {
            rows: 8,
            columns: 32,
            seed,
        }
    }

    fn glance(seed: u64) -> Coverage {
        Coverage::Sampled {
            rows: 2,
            columns: 8,
            seed,
        }
    }

    /// The competition's values are few and even enough that every sum of their products is exact in f32.
    fn rightness(sizes: &GroupedGemm, kind: Option<InputKind>) -> Rightness {
        Rightness {
            is_exact: kind == Some(InputKind::Competition) && sizes.form == Form::Plain,
            ..Rightness::default()
        }
    }

    /// At least stages + 2 steps deep, so that a pipeline wraps around, with tails on every side; and the smallest.
    fn edge_sizes(
        sizes: &GroupedGemm,
        schedule: &Schedule,
        _device: &Device,
    ) -> Vec<(&'static str, GroupedGemm)> {
        let deep = schedule.stages + 2;
        let k = (deep * schedule.tile.k * schedule.split_k).next_multiple_of(16) + 16;
        // Each part of a split depth must have a step; the schedule refuses smaller sizes.
        let least = schedule.split_k.saturating_sub(1) * schedule.tile.k;
        let shapes = |shapes: &[(usize, usize, usize)]| GroupedGemm {
            groups: shapes.iter().map(|&(m, n, k)| GemmShape { m, n, k }).collect(),
            ..sizes.clone()
        };
        let tails = (schedule.tile.m + 1, schedule.tile.n + 1, k);
        vec![
            (DEEP, shapes(&[tails, (3, 7, least + 16)])),
            (
                SMALLEST,
                shapes(&[(1, 1, least + 16), (0, 5, least + 32), (1, 2, least + 48)]),
            ),
        ]
    }

    /// Tables that depend only on sizes are set up once and looked up at all points: in a plan that is made once they
    /// cost nothing. Weights are not repacked: the caller has them in the canonical layout.
    fn tuning_space(sizes: &GroupedGemm, device: &Device) -> Space {
        let most = |size: fn(&GemmShape) -> usize| sizes.groups.iter().map(size).max().unwrap_or(1);
        // With swap-AB tokens take the place of weights, so either side may have either size.
        let widest = most(|shape| shape.m).max(most(|shape| shape.n));
        let on_cpu = device.arch == Arch::Cpu;
        let rows: &[usize] = if on_cpu {
            &[16, 32, 64, 128, 256]
        } else {
            &[64, 128, 256]
        };
        let columns: &[usize] = if on_cpu {
            &[32, 64, 128, 256]
        } else {
            &[16, 32, 64, 128, 256]
        };
        let depths: &[usize] = if on_cpu {
            &[64, 128, 256, 512, 1024]
        } else {
            &[128, 256]
        };
        let operation = Operation::GroupedGemm(sizes.clone());
        let clusters: &[[usize; 2]] = match kernel_arch(&operation, device.arch) {
            Arch::Cpu | Arch::Sm80 | Arch::Sm89 => &[[1, 1]],
            Arch::Sm90a | Arch::Sm100a => &[[1, 1], [2, 1]],
        };
        let stages: &[usize] = if on_cpu { &[1, 2, 3, 4] } else { &[2, 3, 4, 6, 8] };
        Space::new()
            .with(
                "tile",
                tiles(&[
                    gauntlet_tiled_family::up_to(rows, widest),
                    gauntlet_tiled_family::up_to(columns, widest),
                    gauntlet_tiled_family::up_to(depths, most(|shape| shape.k)),
                ]),
            )
            .with("stages", stages.to_vec())
            .with("epilogue", all::<Epilogue>())
            .with("roles", all::<Roles>())
            .with("order", all::<Order>())
            .with("lookup", [Lookup::Precomputed.name()])
            .with("setup", [Setup::Once.name()])
            .with("swap-ab", [false, true])
            .with("split-k", if on_cpu { vec![1_usize, 2] } else { vec![1, 2, 4] })
            .with("cluster", clusters.to_vec())
            .with("packing", [Packing::default().name()])
            .with("maps", [Maps::default().name()])
    }

    /// Every choice, and a few numbers that the CPU kernels take: the usual tile, narrower and wider ones, a lopsided one,
    /// and one with more rows than columns, neither a power of two.
    fn covering_space(_sizes: &GroupedGemm) -> Space {
        let tiles = [
            [128, 128, 256],
            [64, 64, 256],
            [32, 128, 64],
            [16, 48, 16],
            [5, 16, 128],
            [96, 80, 48],
        ];
        Space::new()
            .with("tile", tiles)
            .with("stages", [1_usize, 2, 3])
            .with("epilogue", all::<Epilogue>())
            .with("roles", all::<Roles>())
            .with("order", all::<Order>())
            .with("lookup", all::<Lookup>())
            .with("setup", all::<Setup>())
            .with("swap-ab", [false, true])
            .with("split-k", [1_usize, 2, 3])
    }

    /// Over the groups, all rows, and the mean columns and depth.
    fn distance(one: &GroupedGemm, other: &GroupedGemm) -> Option<f64> {
        let alike = one.form == other.form && one.output == other.output && one.tokens == other.tokens;
        alike.then(|| gauntlet_tiled_family::largest_ratio(&sizes_of(one), &sizes_of(other)))
    }
}

fn sizes_of(gemm: &GroupedGemm) -> [f64; 4] {
    let groups = gemm.groups.len().max(1) as f64;
    let sum = |size: fn(&GemmShape) -> usize| gemm.groups.iter().map(size).sum::<usize>() as f64;
    [
        groups,
        sum(|shape| shape.m),
        sum(|shape| shape.n) / groups,
        sum(|shape| shape.k) / groups,
    ]
}

/// Every combination of rows, columns and depths.
fn tiles([rows, columns, depths]: &[Vec<usize>; 3]) -> Vec<[usize; 3]> {
    let of_rows = |&m: &usize| {
        let of_columns = move |&n: &usize| depths.iter().map(move |&k| [m, n, k]);
        columns.iter().flat_map(of_columns)
    };
    rows.iter().flat_map(of_rows).collect()
}

fn all<T: Choice>() -> Vec<Value> {
    T::ALL.iter().map(|(value, _)| value.to_value()).collect()
}
