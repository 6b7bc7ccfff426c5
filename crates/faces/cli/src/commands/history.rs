//! `gauntlet history`.

use std::collections::BTreeMap;
use std::path::Path;

use gauntlet_history::git::{Checkout, GitError, short};
use gauntlet_history::series::{Point, Series, recorded, series};
use gauntlet_judge::ledger::Ledger;
use gauntlet_report::duration;

use crate::arguments::History;
use crate::error::CliError;
use crate::exit::Exit;
use crate::{listing, sink};

/// Shows the series of this repository's kernels.
pub fn history(arguments: &History) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let commits = Checkout::around(Path::new("."))?.commits()?;
    let ledger = Ledger::open_read_only(&arguments.ledger.path)?;
    let mut found = series(&recorded(&ledger, arguments.task.as_deref())?, &commits);
    let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
    found.retain(|one| fits(&arguments.case, &one.case) && fits(&arguments.kernel, &one.kernel));
    arguments.json.deliver_list(&found, || tell(&found))?;
    Ok(Exit::Done)
}

fn tell(found: &[Series]) -> Result<(), CliError> {
    if found.is_empty() {
        return sink::line(
            "The ledger holds no comparison of this kind whose kernels are in files of this repository's commits.",
        );
    }
    for (index, one) in found.iter().enumerate() {
        if index > 0 {
            sink::print("\n")?;
        }
        sink::line(format_args!("{} · {} · {}", one.task, one.case, one.kernel))?;
        sink::line(format_args!("on {}, {}", one.device, told_stack(&one.stack)))?;
        let columns = ["commit", "measured", "median", "against the one before"];
        listing::print(
            &columns,
            one.points
                .iter()
                .enumerate()
                .map(|(place, point)| row(place, point)),
        )?;
    }
    let points = || found.iter().flat_map(|one| &one.points);
    if points().any(|point| point.changed) {
        sink::line("* The file was not as the commit has it, as a built library never is.")?;
    }
    if points().any(|point| point.perhaps_changed) {
        sink::line(
            "? The times seem to change here, which a machine may do too: `gauntlet bisect` compares the commits.",
        )?;
    }
    Ok(())
}

fn told_stack(stack: &BTreeMap<String, String>) -> String {
    let told = stack.iter().map(|(name, value)| format!("{name} {value}"));
    told.collect::<Vec<_>>().join(", ")
}

fn row(place: usize, point: &Point) -> Vec<String> {
    let mark = |is: bool, mark: &str| if is { mark.to_owned() } else { String::new() };
    let against = match &point.joint {
        None if place == 0 => "–".to_owned(),
        None => "not compared".to_owned(),
        Some(joint) => {
            let speedup = joint.speedup.map_or_else(
                || "no interval".to_owned(),
                |speedup| listing::between(speedup.estimate, speedup.lower, speedup.upper),
            );
            match joint.verdict {
                Some(verdict) => format!("{verdict}: {speedup}"),
                None => speedup,
            }
        }
    };
    vec![
        format!("{}{}", short(&point.commit), mark(point.changed, "*")),
        point.at.strftime("%F").to_string(),
        format!("{}{}", duration(point.seconds), mark(point.perhaps_changed, " ?")),
        against,
    ]
}

impl From<GitError> for CliError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Missing(_) => Self::of_input(error),
            GitError::Refused { .. } => Self::bad_input(
                error.to_string(),
                "run this in a checkout of a git repository, and name commits that it has",
            ),
            GitError::Apart { .. } => Self::bad_input(
                error.to_string(),
                "name two commits of one branch; a branch that was merged is bisected by itself",
            ),
        }
    }
}
