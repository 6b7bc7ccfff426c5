//! Which schedule is fastest for a problem, of those tried on an H200; on GPUs before Hopper, which one to begin with.

use gauntlet_device::Arch;
use gauntlet_problems::resources::{FEW_QUERIES, block_bytes, head_sets, warp_groups};
use gauntlet_problems::{Arithmetic, Cluster, Lookup, Order, Roles, Schedule, Setup, Tile};
use gauntlet_problems::{Attention, AttentionFormat, Operation};

use super::HEAD_SIZES;
use crate::plan::Target;

/// Queries of the resident kernel's tile.
const RESIDENT_QUERIES: usize = 64;
/// Queries of the specialised kernel's tile when the problem has few queries.
const NARROW_QUERIES: usize = 128;
/// Blocks that share the resident kernel's keys.
const SPLIT: usize = 2;
/// Keys of a warp group of the resident kernel; a block has two warp groups.
const RESIDENT_KEYS: [usize; 2] = [64, 128];
/// The number of waves from which on the largest tiles are faster than tiles of 128 queries. With fewer waves, too many
/// multiprocessors would be idle.
const WAVES_FOR_WIDE: usize = 3;

/// Keys of a step of the unified kernel.
pub(super) const STEP_KEYS: usize = 64;
/// Stages of its ring: as many of these as leave room for two blocks on a multiprocessor.
const STAGES: [usize; 3] = [4, 3, 2];
/// Steps of a part at least: fewer take as long, because a block has this many under way at a time.
pub(super) const PART_STEPS: usize = 2;
/// Parts at most, of tiles of 16 queries and of larger ones: the block that arrives last merges them, which takes longer with more
/// parts and with more rows.
pub(super) const MAX_PARTS: [usize; 2] = [32, 8];
/// Keys of a step of tiles of 16 queries on Hopper, and parts of their keys at most.
const DECODED_KEYS: usize = 128;
const MAX_DECODED_PARTS: usize = 33;
/// Steps of a part of the specialised kernel at least: where heads are packed, which has few queries, and else, where there is more to
/// merge.
const SPECIALISED_PART_STEPS: [usize; 2] = [2, 8];

/// The schedule for a problem on a Hopper GPU: the resident kernel where its blocks all run at the same time; the unified
/// kernel where all heads that share a key head have few queries; else the specialised one. The last two split keys where
/// tiles are fewer than multiprocessors, into numbers of parts that follow from sizes and have not been measured. With e4m3
/// all multiply queries by keys without conversion, with sums of about 14 bits, and the resident kernel multiplies values by
/// rounded weights. For exact products choose fp16 arithmetic.
///
/// On GPUs before Hopper, and on those after it, the unified kernel, in a schedule that follows from sizes alone: nothing of it has been measured
/// there. On sm_89 it multiplies e4m3 queries by keys without conversion too.
pub fn automatic(attention: &Attention, target: Target) -> Schedule {
    let target = target.for_common_kernels();
    match target.arch {
        Arch::Sm80 | Arch::Sm89 => before_hopper(attention, target),
        _ => hopper(attention, target),
    }
}

/// Tiles of 128 queries read keys and values half as often, where there are enough of them for all multiprocessors. Two
/// stages of 16-bit keys and values of long heads are what an L4's block has room for; of 8 bits there is room for three.
fn before_hopper(attention: &Attention, target: Target) -> Schedule {
    if let Some(schedule) = few_queries(attention, target, most_packed(attention)) {
        return schedule;
    }
    let wide = tiles(attention, NARROW_QUERIES) >= target.processors as usize && attention.head_size <= 128;
    let m = if wide { NARROW_QUERIES } else { RESIDENT_QUERIES };
    let stages = if attention.format.bytes() == 1 { 3 } else { 2 };
    // As many of these stages as there is room for.
    let schedules = (1..=stages)
        .rev()
        .map(|stages| unified(attention, target, m, stages));
    let fits = |schedule: &Schedule| block(schedule, attention, target) <= target.block_shared_bytes;
    schedules
        .clone()
        .find(fits)
        .unwrap_or_else(|| unified(attention, target, m, 1))
}

/// The rows of the largest tile of the unified kernel that takes the queries of all heads that share a key head together.
fn most_packed(attention: &Attention) -> usize {
    match attention.heads / attention.kv_heads.max(1) {
        ..=1 => RESIDENT_QUERIES,
        _ => NARROW_QUERIES,
    }
}

