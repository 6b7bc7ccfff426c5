//! Results as Markdown, for a comment under a pull request.

use std::collections::BTreeMap;

use gauntlet_judge::{Comparison, ComparisonReport, Finding, Outcome, Verdict};
use gauntlet_stats::percent_interval;
use gauntlet_tournament::{Judged, RoundReport, TournamentReport};

use crate::activity::{TITLE, Traced, traced};
use crate::duration::duration;
use crate::lineage::lineages;
use crate::outline::{adoptions, cases, criteria, ground, setting, side_name, stop, suite};
use crate::plain::plainly;
use crate::speedup::times;
use crate::story::sentence;
use crate::tone::Tone;

/// One comparison.
pub fn comparison(report: &ComparisonReport) -> String {
    let outcome = match report.believed() {
        Some(comparison) => plainly(comparison, &report.criteria, report.names()),
        None => format!(
            "{}: {}: {}",
            side_name(report.side),
            report.verdict,
            report.reason
        ),
    };
    let mut text = format!("### {} {}\n\n", signal(report.verdict), escaped(&outcome));
    text += &format!(
        "Task {}: {} against {}.\n",
        code(&report.task),
        code(&report.candidate.text),
        code(&report.baseline.text)
    );
    for note in &report.notes {
        text += &format!("\n> {}\n", escaped(note));
    }
    if let Some(comparison) = &report.comparison {
        text += &case_table(comparison);
        if let Some(doubt) = comparison.doubt() {
            text += &format!("\n> {}\n", escaped(&doubt.to_string()));
        }
    }
    text += &format!("\n{}.\n", escaped(&criteria(&report.criteria)));
    text += &gates(&report.findings);
    text + &origin(None, &report.version, &report.environment)
}

/// A tournament, round by round.
pub fn tournament(report: &TournamentReport) -> String {
    let mut text = format!("### {}\n\n{}\n", escaped(&report.name), escaped(&report.title));
    let adopted = adoptions(report);
    if adopted.is_empty() {
        text += "\nNothing was adopted.\n";
    }
    for (round, name) in adopted {
        text += &format!(
            "\n{} round {} adopted **{}**\n",
            signal(Verdict::Adopt),
            escaped(&round.name),
            escaped(name)
        );
    }
    for lineage in lineages(report) {
        let rows = lineage.rows().into_iter();
        let rows = rows.map(|(name, gain)| format!("| {} | {} |\n", escaped(&name), percent_interval(&gain)));
        text += &format!(
            "\nAdopted one upon another, {}:\n\n| change | speed-up |\n|---|---|\n{}",
            escaped(&lineage.kernel),
            rows.collect::<String>()
        );
    }
    report.rounds.iter().for_each(|one| text += &round(one));
    text + &origin(Some(report.run.as_str()), &report.version, &report.environment)
}

fn round(report: &RoundReport) -> String {
    let mut text = format!(
        "\n#### Round {}\n\n{}\n",
        escaped(&report.name),
        escaped(&report.title)
    );
    text += &format!(
        "\n{}; {}.\n",
        escaped(&setting(report)),
        escaped(&criteria(&report.file.criteria))
    );
    if let Some(fault) = &report.baseline.fault {
        text += &format!("\n**{}**\n", escaped(fault));
    }
    if !report.judged.is_empty() {
        text += "\n| pitch | verdict | gate | claimed → found | speed-up |\n|---|---|---|---|---|\n";
        report.judged.iter().for_each(|one| text += &row(one));
    }
    for notice in &report.notices {
        text += &format!("\n> {}\n", escaped(notice));
    }
    if !report.messages.is_empty() {
        text += &folded("What was said", &said_by_participants(report));
    }
    for judged in &report.judged {
        let mut inside = format!("{}\n", escaped(&judged.reason));
        if let Some(comparison) = judged.comparison() {
            inside += &case_table(comparison);
        }
        text += &folded(&format!("{}: {}", judged.name, judged.verdict), &inside);
    }
    text
}

/// What contestants and panellists said, as a list.
fn said_by_participants(report: &RoundReport) -> String {
    let mut text = String::new();
    for message in &report.messages {
        let said = sentence(message);
        if !said.is_empty() {
            text += &format!("- **{}** {}\n", escaped(&message.who), escaped(&said));
        }
    }
    text
}

fn row(judged: &Judged) -> String {
    let claim = judged.claim.map_or("—".to_owned(), |claim| {
        let refuted = if claim.refuted == Some(true) {
            ", refuted"
        } else {
            ""
        };
        format!(
            "{} → {}{refuted}",
            times(claim.claimed.q50),
            claim.found.map_or("—".to_owned(), times)
        )
    });
    let cells = [
        escaped(&judged.name),
        format!("{} {}", signal(judged.verdict), judged.verdict),
        stop(judged).map_or("—".to_owned(), |finding| escaped(&finding.gate)),
        claim,
        suite(judged).map_or("—".to_owned(), percent_interval),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn case_table(comparison: &Comparison) -> String {
    let mut text = "\n| case | baseline | candidate | speed-up |\n|---|--:|--:|---|\n".to_owned();
    for line in cases(comparison) {
        let floor = line.floor.map_or(String::new(), |floor| format!(" **{floor}**"));
        text += &format!(
            "| {} | {} | {} | {}{floor} |\n",
            escaped(line.name),
            duration(line.baseline),
            duration(line.candidate),
            line.speedup
        );
    }
    if let Some(suite) = &comparison.assessment.suite {
        text += &format!("| **suite** | | | **{}** |\n", percent_interval(suite));
    }
    let mut basis = ground(comparison);
    if let Some(declared) = &comparison.declared {
        basis += &format!("; {declared}");
    }
    text += &format!("\n{}.\n", escaped(basis.trim_end_matches('.')));
    if let Some(Traced { said, note }) = traced(comparison) {
        let note = note.map_or(String::new(), |note| format!(", {note}"));
        text += &format!("\n{TITLE}{note}:\n\n");
        for (side, sentence) in said {
            text += &format!("- {side}: {}\n", escaped(&sentence));
        }
    }
    text
}

fn gates(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut table = "| | gate | finding |\n|---|---|---|\n".to_owned();
    for finding in findings {
        let mark = match finding.outcome {
            Outcome::Pass => "✓",
            Outcome::Skip => "–",
            Outcome::Stop(_) => "✗",
        };
        table += &format!(
            "| {mark} | {} | {} |\n",
            escaped(&finding.gate),
            escaped(&finding.reason)
        );
    }
    folded("Gates", &table)
}

fn folded(title: &str, inside: &str) -> String {
    format!(
        "\n<details><summary>{}</summary>\n\n{}\n</details>\n",
        escaped(title),
        inside.trim_matches('\n')
    )
}

/// The origin of the figures, in small print.
fn origin(run: Option<&str>, version: &str, environment: &BTreeMap<String, String>) -> String {
    let mut facts = Vec::new();
    facts.extend(run.map(|run| format!("run {run}")));
    facts.push(format!("gauntlet {version}"));
    facts.extend(environment.iter().map(|(name, value)| format!("{name} {value}")));
    format!("\n<sub>{}</sub>\n", escaped(&facts.join(" · ")))
}

fn signal(verdict: Verdict) -> char {
    Tone::from(verdict).mark()
}

/// Text without any meaning as Markdown or HTML, on one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text in the typeface of code. Backquotes, which would end it, become apostrophes.
fn code(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{}`", line.replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(escaped("a_b|c <b>\n*d*"), r"a\_b\|c &lt;b&gt; \*d\*");
        assert_eq!(code("a `b`\nc"), "`a 'b' c`");
    }
}
