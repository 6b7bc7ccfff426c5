//! Runs a schedule: which threads prepare panels, which multiply, how far ahead, and in which order.
//!
//! Both kernel families implement [`TileWork`]. The schedule's stages, roles and order are interpreted here only.

mod team;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use self::team::Role;
pub(crate) use self::team::Team;
use crate::barrier::{Aborted, Barrier, Tally};
use crate::memory::{AlignedBuffer, OutOfMemory};
use crate::order::Assignment;
use crate::pool::{Pool, lock};
use crate::ring::{AbortUnlessDone, Item, Ring};

/// A kernel family's work, cut into tiles and each tile into steps.
pub(crate) trait TileWork: Sync {
    /// The position of a tile in the problem.
    type Tile: Copy;
    /// The memory that a thread needs to compute a tile.
    type State: Send;

    /// Independent pieces of the operand that is dequantised once per call and shared by all tiles.
    fn resident_pieces(&self) -> usize;
    /// Dequantises one of these pieces.
    fn load_resident(&self, piece: usize, state: &mut Self::State);
    /// Converts a tile's number to its position.
    fn find(&self, index: usize) -> Self::Tile;
    /// The number of steps of a tile, at least 1.
    fn steps(&self, tile: &Self::Tile) -> usize;
    /// Loads what a tile needs for all its steps.
    fn begin(&self, tile: &Self::Tile, state: &mut Self::State);
    /// Dequantises the streamed operand of one step into `panel`.
    fn prepare(&self, tile: &Self::Tile, step: usize, panel: &mut [f32], state: &mut Self::State);
    /// Prefetches the quantised bytes of one step.
    fn prefetch(&self, tile: &Self::Tile, step: usize);
    /// Multiplies one prepared step into the tile's accumulators. Meanwhile it may prefetch the data needed to prepare
    /// `next`, a tile and one of its steps.
    fn multiply(
        &self,
        tile: &Self::Tile,
        step: usize,
        panel: &[f32],
        next: Option<(Self::Tile, usize)>,
        state: &mut Self::State,
    );
    /// Writes the tile's result, or a partial result if the summed dimension is split.
    fn finish(&self, tile: &Self::Tile, state: &mut Self::State);
    /// The number of results to reduce from the parts of split tiles; 0 without a split.
    fn reductions(&self) -> usize;
    /// Reduces one of these results, in a fixed order, and writes it.
    fn reduce(&self, index: usize, state: &mut Self::State);
}

/// The part of the workspace that the driver needs.
#[derive(Debug)]
pub(crate) struct Space<S> {
    threads: Vec<Mutex<ThreadSpace<S>>>,
    /// `[worker][stage]`.
    panels: Vec<Vec<Mutex<AlignedBuffer>>>,
    /// One ring per producer; worker `w` is lane `w / producers` of ring `w % producers`.
    rings: Vec<Ring>,
    /// Counts the resident pieces that are done.
    resident: Tally,
    reductions: Tally,
}

#[derive(Debug)]
struct ThreadSpace<S> {
    state: S,
    clock: Clock,
}

/// The memory of one stage's panel of `panel` values in bytes, including its slot in the ring.
pub(crate) fn slot_bytes(panel: usize) -> usize {
    AlignedBuffer::bytes(panel).saturating_add(size_of::<Mutex<Item>>())
}

impl<S> Space<S> {
    /// Allocates for `team`: each worker gets `stages` panels of `panel` values.
    pub fn allocate(
        team: &Team,
        stages: usize,
        panel: usize,
        state: impl Fn() -> Result<S, OutOfMemory>,
    ) -> Result<Self, OutOfMemory> {
        let thread = |_| {
            Ok(Mutex::new(ThreadSpace {
                state: state()?,
                clock: Clock::default(),
            }))
        };
        let slots = |_| {
            (0..stages)
                .map(|_| AlignedBuffer::zeroed(panel).map(Mutex::new))
                .collect::<Result<_, _>>()
        };
        let lanes = |producer| (producer..team.workers()).step_by(team.producers()).count();
        Ok(Self {
            threads: (0..team.threads()).map(thread).collect::<Result<_, _>>()?,
            panels: (0..team.workers()).map(slots).collect::<Result<_, _>>()?,
            rings: (0..team.producers())
                .map(|producer| Ring::new(lanes(producer), stages))
                .collect(),
            resident: Tally::default(),
            reductions: Tally::default(),
        })
    }
}

/// Where the threads' time went, in thread-seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Busy {
    pub load: Duration,
    pub multiply: Duration,
    pub epilogue: Duration,
}

/// When one thread started and ended, and what its time was spent on.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    span: Option<(Instant, Instant)>,
    busy: Busy,
}

impl Clock {
    /// Runs `work`; if `TRACED`, adds its duration to the field of `busy` that `part` selects.
    fn measure<const TRACED: bool, R>(
        &mut self,
        part: impl Fn(&mut Busy) -> &mut Duration,
        work: impl FnOnce() -> R,
    ) -> R {
        if !TRACED {
            return work();
        }
        let start = Instant::now();
        let result = work();
        *part(&mut self.busy) += start.elapsed();
        result
    }
}

