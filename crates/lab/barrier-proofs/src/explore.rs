//! The breadth-first search; the first flaw that it finds is reached in the fewest moves.

use std::collections::HashSet;
use std::rc::Rc;

use gauntlet_tile_program::{Action, CopyMethod, TileProgram};

use super::flaw::{Flaw, FlawKind};
use super::links::{At, Links, Need, is_group_copy};
use super::moves::{Barrier, Move, Moves};
use super::narrate::Narrator;
use super::streamed;
use super::unroll::{Block, Event};

/// The number of moves that each warp has made.
type State = Rc<[u16]>;

/// The result of a search that found no flaw.
pub(super) struct Explored {
    /// The number of states that the block can reach.
    pub(super) states: usize,
    /// The flaw that products exist but none ever overlaps a copy of operands.
    pub(super) idle: Option<Box<Flaw>>,
}

/// Explores all executions of the block. If there is a flaw, searches again without making moves early, to find the
/// shortest path to a flaw. Divergent barriers are reported first: the races they cause are symptoms.
pub(super) fn explore(program: &TileProgram, block: &Block) -> Result<Explored, Box<Flaw>> {
    let links = Links::of(program, block);
    let divergent = |(_, _, event): (usize, usize, &Event)| {
        event.divergent && matches!(event.operation, Action::Synchronise | Action::SynchroniseRole)
    };
    if block.events().any(divergent) {
        search(program, block, &links, Purpose::Barriers)?;
    }
    search(program, block, &links, Purpose::Proof)
        .or_else(|_| search(program, block, &links, Purpose::ShortestWay))
}

/// The goal of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Decide whether there is a flaw, with few states.
    Proof,
    /// Find the flaw that takes the fewest moves.
    ShortestWay,
    /// Find the nearest barrier inside a condition, regardless of other flaws.
    Barriers,
}

fn search(
    program: &TileProgram,
    block: &Block,
    links: &Links,
    purpose: Purpose,
) -> Result<Explored, Box<Flaw>> {
    let mut search = Search {
        program,
        block,
        moves: Moves::of(block, links),
        links,
        purpose,
        nodes: Vec::new(),
        seen: HashSet::new(),
        overlaps: false,
        first_product: None,
    };
    search.run()?;
    let alone = search.first_product.filter(|_| !search.overlaps);
    Ok(Explored {
        states: search.nodes.len(),
        idle: alone.map(|(node, at)| search.flaw(FlawKind::NothingOverlaps, node, at, None)),
    })
}

/// A state, and how it was reached.
struct Node {
    state: State,
    /// The node before, and the warp that moved.
    before: Option<(usize, usize)>,
}

