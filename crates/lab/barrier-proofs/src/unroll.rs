//! A program unrolled into one list of events per warp, for a block of a few tiles.

use gauntlet_tile_program::{Action, BufferIndex, Condition, Extent, Filled, Role, Statement, TileProgram};

/// The number of warps that represent a role whose warps all do the same.
const ALIKE: usize = 2;

/// The number of warps that represent a role whose first warp does more: the first, and two that are alike.
const WITH_FIRST: usize = 3;

/// One warp.
#[derive(Debug)]
pub(super) struct Agent {
    /// Its role's place in the program.
    pub(super) role: usize,
    /// The warp's number within the role.
    pub(super) warp: usize,
    /// Whether it does the same as the warp before it.
    pub(super) alike: bool,
    /// Its events.
    pub(super) events: Vec<Event>,
}

/// One operation, executed once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) operation: Action,
    pub(super) tile: usize,
    pub(super) step: usize,
    /// Whether only the first warp of the role does this.
    pub(super) divergent: bool,
}

/// A block with its tiles.
#[derive(Debug)]
pub(super) struct Block {
    /// Steps of each tile.
    pub(super) tiles: Vec<usize>,
    /// Warps.
    pub(super) agents: Vec<Agent>,
}

impl Block {
    pub(super) fn of(program: &TileProgram, tiles: &[usize]) -> Self {
        let agents = program
            .roles
            .iter()
            .enumerate()
            .flat_map(|(index, role)| {
                let first = usize::from(has_first(&role.body));
                (0..warps(role)).map(move |warp| Agent {
                    role: index,
                    warp,
                    alike: warp > first,
                    events: events(role, warp, tiles),
                })
            })
            .collect();
        Self {
            tiles: tiles.to_vec(),
            agents,
        }
    }

    /// All events with their places.
    pub(super) fn events(&self) -> impl Iterator<Item = (usize, usize, &Event)> {
        self.agents.iter().enumerate().flat_map(|(agent, warp)| {
            let events = warp.events.iter().enumerate();
            events.map(move |(index, event)| (agent, index, event))
        })
    }

    /// How many times a buffer was filled before this event, for the step `ahead` steps later.
    pub(super) fn filling(
        &self,
        program: &TileProgram,
        event: &Event,
        buffer: BufferIndex,
        ahead: usize,
    ) -> usize {
        match program.buffers[buffer].filled {
            Filled::Tile => event.tile,
            Filled::Step => self.tiles[..event.tile].iter().sum::<usize>() + event.step + ahead,
        }
    }
}

/// The number of warps that represent a role.
fn warps(role: &Role) -> usize {
    let enough = if has_first(&role.body) { WITH_FIRST } else { ALIKE };
    role.warps.min(enough)
}

/// Whether the first warp does something that the others do not.
fn has_first(body: &[Statement]) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Repeat(_, body) | Statement::If(Condition::HasStepAhead(_), body) => has_first(body),
        Statement::If(Condition::FirstWarp, body) => !body.is_empty(),
        Statement::Do(_) => false,
    })
}

fn events(role: &Role, warp: usize, tiles: &[usize]) -> Vec<Event> {
    let mut unrolling = Unrolling {
        tiles,
        warp,
        events: Vec::new(),
    };
    unrolling.body(&role.body, Place::default());
    unrolling.events
}

/// A warp's position in its loops.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    tile: usize,
    step: usize,
    /// The first step beyond the batch.
    batch_end: usize,
    divergent: bool,
}

struct Unrolling<'a> {
    tiles: &'a [usize],
    warp: usize,
    events: Vec<Event>,
}

impl Unrolling<'_> {
    fn body(&mut self, body: &[Statement], place: Place) {
        for statement in body {
            match statement {
                Statement::Repeat(extent, body) => self.repeat(*extent, body, place),
                Statement::If(condition, body) => self.when(*condition, body, place),
                Statement::Do(operation) => self.events.push(Event {
                    operation: *operation,
                    tile: place.tile,
                    step: place.step,
                    divergent: place.divergent,
                }),
            }
        }
    }

    fn repeat(&mut self, extent: Extent, body: &[Statement], place: Place) {
        let steps = self.tiles[place.tile];
        let mut run = |step| self.body(body, Place { step, ..place });
        match extent {
            Extent::Tiles => {
                for tile in 0..self.tiles.len() {
                    self.body(body, Place { tile, ..place });
                }
            }
            Extent::Steps => (0..steps).for_each(run),
            Extent::FirstSteps(most) => (0..steps.min(most)).for_each(run),
            Extent::Times(count) => (0..count).for_each(run),
            Extent::StepsOfBatch => (place.step..place.batch_end).for_each(&mut run),
            Extent::Batches(size) => {
                let size = size.max(1);
                for step in (0..steps).step_by(size) {
                    let batch_end = steps.min(step + size);
                    self.body(
                        body,
                        Place {
                            step,
                            batch_end,
                            ..place
                        },
                    );
                }
            }
        }
    }

    fn when(&mut self, condition: Condition, body: &[Statement], place: Place) {
        match condition {
            Condition::HasStepAhead(ahead) => {
                if place.step + ahead < self.tiles[place.tile] {
                    self.body(body, place);
                }
            }
            Condition::FirstWarp => {
                if self.warp == 0 {
                    let divergent = true;
                    self.body(body, Place { divergent, ..place });
                }
            }
        }
    }
}
