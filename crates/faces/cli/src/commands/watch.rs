//! `gauntlet watch`.

mod list;
mod report;

use std::fs;
use std::path::{Path, PathBuf};

use gauntlet_history::git::{Checkout, Revision};
use gauntlet_history::worktree::Worktree;
use gauntlet_judge::ledger::{Index, Judged, Ledger, RunId, Wanted};
use gauntlet_tournament::digest_of;

pub use self::list::WatchList;
use self::list::Watched;
pub use self::report::Watching;
use self::report::{Compared, Standing};
use crate::arguments::{Recording, Setup, Watch};
use crate::commands::contest::Contest;
use crate::error::{CliError, say_line};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::sink;

/// Compares the commits since the last time, and says what moved.
pub fn watch(arguments: Watch) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let list = WatchList::read(&arguments.list)?;
    let setups = list.watched.iter().map(Watched::setup);
    let setups = setups.collect::<Result<Vec<Setup>, _>>()?;
    let checkout = Checkout::around(Path::new("."))?;
    let recording = Recording {
        ledger: arguments.ledger,
        no_ledger: false,
    };
    let (mut compared, mut failure) = (Vec::new(), None);
    for (watched, setup) in list.watched.iter().zip(&setups) {
        let folder = beside(&recording.ledger.path, &checkout, watched)?;
        let mut watcher = Watcher {
            watched,
            setup,
            recording: &recording,
            worktrees: [
                Worktree::at(&checkout, &folder.join("base"))?,
                Worktree::at(&checkout, &folder.join("other"))?,
            ],
        };
        let all = watcher.all(&checkout, arguments.tip, &mut compared);
        let ended = watcher.end();
        // An empty folder is no loss.
        let _gone = fs::remove_dir(&folder);
        if let Err(error) = all.and(ended) {
            failure = Some(error);
            break;
        }
    }
    // What was compared is in the ledger, and would not be told another night.
    let watching = Watching { compared };
    let markdown = watching.markdown();
    let tell = || match &arguments.markdown {
        Some(_) => Ok(()),
        None => sink::print(&markdown),
    };
    arguments.json.deliver(&watching, tell)?;
    if let Some(path) = &arguments.markdown {
        fs::write(path, &markdown).map_err(|error| {
            CliError::of_place(
                &error,
                format!("{} cannot be written: {error}", path.display()),
                "give another place with --markdown",
            )
        })?;
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(watching.exit()),
    }
}

/// The folder of an entry's worktrees, beside a ledger. It is the same each night and no other entry's, so that the ledger's records of
/// kernels in it are those of this entry.
fn beside(ledger: &Path, checkout: &Checkout, watched: &Watched) -> Result<PathBuf, CliError> {
    let parent = ledger.parent().filter(|parent| !parent.as_os_str().is_empty());
    let root = checkout.root().display().to_string();
    let build = watched.build.clone().unwrap_or_default();
    let asked = [vec![root, watched.kernel.clone(), build], watched.words()].concat();
    let digest = digest_of(&asked);
    let name = format!("watch-{}", digest.get(..12).unwrap_or(&digest));
    let folder = parent.unwrap_or(Path::new(".")).join(name);
    let made = fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    made.map_err(|error| {
        CliError::of_place(
            &error,
            format!("{} cannot be made: {error}", folder.display()),
            "give a ledger in a folder that can be written, with --ledger: worktrees are made beside it",
        )
    })
}

/// Builds commits in worktrees and compares one entry's kernel in them.
struct Watcher<'a> {
    watched: &'a Watched,
    setup: &'a Setup,
    recording: &'a Recording,
    /// One for the commit that is compared with, and one for the other.
    worktrees: [Worktree; 2],
}

