//! Can the reported times be believed? A worker times its own calls, so the judge checks it from outside: with the
//! coordinator's clock, by the CPU time it uses, and by how it treats operands it has not seen before. Work outside of
//! timed calls is no accusation: it is charged ([`charge`]).

mod around;
mod case;
mod charge;
mod heating;
mod lone;
mod unaccounted;
mod waiting;
mod whole;

use std::collections::BTreeSet;

use gauntlet_stats::{
    Assessment, Block, Criteria, Decision, Effects, Interval, Origin, Sample, least_mean, median,
};

use super::device::Readings;
use crate::evidence::{Around, Busy, Conduct, JudgeError, Launching, Preparation, Suspicion, Unaccounted};

pub use case::CaseConduct;
use case::Witness;
pub use charge::{charged, summary as charges};
pub use heating::summary as heated;
use waiting::Waiting;

/// The share of its reports that a candidate may leave out, provided that is statistically certain. Equal to the size of
/// a negligible effect.
const CLOCK_SLACK: f64 = 0.01;

/// An undecided comparison is void if the reports could omit this share of the time undetected: the check then has no
/// power, whatever the reports say.
const BLIND: f64 = 0.1;

/// Allowed speed-up, in log units, of calls on known values over calls on new ones, beyond what the baseline shows. They
/// are single calls, hence the slack; a kernel that remembers results gains more.
const MEMORY_SLACK: f64 = 0.05;

/// A gain may be owed to memory if calls on known values are estimated to be faster than those on new ones by this share of
/// it, in log units, however uncertain that estimate is.
const OWED: f64 = 0.5;

/// How many processors a side may keep busy while nothing is asked of it and the other side computes. Less is charged
/// ([`charge`]): it takes from the other side no more than it costs. Honest workers show 0.0001 on a quiet machine and up
/// to 0.02 on a busy one; threads that spin for a while after a call, 0.01 to 0.4.
const MAX_IDLE: f64 = 0.5;

/// Confidence of the clock checks, shared by the suite and its cases.
const CONFIDENCE: f64 = 0.99;

/// Confidence of the memory check, which is lower because `MEMORY_SLACK` also leaves room for accidents.
const CONFIDENCE_OF_MEMORY: f64 = 0.95;

impl Conduct {
    /// Judges the observations of each case; every case is measured by the same pairs. If the reported times favour the
    /// candidate according to `assessment`, the coordinator's clock must confirm the gain.
    pub fn judge(
        cases: &[Vec<CaseConduct>],
        assessment: &Assessment,
        criteria: &Criteria,
    ) -> Result<Self, JudgeError> {
        let blocks = |of_pair: fn(&CaseConduct) -> &[Block]| {
            let of_case = |seen: &Vec<CaseConduct>| seen.iter().flat_map(of_pair).cloned().collect();
            cases.iter().map(of_case).collect()
        };
        let by_coordinator = by_coordinator(blocks(CaseConduct::seen), criteria)?;
        let clock = excess(blocks(CaseConduct::clock), CONFIDENCE)?;
        let unaccounted = unaccounted(cases);
        let memory = memory(cases)?;
        let [idle_baseline, idle_candidate] = [0, 1].map(|side| {
            let shares = cases.iter().filter_map(|seen| {
                let shares: Vec<f64> = seen.iter().filter_map(|one| Some(one.idle()?[side])).collect();
                (!shares.is_empty()).then(|| median(&shares))
            });
            shares.reduce(f64::max)
        });
        let mut conduct = Self {
            by_coordinator,
            own_clock: clock.as_ref().map(|excess| excess.suite.clone()),
            unaccounted: unaccounted.first().copied(),
            memory: memory.as_ref().map(|excess| excess.suite.clone()),
            around: cases
                .iter()
                .filter_map(|seen| {
                    Around::over(&seen.iter().filter_map(CaseConduct::around).collect::<Vec<_>>())
                })
                .collect(),
            idle_baseline,
            idle_candidate,
            charges: Vec::new(),
            preparation: preparation(cases),
            busy: busy(cases, assessment)?,
            heating: None,
            launching: launching(cases),
            device_use: Readings::over(cases.iter().flatten().map(|one| &one.readings)),
            device_activity: None,
            suspicion: None,
        };
        // What a candidate leaves out of reports by which it is slower gains it nothing.
        let is_slower = assessment
            .suite
            .as_ref()
            .is_some_and(|own| own.estimate < criteria.log_practically_zero().0);
        conduct.suspicion = omitted(&unaccounted)
            .filter(|_| !is_slower)
            .or_else(|| conduct.suspect(memory.map(|excess| excess.surely)))
            .or_else(|| heating::rests(cases))
            .or_else(|| conduct.contradicted(assessment, criteria))
            .or_else(|| whole::contradicted(cases, assessment.decision))
            .or_else(|| conduct.unconfirmed(cases, assessment, criteria))
            .or_else(|| conduct.unchecked(cases, assessment, criteria))
            .or_else(|| conduct.unfamiliar(assessment))
            .or_else(|| outweighed(&charge::with_all_work(cases), assessment));
        Ok(conduct)
    }

