//! Which schedule a call gets.

mod blackwell;

use gauntlet_device::Arch;
use gauntlet_operations::{Epilogue, Lookup, Operation, Order, Packing, Roles, Schedule, Setup, Tile};
use gauntlet_operations::{Form, GroupedGemm};

use crate::plan::{Target, has_one_depth};

/// Most tokens of a group that the narrow kernel computes without reading weights twice.
const NARROW: usize = 16;

/// Most waves of the narrow kernel's blocks for which it is chosen. A wave is the set of blocks that run at the same
/// time.
///
/// Every block of the narrow kernel starts from nothing: it loads nothing while the previous block adds up and stores
/// its sums, and it waits for its first bytes. That costs about 2 µs a wave. The swapped kernel runs one block a
/// multiprocessor, which loads the next tile while it computes the current one. It starts later, though: about 4 µs
/// pass before the first weights are multiplied, because a separate launch converts the tokens first. So the narrow
/// kernel wins if there are few waves. Measured on an H100 (2026-11-24, µs, narrow against swapped, tokens 1 · 7 · 16
/// of a single product, N×K):
///
/// | shape | waves | narrow | swapped |
/// |---|---|---|---|
/// | 4096×4096 | 1 | 5.4 | 8.4 |
/// | 8192×8192 | 2 | 15.2 · 15.5 · 17.8 | 16.9 · 17.2 · 17.8 |
/// | 8192×28672 | 2 | 44 · 45 · 48 | 47.3 · 47.5 · 47.6 |
/// | 14336×4096 | 4 | slower | faster |
/// | 28672×8192 | 7 | 49 · 50 · 57 | 48.7 · 48.8 · 49.1 |
///
/// and on mixtures of experts, 64 tokens routed to all experts together:
///
/// | experts, N×K | narrow | swapped |
/// |---|---|---|
/// | DeepSeek-V3, 32, 4096×7168 | 147 | 131 |
/// | DeepSeek-V3, 32, 7168×2048 | 119 | 72.5 |
/// | Qwen3-235B, 128, 3072×4096 | 141 | 118 |
/// | Qwen3-235B, 128, 4096×1536 | 116 | 60.9 |
///
/// Three waves were not measured.
///
/// Each block of the narrow kernel reads all tokens. Those of 16 bits take four times the bytes of NVFP4: with 16 bf16 tokens
/// against 8192×8192 the narrow kernel takes 51.9 µs (H100, 2026-11-25), so 16-bit tokens always take the swapped kernel.
const NARROW_WAVES: usize = 2;

/// Which schedule a call gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// Chosen by the token counts: the narrow kernel if tokens are NVFP4, no group has more than 16 of them and its blocks run in at most
    /// two waves, else the swapped kernel with balanced work. GPUs before Hopper have the unified kernel in its place, and
    /// the narrow one for every group of few tokens, as layers on newer GPUs do. There are few variants, so new token counts
    /// rarely have to wait for the compiler.
    #[default]
    Automatic,
    /// The same for weights that lie in this order, made by [`pack_as`](crate::packing::pack_as);
    /// [`LayerShape::packing`](super::LayerShape::packing) says which is best. A call whose kernel does not read it is refused.
    Repacked(Packing),
    /// This one, always.
    Fixed(Schedule),
}

impl Choice {
    /// The schedule for a problem on a GPU.
    pub(super) fn schedule(&self, gemm: &GroupedGemm, target: Target) -> Schedule {
        match self {
            Self::Automatic => automatic(gemm, target),
            Self::Repacked(packing) => Schedule {
                packing: *packing,
                ..automatic(gemm, target)
            },
            Self::Fixed(schedule) => schedule.clone(),
        }
    }

    /// The schedule for a call of a layer that is planned on the device, which only the swapped kernel computes.
    pub(super) fn routed_schedule(&self, layer: &GroupedGemm) -> Schedule {
        match self {
            Self::Automatic => swapped(layer.form),
            Self::Repacked(packing) => Schedule {
                packing: *packing,
                ..swapped(layer.form)
            },
            Self::Fixed(schedule) => schedule.clone(),
        }
    }
}

/// The best order of repacked weights. Tokens of 16 bits always take the swapped kernel on Hopper, which then needs no launch
/// before its own.
pub(super) fn packing(layer: &GroupedGemm, target: Target) -> Packing {
    match target.arch {
        Arch::Sm90a if layer.tokens.is_half() && has_one_depth(layer) => Packing::Steps,
        _ => Packing::Fragments,
    }
}

fn automatic(gemm: &GroupedGemm, target: Target) -> Schedule {
    let target = target.for_problem(&Operation::GroupedGemm(gemm.clone()));
    match target.arch {
        Arch::Sm80 | Arch::Sm89 => before_hopper(gemm, target),
        Arch::Sm100a => blackwell::automatic(gemm, target),
        _ => hopper(gemm, target.processors),
    }
}

