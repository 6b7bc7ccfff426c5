//! The result of a paired comparison: times by case, looks, and how both sides behaved while they were timed.

use std::fmt;

use gauntlet_stats::{Assessment, Block, Decision, Ground, Interval, percent_interval};
use gauntlet_worker::protocol::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::evidence::{Busy, DeviceActivity, DeviceUse, Heating, Launching, Regime, Spent, Suspicion, Trust};

/// The measured or recorded times, and the conclusion from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Comparison {
    /// The assessment by the criteria.
    pub assessment: Assessment,
    /// Each problem's times.
    pub cases: Vec<CaseTimes>,
    /// In which state of the device calls were timed; none if nothing was timed here, and in results before this was
    /// recorded, which were isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime: Option<Regime>,
    /// From where to where calls on a GPU were clocked; none on a CPU, where whole calls are, and if nothing was timed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Each look at the figures, in order; empty for records.
    pub looks: Vec<Look>,
    /// The seed of the sign-flip test; in a comparison whose pairs were all measured in one go, of the orders of blocks and of the
    /// operands too.
    pub seed: u64,
    /// Whether the kernels were watched for cheats while they were timed.
    #[serde(default, skip_serializing_if = "Trust::is_watched")]
    pub trust: Trust,
    /// Whether the times can be believed; none for records, and for quick comparisons, which do not check it.
    #[serde(default)]
    pub conduct: Option<Conduct>,
    /// The basis of the recorded bounds; none for measurements.
    pub declared: Option<String>,
    /// The design of measurements that another program made, and what it leaves open; none for our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    /// The basis of predicted times; none for measured or recorded times.
    #[serde(default)]
    pub predicted: Option<String>,
    /// The part of the plan that is missing, if any: pairs for which there was no time, cases without recorded times.
    pub ended_early: Option<String>,
    /// Where the time of the pairs went; none if nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

impl Comparison {
    /// Whether more pairs can change its outcome: it is undecided, or its times may be believed only after more of them.
    pub fn is_open(&self) -> bool {
        match self.suspicion_at_last_look() {
            Some(suspicion) => suspicion.may_pass(),
            None => self.looks.is_empty() || self.assessment.decision == Decision::Inconclusive,
        }
    }

    /// How many pairs of processes in all it is estimated to need: to confirm a gain that the coordinator's clock does not resolve
    /// yet, else to a decision. None without an estimate.
    pub fn needed_pairs(&self) -> Option<usize> {
        match self.suspicion_at_last_look() {
            Some(Suspicion::Unresolved { pairs, .. }) => Some(pairs),
            _ => self.assessment.needed_processes,
        }
    }

    /// Why no check had enough power for a gain, if that is what widened the interval.
    pub fn doubt(&self) -> Option<Suspicion> {
        let suspicion = self.conduct.as_ref()?.suspicion?;
        suspicion.least_gain().map(|_| suspicion)
    }

    /// Why the times could not be believed at the last look. Before the first look there are too few pairs to tell.
    pub fn suspicion_at_last_look(&self) -> Option<Suspicion> {
        self.conduct
            .as_ref()?
            .suspicion
            .filter(|_| !self.looks.is_empty())
    }

    /// The conclusion in a sentence, with everything that it depends on.
    pub fn reason(&self) -> String {
        let Assessment {
            suite,
            ground,
            smallest_visible_effect,
            decision,
            slow_pairs,
            ..
        } = &self.assessment;
        let mut sentence = match suite {
            None => "numbers without an interval decide nothing".to_owned(),
            Some(interval) => format!(
                "{}speed-up {}{}",
                if interval.origin.is_predicted() {
                    "predicted "
                } else {
                    ""
                },
                match self.regime {
                    Some(Regime::Sustained) => "under sustained load ",
                    Some(Regime::Isolated) | None => "",
                },
                percent_interval(interval),
            ),
        };
        if let Ground::BrokenFloor { problems, .. } = ground {
            sentence.push_str(&format!("; under the floor on {}", problems.join(", ")));
        }
        if let Ground::Design { reason, .. } = ground {
            sentence.push_str(&format!("; {reason}"));
        }
        if let (Ground::SlowPairs { .. }, Some(slow)) = (ground, slow_pairs) {
            sentence.push_str(&format!(
                "; that is the typical pair of processes, and the mean is not shown to gain as well: {slow}"
            ));
        }
        if let (Some(effect), Decision::Inconclusive) = (smallest_visible_effect, decision) {
            let effect = effect * 100.0;
            sentence.push_str(&match self.predicted {
                Some(_) => {
                    format!(
                        "; the model's own error is too wide to tell less than {effect:.0} % from nothing"
                    )
                }
                None if !matches!(ground, Ground::SuiteInterval) => String::new(),
                None => format!("; the smallest effect that could have been seen is {effect:.1} %"),
            });
        }
        for charge in self.charged() {
            sentence.push_str(&format!("; {charge}"));
        }
        if let Some(doubt) = self.doubt() {
            sentence.push_str(&format!("; {doubt}"));
        }
        if let Some(declared) = &self.declared {
            sentence.push_str(&format!("; bounds declared, not measured: {declared}"));
        }
        if let Some(design) = &self.design {
            sentence.push_str(&format!("; {design}"));
        }
        if let Some(early) = &self.ended_early {
            sentence.push_str(&format!("; {early}"));
        }
        sentence
    }

