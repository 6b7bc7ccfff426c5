//! Reasons not to believe times, and what an honest worker can do about each.

use std::fmt;

use gauntlet_stats::percent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why times cannot be believed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Suspicion {
    /// A side's own clock flatters the candidate.
    OwnClock {
        /// By this factor.
        factor: f64,
    },
    /// The coordinator's clock contradicts the speed-up.
    Unconfirmed {
        /// The speed-up by the workers' reports.
        own: f64,
        /// The speed-up by the coordinator's clock.
        seen: f64,
    },
    /// The coordinator's clock is too uncertain to confirm the speed-up, and does not contradict it: no accusation, and no
    /// verdict yet.
    Unresolved {
        /// The speed-up by the workers' reports.
        own: f64,
        /// The bounds of the speed-up by the coordinator's clock.
        lower: f64,
        /// See `lower`.
        upper: f64,
        /// How many pairs of processes would about tell, if they scatter as before.
        pairs: usize,
    },
    /// Most of the time that a call takes less on the device, it does not take less from the call of the function until its
    /// results are there: no accusation, since a slower host can be the reason, and no verdict.
    NotInCalls {
        /// By how much less time a call takes on the device, as a share of the baseline's time there.
        own: f64,
        /// The bounds of what a whole call takes less, as a share of the same time.
        lower: f64,
        /// See `lower`.
        upper: f64,
    },
    /// The coordinator's clock scattered too much to check the candidate's favourable reports: no accusation, and no verdict.
    Unchecked {
        /// The speed-up by the workers' reports.
        own: f64,
        /// The speed-up that reports could fake undetected by omitting time.
        hidden: f64,
    },
    /// The candidate is faster on values that it has computed with before.
    Memory {
        /// By at least this factor.
        factor: f64,
    },
    /// The candidate may owe its gain to values that it has computed with before, which more pairs would tell: no
    /// accusation, and no verdict yet.
    Unfamiliar {
        /// The speed-up on all calls.
        own: f64,
        /// The speed-up of calls on known values over calls on new ones, as estimated so far; none if no pair has shown any.
        memory: Option<f64>,
    },
    /// A side computes while the other is timed, and disturbs it: no accusation, and no verdict.
    Idle {
        /// Whether that side is the candidate.
        candidate: bool,
        /// The processors that it keeps busy meanwhile. In records before version 4 of the worker protocol: CPU time
        /// between requests over CPU time during requests.
        share: f64,
    },
    /// A side does less in the load before its slots than in the slots, and so comes to them cooler than it would be in
    /// earnest use.
    Rests {
        /// Whether that side is the candidate.
        candidate: bool,
        /// How busy it is in the load, over how busy it is in its slots.
        share: f64,
    },
    /// Only in records before version 4 of the worker protocol; such work is charged since. The candidate does part of
    /// a call's work while it loads operands or hands out its result, which is not timed.
    Untimed {
        /// Whether it happens while it hands out the result.
        after: bool,
        /// The amount of work, in baseline calls.
        calls: f64,
    },
}

