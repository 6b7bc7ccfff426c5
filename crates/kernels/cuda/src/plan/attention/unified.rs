//! The unified kernel: every warp copies and multiplies, with `mma.sync`; the steps of the staircase are its
//! definitions. It needs nothing of Hopper.

use crate::plan::error::require;
use gauntlet_device::Arch;
use gauntlet_problems::Attention;
use gauntlet_problems::resources::{
    FEW_QUERIES, HeadSets, head_sets, key_warps, last_bytes, merged_bytes, multiplied_head, padded_row,
};
use gauntlet_problems::{
    Arithmetic, Cluster, Epilogue, Layout, Lookup, Order, Roles, Schedule, Scores, Values,
};

use super::{HEAD_SIZES, Parts, WARP_ROWS, Work, check_split};
use crate::plan::variant::most_registers;
use crate::plan::{Addresses, Launch, Memory, Plan, PlanError, Source, Target, Variant, Weights};

/// Keys of a step, and queries of a tile, that there is a kernel for.
const KEYS: [usize; 2] = [64, 128];
const QUERIES: [usize; 3] = [FEW_QUERIES, 64, 128];
/// Bytes of a score, and of what a query's sums are multiplied by.
const SCORE_BYTES: usize = 4;

/// A problem for the unified kernel.
#[derive(Debug)]
pub struct UnifiedPlan {
    pub(super) work: Work,
    pub(super) variant: Variant,
}

impl UnifiedPlan {
    /// Plans a valid problem.
    ///
    /// # Errors
    /// If the kernel does not support a value of the schedule, or a size exceeds its integer ranges.
    pub fn new(attention: &Attention, schedule: &Schedule, target: Target) -> Result<Self, PlanError> {
        check_words(schedule)?;
        check_scalar(attention, schedule)?;
        check_arithmetic(schedule, target.arch)?;
        let sets = head_sets(schedule, attention, target.arch);
        let parts = match key_warps(schedule) {
            1 => Parts::of_warps(attention, schedule.tile.m, schedule.split_k),
            _ => Parts::of_blocks(attention, schedule.tile.m, schedule.split_k),
        };
        let work = Work::new(attention, schedule, schedule.tile.m, sets, parts)?;
        let bytes = shared_bytes(&work, schedule);
        let most = target.block_shared_bytes;
        if bytes > most {
            return Err(PlanError::word(
                "stages",
                schedule.stages,
                format!("a block would take {bytes} B of shared memory, and has {most}"),
                "choose fewer stages, a smaller tile, or scores in registers",
            ));
        }
        Ok(Self {
            variant: variant(&work, schedule, sets, target),
            work,
        })
    }
}

impl Plan for UnifiedPlan {
    fn variant(&self) -> &Variant {
        &self.variant
    }

    fn memory(&self, _: &[Weights]) -> Memory {
        self.work.memory()
    }

    fn launches(&self, addresses: &Addresses) -> Vec<Launch> {
        self.work
            .launch(addresses, self.work.tiles.len() * self.work.parts.count, 1)
    }
}

fn variant(work: &Work, schedule: &Schedule, sets: HeadSets, target: Target) -> Variant {
    let shared_bytes = shared_bytes(work, schedule);
    let scores = match schedule.scores {
        Scores::Registers => 0,
        Scores::InPlace => 1,
        Scores::Separate => 2,
    };
    let numbers = [
        ("TILE_M", schedule.tile.m),
        ("TILE_N", schedule.tile.n),
        ("STAGES", schedule.stages),
        ("SPLIT", usize::from(schedule.split_k > 1)),
        ("PACKED", usize::from(sets.heads > 1)),
        ("SCORES", scores),
        ("VALUES", usize::from(schedule.values == Values::Scalar)),
        ("LAYOUT", usize::from(schedule.layout == Layout::Swizzled)),
        ("EPILOGUE", usize::from(schedule.epilogue == Epilogue::Staged)),
        ("ARITHMETIC", usize::from(schedule.arithmetic == Arithmetic::Fp8)),
        ("OVERLAP", usize::from(target.overlaps())),
        ("SHARED_BYTES", shared_bytes),
    ];
    let mut defines = work.defines(schedule);
    defines.extend(numbers.map(|(name, value)| (name, value.to_string())));
    let threads = schedule.tile.m / WARP_ROWS * key_warps(schedule) * 32;
    Variant {
        source: Source::AttentionUnified,
        defines,
        threads: threads as u32,
        shared_bytes: shared_bytes as u32,
        registers: most_registers(threads),
    }
}