    /// What is added to the calls of a side, and in which case: a sentence for each.
    pub fn charged(&self) -> impl Iterator<Item = String> {
        let charges = self.conduct.iter().flat_map(|conduct| &conduct.charges);
        let sides = charges.flat_map(|of| {
            let case = &of.case;
            [("baseline", of.baseline), ("candidate", of.candidate)]
                .map(|(side, charge)| (case, side, charge))
        });
        sides
            .filter(|(_, _, charge)| charge.total() > 0.0)
            .map(|(case, side, charge)| format!("{case}: the {side} is charged {charge}"))
    }
}

/// The times of one problem, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CaseTimes {
    /// The case.
    pub case: String,
    /// Median call of the baseline.
    pub baseline: f64,
    /// Median call of the candidate.
    pub candidate: f64,
    /// All blocks; empty for records.
    pub blocks: Vec<Block>,
}

/// The state at a look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Look {
    /// Pairs of processes measured by then.
    pub processes: usize,
    /// The suite's interval, at the confidence that the plan has for this look.
    pub interval: Option<Interval>,
    /// The decision at this look.
    pub decision: Decision,
    /// Whether it was taken because the time was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
}

/// How both sides behaved while they were timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Conduct {
    /// The candidate's speed-up by the coordinator's clock alone, which includes the messages.
    pub by_coordinator: Option<Interval>,
    /// The candidate's speed-up by both sides' reports over its speed-up by the coordinator's clock, as a log speed-up:
    /// 0 if both agree. Costs of a slot that do not scale with its calls are subtracted first.
    pub own_clock: Option<Interval>,
    /// The exchange time that the candidate's reports omit beyond the baseline's, over all cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaccounted: Option<Unaccounted>,
    /// How much faster the candidate is on values that it has computed with before than on new ones, beyond the
    /// baseline; by its reports or by the coordinator's clock, whichever shows more.
    pub memory: Option<Interval>,
    /// Costs of the baseline's slots in addition to their calls, by case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<Around>,
    /// The processors that the baseline kept busy while nothing was asked of it and the candidate computed; the median
    /// over pairs of the worst case. None if the system does not report CPU time.
    #[serde(alias = "idle-control")]
    pub idle_baseline: Option<f64>,
    /// The same for the candidate.
    pub idle_candidate: Option<f64>,
    /// Work outside of timed calls that was added to the calls before the assessment, by case; cases without any are
    /// left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<Charges>,
    /// What came before the measurement: warm-up and preparation of constant inputs, of the baseline and of the
    /// candidate. Never charged. The median over pairs of the worst case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation: Option<[Preparation; 2]>,
    /// How busy the machine was; none if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
    /// The load before the slots; none where calls are isolated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heating: Option<Heating>,
    /// Whether hosts launched calls in time; none without a GPU, or if their hosts do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launching: Option<Launching>,
    /// The state of the GPU right after the slots; none without a GPU, or if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_use: Option<DeviceUse>,
    /// What the GPU did in calls after the timed ones; none without a GPU, or if neither worker can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_activity: Option<DeviceActivity>,
    /// Why the times cannot be believed; none if they can.
    pub suspicion: Option<Suspicion>,
}

/// Work outside of timed calls that was added to the calls of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Charges {
    /// The case.
    pub case: String,
    /// Added to the baseline's calls.
    pub baseline: SideCharge,
    /// Added to the candidate's calls.
    pub candidate: SideCharge,
}

/// Work of one side beyond the other side's, in seconds for each call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SideCharge {
    /// While it loads a set of operands, and after that.
    pub loading: f64,
    /// While it hands out a result, and after that.
    pub results: f64,
    /// After it has answered a request for timed calls.
    pub idle: f64,
    /// What the mean call, and what lone calls take beyond the typical call.
    pub uneven: f64,
}

impl SideCharge {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.loading + self.results + self.idle + self.uneven
    }
}

impl fmt::Display for SideCharge {
    /// In milliseconds, with the parts that are not zero.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("loading", self.loading),
            ("results", self.results),
            ("work between requests", self.idle),
            ("calls of uneven length", self.uneven),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, seconds)| *seconds > 0.0)
            .map(|(what, seconds)| format!("{what} {:.3}", 1e3 * seconds))
            .collect();
        write!(
            formatter,
            "{:.3} ms a call ({})",
            1e3 * self.total(),
            parts.join(", ")
        )
    }
}

/// What a side did before it was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Preparation {
    /// Seconds to prepare after a load: to repack weights, tune, or plan.
    pub seconds: f64,
    /// Bytes of the prepared form.
    pub bytes: f64,
    /// Calls until the side was steady.
    pub warm_up_calls: f64,
    /// Its slowest request for these calls over the last, by the typical call.
    pub slowest_over_steady: f64,
}

/// The exchange time that the candidate's reports omit beyond the baseline's, as a share of the candidate's reports:
/// the median over slots timed side by side, with the bounds of the sign test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Unaccounted {
    /// The median slot.
    pub median: f64,
    /// Lower bound of the median, at the required confidence.
    pub lower: f64,
    /// Upper bound of the median, at the required confidence.
    pub upper: f64,
    /// How many slots.
    pub slots: usize,
}

/// Costs of a slot in addition to its calls, measured on the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Around {
    /// Seconds spent on messages and between calls.
    pub messages: f64,
    /// Extra seconds of the first call over the median call.
    pub begin: f64,
    /// The mean of the other calls over the median one.
    pub scatter: f64,
}
