//! `gauntlet queue`: tickets from the command line, and who runs them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gauntlet_farm::{EngineError, Event};
use gauntlet_queue::{Judgement, Queue, State, Status, Submission};

use crate::arguments::{ListTickets, QueueArguments, QueueCommand, ShowTicket, Submit, Work};
use crate::commands::run::this_program;
use crate::error::{CliError, say_line};
use crate::exit::Exit;
use crate::{interrupt, listing, sink};

/// How often the command looks at a ticket whose result its user waits for.
const PAUSE: Duration = Duration::from_millis(500);

/// Does what `queue` is asked for.
pub fn queue(arguments: &QueueArguments) -> Result<Exit, CliError> {
    let folder = folder(arguments.queue.as_deref(), &arguments.ledger.path);
    let makes_one = matches!(
        &arguments.command,
        QueueCommand::Submit(_) | QueueCommand::Work(_)
    );
    if !makes_one && !folder.join("queue.sqlite").exists() {
        return Err(CliError::bad_input(
            format!("there is no queue in {}", folder.display()),
            "`gauntlet queue submit` makes one; name another folder by --queue, or its ledger by GAUNTLET_LEDGER",
        ));
    }
    let queue = Arc::new(Queue::open(&folder)?);
    match &arguments.command {
        QueueCommand::Submit(submission) => submit(&queue, submission),
        QueueCommand::List(listed) => list(&queue, listed),
        QueueCommand::Show(shown) => show(&queue, shown),
        QueueCommand::Cancel(cancelled) => cancel(&queue, &cancelled.ticket),
        QueueCommand::Work(work) => run(queue, work, in_full(&arguments.ledger.path)),
    }
}

