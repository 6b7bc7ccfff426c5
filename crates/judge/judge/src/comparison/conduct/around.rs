//! What the coordinator's clock shows around calls: messages, holds and waking up, as the baseline's slots show them.
//!
//! A slot takes the time of its calls and three further costs. Messages, and anything else between calls, take both
//! sides equally long, since both make the same number of calls. The first call after a pause is slower than the
//! following ones by its own amount: threads and the device wake up, and caches hold the other side's data. Calls
//! scatter, mostly upward, by a share of their time. All three are measured on the baseline, in the same slots.
//! Otherwise a candidate whose calls are a twentieth as long would be called dishonest because of time that is not part
//! of any call.

use gauntlet_stats::median;

use crate::comparison::slot::Slot;
use crate::evidence::Around;

/// Upper bound on the message time around a slot, in seconds: a fixed part, and a part for each reported call time.
const MESSAGE: f64 = 2e-3;
const MESSAGE_A_CALL: f64 = 4e-6;

/// Upper bound on the messages around a call that the coordinator clocks by itself, in seconds.
pub(super) const HANDSHAKE: f64 = 5e-4;

/// The same on a GPU where a gain has to be confirmed. A host holds the device back for 0.6 ms before each call, so an exchange lasts that
/// much longer: 0.65 ms beyond the call on an H200. If a part of it were left to the calls, a gain of 3 % in 45 us would
/// look like 1 %. What it is held back for beyond 0.6 ms is taken off the clock before.
pub(super) const HELD_BACK_HANDSHAKE: f64 = 1.5e-3;

/// Upper bound on these if only the candidate's own calls show them. A candidate can hide that much of each call.
const OWN_HANDSHAKE: f64 = 2e-4;

/// When the constant costs are as large as the calls, the difference carries no information and may be negative. It is
/// therefore clamped to at least this share of the calls.
pub(super) const LEAST: f64 = 0.1;

impl Around {
    /// The median of each figure over several pairs; none for an empty slice.
    pub fn over(pairs: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| median(&pairs.iter().map(figure).collect::<Vec<_>>());
        (!pairs.is_empty()).then(|| Self {
            messages: of(|one| one.messages),
            begin: of(|one| one.begin),
            scatter: of(|one| one.scatter),
        })
    }

    /// `between` is time for operands and results that is in the slots of both sides.
    pub(super) fn of(baseline: &[Slot], between: f64) -> Self {
        let others = |slot: &Slot| (slot.sum - slot.times[0]) / ((slot.calls() - 1) as f64 * slot.typical);
        Self {
            messages: between
                + baseline.first().map_or(0.0, |first| {
                    bounded(
                        median_of(baseline, |slot| slot.elapsed() - slot.sum) - between,
                        first.calls(),
                        first.is_stepped(),
                    )
                }),
            begin: median_of(baseline, |slot| slot.times[0] - slot.typical).max(0.0),
            scatter: median_of(baseline, |slot| if slot.calls() > 1 { others(slot) } else { 1.0 }),
        }
    }

    /// The coordinator's time for a slot over the time expected from its typical call. Anything that lengthens the
    /// baseline's first call may lengthen a slower side's first call in proportion, for example a clock that has
    /// dropped.
    pub(super) fn excess(&self, slot: &Slot, baseline: f64) -> f64 {
        let begin = self.begin * (slot.typical / baseline).max(1.0);
        let expected = (self.scatter * slot.calls() as f64 * slot.typical + begin).max(LEAST * slot.sum);
        (slot.elapsed() - self.messages).max(LEAST * slot.sum) / expected
    }
}

/// The time of messages that the baseline's slots show, limited to what `calls` calls can take. Without the limit a baseline that
/// reports too short times could hide the difference as message time.
pub(super) fn bounded(messages: f64, calls: usize, are_stepped: bool) -> f64 {
    let calls = calls as f64;
    let most = if are_stepped {
        HANDSHAKE * calls
    } else {
        MESSAGE + MESSAGE_A_CALL * calls
    };
    messages.clamp(0.0, most)
}

/// Seconds that the coordinator's clock shows around each call of either side, as the baseline shows them, and at most
/// `most`. If the coordinator did not clock each call of the baseline, the candidate's own have to do.
pub(super) fn handshakes([baseline, candidate]: [&[Slot]; 2], most: f64) -> [f64; 2] {
    let of = |slots: &[Slot]| {
        let shown: Vec<f64> = slots.iter().filter_map(Slot::handshake).collect();
        (!shown.is_empty()).then(|| median(&shown).clamp(0.0, most))
    };
    let own = || of(candidate).map_or(0.0, |own| own.min(OWN_HANDSHAKE));
    let of_baseline = of(baseline);
    [of_baseline.unwrap_or(0.0), of_baseline.unwrap_or_else(own)]
}

/// The median of a figure over slots.
pub(super) fn median_of(slots: &[Slot], figure: impl Fn(&Slot) -> f64) -> f64 {
    median(&slots.iter().map(figure).collect::<Vec<_>>())
}
