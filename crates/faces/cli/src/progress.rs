//! Live output while a tournament is played: findings and verdicts as they come, and a progress line.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use gauntlet_judge::gates::{Faster, Gate};
use gauntlet_judge::{Finding, Narrowing, Observer};
use gauntlet_queue::LookLog;
use gauntlet_report::visible;
use gauntlet_tournament::panel::Ranking;
use gauntlet_tournament::{Judged, Message, Round, RoundObserver, RoundReport};
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{say, say_line, terminal_width};
use crate::interrupt;

/// Prints to standard error, so that standard output holds only the report.
pub struct Progress {
    line: ProgressBar,
    /// The candidate whose findings are printed as they come, if there is one.
    told: Option<String>,
    /// Where the looks of a comparison are kept; none outside of a job.
    looks: Option<LookLog>,
}

impl Progress {
    /// Starts the progress line, which is shown only on a terminal.
    pub fn new() -> Self {
        let line = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg} {elapsed:.dim}") {
            line.set_style(style);
        }
        line.enable_steady_tick(Duration::from_millis(120));
        Self {
            line,
            told: None,
            looks: LookLog::of_environment(),
        }
    }

    /// The same, which also prints each finding on a candidate as it comes.
    pub fn telling_findings_on(candidate: &str) -> Self {
        let mut progress = Self::new();
        progress.told = Some(candidate.to_owned());
        progress
    }

    /// Shows a message in the progress line.
    pub fn show(&self, message: &str) {
        self.line.set_message(fitting(message));
    }

    /// Prints lines above the progress line.
    pub fn tell(&self, text: &str) {
        self.say(text.trim_end());
    }

    fn say(&self, text: &str) {
        self.line.suspend(|| say(&format!("{text}\n")));
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// As much of a message as the progress line holds, on one line.
fn fitting(message: &str) -> String {
    let room = terminal_width().saturating_sub(16);
    visible(message).chars().take(room).collect()
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}

impl Observer for Progress {
    fn is_interrupted(&self) -> bool {
        interrupt::is_requested()
    }

    fn gate_begins(&self, candidate: &str, gate: &str) {
        let what = fitting(&format!("{candidate}: {gate}"));
        self.line.set_message(what.clone());
        self.line.set_prefix(what);
    }

    fn compares(&self, candidate: &str) {
        self.gate_begins(candidate, Faster.name());
    }

    fn progress(&self, message: &str) {
        self.show(&format!("{} — {message}", self.line.prefix()));
    }

    fn narrows(&self, narrowing: &Narrowing) {
        if let Some(looks) = &self.looks {
            looks.narrowed(
                narrowing.pairs,
                narrowing.next_look,
                &narrowing.interval,
                narrowing.criteria,
            );
        }
        let line = gauntlet_report::narrowing(narrowing);
        // The progress line is cut to the terminal's width, which would break styles.
        let plain = anstream::adapter::strip_str(&line);
        self.line
            .set_prefix(fitting(&format!("{}: {plain}", narrowing.candidate)));
        self.line.set_message(self.line.prefix());
    }

    fn gate_ends(&self, candidate: &str, finding: &Finding) {
        self.line
            .set_message(fitting(&format!("{candidate}: {}", finding.gate)));
        if self.told.as_deref() == Some(candidate) {
            self.tell(&gauntlet_report::finding(finding, terminal_width()));
        }
    }

    fn notice(&self, message: &str) {
        self.say(&format!("  note: {}", visible(message)));
    }
}

impl RoundObserver for Progress {
    fn round_begins(&self, round: &Round) {
        let file = round.file();
        self.say(&format!("\n{} — {}", visible(&file.name), visible(&file.title)));
        for (role, all) in [
            ("contestants", &round.contestants),
            ("panellists", &round.panellists),
        ] {
            let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
            if !names.is_empty() {
                self.say(&format!("  {role}: {}", visible(&names.join(", "))));
            }
        }
    }

    fn ranked(&self, ranking: &Ranking) {
        if ranking.standings.is_empty() {
            return self.say("  nothing is pitched; only the baseline is examined");
        }
        let names: Vec<_> = ranking
            .standings
            .iter()
            .map(|standing| standing.pitch.as_str())
            .collect();
        self.say(&format!("  the panel's order: {}", visible(&names.join(", "))));
    }

    fn asks(&self, who: &str, what: &str) {
        self.show(&format!("{who}: {what}"));
    }

    fn answered(&self, message: &Message) {
        let said = gauntlet_report::message(message, terminal_width());
        if !said.is_empty() {
            self.say(said.trim_end());
        }
    }

    fn judged(&self, judged: &Judged) {
        self.say(&gauntlet_report::judged(judged, terminal_width()));
    }

    fn round_ends(&self, report: &RoundReport) {
        if let Some(adopted) = &report.adopted {
            self.say(&format!("  adopted: {}", visible(adopted)));
        }
    }
}

/// Only the progress line: hundreds of short tasks would flood the log.
pub struct Line(pub Progress);

impl Observer for Line {
    fn progress(&self, message: &str) {
        self.0.show(message);
    }
}

/// How often a line is printed without a terminal, as in a log.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Progress through a known number of steps: the progress line on a terminal, otherwise a line now and then.
pub struct Steps {
    progress: Progress,
    total: usize,
    /// Whether lines are printed instead of the progress line.
    in_lines: bool,
    last_line: Option<Instant>,
}

impl Steps {
    /// Progress before the first of `total` steps.
    pub fn new(total: usize) -> Self {
        Self {
            progress: Progress::new(),
            total,
            in_lines: !std::io::stderr().is_terminal(),
            last_line: None,
        }
    }

    /// Shows which step begins; the first is number 1.
    pub fn begin(&mut self, number: usize, what: &str) {
        let message = format!("{number} of {}: {what}", self.total);
        self.progress.show(&message);
        if let Some(now) = self.line_is_due(Instant::now()) {
            self.last_line = Some(now);
            say_line(format_args!("{message}"));
        }
    }

    fn line_is_due(&self, now: Instant) -> Option<Instant> {
        let is_due = self
            .last_line
            .is_none_or(|last| now.duration_since(last) >= LINE_EVERY);
        (self.in_lines && is_due).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_the_first_step_and_then_a_line_every_few_seconds() {
        let now = Instant::now();
        let mut steps = Steps {
            in_lines: true,
            ..Steps::new(9)
        };
        assert_eq!(steps.line_is_due(now), Some(now));
        steps.last_line = Some(now);
        assert_eq!(steps.line_is_due(now + LINE_EVERY / 2), None);
        assert_eq!(steps.line_is_due(now + LINE_EVERY), Some(now + LINE_EVERY));
        steps.in_lines = false;
        assert_eq!(
            steps.line_is_due(now + LINE_EVERY),
            None,
            "a terminal has the moving line"
        );
    }
}
