//! `gauntlet bisect`.

mod bisection;
mod comparing;
mod state;

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_history::git::{Checkout, Revision};
use gauntlet_history::recalled::{Answered, Recalled};
use gauntlet_history::search::{Outcome, Rules, Search, search};
use gauntlet_history::series::{Recorded, Version, recorded};
use gauntlet_history::surroundings::{Changed, changed, circumstances};
use gauntlet_judge::ledger::Ledger;

pub use self::bisection::Bisection;
use self::bisection::Conclusion;
use self::comparing::{Live, Row};
use self::state::{Inputs, State};
use crate::arguments::Bisect;
use crate::commands::run::{environment, version};
use crate::error::{CliError, say_line};
use crate::exit::Exit;
use crate::interrupt;

/// Finds the commit that made a kernel slower.
pub fn bisect(arguments: &Bisect) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let checkout = Checkout::around(Path::new("."))?;
    let commits = checkout.row(&arguments.good, &arguments.bad)?;
    let rules = Rules {
        least: arguments.least / 100.0,
        ..Rules::default()
    };
    tell_plan(arguments, &commits, &rules);
    if arguments.dry_run {
        return Ok(Exit::Done);
    }
    let inputs = Inputs::of(arguments, &commits);
    let state = State::beside(&arguments.recording.ledger.path, &inputs)?;
    let answers = match arguments.resume {
        true => state.answers(&inputs)?,
        false => Vec::new(),
    };
    interrupt::keeps(format!(
        "the comparisons that ended are in {}; the same command with --resume goes on after them",
        state.file().display()
    ));
    let row = Row {
        arguments,
        commits: &commits,
        planned: Rules::comparisons(commits.len() - 1),
    };
    let live = Live::new(row, &checkout, state.folder())?;
    let mut comparer = Recalled::new(live, answers, |answers: &[Answered]| state.keep(&inputs, answers));
    let searched = search(commits.len() - 1, &rules, &mut comparer);
    let live = comparer.into_comparer();
    let found = searched?;
    live.end()?;
    state.remove();
    let bisection = conclude(arguments, &commits, found)?;
    arguments.json.deliver(&bisection, || bisection.tell())?;
    Ok(bisection.exit())
}

/// Says beforehand what the bisection takes.
fn tell_plan(arguments: &Bisect, commits: &[Revision], rules: &Rules) {
    let count = commits.len() - 1;
    let comparisons = Rules::comparisons(count);
    let budget = arguments.setup.budget;
    let each = i32::try_from(comparisons).unwrap_or(i32::MAX);
    say_line(format_args!(
        "{count} commit{} after {}: about {comparisons} comparisons of at most {budget:#} each, {:#} in all without building; \
         an undecided one may take {} times as long.",
        if count == 1 { "" } else { "s" },
        commits[0].short(),
        budget.saturating_mul(each),
        1 + rules.rounds,
    ));
}

fn conclude(arguments: &Bisect, commits: &[Revision], found: Search) -> Result<Bisection, CliError> {
    let conclusion = match found.outcome {
        Outcome::Culprit { commit, slowdown } => Conclusion::Culprit {
            commit: commits[commit].id.clone(),
            subject: commits[commit].subject.clone(),
            slowdown,
        },
        Outcome::Range { after, upto, why } => Conclusion::Range {
            commits: commits[after + 1..=upto]
                .iter()
                .map(|one| one.id.clone())
                .collect(),
            why,
        },
        Outcome::NoRegression => Conclusion::NoRegression {
            changed: changed_since(arguments, commits)?,
        },
        Outcome::Unshown => Conclusion::Unshown,
    };
    Ok(Bisection::new(arguments, commits, conclusion, &found.steps))
}

/// What beside the code has changed since one of the two commits was first compared, by the ledger: where a slowdown comes from that the
/// code does not explain.
fn changed_since(arguments: &Bisect, commits: &[Revision]) -> Result<Option<Vec<Changed>>, CliError> {
    let path = &arguments.recording.ledger.path;
    if !path.exists() {
        return Ok(None);
    }
    let ends = [commits.first(), commits.last()].map(|one| one.map(|one| one.id.as_str()));
    let of_ends = |one: &Recorded| {
        let is_end = |version: &Version| {
            version.commit().kernel == arguments.kernel && ends.contains(&Some(version.commit().id.as_str()))
        };
        one.versions.iter().flatten().any(is_end)
    };
    let ledger = Ledger::open_read_only(path)?;
    let all = recorded(&ledger, None)?;
    let of_both: Vec<_> = all.iter().filter(|one| of_ends(one)).collect();
    let (Some(first), Some(last)) = (of_both.first(), of_both.last()) else {
        return Ok(None);
    };
    // Comparisons of this bisection are recorded too, unless that was declined.
    let now: BTreeMap<String, String> = match arguments.recording.no_ledger {
        true => circumstances(&environment(), &version()),
        false => circumstances(&last.report.environment, &last.report.version),
    };
    let then = circumstances(&first.report.environment, &first.report.version);
    Ok(Some(changed(&then, &now)))
}