fn in_full(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The folder of a queue: the one that is named, else the one beside the ledger.
pub fn folder(named: Option<&Path>, ledger: &Path) -> PathBuf {
    match named {
        Some(folder) => in_full(folder),
        None => in_full(ledger).with_file_name("queue"),
    }
}

fn submit(queue: &Queue, words: &Submit) -> Result<Exit, CliError> {
    let kernels: Vec<&str> = words.kernels.iter().map(String::as_str).collect();
    let judgement = Judgement {
        cases: words.cases.clone(),
        budget: words.budget.clone(),
        pairs: words.pairs,
        quick: words.quick,
        executor: words.executor.clone(),
        device: words.device.clone(),
        ..Judgement::new(words.command.into(), &words.task, &kernels)
    };
    judgement.arguments()?;
    let submission =
        gauntlet_mcp::submission(&this_program()?, &words.client, judgement).map_err(|why| refusal(&why))?;
    let ticket = queue.submit(&Submission {
        key: words.key.clone(),
        ..submission
    })?;
    sink::line(ticket.id)?;
    Ok(Exit::Done)
}

/// The refusal of a judgement, which may be the message of the process that read its names.
fn refusal(why: &str) -> CliError {
    let (said, remedy) = why.split_once("help:").unwrap_or((
        why,
        "run this in the folder that holds the files of kernels and task",
    ));
    let plain = |text: &str| {
        let words = text.split_whitespace().filter(|word| !["×", "│"].contains(word));
        words.collect::<Vec<_>>().join(" ")
    };
    CliError::bad_input(plain(said), plain(remedy))
}

fn list(queue: &Queue, words: &ListTickets) -> Result<Exit, CliError> {
    words.json.check()?;
    let tickets = queue.history(words.client.as_deref(), words.task.as_deref(), words.last)?;
    words.json.deliver_list(&tickets, || {
        let rows = tickets.iter().map(|status| {
            vec![
                status.id.clone(),
                status.client.clone(),
                state(status),
                status.attempts.len().to_string(),
                shown(&status.judgement),
            ]
        });
        listing::print(&["ticket", "client", "state", "attempts", "judgement"], rows)
    })?;
    Ok(Exit::Done)
}

/// What a ticket came to, such as `decided: adopt, a win`.
fn state(status: &Status) -> String {
    let verdict = status
        .result
        .as_ref()
        .and_then(|result| result.verdict.as_deref());
    let mut text = status.state.to_string();
    if let Some(verdict) = verdict {
        text = format!("{text}: {verdict}");
    }
    if status.is_a_win() {
        text += ", a win";
    }
    text
}

fn shown(judgement: &Judgement) -> String {
    format!(
        "{} {} on {}",
        judgement.command.name(),
        judgement.kernels.join(" "),
        judgement.task
    )
}

fn show(queue: &Queue, words: &ShowTicket) -> Result<Exit, CliError> {
    words.json.check()?;
    let begun = Instant::now();
    let wait = Duration::try_from(words.wait).unwrap_or_default();
    let status = loop {
        let status = queue.status(&words.ticket)?;
        if status.is_over() || begun.elapsed() >= wait {
            break status;
        }
        sleep(PAUSE);
    };
    words.json.deliver(&status, || tell(&status))?;
    Ok(exit(&status))
}

/// The exit code that its command had; 4 for what is not over, or was given up.
fn exit(status: &Status) -> Exit {
    match (status.state, &status.result) {
        (State::Decided | State::Undecided | State::Void, Some(result)) => match result.exit {
            0 => Exit::Done,
            1 => Exit::NotReached,
            _ => Exit::Undecided,
        },
        (State::Failed, Some(_)) => Exit::BadInput,
        (State::Failed, None) => Exit::Broken,
        _ => Exit::Undecided,
    }
}

fn tell(status: &Status) -> Result<(), CliError> {
    sink::line(format_args!("{}: {}", shown(&status.judgement), state(status)))?;
    for attempt in &status.attempts {
        let reason = attempt.reason.as_deref().unwrap_or(match attempt.ended {
            Some(_) => "its result counts",
            None => "running",
        });
        sink::line(format_args!(
            "  attempt {} by {}: {reason}",
            attempt.number, attempt.worker
        ))?;
    }
    if let Some(second) = &status.confirmation {
        sink::line(format_args!(
            "  second comparison {}: {}",
            second.ticket, second.state
        ))?;
    }
    let text = match (&status.result, &status.reason) {
        (Some(result), _) => &result.report,
        (None, Some(reason)) => reason,
        (None, None) => return Ok(()),
    };
    sink::line("")?;
    text.lines().try_for_each(sink::line)?;
    sink::line(format_args!(
        "\n`gauntlet queue show {} --json FILE` has all of it.",
        status.id
    ))
}

fn cancel(queue: &Queue, ticket: &str) -> Result<Exit, CliError> {
    if queue.cancel(ticket)? {
        sink::line(format_args!("{ticket} is given up"))?;
        return Ok(Exit::Done);
    }
    let state = queue.status(ticket)?.state;
    sink::line(format_args!("{ticket} is {state} already"))?;
    Ok(Exit::NotReached)
}

fn run(queue: Arc<Queue>, work: &Work, ledger: PathBuf) -> Result<Exit, CliError> {
    interrupt::keeps("tickets stay in the queue, and jobs that were started go on".to_owned());
    let mut farm = work
        .farm
        .workplace()
        .farm(queue.clone(), this_program()?, ledger)?;
    loop {
        for event in farm.step()? {
            if let Event::Refused(why) = &event
                && work.until_empty
                && !farm.is_busy()
            {
                return Err(CliError::broken(why.clone()));
            }
            say_line(event);
        }
        if work.until_empty && !farm.is_busy() && is_empty(&queue)? {
            return Ok(Exit::Done);
        }
        sleep(farm.pause());
    }
}

fn is_empty(queue: &Queue) -> Result<bool, CliError> {
    let counts = queue.counts()?;
    let of = |state: State| counts.get(state.name()).copied().unwrap_or(0);
    Ok(of(State::Queued) + of(State::Running) == 0)
}

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        Self::broken(error.to_string())
    }
}