/// Bytes of shared memory; `kernels/attention_unified_memory.cuh` has the same layout.
fn shared_bytes(work: &Work, schedule: &Schedule) -> usize {
    let (queries, keys) = (schedule.tile.m, schedule.tile.n);
    let row = padded_row(multiplied_head(&work.attention) * work.attention.format.bytes());
    let operands = (queries + 2 * schedule.stages * keys) * row;
    let weight_bytes = match schedule.values {
        Values::Matrix => 2,
        Values::Scalar => 4,
    };
    // Weights in place take no room of their own.
    let key_bytes = match schedule.scores {
        Scores::Registers => 0,
        Scores::InPlace => SCORE_BYTES,
        Scores::Separate => SCORE_BYTES + weight_bytes,
    };
    let factor_bytes = match schedule.scores {
        Scores::Registers => 0,
        Scores::InPlace | Scores::Separate => SCORE_BYTES,
    };
    let result_bytes = match schedule.epilogue {
        Epilogue::Direct => 0,
        Epilogue::Staged => padded_row(work.attention.head_size * work.attention.output.bytes()),
    };
    let computed = operands + queries * (keys * key_bytes + factor_bytes + result_bytes);
    computed.max(merged_bytes(schedule, &work.attention)) + last_bytes(schedule)
}

fn check_words(schedule: &Schedule) -> Result<(), PlanError> {
    check_tile(schedule)?;
    check_parts(schedule)?;
    if schedule.values == Values::Scalar && schedule.scores == Scores::Registers {
        return Err(PlanError::word(
            "values",
            schedule.values,
            "multiply-adds read weights from shared memory, and with scores in registers they are not there",
            "choose matrix, or scores in-place or separate",
        ));
    }
    let one_tile = "a block of the unified kernel has one tile of a table";
    let alone = "blocks of the unified kernel do not wait for one another";
    let built = "the unified kernel is built so";
    require! {
        "roles": schedule.roles, Roles::Unified, built;
        "order": schedule.order, Order::PerTile, one_tile;
        "lookup": schedule.lookup, Lookup::Precomputed, one_tile;
        "cluster": schedule.cluster, Cluster { m: 1, n: 1 }, alone;
    }
    Ok(())
}

/// A lane of multiply-adds has two or four elements of a value.
fn check_scalar(attention: &Attention, schedule: &Schedule) -> Result<(), PlanError> {
    if schedule.values == Values::Matrix || HEAD_SIZES.contains(&attention.head_size) {
        return Ok(());
    }
    Err(PlanError::word(
        "values",
        schedule.values,
        format!(
            "multiply-adds take heads of 64 or 128, not {}",
            attention.head_size
        ),
        "choose matrix",
    ))
}

/// Products of e4m3 begin with sm_89 (PTX ISA, `mma.sync`).
fn check_arithmetic(schedule: &Schedule, arch: Arch) -> Result<(), PlanError> {
    match (schedule.arithmetic, arch) {
        (Arithmetic::Fp8, Arch::Sm80) => Err(PlanError::word(
            "arithmetic",
            schedule.arithmetic,
            "mma.sync on sm_80 does not multiply e4m3",
            "choose fp16",
        )),
        _ => Ok(()),
    }
}

fn check_tile(schedule: &Schedule) -> Result<(), PlanError> {
    let tile = schedule.tile;
    if !QUERIES.contains(&tile.m) {
        return Err(PlanError::word(
            "tile.m",
            tile.m,
            "the unified kernel takes 16, 64 or 128 queries a tile",
            "choose 16, 64 or 128",
        ));
    }
    if !KEYS.contains(&tile.n) {
        return Err(PlanError::word(
            "tile.n",
            tile.n,
            "the unified kernel takes 64 or 128 keys a step",
            "choose 64 or 128",
        ));
    }
    Ok(())
}

