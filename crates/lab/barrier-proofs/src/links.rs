//! The relations between the events of a block: what each event waits for, what it forces, and what must be done before
//! it for its data to be correct.

use std::collections::HashMap;

use gauntlet_tile_program::{Action, BufferIndex, Contents, CopyMethod, Product, Signal, TileProgram};

use super::flaw::FlawKind;
use super::unroll::{Block, Event};

/// An event's place: the warp, and the index in its list.
pub(super) type At = (usize, usize);

/// An event's links.
#[derive(Debug, Default, Clone)]
pub(super) struct Link {
    /// Signals that must be given before the event can be passed; `None` if that can never happen.
    pub(super) signals: Option<Vec<At>>,
    /// Work of engines that is done once the event has been passed.
    pub(super) forces: Vec<At>,
    /// Whether an engine continues the work while the warp goes on.
    pub(super) asynchronous: bool,
    /// Whether it reads or writes a buffer.
    pub(super) touches: bool,
    /// The events that wait for this work to be done; the first one of each warp.
    pub(super) forced_by: Vec<At>,
    /// The work that must be done when the event begins, and the flaw if it is not.
    pub(super) needs: Vec<Need>,
}

/// Work that must be done before an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need {
    pub(super) of: At,
    pub(super) buffer: Option<BufferIndex>,
    pub(super) otherwise: FlawKind,
}

/// The links of all events, by warp.
#[derive(Debug)]
pub(super) struct Links(Vec<Vec<Link>>);

impl Links {
    pub(super) fn at(&self, (agent, index): At) -> &Link {
        &self.0[agent][index]
    }

    pub(super) fn of(program: &TileProgram, block: &Block) -> Self {
        let linking = Linking::new(program, block);
        let mut links: Vec<Vec<Link>> = (0..block.agents.len())
            .map(|agent| {
                (0..block.agents[agent].events.len())
                    .map(|index| linking.link((agent, index)))
                    .collect()
            })
            .collect();
        for agent in 0..links.len() {
            for index in 0..links[agent].len() {
                for (owner, work) in links[agent][index].forces.clone() {
                    let forced_by = &mut links[owner][work].forced_by;
                    if forced_by.iter().all(|(known, _)| *known != agent) {
                        forced_by.push((agent, index));
                    }
                }
            }
        }
        Self(links)
    }
}

/// The `n`-th filling of a buffer.
type Filling = (BufferIndex, usize);

#[derive(Debug, Default)]
struct Uses {
    writes: Vec<At>,
    /// Events that replace scores by probabilities.
    rewrites: Vec<At>,
    reads: Vec<At>,
    /// Reads of the replaced data.
    rereads: Vec<At>,
}

/// How an operation accesses a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Rewrite,
    Read,
    Reread,
}

struct Linking<'a> {
    program: &'a TileProgram,
    block: &'a Block,
    /// The buffer in which probabilities replace scores.
    rewritten: Option<BufferIndex>,
    uses: HashMap<Filling, Uses>,
    full: HashMap<Filling, Vec<At>>,
    empty: HashMap<Filling, Vec<At>>,
}

impl<'a> Linking<'a> {
    fn new(program: &'a TileProgram, block: &'a Block) -> Self {
        let mut linking = Self {
            program,
            block,
            rewritten: block.events().find_map(|(_, _, event)| match event.operation {
                Action::Softmax { from, to } if from == to => to,
                _ => None,
            }),
            uses: HashMap::new(),
            full: HashMap::new(),
            empty: HashMap::new(),
        };
        for (agent, index, event) in block.events() {
            let at = (agent, index);
            for (access, filling) in linking.accesses(event) {
                let uses = linking.uses.entry(filling).or_default();
                match access {
                    Access::Write => uses.writes.push(at),
                    Access::Rewrite => uses.rewrites.push(at),
                    Access::Read => uses.reads.push(at),
                    Access::Reread => uses.rereads.push(at),
                }
            }
            match event.operation {
                Action::Load {
                    buffer,
                    ahead,
                    copy: CopyMethod::Bulk,
                } => {
                    let filling = linking.filling(event, buffer, ahead);
                    linking.full.entry(filling).or_default().push(at);
                }
                Action::Publish { buffer, .. } => {
                    let filling = linking.filling(event, buffer, 0);
                    linking.full.entry(filling).or_default().push(at);
                }
                Action::Release { buffer, .. } => {
                    let filling = linking.filling(event, buffer, 0);
                    linking.empty.entry(filling).or_default().push(at);
                }
                _ => {}
            }
        }
        linking
    }