impl Watcher<'_> {
    /// Compares each new commit with the last one before it whose times are known, so that a slowdown is not lost behind a commit that does
    /// not build.
    fn all(
        &mut self,
        checkout: &Checkout,
        is_tip: bool,
        compared: &mut Vec<Compared>,
    ) -> Result<(), CliError> {
        let mut commits = self.commits(checkout)?.into_iter();
        let base = commits.next();
        let mut new: Vec<Revision> = commits.collect();
        if is_tip {
            new.drain(..new.len().saturating_sub(1));
        }
        match base {
            Some(mut base) if !new.is_empty() => {
                for after in new {
                    let one = self.compared([&base, &after])?;
                    if one.standing.is_measured() {
                        base = after;
                    }
                    compared.push(one);
                }
            }
            _ => say_line(format_args!("{}: no new commit", self.watched.kernel)),
        }
        Ok(())
    }

    /// The commit to compare with, and those that are new; of a kernel that was never watched the newest and the one just before it.
    fn commits(&self, checkout: &Checkout) -> Result<Vec<Revision>, CliError> {
        let head = "HEAD";
        let known = self.known()?;
        let Some((newest, _)) = known.first() else {
            return Ok(checkout.row("HEAD~1", head)?);
        };
        if checkout.commits()?.last() == Some(newest) {
            return Ok(Vec::new());
        }
        let measured = known.iter().find(|(_, is_measured)| *is_measured);
        let base = measured.map_or(newest, |(commit, _)| commit);
        // No row leads to the newest commit from one that was rewritten.
        let Ok(mut row) = checkout.row(base, head) else {
            return Ok(checkout.row("HEAD~1", head)?);
        };
        let watched = row.iter().position(|one| one.id == *newest);
        row.drain(1..=watched.unwrap_or(0));
        Ok(row)
    }

    /// The commits that were watched, the last one first, and whether their times are known, by the ledger.
    fn known(&self) -> Result<Vec<(String, bool)>, CliError> {
        let ledger = &self.recording.ledger.path;
        if !ledger.exists() {
            return Ok(Vec::new());
        }
        let wanted = Wanted {
            in_history: true,
            ..Wanted::default()
        };
        let all = Index::of(&Ledger::open_read_only(ledger)?)?.verdicts(&wanted)?;
        // The records are of comparisons, so that they can be repeated; their newer kernel lies in this entry's worktree.
        let place = self.worktrees[1].folder();
        let commit = |one: Judged| {
            let is_ours = one.kernel.is_some_and(|text| Path::new(&text).starts_with(place));
            let commit = one.commit.filter(|_| is_ours)?;
            Some((commit.id, one.speedup.is_some()))
        };
        Ok(all.into_iter().filter_map(commit).collect())
    }

    fn compared(&mut self, pair: [&Revision; 2]) -> Result<Compared, CliError> {
        let watched = self.watched;
        let [before, after] = pair;
        say_line(format_args!(
            "{}: {} ({}) against {}",
            watched.kernel,
            after.short(),
            after.subject,
            before.short()
        ));
        let (standing, run) = match self.contest(pair)? {
            Ok((contest, names)) => self.judged(&contest, names)?,
            Err(why) => {
                say_line(format_args!("  not compared: {why}"));
                (Standing::NotCompared { why }, None)
            }
        };
        Ok(Compared {
            kernel: watched.kernel.clone(),
            task: watched.task.clone(),
            build: watched.build.clone(),
            before: before.id.clone(),
            commit: after.id.clone(),
            subject: after.subject.clone(),
            run,
            standing,
        })
    }

    /// Both commits built, and their kernels as they are named and read; or why there is nothing to compare.
    fn contest(&mut self, pair: [&Revision; 2]) -> Result<Result<(Contest, Vec<String>), String>, CliError> {
        let mut names = Vec::new();
        for (worktree, commit) in self.worktrees.iter_mut().zip(pair) {
            if let Err(error) = worktree.hold(&commit.id, self.watched.build.as_deref())? {
                return Ok(Err(format!("{}: {error}", commit.short())));
            }
            names.push(format!("{}/{}", worktree.folder().display(), self.watched.kernel));
        }
        let read = |name: &String| gauntlet_entrants::read(name).map_err(CliError::from);
        let of = |[before, after]: [&String; 2]| Contest::of(self.setup, [read(before)?, read(after)?]);
        match of([&names[0], &names[1]]) {
            Ok(contest) => Ok(Ok((contest, names))),
            // A commit without the kernel, for one, must not hide what the others did.
            Err(error) if error.is_of_input() => Ok(Err(error.text())),
            Err(error) => Err(error),
        }
    }

    fn judged(&self, contest: &Contest, names: Vec<String>) -> Result<(Standing, Option<RunId>), CliError> {
        let recorder = contest
            .recorder(self.recording)?
            .of_command([self.watched.words(), names].concat());
        let report = {
            let _hold = contest.hold()?;
            contest.compared(&Progress::new())?
        };
        let run = recorder.record_comparison(&report)?.map(|(_, run)| run);
        Ok((Standing::of(&report), run))
    }

    /// Removes the worktrees.
    fn end(self) -> Result<(), CliError> {
        let [base, other] = self.worktrees;
        base.remove()?;
        Ok(other.remove()?)
    }
}