/// The unified kernel where the queries of all heads that share a key head are at most a tile's rows, and that at most `most`: the
/// time of such a problem is that of reading its keys and values once.
fn few_queries(attention: &Attention, target: Target, most: usize) -> Option<Schedule> {
    let shared = attention.heads / attention.kv_heads.max(1);
    let queries = attention.sequences.iter().map(|lengths| lengths.queries);
    let rows = shared * queries.max()?;
    let mut sizes = [FEW_QUERIES, RESIDENT_QUERIES, NARROW_QUERIES].into_iter();
    // Sums of long heads leave no registers for tiles of 128 queries with two warps to a scheduler.
    let most = if attention.head_size > 128 {
        most.min(RESIDENT_QUERIES)
    } else {
        most
    };
    let size = sizes.find(|&size| rows <= size && size <= most)?;
    let mut schedule = roomy(attention, target, size);
    // All rows of a set of heads are one tile.
    let queried = attention.sequences.iter().filter(|lengths| lengths.queries > 0);
    let tiles = queried.count() * attention.kv_heads;
    if size == FEW_QUERIES
        && target.arch == Arch::Sm90a
        && let Some(decoding) = decoding(attention, target, tiles)
    {
        return Some(decoding);
    }
    let most_parts = MAX_PARTS[usize::from(size > FEW_QUERIES)];
    schedule.split_k = parts(attention, target, tiles, STEP_KEYS * PART_STEPS).min(most_parts);
    Some(schedule)
}

/// Tiles of 16 queries on Hopper: twice the keys a step, so half the barriers, where keys are long enough that a part has several
/// such steps.
fn decoding(attention: &Attention, target: Target, tiles: usize) -> Option<Schedule> {
    let is_long = attention.head_size > 64;
    // Of the numbers tried on an H200.
    let stages = match attention.format {
        AttentionFormat::F16 | AttentionFormat::Bf16 => 4 - usize::from(is_long),
        AttentionFormat::E4m3 if is_long => 4,
        AttentionFormat::Int8 if is_long => 2,
        AttentionFormat::E4m3 | AttentionFormat::Int8 => 6,
    };
    let mut schedule = unified(attention, target, FEW_QUERIES, stages);
    schedule.tile.n = DECODED_KEYS;
    let bytes = block(&schedule, attention, target);
    if bytes > target.block_shared_bytes {
        return None;
    }
    // Whatever registers they take, two blocks of four warps fit a multiprocessor.
    let blocks = target.blocks_with(bytes).clamp(1, 2) * target.processors as usize;
    let longest = attention.sequences.iter().map(|lengths| lengths.keys).max()?;
    let wanted = (blocks / tiles.max(1)).clamp(1, MAX_DECODED_PARTS);
    schedule.split_k = wanted;
    (longest >= wanted * DECODED_KEYS).then_some(schedule)
}

/// The unified kernel with as many stages as leave room for two blocks on a multiprocessor, or else as there is room for.
pub(super) fn roomy(attention: &Attention, target: Target, size: usize) -> Schedule {
    let with_stages = |stages| unified(attention, target, size, stages);
    let two = |schedule: &Schedule| target.blocks_with(block(schedule, attention, target)) >= 2;
    let fits = |schedule: &Schedule| block(schedule, attention, target) <= target.block_shared_bytes;
    let roomy = STAGES.map(with_stages).into_iter().find(two);
    roomy.unwrap_or_else(|| with_stages(if fits(&with_stages(2)) { 2 } else { 1 }))
}

fn block(schedule: &Schedule, attention: &Attention, target: Target) -> usize {
    block_bytes(schedule, &Operation::Attention(attention.clone()), target.arch)
}

fn unified(attention: &Attention, target: Target, queries: usize, stages: usize) -> Schedule {
    let eights = attention.format == AttentionFormat::E4m3 && target.arch != Arch::Sm80;
    Schedule {
        tile: Tile {
            m: queries,
            n: STEP_KEYS,
            k: attention.head_size,
        },
        stages,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        arithmetic: if eights { Arithmetic::Fp8 } else { Arithmetic::Fp16 },
        ..Schedule::baseline()
    }
}

