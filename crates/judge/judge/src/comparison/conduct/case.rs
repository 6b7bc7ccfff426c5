//! Observations of one case in one pair of processes.

use gauntlet_stats::{Arm, Block, median, typical_call};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::around::{HANDSHAKE, HELD_BACK_HANDSHAKE, LEAST, bounded, handshakes, median_of};
use super::charge::{OfPair, Shares};
use super::lone::LoneCall;
use super::waiting::Waiting;
use crate::comparison::device::Readings;
use crate::comparison::side::{Accounts, Purpose};
use crate::comparison::slot::Slot;
use crate::comparison::warm_up::WarmingUp;
use crate::evidence::{Around, HeatedSide, Preparation, SideCharge};

/// The extra cost of a lone call may be this factor of the baseline's: kernels differ in what they find cold after a
/// pause. On an H200 the extra cost is 0.16 to 0.23 ms, and an honest kernel of 19 µs exceeded its baseline's by 4 µs.
const LONE_FACTOR: f64 = 1.1;

/// How much longer the coordinator's clock may show on a GPU, in seconds for each call: a kernel whose Python leaves less of
/// the host's code in the caches answers some microseconds later. A candidate can hide that much of each call.
const ANSWER_ON_GPU: f64 = 5e-6;

/// A candidate's report of its host's time around calls is believed up to this factor of the baseline's. On a quiet machine an
/// honest kernel on arrays of 1.2 MB that leaves other data in the caches than its baseline was seen to leave out 6.7 % of
/// its calls by this time.
const MAX_BETWEEN: f64 = 2.0;

/// Which calls show what a side remembers, and by which clock.
#[derive(Debug, Clone, Copy)]
pub enum Witness {
    /// Lone calls, by the worker's own report.
    Reports,
    /// Lone calls, by the coordinator: the duration of the exchange.
    Coordinator,
    /// Calls somewhere within slots, by the worker's own report.
    InSlots,
}

/// Observations of one case in one pair of processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CaseConduct {
    /// The pair's number, from 0.
    pub(in crate::comparison) process: usize,
    /// Whether calls are computed on a GPU.
    pub(super) on_gpu: bool,
    /// Whether both kernels run on a GPU only, without code in the process that clocks them.
    #[serde(default)]
    pub(super) device_only: bool,
    /// Per slot, both sides: seconds per call by the coordinator's clock.
    seen: Vec<Block>,
    /// Per slot, both sides: the ratio of the expected time, from the reports, to the coordinator's time.
    pub(super) clock: Vec<Block>,
    /// Per slot: seconds by the coordinator's clock that no report accounts for, candidate minus baseline, as a share of
    /// the candidate's reported time. Of the whole exchange, or of the typical call where each call is clocked.
    pub(super) unaccounted: Vec<f64>,
    /// Lone calls of both sides on values that no call has used.
    pub(super) fresh: Vec<[LoneCall; 2]>,
    /// Lone calls of both sides on known values, taken among those.
    pub(super) known: Vec<[LoneCall; 2]>,
    /// Seconds that all lone calls of each side took by the coordinator's clock, and their number.
    alone: ([f64; 2], usize),
    /// Seconds for which the device was held back before each call; 0 unless calls were clocked behind holds.
    #[serde(rename = "gate", default)]
    pub(super) hold: f64,
    /// How many calls of each side took the host longer, and of how many.
    #[serde(default)]
    pub(super) late: [[usize; 2]; 2],
    /// The reported time of each lone call of either side.
    pub(super) isolated: [Vec<f64>; 2],
    /// Calls on new values within slots over calls at the same place of other slots, of both sides.
    pub(super) in_slots: Vec<[f64; 2]>,
    /// Whole calls of both sides, where calls are clocked on the device: seconds by the coordinator's clock for each request.
    #[serde(default)]
    pub(super) whole_calls: Vec<[f64; 2]>,
    /// Costs of a slot in addition to its calls.
    around: Option<Around>,
    /// Seconds that the coordinator's clock shows around each call of either side, where it clocks each call.
    handshakes: [f64; 2],
    /// What each side may be charged with.
    pub(super) work: OfPair,
    /// CPU time of each side while nothing was asked of it, in processors, over the time in which the other side
    /// computed.
    pub(super) idle: Option<[f64; 2]>,
    /// What came before the measurement.
    pub(super) preparation: [Preparation; 2],
    /// How long both sides waited for a processor while they were timed; none where the system does not report it.
    pub(super) waiting: Option<Waiting>,
    /// The load before the slots of both sides; none where calls are isolated.
    pub(super) heated: Option<[HeatedSide; 2]>,
    /// The state of the device after the slots.
    pub(super) readings: Readings,
}

