//! Can the reported times be believed? A worker times its own calls, so the judge checks it from outside: with the
//! coordinator's clock, by the CPU time it uses, and by how it treats operands it has not seen before.

mod case;
mod unaccounted;

use gauntlet_stats::{
    Assessment, Block, Bootstrap, Criteria, Decision, Interval, Resampling, Sample, median,
};

use crate::evidence::{Around, Conduct, JudgeError, Suspicion, Unaccounted};

pub use case::CaseConduct;
use case::Witness;

/// Allowed excess, in log speed-up, of a candidate's own reports over the coordinator's clock, provided the excess is
/// statistically certain. Equal to the size of a negligible effect.
const CLOCK_SLACK: f64 = 0.01;

/// An undecided comparison is void if the reports could omit this share of the time undetected: the check then has no
/// power, whatever the reports say.
const BLIND: f64 = 0.1;

/// Allowed speed-up, in log units, of later calls over the first call on the same operands, beyond what the baseline
/// shows. First calls are single calls on cold pages, hence the slack; a kernel that remembers results gains more.
const MEMORY_SLACK: f64 = 0.05;

/// Limit on CPU time used between requests, as a share of the CPU time used during requests. Honest workers showed
/// 0.0001 on a quiet machine and up to 0.02 on a machine with two processors shared by several comparisons, where the
/// work that ends an answer is delayed. Threads that keep spinning for a while exceed the limit, honest or not, and
/// disturb the other side.
const IDLE_SHARE: f64 = 0.025;

/// Extra work allowed in loading, in baseline calls, on top of the baseline's own loading work and a fraction of it
/// (see [`case`]). The same limit applies to handing out the result. A slow loader and one that computes look alike
/// from outside: on problems so small that loading outweighs a call, neither is believed.
const UNTIMED_CALLS: f64 = 0.35;

/// Confidence of the clock checks, shared by the suite and its cases.
const CONFIDENCE: f64 = 0.99;

/// Confidence of the memory check, which is lower because `MEMORY_SLACK` also leaves room for accidents.
const CONFIDENCE_OF_MEMORY: f64 = 0.95;

const RESAMPLING: Resampling = Resampling {
    resamples: 1000,
    seed: 0,
};

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
        let in_most_pairs = |calls: fn(&CaseConduct) -> f64| {
            let seen = cases.iter().filter(|seen| !seen.is_empty());
            let medians = seen.map(|seen| median(&seen.iter().map(calls).collect::<Vec<_>>()));
            medians.reduce(f64::max)
        };
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
            loading: in_most_pairs(CaseConduct::loading),
            handing_out: in_most_pairs(CaseConduct::handing_out),
            suspicion: None,
        };
        conduct.suspicion = omitted(&unaccounted)
            .or_else(|| conduct.suspect(memory.map(|excess| excess.surely), clock, assessment))
            .or_else(|| conduct.unconfirmed(assessment, criteria))
            .or_else(|| conduct.unchecked(assessment, criteria));
        Ok(conduct)
    }

    /// Whether the machine was too busy to tell a real gain from one that is only reported: reports could omit enough
    /// time to fake the whole gain and go undetected. Even the verdict "undecided" would then rely on the candidate's
    /// word.
    fn unchecked(&self, assessment: &Assessment, criteria: &Criteria) -> Option<Suspicion> {
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

    /// Whether the coordinator's clock fails to confirm the reported gain: its estimate must reach the same threshold,
    /// and its lower bound must be above zero.
    fn unconfirmed(&self, assessment: &Assessment, criteria: &Criteria) -> Option<Suspicion> {
        let least = match assessment.decision {
            Decision::Adopt => criteria.log_target(),
            Decision::Marginal => 0.0,
            Decision::ValidNegative | Decision::Regression | Decision::Inconclusive => return None,
        };
        let (own, seen) = (assessment.suite.as_ref()?.estimate, self.by_coordinator.as_ref()?);
        (seen.estimate < least || seen.lower <= 0.0).then(|| Suspicion::Unconfirmed {
            own: own.exp(),
            seen: seen.estimate.exp(),
        })
    }

    fn suspect(
        &self,
        memory: Option<f64>,
        clock: Option<Excess>,
        assessment: &Assessment,
    ) -> Option<Suspicion> {
        // Work outside the timed calls can only make a candidate look faster: a regression stands in spite of it, so
        // that an interpreter that loads slowly gets its verdict.
        let could_gain = clock.is_some() && assessment.decision != Decision::Regression;
        if let Some(clock) = clock.filter(|clock| clock.likely > CLOCK_SLACK) {
            return Some(Suspicion::OwnClock {
                factor: clock.likely.exp(),
            });
        }
        for (candidate, share) in [(true, self.idle_candidate), (false, self.idle_baseline)] {
            if let Some(share) = share.filter(|share| *share > IDLE_SHARE) {
                return Some(Suspicion::Idle { candidate, share });
            }
        }
        if let Some(surely) = memory.filter(|surely| *surely > MEMORY_SLACK) {
            return Some(Suspicion::Memory { factor: surely.exp() });
        }
        // A single pair may be slow by chance.
        let untimed = [(false, self.loading), (true, self.handing_out)];
        untimed
            .into_iter()
            .filter(|_| could_gain)
            .find_map(|(after, calls)| {
                let calls = calls.filter(|calls| *calls > UNTIMED_CALLS)?;
                Some(Suspicion::Untimed { after, calls })
            })
    }
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
    let bootstrap = Bootstrap::new(&samples, RESAMPLING)?;
    Ok(Some(bootstrap.suite.interval(criteria.confidence)?))
}

