//! Where a ticket stands, in words.

use std::fmt::Write as _;

use gauntlet_queue::{Confirmation, JobResult, JudgementKind, State, Status};
use jiff::Timestamp;

use crate::answer::{MAX_BYTES, beginning, ending};

/// What follows the report in an answer.
const MAX_AFTER: usize = 480;

/// After so many comparisons the answer says what their number does to the best of them.
const MANY_TRIES: usize = 5;

/// Where a ticket stands, and what was found.
pub fn of_status(status: &Status) -> String {
    let id = &status.id;
    match (status.state, &status.result) {
        (State::Queued, _) => format!("Ticket `{id}` is queued, {} before it. {ASK}", status.ahead),
        (State::Running, _) => format!("Ticket `{id}` is running, {}. {ASK}", since(status)),
        (State::Cancelled, _) => format!("Ticket `{id}` is cancelled."),
        (State::Failed, _) => {
            let reason = status.reason.as_deref().unwrap_or("no reason is known");
            format!("Ticket `{id}` failed:\n{}", beginning(reason, MAX_BYTES - 60))
        }
        (state, Some(result)) => found(status, state, result),
        (state, None) => format!("Ticket `{id}` is {state}."),
    }
}

const ASK: &str = "Ask `verdict` with it; nothing is lost meanwhile.";

/// How long the present attempt has been running.
pub fn since(status: &Status) -> String {
    let Some(attempt) = status.attempts.last() else {
        return "about to begin".to_owned();
    };
    let seconds = Timestamp::now().duration_since(attempt.began).as_secs();
    format!("attempt {}, for {seconds} s", attempt.number)
}

fn found(status: &Status, state: State, result: &JobResult) -> String {
    let is_check = status.judgement.command == JudgementKind::Check;
    let mut after = String::new();
    if let Some(second) = &status.confirmation {
        let _written = write!(after, "\n\n{}", confirmed(second));
    } else if state == State::Undecided {
        after +=
            "\n\n**Undecided**: a larger `budget` may decide it; asking again until one looks good does not.";
    }
    if status.judgement.command.is_a_try() {
        let tries = status.tries;
        let _written = write!(after, "\n\nComparison {tries} of this task by {}.", status.client);
        if tries >= MANY_TRIES {
            after += " The best of many looks better than it is.";
        }
    }
    let _written = write!(after, "\n\nTicket `{}`: {state}.", status.id);
    let room = MAX_BYTES - MAX_AFTER;
    let report = if is_check {
        // What is wrong stands at the end.
        format!("```text\n{}\n```", ending(&result.report, room - 20))
    } else {
        beginning(&essence(&result.report), room)
    };
    report + &beginning(&after, MAX_AFTER)
}

fn confirmed(second: &Confirmation) -> String {
    let said = second
        .result
        .as_ref()
        .map(|result| beginning(headline(&result.report), 160));
    match (&second.result, said) {
        (Some(result), Some(said)) if result.is_adopted() => {
            format!(
                "**A win**: a second comparison on fresh inputs shows it too. Its figure is the one to quote: {said}"
            )
        }
        (Some(_), Some(said)) => {
            format!("**No win**: a second comparison on fresh inputs does not show it: {said}")
        }
        _ if second.state.is_final() => format!(
            "**No win**: the second comparison on fresh inputs is {}; ask again.",
            second.state
        ),
        _ => format!(
            "**Not a win yet**: that takes a second comparison on fresh inputs, which is {}. {ASK}",
            second.state
        ),
    }
}

/// The first line of a report, without its marks.
pub fn headline(report: &str) -> &str {
    report
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches(['#', ' '])
}

/// A report without what is folded away and what is in small print.
pub fn essence(report: &str) -> String {
    let mut left = without(report, "<details>", "</details>");
    left = without(&left, "<sub>", "</sub>");
    while left.contains("\n\n\n") {
        left = left.replace("\n\n\n", "\n\n");
    }
    left.trim().to_owned()
}

