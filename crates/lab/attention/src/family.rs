//! The attention task's implementation of the judge's interface.

use gauntlet_device::{Arch, Device};
use gauntlet_parameters::{Space, Table, Value};
use gauntlet_problems::resources::{FEW_QUERIES, resident_keys};
use gauntlet_problems::{
    Arithmetic, Attention, Choice, Epilogue, Field, Inputs, Lookup, Operation, Order, Roles, Schedule,
    Sequence, Setup,
};
use gauntlet_simulate::Problem;
use gauntlet_task::{
    Coverage, DEEP, FULL_BELOW, Fault, Grid, InputKind, Rightness, SMALLEST, Sizes, Task, WrittenSizes,
};
use gauntlet_tiled_family::constraints::{Rules, Situation};
use gauntlet_tiled_family::{TiledFamily, TiledSizes, up_to};
use schemars::{Schema, SchemaGenerator};

use crate::{constraints, written};

/// Attention on quantised operands.
pub const ATTENTION: &dyn Task = &AttentionFamily;

/// Attention on quantised operands.
#[derive(Debug)]
pub struct AttentionFamily;

/// Queries of a sequence up to which keys are worth splitting into many parts.
const MAX_SPLIT_QUERIES: usize = 128;

/// The suites that come with the task.
const SUITES: [(&str, &str); 1] = [("attention", include_str!("../suites/attention.toml"))];

impl Task for AttentionFamily {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn summary(&self) -> &'static str {
        "attention on e4m3, int8, f16 or bf16 operands"
    }

    fn parameters(&self) -> &'static Table {
        Schedule::table_of_attention()
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
        names.contains(&"heads")
    }
}

impl TiledFamily for AttentionFamily {
    type Sizes = Attention;

    const TASK: &'static dyn Task = ATTENTION;

    fn sizes_of(operation: &Operation) -> Option<&Attention> {
        match operation {
            Operation::GroupedGemm(_) => None,
            Operation::Attention(attention) => Some(attention),
        }
    }

    fn problem(sizes: &Attention) -> Problem {
        crate::problem(sizes)
    }

    fn rules(situation: &Situation<Self>) -> Rules<Self> {
        constraints::rules(situation.device.arch)
    }

    fn fixed_depth(sizes: &Attention) -> Option<usize> {
        Some(sizes.head_size)
    }

    fn generate(sizes: &Attention, kind: InputKind, seed: u64) -> Inputs {
        Inputs::Attention(crate::generate(sizes, kind, seed))
    }

    fn grids(sizes: &Attention, inputs: &Inputs, coverage: Coverage) -> Option<Vec<Vec<Grid>>> {
        match inputs {
            Inputs::GroupedGemm(_) => None,
            Inputs::Attention(inputs) => Some(crate::grids(sizes, inputs, coverage)),
        }
    }

    fn constant_inputs(_sizes: &Attention) -> Vec<String> {
        Vec::new()
    }

    /// As many rows a head as the budget allows, but no fewer than the fixed places and some drawn ones.
    fn sample(sizes: &Attention, seed: u64) -> Coverage {
        let row_flops: u64 = sizes
            .sequences
            .iter()
            .map(|sequence| 4 * (sequence.keys * sizes.head_size * sizes.heads) as u64)
            .sum();
        Coverage::Sampled {
            rows: ((FULL_BELOW / 2 / row_flops.max(1)) as usize).clamp(8, 256),
            columns: 0,
            seed,
        }
    }

    fn glance(seed: u64) -> Coverage {
        Coverage::Sampled {
            rows: 2,
            columns: 0,
            seed,
        }
    }

    /// The error of an approximate exponential depends on a head's scores and may be positive in one head and negative
    /// in another: if each head has √heads times the allowed bias, the bias of the whole is the allowed one. The
    /// elements of a row share its probabilities, and so their errors.
    fn rightness(sizes: &Attention, _kind: Option<InputKind>) -> Rightness {
        let heads = sizes.sequences.len() * sizes.heads;
        Rightness {
            is_exact: false,
            bias_of_part: (heads as f64).sqrt(),
            dependent: sizes.head_size,
        }
    }

    /// At least stages + 2 steps deep, so that a pipeline wraps around, with tails on every side; and the smallest.
    /// Where all keys are in shared memory together, also one fewer than fit.
    fn edge_sizes(sizes: &Attention, schedule: &Schedule, device: &Device) -> Vec<(&'static str, Attention)> {
        let keys = match resident_keys(schedule, device.arch) {
            Some(held) => held.saturating_sub(1).max(1),
            None => (schedule.stages + 2) * schedule.tile.n * schedule.split_k + 1,
        };
        let sequences = |sequences: &[(usize, usize)]| Attention {
            sequences: sequences
                .iter()
                .map(|&(queries, keys)| Sequence { queries, keys })
                .collect(),
            ..sizes.clone()
        };
        vec![
            (DEEP, sequences(&[(schedule.tile.m + 1, keys)])),
            (SMALLEST, sequences(&[(1, 1), (2, 3)])),
        ]
    }