impl CaseConduct {
    /// An empty observation.
    pub fn new(process: usize, on_gpu: bool) -> Self {
        Self {
            process,
            on_gpu,
            device_only: false,
            seen: Vec::new(),
            clock: Vec::new(),
            unaccounted: Vec::new(),
            fresh: Vec::new(),
            known: Vec::new(),
            alone: ([0.0; 2], 0),
            isolated: [Vec::new(), Vec::new()],
            in_slots: Vec::new(),
            whole_calls: Vec::new(),
            around: None,
            handshakes: [0.0; 2],
            hold: 0.0,
            late: [[0; 2]; 2],
            work: OfPair::default(),
            idle: None,
            preparation: [Preparation::default(); 2],
            waiting: None,
            heated: None,
            readings: Readings::default(),
        }
    }

    /// Notes the state of the device after the slots.
    pub fn note_readings(&mut self, readings: Readings) {
        self.readings = readings;
    }

    /// Notes how a side warmed up.
    pub fn note_warm_up(&mut self, arm: Arm, warming: &WarmingUp) {
        let preparation = &mut self.preparation[arm.index()];
        preparation.warm_up_calls = warming.calls() as f64;
        preparation.slowest_over_steady = warming.factor();
    }

    /// Notes what a side took to prepare after a load: the longest and largest counts.
    pub fn note_preparing(&mut self, arm: Arm, seconds: f64, bytes: u64) {
        let preparation = &mut self.preparation[arm.index()];
        preparation.seconds = preparation.seconds.max(seconds);
        preparation.bytes = preparation.bytes.max(bytes as f64);
    }

    /// Notes whether both kernels run on a GPU only.
    pub fn note_device_only(&mut self, device_only: bool) {
        self.device_only = device_only;
    }

    /// Notes for how many seconds the device is held back.
    pub fn note_hold(&mut self, seconds: f64) {
        self.hold = seconds;
    }

    /// Notes what a lone call took, whatever it is for.
    pub fn note_alone(&mut self, slots: &[Slot; 2]) {
        for (side, slot) in slots.iter().enumerate() {
            self.alone.0[side] += if self.device_only {
                slot.sum
            } else {
                slot.elapsed()
            };
            self.isolated[side].push(slot.typical);
        }
        self.alone.1 += 1;
    }

    /// Notes a lone call of both sides, on fresh or on known values.
    pub fn note_lone(&mut self, fresh: bool, slots: [Slot; 2]) {
        let of = if fresh { &mut self.fresh } else { &mut self.known };
        of.push(slots.each_ref().map(LoneCall::of));
    }

    /// Notes the calls within slots that met new values: the slot's number on either side, and the call. They are held
    /// against calls at the same place of the other slots, since a side's first calls of each request may be slow. Where each
    /// call of both sides is clocked by itself, they are held against the typical call on known values, so that it does not
    /// help to be quick on some of these only. Comes after the [slots](Self::note_slots).
    pub fn note_fresh_in_slots(&mut self, fresh: &[(usize, usize)], slots: &[(Arm, Slot)]) {
        let sides = [Arm::Baseline, Arm::Candidate].map(|arm| of(slots, arm));
        let are_stepped = sides.iter().flatten().all(Slot::is_stepped);
        let clocked = [0, 1].map(|side: usize| -> Vec<Vec<f64>> {
            let handshake = self.handshakes[side];
            sides[side].iter().map(|slot| slot.clocked(handshake)).collect()
        });
        // The first slots may hold nothing but calls on new values.
        let known = clocked.each_ref().map(|slots| -> Vec<f64> {
            let calls = slots.iter().enumerate().flat_map(|(slot, calls)| {
                let of_slot = calls.iter().enumerate();
                of_slot.map(move |(call, seconds)| ((slot, call), *seconds))
            });
            let known = calls.filter(|(place, _)| !fresh.contains(place));
            known.map(|(_, seconds)| seconds).collect()
        });
        let relative = |side: usize, (number, call): (usize, usize)| {
            let slots = &clocked[side];
            let fresh = &slots[number];
            if are_stepped {
                return (!known[side].is_empty()).then(|| fresh[call] / typical_call(&known[side]));
            }
            let others = slots.iter().enumerate().filter(|(other, _)| *other != number);
            let alike: Vec<f64> = others
                .map(|(_, slot)| slot[call * slot.len() / fresh.len()])
                .collect();
            (!alike.is_empty()).then(|| fresh[call] / median(&alike))
        };
        let both = |place| Some([relative(0, place)?, relative(1, place)?]);
        self.in_slots = fresh.iter().filter_map(|place| both(*place)).collect();
    }