/// What is folded away in a report.
pub fn folded(report: &str) -> String {
    let inside = report
        .split("<details>")
        .skip(1)
        .filter_map(|rest| rest.split("</details>").next());
    let lines = inside
        .flat_map(str::lines)
        .filter(|line| !line.starts_with("<summary>") && !line.starts_with("|--"));
    lines
        .filter(|line| !line.trim().is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn without(text: &str, from: &str, to: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(from) {
        left += before;
        rest = after.split_once(to).map_or("", |(_, after)| after);
    }
    left + rest
}

#[cfg(test)]
mod tests {
    use gauntlet_queue::Judgement;

    use super::*;

    fn status(state: State, verdict: &str) -> Status {
        Status {
            id: "0a1b2c3d4e5f".to_owned(),
            client: "agent".to_owned(),
            judgement: Judgement::compare("t.py", "k.py:slow", "k.py:fast"),
            state,
            reason: None,
            created: Timestamp::UNIX_EPOCH,
            ended: None,
            attempts: Vec::new(),
            ahead: 2,
            tries: 7,
            result: state.is_final().then(|| result(verdict)),
            confirmation: None,
        }
    }

    fn result(verdict: &str) -> JobResult {
        JobResult {
            schema: JobResult::SCHEMA.to_owned(),
            ticket: "0a1b2c3d4e5f".to_owned(),
            attempt: "host-1".to_owned(),
            began: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
            exit: 0,
            state: State::Decided,
            verdict: Some(verdict.to_owned()),
            report: format!(
                "### ✓ it is {verdict}\n\ntext\n<details><summary>Gates</summary>\n\n| ✗ | right | no |\n</details>\n<sub>small</sub>\n"
            ),
            result: None,
        }
    }

    #[test]
    fn an_answer_fits_whatever_the_report_is() {
        let mut long = status(State::Decided, "adopt");
        long.client = "x".repeat(600);
        long.result
            .iter_mut()
            .for_each(|result| result.report = "### ü\n".repeat(900));
        long.confirmation = Some(Confirmation {
            ticket: "f".repeat(12),
            state: State::Decided,
            result: Some(JobResult {
                report: "y".repeat(4000),
                ..result("adopt")
            }),
        });
        assert!(of_status(&long).len() <= MAX_BYTES);
        long.judgement.command = JudgementKind::Check;
        assert!(of_status(&long).len() <= MAX_BYTES);
        long.state = State::Failed;
        long.reason = Some("z".repeat(4000));
        assert!(of_status(&long).len() <= MAX_BYTES);
    }

    #[test]
    fn faster_is_a_win_only_after_the_second_comparison() {
        let mut faster = status(State::Decided, "adopt");
        let mut said = |second: Option<&str>, state| {
            faster.confirmation = Some(Confirmation {
                ticket: "f".to_owned(),
                state,
                result: second.map(result),
            });
            of_status(&faster)
        };
        let waits = said(None, State::Queued);
        assert!(
            waits.contains("Not a win yet") && !waits.contains("**A win**"),
            "{waits}"
        );
        assert!(said(Some("adopt"), State::Decided).contains("**A win**"));
        assert!(said(Some("inconclusive"), State::Undecided).contains("**No win**"));
        assert!(said(None, State::Failed).contains("**No win**"));
        let text = of_status(&status(State::Decided, "regression"));
        assert!(
            text.contains("Comparison 7 of this task by agent. The best of many"),
            "{text}"
        );
        assert!(
            !text.contains("win") && !text.contains("Gates") && !text.contains("small"),
            "{text}"
        );
    }

    #[test]
    fn what_is_folded_away_is_found() {
        assert_eq!(folded(&result("adopt").report), "| ✗ | right | no |");
        assert_eq!(headline(&result("adopt").report), "✓ it is adopt");
    }
}
