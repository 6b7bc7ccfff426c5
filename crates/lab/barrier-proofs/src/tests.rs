//! Compares the search with one without its shortcuts: every event is a separate move, and so is the end of an engine's
//! work, at any time after its start.

use std::collections::HashSet;

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_problems::{Attention, AttentionFormat, Form, GroupedGemm, Operation};
use gauntlet_problems::{Epilogue, Order, Roles, Schedule, Tile};
use gauntlet_tile_program::{Action, Statement, TileProgram};
use proptest::prelude::*;

use super::explore::explore;
use super::links::{At, Links};
use super::unroll::Block;

/// The number of states after which a case is given up.
const MOST: usize = 200_000;

/// Each warp's position, and which engines' work is done.
type State = (Vec<usize>, Vec<bool>);

struct Plain<'a> {
    program: &'a TileProgram,
    block: &'a Block,
    links: &'a Links,
    /// The work of engines.
    works: Vec<At>,
}

impl Plain<'_> {
    /// Whether there is a flaw; `None` if there are too many states to tell.
    fn is_flawed(&self) -> Option<bool> {
        let start = (vec![0; self.block.agents.len()], vec![false; self.works.len()]);
        let mut seen = HashSet::from([start.clone()]);
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            let Some(next) = self.successors(&state) else {
                return Some(true);
            };
            for state in next {
                if seen.insert(state.clone()) {
                    open.push(state);
                }
            }
            if seen.len() > MOST {
                return None;
            }
        }
        Some(false)
    }

    /// The possible next states; `None` if there is a flaw.
    fn successors(&self, state: &State) -> Option<Vec<State>> {
        let (made, done) = state;
        let mut next = Vec::new();
        for agent in 0..made.len() {
            let Some(event) = self.block.agents[agent].events.get(made[agent]) else {
                continue;
            };
            let role = self.block.agents[agent].role;
            let at = (agent, made[agent]);
            let members: Vec<usize> = match event.operation {
                Action::Synchronise => (0..made.len()).collect(),
                Action::SynchroniseRole => (0..made.len())
                    .filter(|other| self.block.agents[*other].role == role)
                    .collect(),
                _ => vec![agent],
            };
            if members.len() > 1 || matches!(event.operation, Action::Synchronise | Action::SynchroniseRole) {
                if event.divergent && self.program.roles[role].warps > 1 {
                    return None;
                }
                let same = |other: &usize| {
                    let there = self.block.agents[*other].events.get(made[*other]);
                    there.is_some_and(|there| there.operation == event.operation)
                };
                if !members.iter().all(same) {
                    continue;
                }
            } else if !self.can_pass(at, state) {
                continue;
            }
            let needs = &self.links.at(at).needs;
            if needs.iter().any(|need| !self.is_done(need.of, state)) {
                return None;
            }
            let mut after = state.clone();
            members.iter().for_each(|member| after.0[*member] += 1);
            next.push(after);
        }
        let through = (0..made.len()).all(|agent| made[agent] == self.block.agents[agent].events.len());
        if (next.is_empty()
            && !through
            && done
                .iter()
                .zip(&self.works)
                .all(|(done, at)| *done || made[at.0] <= at.1))
            || (through && self.left_under_way())
        {
            return None;
        }
        for (index, work) in self.works.iter().enumerate() {
            if !done[index] && made[work.0] > work.1 {
                let mut after = state.clone();
                after.1[index] = true;
                next.push(after);
            }
        }
        Some(next)
    }

    fn left_under_way(&self) -> bool {
        self.works
            .iter()
            .any(|work| self.links.at(*work).forced_by.is_empty())
    }

    fn can_pass(&self, at: At, state: &State) -> bool {
        let link = self.links.at(at);
        let signalled = link
            .signals
            .as_ref()
            .is_some_and(|signals| signals.iter().all(|signal| state.0[signal.0] > signal.1));
        signalled && link.forces.iter().all(|work| self.is_done(*work, state))
    }

    fn is_done(&self, event: At, (made, done): &State) -> bool {
        match self.works.iter().position(|work| *work == event) {
            Some(index) => done[index],
            None => made[event.0] > event.1,
        }
    }
}

fn agree(program: &TileProgram, tiles: &[usize]) -> Result<bool, TestCaseError> {
    let block = Block::of(program, tiles);
    let links = Links::of(program, &block);
    let works = block
        .events()
        .map(|(agent, index, _)| (agent, index))
        .filter(|at| links.at(*at).asynchronous);
    let plain = Plain {
        program,
        block: &block,
        links: &links,
        works: works.collect(),
    };
    let Some(flawed) = plain.is_flawed() else {
        return Ok(false);
    };
    let found = explore(program, &block).err();
    prop_assert_eq!(flawed, found.is_some(), "{:?} {:#?}\n{:?}", tiles, program, found);
    Ok(flawed)
}

fn problem(attention: bool) -> Operation {
    if attention {
        Operation::Attention(Attention::new(AttentionFormat::F16, [[128, 512]], [1, 1], 64))
    } else {
        Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [[128, 64, 512]]))
    }
}

prop_compose! {
    fn shipped()(
        arch in prop::sample::select(vec![Arch::Cpu, Arch::Sm80, Arch::Sm90a, Arch::Sm100a]),
        attention: bool,
        stages in 1_usize..4,
        specialised: bool,
        staged: bool,
        swap_ab: bool,
    ) -> TileProgram {
        let schedule = Schedule {
            tile: Tile { m: 128, n: 64, k: 64 },
            stages,
            roles: if specialised { Roles::Specialised } else { Roles::Unified },
            epilogue: if staged { Epilogue::Staged } else { Epilogue::Direct },
            order: Order::Static,
            swap_ab: swap_ab && !attention,
            ..Schedule::baseline()
        };
        operations::problem(&problem(attention)).model().program(&schedule, arch)
    }
}

/// Removes statement number `nth` of the text, or swaps it with the next one of its body.
fn disturb(body: &mut Vec<Statement>, nth: &mut usize, take_out: bool) -> bool {
    for index in 0..body.len() {
        if *nth == 0 {
            if take_out {
                body.remove(index);
            } else if index + 1 < body.len() {
                body.swap(index, index + 1);
            }
            return true;
        }
        *nth -= 1;
        if let Statement::Repeat(_, inner) | Statement::If(_, inner) = &mut body[index]
            && disturb(inner, nth, take_out)
        {
            return true;
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn short_cuts_miss_nothing_and_invent_nothing(
        program in shipped(),
        disturbances in prop::collection::vec((0_usize..4, 0_usize..24, prop::bool::ANY), 0..3),
        tiles in prop::sample::select(vec![vec![1], vec![2], vec![3], vec![1, 1], vec![2, 1]]),
    ) {
        let mut program = program;
        for (role, mut nth, take_out) in disturbances {
            let roles = program.roles.len();
            disturb(&mut program.roles[role % roles].body, &mut nth, take_out);
        }
        agree(&program, &tiles)?;
    }
}