    /// Notes the work of both sides. Preparing is never charged: it comes before any operands that are measured. Nor is
    /// work outside of calls if `hosted`: hosts of this program do it on both sides. CPU time between requests counts in
    /// full: where the other side's threads wait for each other, a second taken from one of them costs all of them one.
    pub fn note_accounts(&mut self, accounts: [Accounts; 2], hosted: bool) {
        let on_gpu = self.on_gpu;
        let work = |accounts: &Accounts, purpose| {
            let account = accounts.of(purpose);
            if on_gpu {
                account.elapsed / account.units.max(1) as f64
            } else {
                account.work()
            }
        };
        let timed = accounts[0].of(Purpose::Time);
        // A call that keeps several threads busy takes less time than its work.
        let wall = if timed.asked > 0.0 && !on_gpu {
            (timed.elapsed / timed.asked).min(1.0)
        } else {
            1.0
        };
        let of_side = |accounts: &Accounts| {
            let timed = accounts.of(Purpose::Time);
            SideCharge {
                loading: wall * work(accounts, Purpose::Load),
                results: wall * work(accounts, Purpose::Result),
                idle: if on_gpu { 0.0 } else { timed.idle } / timed.units.max(1) as f64,
                uneven: 0.0,
            }
        };
        if !hosted {
            self.work.sides = [of_side(&accounts[0]), of_side(&accounts[1])];
        }
        let idle = [0, 1].map(|side: usize| {
            accounts[side].idle()
                / accounts[1 - side]
                    .of(Purpose::Time)
                    .elapsed
                    .max(f64::MIN_POSITIVE)
        });
        self.idle = (timed.asked > 0.0).then_some(idle);
    }

    /// Notes the slots of both sides, in the order taken.
    pub fn note_slots(&mut self, slots: &[(Arm, Slot)]) {
        let [baseline, candidate] = [Arm::Baseline, Arm::Candidate].map(|arm| of(slots, arm));
        let typical = [&baseline, &candidate].map(|slots| median_of(slots, |slot| slot.typical));
        self.late = [&baseline, &candidate].map(|slots| {
            let late = slots.iter().map(|slot| slot.late).sum();
            [late, slots.iter().map(Slot::calls).sum()]
        });
        self.handshakes = handshakes([&baseline, &candidate], HANDSHAKE);
        let most_around = if self.on_gpu {
            HELD_BACK_HANDSHAKE
        } else {
            HANDSHAKE
        };
        let around_calls = handshakes([&baseline, &candidate], most_around);
        let [of_baseline, of_candidate] = self.handshakes;
        let mut uneven = [(&baseline, of_baseline), (&candidate, of_candidate)].map(|(slots, handshake)| {
            median_of(slots, |slot| match self.device_only {
                true => slot.reported_unevenness(),
                false => slot.unevenness(handshake),
            })
        });
        if !self.device_only && candidate.iter().all(Slot::is_stepped) {
            // A late wake-up takes as many seconds of a short call as of a long one, so the baseline's excess is allowed in
            // seconds too.
            uneven[1] -= uneven[0].max(0.0) * (typical[0] / typical[1] - 1.0).max(0.0);
        }
        let are_stepped = baseline.iter().chain(&candidate).all(Slot::is_stepped);
        let alone = [0, 1].map(|side| self.alone.0[side] - self.alone.1 as f64 * typical[side]);
        let calls = baseline.iter().map(Slot::calls).sum::<usize>().max(1) as f64;
        self.work.shares = Shares {
            typical,
            uneven,
            alone: alone.map(|seconds| seconds / calls),
            // Beside a side that is not stepped through there is nothing to hold it against.
            moving: if are_stepped && !self.device_only {
                [&baseline, &candidate].map(|slots| median_of(slots, |slot| slot.moving))
            } else {
                [0.0; 2]
            },
        };
        // What both report for the same operands and results, so neither gains by what it reports.
        let between =
            median_of(&baseline, |slot| slot.between).min(median_of(&candidate, |slot| slot.between));
        let around = Around::of(&baseline, between);
        self.waiting = Waiting::of(self.process, [&baseline, &candidate]);
        let side_by_side = |figure: &dyn Fn(&Slot, f64) -> f64| {
            let pairs = baseline.iter().zip(&candidate);
            pairs
                .map(|(baseline, candidate)| {
                    let times = [
                        figure(baseline, around_calls[0]),
                        figure(candidate, around_calls[1]),
                    ];
                    Block::new(self.process, vec![times[0]], vec![times[1]])
                })
                .collect()
        };
        self.seen = side_by_side(&|slot, handshake| {
            if slot.is_stepped() {
                return slot.typical_clocked(handshake);
            }
            (slot.elapsed() - around.messages).max(slot.sum) / slot.calls() as f64
        });
        // Inverted: the longer the candidate's slots are relative to its reports, the more the reports flatter it.
        self.clock = side_by_side(&|slot, _| 1.0 / around.excess(slot, typical[0]));
        self.around = Some(around);
        // Both sides make the same number of calls, so message times are comparable. What a host does around calls takes
        // longer where a kernel leaves its operands in no cache: its report of that counts, within a bound. The gain must
        // be confirmed by the coordinator's clock all the same.
        let on_gpu = self.on_gpu;
        let left_out = |slot: &Slot, between: f64| slot.elapsed() - slot.sum - between;
        let unaccounted = |(baseline, candidate): (&Slot, &Slot)| {
            if let Some(left) = candidate.handshake() {
                // The typical call stands for the slot, so nothing may be left out of that one.
                let beyond = left - baseline.handshake().unwrap_or(of_candidate);
                let slack = if on_gpu { ANSWER_ON_GPU } else { 0.0 };
                return beyond.signum() * (beyond.abs() - slack).max(0.0) / candidate.typical;
            }
            let between = candidate.between.min(MAX_BETWEEN * baseline.between);
            (left_out(candidate, between) - left_out(baseline, baseline.between)) / candidate.sum
        };
        self.unaccounted = baseline.iter().zip(&candidate).map(unaccounted).collect();
    }

