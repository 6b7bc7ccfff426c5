//! What becomes of a candidate: whether it ended as it should, and what it means if not.

use gauntlet_judge::Verdict;
use gauntlet_judge::gates::{Faster, Gate};
use gauntlet_worker::{Safeguard, Standing, safeguards};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Cheat, End, Kind};

/// How a candidate ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A cheat was stopped by the expected gate because of its cheat.
    Caught,
    /// A cheat was stopped, but by another gate, with another verdict or for another reason.
    Stopped,
    /// A cheat that only times reveal was judged like an honest candidate, and gained nothing from its verdict.
    GainedNothing,
    /// A cheat was adopted or found surely faster, or was judged like an honest candidate although it can be detected
    /// without times.
    Missed,
    /// A cheat was not caught, and the safeguard that would stop it is missing on this system.
    Unheld,
    /// A cheat that is not defended against gained by it.
    Undefended,
    /// An honest candidate was measured.
    Measured,
    /// The machine was too busy to judge an honest candidate.
    Unjudged,
    /// An honest candidate was stopped as if it had cheated.
    Wronged,
}

impl Outcome {
    /// Whether the outcome is the expected one on a quiet machine.
    pub fn is_right(self) -> bool {
        matches!(self, Self::Caught | Self::Undefended | Self::Measured)
    }

    /// Whether the outcome is wrong on any machine, however busy.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Missed | Self::Wronged)
    }

    /// From the verdict, and from how the end differs from the expected one. `accused`: whether the reason, if it is
    /// one not to believe times, accuses a side.
    pub fn of(cheat: &Cheat, verdict: Verdict, fault: Option<&str>, accused: bool) -> Self {
        let gains = matches!(verdict, Verdict::Adopt | Verdict::Marginal);
        match (cheat.kind, fault) {
            (Kind::Undefended, _) if gains => Self::Undefended,
            (Kind::Undefended, _) if is_measured(verdict) => Self::GainedNothing,
            (Kind::Honest, None) => Self::Measured,
            (Kind::Honest, Some(_)) if accused => Self::Wronged,
            (Kind::Honest, Some(_)) => Self::Unjudged,
            (_, None) => Self::Caught,
            (_, Some(_)) if cheat.held_by.is_some_and(|safeguard| !is_active(safeguard)) => Self::Unheld,
            (_, Some(_)) if gains => Self::Missed,
            (_, Some(_)) if !is_measured(verdict) => Self::Stopped,
            (_, Some(_)) if cheat.needs_quiet() => Self::GainedNothing,
            (_, Some(_)) => Self::Missed,
        }
    }
}

/// Whether a safeguard is active on this system.
fn is_active(name: &str) -> bool {
    let active = |safeguard: &Safeguard| matches!(safeguard.standing, Standing::Active(_));
    safeguards()
        .iter()
        .any(|safeguard| safeguard.what == name && active(safeguard))
}

/// Whether a verdict belongs to a candidate that passed all gates.
fn is_measured(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Adopt
        | Verdict::Marginal
        | Verdict::ValidNegative
        | Verdict::Regression
        | Verdict::Inconclusive => true,
        Verdict::Infeasible
        | Verdict::OverBudget
        | Verdict::DoesNotCompile
        | Verdict::Incorrect
        | Verdict::Racy
        | Verdict::Aborted
        | Verdict::Blocked => false,
    }
}

/// Why a candidate's end differs from the expected one, if it does.
pub fn fault(end: End, gate: Option<&str>, verdict: Verdict, reason: &str) -> Option<String> {
    let measured = is_measured(verdict);
    match end {
        End::Undefended { .. } => None,
        End::NoGain if matches!(verdict, Verdict::Adopt | Verdict::Marginal) => {
            Some(format!("it gained by it: {verdict}"))
        }
        End::NoGain if gate.is_none_or(|gate| gate == Faster.name()) => None,
        End::NoGain => Some(format!(
            "it was to be measured, and `{}` stopped it",
            gate.unwrap_or_default()
        )),
        End::Held { .. } if measured => Some(format!("nothing kept it from it: {verdict}")),
        End::Measured if measured => None,
        End::Measured => Some("an honest candidate was stopped".to_owned()),
        // A check that named the deed, but lacked the power for an accusation, has kept the gain from it.
        End::Caught {
            verdict: Verdict::Blocked,
            words,
            ..
        } if verdict == Verdict::Inconclusive && words.iter().any(|words| reason.contains(words)) => None,
        End::Caught { .. } if measured => Some(format!("it was judged as if it were honest: {verdict}")),
        End::Caught { gate: expected, .. } if !gate.is_some_and(|gate| is_one_of(gate, expected)) => Some(
            format!("`{expected}` was to stop it, not `{}`", gate.unwrap_or("no gate")),
        ),
        End::Caught {
            verdict: expected, ..
        } if verdict != expected => Some(format!("it was to be {expected}, not {verdict}")),
        End::Caught { words, .. } | End::Held { words }
            if !words.iter().any(|words| reason.contains(words)) =>
        {
            Some(format!("the reason was to say “{}”", words.join("” or “")))
        }
        End::Caught { .. } | End::Held { .. } => None,
    }
}