    /// What is left of an assessment where a check had no power for its gain: an interval that reaches down to what is sure, and no
    /// decision.
    pub fn widened(&self, mut assessment: Assessment) -> Assessment {
        let least = self.suspicion.and_then(|suspicion| suspicion.least_gain());
        if let Some((least, suite)) = least.zip(assessment.suite.as_mut()) {
            suite.lower = suite.lower.min(least);
            assessment.decision = Decision::Inconclusive;
        }
        assessment
    }

    /// Whether the machine was too busy to tell a real gain from one that is only reported: reports could omit enough
    /// time to fake the whole gain and go undetected. Even the verdict "undecided" would then rely on the candidate's
    /// word, unless it has no code in the process that reports.
    fn unchecked(
        &self,
        cases: &[Vec<CaseConduct>],
        assessment: &Assessment,
        criteria: &Criteria,
    ) -> Option<Suspicion> {
        if are_device_only(cases) {
            return None;
        }
        let own = assessment.suite.as_ref()?.estimate;
        let hidden = self.unaccounted?.upper.ln_1p();
        let gains = own > criteria.log_practically_zero().1 && hidden >= own;
        let unchecked = match assessment.decision {
            Decision::Adopt | Decision::Marginal => gains,
            Decision::Inconclusive => gains || hidden >= BLIND.ln_1p(),
            Decision::ValidNegative | Decision::Regression => false,
        };
        unchecked.then(|| Suspicion::Unchecked {
            own: own.exp(),
            hidden: hidden.exp(),
        })
    }

    /// Whether the coordinator's clock contradicts the reported gain: it does not confirm it, and its whole interval is below that of the
    /// reports.
    fn contradicted(&self, assessment: &Assessment, criteria: &Criteria) -> Option<Suspicion> {
        let own = assessment.suite.as_ref()?;
        let seen = self.without_confirmation(assessment, criteria)?;
        (seen.upper < own.lower).then(|| Suspicion::Unconfirmed {
            own: own.estimate.exp(),
            seen: seen.estimate.exp(),
        })
    }

    /// Whether the coordinator's clock neither confirms the reported gain nor contradicts it. Its times scatter: on a busy machine by many
    /// percent, and behind the holds of a GPU by microseconds, which is a large part of a short call. It is no accusation. The
    /// gain is believed if the kernels have no code where calls are clocked.
    fn unconfirmed(
        &self,
        cases: &[Vec<CaseConduct>],
        assessment: &Assessment,
        criteria: &Criteria,
    ) -> Option<Suspicion> {
        let own = assessment.suite.as_ref().filter(|_| !are_device_only(cases))?;
        let seen = self.without_confirmation(assessment, criteria)?;
        Some(Suspicion::Unresolved {
            own: own.estimate.exp(),
            lower: seen.lower.exp(),
            upper: seen.upper.exp(),
            pairs: pairs_to_tell(own.estimate, seen, cases),
        })
    }

