//! Moves: the parts of a warp's events that are explored as one unit.

use gauntlet_tile_program::Action;

use super::links::{At, Links};
use super::unroll::Block;

/// Consecutive events of a warp: waits, then work, then signals; or a barrier.
#[derive(Debug)]
pub(super) struct Move {
    /// The first event.
    pub(super) first: usize,
    /// The event after the last.
    pub(super) end: usize,
    /// The barrier, if the move is one: its other warps move at the same time.
    pub(super) barrier: Option<Barrier>,
    /// The number of moves that other warps must have made before; `None` if that can never happen.
    pub(super) after: Option<Vec<(usize, usize)>>,
    /// Whether it may be made as soon as it is possible, without exploring alternatives.
    pub(super) eager: bool,
}

/// The warps that wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Barrier {
    Block,
    Role,
}

/// The moves of all warps.
#[derive(Debug)]
pub(super) struct Moves {
    by_agent: Vec<Vec<Move>>,
    /// The move that each event belongs to.
    of_event: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Wait,
    Work,
    Signal,
    Barrier,
}

impl Moves {
    pub(super) fn of(block: &Block, links: &Links) -> Self {
        let mut moves = Self {
            by_agent: Vec::new(),
            of_event: Vec::new(),
        };
        for agent in &block.agents {
            let kinds: Vec<Kind> = agent.events.iter().map(|event| kind(&event.operation)).collect();
            let mut parts: Vec<Move> = Vec::new();
            let mut of_event = Vec::new();
            for (index, event) in agent.events.iter().enumerate() {
                let goes_on = index > 0 && kinds[index - 1] <= kinds[index] && kinds[index] != Kind::Barrier;
                match parts.last_mut() {
                    Some(last) if goes_on => last.end = index + 1,
                    _ => parts.push(Move {
                        first: index,
                        end: index + 1,
                        barrier: barrier(&event.operation),
                        after: Some(Vec::new()),
                        eager: false,
                    }),
                }
                of_event.push(parts.len() - 1);
            }
            moves.by_agent.push(parts);
            moves.of_event.push(of_event);
        }
        moves.order(links);
        moves
    }

    /// Records for each move what must have been done before it.
    fn order(&mut self, links: &Links) {
        for agent in 0..self.by_agent.len() {
            for number in 0..self.by_agent[agent].len() {
                let part = &self.by_agent[agent][number];
                let mut after: Option<Vec<(usize, usize)>> = Some(Vec::new());
                for index in part.first..part.end {
                    let signals = links.at((agent, index)).signals.as_ref();
                    after = after.zip(signals).map(|(after, signals)| {
                        signals
                            .iter()
                            .fold(after, |after, signal| self.with(after, *signal))
                    });
                }
                let eager = is_eager(part, agent, links);
                let part = &mut self.by_agent[agent][number];
                (part.after, part.eager) = (after, eager);
            }
        }
    }

    fn with(&self, mut after: Vec<(usize, usize)>, signal: At) -> Vec<(usize, usize)> {
        let made = self.of_event[signal.0][signal.1] + 1;
        match after.iter_mut().find(|(agent, _)| *agent == signal.0) {
            Some((_, known)) => *known = made.max(*known),
            None => after.push((signal.0, made)),
        }
        after
    }

    /// A warp's next move after `made` moves; `None` when it is done.
    pub(super) fn get(&self, agent: usize, made: usize) -> Option<&Move> {
        self.by_agent[agent].get(made)
    }

    /// Whether an event is past once its warp has made `made` moves.
    pub(super) fn is_past(&self, (agent, index): At, made: usize) -> bool {
        self.of_event[agent][index] < made
    }
}

/// Whether exploring a move as soon as it is possible hides no flaw. This holds if it only starts engines and gives
/// signals: what it starts counts as unfinished until it is forced, so the start time does not matter, and the
/// operations that it needs are least likely to be complete early. A wait that forces completion changes the state for
/// other warps, so it may not be made early.
fn is_eager(part: &Move, agent: usize, links: &Links) -> bool {
    part.barrier.is_none()
        && (part.first..part.end).all(|index| {
            let link = links.at((agent, index));
            link.forces.is_empty() && (link.asynchronous || !link.touches)
        })
}

fn kind(operation: &Action) -> Kind {
    match operation {
        Action::Acquire { .. }
        | Action::Await { .. }
        | Action::AwaitCopies { .. }
        | Action::AwaitProducts { .. }
        | Action::AwaitStore => Kind::Wait,
        Action::Publish { .. } | Action::Release { .. } => Kind::Signal,
        Action::Synchronise | Action::SynchroniseRole => Kind::Barrier,
        _ => Kind::Work,
    }
}

fn barrier(operation: &Action) -> Option<Barrier> {
    match operation {
        Action::Synchronise => Some(Barrier::Block),
        Action::SynchroniseRole => Some(Barrier::Role),
        _ => None,
    }
}