/// Runs one call under a schedule.
pub(crate) struct Driver<'a, W: TileWork> {
    pub pool: &'a Pool,
    pub team: Team,
    pub assignment: &'a Assignment,
    pub work: &'a W,
    pub space: &'a Space<W::State>,
}

impl<W: TileWork> Driver<'_, W> {
    /// Computes everything. Returns the time from the first thread's start to the last thread's end, and how it was
    /// spent (zeros unless `TRACED`).
    pub fn run<const TRACED: bool>(&self) -> (Duration, Busy) {
        self.space.rings.iter().for_each(Ring::reset);
        self.space.resident.reset();
        self.space.reductions.reset();
        self.assignment.restart();
        self.pool.run_in_passes(&|thread, barrier| {
            let start = Instant::now();
            let mut space = lock(&self.space.threads[thread]);
            space.clock = Clock::default();
            let guard = AbortUnlessDone::new(&self.space.rings);
            self.passes::<TRACED>(thread, &mut space, barrier)?;
            guard.done();
            space.clock.span = Some((start, Instant::now()));
            Ok(())
        });
        self.times()
    }

    /// One thread's share of a call: the resident pieces, the waves of tiles, and the reductions. Each pass begins when
    /// the one before is complete.
    fn passes<const TRACED: bool>(
        &self,
        thread: usize,
        space: &mut ThreadSpace<W::State>,
        barrier: &Barrier,
    ) -> Result<(), Aborted> {
        let Space {
            resident, reductions, ..
        } = self.space;
        barrier.each(resident, self.work.resident_pieces(), |piece| {
            let ThreadSpace { state, clock } = &mut *space;
            clock.measure::<TRACED, _>(|busy| &mut busy.load, || self.work.load_resident(piece, state));
        })?;
        for wave in 0..self.assignment.waves() {
            if wave > 0 {
                barrier.wait()?;
                self.reopen_rings(thread, barrier)?;
            }
            match self.team.role(thread) {
                Role::Everything { worker } => self.everything::<TRACED>(wave, worker, space),
                Role::Producer { producer } => self.produce::<TRACED>(wave, producer, space),
                Role::Consumer { worker } => self.consume::<TRACED>(worker, space),
            }
        }
        let results = self.work.reductions();
        if results > 0 {
            barrier.wait()?;
        }
        barrier.each(reductions, results, |index| {
            let ThreadSpace { state, clock } = &mut *space;
            clock.measure::<TRACED, _>(|busy| &mut busy.epilogue, || self.work.reduce(index, state));
        })
    }

    /// Empties the rings while no thread uses them.
    fn reopen_rings(&self, thread: usize, barrier: &Barrier) -> Result<(), Aborted> {
        if self.space.rings.is_empty() {
            return Ok(());
        }
        if thread == 0 {
            self.space.rings.iter().for_each(Ring::reset);
        }
        barrier.wait()
    }

    /// Unified roles: prepares up to `stages` panels, multiplies them, and repeats.
    fn everything<const TRACED: bool>(&self, wave: usize, worker: usize, space: &mut ThreadSpace<W::State>) {
        let ThreadSpace { state, clock } = space;
        let panels = &self.space.panels[worker];
        let mut taken = 0;
        while let Some(index) = self.assignment.next(wave, worker, taken) {
            taken += 1;
            let tile = self.work.find(index);
            let steps = self.work.steps(&tile);
            clock.measure::<TRACED, _>(|busy| &mut busy.load, || self.work.begin(&tile, state));
            for first in (0..steps).step_by(panels.len()) {
                let batch = first..steps.min(first + panels.len());
                clock.measure::<TRACED, _>(
                    |busy| &mut busy.load,
                    || {
                        for (step, panel) in batch.clone().zip(panels) {
                            self.work.prepare(&tile, step, lock(panel).values_mut(), state);
                        }
                    },
                );
                clock.measure::<TRACED, _>(
                    |busy| &mut busy.multiply,
                    || {
                        for (step, panel) in batch.zip(panels) {
                            if panels.len() > 1 && step + panels.len() < steps {
                                self.work.prefetch(&tile, step + panels.len());
                            }
                            let next = if panels.len() > 1 {
                                None
                            } else if step + 1 < steps {
                                Some((tile, step + 1))
                            } else {
                                // The tiles that other workers are expected to take meanwhile: their share of one step.
                                let others = (self.team.workers() - 1) / steps;
                                let likely = self.assignment.likely(worker, taken, others);
                                likely.map(|index| (self.work.find(index), 0))
                            };
                            self.work.multiply(&tile, step, lock(panel).values(), next, state);
                        }
                    },
                );
            }
            clock.measure::<TRACED, _>(|busy| &mut busy.epilogue, || self.work.finish(&tile, state));
        }
    }

    /// Fills the lanes of one ring, one step per lane in turn, until no tile is left.
    fn produce<const TRACED: bool>(&self, wave: usize, producer: usize, space: &mut ThreadSpace<W::State>) {
        struct Feed<T> {
            taken: usize,
            tile: Option<(usize, T, usize, usize)>,
        }
        let ThreadSpace { state, clock } = space;
        let ring = &self.space.rings[producer];
        let workers = || (producer..self.team.workers()).step_by(self.team.producers());
        let mut feeds: Vec<Feed<W::Tile>> = workers().map(|_| Feed { taken: 0, tile: None }).collect();
        let mut last = 0;
        while let Some((lane, slot)) = ring.claim(last) {
            last = lane;
            let worker = producer + lane * self.team.producers();
            let feed = &mut feeds[lane];
            let next = feed.tile.or_else(|| {
                let index = self.assignment.next(wave, worker, feed.taken)?;
                feed.taken += 1;
                let tile = self.work.find(index);
                Some((index, tile, 0, self.work.steps(&tile)))
            });
            let Some((index, tile, step, steps)) = next else {
                ring.close(lane);
                continue;
            };
            clock.measure::<TRACED, _>(
                |busy| &mut busy.load,
                || {
                    let mut panel = lock(&self.space.panels[worker][slot]);
                    self.work.prepare(&tile, step, panel.values_mut(), state);
                },
            );
            ring.publish(lane, Item { tile: index, step });
            feed.tile = (step + 1 < steps).then_some((index, tile, step + 1, steps));
        }
    }

    /// Multiplies the panels that its producer sends.
    fn consume<const TRACED: bool>(&self, worker: usize, space: &mut ThreadSpace<W::State>) {
        let ThreadSpace { state, clock } = space;
        let ring = &self.space.rings[worker % self.team.producers()];
        let lane = worker / self.team.producers();
        let mut current = None;
        while let Some((item, slot)) = ring.take(lane) {
            let tile = match current {
                Some(tile) => tile,
                None => {
                    let tile = self.work.find(item.tile);
                    clock.measure::<TRACED, _>(|busy| &mut busy.load, || self.work.begin(&tile, state));
                    tile
                }
            };
            clock.measure::<TRACED, _>(
                |busy| &mut busy.multiply,
                || {
                    let panel = lock(&self.space.panels[worker][slot]);
                    self.work.multiply(&tile, item.step, panel.values(), None, state);
                },
            );
            ring.release(lane);
            current = Some(tile);
            if item.step + 1 == self.work.steps(&tile) {
                clock.measure::<TRACED, _>(|busy| &mut busy.epilogue, || self.work.finish(&tile, state));
                current = None;
            }
        }
    }

    fn times(&self) -> (Duration, Busy) {
        let mut busy = Busy::default();
        let mut span: Option<(Instant, Instant)> = None;
        for thread in &self.space.threads {
            let clock = lock(thread).clock;
            busy.load += clock.busy.load;
            busy.multiply += clock.busy.multiply;
            busy.epilogue += clock.busy.epilogue;
            if let Some((first, last)) = clock.span {
                let (start, end) = span.unwrap_or((first, last));
                span = Some((start.min(first), end.max(last)));
            }
        }
        (span.map_or(Duration::ZERO, |(first, last)| last - first), busy)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use gauntlet_problems::{Order, Roles};

    use super::*;

    /// Tiles of ten steps; multiplying the first step panics.
    struct Broken;

    impl TileWork for Broken {
        type Tile = usize;
        type State = ();

        fn resident_pieces(&self) -> usize {
            0
        }
        fn load_resident(&self, _: usize, (): &mut ()) {}
        fn find(&self, index: usize) -> usize {
            index
        }
        fn steps(&self, _: &usize) -> usize {
            10
        }
        fn begin(&self, _: &usize, (): &mut ()) {}
        fn prepare(&self, _: &usize, _: usize, _: &mut [f32], (): &mut ()) {}
        fn prefetch(&self, _: &usize, _: usize) {}
        fn multiply(&self, tile: &usize, _: usize, _: &[f32], _: Option<(usize, usize)>, (): &mut ()) {
            assert_ne!(*tile, 0, "on purpose");
        }
        fn finish(&self, _: &usize, (): &mut ()) {}
        fn reductions(&self) -> usize {
            0
        }
        fn reduce(&self, _: usize, (): &mut ()) {}
    }

    /// With eight threads there are two rings; the producer of the other ring may leave before it has served it.
    #[test]
    fn a_panic_ends_the_call_however_many_rings_there_are() {
        for threads in [4, 8] {
            let (sender, ended) = mpsc::channel();
            std::thread::spawn(move || {
                let pool = Pool::new(threads, None).unwrap();
                let team = Team::new(Roles::Specialised, threads).unwrap();
                let space = Space::allocate(&team, 1, 16, || Ok(())).unwrap();
                let assignment = Assignment::new(Order::Static, &vec![1; team.workers()], team.workers());
                let driver = Driver {
                    pool: &pool,
                    team,
                    assignment: &assignment,
                    work: &Broken,
                    space: &space,
                };
                for _ in 0..20 {
                    let outcome = catch_unwind(AssertUnwindSafe(|| driver.run::<false>()));
                    sender.send(outcome.is_err()).unwrap();
                }
            });
            for _ in 0..20 {
                assert!(
                    ended.recv_timeout(Duration::from_secs(20)).unwrap(),
                    "{threads} threads"
                );
            }
        }
    }
}