/// Parts into which keys are split so that tiles make a block for each multiprocessor, of `keys` keys at least.
fn parts(attention: &Attention, target: Target, tiles: usize, keys: usize) -> usize {
    let longest = attention.sequences.iter().map(|lengths| lengths.keys).max();
    let most = (longest.unwrap_or(0) / keys).max(1);
    (target.processors as usize / tiles.max(1)).clamp(1, most)
}

fn hopper(attention: &Attention, target: Target) -> Schedule {
    if !HEAD_SIZES.contains(&attention.head_size) {
        return before_hopper(attention, target);
    }
    let processors = target.processors;
    let size = attention.head_size;
    let eights = attention.format == AttentionFormat::E4m3;
    let base = Schedule {
        roles: Roles::Specialised,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        arithmetic: if eights { Arithmetic::Fp8 } else { Arithmetic::Fp16 },
        ..Schedule::baseline()
    };
    if let Some(keys) = resident_keys(attention, processors) {
        return Schedule {
            tile: Tile {
                m: RESIDENT_QUERIES,
                n: keys,
                k: size,
            },
            stages: 2,
            split_k: SPLIT,
            cluster: Cluster { m: 1, n: SPLIT },
            ..base
        };
    }
    // The specialised kernel packs heads too, but not those whose blocks have scales of their own.
    let most = match attention.has_block_scales() {
        true => most_packed(attention),
        false => FEW_QUERIES,
    };
    if let Some(schedule) = few_queries(attention, target, most) {
        return schedule;
    }
    let mut schedule = Schedule {
        tile: Tile {
            m: NARROW_QUERIES,
            n: 128,
            k: size,
        },
        stages: 2,
        order: Order::Sorted,
        ..base
    };
    let groups = warp_groups(&schedule, attention);
    let wide = groups.most * RESIDENT_QUERIES;
    let of_wide = Schedule {
        tile: Tile {
            m: wide,
            ..schedule.tile
        },
        ..schedule.clone()
    };
    if cut(attention, &of_wide) >= WAVES_FOR_WIDE * processors as usize {
        schedule.tile.m = wide;
    } else if groups.parts > 1 {
        // Groups that split the keys drift apart by more than a step.
        schedule.stages = 3;
    }
    let is_packed = head_sets(&schedule, attention, Arch::Sm90a).heads > 1;
    let least = schedule.tile.n * SPECIALISED_PART_STEPS[usize::from(!is_packed)];
    schedule.split_k = parts(attention, target, cut(attention, &schedule), least);
    schedule
}

/// Keys of a warp group with which the resident kernel holds the longest sequence, if all of its blocks run at once.
fn resident_keys(attention: &Attention, processors: u32) -> Option<usize> {
    let blocks = SPLIT * tiles(attention, RESIDENT_QUERIES);
    let keys = |lengths: &gauntlet_problems::Sequence| lengths.keys;
    let longest = attention.sequences.iter().map(keys).max()?;
    if blocks > processors as usize {
        return None;
    }
    RESIDENT_KEYS.into_iter().find(|keys| 2 * SPLIT * keys >= longest)
}

/// The number of tiles of the specialised kernel, in which heads may be packed.
fn cut(attention: &Attention, schedule: &Schedule) -> usize {
    let sets = head_sets(schedule, attention, Arch::Sm90a);
    let rows = attention
        .sequences
        .iter()
        .map(|lengths| lengths.queries * sets.heads);
    sets.count * rows.map(|rows| rows.div_ceil(schedule.tile.m)).sum::<usize>()
}

