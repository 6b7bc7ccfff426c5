//! What is found within a given time: real workers with effects of known size, decided by the lab and, in the same time
//! on the same machine, by the rules that people use instead.
//!
//! Each comparison first measures the effect that is really injected, then lets the judge spend its budget, then gives
//! the rivals as long as the judge took ([`whole_runs`]). Each repetition draws its own order of effects.

pub mod whole_runs;

use std::time::{Duration, Instant};

use gauntlet_device::Device;
use gauntlet_judge::{Observer, Suspicion, Workshop, measure};
use gauntlet_stats::{Criteria, Decision, Interval, median};
use gauntlet_worker::{Limits, Timeouts, WorkerCommand};
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::characteristics::effect::Effect;
use crate::characteristics::error::CharacteristicsError;
use crate::characteristics::injected::{Injected, slowed};
use crate::characteristics::live;
use crate::characteristics::rule::{Rule, rivals};
use crate::characteristics::share::Share;
use crate::characteristics::tally::Tally;
use crate::characteristics::trial::Calls;
use whole_runs::{Sides, WholeRuns};

/// What is compared how often, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// The injected effects.
    pub effects: Vec<Effect>,
    /// Comparisons of each effect.
    pub runs: usize,
    /// The most time of one comparison, in seconds.
    pub budget: f64,
}

/// The rules in the order of tables; the lab's own first.
pub const RULES: [Rule; 5] = [
    Rule::Gauntlet,
    Rule::Welch,
    Rule::WelchBySize,
    Rule::Minimum,
    Rule::MeanOfRuns,
];

/// One comparison, decided by every rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PowerRun {
    /// The effect that was asked for.
    pub effect: Effect,
    /// The true log speed-up: zero, or as measured on the spot.
    pub truth: f64,
    /// The log speed-up that the judge found, at its last look.
    pub interval: Option<Interval>,
    /// Why the judge distrusts the times, although they are honest.
    pub suspicion: Option<Suspicion>,
    /// The judge's reason in words, which names what was charged to either side.
    pub reason: String,
    /// Pairs of processes that the judge measured.
    pub pairs: usize,
    /// Seconds that the judge took, and that the rivals got.
    pub seconds: f64,
    /// Calls of each side that the rivals had, and whole runs.
    pub calls: usize,
    /// Whole runs of each side that the rivals had.
    pub whole_runs: usize,
    /// The decision of each rule, in the order of [`RULES`].
    pub decisions: [Decision; RULES.len()],
}

impl PowerRun {
    /// Whether the interval lies on one side of 0: that of the truth, or either where there is no difference.
    fn is_apart(&self) -> bool {
        let sides = |interval: &Interval| (interval.lower > 0.0, interval.upper < 0.0);
        let (above, below) = self.interval.as_ref().map_or((false, false), sides);
        if self.truth == 0.0 {
            above || below
        } else if self.truth > 0.0 {
            above
        } else {
            below
        }
    }
}

/// All comparisons of one effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PowerCell {
    /// The effect that was asked for.
    pub effect: Effect,
    /// The mean of the true log speed-ups.
    pub truth: f64,
    /// The median of the seconds that the judge took.
    pub seconds: f64,
    /// Comparisons whose interval lies on one side of 0: that of the truth, or either where there is no difference. This
    /// is what other rules call significant; to adopt, the lab also wants the interval to be above the target.
    pub apart: Share,
    /// The tally of each rule, in the order of [`RULES`].
    pub rules: Vec<Tally>,
}

/// The results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Power {
    /// What was compared how often.
    pub plan: Plan,
    /// The decision criteria.
    pub criteria: Criteria,
    /// Counts by effect.
    pub cells: Vec<PowerCell>,
    /// Each comparison.
    pub runs: Vec<PowerRun>,
}

impl Power {
    /// Makes the comparisons of the plan. `worker` serves the CPU of `device`.
    pub fn measure(
        plan: Plan,
        device: Device,
        worker: &WorkerCommand,
        observer: &dyn Observer,
    ) -> Result<Self, CharacteristicsError> {
        let setting = live::setting(device)?;
        let workshop = Workshop::new(worker.clone(), Timeouts::default(), Limits::default())?;
        let budget = Duration::try_from_secs_f64(plan.budget).unwrap_or_default();
        let mut runs = Vec::new();
        for run in 1..=plan.runs {
            let mut effects = plan.effects.clone();
            effects.shuffle(&mut rand::rng());
            for effect in effects {
                observer.progress(&format!("power, run {run} of {}, {effect}", plan.runs));
                let compared = compare(&workshop, &setting, worker, effect, budget, observer)
                    .map_err(|failure| CharacteristicsError::in_live(failure, effect))?;
                runs.push(compared);
            }
        }
        Ok(Self::of(plan, setting.criteria, runs))
    }

    /// Counts the comparisons.
    pub fn of(plan: Plan, criteria: Criteria, runs: Vec<PowerRun>) -> Self {
        let cell = |effect: &Effect| {
            let own: Vec<&PowerRun> = runs.iter().filter(|run| run.effect == *effect).collect();
            let seconds: Vec<f64> = own.iter().map(|run| run.seconds).collect();
            let tally = |(place, rule): (usize, Rule)| {
                let said: Vec<Decision> = own.iter().map(|run| run.decisions[place]).collect();
                Tally::new(rule, &said, *effect, &criteria)
            };
            let apart = own.iter().filter(|run| run.is_apart()).count();
            (!own.is_empty()).then(|| PowerCell {
                effect: *effect,
                truth: own.iter().map(|run| run.truth).sum::<f64>() / own.len() as f64,
                seconds: median(&seconds),
                apart: Share::new(apart, own.len()),
                rules: RULES.into_iter().enumerate().map(tally).collect(),
            })
        };
        Self {
            cells: plan.effects.iter().filter_map(cell).collect(),
            plan,
            criteria,
            runs,
        }
    }