    /// Tables that depend only on sizes are set up once and looked up at all points: in a plan that is made once they
    /// cost nothing.
    fn tuning_space(sizes: &Attention, device: &Device) -> Space {
        let most = |size: fn(&Sequence) -> usize| sizes.sequences.iter().map(size).max().unwrap_or(1);
        let queries = most(|sequence| sequence.queries);
        let rows_of_few = queries * sizes.heads / sizes.kv_heads.max(1);
        let splits: &[usize] = match device.arch {
            Arch::Cpu => &[1, 2],
            // Few queries have fewer tiles than a GPU has multiprocessors.
            _ if queries <= MAX_SPLIT_QUERIES => &[1, 2, 4, 8, 16],
            _ => &[1, 2, 4],
        };
        let (rows, columns, stages): (&[usize], &[usize], &[usize]) = match device.arch {
            Arch::Cpu => (&[16, 32, 64, 128, 256], &[32, 64, 128, 256], &[1, 2, 3, 4]),
            // The values that the sm_90a kernels support; one stage is useful there too, where all keys are in shared
            // memory together.
            Arch::Sm90a => (&[64, 128, 192, 256], &[64, 128, 256], &[1, 2, 3, 4]),
            // The values that the unified kernel supports.
            Arch::Sm80 | Arch::Sm89 | Arch::Sm100a => (&[64, 128], &[64, 128], &[1, 2, 3, 4, 6, 8]),
        };
        let (mut rows, columns) = (
            up_to(rows, queries),
            up_to(columns, most(|sequence| sequence.keys)),
        );
        if device.arch != Arch::Cpu && rows_of_few <= FEW_QUERIES {
            rows.insert(0, FEW_QUERIES);
        }
        let of_rows = |&m: &usize| columns.iter().map(move |&n| [m, n, sizes.head_size]);
        let tiles: Vec<[usize; 3]> = rows.iter().flat_map(of_rows).collect();
        let clusters = match device.arch {
            Arch::Cpu | Arch::Sm80 | Arch::Sm89 | Arch::Sm100a => vec![[1, 1]],
            // On sm_90a, keys that are all in shared memory are split over the blocks of a cluster.
            Arch::Sm90a => vec![[1, 1], [1, 2], [1, 4]],
        };
        // Only Hopper has kernels with roles and with other orders; see the constraints.
        let (roles, orders) = match device.arch {
            Arch::Sm80 | Arch::Sm89 | Arch::Sm100a => {
                (vec![Roles::Unified.to_value()], vec![Order::PerTile.to_value()])
            }
            Arch::Cpu | Arch::Sm90a => (all::<Roles>(), all::<Order>()),
        };
        let arithmetic = match device.arch {
            Arch::Cpu => vec![Arithmetic::default().to_value()],
            Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Sm100a => all::<Arithmetic>(),
        };
        Space::new()
            .with("tile", tiles)
            .with("stages", stages.to_vec())
            .with("epilogue", all::<Epilogue>())
            .with("roles", roles)
            .with("order", orders)
            .with("lookup", [Lookup::Precomputed.name()])
            .with("setup", [Setup::Once.name()])
            .with("split-k", splits.to_vec())
            .with("cluster", clusters)
            .with("arithmetic", arithmetic)
    }

    /// Every choice, and a few tiles that the CPU kernels take.
    fn covering_space(sizes: &Attention) -> Space {
        let head = sizes.head_size;
        Space::new()
            .with(
                "tile",
                [[64, 64, head], [128, 128, head], [16, 48, head], [5, 16, head]],
            )
            .with("stages", [1_usize, 2, 3])
            .with("epilogue", all::<Epilogue>())
            .with("roles", all::<Roles>())
            .with("order", all::<Order>())
            .with("lookup", all::<Lookup>())
            .with("setup", all::<Setup>())
            .with("split-k", [1_usize, 2, 3])
    }

    /// Over the heads of all sequences, all queries, and the mean keys.
    fn distance(one: &Attention, other: &Attention) -> Option<f64> {
        let alike = one.head_size == other.head_size
            && one.causal == other.causal
            && one.format == other.format
            && one.output == other.output
            && one.heads * other.kv_heads == other.heads * one.kv_heads;
        alike.then(|| gauntlet_tiled_family::largest_ratio(&sizes_of(one), &sizes_of(other)))
    }
}

fn sizes_of(attention: &Attention) -> [f64; 3] {
    let sequences = attention.sequences.len().max(1) as f64;
    let queries: usize = attention.sequences.iter().map(|sequence| sequence.queries).sum();
    let keys: usize = attention.sequences.iter().map(|sequence| sequence.keys).sum();
    [
        sequences * attention.heads as f64,
        queries as f64,
        keys as f64 / sequences,
    ]
}

fn all<T: Choice>() -> Vec<Value> {
    T::ALL.iter().map(|(value, _)| value.to_value()).collect()
}