/// The choice on GPUs without Hopper's instructions, and on newer ones that run kernels without them. It follows from sizes alone; nothing of it has been measured there.
///
/// Tiles are as wide as the largest group needs, because a weight is converted once for all tokens of a tile. Stages are as
/// many as fit, up to four: with them, copies of some hundred kilobytes are on their way in all multiprocessors together,
/// as many as memory of 300 to 2000 GB/s delivers in its latency of half a microsecond.
fn before_hopper(gemm: &GroupedGemm, target: Target) -> Schedule {
    let most = gemm.groups.iter().map(|shape| shape.m).max().unwrap_or(0);
    let rows = |rows: usize| match gemm.form {
        Form::Plain => rows,
        Form::Swiglu => rows / 2,
    };
    let schedule = |tile: Tile, stages| Schedule {
        tile,
        stages,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    if most <= NARROW {
        let n = if most <= NARROW / 2 { NARROW / 2 } else { NARROW };
        // Two stages of eight warps, each 128 deep, or of four where many tokens of 16 bits take their room.
        let of_a_token = if gemm.tokens.is_half() {
            HALF_BYTES
        } else {
            PACKED_BYTES
        };
        let slot = 32 * PACKED_BYTES + n * of_a_token;
        let warps = if 2 * 8 * slot <= target.block_shared_bytes {
            8
        } else {
            4
        };
        return schedule(
            Tile {
                m: rows(32),
                n,
                k: 128 * warps,
            },
            2,
        );
    }
    let n = UNIFIED_WIDTHS.into_iter().find(|width| most <= *width);
    let n = n.unwrap_or(UNIFIED_WIDTHS[UNIFIED_WIDTHS.len() - 1]);
    let stage = 128 * PACKED_BYTES + n * HALF_BYTES;
    Schedule {
        order: Order::Sorted,
        split_k: 4,
        ..schedule(
            Tile {
                m: rows(128),
                n,
                k: 128,
            },
            (target.block_shared_bytes / stage).clamp(2, 4),
        )
    }
}

/// Tokens of the unified kernel's tiles, the fewest first: few variants, so that new token counts rarely have to wait for
/// the compiler.
const UNIFIED_WIDTHS: [usize; 3] = [32, 64, 128];
/// Bytes of a chunk, 128 deep, of a row of NVFP4 with its scales, and of 16 bits.
const PACKED_BYTES: usize = 64 + 8;
const HALF_BYTES: usize = 256;

fn hopper(gemm: &GroupedGemm, processors: u32) -> Schedule {
    let most = gemm.groups.iter().map(|shape| shape.m).max().unwrap_or(0);
    let narrow = Schedule {
        tile: Tile {
            m: rows(32, gemm.form),
            n: if most <= NARROW / 2 { NARROW / 2 } else { NARROW },
            k: narrow_depth(gemm.form),
        },
        stages: 2,
        roles: Roles::Unified,
        order: Order::PerTile,
        ..precomputed()
    };
    let is_small = most <= NARROW && !gemm.tokens.is_half();
    if is_small && blocks(gemm, narrow.tile.m) <= NARROW_WAVES * blocks_at_once(gemm.form, processors) {
        return narrow;
    }
    swapped(gemm.form)
}

fn swapped(form: Form) -> Schedule {
    Schedule {
        tile: Tile {
            m: rows(128, form),
            n: 256,
            k: 128,
        },
        stages: 3,
        roles: Roles::Specialised,
        order: Order::Sorted,
        // According to the cost model, more parts shorten the plan of only one benchmark, by 0.7 %.
        split_k: 4,
        ..precomputed()
    }
}

/// The part that all schedules share.
fn precomputed() -> Schedule {
    Schedule {
        epilogue: Epilogue::Direct,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    }
}

/// Rows of a tile, which in the dual form has as many of each of two weights.
fn rows(rows: usize, form: Form) -> usize {
    match form {
        Form::Plain => rows,
        Form::Swiglu => rows / 2,
    }
}

/// Blocks of the narrow kernel: one for each `rows` weight rows of a group that has tokens.
fn blocks(gemm: &GroupedGemm, rows: usize) -> usize {
    let busy = gemm.groups.iter().filter(|shape| shape.m > 0);
    busy.map(|shape| shape.n.div_ceil(rows)).sum()
}

/// Blocks of the narrow kernel that run at the same time: see [`narrow_depth`].
fn blocks_at_once(form: Form, processors: u32) -> usize {
    let on_each = match form {
        Form::Plain => 1,
        Form::Swiglu => 2,
    };
    on_each * processors as usize
}

/// A warp of the narrow kernel takes 128 values of each step's depth. In the plain form sixteen warps fill a
/// multiprocessor. A launch that begins before the previous one has ended then cannot place two blocks on a
/// multiprocessor that has become free and none on another. Measured on an H200 (M = 16, N = 4096, K = 7168): 9.5 µs,
/// and 15.4 µs with eight warps and four stages. The dual form has twice the blocks, and they run in pairs.
fn narrow_depth(form: Form) -> usize {
    match form {
        Form::Plain => 2048,
        Form::Swiglu => 1024,
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;
    use gauntlet_operations::{OutputFormat, TokenFormat};

    use super::*;
    use crate::plan::{self, Source};

    const PROCESSORS: u32 = 132;

    fn gemm(tokens: &[usize], [n, k]: [usize; 2], form: Form) -> GroupedGemm {
        GroupedGemm::new(form, tokens.iter().map(|&m| [m, n, k]))
    }

    /// The kernel, and the tokens of a block if it is the narrow one.
    fn chosen(tokens: &[usize], sizes: [usize; 2], form: Form) -> (Source, Option<String>) {
        let gemm = gemm(tokens, sizes, form);
        let target = Target::hopper(PROCESSORS);
        let schedule = Choice::Automatic.schedule(&gemm, target);
        let plan = plan::plan(&Operation::GroupedGemm(gemm), &schedule, target).unwrap();
        let variant = plan.variant();
        (variant.source, variant.defines.get("TOKENS").cloned())
    }

    #[test]
    fn the_kernel_follows_the_largest_group() {
        for form in [Form::Plain, Form::Swiglu] {
            let chosen = |tokens: &[usize]| chosen(tokens, [2048, 7168], form);
            assert_eq!(chosen(&[0]), (Source::Narrow, Some("8".to_owned())));
            assert_eq!(chosen(&[1, 8, 3]), (Source::Narrow, Some("8".to_owned())));
            assert_eq!(chosen(&[1, 16]), (Source::Narrow, Some("16".to_owned())));
            assert_eq!(chosen(&[1, 17]), (Source::Swapped, None));
            assert_eq!(chosen(&[5000]), (Source::Swapped, None));
        }
    }

    /// For 4096×7168 an H100 takes 7.6 to 9.3 µs and an H200 7.1 to 8.9; for its dual form 12.7 to 14.7 and 10.7 to
    /// 13.8 (`results/h100/gemm-beside-torch/2026-11-24.json`, `results/h200/decode-beside-torch/2026-11-24.json`). That is
    /// up to 3.1 TB/s of weights, so no other kernel can gain much.
    #[test]
    fn one_product_of_few_blocks_takes_the_narrow_kernel() {
        for tokens in [1, 7, 8, 16] {
            for sizes in [[4096, 7168], [4096, 4096], [8192, 8192], [8192, 28672]] {
                assert_eq!(
                    chosen(&[tokens], sizes, Form::Plain).0,
                    Source::Narrow,
                    "{tokens}, {sizes:?}"
                );
            }
            assert_eq!(chosen(&[tokens], [4096, 7168], Form::Swiglu).0, Source::Narrow);
        }
    }

    #[test]
    fn one_product_of_many_blocks_takes_the_swapped_kernel() {
        for tokens in [1, 7, 16] {
            for sizes in [[14336, 4096], [28672, 8192]] {
                assert_eq!(
                    chosen(&[tokens], sizes, Form::Plain).0,
                    Source::Swapped,
                    "{tokens}, {sizes:?}"
                );
            }
        }
    }

    /// Products of DeepSeek-V3 (all 256 experts, or the 32 of one GPU out of eight) and of Qwen3-235B (all 128, or 16), with two
    /// thirds of the experts busy.
    #[test]
    fn mixtures_of_experts_take_the_swapped_kernel() {
        let shapes = [
            (32, [4096, 7168]),
            (32, [7168, 2048]),
            (256, [4096, 7168]),
            (256, [7168, 2048]),
            (128, [3072, 4096]),
            (128, [4096, 1536]),
            (16, [3072, 4096]),
            (16, [4096, 1536]),
        ];
        for (experts, sizes) in shapes {
            for most in [4, 16] {
                let tokens: Vec<_> = (0..experts).map(|expert| expert % 3 * most / 2).collect();
                for form in [Form::Plain, Form::Swiglu] {
                    let chosen = chosen(&tokens, sizes, form).0;
                    assert_eq!(chosen, Source::Swapped, "{experts} experts, {sizes:?}, {form:?}");
                }
            }
        }
    }

    #[test]
    fn tokens_of_sixteen_bits_take_the_swapped_kernel() {
        let gemm = GroupedGemm {
            tokens: TokenFormat::Bf16,
            ..gemm(&[1], [4096, 4096], Form::Plain)
        };
        let target = Target::hopper(PROCESSORS);
        let schedule = Choice::Automatic.schedule(&gemm, target);
        let plan = plan::plan(&Operation::GroupedGemm(gemm), &schedule, target).unwrap();
        assert_eq!(plan.variant().source, Source::Swapped);
    }

    #[test]
    fn repacked_weights_are_in_steps_where_tokens_need_no_launch() {
        let hopper = Target::hopper(PROCESSORS);
        let before = Target::of(&Device::builtin("a100").unwrap()).unwrap();
        for (tokens, depths, target, packing) in [
            (TokenFormat::Bf16, [4096, 4096], hopper, Packing::Steps),
            (TokenFormat::F16, [4096, 4096], hopper, Packing::Steps),
            (TokenFormat::Bf16, [4096, 2048], hopper, Packing::Fragments),
            (TokenFormat::Nvfp4, [4096, 4096], hopper, Packing::Fragments),
            (TokenFormat::Bf16, [4096, 4096], before, Packing::Fragments),
        ] {
            let mut layer = GroupedGemm {
                tokens,
                ..gemm(&[1, 20], [4096, 4096], Form::Plain)
            };
            layer.groups[1].k = depths[1];
            assert_eq!(super::packing(&layer, target), packing);
            for other in [Packing::Steps, Packing::Fragments] {
                let schedule = Choice::Repacked(other).schedule(&layer, target);
                assert_eq!(schedule.packing, other);
                let plan = plan::plan(&Operation::GroupedGemm(layer.clone()), &schedule, target);
                // Fragments are read by every kernel, steps where they are best.
                match plan {
                    Ok(plan) if plan.variant().source == Source::Swapped => {
                        assert_eq!(plan.preparation().is_none(), other == Packing::Steps);
                    }
                    Ok(_) => assert_eq!(other, Packing::Fragments),
                    Err(error) => {
                        assert_eq!((other, packing), (Packing::Steps, Packing::Fragments));
                        assert!(error.to_string().starts_with("packing = steps: "), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn gpus_before_hopper_and_after_it_have_a_kernel_for_every_call() {
        for name in ["a100", "l4", "b200"] {
            // As layers are planned.
            let target = Target::of(&Device::builtin(name).unwrap())
                .unwrap()
                .for_common_kernels();
            for form in [Form::Plain, Form::Swiglu] {
                for (format, output) in [
                    (TokenFormat::Nvfp4, OutputFormat::F16),
                    (TokenFormat::Bf16, OutputFormat::Bf16),
                ] {
                    for (tokens, source) in [
                        ([0, 1], Source::Narrow),
                        ([3, 16], Source::Narrow),
                        ([1, 17], Source::Unified),
                        ([64, 8], Source::Unified),
                        ([0, 5000], Source::Unified),
                    ] {
                        let gemm = GroupedGemm {
                            tokens: format,
                            output,
                            ..gemm(&tokens, [4096, 7168], form)
                        };
                        for choice in [Choice::Automatic, Choice::Repacked(Packing::Fragments)] {
                            let schedule = choice.schedule(&gemm, target);
                            let plan = plan::plan(&Operation::GroupedGemm(gemm.clone()), &schedule, target);
                            let plan = plan.unwrap_or_else(|error| panic!("{name}, {schedule}: {error}"));
                            assert_eq!(plan.variant().source, source, "{name}, {tokens:?}");
                            assert!(plan.variants().iter().all(|variant| !variant.overlaps()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn blackwell_has_the_native_kernel_for_every_call_with_nvfp4_tokens() {
        let target = Target::of(&Device::builtin("b200").unwrap()).unwrap();
        for form in [Form::Plain, Form::Swiglu] {
            for (tokens, shape, parts) in [
                ([0, 1], [4096, 7168], 4),
                ([3, 16], [16384, 64], 1),
                ([80, 248], [16384, 7168], 1),
                ([0, 5000], [512, 256], 1),
            ] {
                let gemm = gemm(&tokens, shape, form);
                let schedule = Choice::Automatic.schedule(&gemm, target);
                let plan = plan::plan(&Operation::GroupedGemm(gemm), &schedule, target);
                let plan = plan.unwrap_or_else(|error| panic!("{schedule}: {error}"));
                assert_eq!(plan.variant().source, Source::Native);
                assert_eq!(schedule.split_k, parts, "{tokens:?}");
            }
        }
    }

    #[test]
    fn experts_without_tokens_do_not_count() {
        let mut tokens = vec![0; 128];
        tokens[77] = 1;
        assert_eq!(chosen(&tokens, [4096, 1536], Form::Plain).0, Source::Narrow);
    }
}
