//! Requirements, and the exit codes of verdicts: only evidence meets a requirement.

use gauntlet_judge::{Comparison, Finding, Trust, Verdict};
use gauntlet_tournament::{Judged, RoundReport, TournamentReport};

use crate::arguments::Requirement;
use crate::error::say_line;
use crate::exit::Exit;

/// The result of the evidence for a requirement, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The evidence shows that the requirement is met.
    Met,
    /// The evidence does not decide.
    Undecided,
    /// The evidence shows that the requirement is not met.
    Failed,
}

impl From<Standing> for Exit {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Met => Self::Done,
            Standing::Undecided => Self::Undecided,
            Standing::Failed => Self::NotReached,
        }
    }
}

/// Whether a verdict shows that a candidate can be built and computes the correct result, independent of its speed. An
/// inconclusive candidate has passed every gate before the comparison.
pub fn soundness(verdict: Verdict) -> Standing {
    match verdict {
        Verdict::Adopt
        | Verdict::Marginal
        | Verdict::ValidNegative
        | Verdict::Regression
        | Verdict::Inconclusive => Standing::Met,
        Verdict::Aborted | Verdict::Blocked => Standing::Undecided,
        Verdict::Infeasible
        | Verdict::OverBudget
        | Verdict::DoesNotCompile
        | Verdict::Incorrect
        | Verdict::Racy => Standing::Failed,
    }
}

impl Requirement {
    /// The argument that selects it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Adopt => "--require adopt",
            Self::NoRegression => "--require no-regression",
        }
    }

    /// The standing of one candidate, from its verdict.
    pub fn of_verdict(self, verdict: Verdict) -> Standing {
        match (self, verdict) {
            (_, Verdict::Inconclusive | Verdict::Aborted | Verdict::Blocked) => Standing::Undecided,
            (_, Verdict::Adopt) | (Self::NoRegression, Verdict::Marginal | Verdict::ValidNegative) => {
                Standing::Met
            }
            _ => Standing::Failed,
        }
    }

    /// The conclusion from one comparison, whose verdict `because` says. `trust` is that of the comparison, if it matters:
    /// what was not watched for cheats is no evidence that a requirement is met.
    pub fn of_comparison(self, verdict: Verdict, trust: Option<Trust>, because: String) -> Conclusion {
        match (self.of_verdict(verdict), trust) {
            (Standing::Met, Some(Trust::Quick)) => Conclusion::of_one(
                Standing::Undecided,
                format!("{because}, but was not watched for cheats; --require-quick accepts that"),
            ),
            (standing, _) => Conclusion::of_one(standing, because),
        }
    }

    /// The standing of a round or a tournament: `adopt` needs one adoption, `no-regression` the evidence for every
    /// candidate.
    pub fn of_report(self, report: &TournamentReport) -> Conclusion {
        let standings = report.rounds.iter().flat_map(|round| self.of_round(round));
        match self {
            Self::Adopt => Conclusion::of(standings.collect(), |standings| standings.min()),
            Self::NoRegression => Conclusion::of(standings.collect(), |standings| standings.max()),
        }
    }

    /// The standing of each candidate of a round, or only of its baseline if nothing could be compared with it.
    fn of_round(self, round: &RoundReport) -> Vec<(Standing, String)> {
        if let Some(verdict) = unsound_baseline(round) {
            return vec![(
                self.of_verdict(verdict),
                format!("the baseline of {} {}", round.name, verdict.sentence()),
            )];
        }
        let standing = |judged: &Judged| {
            let verdict = format!("{}: {}", judged.name, judged.verdict);
            let standing = self.of_verdict(judged.verdict);
            if standing == Standing::Met && judged.comparison().is_some_and(lacks_cases) {
                (
                    Standing::Undecided,
                    format!("{verdict} (some cases have no times)"),
                )
            } else if self == Self::Adopt && standing == Standing::Met && round.adopted.is_none() {
                (
                    Standing::Undecided,
                    format!(
                        "{verdict} (over {}, and not shown to be faster than the baseline)",
                        judged.baseline
                    ),
                )
            } else {
                (standing, verdict)
            }
        };
        round.judged.iter().map(standing).collect()
    }
}

/// The verdict that stopped a round's baseline, if one did.
pub fn unsound_baseline(round: &RoundReport) -> Option<Verdict> {
    round.baseline.findings.iter().find_map(Finding::stops)
}

/// Whether a record lacks times of some cases. A measured comparison covers every case in each pair of processes.
fn lacks_cases(comparison: &Comparison) -> bool {
    comparison.looks.is_empty() && comparison.ended_early.is_some()
}

/// A standing, and the verdicts that justify it.
#[derive(Debug, PartialEq, Eq)]
pub struct Conclusion {
    standing: Standing,
    because: Vec<String>,
}

