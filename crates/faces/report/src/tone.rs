//! The tone of a verdict, for colours and marks.

use gauntlet_judge::{Comparison, Verdict};
use gauntlet_stats::{Criteria, Interval, decide};
use owo_colors::Style;

/// The tone of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The desired result.
    Good,
    /// Better, but not enough.
    Fair,
    /// Known to make no difference.
    Neutral,
    /// Worse, or wrong.
    Bad,
    /// Ended before it could run.
    Stopped,
    /// Not decided yet.
    Open,
}

impl From<Verdict> for Tone {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Adopt => Self::Good,
            Verdict::Marginal => Self::Fair,
            Verdict::ValidNegative => Self::Neutral,
            Verdict::Regression | Verdict::Incorrect | Verdict::Racy => Self::Bad,
            Verdict::Infeasible | Verdict::OverBudget | Verdict::DoesNotCompile => Self::Stopped,
            Verdict::Inconclusive | Verdict::Aborted | Verdict::Blocked => Self::Open,
        }
    }
}

impl Tone {
    /// The tone of an interval in a comparison with this verdict: its side of "no change", unless the times decide nothing.
    pub fn of_interval(
        interval: &Interval,
        comparison: &Comparison,
        verdict: Verdict,
        criteria: &Criteria,
    ) -> Self {
        let is_void = verdict == Verdict::Blocked || comparison.suspicion_at_last_look().is_some();
        if is_void {
            return Self::Open;
        }
        Self::from(Verdict::from(decide(Some(interval), criteria)))
    }

    /// A character that shows the tone without colour.
    pub fn mark(self) -> char {
        match self {
            Self::Good => '✓',
            Self::Fair => '+',
            Self::Neutral => '=',
            Self::Bad | Self::Stopped => '✗',
            Self::Open => '?',
        }
    }

    /// Its name in style sheets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Neutral => "neutral",
            Self::Bad => "bad",
            Self::Stopped => "stopped",
            Self::Open => "open",
        }
    }

    /// Its colour on a terminal: one of the sixteen that every theme defines.
    pub fn style(self) -> Style {
        match self {
            Self::Good => Style::new().green(),
            Self::Fair => Style::new().cyan(),
            Self::Neutral => Style::new().blue(),
            Self::Bad => Style::new().red(),
            Self::Stopped => Style::new().magenta(),
            Self::Open => Style::new().yellow(),
        }
    }
}