    fn filling(&self, event: &Event, buffer: BufferIndex, ahead: usize) -> Filling {
        (buffer, self.block.filling(self.program, event, buffer, ahead))
    }

    fn link(&self, at: At) -> Link {
        let event = &self.block.agents[at.0].events[at.1];
        let mut link = Link {
            signals: Some(Vec::new()),
            asynchronous: is_asynchronous(&event.operation),
            touches: !self.accesses(event).is_empty(),
            needs: self.needs(at, event),
            ..Link::default()
        };
        match event.operation {
            Action::Await { buffer } => {
                link.signals = self.full.get(&self.filling(event, buffer, 0)).cloned();
            }
            Action::Acquire { buffer, ahead } => {
                let (_, filling) = self.filling(event, buffer, ahead);
                if let Some(before) = filling.checked_sub(self.program.buffers[buffer].slots) {
                    link.signals = self.empty.get(&(buffer, before)).cloned();
                }
            }
            Action::AwaitCopies { outstanding } => link.forces = self.groups(at, outstanding),
            Action::AwaitProducts { outstanding } => {
                let products = self.before(at, is_asynchronous_product);
                link.forces = products[..products.len().saturating_sub(outstanding)].to_vec();
            }
            Action::AwaitStore => {
                link.forces = self.before(at, |operation| matches!(operation, Action::BulkStore { .. }));
            }
            _ => {}
        }
        let signals = link.signals.iter().flatten();
        link.forces
            .extend(signals.flat_map(|signal| self.done_when_signalled(*signal)));
        link
    }

    /// The work of engines that is done when a signal arrives.
    fn done_when_signalled(&self, signal: At) -> Vec<At> {
        match self.block.agents[signal.0].events[signal.1].operation {
            Action::Load { .. } => vec![signal],
            Action::Publish { when, .. } | Action::Release { when, .. } => match when {
                Signal::Now => Vec::new(),
                Signal::CopiesDone => self.before(signal, is_group_copy),
                Signal::ProductsDone => self.before(signal, is_asynchronous_product),
            },
            _ => Vec::new(),
        }
    }

    /// The copies in this warp's committed groups, except for the last `outstanding` groups.
    fn groups(&self, at: At, outstanding: usize) -> Vec<At> {
        let commits = self.before(at, |operation| *operation == Action::CommitCopies);
        match commits.len().checked_sub(outstanding + 1) {
            Some(last) => self.before(commits[last], is_group_copy),
            None => Vec::new(),
        }
    }

    /// The warp's earlier events of one kind.
    fn before(&self, (agent, index): At, is: impl Fn(&Action) -> bool) -> Vec<At> {
        let events = &self.block.agents[agent].events[..index];
        let matching = events
            .iter()
            .enumerate()
            .filter(|(_, event)| is(&event.operation));
        matching.map(|(earlier, _)| (agent, earlier)).collect()
    }

