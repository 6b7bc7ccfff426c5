//! Slurm: a batch of tickets is an array of jobs, an element for each.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use gauntlet_worker::Program;

use crate::engine::{Batch, Ending, Engine, EngineError};

/// The names of its arrays begin with this; the rest is the name of the list of their tickets.
const PREFIX: &str = "gauntlet-";

/// How jobs are submitted.
#[derive(Debug, Clone)]
pub struct SlurmOptions {
    /// Further options of `sbatch` for jobs that time something, such as `--gres=gpu:1` and `--partition=gpu`.
    pub timed: Vec<String>,
    /// The same for checks, which need no card.
    pub checks: Vec<String>,
    /// How many of them wait or run at a time, at most.
    pub most: usize,
}

/// Starts jobs by `sbatch`, and asks after them by `squeue`.
#[derive(Debug)]
pub struct Slurm {
    /// The program whose `job` runs a ticket, at the same path on every node.
    program: Program,
    /// Where the lists of tickets are, which every node sees.
    folder: PathBuf,
    options: SlurmOptions,
}

impl Slurm {
    /// A Slurm that this machine's commands reach.
    ///
    /// # Errors
    /// If the folder cannot be made, or Slurm's commands are not installed.
    pub fn new(program: Program, folder: PathBuf, options: SlurmOptions) -> Result<Self, EngineError> {
        fs::create_dir_all(&folder).map_err(|error| of_file(&folder, &error))?;
        let slurm = Self {
            program,
            folder,
            options,
        };
        slurm.ask("sbatch", ["--version".into()])?;
        Ok(slurm)
    }

    /// Runs one of Slurm's commands.
    fn ask(&self, command: &str, words: impl IntoIterator<Item = OsString>) -> Result<String, EngineError> {
        let ran = Command::new(command)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                EngineError(format!(
                    "`{command}` does not start: {error}; install Slurm's client commands, and run this where jobs are submitted"
                ))
            })?;
        if ran.status.success() {
            return Ok(String::from_utf8_lossy(&ran.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        Err(EngineError(format!("`{command}`: {}", said.trim())))
    }

    fn list(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.tickets"))
    }

    /// The script of an array: its element runs the ticket in its line of the list.
    fn script(&self, batch: &Batch<'_>, list: &Path) -> Result<String, EngineError> {
        let words = self.program.words(["job"]);
        let words = words
            .iter()
            .map(|word| quoted(word))
            .collect::<Result<Vec<_>, _>>()?;
        // Nodes do not write to one database over a shared file system: each has a ledger of its own.
        let ledgers = self.folder.with_file_name("ledgers");
        fs::create_dir_all(&ledgers).map_err(|error| of_file(&ledgers, &error))?;
        Ok(format!(
            "#!/bin/sh\nexport GAUNTLET_LEDGER={}/\"${{SLURMD_NODENAME:-node}}\".sqlite\nticket=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" {})\nexec {} {}/\"$ticket\".json --out {}\n",
            quoted(&ledgers)?,
            quoted(list)?,
            words.join(" "),
            quoted(batch.ticket_folder)?,
            quoted(batch.results)?
        ))
    }
}

