//! Which of the native kernel's variants a schedule asks for, and whether it fits a multiprocessor.

use gauntlet_problems::resources::{
    TENSOR_MEMORY_COLUMNS, accumulator_columns, stage_bytes, tensor_memory_columns, tile_sums,
};
use gauntlet_problems::{
    Cluster, Epilogue, GroupedGemm, Maps, Operation, Order, Packing, Roles, Schedule, Tile,
};

use crate::plan::error::require;
use crate::plan::groups::matrices;
use crate::plan::{PlanError, Source, Target, Variant, tiled};

/// Rows that one instruction multiplies for each block: the M of `tcgen05.mma` is 128 with `.cta_group::1` and 256 with
/// `.cta_group::2`, where also 128 would be possible (PTX ISA, shapes of `.kind::mxf4nvf4`).
const ROWS: usize = 128;
/// Most columns that it multiplies (same source).
const MAX_COLUMNS: usize = 256;
/// Fewest columns that a block can take (PTX ISA, tcgen05.alloc).
const MIN_TENSOR_COLUMNS: usize = 32;
/// Where a tile of columns may begin within a block of 128 rows of scales. A column of tensor memory holds the scales of 32 rows;
/// CUTLASS begins at pairs of them, so the kernel does too.
const COLUMN_STEP: usize = 64;
/// Warps that read sums: each warp reaches 32 lanes of tensor memory.
const STORING_WARPS: usize = 4;
const WARP: usize = 32;
/// Works that the loading warp may be ahead of the warps that store.
const WORKS: usize = 4;
const WORK_BYTES: usize = 32;
const BARRIER_BYTES: usize = 8;
/// Padding of a row of staged results, so that rows lie in different banks.
const STAGED_PADDING: usize = 16;

/// The sizes of a block's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    tile: Tile,
    swapped: bool,
    /// Blocks of a cluster, which compute a tile together.
    blocks: usize,
    matrices: usize,
    /// Tiles whose sums tensor memory holds at once.
    tile_sums: usize,
    tensor_columns: usize,
    shared_bytes: usize,
}

impl Geometry {
    /// The sizes that a schedule asks for.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or it does not fit a multiprocessor.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule, target: Target) -> Result<Self, PlanError> {
        check_words(schedule)?;
        check_columns(gemm, schedule)?;
        let problem = Operation::GroupedGemm(gemm.clone());
        let (columns, of_a_tile) = (
            tensor_memory_columns(schedule, &problem),
            accumulator_columns(schedule, &problem),
        );
        if columns > TENSOR_MEMORY_COLUMNS {
            return Err(PlanError::word(
                "stages",
                schedule.stages,
                format!(
                    "the sums of a tile {} take {of_a_tile} columns of tensor memory and the scales of all stages {}, and \
                     there are {TENSOR_MEMORY_COLUMNS}",
                    schedule.tile,
                    columns - of_a_tile
                ),
                "choose fewer stages, or a smaller tile.n",
            ));
        }
        let tile_sums = tile_sums(schedule, &problem);
        let needed = columns + (tile_sums - 1) * of_a_tile;
        let shared_bytes = shared_bytes(gemm, schedule, tile_sums, target);
        if shared_bytes > target.block_shared_bytes {
            return Err(PlanError::word(
                "stages",
                schedule.stages,
                format!(
                    "with tile {} it takes {shared_bytes} B of shared memory, and a block has {} B",
                    schedule.tile, target.block_shared_bytes
                ),
                "choose fewer stages, a smaller tile.n, or epilogue = direct",
            ));
        }
        Ok(Self {
            tile: schedule.tile,
            swapped: schedule.swap_ab,
            blocks: schedule.cluster.m,
            matrices: matrices(gemm),
            tile_sums,
            tensor_columns: needed.next_power_of_two().max(MIN_TENSOR_COLUMNS),
            shared_bytes,
        })
    }

    /// Whether weights are the rows of a tile.
    pub fn swapped(&self) -> bool {
        self.swapped
    }

    /// Bytes of a row of packed values in a stage.
    pub fn row_bytes(&self) -> usize {
        self.tile.k / 2
    }

    /// Rows of a tensor copy of one side of a tile: each block of a pair brings its half.
    pub fn box_rows(&self, is_row: bool) -> usize {
        let rows = if is_row { self.tile.m } else { self.tile.n };
        rows / self.blocks
    }

    /// Warps that store a tile.
    pub fn storing_warps(&self) -> usize {
        STORING_WARPS * self.blocks
    }

    /// Bytes of the sums of a tile.
    pub fn sum_bytes(&self) -> usize {
        self.tile.m * self.tile.n * self.matrices * size_of::<f32>()
    }

    /// The kernel's variant.
    pub fn variant(&self, gemm: &GroupedGemm, schedule: &Schedule) -> Variant {
        let threads = threads(schedule.roles);
        let own = [
            ("SWAP_AB", usize::from(self.swapped)),
            ("PAIRED", self.blocks - 1),
            ("BLOCK_MAPS", usize::from(schedule.maps == Maps::PerBlock)),
            ("DUAL", self.matrices - 1),
            ("TILE_SUMS", self.tile_sums),
            ("TENSOR_COLUMNS", self.tensor_columns),
        ];
        tiled::variant(
            Source::Native,
            self.tile,
            gemm.output,
            schedule,
            &own,
            threads,
            self.shared_bytes,
        )
    }
}

