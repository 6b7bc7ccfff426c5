//! The text of reports made by hand. The snapshots have no colours.

use anstream::adapter::strip_str;
use gauntlet_judge::{Outcome, Verdict};
use gauntlet_report::{Detail, Rendered, comparison, finding, forecasters, judged};
use gauntlet_tournament::TournamentReport;
use insta::assert_snapshot;

use crate::fixture;

fn plain(text: &str) -> String {
    strip_str(text).to_string()
}

/// The columns of the longest line, without styles.
fn longest(text: &str) -> usize {
    text.lines().map(textwrap::core::display_width).max().unwrap_or(0)
}

/// The longest words that the lab has for everything.
fn long_names() -> TournamentReport {
    let mut report = fixture::replayed();
    let judged = &mut report.rounds[0].judged[1];
    judged.name = "warp-specialisation-again-and-again (fallback)".to_owned();
    judged.verdict = Verdict::DoesNotCompile;
    judged.findings[0].gate = "race-free".to_owned();
    judged.words = vec!["roles: unified → warp-specialised-with-two-consumers".to_owned()];
    report
}

#[test]
fn recorded_times_at_80_columns() {
    assert_snapshot!(plain(&fixture::replayed().text(Detail::Outcome, 80)));
}

#[test]
fn measured_times_at_80_columns() {
    assert_snapshot!(plain(&fixture::measured().text(Detail::Outcome, 80)));
}

#[test]
fn measured_times_at_120_columns() {
    assert_snapshot!(plain(&fixture::measured().text(Detail::Outcome, 120)));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in 70..160 {
        for report in [fixture::replayed(), fixture::measured(), long_names()] {
            for detail in [Detail::Outcome, Detail::Samples] {
                let text = report.text(detail, width);
                assert!(longest(&text) <= width, "{width}:\n{}", plain(&text));
            }
        }
    }
}

#[test]
fn forecasters_at_80_columns() {
    assert_snapshot!(plain(&forecasters(&fixture::scored(), 80)));
}

#[test]
fn forecasters_fit_the_terminal() {
    for width in 70..160 {
        let text = forecasters(&fixture::scored(), width);
        assert!(longest(&text) <= width, "{width}:\n{}", plain(&text));
    }
}

#[test]
fn verdicts_as_they_fall() {
    let [replayed, measured] = [fixture::replayed(), fixture::measured()];
    let all = replayed
        .rounds
        .iter()
        .chain(&measured.rounds)
        .flat_map(|round| &round.judged);
    assert_snapshot!(plain(&all.map(|one| judged(one, 80)).collect::<String>()));
}

#[test]
fn findings_as_they_come() {
    let findings = [
        fixture::finding(
            "feasible",
            Outcome::Pass,
            "every rule of the device is kept on 14 cases",
            0.0001,
        ),
        fixture::finding(
            "worth it",
            Outcome::Skip,
            "there is no model of this kernel family yet",
            0.0,
        ),
        fixture::finding("race-free", Outcome::Pass, "12 runs, bit for bit the same", 1.25),
        fixture::finding(
            "right",
            Outcome::Stop(Verdict::Incorrect),
            "case 3, wide, seed 17: 12 elements of 4096 differ, the worst at (3, 17): 0.25 where 0.5 is right",
            0.31,
        ),
    ];
    assert_snapshot!(plain(
        &findings.iter().map(|one| finding(one, 80)).collect::<String>()
    ));
}

#[test]
fn a_comparison_with_its_looks() {
    let (measured, criteria) = fixture::looked_at();
    assert_snapshot!(plain(&comparison(&measured, None, &criteria, 80)));
}

#[test]
fn void_times_have_no_verdict_by_their_figures() {
    let (measured, criteria) = fixture::looked_at();
    let reason = "void: the candidate works while the baseline is timed";
    let text = plain(&comparison(&measured, Some(reason), &criteria, 80));
    let last = text.lines().last().unwrap();
    assert!(last.ends_with(&format!("blocked: {reason}")), "{text}");
}

/// Bars of a gain that was not believed must not look like one.
#[test]
fn void_times_are_drawn_without_the_colours_of_a_verdict() {
    let bars = |verdict: Verdict| {
        let mut report = fixture::measured();
        let judged = report.rounds[0]
            .judged
            .iter_mut()
            .find(|judged| judged.verdict == Verdict::Adopt && judged.comparison().is_some())
            .unwrap();
        judged.verdict = verdict;
        let name = format!("<b>{}</b>", judged.name);
        let page = report.html();
        let details = page.split("<details>").find(|part| part.contains(&name)).unwrap();
        details.matches("interval good").count()
    };
    assert!(bars(Verdict::Adopt) > 0);
    assert_eq!(bars(Verdict::Blocked), 0);
}

#[test]
fn verdicts_have_colours() {
    let report = fixture::measured();
    let text = judged(&report.rounds[0].judged[0], 80);
    assert!(text.contains("\u{1b}["), "{text:?}");
}

#[test]
fn pages_are_whole_and_hold_every_candidate() {
    for report in [fixture::replayed(), fixture::measured()] {
        let page = report.html();
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
        for judged in report.rounds.iter().flat_map(|round| &round.judged) {
            assert!(
                page.contains(&judged.reason.replace('&', "&amp;")),
                "{}",
                judged.name
            );
        }
        for outside in ["<script", "http://", "https://", "=\"NaN", "=\"inf"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}

#[test]
fn a_page_of_measured_times() {
    assert_snapshot!(fixture::measured().html().replace("><", ">\n<"));
}

#[test]
fn a_page_of_recorded_times() {
    assert_snapshot!(fixture::replayed().html().replace("><", ">\n<"));
}

#[test]
fn names_cannot_smuggle_markup() {
    let mut report = fixture::replayed();
    let hostile = "<script>alert('&')</script>\"><b>";
    report.name = hostile.to_owned();
    report.rounds[0].notices.push(hostile.to_owned());
    report.rounds[0].ranking.standings[0].pitch = hostile.to_owned();
    let judged = &mut report.rounds[0].judged[0];
    judged.name = hostile.to_owned();
    judged.reason = hostile.to_owned();
    judged.words.push(hostile.to_owned());
    let page = report.html();
    assert!(
        !page.contains("<script") && !page.contains("\"><b>"),
        "markup got through"
    );
}
