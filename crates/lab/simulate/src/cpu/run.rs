//! Simulates one call event by event: waking threads, common passes, assigning tiles, handing over panels.
//!
//! Times are in max-plus form: a thread's next event follows its own last one and the events it waits for. Nothing is
//! random, so the same work takes bit-identical time.

use std::cmp::Reverse;
use std::collections::VecDeque;

use gauntlet_problems::{Order, Roles, Schedule};

use super::rates::Rates;
use super::work::{TileTimes, Work};
use crate::timeline::{Activity, Span};

/// How long a thread that waits for others of its call spins, in seconds; as in the executor.
const AWAKE: f64 = 50e-6;

/// How the threads of the pool share the roles; as in the executor, one in four prepares if roles are specialised.
#[derive(Debug, Clone, Copy)]
struct Team {
    threads: usize,
    producers: usize,
}

/// Threads that multiply.
pub fn workers(roles: Roles, threads: usize) -> usize {
    threads - producers(roles, threads)
}

fn producers(roles: Roles, threads: usize) -> usize {
    match roles {
        // A single thread does everything regardless of the schedule; the executor refuses that case.
        Roles::Specialised if threads > 1 => (threads / 4).max(1),
        _ => 0,
    }
}

/// The result of a call.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// From the first thread's start to the end of the call, set-up not included.
    pub(super) kernel: f64,
    /// The activities of each thread; empty unless requested.
    pub(super) spans: Vec<Vec<Span>>,
    /// Thread-seconds of loading, multiplying and the epilogue.
    pub(super) load: f64,
    pub(super) multiply: f64,
    pub(super) epilogue: f64,
}

/// Runs the work.
pub(super) fn run(work: &Work, schedule: &Schedule, rates: &Rates, record: bool) -> Outcome {
    let team = Team {
        threads: rates.threads,
        producers: producers(schedule.roles, rates.threads),
    };
    let mut call = Call {
        work,
        rates,
        team,
        stages: schedule.stages,
        record,
        free: (0..team.threads)
            .map(|thread| if thread == 0 { 0.0 } else { rates.wake })
            .collect(),
        outcome: Outcome {
            kernel: 0.0,
            spans: vec![Vec::new(); team.threads],
            load: 0.0,
            multiply: 0.0,
            epilogue: 0.0,
        },
    };
    call.each(&work.resident, Activity::Convert);
    match deal(work, schedule.order, team.threads - team.producers) {
        Dealing::Waves => {
            for wave in (0..work.tiles.len()).step_by(team.threads - team.producers) {
                let tiles = wave..work.tiles.len().min(wave + team.threads - team.producers);
                if wave > 0 {
                    call.meet();
                }
                call.tiles(&mut Shares(tiles.map(|tile| VecDeque::from([tile])).collect()));
            }
        }
        Dealing::Shares(shares) => call.tiles(&mut Shares(shares)),
        Dealing::Counter => call.tiles(&mut Counter(0..work.tiles.len())),
    }
    if !work.reductions.is_empty() {
        call.meet();
        call.each(&work.reductions, Activity::Reduce);
    }
    call.outcome.kernel = call.end();
    call.outcome
}

enum Dealing {
    Waves,
    Shares(Vec<VecDeque<usize>>),
    Counter,
}

fn deal(work: &Work, order: Order, workers: usize) -> Dealing {
    let tiles = work.tiles.len();
    match order {
        Order::PerTile => Dealing::Waves,
        Order::Dynamic => Dealing::Counter,
        Order::Static => Dealing::Shares(
            (0..workers)
                .map(|worker| (tiles * worker / workers..tiles * (worker + 1) / workers).collect())
                .collect(),
        ),
        Order::Sorted => {
            // The most expensive first, to the worker with the least so far.
            let cost = |tile: &usize| work.classes[work.tiles[*tile]].cost;
            let mut sorted: Vec<usize> = (0..tiles).collect();
            sorted.sort_by_key(|tile| Reverse(cost(tile)));
            let mut shares = vec![VecDeque::new(); workers];
            let mut loads = vec![0_u64; workers];
            for tile in sorted {
                let least = (0..workers).min_by_key(|worker| loads[*worker]).unwrap_or(0);
                loads[least] = loads[least].saturating_add(cost(&tile));
                shares[least].push_back(tile);
            }
            Dealing::Shares(shares)
        }
    }
}

/// Assigns tiles.
trait Tiles {
    /// The next tile of a worker.
    fn next(&mut self, worker: usize) -> Option<usize>;
}

struct Shares(Vec<VecDeque<usize>>);

impl Tiles for Shares {
    fn next(&mut self, worker: usize) -> Option<usize> {
        self.0.get_mut(worker)?.pop_front()
    }
}

struct Counter(std::ops::Range<usize>);