/// The number of tiles of `queries` queries.
fn tiles(attention: &Attention, queries: usize) -> usize {
    let heads = attention
        .sequences
        .iter()
        .map(|lengths| lengths.queries.div_ceil(queries));
    heads.sum::<usize>() * attention.heads
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;
    use gauntlet_problems::{Operation, OutputFormat, Scaling, Sequence};

    use super::*;
    use crate::plan::{Source, plan};

    fn attention(batch: usize, heads: usize, positions: usize, format: AttentionFormat) -> Attention {
        let sequence = Sequence {
            queries: positions,
            keys: positions,
        };
        Attention {
            sequences: vec![sequence; batch],
            heads,
            kv_heads: heads,
            head_size: 64,
            causal: false,
            format,
            scaling: Scaling::default(),
            output: OutputFormat::F16,
        }
    }

    fn chosen(attention: &Attention) -> (Source, Schedule) {
        let target = Target::hopper(132);
        let schedule = automatic(attention, target);
        let plan = plan(&Operation::Attention(attention.clone()), &schedule, target).unwrap();
        (plan.variant().source, schedule)
    }

    #[test]
    fn short_sequences_that_run_at_once_are_resident_and_all_else_is_specialised() {
        for format in [
            AttentionFormat::F16,
            AttentionFormat::Bf16,
            AttentionFormat::E4m3,
            AttentionFormat::Int8,
        ] {
            let source = |batch, heads, positions| chosen(&attention(batch, heads, positions, format)).0;
            assert_eq!(source(1, 8, 512), Source::AttentionResident);
            assert_eq!(source(1, 1, 32), Source::AttentionResident);
            assert_eq!(source(1, 8, 513), Source::AttentionSpecialised);
            assert_eq!(source(4, 16, 512), Source::AttentionSpecialised);
        }
    }

    #[test]
    fn gpus_before_hopper_have_a_kernel_for_every_format_and_head() {
        for (name, arithmetic) in [("a100", Arithmetic::Fp16), ("l4", Arithmetic::Fp8)] {
            let target = Target::of(&Device::builtin(name).unwrap()).unwrap();
            for format in [
                AttentionFormat::F16,
                AttentionFormat::Bf16,
                AttentionFormat::E4m3,
                AttentionFormat::Int8,
            ] {
                for (heads, head_size) in [(1, 64), (64, 64), (1, 128), (64, 128)] {
                    let attention = Attention {
                        head_size,
                        ..attention(1, heads, 512, format)
                    };
                    let schedule = automatic(&attention, target);
                    let plan = plan(&Operation::Attention(attention), &schedule, target).unwrap();
                    assert_eq!(plan.variant().source, Source::AttentionUnified);
                    assert_eq!(schedule.tile.m, if heads == 1 { 64 } else { 128 });
                    if format == AttentionFormat::E4m3 {
                        assert_eq!(schedule.arithmetic, arithmetic);
                    }
                }
            }
        }
    }

    #[test]
    fn few_queries_split_their_keys_over_the_blocks_that_run_at_once() {
        let decode = |batch, heads, kv_heads, queries, keys| {
            let attention = Attention {
                sequences: vec![Sequence { queries, keys }; batch],
                heads,
                kv_heads,
                head_size: 128,
                ..attention(1, heads, 1, AttentionFormat::F16)
            };
            let (source, schedule) = chosen(&attention);
            (source, schedule.tile.m, schedule.stages, schedule.split_k)
        };
        let unified = Source::AttentionUnified;
        assert_eq!(decode(1, 32, 8, 1, 8192), (unified, 16, 3, 16));
        assert_eq!(decode(8, 32, 8, 1, 8192), (unified, 16, 3, 2));
        assert_eq!(decode(1, 8, 8, 1, 1024), (unified, 16, 3, 8));
        assert_eq!(decode(64, 32, 8, 1, 8192), (unified, 16, 3, 1));
        assert_eq!(decode(1, 1, 1, 1, 8192), (unified, 16, 3, 33));
        let specialised = Source::AttentionSpecialised;
        assert_eq!(decode(1, 32, 8, 16, 4096), (specialised, 128, 2, 16));
        assert_eq!(decode(1, 32, 4, 16, 32768), (specialised, 128, 2, 33));
        assert_eq!(decode(1, 32, 8, 32, 4096), (specialised, 128, 2, 16));
        assert_eq!(decode(1, 32, 8, 128, 8192), (specialised, 128, 2, 4));
        assert_eq!(decode(1, 8, 8, 1024, 1024), (specialised, 128, 2, 1));
    }

    #[test]
    fn all_warp_groups_have_queries_of_their_own_where_there_are_tiles_for_all() {
        let queries = |positions, head_size| {
            let attention = Attention {
                head_size,
                ..attention(4, 16, positions, AttentionFormat::F16)
            };
            chosen(&attention).1.tile.m
        };
        assert_eq!((queries(4096, 64), queries(1024, 64)), (256, 128));
        assert_eq!((queries(4096, 128), queries(1024, 128)), (192, 128));
    }
}