impl Conclusion {
    /// The standing of one candidate with its verdict.
    pub fn of_one(standing: Standing, because: String) -> Self {
        Self {
            standing,
            because: vec![because],
        }
    }

    /// The worst of several standings, each with its verdict. Without any there is no evidence.
    pub fn worst(standings: Vec<(Standing, String)>) -> Self {
        Self::of(standings, |standings| standings.max())
    }

    fn of(
        standings: Vec<(Standing, String)>,
        decisive: impl Fn(&mut dyn Iterator<Item = Standing>) -> Option<Standing>,
    ) -> Self {
        let Some(standing) = decisive(&mut standings.iter().map(|(standing, _)| *standing)) else {
            return Self::of_one(Standing::Undecided, "nothing was compared".to_owned());
        };
        let because = standings.into_iter().filter(|(one, _)| *one == standing);
        Self {
            standing,
            because: because.map(|(_, verdict)| verdict).collect(),
        }
    }

    /// The exit code. If it is not 0, prints the reason on stderr; `what` names the requirement.
    pub fn exit(&self, what: &str) -> Exit {
        let because = self.because.join("; ");
        match self.standing {
            Standing::Met => {}
            Standing::Undecided => say_line(format_args!("{what} is undecided (exit code 4): {because}")),
            Standing::Failed => say_line(format_args!("{what} is not met (exit code 1): {because}")),
        }
        self.standing.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: [Verdict; 3] = [Verdict::Adopt, Verdict::Marginal, Verdict::ValidNegative];
    const OPEN: [Verdict; 3] = [Verdict::Inconclusive, Verdict::Aborted, Verdict::Blocked];

    #[test]
    fn only_evidence_passes_no_regression() {
        for verdict in Verdict::ALL {
            let expected = if PASSED.contains(&verdict) {
                Exit::Done
            } else if OPEN.contains(&verdict) {
                Exit::Undecided
            } else {
                Exit::NotReached
            };
            let found = Exit::from(Requirement::NoRegression.of_verdict(verdict));
            assert_eq!(found, expected, "{verdict}");
        }
    }

    #[test]
    fn only_an_adoption_passes_adopt() {
        for verdict in Verdict::ALL {
            let expected = if verdict == Verdict::Adopt {
                Exit::Done
            } else if OPEN.contains(&verdict) {
                Exit::Undecided
            } else {
                Exit::NotReached
            };
            assert_eq!(
                Exit::from(Requirement::Adopt.of_verdict(verdict)),
                expected,
                "{verdict}"
            );
        }
    }

    #[test]
    fn what_nobody_watched_meets_no_requirement_and_fails_it_all_the_same() {
        for (verdict, trust, expected) in [
            (Verdict::Adopt, Some(Trust::Watched), Standing::Met),
            (Verdict::Adopt, Some(Trust::Quick), Standing::Undecided),
            (Verdict::Adopt, None, Standing::Met),
            (Verdict::Regression, Some(Trust::Quick), Standing::Failed),
        ] {
            let found = Requirement::Adopt.of_comparison(verdict, trust, String::new());
            assert_eq!(found.standing, expected, "{verdict}, {trust:?}");
        }
    }

    #[test]
    fn speed_says_nothing_about_soundness_and_what_was_not_examined_is_undecided() {
        for (verdict, expected) in [
            (Verdict::Regression, Exit::Done),
            (Verdict::Inconclusive, Exit::Done),
            (Verdict::Blocked, Exit::Undecided),
            (Verdict::Aborted, Exit::Undecided),
            (Verdict::Infeasible, Exit::NotReached),
            (Verdict::OverBudget, Exit::NotReached),
            (Verdict::DoesNotCompile, Exit::NotReached),
            (Verdict::Incorrect, Exit::NotReached),
            (Verdict::Racy, Exit::NotReached),
        ] {
            assert_eq!(Exit::from(soundness(verdict)), expected, "{verdict}");
        }
    }

    #[test]
    fn the_worst_candidate_decides_and_no_candidate_is_no_evidence() {
        let one = |standing, name: &str| (standing, name.to_owned());
        let (met, open, failed) = (
            one(Standing::Met, "a"),
            one(Standing::Undecided, "b"),
            one(Standing::Failed, "c"),
        );
        let of = |standings: &[&(Standing, String)]| {
            let found = Conclusion::worst(standings.iter().copied().cloned().collect());
            (Exit::from(found.standing), found.because)
        };
        assert_eq!(
            of(&[&met, &open, &failed]),
            (Exit::NotReached, vec!["c".to_owned()])
        );
        assert_eq!(
            of(&[&open, &met, &open]),
            (Exit::Undecided, vec!["b".to_owned(); 2])
        );
        assert_eq!(of(&[&met]), (Exit::Done, vec!["a".to_owned()]));
        assert_eq!(
            of(&[]),
            (Exit::Undecided, vec!["nothing was compared".to_owned()])
        );
    }
}