    /// The speed-up by the coordinator's clock, if it fails to confirm a reported gain: its estimate must reach the same threshold, and its
    /// lower bound must be above zero.
    fn without_confirmation(&self, assessment: &Assessment, criteria: &Criteria) -> Option<&Interval> {
        let least = match assessment.decision {
            Decision::Adopt => criteria.log_target(),
            Decision::Marginal => 0.0,
            Decision::ValidNegative | Decision::Regression | Decision::Inconclusive => return None,
        };
        let seen = self.by_coordinator.as_ref()?;
        (seen.estimate < least || seen.lower <= 0.0).then_some(seen)
    }

    /// Whether a gain may be owed to memory: calls on known values are estimated to be faster than those on new ones by half
    /// of it, or no pair has shown any. The first look may come before enough calls on new values to accuse a candidate
    /// that remembers.
    fn unfamiliar(&self, assessment: &Assessment) -> Option<Suspicion> {
        let gains = matches!(assessment.decision, Decision::Adopt | Decision::Marginal);
        let own = assessment.suite.as_ref().filter(|_| gains)?.estimate;
        let memory = self.memory.as_ref().map(|memory| memory.estimate);
        let is_owed = memory.is_none_or(|memory| memory > MEMORY_SLACK && memory > OWED * own);
        is_owed.then(|| Suspicion::Unfamiliar {
            own: own.exp(),
            memory: memory.map(f64::exp),
        })
    }

    fn suspect(&self, memory: Option<f64>) -> Option<Suspicion> {
        if let Some(surely) = memory.filter(|surely| *surely > MEMORY_SLACK) {
            return Some(Suspicion::Memory { factor: surely.exp() });
        }
        let sides = [(true, self.idle_candidate), (false, self.idle_baseline)];
        sides.into_iter().find_map(|(candidate, share)| {
            let share = share.filter(|share| *share > MAX_IDLE)?;
            Some(Suspicion::Idle { candidate, share })
        })
    }
}

/// How many pairs would make half of an interval about as wide as a gain: it shrinks with the root of their number.
fn pairs_to_tell(gain: f64, interval: &Interval, cases: &[Vec<CaseConduct>]) -> usize {
    let pairs = cases.iter().map(Vec::len).min().unwrap_or(0);
    (pairs as f64 * (interval.half_width() / gain).powi(2)).ceil() as usize
}

/// Whether the kernels have no code in the process that clocks them.
fn are_device_only(cases: &[Vec<CaseConduct>]) -> bool {
    cases.iter().flatten().all(|one| one.device_only)
}

/// Whether a gain might be work that was moved out of the timed calls: some of the baseline's time must surely be saved when all excess
/// work is counted, even what scatter could explain. What such work could feign is all that is not sure to remain. `saved` holds
/// the share of the baseline's time for each pair.
fn outweighed(saved: &[f64], assessment: &Assessment) -> Option<Suspicion> {
    let gains = matches!(assessment.decision, Decision::Adopt | Decision::Marginal);
    let own = assessment.suite.as_ref()?.estimate;
    let measured = saved.len() > 1 && saved.iter().all(|one| one.is_finite());
    if !gains || !measured {
        return None;
    }
    let least = least_mean(saved, CONFIDENCE_OF_MEMORY).filter(|least| *least <= 0.0)?;
    Some(Suspicion::Unchecked {
        own: own.exp(),
        hidden: own.exp() * (1.0 - least),
    })
}

/// How late hosts were with their launches; none unless calls were clocked on a GPU behind holds.
fn launching(cases: &[Vec<CaseConduct>]) -> Option<Launching> {
    let each = || cases.iter().flatten().filter(|one| one.hold > 0.0);
    let late = [0, 1].map(|side: usize| {
        let [late, calls] = [0, 1].map(|what: usize| each().map(|one| one.late[side][what]).sum::<usize>());
        late as f64 / calls.max(1) as f64
    });
    Some(Launching {
        hold: each().map(|one| one.hold).reduce(f64::max)?,
        late_baseline: late[0],
        late_candidate: late[1],
    })
}