impl Tiles for Counter {
    fn next(&mut self, _worker: usize) -> Option<usize> {
        self.0.next()
    }
}

/// The state of a simulated call.
struct Call<'a> {
    work: &'a Work,
    rates: &'a Rates,
    team: Team,
    stages: usize,
    record: bool,
    /// When each thread can continue: the caller immediately, the others when they are awake.
    free: Vec<f64>,
    outcome: Outcome,
}

impl Call<'_> {
    /// A pass in which each free thread takes the next piece; it ends with the last piece.
    fn each(&mut self, pieces: &[f64], activity: Activity) {
        let mut free = std::mem::take(&mut self.free);
        let mut over = 0.0_f64;
        for seconds in pieces {
            let first = (0..free.len()).min_by(|left, right| free[*left].total_cmp(&free[*right]));
            let thread = first.unwrap_or(0);
            self.span(thread, activity, &mut free[thread], *seconds, CALL);
            over = over.max(free[thread]);
        }
        self.free = free.into_iter().map(|free| free.max(over)).collect();
    }

    /// A pass that assigns tiles.
    fn tiles(&mut self, tiles: &mut dyn Tiles) {
        let mut free = std::mem::take(&mut self.free);
        if self.team.producers == 0 {
            self.everything(tiles, &mut free);
        } else {
            self.specialised(tiles, &mut free);
        }
        self.free = free;
    }

    /// The time for a thread to continue after waiting for `wait`.
    fn woken_after(&self, wait: f64) -> f64 {
        if wait > AWAKE { self.rates.join } else { 0.0 }
    }

    /// All threads wait for the last one; threads that wait long fall asleep and must be woken.
    fn meet(&mut self) {
        let last = self.free.iter().copied().fold(0.0, f64::max);
        self.free = self
            .free
            .iter()
            .map(|free| last + self.woken_after(last - free))
            .collect();
    }

    /// The end of the call: the last thread's end, plus waking the caller if it fell asleep.
    fn end(&self) -> f64 {
        let last = self.free.iter().copied().fold(0.0, f64::max);
        last + self.woken_after(last - self.free[0])
    }

    /// Unified roles: every thread prepares and multiplies; the thread that is free first takes the next tile.
    fn everything(&mut self, tiles: &mut dyn Tiles, ends: &mut [f64]) {
        let mut open: Vec<usize> = (0..ends.len()).collect();
        while let Some(place) =
            (0..open.len()).min_by(|left, right| ends[open[*left]].total_cmp(&ends[open[*right]]))
        {
            let thread = open[place];
            match tiles.next(thread) {
                None => drop(open.swap_remove(place)),
                Some(tile) => self.whole_tile(thread, tile, &mut ends[thread]),
            }
        }
    }

    fn whole_tile(&mut self, thread: usize, tile: usize, now: &mut f64) {
        let work = self.work;
        let times = &work.classes[work.tiles[tile]];
        self.span(thread, Activity::Lookup, now, times.find, of_tile(tile));
        self.span(thread, Activity::Load, now, times.begin, of_tile(tile));
        for first in (0..times.steps.len()).step_by(self.stages.max(1)) {
            let batch = first..times.steps.len().min(first + self.stages.max(1));
            for step in batch.clone() {
                self.span(
                    thread,
                    Activity::Convert,
                    now,
                    times.steps[step].prepare,
                    of_step(tile, step),
                );
            }
            for step in batch {
                self.span(
                    thread,
                    Activity::Multiply,
                    now,
                    times.steps[step].multiply,
                    of_step(tile, step),
                );
            }
        }
        self.span(thread, Activity::Store, now, times.finish, of_tile(tile));
    }

    /// Producers fill the lanes of their consumers in turn; consumers multiply the panels that arrive. The producer
    /// that is furthest behind goes first, so that tiles are assigned in the order of the requests.
    fn specialised(&mut self, tiles: &mut dyn Tiles, ends: &mut [f64]) {
        let producers = self.team.producers;
        let mut feeds: Vec<Producer> = (0..producers)
            .map(|producer| Producer {
                last: 0,
                lanes: (producers + producer..self.team.threads)
                    .step_by(producers)
                    .map(|thread| Lane::new(thread, ends[thread]))
                    .collect(),
            })
            .collect();
        let mut open: Vec<usize> = (0..producers).collect();
        while let Some(place) =
            (0..open.len()).min_by(|left, right| ends[open[*left]].total_cmp(&ends[open[*right]]))
        {
            let producer = open[place];
            if !self.produce(producer, &mut feeds[producer], tiles, &mut ends[producer]) {
                open.swap_remove(place);
            }
        }
        for lane in feeds.iter().flat_map(|feed| &feed.lanes) {
            ends[lane.thread] = lane.now;
        }
    }

    /// Prepares one step for one lane and lets its consumer continue; returns whether any work was left.
    fn produce(&mut self, thread: usize, feed: &mut Producer, tiles: &mut dyn Tiles, now: &mut f64) -> bool {
        let count = feed.lanes.len();
        let free = (1..=count).map(|step| (feed.last + step) % count).find(|lane| {
            let lane = &feed.lanes[*lane];
            !lane.closed && lane.in_flight(*now) < self.stages
        });
        let Some(chosen) = free else {
            // All lanes are full or closed: wait for the first slot that a consumer returns.
            let lanes = feed.lanes.iter().filter(|lane| !lane.closed);
            let freed = lanes
                .filter_map(|lane| lane.slot_freed(self.stages))
                .min_by(f64::total_cmp);
            return match freed {
                None => false,
                Some(freed) => {
                    let wait = freed + self.rates.ring_wake - *now;
                    self.span(thread, Activity::Wait, now, wait, CALL);
                    true
                }
            };
        };
        feed.last = chosen;
        let lane = &mut feed.lanes[chosen];
        let worker = lane.thread - self.team.producers;
        let next = lane.next.or_else(|| tiles.next(worker).map(|tile| (tile, 0)));
        let Some((tile, step)) = next else {
            lane.closed = true;
            return true;
        };
        let times = &self.work.classes[self.work.tiles[tile]];
        // A slice without work still has one step, which is empty.
        let prepare = times.steps.get(step).map_or(0.0, |step| step.prepare);
        self.span(
            thread,
            Activity::Convert,
            now,
            prepare + self.rates.hand_over / 2.0,
            of_step(tile, step),
        );
        lane.next = (step + 1 < times.steps.len()).then_some((tile, step + 1));
        self.consume(lane, *now, tile, step, times);
        true
    }

    fn consume(&mut self, lane: &mut Lane, published: f64, tile: usize, step: usize, times: &TileTimes) {
        let thread = lane.thread;
        if published > lane.now {
            let wait = published + self.rates.ring_wake - lane.now;
            self.span(thread, Activity::Wait, &mut lane.now, wait, CALL);
        }
        if step == 0 {
            self.span(
                thread,
                Activity::Load,
                &mut lane.now,
                times.find + times.begin,
                of_tile(tile),
            );
        }
        let multiply = times.steps.get(step).map_or(0.0, |step| step.multiply);
        let seconds = multiply + self.rates.hand_over / 2.0;
        self.span(
            thread,
            Activity::Multiply,
            &mut lane.now,
            seconds,
            of_step(tile, step),
        );
        lane.released.push_back(lane.now);
        if lane.released.len() > self.stages {
            lane.released.pop_front();
        }
        if step + 1 >= times.steps.len() {
            self.span(
                thread,
                Activity::Store,
                &mut lane.now,
                times.finish,
                of_tile(tile),
            );
        }
    }

    /// Keeps a thread busy for a while.
    fn span(
        &mut self,
        thread: usize,
        activity: Activity,
        now: &mut f64,
        seconds: f64,
        [tile, step]: [Option<usize>; 2],
    ) {
        let start = *now;
        *now += seconds;
        match activity {
            Activity::Convert | Activity::Load => self.outcome.load += seconds,
            Activity::Multiply => self.outcome.multiply += seconds,
            Activity::Store | Activity::Reduce => self.outcome.epilogue += seconds,
            _ => {}
        }
        if self.record && seconds > 0.0 {
            self.outcome.spans[thread].push(Span {
                activity,
                start,
                end: *now,
                tile,
                step,
            });
        }
    }
}

