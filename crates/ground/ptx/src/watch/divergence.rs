//! Barriers that some of the threads pass by.

use std::collections::HashMap;

use super::Watch;
use crate::block::WARP;
use crate::instruction::{Instruction, Operation, Own};

/// What is known of the code around barriers.
#[derive(Debug, Default)]
pub(super) struct Divergence {
    /// For a kernel, an instruction and a barrier: whether a thread that stands there can end without having met at the barrier only
    /// by having gone around it.
    around: HashMap<(usize, usize, usize), bool>,
}

/// How threads diverge at a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Diverged {
    /// A lane of the same warp is at another barrier of the same number.
    Elsewhere { thread: usize, at: usize },
    /// A thread has gone around the barrier and ended.
    Around { thread: usize },
}

impl Watch {
    /// Whether the threads that go on from a numbered barrier met there as they should: all lanes of a warp at the same instruction,
    /// and, at a barrier of the whole block, no thread that has ended without it, unless it left early. Returns a thread that met,
    /// its instruction, and how another one diverges.
    pub fn diverged(
        &mut self,
        (block, number): (usize, u64),
        instructions: &[Instruction],
        has_ended: impl Fn(usize) -> bool,
    ) -> Option<(usize, usize, Diverged)> {
        let meeting = self.meetings.get(&(block, number))?;
        let aligned = |at: usize| match &instructions[at].operation {
            Operation::Meet {
                threads, is_aligned, ..
            } => (*is_aligned, threads.is_none()),
            _ => (false, false),
        };
        let mut met = vec![None; self.threads[block].len()];
        for arrival in &meeting.arrived {
            met[arrival.thread] = Some(arrival.at);
        }
        for warp in met
            .chunks(WARP)
            .enumerate()
            .map(|(warp, lanes)| (warp * WARP, lanes))
        {
            let (first, lanes) = warp;
            let mut places = lanes
                .iter()
                .enumerate()
                .filter_map(|(lane, at)| Some((first + lane, (*at)?)));
            let Some((one, at)) = places.next() else {
                continue;
            };
            if let Some((thread, other)) = places.find(|(_, other)| *other != at)
                && aligned(at).0
            {
                return Some((one, at, Diverged::Elsewhere { thread, at: other }));
            }
        }
        let (thread, at) = met
            .iter()
            .enumerate()
            .find_map(|(thread, at)| Some((thread, (*at)?)))?;
        if aligned(at) != (true, true) {
            return None;
        }
        let launch = self.launches[block];
        for other in (0..met.len()).filter(|other| met[*other].is_none() && has_ended(*other)) {
            let from = self.threads[block][other].passed;
            let around = self.divergence.around.entry((launch, from, at));
            if *around.or_insert_with(|| goes_around(instructions, from, at)) {
                return Some((thread, at, Diverged::Around { thread: other }));
            }
        }
        None
    }
}

/// The instructions that may come next.
fn next(instructions: &[Instruction], at: usize) -> impl Iterator<Item = usize> {
    let instruction = &instructions[at];
    let (jump, falls) = match instruction.operation {
        Operation::Own(Own::Branch(target)) => (Some(target), instruction.guard.is_some()),
        Operation::Exit | Operation::Trap => (None, instruction.guard.is_some()),
        _ => (None, true),
    };
    let count = instructions.len();
    jump.into_iter()
        .chain(falls.then_some(at + 1))
        .filter(move |next| *next < count)
}

/// Whether the code from an instruction on does nothing but end the thread.
fn only_ends(instructions: &[Instruction], mut at: usize) -> bool {
    while let Some(instruction) = instructions.get(at) {
        match instruction.operation {
            Operation::Exit => return instruction.guard.is_none(),
            Operation::Own(Own::Nothing) => at += 1,
            Operation::Own(Own::Branch(target)) if instruction.guard.is_none() && target > at => at = target,
            _ => return false,
        }
    }
    false
}

/// Whether a thread that goes from an instruction to its end without a barrier has gone around it: on no way does it leave early, where
/// others go on to the barrier.
fn goes_around(instructions: &[Instruction], from: usize, barrier: usize) -> bool {
    let mut reaches = vec![false; instructions.len()];
    reaches[barrier] = true;
    let mut is_new = true;
    while std::mem::take(&mut is_new) {
        for at in (0..instructions.len()).rev() {
            if !reaches[at] && next(instructions, at).any(|next| reaches[next]) {
                (reaches[at], is_new) = (true, true);
            }
        }
    }
    let (mut seen, mut waiting) = (vec![false; instructions.len()], vec![from]);
    while let Some(at) = waiting.pop() {
        if at >= instructions.len() || std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let is_guarded = instructions[at].guard.is_some();
        let leaves = match instructions[at].operation {
            Operation::Exit => is_guarded,
            Operation::Own(Own::Branch(target)) => {
                is_guarded && (only_ends(instructions, target) || only_ends(instructions, at + 1))
            }
            _ => false,
        };
        if leaves && reaches[at] {
            return false;
        }
        // A guarded barrier is gone around by a lane whose guard does not hold.
        if at != barrier || is_guarded {
            waiting.extend(next(instructions, at));
        }
    }
    true
}