    fn needs(&self, at: At, event: &Event) -> Vec<Need> {
        let mut needs = Vec::new();
        if uses_sums_in_registers(&event.operation) {
            needs.extend(
                self.before(at, is_asynchronous_product)
                    .into_iter()
                    .map(|of| Need {
                        of,
                        buffer: None,
                        otherwise: FlawKind::UnfinishedProducts,
                    }),
            );
        }
        for (access, (buffer, filling)) in self.accesses(event) {
            let contents = self.program.buffers[buffer].contents;
            let uses = self.uses.get(&(buffer, filling)).into_iter();
            let (of, otherwise): (Vec<At>, FlawKind) = match access {
                Access::Read => (
                    uses.flat_map(|uses| &uses.writes).copied().collect(),
                    read_too_early(contents),
                ),
                Access::Reread => (
                    uses.flat_map(|uses| &uses.rewrites).copied().collect(),
                    FlawKind::ReadBeforeFull,
                ),
                // The same operation read this warp's rows; that the other warps' rows are written follows from that.
                Access::Rewrite => continue,
                Access::Write => {
                    let slots = self.program.buffers[buffer].slots;
                    let before = filling
                        .checked_sub(slots)
                        .and_then(|before| self.uses.get(&(buffer, before)));
                    let of = before.into_iter().flat_map(|uses| {
                        [&uses.reads, &uses.rereads, &uses.writes, &uses.rewrites]
                            .into_iter()
                            .flatten()
                    });
                    (of.copied().collect(), written_too_early(contents))
                }
            };
            needs.extend(of.into_iter().map(|of| Need {
                of,
                buffer: Some(buffer),
                otherwise,
            }));
        }
        needs
    }

    /// The reads and writes of an event, reads first.
    fn accesses(&self, event: &Event) -> Vec<(Access, Filling)> {
        let reads = |buffer| (Access::Read, self.filling(event, buffer, 0));
        let writes = |buffer| (Access::Write, self.filling(event, buffer, 0));
        match event.operation {
            Action::Load { buffer, ahead, .. } => {
                vec![(Access::Write, self.filling(event, buffer, ahead))]
            }
            Action::Convert { from, to } => [reads(from)].into_iter().chain(to.map(writes)).collect(),
            Action::Multiply {
                product, from, to, ..
            } => {
                let other = match product {
                    Product::Gemm => None,
                    Product::Scores => self.find(Contents::Queries).map(reads),
                    Product::Values => self.probabilities(event),
                };
                [reads(from)]
                    .into_iter()
                    .chain(other)
                    .chain(to.map(writes))
                    .collect()
            }
            Action::Softmax { from, to } => {
                let to = to.map(|to| match Some(to) == from {
                    true => (Access::Rewrite, self.filling(event, to, 0)),
                    false => writes(to),
                });
                from.map(reads).into_iter().chain(to).collect()
            }
            Action::Store { from, to } => from.map(reads).into_iter().chain(to.map(writes)).collect(),
            Action::BulkStore { from } => vec![reads(from)],
            _ => Vec::new(),
        }
    }

    fn probabilities(&self, event: &Event) -> Option<(Access, Filling)> {
        let apart = self
            .find(Contents::Probabilities)
            .map(|buffer| (Access::Read, buffer));
        let (access, buffer) = apart.or(self.rewritten.map(|buffer| (Access::Reread, buffer)))?;
        Some((access, self.filling(event, buffer, 0)))
    }

    fn find(&self, contents: Contents) -> Option<BufferIndex> {
        self.program
            .buffers
            .iter()
            .position(|buffer| buffer.contents == contents)
    }
}

fn read_too_early(contents: Contents) -> FlawKind {
    match contents {
        Contents::Accumulators => FlawKind::UnfinishedProducts,
        _ => FlawKind::ReadBeforeFull,
    }
}

fn written_too_early(contents: Contents) -> FlawKind {
    match contents {
        Contents::Staging => FlawKind::StagingOverwritten,
        _ => FlawKind::WrittenBeforeEmpty,
    }
}

fn is_asynchronous(operation: &Action) -> bool {
    match operation {
        Action::Load { copy, .. } => *copy != CopyMethod::Registers,
        Action::BulkStore { .. } => true,
        _ => is_asynchronous_product(operation),
    }
}

fn is_asynchronous_product(operation: &Action) -> bool {
    matches!(
        operation,
        Action::Multiply {
            asynchronous: true,
            ..
        }
    )
}

/// Whether the operation is a copy that belongs to a group, so that no barrier of its slot signals its completion.
pub(super) fn is_group_copy(operation: &Action) -> bool {
    matches!(
        operation,
        Action::Load {
            copy: CopyMethod::Asynchronous,
            ..
        }
    )
}

fn uses_sums_in_registers(operation: &Action) -> bool {
    matches!(
        operation,
        Action::Store { from: None, .. } | Action::Softmax { from: None, .. }
    )
}