/// The tile and the step that an activity belongs to.
const CALL: [Option<usize>; 2] = [None, None];

fn of_tile(tile: usize) -> [Option<usize>; 2] {
    [Some(tile), None]
}

fn of_step(tile: usize, step: usize) -> [Option<usize>; 2] {
    [Some(tile), Some(step)]
}

/// A thread that only prepares.
struct Producer {
    /// The lane it filled last.
    last: usize,
    lanes: Vec<Lane>,
}

/// The queue to one consumer.
struct Lane {
    thread: usize,
    /// When the consumer has finished all that it was given.
    now: f64,
    /// When it returned each of the last slots.
    released: VecDeque<f64>,
    /// The current tile and its next step.
    next: Option<(usize, usize)>,
    closed: bool,
}

impl Lane {
    fn new(thread: usize, now: f64) -> Self {
        Self {
            thread,
            now,
            released: VecDeque::new(),
            next: None,
            closed: false,
        }
    }

    /// Slots that are still in use at a time.
    fn in_flight(&self, now: f64) -> usize {
        self.released.iter().filter(|released| **released > now).count()
    }

    /// When the next slot is returned, if there are enough uses to need one.
    fn slot_freed(&self, slots: usize) -> Option<f64> {
        let oldest = self.released.len().checked_sub(slots)?;
        self.released.get(oldest).copied()
    }
}
