//! A round: scores, baseline, verdicts, intervals, and everything else behind a fold.

use gauntlet_judge::{Comparison, Finding, Outcome, Verdict};
use gauntlet_stats::{Criteria, median, percent};
use gauntlet_tournament::panel::Ranking;
use gauntlet_tournament::{BaselineReport, Judged, RoundReport};
use maud::{Markup, html};

use super::badge;
use super::intervals::{Row, intervals};
use super::phases::phases;
use super::scores::scores;
use crate::activity::{TITLE, Traced, traced};
use crate::duration::duration;
use crate::outline::{cases, criteria, ground, peer, processes, setting, stop, suite};
use crate::speedup::{claim, times};
use crate::story::sentence;
use crate::tone::Tone;

/// All results of a round.
pub fn round(report: &RoundReport) -> Markup {
    html! {
        section {
            h2 { "Round " (report.name) }
            p.title { (report.title) }
            p.quiet { (setting(report)) br; (criteria(&report.file.criteria)) br; "fixed beforehand as " code { (report.digest) } }
            (outcome(report))
            (said(report))
            @if !report.ranking.standings.is_empty() { (panel(&report.ranking)) }
            @if !report.judged.is_empty() {
                h3 { "Verdicts" }
                (verdicts(report))
                (suites(report))
            }
            (baseline(&report.baseline))
            (phases(report))
            @if !report.judged.is_empty() {
                h3 { "Candidate by candidate" }
                @for judged in &report.judged { (candidate(judged, &report.file.criteria)) }
            }
        }
    }
}

fn said(report: &RoundReport) -> Markup {
    let said = || report.messages.iter().map(|message| (message, sentence(message)));
    html! {
        @if !report.messages.is_empty() {
            h3 { "What was said" }
            ul.story {
                @for (message, sentence) in said().filter(|(_, sentence)| !sentence.is_empty()) {
                    li {
                        b { (message.who) } " " (sentence)
                        @for refused in &message.refused { div.quiet { "was told: " (refused) } }
                    }
                }
            }
        }
    }
}

fn panel(ranking: &Ranking) -> Markup {
    html! {
        h3 { "Panel" }
        (scores(ranking))
        @if !ranking.flags.is_empty() {
            ul.flags { @for flag in &ranking.flags { li { (flag) } } }
        }
    }
}

fn outcome(report: &RoundReport) -> Markup {
    html! {
        p.outcome {
            @match &report.adopted {
                Some(name) => { "Adopted: " b { (name) } }
                None => "Nothing adopted; the baseline stays.",
            }
        }
        @for notice in &report.notices { p.notice { (notice) } }
    }
}

fn baseline(report: &BaselineReport) -> Markup {
    html! {
        h3 { "Baseline, and where the time goes" }
        p {
            (report.described) ". "
            @match &report.fault {
                Some(fault) => span.refuted { (fault) },
                None => "It qualified.",
            }
        }
    }
}

fn verdicts(report: &RoundReport) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { th { "pitch" } th { "author" } th { "changes" } th { "verdict" } th { "gate" } th { "claimed" } th { "found" } } }
                tbody { @for judged in &report.judged { (verdict(judged)) } }
            }
        }
    }
}

fn verdict(judged: &Judged) -> Markup {
    html! {
        tr {
            td { b { (judged.name) } }
            td { (judged.author) }
            td { @for word in &judged.words { div { (word) } } }
            td { (badge(judged.verdict)) }
            td { (stop(judged).map_or("—", |finding| &finding.gate)) }
            td.whole { (judged.claim.map_or("—".to_owned(), |outcome| claim(outcome.claimed))) }
            td {
                (judged.claim.and_then(|outcome| outcome.found).map_or("—".to_owned(), times))
                @if judged.claim.is_some_and(|outcome| outcome.refuted == Some(true)) { " " span.refuted { "refuted" } }
            }
        }
    }
}

fn suites(report: &RoundReport) -> Markup {
    let row = |judged: &'_ Judged| {
        Some((
            judged.name.clone(),
            suite(judged)?.clone(),
            Tone::from(judged.verdict),
        ))
    };
    let found: Vec<_> = report.judged.iter().filter_map(row).collect();
    let rows: Vec<_> = found
        .iter()
        .map(|(name, interval, tone)| Row {
            name,
            interval,
            tone: *tone,
        })
        .collect();
    intervals(&rows, &report.file.criteria)
}

