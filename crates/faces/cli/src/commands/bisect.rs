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
use gauntlet_history::surroundings::{changed, circumstances};
use gauntlet_judge::ledger::Ledger;
use jiff::Timestamp;

pub use self::bisection::Bisection;
use self::bisection::{Again, Conclusion};
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
    let began = Timestamp::now();
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
    let bisection = conclude(arguments, &commits, found, began)?;
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

fn conclude(
    arguments: &Bisect,
    commits: &[Revision],
    found: Search,
    began: Timestamp,
) -> Result<Bisection, CliError> {
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
        Outcome::NoRegression => since_then(arguments, commits, began)?,
        Outcome::Unshown => Conclusion::Unshown,
    };
    Ok(Bisection::new(arguments, commits, conclusion, &found.steps))
}

/// What beside the code has changed since one of the two commits was first compared, by the ledger, and how long both took then and take
/// now: where a slowdown comes from that the code does not explain.
fn since_then(arguments: &Bisect, commits: &[Revision], began: Timestamp) -> Result<Conclusion, CliError> {
    let unknown = Conclusion::NoRegression {
        changed: None,
        again: Vec::new(),
    };
    let path = &arguments.recording.ledger.path;
    if !path.exists() {
        return Ok(unknown);
    }
    let ends = [commits.first(), commits.last()].map(|one| one.map(|one| one.id.as_str()));
    let is_end = |version: &Version| {
        version.commit().kernel == arguments.kernel && ends.contains(&Some(version.commit().id.as_str()))
    };
    let ledger = Ledger::open_read_only(path)?;
    let mut of_ends = recorded(&ledger, None)?;
    of_ends.retain(|one| one.versions.iter().flatten().any(is_end));
    let (Some(first), Some(last)) = (of_ends.first(), of_ends.last()) else {
        return Ok(unknown);
    };
    let circumstances_of = |one: &Recorded| circumstances(&one.report.environment, &one.report.version);
    // Comparisons of this bisection are recorded too, unless that was declined.
    let (now, again) = match arguments.recording.no_ledger {
        true => (circumstances(&environment(), &version()), Vec::new()),
        false => {
            let ends = ends.into_iter().flatten();
            let again = ends.flat_map(|commit| again(commit, &arguments.kernel, &of_ends, began));
            (circumstances_of(last), again.collect())
        }
    };
    Ok(Conclusion::NoRegression {
        changed: Some(changed(&circumstances_of(first), &now)),
        again,
    })
}

/// The times of a commit's kernel when it was first compared, if that was before the bisection began, and in the bisection.
fn again(commit: &str, kernel: &str, recorded: &[Recorded], began: Timestamp) -> Vec<Again> {
    let times = |one: &Recorded| {
        let is_it = |version: &Option<Version>| {
            let commit_of = version.as_ref().map(Version::commit);
            commit_of.is_some_and(|it| it.id == commit && it.kernel == kernel)
        };
        let arm = one.versions.iter().position(is_it)?;
        let cases = &one.report.believed()?.cases;
        let times = cases
            .iter()
            .map(|case| (case.case.clone(), [case.baseline, case.candidate][arm]));
        Some(times.collect::<BTreeMap<String, f64>>())
    };
    let (then, now): (Vec<&Recorded>, Vec<&Recorded>) = recorded.iter().partition(|one| one.at < began);
    let was = then.into_iter().find_map(times).unwrap_or_default();
    let is = now.into_iter().rev().find_map(times).unwrap_or_default();
    let both = was.into_iter().filter_map(|(case, was)| {
        let is = *is.get(&case)?;
        Some(Again {
            commit: commit.to_owned(),
            case,
            was,
            is,
        })
    });
    both.collect()
}
