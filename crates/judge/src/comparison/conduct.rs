//! Can the times be believed? A worker takes its own times, so what it does around them is watched: by the
//! coordinator's clock, by the CPU time it uses, and by what it does with operands it has not seen before.

mod case;
mod unaccounted;

use gauntlet_stats::{
    Assessment, Block, Bootstrap, Criteria, Decision, Interval, Resampling, Sample, median,
};

use crate::evidence::{Around, Conduct, JudgeError, Suspicion, Unaccounted};

pub use case::CaseConduct;
use case::Witness;

/// A candidate's own reports may flatter it by this much log speed-up against the coordinator's clock, if the difference
/// is sure at all: as much as is practically nothing.
const CLOCK_SLACK: f64 = 0.01;

/// An undecided comparison is void if the reports could leave out this share of the time and nobody would see it: then the
/// check has no power, whatever they say.
const BLIND: f64 = 0.1;

/// Its later calls on the same operands may surely be this much faster than its first, in log speed-up, when the
/// baseline's are not. First calls are lone calls on cold pages, hence the room; what remembers results gains more.
const MEMORY_SLACK: f64 = 0.05;

/// CPU time used while nothing was asked, as a share of that used when something was. Honest workers were at 0.0001 on a quiet
/// machine and at up to 0.02 on one whose two processors several comparisons shared, where what ends an answer is put off;
/// threads that spin on for a while are over it, honest or not, and disturb the other side.
const IDLE_SHARE: f64 = 0.025;

/// Loading may take as much work as the baseline's and a part of this more ([`case`] says which), and this many of the
/// baseline's calls besides; so may handing out the result. A slow loader and one that computes look alike from outside: on
/// problems so small that loading outweighs a call, neither is believed.
const UNTIMED_CALLS: f64 = 0.35;

/// Confidence that what is seen of clocks is no accident, shared by the suite and its cases.
const CONFIDENCE: f64 = 0.99;

/// The same of memory, whose slack leaves room for accidents besides.
const CONFIDENCE_OF_MEMORY: f64 = 0.95;

const RESAMPLING: Resampling = Resampling {
    resamples: 1000,
    seed: 0,
};

impl Conduct {
    /// Judges what was seen, by case; each case was measured by the same pairs. What the reports come to, by their
    /// assessment, needs the coordinator's clock to say as much, if they speak for the candidate.
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
            .or_else(|| conduct.suspect(memory.map(|excess| excess.surely), clock))
            .or_else(|| conduct.unconfirmed(assessment, criteria))
            .or_else(|| conduct.unchecked(assessment, criteria));
        Ok(conduct)
    }

    /// Whether the machine was too busy to tell a gain from one that is only reported: reports that leave out as much time as
    /// would feign all of it could pass unnoticed. To call even that undecided would be to take the candidate's word.
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

    /// Whether the coordinator's clock does not bear out what the reports say for the candidate: it must show as much on
    /// the whole, and surely more than nothing.
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

    fn suspect(&self, memory: Option<f64>, clock: Option<Excess>) -> Option<Suspicion> {
        let proven = clock.is_some();
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
        // A lone pair may be slow by chance.
        let untimed = [(false, self.loading), (true, self.handing_out)];
        untimed.into_iter().filter(|_| proven).find_map(|(after, calls)| {
            let calls = calls.filter(|calls| *calls > UNTIMED_CALLS)?;
            Some(Suspicion::Untimed { after, calls })
        })
    }
}

/// What the candidate's reports leave out, of all slots and then of each case's, at a confidence that they share. Nothing
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
    // All slots are the most: where they bound nothing, those of no case do.
    of_all
        .filter_map(|shares| Unaccounted::of(&shares, confidence))
        .collect()
}

/// What is surely left out, if it is more than practically nothing.
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

/// How much faster the candidate is on operands that it knows, by the witness that makes most of it: what is sure of either
/// is enough, so each gets half of the error.
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
    /// The greatest lower bound among the suite and its cases.
    surely: f64,
    /// The greatest estimate among those whose lower bound is over 0; less than 0 without one.
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
