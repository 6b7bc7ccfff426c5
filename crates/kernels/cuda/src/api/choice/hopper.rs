//! The choice on Hopper.

use gauntlet_problems::{Epilogue, Form, GroupedGemm, Lookup, Order, Roles, Schedule, Setup, Tile};

use super::{NARROW, rows};

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

/// The narrow kernel for few tokens in few blocks, else the swapped one.
pub(super) fn automatic(gemm: &GroupedGemm, processors: u32) -> Schedule {
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

/// The swapped kernel with balanced work.
pub(super) fn swapped(form: Form) -> Schedule {
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
    use gauntlet_problems::{Operation, TokenFormat};

    use super::*;
    use crate::api::Choice;
    use crate::api::choice::tests::{PROCESSORS, gemm};
    use crate::plan::{self, Source, Target};

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
    fn experts_without_tokens_do_not_count() {
        let mut tokens = vec![0; 128];
        tokens[77] = 1;
        assert_eq!(chosen(&tokens, [4096, 1536], Form::Plain).0, Source::Narrow);
    }
}
