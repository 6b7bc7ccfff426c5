//! What the plans have in common of kernels whose blocks each compute one tile of any group at a time
//! (`kernels/schedule.cuh`): tiles shared out to blocks, tables, workspace, and the parameter of a launch.

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::{GroupedGemm, Lookup, Order, OutputFormat, Schedule};

use super::groups::{self, check_sizes, check_tiles, depth, within};
use super::tiles::{self, Tile, Tiles};
use super::variant::{most_registers, output_define};
use super::{Addresses, Launch, Map, Memory, Pass, PlanError, ScaleLayout, Source, Variant, Weights};

/// Deepest K: the bytes of a tile's rows are counted in 32 bits.
const MAX_DEPTH: usize = 1 << 24;

/// The tiles of a problem and how blocks share them out.
#[derive(Debug)]
pub(super) struct Tiled {
    /// The problem.
    pub gemm: GroupedGemm,
    tiles: Tiles,
    split_k: usize,
    blocks: usize,
    /// Blocks of a cluster, which compute a tile together.
    cluster: usize,
}

/// The kernels' launch parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Parameter {
    /// Packed tokens of all groups.
    pub tokens: u64,
    /// Their scales.
    pub token_scales: u64,
    /// The result.
    pub output: u64,
    /// The table of groups.
    pub groups: u64,
    /// The table of tiles, or of their numbers.
    pub order: u64,
    /// Tensor maps.
    pub maps: u64,
    /// Sums of parts of a split depth.
    pub workspace: u64,
    /// The order's counter, then those of split tiles.
    pub counters: u64,
    /// How many tiles there are.
    pub tiles: u32,
    /// Fills the struct up.
    pub reserved: u32,
}

impl Tiled {
    /// Shares the tiles of a valid problem out to the blocks of a device with `processors` multiprocessors; a tile is computed by
    /// as many as the cluster has along its rows.
    ///
    /// # Errors
    /// If a size exceeds the kernels' integer ranges, or a part of the split depth would be empty.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, processors: u32) -> Result<Self, PlanError> {
        check_sizes(gemm)?;
        for (index, shape) in gemm.groups.iter().enumerate() {
            within(format!("K of group {index}"), depth(shape.k), MAX_DEPTH)?;
        }
        check_parts(gemm, schedule)?;
        let count = tiles::count(gemm, schedule);
        check_tiles(count.saturating_mul(schedule.split_k))?;
        let work = count * schedule.split_k;
        let cluster = schedule.cluster.m;
        let at_once = (processors as usize / cluster).max(1);
        Ok(Self {
            gemm: gemm.clone(),
            tiles: Tiles::new(gemm, schedule),
            split_k: schedule.split_k,
            blocks: cluster
                * match schedule.order {
                    Order::PerTile => work,
                    Order::Static | Order::Sorted | Order::Dynamic => work.min(at_once),
                },
            cluster,
        })
    }

    /// The tiles in the order in which blocks take them; each is repeated for every part of its depth.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles.list
    }

    /// Blocks of the launch.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The memory of a kernel that keeps `sum_bytes` bytes of sums for a part of a split tile, in which `warps` warps arrive.
    pub fn memory(
        &self,
        scales: ScaleLayout,
        weights: &[Weights],
        maps: Vec<Map>,
        (sum_bytes, warps): (usize, usize),
    ) -> Memory {
        let order = match self.tiles.lookup {
            Lookup::Precomputed => bytemuck::cast_slice(&self.tiles.list),
            Lookup::Linear => bytemuck::cast_slice(&self.tiles.numbers),
        };
        let tiles = self.tiles.list.len();
        let (parts, split_tiles) = match self.split_k {
            1 => (0, 0),
            parts => (parts * tiles, tiles),
        };
        Memory {
            tables: groups::table_and(&self.gemm, scales, weights, order),
            maps,
            workspace_bytes: parts * sum_bytes,
            // The first is the order's; then one for each warp of a split tile.
            counter_bytes: 4 * (1 + split_tiles * warps),
        }
    }

    /// The launch of a call; none if there are no tiles.
    pub fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        if self.blocks == 0 {
            return Vec::new();
        }
        let parameter = Parameter {
            tokens: addresses.operands[0],
            token_scales: addresses.scales[0],
            output: addresses.output,
            groups: addresses.tables,
            order: addresses.tables + groups::table_end(&self.gemm) as u64,
            maps: addresses.maps,
            workspace: addresses.workspace,
            counters: addresses.counters,
            tiles: self.tiles.list.len() as u32,
            reserved: 0,
        };
        vec![Launch {
            pass: Pass::Main,
            grid: self.blocks as u32,
            cluster: self.cluster as u32,
            parameter: bytemuck::bytes_of(&parameter).to_vec(),
            mapped: None,
        }]
    }
}

/// The variant of a kernel for blocks of `threads` threads. Definitions are those that all kernels of tiles have, by the tile,
/// the result and the schedule, and the kernel's own.
pub(super) fn variant(
    source: Source,
    tile: gauntlet_problems::Tile,
    output: OutputFormat,
    schedule: &Schedule,
    own: &[(&'static str, usize)],
    threads: usize,
    shared_bytes: usize,
) -> Variant {
    let common = [
        ("TILE_M", tile.m),
        ("TILE_N", tile.n),
        ("TILE_K", tile.k),
        ("STAGES", schedule.stages),
        ("SPLIT_K", schedule.split_k),
        ("OUTPUT", output_define(output)),
        ("SHARED_BYTES", shared_bytes),
    ];
    // The kernel's enumerators are named as the variants here.
    let names = [
        ("EPILOGUE", format!("{:?}", schedule.epilogue)),
        ("ROLES", format!("{:?}", schedule.roles)),
        ("ORDER", format!("{:?}", schedule.order)),
        ("LOOKUP", format!("{:?}", schedule.lookup)),
    ];
    let numbers = common
        .iter()
        .chain(own)
        .map(|(name, value)| (*name, value.to_string()));
    Variant {
        source,
        defines: numbers.chain(names).collect(),
        threads: threads as u32,
        shared_bytes: shared_bytes as u32,
        registers: most_registers(threads),
    }
}

/// Whether every part of every tile has a step.
fn check_parts(gemm: &GroupedGemm, schedule: &Schedule) -> Result<(), PlanError> {
    let steps = gemm
        .groups
        .iter()
        .filter(|shape| shape.m > 0)
        .map(|shape| depth(shape.k) / schedule.tile.k);
    let fewest = steps.min().unwrap_or(usize::MAX);
    if (1..=fewest).contains(&schedule.split_k) {
        return Ok(());
    }
    Err(PlanError::word(
        "split-k",
        schedule.split_k,
        format!(
            "each part has a step at least, and the shortest group has {fewest} of {}",
            schedule.tile.k
        ),
        format!("choose 1 to {fewest}"),
    ))
}
