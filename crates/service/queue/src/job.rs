//! One ticket, run once: the contract of every engine.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use gauntlet_scratch::Scratch;
use gauntlet_worker::Program;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::blobs::Blobs;
use crate::error::QueueError;
use crate::judgement::JudgementKind;
use crate::looks::Looks;
use crate::outcome::{JobResult, of_exit};
use crate::ticket::Ticket;

/// The exit code of a command that was interrupted, as shells have it.
const INTERRUPTED: i32 = 130;

/// The exit code of a job whose command died.
const BROKEN: i32 = 3;

/// What is kept of a report or a message.
const MAX_TEXT: u64 = 64 * 1024;

/// A ticket to run, and where.
pub struct Job<'a> {
    /// The ticket.
    pub ticket: &'a Ticket,
    /// The contents of its files.
    pub blobs: &'a Blobs,
    /// Where its result is published, and its attempts are noted.
    pub out: &'a Path,
    /// The program that judges, in a process of its own.
    pub program: &'a Program,
    /// Prepares the command that judges.
    pub prepare: &'a dyn Fn(&mut Command),
    /// Is told the process that judges, and that it has ended.
    pub started: &'a dyn Fn(Option<u32>),
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// The exit code: that of the command that judged, or of the attempt that was first.
    pub exit: i32,
    /// Whether another attempt had published before.
    pub was_known: bool,
    /// Why nothing was published; none if something was.
    pub reason: Option<String>,
}

/// What is noted of an attempt, beside the results.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct AttemptNote<'a> {
    ticket: &'a str,
    attempt: &'a str,
    began: Timestamp,
    ended: Timestamp,
    exit: i32,
    is_published: bool,
    reason: Option<&'a str>,
}

/// Runs a ticket and publishes what is found as `OUT/ID.json`, unless another attempt has published before: then nothing is run.
/// Publishing is a link, which fails if there is a result already. Each attempt that ran leaves `OUT/attempts/ID.ATTEMPT.json` and
/// the messages of the command that judged.
///
/// # Errors
/// If the ticket's files are not there, or the folder cannot be written.
pub fn run_job(job: &Job<'_>) -> Result<JobEnd, QueueError> {
    let Job { ticket, out, .. } = *job;
    let attempts = out.join("attempts");
    fs::create_dir_all(&attempts).map_err(QueueError::at(&attempts))?;
    // An earlier attempt on this machine may still be at work: what it finds counts, and two at once would measure each other.
    // The file stays: whoever waits for it must not be left with one that others no longer see.
    let lock = attempts.join(format!(".{}.{}.lock", ticket.id, this_machine()));
    let held = File::create(&lock).map_err(QueueError::at(&lock))?;
    held.lock().map_err(QueueError::at(&lock))?;
    match known(out, ticket) {
        Some(exit) => Ok(JobEnd {
            exit,
            was_known: true,
            reason: None,
        }),
        None => attempt(job, &attempts),
    }
}

/// The exit code of the attempt that has published; none if none has.
fn known(out: &Path, ticket: &Ticket) -> Option<i32> {
    let text = fs::read(place(out, ticket)).ok()?;
    let found: JobResult = serde_json::from_slice(&text).ok()?;
    Some(found.exit)
}

/// Where the command that judges tells of its looks while it runs.
pub(crate) fn looks_file(out: &Path, ticket: &str) -> PathBuf {
    out.join("attempts").join(format!("{ticket}.looks"))
}

fn place(out: &Path, ticket: &Ticket) -> PathBuf {
    out.join(format!("{}.json", ticket.id))
}