/// Parts of keys, of warps or of blocks, are merged from registers to the output.
fn check_parts(schedule: &Schedule) -> Result<(), PlanError> {
    check_split(schedule)?;
    if schedule.split_k == 1 && key_warps(schedule) == 1 {
        return Ok(());
    }
    let why = "parts of a tile's keys are merged from registers to the output";
    require! {
        "scores": schedule.scores, Scores::Registers, why;
        "epilogue": schedule.epilogue, Epilogue::Direct, why;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use gauntlet_problems::Exponential;
    use gauntlet_problems::resources::block_bytes;
    use gauntlet_problems::{AttentionFormat, Operation, OutputFormat};

    use super::super::Tile;
    use super::*;
    use crate::plan::fixture::{ADDRESSES, collect};

    fn attention(head_size: usize, format: AttentionFormat) -> Attention {
        let lengths = [(130, 200), (1, 1), (0, 7)];
        Attention {
            causal: true,
            output: OutputFormat::F32,
            ..Attention::new(
                format,
                lengths.map(|(queries, keys)| [queries, keys]),
                [4, 2],
                head_size,
            )
        }
    }

    fn fused(head_size: usize) -> Schedule {
        Schedule {
            tile: [64, 64, head_size].into(),
            lookup: Lookup::Precomputed,
            ..Schedule::baseline()
        }
    }

    fn planned(format: AttentionFormat, schedule: &Schedule) -> UnifiedPlan {
        UnifiedPlan::new(&attention(schedule.tile.k, format), schedule, Target::hopper(132)).unwrap()
    }

    #[test]
    fn words_become_definitions() {
        let schedule = Schedule {
            tile: [128, 64, 64].into(),
            stages: 3,
            scores: Scores::Separate,
            values: Values::Scalar,
            layout: Layout::Plain,
            epilogue: Epilogue::Staged,
            ..fused(64)
        };
        let plan = planned(AttentionFormat::Bf16, &schedule);
        let variant = plan.variant();
        let expected = [
            ("HEAD", "64"),
            ("FORMAT", "1"),
            ("OUTPUT", "2"),
            ("CAUSAL", "1"),
            ("TILE_M", "128"),
            ("TILE_N", "64"),
            ("STAGES", "3"),
            ("SCORES", "2"),
            ("VALUES", "1"),
            ("LAYOUT", "0"),
            ("EPILOGUE", "1"),
            ("EXPONENTIAL", "0"),
        ];
        for (name, value) in expected {
            assert_eq!(variant.defines[name], value, "{name}");
        }
        assert_eq!(variant.defines["SHARED_BYTES"], variant.shared_bytes.to_string());
        assert_eq!((variant.threads, variant.registers), (256, 255));
        let defaults = planned(AttentionFormat::F16, &fused(64));
        for (name, value) in [
            ("SCORES", "0"),
            ("VALUES", "0"),
            ("LAYOUT", "1"),
            ("EPILOGUE", "0"),
        ] {
            assert_eq!(defaults.variant().defines[name], value, "{name}");
        }
        let table = Schedule {
            exponential: Exponential::Table,
            scores: Scores::InPlace,
            ..fused(64)
        };
        let defines = planned(AttentionFormat::F16, &table).variant().defines.clone();
        assert_eq!(
            (defines["EXPONENTIAL"].as_str(), defines["SCORES"].as_str()),
            ("2", "1")
        );
    }

    #[test]
    fn shared_memory_is_counted() {
        let bytes = |format, schedule: &Schedule| planned(format, schedule).variant().shared_bytes;
        let staged = Schedule {
            stages: 2,
            ..fused(128)
        };
        // 64 queries and two stages of 64 keys and values, rows of 256 bytes.
        assert_eq!(bytes(AttentionFormat::F16, &staged), (64 + 4 * 64) * 256);
        let eights = Schedule {
            scores: Scores::Separate,
            values: Values::Scalar,
            ..fused(64)
        };
        assert_eq!(
            bytes(AttentionFormat::E4m3, &eights),
            3 * 64 * 64 + 64 * 64 * 8 + 64 * 4
        );
        let matrix = Schedule {
            values: Values::Matrix,
            ..eights
        };
        assert_eq!(
            bytes(AttentionFormat::E4m3, &matrix),
            3 * 64 * 64 + 64 * 64 * 6 + 64 * 4
        );
        let results = Schedule {
            epilogue: Epilogue::Staged,
            scores: Scores::InPlace,
            ..matrix
        };
        assert_eq!(
            bytes(AttentionFormat::E4m3, &results),
            3 * 64 * 64 + 64 * 64 * 4 + 64 * 4 + 64 * 64 * 4
        );
    }

    #[test]
    fn the_fused_kernel_takes_what_the_device_is_asked_for() {
        for format in [AttentionFormat::F16, AttentionFormat::E4m3] {
            for epilogue in [Epilogue::Direct, Epilogue::Staged] {
                let schedule = Schedule {
                    epilogue,
                    stages: 3,
                    ..fused(128)
                };
                let problem = Operation::Attention(attention(128, format));
                let asked = block_bytes(&schedule, &problem, Arch::Sm90a);
                assert_eq!(planned(format, &schedule).variant().shared_bytes as usize, asked);
            }
        }
    }

    #[test]
    fn a_block_has_a_tile_of_the_table() {
        let plan = planned(AttentionFormat::F16, &fused(64));
        let launches = plan.launches(&ADDRESSES);
        let [launch] = launches.as_slice() else {
            panic!("{launches:?}");
        };
        // Three tiles of the first sequence's heads, one of the second's.
        assert_eq!((launch.grid, launch.cluster), (16, 1));
        let memory = plan.memory(&[]);
        assert!(memory.maps.is_empty());
        let tiles: Vec<Tile> = collect(&memory.tables[3 * 16..]);
        assert_eq!(tiles.len(), 16);
        assert_eq!((tiles[2].sequence, tiles[2].head, tiles[2].query), (0, 0, 128));
        assert_eq!((tiles[15].sequence, tiles[15].head, tiles[15].query), (1, 3, 0));
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_by_name() {
        let refused = |change: fn(&mut Schedule)| {
            let mut schedule = fused(64);
            change(&mut schedule);
            UnifiedPlan::new(
                &attention(64, AttentionFormat::E4m3),
                &schedule,
                Target::hopper(132),
            )
            .unwrap_err()
            .to_string()
        };
        let begins = |message: String, word: &str| assert!(message.starts_with(word), "{message}");
        begins(refused(|schedule| schedule.tile.m = 96), "tile.m = 96");
        begins(refused(|schedule| schedule.tile.n = 32), "tile.n = 32");
        begins(
            refused(|schedule| schedule.values = Values::Scalar),
            "values = scalar",
        );
        begins(
            refused(|schedule| schedule.roles = Roles::Specialised),
            "roles = specialised",
        );
        begins(
            refused(|schedule| schedule.order = Order::Sorted),
            "order = sorted",
        );
        begins(
            refused(|schedule| schedule.lookup = Lookup::Linear),
            "lookup = linear",
        );
        begins(refused(|schedule| schedule.split_k = 0), "split-k = 0");
        begins(
            refused(|schedule| {
                schedule.split_k = 2;
                schedule.epilogue = Epilogue::Staged;
            }),
            "epilogue = staged",
        );
        begins(
            refused(|schedule| {
                schedule.tile.m = 16;
                schedule.scores = Scores::Separate;
            }),
            "scores = separate",
        );
        begins(refused(|schedule| schedule.cluster.n = 2), "cluster = 1×2");
    }

    #[test]
    fn other_gpus_have_less_memory_and_sm_80_no_products_of_e4m3() {
        let target = |name: &str| Target::of(&gauntlet_device::Device::builtin(name).unwrap()).unwrap();
        let planned = |schedule: &Schedule, name: &str| {
            let attention = attention(schedule.tile.k, AttentionFormat::E4m3);
            UnifiedPlan::new(&attention, schedule, target(name))
        };
        let eights = Schedule {
            arithmetic: Arithmetic::Fp8,
            ..fused(64)
        };
        let defines = planned(&eights, "l4").unwrap().variant().defines.clone();
        assert_eq!(
            (defines["ARITHMETIC"].as_str(), defines["OVERLAP"].as_str()),
            ("1", "0")
        );
        let error = planned(&eights, "a100").unwrap_err().to_string();
        assert!(
            error.starts_with("arithmetic = fp8: mma.sync on sm_80"),
            "{error}"
        );
        // 64 queries and six stages of 64 keys and values, rows of 128 bytes.
        let deep = Schedule {
            stages: 6,
            ..fused(128)
        };
        assert!(planned(&deep, "a100").is_ok());
        let error = planned(&deep, "l4").unwrap_err().to_string();
        assert!(
            error.starts_with("stages = 6: a block would take 106496 B of shared memory, and has 101376"),
            "{error}"
        );
    }
}
