//! Describes interleavings in words.

use gauntlet_tile_program::{Action, BufferIndex, Contents, CopyMethod, Product, Signal, TileProgram};

use super::flaw::{Flaw, FlawKind};
use super::links::{At, Links, Need};
use super::unroll::{Block, Event};

/// Builds the description event by event.
pub(super) struct Narrator<'a> {
    program: &'a TileProgram,
    block: &'a Block,
    links: &'a Links,
    told: Vec<String>,
    done: Vec<At>,
}

impl<'a> Narrator<'a> {
    pub(super) fn new(program: &'a TileProgram, block: &'a Block, links: &'a Links) -> Self {
        Self {
            program,
            block,
            links,
            told: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Describes an event, and for a wait also what it forces.
    pub(super) fn tell(&mut self, at: At) {
        let event = self.event(at);
        if let Action::Synchronise | Action::SynchroniseRole = event.operation {
            let whose = match event.operation {
                Action::Synchronise => "the block".to_owned(),
                _ => format!("`{}`", self.role(at)),
            };
            self.told.push(format!("all warps of {whose} meet"));
            return;
        }
        let mut sentence = format!("{} {}", self.who(at), self.does(event));
        for work in &self.links.at(at).forces {
            if !self.done.contains(work) {
                self.done.push(*work);
                sentence.push_str(&format!("; {} is done", self.work(*work, at.0)));
            }
        }
        self.told.push(sentence);
    }

    /// The flaw that shows at an event: an operation that it needs is not done, though it may have begun.
    pub(super) fn flaw(self, kind: FlawKind, at: At, need: Option<(Need, bool)>) -> Box<Flaw> {
        let event = self.event(at);
        let subject = format!("{} {}", self.who(at), self.does(event));
        let sentence = match (kind, need) {
            (_, Some((need, true))) => {
                let mut sentence = format!("{subject}, but {} is still under way", self.work(need.of, at.0));
                if kind == FlawKind::MissingCommit {
                    sentence.push_str(": nothing was committed after it, so the wait does not reach it");
                }
                sentence
            }
            (_, Some((need, false))) => {
                let other = self.event(need.of);
                format!(
                    "{subject}, but {} has yet to {}",
                    self.who(need.of),
                    self.will(other, need.buffer)
                )
            }
            (FlawKind::DivergentBarrier, None) => format!(
                "{} comes to a barrier that no other warp of `{}` comes to, for it is under a condition",
                self.who(at),
                self.role(at)
            ),
            (FlawKind::NothingOverlaps, None) => format!(
                "{subject} while no copy is under way, and so it is with every product in every interleaving"
            ),
            (_, None) => format!(
                "the block ends, but {} is still under way",
                self.work(at, usize::MAX)
            ),
        };
        self.conclude(kind, sentence)
    }

    /// A deadlock: no warp can pass its next event.
    pub(super) fn deadlock(self, waiting: Vec<At>) -> Box<Flaw> {
        let waiting: Vec<String> = waiting
            .into_iter()
            .map(|at| match self.event(at).operation {
                Action::Synchronise => {
                    format!("{} waits for all warps of the block to meet", self.who(at))
                }
                Action::SynchroniseRole => {
                    format!(
                        "{} waits for all warps of `{}` to meet",
                        self.who(at),
                        self.role(at)
                    )
                }
                _ => format!("{} {}", self.who(at), self.does(self.event(at))),
            })
            .collect();
        let sentence = format!("{}, and no warp can go on", waiting.join(", "));
        self.conclude(FlawKind::Deadlock, sentence)
    }

    fn conclude(mut self, kind: FlawKind, sentence: String) -> Box<Flaw> {
        self.told.push(sentence.clone());
        Box::new(Flaw {
            kind,
            sentence,
            tiles: self.block.tiles.clone(),
            interleaving: self.told,
        })
    }

    fn event(&self, (agent, index): At) -> &'a Event {
        &self.block.agents[agent].events[index]
    }

    fn role(&self, at: At) -> &'static str {
        self.program.roles[self.block.agents[at.0].role].name
    }

    fn who(&self, at: At) -> String {
        let agent = &self.block.agents[at.0];
        match self.program.roles[agent.role].warps {
            1 => format!("`{}`", self.role(at)),
            _ => format!("warp {} of `{}`", agent.warp, self.role(at)),
        }
    }

    /// Describes an engine's work for an event, from the point of view of a warp.
    fn work(&self, at: At, whose: usize) -> String {
        let event = self.event(at);
        let work = match event.operation {
            Action::Load { buffer, ahead, .. } => {
                let (what, slot) = (self.what(event, buffer, ahead), self.slot(event, buffer, ahead));
                format!("copy of {what} into {slot}")
            }
            Action::BulkStore { .. } => format!("bulk store of {}", self.tile(event)),
            _ => format!("product of {}", self.step(event, 0)),
        };
        if at.0 == whose {
            format!("its {work}")
        } else {
            format!("the {work} by {}", self.who(at))
        }
    }