struct Search<'a> {
    program: &'a TileProgram,
    block: &'a Block,
    links: &'a Links,
    moves: Moves,
    purpose: Purpose,
    nodes: Vec<Node>,
    seen: HashSet<State>,
    /// Whether a product was seen to overlap a copy.
    overlaps: bool,
    /// The node and event of the first product.
    first_product: Option<(usize, At)>,
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), Box<Flaw>> {
        self.add(vec![0; self.block.agents.len()].into(), None);
        let mut next = 0;
        while next < self.nodes.len() {
            self.expand(next)?;
            next += 1;
        }
        Ok(())
    }

    fn add(&mut self, state: State, before: Option<(usize, usize)>) {
        if self.seen.insert(Rc::clone(&state)) {
            self.nodes.push(Node { state, before });
        }
    }

    /// Makes every possible move from a state.
    fn expand(&mut self, node: usize) -> Result<(), Box<Flaw>> {
        let state = Rc::clone(&self.nodes[node].state);
        let agents = self.block.agents.len();
        let mut movable = Vec::with_capacity(agents);
        let mut eager = None;
        for agent in 0..agents {
            // Of two warps that are alike, the first is never behind.
            if self.block.agents[agent].alike && state[agent] == state[agent - 1] {
                continue;
            }
            let Some(part) = self.moves.get(agent, state[agent].into()) else {
                continue;
            };
            match part.barrier {
                Some(barrier) => {
                    let at = (agent, part.first);
                    if self.diverges(at) {
                        return Err(self.flaw(FlawKind::DivergentBarrier, node, at, None));
                    }
                    let together = self.members(agent, barrier);
                    if together[0] == agent && self.are_at(&state, &together, barrier) {
                        movable.push((agent, together));
                    }
                }
                None if is_enabled(part, &state) => {
                    if self.purpose == Purpose::Proof && part.eager {
                        eager = Some(movable.len());
                    }
                    movable.push((agent, vec![agent]));
                }
                None => {}
            }
        }
        if movable.is_empty() {
            return self.end(node, &state);
        }
        if !self.overlaps {
            self.overlaps = self.loads_beside_product(&state, &movable);
        }
        if let Some(eager) = eager {
            movable = vec![movable.swap_remove(eager)];
        }
        for (agent, together) in movable {
            self.perform(node, &state, agent)?;
            let mut after: Vec<u16> = state.to_vec();
            for member in together {
                after[member] += 1;
            }
            self.add(after.into(), Some((node, agent)));
        }
        Ok(())
    }

    /// Handles a state without possible moves: the end of the block, or a deadlock.
    fn end(&self, node: usize, state: &State) -> Result<(), Box<Flaw>> {
        let waiting = (0..state.len()).find_map(|agent| {
            let part = self.moves.get(agent, state[agent].into())?;
            Some((agent, part.first))
        });
        if let Some(at) = waiting {
            return Err(self.flaw(FlawKind::Deadlock, node, at, None));
        }
        let left = self.block.events().find(|(agent, index, _)| {
            let link = self.links.at((*agent, *index));
            link.asynchronous && link.forced_by.is_empty()
        });
        match left {
            Some((agent, index, _)) => Err(self.flaw(FlawKind::LeftUnderWay, node, (agent, index), None)),
            None => Ok(()),
        }
    }

    /// Whether the event is inside a condition that not all warps of its role fulfil.
    fn diverges(&self, (agent, index): At) -> bool {
        let warp = &self.block.agents[agent];
        warp.events[index].divergent && self.program.roles[warp.role].warps > 1
    }

    fn members(&self, agent: usize, barrier: Barrier) -> Vec<usize> {
        let role = self.block.agents[agent].role;
        (0..self.block.agents.len())
            .filter(|other| barrier == Barrier::Block || self.block.agents[*other].role == role)
            .collect()
    }

    fn are_at(&self, state: &State, members: &[usize], barrier: Barrier) -> bool {
        members.iter().all(|&member| {
            let part = self.moves.get(member, state[member].into());
            part.is_some_and(|part| part.barrier == Some(barrier))
        })
    }

    /// Checks every event of a warp's next move against its needs.
    fn perform(&mut self, node: usize, state: &State, agent: usize) -> Result<(), Box<Flaw>> {
        let Some(part) = self.moves.get(agent, state[agent].into()) else {
            return Ok(());
        };
        for index in part.first..part.end {
            let at = (agent, index);
            let needs = &self.links.at(at).needs;
            if self.purpose != Purpose::Barriers
                && let Some(need) = needs.iter().find(|need| !self.is_done(need.of, state, at))
            {
                let kind = self.kind(need, state, at);
                return Err(self.flaw(kind, node, at, Some(*need)));
            }
            if !self.overlaps {
                let product = is_product(&self.block.agents[agent].events[index].operation);
                if product && self.first_product.is_none() {
                    self.first_product = Some((node, at));
                }
                self.overlaps = self.meets(at, state);
            }
        }
        Ok(())
    }

    /// Whether an event is past when `now` happens: by position within the same warp, by moves in another warp.
    fn is_past(&self, event: At, state: &State, now: At) -> bool {
        if event.0 == now.0 {
            event.1 < now.1
        } else {
            self.moves.is_past(event, state[event.0].into())
        }
    }

    /// Whether the work that an event began is certain to be done.
    fn is_done(&self, event: At, state: &State, now: At) -> bool {
        let link = self.links.at(event);
        self.is_past(event, state, now)
            && (!link.asynchronous || link.forced_by.iter().any(|wait| self.is_past(*wait, state, now)))
    }

    /// The kind of flaw of an unfulfilled need; distinguishes a missing commit from other reads of data that have not
    /// arrived.
    fn kind(&self, need: &Need, state: &State, now: At) -> FlawKind {
        let warp = &self.block.agents[need.of.0].events;
        let copy = is_group_copy(&warp[need.of.1].operation);
        if need.otherwise != FlawKind::ReadBeforeFull || !copy || !self.is_past(need.of, state, now) {
            return need.otherwise;
        }
        let past = (need.of.1 + 1..warp.len())
            .take_while(|index| self.is_past((need.of.0, *index), state, now))
            .map(|index| &warp[index].operation);
        let mut commits = 0;
        let mut since_wait = 1;
        for operation in past {
            match operation {
                Action::CommitCopies => (commits, since_wait) = (commits + 1, since_wait + 1),
                // The last wait before the read decides.
                Action::AwaitCopies { outstanding } if *outstanding > 0 && since_wait == 0 => {
                    return FlawKind::MissingCommit;
                }
                Action::AwaitCopies { .. } => since_wait = 0,
                _ => {}
            }
        }
        if commits == 0 {
            FlawKind::MissingCommit
        } else {
            need.otherwise
        }
    }

    /// Whether a product begins while operands are copied, or a copy of operands begins during a product.
    fn meets(&self, now: At, state: &State) -> bool {
        let operation = self.block.agents[now.0].events[now.1].operation;
        let product = is_product(&operation);
        let copy = streamed(self.program, &operation).is_some();
        (product || copy)
            && self.block.events().any(|(agent, index, event)| {
                let at = (agent, index);
                let counterpart = if product {
                    streamed(self.program, &event.operation).is_some()
                } else {
                    is_product(&event.operation)
                };
                counterpart
                    && self.links.at(at).asynchronous
                    && self.is_past(at, state, now)
                    && !self.is_done(at, state, now)
            })
    }

    /// Whether one warp can load operands while another multiplies.
    fn loads_beside_product(&self, state: &State, movable: &[(usize, Vec<usize>)]) -> bool {
        let has = |agent: usize, is: &dyn Fn(&Action) -> bool| {
            self.moves.get(agent, state[agent].into()).is_some_and(|part| {
                let events = &self.block.agents[agent].events[part.first..part.end];
                events.iter().any(|event| is(&event.operation))
            })
        };
        let loads = |operation: &Action| {
            streamed(self.program, operation).is_some_and(|(_, copy)| copy == CopyMethod::Registers)
        };
        let mut loading = movable.iter().filter(|(agent, _)| has(*agent, &loads));
        loading.any(|(loading, _)| {
            movable
                .iter()
                .any(|(agent, _)| agent != loading && has(*agent, &is_product))
        })
    }

    fn flaw(&self, kind: FlawKind, node: usize, at: At, need: Option<Need>) -> Box<Flaw> {
        let mut narrator = Narrator::new(self.program, self.block, self.links);
        for (node, agent) in self.path(node) {
            let part = self.moves.get(agent, self.nodes[node].state[agent].into());
            for index in part.map_or(0..0, |part| part.first..part.end) {
                narrator.tell((agent, index));
            }
        }
        let state = &self.nodes[node].state;
        let part = self.moves.get(at.0, state[at.0].into());
        match kind {
            FlawKind::Deadlock => {
                let waiting = (0..state.len()).filter_map(|agent| {
                    let part = self.moves.get(agent, state[agent].into())?;
                    Some(self.blocked(agent, part, state))
                });
                narrator.deadlock(waiting.collect())
            }
            _ => {
                let so_far = part.map_or(0..0, |part| part.first..at.1);
                so_far.for_each(|index| narrator.tell((at.0, index)));
                let begun = need.map(|need| (need, self.is_past(need.of, state, at)));
                narrator.flaw(kind, at, begun)
            }
        }
    }

    /// The first wait of a move that is not satisfied.
    fn blocked(&self, agent: usize, part: &Move, state: &State) -> At {
        let passed = |signal: &At| self.is_past(*signal, state, (agent, part.first));
        let waits = (part.first..part.end).find(|index| {
            let signals = &self.links.at((agent, *index)).signals;
            !signals.as_ref().is_some_and(|signals| signals.iter().all(passed))
        });
        (agent, waits.unwrap_or(part.first))
    }

    /// The moves that lead to a node, each as its source node and the warp that moves.
    fn path(&self, node: usize) -> Vec<(usize, usize)> {
        let steps = std::iter::successors(self.nodes[node].before, |(before, _)| self.nodes[*before].before);
        let mut path: Vec<_> = steps.collect();
        path.reverse();
        path
    }
}

fn is_enabled(part: &Move, state: &State) -> bool {
    part.after.as_ref().is_some_and(|after| {
        after
            .iter()
            .all(|&(agent, made)| usize::from(state[agent]) >= made)
    })
}

fn is_product(operation: &Action) -> bool {
    matches!(operation, Action::Multiply { .. })
}