/// Four warps store; with special roles one more loads and another multiplies.
fn threads(roles: Roles) -> usize {
    match roles {
        Roles::Unified => WARP * STORING_WARPS,
        Roles::Specialised => WARP * (STORING_WARPS + 2),
    }
}

/// The kernel asserts that it counts the same.
fn shared_bytes(gemm: &GroupedGemm, schedule: &Schedule, tile_sums: usize, target: Target) -> usize {
    let problem = Operation::GroupedGemm(gemm.clone());
    let works = match schedule.roles {
        Roles::Unified => 1,
        Roles::Specialised => WORKS,
    };
    // A warp stages its 32 rows of the tile; with swap-AB each column of them is a row of the output.
    let (rows, elements) = match schedule.swap_ab {
        true => (schedule.tile.n, WARP),
        false => (WARP, schedule.tile.n),
    };
    let staging = match schedule.epilogue {
        Epilogue::Direct => 0,
        Epilogue::Staged => STORING_WARPS * rows * (elements * gemm.output.bytes() + STAGED_PADDING),
    };
    let of_a_stage = schedule.cluster.m + 1;
    let barriers = of_a_stage * schedule.stages + 2 * (tile_sums + works);
    schedule.stages * stage_bytes(schedule, &problem, target.arch)
        + staging
        + works * WORK_BYTES
        + barriers * BARRIER_BYTES
        // The address of tensor memory.
        + 8
}

fn check_words(schedule: &Schedule) -> Result<(), PlanError> {
    let pair = schedule.cluster == Cluster { m: 2, n: 1 };
    if !pair {
        require! {
            "cluster": schedule.cluster, Cluster { m: 1, n: 1 },
                "a tile is computed by one block, or by a pair along its rows (2×1)";
        }
    }
    if schedule.tile.k != 128 && schedule.tile.k != 256 {
        return Err(PlanError::word(
            "tile.k",
            schedule.tile.k,
            "rows of a stage have the 64 or 128 bytes within which tensor copies swizzle",
            "choose 128 or 256",
        ));
    }
    if schedule.stages == 0 {
        return Err(PlanError::word(
            "stages",
            0,
            "operands need a slot",
            "choose 1 or more",
        ));
    }
    require! {
        "tile.m": schedule.tile.m, ROWS * schedule.cluster.m,
            "tcgen05.mma multiplies 128 rows for each block of a cluster";
        "packing": schedule.packing, Packing::Canonical,
            "the native kernel reads packed values row by row";
    }
    if !pair {
        return Ok(());
    }
    require! {
        "roles": schedule.roles, Roles::Specialised, "in a pair of blocks only one multiplies";
    }
    if schedule.order == Order::Dynamic {
        return Err(PlanError::word(
            "order",
            schedule.order,
            "both blocks of a pair know the next tile without asking each other",
            "choose static or sorted",
        ));
    }
    Ok(())
}

/// Tiles of columns begin where the scales of a pair of 32 rows do, unless there is one tile in each group.
fn check_columns(gemm: &GroupedGemm, schedule: &Schedule) -> Result<(), PlanError> {
    let (n, step) = (schedule.tile.n, 8 * schedule.cluster.m);
    if n == 0 || !n.is_multiple_of(step) || n > MAX_COLUMNS {
        return Err(PlanError::word(
            "tile.n",
            n,
            format!("tcgen05.mma multiplies {step} to {MAX_COLUMNS} columns, in steps of {step}"),
            format!("choose {}", n.next_multiple_of(step).clamp(step, MAX_COLUMNS)),
        ));
    }
    let sizes = gemm.groups.iter().map(|shape| match schedule.swap_ab {
        true => shape.m,
        false if shape.m == 0 => 0,
        false => shape.n,
    });
    let widest = sizes.max().unwrap_or(0);
    if n.is_multiple_of(COLUMN_STEP) || widest <= n {
        return Ok(());
    }
    Err(PlanError::word(
        "tile.n",
        n,
        format!(
            "scales lie in blocks of 128 rows, in which tiles begin at multiples of {COLUMN_STEP}, and a group with {widest} \
             columns has several tiles"
        ),
        format!("choose {}", n.next_multiple_of(COLUMN_STEP)),
    ))
}