impl Engine for Slurm {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn start(&mut self, batch: &Batch<'_>) -> Result<Vec<String>, EngineError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{}", since.as_millis(), std::process::id());
        let list = self.list(&name);
        fs::write(&list, batch.tickets.join("\n") + "\n").map_err(|error| of_file(&list, &error))?;
        let script = list.with_extension("sh");
        fs::write(&script, self.script(batch, &list)?).map_err(|error| of_file(&script, &error))?;
        let logs = batch.results.join("attempts");
        fs::create_dir_all(&logs).map_err(|error| of_file(&logs, &error))?;
        let mut words: Vec<OsString> = vec![
            "--parsable".into(),
            format!("--job-name={PREFIX}{name}").into(),
            format!("--array=0-{}", batch.tickets.len().saturating_sub(1)).into(),
            // A job that is preempted, or whose node is lost, waits again under its own number.
            "--requeue".into(),
            "--open-mode=append".into(),
            concatenated("--output=", &logs.join("slurm-%A_%a.log")),
        ];
        let options = if batch.is_of_checks {
            &self.options.checks
        } else {
            &self.options.timed
        };
        words.extend(options.iter().map(OsString::from));
        if !batch.avoided.is_empty() {
            words.push(format!("--exclude={}", batch.avoided.join(",")).into());
        }
        words.push(script.into_os_string());
        let said = self.ask("sbatch", words)?;
        // With several clusters the number is followed by a semicolon and the cluster's name.
        let number = said.trim().split(';').next().unwrap_or_default().to_owned();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(EngineError(format!(
                "`sbatch` answered `{}`, which is no job's number",
                said.trim()
            )));
        }
        Ok((0..batch.tickets.len())
            .map(|index| format!("{number}_{index}"))
            .collect())
    }

    fn alive(&mut self) -> Result<BTreeMap<String, String>, EngineError> {
        let words = ["--noheader", "--array", "--me", "--format=%i|%j"].map(OsString::from);
        let said = self.ask("squeue", words)?;
        let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for (job, array) in said.lines().filter_map(|line| line.trim().split_once('|')) {
            let Some((name, index)) = array.strip_prefix(PREFIX).zip(index(job)) else {
                continue;
            };
            let tickets = lists.entry(name.to_owned()).or_insert_with(|| {
                let text = fs::read_to_string(self.list(name)).unwrap_or_default();
                text.lines().map(str::to_owned).collect()
            });
            if let Some(ticket) = tickets.get(index) {
                found.insert(ticket.clone(), job.to_owned());
            }
        }
        Ok(found)
    }

    fn ending(&mut self, job: &str) -> Option<Ending> {
        let words = ["--oneliner", "show", "job", job].map(OsString::from);
        let said = self.ask("scontrol", words).ok()?;
        let of = |name: &str| {
            let mut words = said.split_whitespace();
            words.find_map(|word| word.strip_prefix(name).map(str::to_owned))
        };
        let (state, exit, node) = (of("JobState=")?, of("ExitCode=")?, of("NodeList=")?);
        Some(Ending {
            said: format!("{state}, exit code {exit}, on {node}"),
            was_told: state == "CANCELLED" || exit.starts_with("130:"),
            node: (node != "(null)").then_some(node),
        })
    }

    fn cancel(&mut self, job: &str) -> Result<(), EngineError> {
        self.ask("scancel", [job.into()]).map(|_| ())
    }
}

/// The place of an element in its array, such as 3 of `17_3`.
fn index(job: &str) -> Option<usize> {
    job.split_once('_')?.1.parse().ok()
}

fn of_file(path: &Path, error: &std::io::Error) -> EngineError {
    EngineError(format!(
        "{}: {error}; the folder must exist and be writable on every node",
        path.display()
    ))
}

fn concatenated(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// A path in a script for a shell.
fn quoted(path: &Path) -> Result<String, EngineError> {
    match path.to_str() {
        Some(text) => Ok(format!("'{}'", text.replace('\'', r"'\''"))),
        None => Err(EngineError(format!(
            "{} is not UTF-8, which a batch script must be",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_of_an_array_runs_its_line_of_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let slurm = Slurm {
            program: Program::new("/bin/echo"),
            folder: folder.path().join("slurm"),
            options: SlurmOptions {
                timed: Vec::new(),
                checks: Vec::new(),
                most: 2,
            },
        };
        let tickets = ["one".to_owned(), "two".to_owned()];
        fs::create_dir(folder.path().join("slurm")).unwrap();
        let list = slurm.list("x");
        fs::write(&list, tickets.join("\n")).unwrap();
        let awkward = Path::new("/shared/it's here");
        let batch = Batch {
            tickets: &tickets,
            is_of_checks: false,
            avoided: &[],
            ticket_folder: awkward,
            results: Path::new("/out"),
        };
        let script = slurm.script(&batch, &list).unwrap();
        let ran = Command::new("sh")
            .arg("-c")
            .arg(script)
            .env("SLURM_ARRAY_TASK_ID", "1")
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&ran.stdout),
            "job /shared/it's here/two.json --out /out\n"
        );
        assert_eq!(index("17_3"), Some(3));
        assert_eq!(index("17"), None);
    }
}
