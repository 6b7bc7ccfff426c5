//! Which of the rows kernel's variants a schedule asks for, and whether it fits a multiprocessor.

use gauntlet_problems::{Cluster, Epilogue, GroupedGemm, Packing, Roles, Schedule, Tile};

use crate::plan::error::require;
use crate::plan::groups::is_dual;
use crate::plan::{PlanError, Source, Variant, tiled};

/// Rows of a warp group: the M of `wgmma.m64nNk16` (PTX ISA).
const WARP_GROUP_ROWS: usize = 64;
const WARP_GROUP_THREADS: usize = 128;
/// Most rows of a tile: four warp groups multiply, and a fifth may load.
const MAX_ROWS: usize = 256;
/// Most columns of a product: the N of `wgmma.m64nNk16` (PTX ISA).
const MAX_COLUMNS: usize = 256;
/// Bytes of shared memory a block may have at compute capability 9.0: 227 KiB (CUDA C++ Programming Guide, technical
/// specifications).
const SHARED_BYTES: usize = 232_448;
/// Bytes of a row of scales in a slot: the least that a bulk copy brings, for 256 values.
pub(super) const SCALE_ROW: usize = 16;
/// Beside each slot of operands: the description of the work, and two barriers.
const SLOT_BYTES: usize = 32 + 2 * 8;
/// Elements between rows of staged results, so that rows lie in different banks.
const STAGING_PADDING: usize = 8;

/// The sizes of a block's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Geometry {
    /// The schedule's.
    pub tile: Tile,
    /// Weight matrices a tile multiplies with.
    pub matrices: usize,
    shared_bytes: usize,
}

impl Geometry {
    /// The sizes that a schedule asks for.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or it does not fit a multiprocessor.
    pub fn new(gemm: &GroupedGemm, schedule: &Schedule) -> Result<Self, PlanError> {
        let matrices = if is_dual(gemm) { 2 } else { 1 };
        check_words(schedule)?;
        check_columns(schedule, matrices)?;
        let shared_bytes = shared_bytes(gemm, schedule, matrices);
        if shared_bytes > SHARED_BYTES {
            return Err(PlanError::word(
                "stages",
                schedule.stages,
                format!(
                    "with tile {} it takes {shared_bytes} B of shared memory, and a block has {SHARED_BYTES} B",
                    schedule.tile
                ),
                "choose fewer stages, tile.k = 128, a smaller tile.n, or epilogue = direct",
            ));
        }
        Ok(Self {
            tile: schedule.tile,
            matrices,
            shared_bytes,
        })
    }

    /// Bytes of a row of packed values in a slot.
    pub fn packed_row(&self) -> usize {
        self.tile.k / 2
    }

    /// Warps that multiply.
    pub fn multiplying_warps(&self) -> usize {
        4 * self.tile.m / WARP_GROUP_ROWS
    }

    /// Bytes of the sums of a tile.
    pub fn sum_bytes(&self) -> usize {
        self.tile.m * self.tile.n * self.matrices * size_of::<f32>()
    }

    /// The kernel's variant.
    pub fn variant(&self, gemm: &GroupedGemm, schedule: &Schedule) -> Variant {
        let threads = threads(schedule);
        let own = [("SWAP_AB", 0), ("PAIRED", 0), ("DUAL", self.matrices - 1)];
        tiled::variant(
            Source::Rows,
            self.tile,
            gemm.output,
            schedule,
            &own,
            threads,
            self.shared_bytes,
        )
    }
}

/// A warp group for each 64 rows, and with special roles one more: registers can only be reassigned between whole
/// groups.
fn threads(schedule: &Schedule) -> usize {
    let groups = schedule.tile.m / WARP_GROUP_ROWS + usize::from(schedule.roles == Roles::Specialised);
    groups * WARP_GROUP_THREADS
}

/// The kernel asserts that it counts the same.
fn shared_bytes(gemm: &GroupedGemm, schedule: &Schedule, matrices: usize) -> usize {
    let Tile { m, n, k } = schedule.tile;
    // One slot is filled while products read the other; a single stage overlaps nothing.
    let converted = schedule.stages.min(2) * matrices * n * k * 2;
    let packed = schedule.stages * (matrices * n + m) * (k / 2 + SCALE_ROW);
    let staging = match schedule.epilogue {
        Epilogue::Direct => 0,
        Epilogue::Staged => m * (n + STAGING_PADDING) * gemm.output.bytes(),
    };
    converted + packed + staging + schedule.stages * SLOT_BYTES
}

/// Most columns, both matrices' counted, whose sums fit in the registers: the widest of 32, 64, 96 … that ptxas 13.0
/// compiles without a spill and without serialised products, for each order, epilogue and number of parts.
fn most_columns(schedule: &Schedule) -> usize {
    match (schedule.roles, schedule.tile.m, schedule.tile.k) {
        (_, 64 | 128, 128) => MAX_COLUMNS,
        (_, 64 | 128, _) => 128,
        (_, 192, 128) => 128,
        (Roles::Specialised, 192, _) => 64,
        (Roles::Unified, 256, 128) => 64,
        (Roles::Specialised, 256, 128) => 32,
        _ => 0,
    }
}

fn check_words(schedule: &Schedule) -> Result<(), PlanError> {
    let Tile { m, k, .. } = schedule.tile;
    let (cluster, alone) = (schedule.cluster, Cluster { m: 1, n: 1 });
    if m == 0 || !m.is_multiple_of(WARP_GROUP_ROWS) || m > MAX_ROWS {
        return Err(PlanError::word(
            "tile.m",
            m,
            "without swap-ab, one to four warp groups hold 64 tokens each",
            format!(
                "choose {}",
                m.next_multiple_of(WARP_GROUP_ROWS)
                    .clamp(WARP_GROUP_ROWS, MAX_ROWS)
            ),
        ));
    }
    if k != 128 && k != 256 {
        return Err(PlanError::word(
            "tile.k",
            k,
            "rows lie in memory padded to 256 values, and their bytes are converted 128 values at a time",
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
        "packing": schedule.packing, Packing::Canonical,
            "without swap-ab, weights come to shared memory row by row";
        "cluster": cluster, alone, "without swap-ab, blocks share no loads";
    }
    Ok(())
}

fn check_columns(schedule: &Schedule, matrices: usize) -> Result<(), PlanError> {
    let (n, most) = (schedule.tile.n, most_columns(schedule) / matrices);
    if most == 0 {
        return Err(PlanError::word(
            "tile.k",
            schedule.tile.k,
            format!(
                "the registers do not hold tokens of that depth with {} roles and a tile of {} rows",
                schedule.roles, schedule.tile.m
            ),
            "choose 128",
        ));
    }
    if n > 0 && n.is_multiple_of(8) && n <= most {
        return Ok(());
    }
    Err(PlanError::word(
        "tile.n",
        n,
        format!(
            "weights are the columns of wgmma, in steps of 8, and the registers hold the sums of at most {most} with \
             {} roles and a tile of {} rows, {} deep",
            schedule.roles, schedule.tile.m, schedule.tile.k
        ),
        format!("choose {}", n.next_multiple_of(8).clamp(8, most)),
    ))
}