/// How busy the machine was; none if the system does not report it for each pair.
fn busy(cases: &[Vec<CaseConduct>], assessment: &Assessment) -> Result<Option<Busy>, JudgeError> {
    let each: Option<Vec<&Waiting>> = cases.iter().flatten().map(|one| one.waiting.as_ref()).collect();
    let Some(each) = each.filter(|each| !each.is_empty()) else {
        return Ok(None);
    };
    let sum = |figure: fn(&Waiting) -> f64| each.iter().map(|waiting| figure(waiting)).sum::<f64>();
    let (waited, ran) = (sum(|waiting| waiting.waited), sum(|waiting| waiting.ran));
    let slots: usize = each.iter().map(|waiting| waiting.slots).sum();
    let undisturbed: usize = each.iter().map(|waiting| waiting.undisturbed.len()).sum();
    Ok(Some(Busy {
        waited: waited / (waited + ran).max(f64::MIN_POSITIVE),
        slots,
        disturbed: slots - undisturbed,
        measured_again: 0,
        undisturbed_half_width: undisturbed_half_width(cases, assessment)?,
    }))
}

/// Half the width of the suite's interval if only undisturbed slots counted; none without an interval, or if a pair has no
/// such slot.
fn undisturbed_half_width(
    cases: &[Vec<CaseConduct>],
    assessment: &Assessment,
) -> Result<Option<f64>, JudgeError> {
    let Some(Origin::Measured { confidence, .. }) = assessment.suite.as_ref().map(|suite| &suite.origin)
    else {
        return Ok(None);
    };
    let none = |one: &CaseConduct| {
        one.waiting
            .as_ref()
            .is_none_or(|waiting| waiting.undisturbed.is_empty())
    };
    if cases.iter().flatten().any(none) {
        return Ok(None);
    }
    let of_case = |seen: &Vec<CaseConduct>| -> Vec<Block> {
        let waiting = seen.iter().filter_map(|one| one.waiting.as_ref());
        waiting.flat_map(|waiting| waiting.undisturbed.clone()).collect()
    };
    let samples = samples(&cases.iter().map(of_case).collect::<Vec<_>>())?;
    let interval = Effects::of(&samples)?.suite.interval(*confidence)?;
    Ok(Some(interval.half_width()))
}

/// What came before the measurement: the median over pairs of the worst case.
fn preparation(cases: &[Vec<CaseConduct>]) -> Option<[Preparation; 2]> {
    let of_case = |seen: &Vec<CaseConduct>, side: usize, figure: fn(&Preparation) -> f64| {
        median(
            &seen
                .iter()
                .map(|one| figure(&one.preparation[side]))
                .collect::<Vec<_>>(),
        )
    };
    let worst = |side: usize, figure: fn(&Preparation) -> f64| {
        let seen = cases.iter().filter(|seen| !seen.is_empty());
        seen.map(|seen| of_case(seen, side, figure)).fold(0.0, f64::max)
    };
    cases.iter().any(|seen| !seen.is_empty()).then(|| {
        [0, 1].map(|side| Preparation {
            seconds: worst(side, |one| one.seconds),
            bytes: worst(side, |one| one.bytes),
            warm_up_calls: worst(side, |one| one.warm_up_calls),
            slowest_over_steady: worst(side, |one| one.slowest_over_steady),
        })
    })
}

/// The time that the candidate's reports omit: first over all slots, then for each case, at a shared confidence. Empty
/// with fewer than two pairs.
fn unaccounted(cases: &[Vec<CaseConduct>]) -> Vec<Unaccounted> {
    if cases.iter().any(|seen| seen.len() < 2) {
        return Vec::new();
    }
    let of_case = |seen: &Vec<CaseConduct>| -> Vec<f64> {
        seen.iter().flat_map(CaseConduct::unaccounted).copied().collect()
    };
    let each: Vec<Vec<f64>> = cases.iter().map(of_case).collect();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / (each.len() + 1) as f64;
    let of_all = std::iter::once(each.concat()).chain(each.iter().cloned());
    // The set of all slots is the largest: if it is too small for a bound, so is each case.
    of_all
        .filter_map(|shares| Unaccounted::of(&shares, confidence))
        .collect()
}