    /// Whether a thing was adopted over itself, which the lab must never do.
    pub fn adopted_the_same(&self) -> bool {
        let same = self.runs.iter().filter(|run| run.effect == Effect::NONE);
        same.into_iter().any(|run| run.decisions[0] == Decision::Adopt)
    }
}

fn compare(
    workshop: &Workshop,
    setting: &gauntlet_judge::Setting,
    worker: &WorkerCommand,
    effect: Effect,
    budget: Duration,
    observer: &dyn Observer,
) -> Result<PowerRun, gauntlet_judge::ExaminationFailure> {
    let injected = if effect == Effect::NONE {
        None
    } else {
        Injected::measure(setting, worker, effect)?
    };
    let baseline = slowed("baseline", worker, effect.on_baseline());
    let candidate = slowed("candidate", worker, effect.on_candidate());
    let start = Instant::now();
    let comparison = measure(workshop, setting, &baseline, &candidate, budget, observer)?;
    let took = start.elapsed();
    let Sides { baseline, candidate } =
        whole_runs::collect(workshop, setting, [&baseline, &candidate], took)?;
    let own = live::decision(&comparison);
    Ok(PowerRun {
        effect,
        truth: injected.map_or(0.0, |injected| injected.log_speedup(effect)),
        interval: comparison.assessment.suite.clone(),
        suspicion: live::suspicion(&comparison),
        reason: comparison.reason(),
        pairs: comparison.looks.last().map_or(0, |look| look.processes),
        seconds: took.as_secs_f64(),
        calls: baseline.calls.len().min(candidate.calls.len()),
        whole_runs: baseline.runs.len().min(candidate.runs.len()),
        decisions: decisions(own, &baseline, &candidate, &setting.criteria, comparison.seed),
    })
}

/// The decisions of all rules, in the order of [`RULES`].
fn decisions(
    own: Decision,
    baseline: &WholeRuns,
    candidate: &WholeRuns,
    criteria: &Criteria,
    seed: u64,
) -> [Decision; RULES.len()] {
    let calls = Calls {
        baseline: baseline.calls.clone(),
        candidate: candidate.calls.clone(),
        runs: [baseline.runs.clone(), candidate.runs.clone()],
    };
    let on_calls = rivals(&calls, criteria, seed);
    RULES.map(|rule| match rule {
        Rule::Gauntlet => own,
        _ => {
            let place = Rule::RIVALS.iter().position(|rival| *rival == rule);
            place.map_or(Decision::Inconclusive, |place| on_calls[place])
        }
    })
}

#[cfg(test)]
mod tests {
    use gauntlet_stats::Origin;

    use super::*;

    fn run(effect: Effect, own: Decision, seconds: f64) -> PowerRun {
        PowerRun {
            effect,
            truth: effect.log_speedup(),
            interval: None,
            suspicion: None,
            reason: String::new(),
            pairs: 4,
            seconds,
            calls: 100,
            whole_runs: 5,
            decisions: [own, Decision::Adopt, own, own, own],
        }
    }

    #[test]
    fn comparisons_are_counted_by_effect() {
        let effects = vec![Effect::NONE, Effect::of(0.03)];
        let plan = Plan {
            effects: effects.clone(),
            runs: 2,
            budget: 60.0,
        };
        let runs = vec![
            run(effects[0], Decision::ValidNegative, 10.0),
            run(effects[1], Decision::Adopt, 20.0),
            run(effects[1], Decision::Inconclusive, 60.0),
        ];
        let power = Power::of(plan, Criteria::default(), runs);
        assert!(!power.adopted_the_same());
        let cell = &power.cells[1];
        assert_eq!(cell.seconds, 40.0);
        assert!((cell.truth - 1.03f64.ln()).abs() < 1e-12);
        let found: Vec<usize> = cell
            .rules
            .iter()
            .map(|tally| tally.found.unwrap().count)
            .collect();
        assert_eq!(found, [1, 2, 1, 1, 1]);
    }

    #[test]
    fn an_interval_counts_on_the_side_of_the_truth() {
        let apart = |truth: f64, lower: f64, upper: f64| {
            let interval = Interval {
                estimate: (lower + upper) / 2.0,
                lower,
                upper,
                origin: Origin::Measured {
                    confidence: 0.95,
                    processes: 6,
                },
            };
            let run = PowerRun {
                truth,
                interval: Some(interval),
                ..run(Effect::NONE, Decision::Inconclusive, 1.0)
            };
            run.is_apart()
        };
        assert!(apart(0.03, 0.01, 0.05) && !apart(0.03, -0.01, 0.07) && !apart(0.03, -0.05, -0.01));
        assert!(apart(-0.03, -0.05, -0.01) && !apart(-0.03, 0.01, 0.05));
        assert!(apart(0.0, 0.01, 0.05) && apart(0.0, -0.05, -0.01) && !apart(0.0, -0.01, 0.01));
        assert!(
            !run(Effect::of(0.03), Decision::Inconclusive, 1.0).is_apart(),
            "no interval"
        );
    }

    #[test]
    fn every_rule_gets_its_own_decision() {
        let side = |factor: f64| WholeRuns {
            runs: [0.99, 1.0, 1.01].map(|run| run * factor).into(),
            calls: (0..50)
                .map(|index| factor * (1.0 + 1e-3 * f64::from(index % 7)))
                .collect(),
        };
        let found = decisions(
            Decision::Marginal,
            &side(1.1),
            &side(1.0),
            &Criteria::default(),
            1,
        );
        assert_eq!(found[0], Decision::Marginal);
        assert_eq!(found[1..], [Decision::Adopt; 4]);
    }
}