    fn does(&self, event: &Event) -> String {
        let slot = |buffer| self.slot(event, buffer, 0);
        match event.operation {
            Action::Acquire { buffer, ahead } => {
                format!("waits until {} is empty", self.slot(event, buffer, ahead))
            }
            Action::Load { buffer, ahead, copy } => {
                let verb = match copy {
                    CopyMethod::Registers => "loads",
                    CopyMethod::Asynchronous | CopyMethod::Bulk => "starts to copy",
                };
                let (what, slot) = (self.what(event, buffer, ahead), self.slot(event, buffer, ahead));
                format!("{verb} {what} into {slot}")
            }
            Action::CommitCopies => "commits a group of copies".to_owned(),
            Action::AwaitCopies { outstanding } => {
                format!("waits until at most {outstanding} of its groups of copies are under way")
            }
            Action::Prefetch { ahead } => format!("asks the caches for {}", self.step(event, ahead)),
            Action::Publish { buffer, when } => {
                format!("says that {} is full{}", slot(buffer), later(when))
            }
            Action::Await { buffer } => format!("waits until {} is full", slot(buffer)),
            Action::Release { buffer, when } => {
                format!("says that {} is empty{}", slot(buffer), later(when))
            }
            Action::Convert { from, to } => {
                let to = to.map_or("registers".to_owned(), slot);
                format!("converts {} from {} into {to}", self.step(event, 0), slot(from))
            }
            Action::Multiply {
                product,
                from,
                asynchronous,
                ..
            } => {
                let verb = if asynchronous {
                    "starts to multiply"
                } else {
                    "multiplies"
                };
                let what = match product {
                    Product::Gemm => "",
                    Product::Scores => "queries by keys of ",
                    Product::Values => "probabilities by values of ",
                };
                format!("{verb} {what}{} from {}", self.step(event, 0), slot(from))
            }
            Action::AwaitProducts { outstanding } => {
                format!("waits until at most {outstanding} of its products are under way")
            }
            Action::Softmax { .. } => format!("takes the softmax of {}", self.step(event, 0)),
            Action::Store { from, to } => {
                let from = from.map_or("registers".to_owned(), slot);
                let to = to.map_or("memory".to_owned(), slot);
                format!("stores {} from {from} into {to}", self.tile(event))
            }
            Action::BulkStore { from } => {
                format!("starts to store {} from {}", self.tile(event), slot(from))
            }
            Action::AwaitStore => "waits until its bulk stores have read the staging buffer".to_owned(),
            Action::Synchronise | Action::SynchroniseRole => "comes to a barrier".to_owned(),
        }
    }

    /// Describes what a warp has yet to do with a buffer.
    fn will(&self, event: &Event, buffer: Option<BufferIndex>) -> String {
        let step = self.step(event, 0);
        match event.operation {
            Action::Load { buffer, ahead, .. } => {
                format!("copy {} there", self.what(event, buffer, ahead))
            }
            Action::Convert { from, .. } if buffer == Some(from) => format!("convert {step} from there"),
            Action::Convert { .. } => format!("convert {step} into it"),
            Action::Multiply { to, .. } if to.is_some() && to == buffer => {
                format!("multiply {step} into it")
            }
            Action::Multiply { .. } => format!("multiply {step} from there"),
            Action::Softmax { .. } => format!("take the softmax of {step} there"),
            Action::Store { to, .. } if to.is_some() && to == buffer => {
                format!("store {} there", self.tile(event))
            }
            _ => format!("store {} from there", self.tile(event)),
        }
    }

    /// Describes what fills a buffer.
    fn what(&self, event: &Event, buffer: BufferIndex, ahead: usize) -> String {
        match self.program.buffers[buffer].contents {
            Contents::Queries => format!("the queries of {}", self.tile(event)),
            _ => self.step(event, ahead),
        }
    }

    fn step(&self, event: &Event, ahead: usize) -> String {
        let step = event.step + ahead;
        if self.block.tiles.len() > 1 {
            format!("step {step} of {}", self.tile(event))
        } else {
            format!("step {step}")
        }
    }

    fn tile(&self, event: &Event) -> String {
        if self.block.tiles.len() > 1 {
            format!("tile {}", event.tile)
        } else {
            "the tile".to_owned()
        }
    }

    fn slot(&self, event: &Event, buffer: BufferIndex, ahead: usize) -> String {
        let slots = self.program.buffers[buffer].slots;
        let name = match self.program.buffers[buffer].contents {
            Contents::Operands => "operands",
            Contents::Converted => "converted operands",
            Contents::Queries => "queries",
            Contents::Scores => "scores",
            Contents::Probabilities => "probabilities",
            Contents::Accumulators => "sums",
            Contents::Staging => "staging buffer",
        };
        let filling = self.block.filling(self.program, event, buffer, ahead);
        if slots > 1 {
            format!("slot {} of the {name}", filling % slots)
        } else {
            format!("the {name}")
        }
    }
}

fn later(when: Signal) -> &'static str {
    match when {
        Signal::Now => "",
        Signal::CopiesDone => " once its copies are done",
        Signal::ProductsDone => " once its products are done",
    }
}