/// Suspicion of omitted time, if a lower bound is above the negligible size.
fn omitted(unaccounted: &[Unaccounted]) -> Option<Suspicion> {
    let surely = unaccounted.iter().filter(|one| one.lower > CLOCK_SLACK);
    let most = surely.map(|one| one.median).reduce(f64::max)?;
    Some(Suspicion::OwnClock { factor: 1.0 + most })
}

/// None with fewer than two pairs.
fn by_coordinator(cases: Vec<Vec<Block>>, criteria: &Criteria) -> Result<Option<Interval>, JudgeError> {
    let samples = samples(&cases)?;
    if samples.iter().any(|sample| sample.processes().len() < 2) {
        return Ok(None);
    }
    Ok(Some(Effects::of(&samples)?.suite.interval(criteria.confidence)?))
}

fn samples(cases: &[Vec<Block>]) -> Result<Vec<Sample>, JudgeError> {
    let samples = cases.iter().map(|blocks| Sample::from_blocks(blocks));
    Ok(samples.collect::<Result<_, _>>()?)
}

/// How much faster the candidate is on operands it has seen before, by the witness that shows the larger effect. Any
/// witness suffices for a suspicion, so each gets a third of the error probability.
fn memory(cases: &[Vec<CaseConduct>]) -> Result<Option<Excess>, JudgeError> {
    let confidence = 1.0 - (1.0 - CONFIDENCE_OF_MEMORY) / 3.0;
    let by = |witness: Witness| {
        let of_case = |seen: &Vec<CaseConduct>| seen.iter().filter_map(|one| one.memory(witness)).collect();
        excess(cases.iter().map(of_case).collect(), confidence)
    };
    let told = [
        by(Witness::Reports)?,
        by(Witness::Coordinator)?,
        by(Witness::InSlots)?,
    ];
    Ok(told
        .into_iter()
        .flatten()
        .max_by(|one, other| one.surely.total_cmp(&other.surely)))
}

/// An excess of log speed-up.
struct Excess {
    suite: Interval,
    /// The largest lower bound among the suite and its cases.
    surely: f64,
}

/// Only the pairs that have blocks of every case: where a load brings one new set, chance decides whether a pair shows a
/// witness of memory in a case.
fn of_common_pairs(mut cases: Vec<Vec<Block>>) -> Vec<Vec<Block>> {
    let pairs = |blocks: &Vec<Block>| blocks.iter().map(|block| block.process).collect();
    let each: Vec<BTreeSet<usize>> = cases.iter().map(pairs).collect();
    for blocks in &mut cases {
        blocks.retain(|block| each.iter().all(|pairs| pairs.contains(&block.process)));
    }
    cases
}

/// None with fewer than two pairs.
fn excess(cases: Vec<Vec<Block>>, confidence: f64) -> Result<Option<Excess>, JudgeError> {
    let samples = samples(&of_common_pairs(cases))?;
    if samples.iter().any(|sample| sample.processes().len() < 2) {
        return Ok(None);
    }
    let effects = Effects::of(&samples)?;
    let confidence = 1.0 - (1.0 - confidence) / (samples.len() + 1) as f64;
    let suite = effects.suite.interval(confidence)?;
    let mut intervals = vec![suite.clone()];
    for problem in &effects.problems {
        intervals.push(problem.interval(confidence)?);
    }
    let surely = intervals
        .iter()
        .map(|interval| interval.lower)
        .fold(f64::MIN, f64::max);
    Ok(Some(Excess { suite, surely }))
}

#[cfg(test)]
mod tests;