impl Suspicion {
    /// Whether too few pairs can be the reason: the coordinator's clock does not yet confirm, or cannot yet check, the reports.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unconfirmed { .. } | Self::NotInCalls { .. }) || self.least_gain().is_some()
    }

    /// Whether this accuses a side, rather than stating that the times cannot be checked.
    pub fn accuses(&self) -> bool {
        self.least_gain().is_none() && !matches!(self, Self::NotInCalls { .. } | Self::Idle { .. })
    }

    /// The log speed-up that is left when all is taken off that a check without enough power could not exclude; none if the check
    /// found something. The times then stay what they are, and the interval reaches down to this.
    pub fn least_gain(&self) -> Option<f64> {
        match *self {
            Self::Unresolved { lower, .. } => Some(lower.ln()),
            Self::Unchecked { own, hidden } => Some((own / hidden).ln()),
            Self::Unfamiliar { own, memory } => {
                Some(memory.map_or(0.0, |memory| (own / memory).ln().min(0.0)))
            }
            _ => None,
        }
    }

    /// What can be done about time that is left out of reports. Only the author of a worker program clocks calls; a kernel that Gauntlet
    /// calls (`is_hosted`) can only be at work after it returned.
    pub fn advice(&self, is_hosted: bool) -> Option<&'static str> {
        let is_left_out = matches!(self, Self::OwnClock { .. } | Self::Unconfirmed { .. });
        is_left_out.then_some(if is_hosted {
            "let all work of a call end before it returns"
        } else {
            "report each call from before its first instruction to after its last"
        })
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnClock { factor } => write!(
                formatter,
                "the workers' own reports make the candidate {:.1} % faster than the coordinator's clock saw",
                (factor - 1.0) * 100.0
            ),
            Self::Unconfirmed { own, seen } => write!(
                formatter,
                "the workers report a speed-up of {}, which the coordinator's clock contradicts: it saw {}",
                percent(own - 1.0),
                percent(seen - 1.0)
            ),
            Self::Unresolved {
                own,
                lower,
                upper,
                pairs,
            } => write!(
                formatter,
                "the coordinator's clock does not confirm the reported speed-up of {} yet: its interval is {} to {}, because what \
                 lies around a call differs between processes, as it does on a busy machine. This is no accusation. About {pairs} \
                 pairs would tell: measure longer, with --budget, when less else runs here, or time larger cases",
                percent(own - 1.0),
                percent(lower - 1.0),
                percent(upper - 1.0)
            ),
            Self::NotInCalls { own, lower, upper } => write!(
                formatter,
                "a call takes {} less time on the device, and whole calls do not show it: by the coordinator's clock they take \
                 {} to {} of that time less. What a host computes before the device may begin is not in the device's time. This is \
                 no accusation, since a host may also launch more slowly; compare whole calls, with --scope call, or time larger cases",
                share(*own),
                share(*lower),
                share(*upper)
            ),
            Self::Unchecked { own, hidden } => write!(
                formatter,
                "the reported times cannot be checked closely enough on this busy machine, which is no accusation: the workers report \
                 a speed-up of {}, and time left out of reports, or work outside of timed calls, could feign {} unnoticed; \
                 measure again when less else runs here (`gauntlet doctor` names the load), longer, with --budget, or larger cases",
                percent(own - 1.0),
                percent(hidden - 1.0)
            ),
            Self::Memory { factor } => {
                // A copied result can be faster by any factor, which says no more than that it is copied.
                let faster = if *factor < 10.0 {
                    format!("at least {:.1} % faster", (factor - 1.0) * 100.0)
                } else {
                    "more than 10 times as fast".to_owned()
                };
                let than = if *factor < 10.0 { "than" } else { "as" };
                write!(
                    formatter,
                    "on values that it has computed with before the candidate is {faster} {than} on new ones, \
                     and the baseline is not: a call must compute its result"
                )
            }
            Self::Unfamiliar { own, memory } => {
                let told = memory.map_or("have not been measured yet".to_owned(), |memory| {
                    let longer = 100.0 * (memory - 1.0);
                    format!("take {longer:.1} % longer by an estimate that scatters too much to tell, as on a busy machine")
                });
                write!(
                    formatter,
                    "the candidate's gain of {} may come from results that it remembers, which is no accusation: its \
                     calls on new values {told}; measure longer, with --budget, or when less else runs here",
                    percent(own - 1.0)
                )
            }
            Self::Idle { candidate, share } => write!(
                formatter,
                "the {} keeps {:.0} % of a processor busy while nothing is asked of it and the other side is timed: this \
                 disturbs the other side; let threads end or sleep before a call returns",
                if *candidate { "candidate" } else { "baseline" },
                share * 100.0
            ),
            Self::Rests { candidate, share } => write!(
                formatter,
                "in the load before its slots the {} did only {:.0} % of what it does in the same time in its slots, so the device may \
                 have been cooler than in sustained use; calls in the load have to run as fast as timed ones",
                if *candidate { "candidate" } else { "baseline" },
                share * 100.0
            ),
            Self::Untimed { after, calls } => write!(
                formatter,
                "{} takes the candidate longer than the baseline by the work of {calls:.1} calls: computing belongs inside the \
                 timed call; if it does not compute there, make it quicker, or time larger problems",
                if *after {
                    "handing out its result"
                } else {
                    "loading"
                },
            ),
        }
    }
}

/// A share of a time, which may be negative.
fn share(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