fn candidate(judged: &Judged, criteria: &Criteria) -> Markup {
    html! {
        details {
            summary { b { (judged.name) } " " (badge(judged.verdict)) " " span.quiet { (judged.reason) } }
            p { (judged.change) @if judged.baseline != "baseline" { " (built on " (judged.baseline) ")" } }
            @for outcome in &judged.peers {
                p class=(if outcome.contradicted { "refuted" } else { "quiet" }) { (peer(outcome)) }
            }
            (gates(&judged.findings))
            @if let Some(comparison) = judged.comparison() {
                (case_by_case(comparison, judged.verdict, criteria))
            }
        }
    }
}

/// The findings of the gates as a table.
pub fn gates(findings: &[Finding]) -> Markup {
    let mark = |outcome: Outcome| match outcome {
        Outcome::Pass => "✓",
        Outcome::Skip => "–",
        Outcome::Stop(_) => "✗",
    };
    html! {
        @if !findings.is_empty() {
            div.scroll tabindex="0" {
                table {
                    thead { tr { td {} th { "gate" } th { "finding" } th { "took" } } }
                    tbody {
                        @for finding in findings {
                            tr {
                                td { (mark(finding.outcome)) }
                                td.whole { (finding.gate) }
                                td { (finding.reason) }
                                td.number { (duration(finding.seconds)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The cases with their times and intervals.
pub fn case_by_case(comparison: &Comparison, verdict: Verdict, criteria: &Criteria) -> Markup {
    let lines = cases(comparison);
    let tone = |interval| Tone::of_interval(interval, comparison, verdict, criteria);
    let named = lines.iter().filter_map(|line| Some((line.name, line.interval?)));
    let suite = comparison
        .assessment
        .suite
        .as_ref()
        .map(|interval| ("suite", interval));
    let rows: Vec<_> = named
        .chain(suite)
        .map(|(name, interval)| Row {
            name,
            interval,
            tone: tone(interval),
        })
        .collect();
    html! {
        div.scroll tabindex="0" {
            table {
                thead { tr { th { "case" } th { "baseline" } th { "candidate" } th { "speed-up" } td {} } }
                tbody {
                    @for line in &lines {
                        tr {
                            td { (line.name) }
                            td.number { (duration(line.baseline)) }
                            td.number { (duration(line.candidate)) }
                            td.number { (line.speedup) }
                            td { @if let Some(floor) = line.floor { span.refuted { (floor) } } }
                        }
                    }
                }
            }
        }
        (intervals(&rows, criteria))
        p.quiet { (ground(comparison)) "." @if let Some(declared) = &comparison.declared { " " (declared) "." } }
        (activity(comparison))
    }
}

/// What the GPU did in traced calls.
fn activity(comparison: &Comparison) -> Markup {
    html! {
        @if let Some(Traced { said, note }) = traced(comparison) {
            h3 { (TITLE) }
            div.scroll tabindex="0" {
                table {
                    tbody { @for (side, sentence) in &said { tr { td.whole { (side) } td { (sentence) } } } }
                }
            }
            @if let Some(note) = note { p.quiet { (note) "." } }
        }
    }
}

/// The times of each process behind a fold; nothing for single recorded or predicted times.
pub fn samples(comparison: &Comparison) -> Markup {
    html! {
        @for case in comparison.cases.iter().filter(|case| !case.blocks.is_empty()) {
            details {
                summary { "times of " (case.case) ", process by process" }
                div.scroll tabindex="0" {
                    table {
                        thead { tr { th { "process" } th { "baseline" } th { "candidate" } th { "speed-up" } } }
                        tbody {
                            @for process in processes(&case.blocks) {
                                @let [baseline, candidate] = [median(&process.baseline), median(&process.candidate)];
                                tr {
                                    td.number { (process.number) }
                                    td { (duration(baseline)) p.quiet { (listed(&process.baseline)) } }
                                    td { (duration(candidate)) p.quiet { (listed(&process.candidate)) } }
                                    td.number { (percent(baseline / candidate - 1.0)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Times one after the other.
fn listed(times: &[f64]) -> String {
    times
        .iter()
        .map(|time| duration(*time))
        .collect::<Vec<_>>()
        .join(", ")
}
