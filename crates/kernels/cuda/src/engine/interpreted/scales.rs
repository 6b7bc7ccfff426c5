//! Scales of whole tensors, as serving engines bring them: one in memory for all heads, or a number of the launch.

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_problems::{
    Attention, AttentionFormat, AttentionInputs, Inputs, Operation, OutputFormat, Scaling, Sequence,
};
use gauntlet_task::InputKind;

use super::{Kernels, compiler, target, wrong_kernels};
use crate::plan::{Source, attention::automatic};
use crate::shipped::Shipped;

/// Sequences, heads, queries and keys for which each kernel is chosen.
const CASES: [(Source, usize, [usize; 2], [usize; 2]); 3] = [
    (Source::AttentionUnified, 2, [4, 2], [3, 300]),
    (Source::AttentionSpecialised, 2, [2, 1], [130, 200]),
    (Source::AttentionResident, 1, [1, 1], [40, 200]),
];

#[test]
fn scales_of_whole_tensors_are_one_in_memory_or_numbers() {
    for (source, batch, [heads, kv_heads], [queries, keys]) in CASES {
        for format in [AttentionFormat::E4m3, AttentionFormat::Int8] {
            let attention = Attention {
                sequences: vec![Sequence { queries, keys }; batch],
                heads,
                kv_heads,
                head_size: 64,
                causal: true,
                format,
                scaling: Scaling::PerTensor,
                output: OutputFormat::F16,
            };
            check(source, attention);
        }
    }
}

fn check(source: Source, attention: Attention) {
    let Some(compiler) = compiler() else { return };
    let schedule = automatic(&attention, target(Arch::Sm90a));
    let one = Shipped {
        name: format!("{attention} by {schedule}"),
        problem: Operation::Attention(attention),
        schedule,
    };
    let mut kernels = Kernels::new(&compiler, &one.problem, &one.schedule, Arch::Sm90a);
    assert_eq!(kernels.plan.variant().source, source);
    let sets = [3, 4].map(|seed| operations::generate(&one.problem, InputKind::Competition, seed));
    assert_eq!(
        wrong_kernels(&kernels, &one, InputKind::Competition, &sets, 0..1),
        None
    );

    let expected = bits(&kernels, &sets[0]);
    let Inputs::Attention(mut operands) = sets[0].clone() else {
        panic!("the inputs are of another family");
    };
    let numbers = [&operands.query, &operands.key, &operands.value].map(|tensor| tensor.scales[0]);
    // The interpreter refuses reads beyond the only one.
    let AttentionInputs { query, key, value } = &mut operands;
    for tensor in [query, key, value] {
        tensor.scales.truncate(1);
    }
    let inputs = Inputs::Attention(operands);
    assert!(bits(&kernels, &inputs) == expected, "{}: one in memory", one.name);
    kernels.factors = Some(numbers);
    assert!(bits(&kernels, &inputs) == expected, "{}: numbers", one.name);
}

fn bits(kernels: &Kernels, inputs: &Inputs) -> Vec<u8> {
    let outputs = kernels.run(std::slice::from_ref(inputs), 1).unwrap();
    outputs[0].bytes.clone()
}
