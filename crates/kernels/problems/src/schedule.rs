//! The schedule of a tiled kernel: the parameters of grouped GEMM and attention, declared once.
//!
//! Each row of the table below becomes a field of [`Schedule`], a parameter of [`Schedule::table`] and of the tables of
//! the families that take it, and is read, written, compared and described from there. A new parameter is a new row.

use std::fmt;
use std::sync::LazyLock;

use gauntlet_parameters::{Parameter, ParameterError, Parameters, Shown, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::field::Field;
use crate::words::{
    Arithmetic, Cluster, Epilogue, Exponential, Layout, Lookup, Maps, Order, Packing, Roles, Scores, Setup,
    Tile, Values,
};

/// Which families take a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Grouped GEMM and attention.
    Both,
    /// Grouped GEMM only.
    Gemm,
    /// Attention only.
    Attention,
}

macro_rules! schedule {
    ($(
        $(#[doc = $documentation:literal])+
        $field:ident: $type:ty = $default:expr, $name:literal, $takes:ident, $shown:ident,
            gpu: $gpu:literal, cpu: $cpu:literal;
    )+) => {
        /// How a tiled kernel computes. Every parameter has a meaning on every device; a device refuses what it cannot do
        /// by its constraints and never ignores it.
        ///
        /// Read from TOML, every parameter is optional and defaults to the [baseline](Schedule::baseline)'s.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "Parameters", into = "Parameters")]
        pub struct Schedule {
            $($(#[doc = $documentation])+ pub $field: $type,)+
        }

        impl Schedule {
            /// The schedule that the recorded tournament began with: one tile a block, one stage, nothing prepared.
            pub fn baseline() -> Self {
                Self { $($field: $default,)+ }
            }

            /// This schedule with the values of the parameters that `change` names.
            ///
            /// # Errors
            /// Names a parameter that is unknown or has a value that is not accepted.
            pub fn changed(&self, change: &Parameters) -> Result<Self, ParameterError> {
                Self::table().check(change)?;
                let mut schedule = self.clone();
                $(
                    if let Some(value) = change.get($name).and_then(Field::from_value) {
                        schedule.$field = value;
                    }
                )+
                Ok(schedule)
            }

            /// Every parameter with its value.
            pub fn parameters(&self) -> Parameters {
                let mut parameters = Parameters::new();
                $(parameters.set($name, self.$field.to_value());)+
                parameters
            }
        }

        fn rows() -> Vec<(Takes, Parameter)> {
            let baseline = Schedule::baseline();
            vec![$((
                Takes::$takes,
                Parameter::new($name, <$type as Field>::domain(), baseline.$field.to_value(), $gpu)
                    .on_cpu($cpu)
                    .shown(Shown::$shown),
            ),)+]
        }
    };
}

schedule! {
    /// The block of output computed as one unit of work, and the depth loaded at a time.
    tile: Tile = Tile { m: 128, n: 128, k: 256 }, "tile", Both, Named,
        gpu: "rows, columns and depth one block computes; attention: queries, keys a step, head size",
        cpu: "the same as cache blocks; the depth is that of one dequantised panel";
    /// Operand buffers in flight: 1 loads, then multiplies; more load ahead.
    stages: usize = 1, "stages", Both, Named,
        gpu: "operand buffers in shared memory: 1 loads, then multiplies; more load ahead",
        cpu: "dequantised panels prepared ahead";
    /// How results leave the multiplier.
    epilogue: Epilogue = Epilogue::Direct, "epilogue", Both, Value,
        gpu: "direct: accumulators to memory; staged: through shared memory, then whole rows at once",
        cpu: "direct: stores from registers; staged: through a buffer, then streaming stores";
    /// Which threads load and which multiply.
    roles: Roles = Roles::Unified, "roles", Both, Value,
        gpu: "specialised: some warps only load, the others only multiply",
        cpu: "specialised: some threads only dequantise panels, the others only multiply";
    /// In which order tiles are computed, and how they are shared out.
    order: Order = Order::PerTile, "order", Both, Value,
        gpu: "per-tile: a block each; static, sorted, dynamic: persistent blocks with a fixed share, a fixed share of \
              tiles by falling cost, or a counter",
        cpu: "per-tile: a task each; static, sorted, dynamic: as on a GPU, with threads for blocks";
    /// How a tile finds its group.
    lookup: Lookup = Lookup::Linear, "lookup", Both, Value,
        gpu: "linear: each tile walks the groups; precomputed: a table",
        cpu: "linear: each tile walks the groups; precomputed: a table";
    /// When tables and buffers that depend only on sizes are made.
    setup: Setup = Setup::PerCall, "setup", Both, Value,
        gpu: "per-call: tables, tensor maps and buffers made in every call; once: when the sizes are known",
        cpu: "per-call: tables and buffers made in every call; once: when the sizes are known";
    /// Exchange the operands: the weights take the row side (`tile.m`), the tokens the column side (`tile.n`).
    swap_ab: bool = false, "swap-ab", Both, Flag,
        gpu: "weights take the row side of the tile, tokens the column side, which may be narrow",
        cpu: "weights take the row side of the tile, tokens the column side";
    /// Parts into which the summed dimension (K; keys for attention) is split, reduced in a fixed order. 1 = none.
    split_k: usize = 1, "split-k", Both, Changed,
        gpu: "blocks that share one tile's depth (of attention its keys); partial sums added in a fixed order",
        cpu: "tasks that share one tile's depth; partial sums added in a fixed order";
    /// Blocks that share loads.
    cluster: Cluster = Cluster { m: 1, n: 1 }, "cluster", Both, Changed,
        gpu: "blocks along rows and columns that share loads",
        cpu: "only 1×1";
    /// How a GEMM's weights are laid out in memory.
    packing: Packing = Packing::Canonical, "packing", Gemm, Changed,
        gpu: "weights in memory: canonical: row by row; fragments: repacked once, what a thread multiplies together and \
              its bits in the order in which they are converted; steps: repacked once for tokens of 16 bits, which are then \
              multiplied as they lie in memory",
        cpu: "only canonical";
    /// Where the tensor maps of a GEMM's groups are made.
    maps: Maps = Maps::Prebuilt, "maps", Gemm, Changed,
        gpu: "tensor maps of a GEMM's groups: prebuilt: by the host, for every group; per-block: by each block, when it goes on \
              to another group",
        cpu: "only prebuilt";
    /// Where attention keeps scores and probabilities between its two products.
    scores: Scores = Scores::Registers, "scores", Attention, Changed,
        gpu: "where attention keeps scores between its products: registers; in-place: shared memory, where the \
              probabilities overwrite them; separate: shared memory, with a buffer for the probabilities",
        cpu: "only registers";
    /// What multiplies attention's probabilities by its values.
    values: Values = Values::Matrix, "values", Attention, Changed,
        gpu: "what multiplies attention's probabilities by its values: matrix: the matrix unit; scalar: fused \
              multiply-adds",
        cpu: "only matrix";
    /// How attention's rows are laid out in shared memory.
    layout: Layout = Layout::Swizzled, "layout", Attention, Changed,
        gpu: "attention's rows in shared memory: swizzled: 16-byte pieces exchanged so that lanes hit different \
              banks; plain: as in global memory",
        cpu: "only swizzled";
    /// How attention computes exponentials.
    exponential: Exponential = Exponential::Hardware, "exponential", Attention, Changed,
        gpu: "attention's exponentials: hardware: the special-function unit; polynomial: some by fused \
              multiply-adds; table: 32 powers, one a lane, with linear interpolation",
        cpu: "only hardware";
    /// In which number format attention's operands are multiplied.
    arithmetic: Arithmetic = Arithmetic::Fp16, "arithmetic", Attention, Changed,
        gpu: "what attention multiplies: fp16: e4m3 converted exactly, bf16 as it is; fp8: e4m3 as it is, and \
              probabilities rounded to e4m3 unless only scores are multiplied so",
        cpu: "only fp16";
}

fn table_of(owner: &'static str, takes: impl Fn(Takes) -> bool) -> Table {
    let rows = rows().into_iter().filter(|(who, _)| takes(*who));
    Table::new(owner, rows.map(|(_, parameter)| parameter).collect())
}

static ALL: LazyLock<Table> = LazyLock::new(|| table_of("a schedule", |_| true));
static GEMM: LazyLock<Table> = LazyLock::new(|| table_of("grouped GEMM", |takes| takes != Takes::Attention));
static ATTENTION: LazyLock<Table> = LazyLock::new(|| table_of("attention", |takes| takes != Takes::Gemm));

impl Schedule {
    /// Every parameter.
    pub fn table() -> &'static Table {
        &ALL
    }

    /// The parameters that grouped GEMM takes.
    pub fn table_of_gemm() -> &'static Table {
        &GEMM
    }

    /// The parameters that attention takes.
    pub fn table_of_attention() -> &'static Table {
        &ATTENTION
    }

    /// The schedule of these parameters; those that are not named have the baseline's values.
    ///
    /// # Errors
    /// As [`changed`](Self::changed).
    pub fn of(parameters: &Parameters) -> Result<Self, ParameterError> {
        Self::baseline().changed(parameters)
    }

    /// The schedule among parameters that several tasks share: those of other tasks are left out.
    ///
    /// # Errors
    /// Names a parameter with a value that is not accepted.
    pub fn among(parameters: &Parameters) -> Result<Self, ParameterError> {
        Self::of(&Self::table().restrict(parameters))
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self::baseline()
    }
}

impl TryFrom<Parameters> for Schedule {
    type Error = ParameterError;

    fn try_from(parameters: Parameters) -> Result<Self, ParameterError> {
        Self::of(&parameters)
    }
}

/// Parameters that only one family takes are left out where they have their defaults, as records of the first edition do.
impl From<Schedule> for Parameters {
    fn from(schedule: Schedule) -> Self {
        let all = schedule.parameters();
        let written = rows().into_iter().filter(|(takes, parameter)| {
            *takes == Takes::Both || all.get(&parameter.name) != Some(&parameter.default)
        });
        written
            .filter_map(|(_, parameter)| {
                Some((parameter.name.to_string(), all.get(&parameter.name)?.clone()))
            })
            .collect()
    }
}

/// One line. Swap-AB, split-K, cluster and the parameters of one family appear only where they differ from the
/// [baseline](Schedule::baseline).
impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&Self::table().describe(&self.parameters()))
    }
}
