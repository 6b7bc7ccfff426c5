//! Attention at the limits of the exponentials.

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_problems::{Attention, AttentionFormat, Exponential, Inputs, Operation};
use gauntlet_task::InputKind;
use rayon::prelude::*;

use super::{compiler, sequences, small_attention, wrong_on, wrong_with};
use crate::shipped::{Shipped, shipped};

/// The shipped variants of attention in bf16 of these sequences, each with `exponentials` exponentials in turn.
fn in_bf16(causal: bool, lengths: [(usize, usize); 2], exponentials: usize) -> Vec<(Shipped, Operation)> {
    let mut found = Vec::new();
    let mut exponential = [Exponential::Hardware, Exponential::Polynomial, Exponential::Table]
        .into_iter()
        .cycle();
    for one in shipped(Arch::Sm90a) {
        let Operation::Attention(attention) = &one.problem else {
            continue;
        };
        if attention.format != AttentionFormat::Bf16 || attention.causal != causal {
            continue;
        }
        let problem = Attention {
            sequences: sequences(lengths),
            ..small_attention(attention)
        };
        for exponential in exponential.by_ref().take(exponentials) {
            let mut one = one.clone();
            one.schedule.exponential = exponential;
            one.name = format!("{}, {exponential}", one.name);
            found.push((one, Operation::Attention(problem.clone())));
        }
    }
    assert!(found.len() >= 3 * exponentials, "{}", found.len());
    found
}

/// With a mask and more queries than keys, the first rows see no key. Their result must be 0, whatever the exponential
/// returns for −∞.
fn interpret_rows_without_keys(exponentials: usize) {
    let Some(compiler) = compiler() else { return };
    let wrong: Vec<_> = in_bf16(true, [(193, 129), (140, 5)], exponentials)
        .into_par_iter()
        .filter_map(|(one, problem)| wrong_on(&compiler, Arch::Sm90a, &one, problem, InputKind::Competition))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_that_see_no_key_are_zero() {
    interpret_rows_without_keys(1);
}

#[test]
#[ignore = "minutes: every variant with every exponential"]
fn rows_that_see_no_key_are_zero_with_every_exponential() {
    interpret_rows_without_keys(3);
}

/// One score is about 260 powers of two larger than all earlier ones, more than the argument of an exponential may be.
/// The result of the polynomial or the table then no longer shows how large the weight is; a later score that is
/// smaller by about six powers would give the same.
fn interpret_leaping_scores(exponentials: usize) {
    let Some(compiler) = compiler() else { return };
    let wrong: Vec<_> = in_bf16(false, [(70, 301), (65, 290)], exponentials)
        .into_par_iter()
        .filter_map(|(one, problem)| {
            // Not in the first run of keys, and at even and odd places of a lane's own.
            let sets = [[140, 141], [148, 149]].map(|leaps| leaping(&problem, leaps));
            wrong_with(
                &compiler,
                Arch::Sm90a,
                &one,
                &problem,
                InputKind::Competition,
                &sets,
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_score_that_leaps_is_taken_by_its_maximum() {
    interpret_leaping_scores(1);
}

#[test]
#[ignore = "minutes: every variant with every exponential"]
fn a_score_that_leaps_is_taken_by_its_maximum_with_every_exponential() {
    interpret_leaping_scores(3);
}

/// All queries are 4; of each sequence's keys one is 4, a later one a little less, and the others 0.
fn leaping(problem: &Operation, leaps: [usize; 2]) -> Inputs {
    let mut inputs = operations::generate(problem, InputKind::Competition, 7);
    let (Operation::Attention(attention), Inputs::Attention(operands)) = (problem, &mut inputs) else {
        panic!("the inputs are of another family")
    };
    let fill = |row: &mut [u8], element: f32| {
        let bf16 = (element.to_bits() >> 16) as u16;
        row.as_chunks_mut().0.fill(bf16.to_le_bytes());
    };
    fill(&mut operands.query.bytes, 4.0);
    let mut keys = operands.key.bytes.chunks_exact_mut(2 * attention.head_size);
    for (sequence, leap) in attention.sequences.iter().zip(leaps) {
        for position in (0..attention.kv_heads).flat_map(|_| 0..sequence.keys) {
            let row = keys.next().expect("a row for each head and key");
            let element = match position.checked_sub(leap) {
                Some(0) => 4.0,
                Some(128) => 3.906_25,
                _ => 0.0,
            };
            fill(row, element);
        }
    }
    inputs
}