fn attempt(job: &Job<'_>, attempts: &Path) -> Result<JobEnd, QueueError> {
    let Job { ticket, out, .. } = *job;
    let began = Timestamp::now();
    let attempt = name(began);
    let noted = |ending: &str| attempts.join(format!("{}.{attempt}.{ending}", ticket.id));
    let folder = Scratch::new().map_err(QueueError::at(std::env::temp_dir()))?;
    let name = ticket.folder.as_deref().unwrap_or("sources");
    let sources = folder.path().join("files").join(name);
    for (name, digest) in &ticket.files {
        let path = sources.join(name);
        let above = path.parent().unwrap_or(&sources);
        fs::create_dir_all(above).map_err(QueueError::at(above))?;
        fs::write(&path, job.blobs.get(digest, name)?).map_err(QueueError::at(&path))?;
    }
    let [json, markdown, printed] =
        ["json", "md", "txt"].map(|ending| folder.path().join(format!("result.{ending}")));
    let kind = ticket.judgement.command;
    // Not in the folder that goes: the pairs of an attempt that is interrupted are there for the next one on this machine.
    let json = match kind.is_a_try() {
        true => attempts.join(format!("{}.{}.pairs", ticket.id, this_machine())),
        false => json,
    };
    let log = noted("log");
    let looks = looks_file(out, &ticket.id);
    // Of an attempt that was killed.
    let _gone = fs::remove_file(&looks);
    let status = {
        let mut command = command(job, &json, &markdown)?;
        let file = |path: &Path| File::create(path).map_err(QueueError::at(path));
        command
            .stdin(Stdio::null())
            .stdout(file(&printed)?)
            .stderr(file(&log)?);
        if !ticket.files.is_empty() {
            command.current_dir(&sources);
        }
        command.envs([Looks::variable(&looks)]);
        (job.prepare)(&mut command);
        let mut child = command.spawn().map_err(QueueError::at(&job.program.file))?;
        (job.started)(Some(child.id()));
        let status = child.wait();
        // Its number may be another's from here on.
        (job.started)(None);
        // They say how far a comparison has come that runs, and it does not any more.
        let _gone = fs::remove_file(&looks);
        status.map_err(QueueError::at(&job.program.file))?
    };
    let result: Option<Value> = fs::read(&json)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .filter(|result| !is_unfinished(result));
    let found = of_exit(kind, status.code(), result.as_ref()).map(|(state, verdict)| JobResult {
        schema: JobResult::SCHEMA.to_owned(),
        ticket: ticket.id.clone(),
        attempt: attempt.clone(),
        began,
        ended: Timestamp::now(),
        exit: status.code().unwrap_or(BROKEN),
        state,
        verdict,
        report: report(kind, status.code(), [&markdown, &printed, &log]),
        result,
    });
    let end = match found {
        Some(found) => {
            let is_first = publish(out, ticket, &attempt, &found)?;
            let _gone = fs::remove_file(&json);
            let first = if is_first { None } else { known(out, ticket) };
            JobEnd {
                exit: first.unwrap_or(found.exit),
                was_known: !is_first,
                reason: None,
            }
        }
        None => JobEnd {
            exit: if status.code() == Some(INTERRUPTED) {
                INTERRUPTED
            } else {
                BROKEN
            },
            was_known: false,
            reason: Some(why(status, &log)),
        },
    };
    let note = AttemptNote {
        ticket: &ticket.id,
        attempt: &attempt,
        began,
        ended: Timestamp::now(),
        exit: end.exit,
        is_published: end.reason.is_none() && !end.was_known,
        reason: end.reason.as_deref(),
    };
    let path = noted("json");
    fs::write(&path, serde_json::to_vec_pretty(&note).unwrap_or_default()).map_err(QueueError::at(&path))?;
    Ok(end)
}

/// Whether a result is what an interrupted attempt kept.
fn is_unfinished(result: &Value) -> bool {
    result.pointer("/kept/observations/interrupted") == Some(&Value::Bool(true))
}

fn command(job: &Job<'_>, json: &Path, markdown: &Path) -> Result<Command, QueueError> {
    let judgement = &job.ticket.judgement;
    let mut words = judgement.arguments()?;
    // Options stand right after the command's name: kernels stand after `--`.
    let mut outputs = vec!["--json".into(), json.as_os_str().to_owned()];
    if judgement.command.is_a_try() {
        outputs.extend(["--markdown".into(), markdown.as_os_str().to_owned()]);
        if json.exists() {
            outputs.push("--resume".into());
        }
    }
    words.splice(1..1, outputs);
    let mut command = Command::new(&job.program.file);
    command.args(job.program.with(words)).env("NO_COLOR", "1");
    command.envs(job.ticket.client.iter().map(|client| ("GAUNTLET_CLIENT", client)));
    Ok(command)
}

/// What is shown of the outcome: the Markdown of a comparison, what another command printed, or the message of an error.
fn report(kind: JudgementKind, exit: Option<i32>, [markdown, printed, log]: [&Path; 3]) -> String {
    let path = match exit {
        Some(2) => log,
        _ if kind.is_a_try() => markdown,
        _ => printed,
    };
    text(path)
}

fn text(path: &Path) -> String {
    let mut read = Vec::new();
    let _read = File::open(path).map(|file| file.take(MAX_TEXT).read_to_end(&mut read));
    String::from_utf8_lossy(&read).trim().to_owned()
}

/// Why a command left no result.
fn why(status: ExitStatus, log: &Path) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let said = text(log);
    match said
        .lines()
        .rev()
        .take(6)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
        .join("\n")
    {
        said if said.is_empty() => how,
        said => format!("{how}: {said}"),
    }
}

/// Publishes a result whole or not at all. False if there is one.
fn publish(out: &Path, ticket: &Ticket, attempt: &str, found: &JobResult) -> Result<bool, QueueError> {
    let place = place(out, ticket);
    let beside = out.join(format!(".{}.{attempt}", ticket.id));
    let write = || -> io::Result<bool> {
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec(found)?)?;
        file.sync_all()?;
        match fs::hard_link(&beside, &place) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    };
    let published = write();
    let _gone = fs::remove_file(&beside);
    published.map_err(QueueError::at(&place))
}

/// The name of an attempt: host, process, the time, and the scheduler's job with the number of its restart.
fn name(began: Timestamp) -> String {
    let own = format!(
        "{}-{}-{}",
        this_machine(),
        std::process::id(),
        began.as_millisecond()
    );
    match std::env::var("SLURM_JOB_ID") {
        Ok(job) => {
            let restart = std::env::var("SLURM_RESTART_COUNT").unwrap_or_else(|_| "0".to_owned());
            plain(&format!("{own}-slurm-{job}-{restart}"))
        }
        Err(_) => own,
    }
}

/// This machine's name, as part of a file's name.
pub fn this_machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match plain(name.trim()) {
        name if name.is_empty() => "host".to_owned(),
        name => name,
    }
}

fn plain(text: &str) -> String {
    text.chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter))
        .collect()
}