fn samples(cases: &[Vec<Block>]) -> Result<Vec<Sample>, JudgeError> {
    let samples = cases.iter().map(|blocks| Sample::from_blocks(blocks));
    Ok(samples.collect::<Result<_, _>>()?)
}

/// How much faster the candidate is on operands it has seen before, by the witness that shows the larger effect. Either
/// witness suffices for a suspicion, so each gets half of the error probability.
fn memory(cases: &[Vec<CaseConduct>]) -> Result<Option<Excess>, JudgeError> {
    let confidence = 1.0 - (1.0 - CONFIDENCE_OF_MEMORY) / 2.0;
    let by = |witness: Witness| {
        let of_case = |seen: &Vec<CaseConduct>| seen.iter().filter_map(|one| one.memory(witness)).collect();
        excess(cases.iter().map(of_case).collect(), confidence)
    };
    let told = [by(Witness::Reports)?, by(Witness::Coordinator)?];
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
    /// The largest estimate among those with a positive lower bound; negative if there is none.
    likely: f64,
}

/// None with fewer than two pairs.
fn excess(cases: Vec<Vec<Block>>, confidence: f64) -> Result<Option<Excess>, JudgeError> {
    let samples = samples(&cases)?;
    if samples.iter().any(|sample| sample.processes().len() < 2) {
        return Ok(None);
    }
    let bootstrap = Bootstrap::new(&samples, RESAMPLING)?;
    let confidence = 1.0 - (1.0 - confidence) / (samples.len() + 1) as f64;
    let suite = bootstrap.suite.interval(confidence)?;
    let mut intervals = vec![suite.clone()];
    for problem in &bootstrap.problems {
        intervals.push(problem.interval(confidence)?);
    }
    let surely = intervals
        .iter()
        .map(|interval| interval.lower)
        .fold(f64::MIN, f64::max);
    let sure = intervals.iter().filter(|interval| interval.lower > 0.0);
    let likely = sure.map(|interval| interval.estimate).fold(f64::MIN, f64::max);
    Ok(Some(Excess {
        suite,
        surely,
        likely,
    }))
}

#[cfg(test)]
mod tests;
