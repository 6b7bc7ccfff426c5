//! What a warp does at one go.

use gauntlet_task::program::Action;

use super::links::{At, Links};
use super::unroll::Block;

/// Some of a warp's events, one after the other: waits, then work, then signals; or a barrier.
#[derive(Debug)]
pub(super) struct Move {
    /// The first event.
    pub(super) first: usize,
    /// The event after the last.
    pub(super) end: usize,
    /// Who else goes at the same time.
    pub(super) barrier: Option<Barrier>,
    /// How many moves others must have made before; none if that can never be.
    pub(super) after: Option<Vec<(usize, usize)>>,
    /// Whether it may as well be made as soon as it can be.
    pub(super) eager: bool,
}

/// Who waits for one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Barrier {
    Block,
    Role,
}

/// The moves of all warps.
#[derive(Debug)]
pub(super) struct Moves {
    by_agent: Vec<Vec<Move>>,
    /// Which move an event belongs to.
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

    /// Notes of each move what must have been done before.
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

    /// A warp's next move once it has made so many; none when it is through.
    pub(super) fn get(&self, agent: usize, made: usize) -> Option<&Move> {
        self.by_agent[agent].get(made)
    }

    /// Whether an event is past once its warp has made so many moves.
    pub(super) fn is_past(&self, (agent, index): At, made: usize) -> bool {
        self.of_event[agent][index] < made
    }
}

/// Whether nothing is lost if a move is made as soon as it can be: it only starts engines and gives signals. What it
/// starts is not done until it is forced, begun or not, so nobody can tell how early it began, and what it needs is
/// least likely to be done at once. A wait that forces something does settle that for others, so it may not hurry.
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