    /// Per slot, both sides: seconds per call by the coordinator's clock.
    pub fn seen(&self) -> &[Block] {
        &self.seen
    }

    /// Per slot, both sides: the ratio of the expected time, from the reports, to the coordinator's time.
    pub fn clock(&self) -> &[Block] {
        &self.clock
    }

    /// Per slot: the time that the candidate's reports omit beyond the baseline's, as a share of the candidate's
    /// reports.
    pub fn unaccounted(&self) -> &[f64] {
        &self.unaccounted
    }

    /// Costs of a slot in addition to its calls, measured on the baseline.
    pub fn around(&self) -> Option<Around> {
        self.around
    }

    /// CPU time of both sides while nothing was asked of them, in processors.
    pub fn idle(&self) -> Option<[f64; 2]> {
        self.idle
    }

    /// The candidate's calls on new values relative to its calls on known values, beyond what the baseline shows: its
    /// extra time with a margin, or its extra share, whichever is larger. None without such calls.
    ///
    /// Both kinds of call were taken in random order in the steady state, so a difference is memory. Whatever changes
    /// over the life of a process meets both kinds alike.
    pub fn memory(&self, witness: Witness) -> Option<Block> {
        if let Witness::InSlots = witness {
            let of = |side: usize| median(&self.in_slots.iter().map(|calls| calls[side]).collect::<Vec<_>>());
            return (!self.in_slots.is_empty()).then(|| {
                let over = (of(1) / of(0).max(1.0)).max(LEAST);
                Block::new(self.process, vec![over], vec![1.0])
            });
        }
        if self.fresh.is_empty() || self.known.is_empty() {
            return None;
        }
        let of = |calls: &[[LoneCall; 2]], figure: &dyn Fn(&[LoneCall; 2]) -> f64| {
            median(&calls.iter().map(figure).collect::<Vec<_>>())
        };
        let alike = self.known[0][0].is_stepped == self.known[0][1].is_stepped;
        let [baseline, candidate] = [0, 1].map(|side: usize| {
            let shown_by = if alike { 0 } else { side };
            let messages = of(&self.known, &|both| {
                both[shown_by].elapsed - both[shown_by].reported
            });
            let seconds = |call: &LoneCall| match witness {
                Witness::Coordinator => call.elapsed - bounded(messages, 1, call.is_stepped),
                _ => call.reported,
            };
            [&self.fresh, &self.known]
                .map(|calls| of(calls, &|both| seconds(&both[side])).max(f64::MIN_POSITIVE))
        });
        let alone = baseline[0] - baseline[1];
        let less_time = (candidate[0] - alone.max(LONE_FACTOR * alone)) / candidate[1];
        let less_share = candidate[0] / candidate[1] * (baseline[1] / baseline[0]);
        let over = less_time.min(less_share).max(LEAST);
        Some(Block::new(self.process, vec![over], vec![1.0]))
    }
}

pub(super) fn of<T: Clone>(both: &[(Arm, T)], wanted: Arm) -> Vec<T> {
    let own = both.iter().filter(|(arm, _)| *arm == wanted);
    own.map(|(_, one)| one.clone()).collect()
}
