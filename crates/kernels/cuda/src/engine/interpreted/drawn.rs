//! Randomly drawn problems. Each takes about a second, so these tests are run when kernels change.

use gauntlet_device::Arch;
use gauntlet_problems::resources::is_narrow;
use gauntlet_problems::{Attention, GemmShape, GroupedGemm, Operation, Order, Packing, Sequence};
use gauntlet_task::InputKind;
use proptest::prelude::*;
use proptest::sample::select;

use super::{compiler, narrowed, target, wrong_on};
use crate::plan;
use crate::shipped::{Shipped, shipped};

/// Steps in which a failing problem is made smaller.
const SHRINKS: u32 = 16;
/// Most tokens of the kernel for few.
const FEW_TOKENS: usize = 16;

/// Often none or one, else up to `most`.
fn ragged(most: usize) -> impl Strategy<Value = usize> {
    prop_oneof![1 => 0_usize..2, 4 => 1..=most]
}

/// A shipped variant with groups of random sizes; swapped variants also split the depth.
fn of_gemm(one: &Shipped, gemm: &GroupedGemm) -> BoxedStrategy<(Shipped, Operation)> {
    let narrow = is_narrow(&one.schedule);
    let tokens = ragged(if narrow { FEW_TOKENS } else { 140 });
    let rows = prop_oneof![1_usize..300, (1_usize..3).prop_map(|blocks| 128 * blocks)];
    let shape = (tokens, rows, 1_usize..80).prop_map(|(m, n, blocks)| GemmShape { m, n, k: 16 * blocks });
    let splits = one.schedule.order == Order::Sorted && one.schedule.swap_ab && !narrow;
    let parts = if splits { 1..5_usize } else { 1..2 };
    let (one, gemm) = (one.clone(), gemm.clone());
    (prop::collection::vec(shape, 1..6), parts)
        .prop_map(move |(mut groups, parts)| {
            let mut one = one.clone();
            if one.schedule.packing == Packing::Steps {
                let k = groups[0].k;
                groups.iter_mut().for_each(|shape| shape.k = k);
            }
            if splits {
                one.schedule.split_k = parts;
            }
            (one, Operation::GroupedGemm(GroupedGemm { groups, ..gemm }))
        })
        .boxed()
}

/// A shipped variant with sequences of random lengths.
fn of_attention(one: &Shipped, attention: &Attention) -> BoxedStrategy<(Shipped, Operation)> {
    let sequence = (ragged(300), ragged(400)).prop_map(|(queries, keys)| Sequence { queries, keys });
    let (one, attention) = (one.clone(), attention.clone());
    (prop::collection::vec(sequence, 1..4), 1_usize..3, 1_usize..3)
        .prop_map(move |(sequences, kv_heads, share)| {
            let drawn = Attention {
                sequences,
                heads: kv_heads * share,
                kv_heads,
                ..attention
            };
            (one.clone(), Operation::Attention(drawn))
        })
        .boxed()
}

fn drawn() -> impl Strategy<Value = (Arch, Shipped, Operation)> {
    select(vec![Arch::Sm80, Arch::Sm89, Arch::Sm90a, Arch::Sm100a]).prop_flat_map(|arch| {
        let of_arch = select(shipped(arch)).prop_flat_map(|one| match &one.problem {
            Operation::GroupedGemm(gemm) => of_gemm(&one, gemm),
            Operation::Attention(attention) => of_attention(&one, attention),
        });
        of_arch.prop_map(move |(one, problem)| (arch, one, problem))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: SHRINKS, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every kernel on problems of any sizes that its plan takes.
    #[test]
    #[ignore = "a second a problem, of which PROPTEST_CASES says how many"]
    fn a_drawn_problem_is_right((arch, one, problem) in drawn(), inputs in select(InputKind::ALL.to_vec())) {
        let Some(compiler) = compiler() else { return Ok(()) };
        prop_assume!(plan::plan(&problem, &narrowed(&one.schedule), target(arch)).is_ok());
        prop_assert_eq!(wrong_on(&compiler, arch, &one, problem, inputs), None);
    }
}