/// Whether a gate is among the alternatives of an expected end.
fn is_one_of(gate: &str, expected: &str) -> bool {
    expected.split(" or ").any(|expected| expected == gate)
}

#[cfg(test)]
mod tests {
    use super::super::corpus::corpus;
    use super::*;

    const CAUGHT: End = End::Caught {
        gate: "right",
        verdict: Verdict::Incorrect,
        words: &["never written"],
    };

    #[test]
    fn caught_is_by_the_gate_for_the_deed_and_nothing_else() {
        let fault = |gate, verdict, reason| fault(CAUGHT, gate, verdict, reason);
        assert_eq!(
            fault(Some("right"), Verdict::Incorrect, "3 elements were never written"),
            None
        );
        for (gate, verdict, reason) in [
            (Some("faster"), Verdict::Inconclusive, "never written"),
            (Some("faster"), Verdict::Regression, "never written"),
            (None, Verdict::Adopt, "never written"),
            (Some("faster"), Verdict::Incorrect, "never written"),
            (Some("right"), Verdict::Racy, "never written"),
            (Some("right"), Verdict::Incorrect, "NRMSE"),
        ] {
            assert!(
                fault(gate, verdict, reason).is_some(),
                "{gate:?} {verdict} {reason}"
            );
        }
    }

    #[test]
    fn a_doubt_that_names_the_deed_catches_what_was_to_be_void() {
        let caught = End::Caught {
            gate: "faster",
            verdict: Verdict::Blocked,
            words: &["it remembers"],
        };
        let fault = |verdict, reason| fault(caught, Some("faster"), verdict, reason);
        assert_eq!(
            fault(Verdict::Inconclusive, "may come from results that it remembers"),
            None
        );
        assert!(fault(Verdict::Inconclusive, "speed-up +1 %").is_some());
        assert!(fault(Verdict::Regression, "may come from results that it remembers").is_some());
    }

    #[test]
    fn no_gain_may_be_measured_or_void_and_held_is_stopped_anywhere() {
        let no_gain = |gate, verdict| fault(End::NoGain, gate, verdict, "");
        assert_eq!(no_gain(Some("faster"), Verdict::ValidNegative), None);
        assert_eq!(no_gain(Some("faster"), Verdict::Blocked), None);
        assert!(no_gain(None, Verdict::Adopt).is_some());
        assert!(no_gain(Some("right"), Verdict::Incorrect).is_some());
        let held = |verdict, reason| {
            let end = End::Held {
                words: &["kept from"],
            };
            fault(end, Some("right"), verdict, reason)
        };
        assert_eq!(held(Verdict::Incorrect, "kept from cheating"), None);
        assert!(held(Verdict::Incorrect, "it crashed").is_some());
        assert!(held(Verdict::ValidNegative, "kept from cheating").is_some());
    }

    #[test]
    fn an_end_may_name_two_gates() {
        assert!(is_one_of("right", "right or faster") && is_one_of("faster", "right or faster"));
        assert!(!is_one_of("compiles", "right or faster"));
    }

    #[test]
    fn an_honest_candidate_may_have_any_measured_verdict() {
        let fault = |verdict| fault(End::Measured, Some("faster"), verdict, "");
        assert_eq!(fault(Verdict::Inconclusive), None);
        assert_eq!(fault(Verdict::ValidNegative), None);
        assert!(fault(Verdict::Blocked).is_some());
        assert!(fault(Verdict::Incorrect).is_some());
    }

    #[test]
    fn noise_excuses_only_cheats_by_times_that_gain_nothing() {
        let corpus = corpus();
        let outcome = |name: &str, verdict, accused| {
            let cheat = corpus.iter().find(|cheat| cheat.name == name).unwrap();
            Outcome::of(cheat, verdict, Some("it ended otherwise"), accused)
        };
        let by_times = |verdict| outcome("reports-its-best", verdict, true);
        assert_eq!(by_times(Verdict::Adopt), Outcome::Missed);
        assert_eq!(by_times(Verdict::Marginal), Outcome::Missed);
        assert_eq!(by_times(Verdict::Inconclusive), Outcome::GainedNothing);
        assert_eq!(by_times(Verdict::Blocked), Outcome::Stopped);
        assert_eq!(
            outcome("writes-zeros", Verdict::Inconclusive, true),
            Outcome::Missed
        );
        assert_eq!(outcome("writes-zeros", Verdict::Racy, true), Outcome::Stopped);
        assert_eq!(outcome("honest", Verdict::Blocked, true), Outcome::Wronged);
        assert_eq!(outcome("honest", Verdict::Blocked, false), Outcome::Unjudged);
    }
}
