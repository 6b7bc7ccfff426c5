//! The tools that look: tasks, history, explanations, what is next, and pitches.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use gauntlet_judge::{KernelForm, KernelText};
use gauntlet_queue::{JudgementKind, State, Status};
use serde_json::Value;

use super::Tools;
use crate::answer::{Answer, beginning};
use crate::arguments::Pitch;
use crate::{child, places, words};

/// The most tickets that `history` lists.
const MAX_TICKETS: usize = 8;

/// What is shown of a description or a reason in a list.
const MAX_LINE: usize = 130;

/// Lists the tasks.
pub(super) fn list_tasks() -> Answer {
    let mut text = String::new();
    let files = places::tasks();
    for file in &files {
        let _written = writeln!(text, "- `{file}`");
    }
    if files.is_empty() {
        text += "No file of the server's folder looks like a task.\n";
    }
    text += "\nBuilt in:\n";
    for name in gauntlet_families::suite_names() {
        let about = gauntlet_families::suite(name)
            .map(|suite| suite.description)
            .unwrap_or_default();
        let _written = writeln!(text, "- `{name}`: {}", line(&about, 80));
    }
    Answer::new(text.trim())
}

/// The beginning of a text, on one line.
fn line(text: &str, most: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    beginning(&text, most).replace('\n', " ")
}

impl Tools {
    /// Describes a task, which another process reads.
    pub(super) fn task(&self, task: &str) -> Answer {
        if let Some(why) = places::refusal(task) {
            return Answer::refusal(why);
        }
        let suite = match self.json(["suites".into(), "--json=-".into(), "--".into(), task.into()]) {
            Ok(suite) => suite,
            Err(why) => return Answer::refusal(why),
        };
        let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut text = format!(
            "**{}**: {}\n",
            said(&suite["name"]),
            line(&said(&suite["description"]), 300)
        );
        for (key, title) in [
            ("benchmark", "Timed cases"),
            ("correctness", "Cases that must be right"),
        ] {
            let cases = suite[key].as_array().map(Vec::as_slice).unwrap_or_default();
            let names: Vec<_> = cases.iter().map(case_in_words).collect();
            let _written = writeln!(
                text,
                "\n{title}: {}",
                beginning(&names.join("; "), 380).replace('\n', " ")
            );
        }
        for note in suite["notes"].as_array().into_iter().flatten() {
            let _written = writeln!(text, "\nNote: {}", line(&said(note), 300));
        }
        if Path::new(task).exists() {
            text += "\nIts reference says what a kernel returns: read the file.\n";
        }
        Answer::new(text.trim())
    }

    /// What a command of this program writes as JSON.
    fn json<const N: usize>(&self, words: [OsString; N]) -> Result<Value, String> {
        let ran = child::run(&self.setup.program, words.into())
            .map_err(|error| format!("the judge cannot be started: {error}"))?;
        match ran.code {
            Some(0) => serde_json::from_str(&ran.out).map_err(|error| error.to_string()),
            Some(_) => Err(ran.err.trim().to_owned()),
            None => Err("it took too long to read; ask again when the machine is less busy".to_owned()),
        }
    }

    /// A client's tickets.
    pub(super) fn history_of(&self, client: &str, task: Option<&str>) -> Answer {
        let tickets = match self.queue.history(Some(client), task, MAX_TICKETS) {
            Ok(tickets) => tickets,
            Err(error) => return Answer::refusal(error.to_string()),
        };
        let Some(newest) = tickets.first() else {
            return Answer::new(format!("No ticket of {client} yet."));
        };
        let of = if task.is_some() { "this task" } else { "its task" };
        let mut text = format!(
            "{client}: {} comparisons of {of} so far. Newest first:\n\n",
            newest.tries
        );
        for status in &tickets {
            let _written = writeln!(text, "- {}", in_a_line(status));
        }
        Answer::new(text.trim())
    }

    /// Why a ticket ended as it did.
    pub(super) fn explained(&self, ticket: &str) -> Answer {
        let status = match self.queue.status(ticket) {
            Ok(status) => status,
            Err(error) => return Answer::refusal(error.to_string()),
        };
        let Some(result) = &status.result else {
            return Answer::new(words::of_status(&status));
        };
        let mut text = format!("{}\n", line(words::headline(&result.report), 200));
        if let Some(model) = self.modelled(&status) {
            text += &format!(
                "\nThe model's view of the candidate:\n\n```text\n{}\n```\n",
                beginning(&model, 900)
            );
        }
        let gates = words::folded(&result.report);
        if !gates.is_empty() {
            text += &format!("\n{gates}\n");
        }
        let of_json = |key: &str| {
            result
                .result
                .as_ref()
                .and_then(|found| found[key].as_array())
                .cloned()
        };
        for note in of_json("notes").into_iter().flatten() {
            let _written = writeln!(text, "\nNote: {}", line(note.as_str().unwrap_or_default(), 250));
        }
        if status.judgement.command == JudgementKind::Check {
            text = words::of_status(&status);
        }
        Answer::new(text.trim()).with_result_of(ticket)
    }

    /// Where the model sees the time of built-in kernels go; none for others.
    fn modelled(&self, status: &Status) -> Option<String> {
        let judgement = &status.judgement;
        let candidate = match judgement.command {
            JudgementKind::Compare => judgement.kernels.get(1)?,
            JudgementKind::Judge => judgement.kernels.first()?,
            JudgementKind::Check | JudgementKind::Tune | JudgementKind::Errand => return None,
        };
        let kernel: KernelText = candidate.parse().ok()?;
        let schedule = match kernel.form() {
            KernelForm::BuiltIn => "baseline",
            KernelForm::Parameters(_) => candidate,
            _ => return None,
        };
        let problem = match judgement.cases.first() {
            Some(case) => format!("{}/{case}", judgement.task),
            None => judgement.task.clone(),
        };
        let device = judgement.device.as_deref().unwrap_or("host");
        let words = [
            "explain".to_owned(),
            format!("--problem={problem}"),
            format!("--schedule={schedule}"),
            format!("--device={device}"),
        ];
        let ran = child::run(&self.setup.program, words.map(OsString::from).into()).ok()?;
        (ran.code == Some(0)).then_some(ran.out)
    }

    /// What to do next: by the newest ticket, and by what rounds left open.
    pub(super) fn what_next(&self, client: &str, task: Option<&str>) -> Answer {
        let tickets = self.queue.history(Some(client), task, 1).unwrap_or_default();
        let mut text = match tickets.first() {
            Some(newest) => format!("{}\n\n{}\n", in_a_line(newest), advice(newest)),
            None => "Nothing was asked yet: `get_task`, then `check` a kernel.\n".to_owned(),
        };
        let ledger = self.setup.ledger.as_os_str();
        let known = self.setup.ledger.is_file().then(|| {
            self.json([
                "ledger".into(),
                "next".into(),
                "--json=-".into(),
                "--ledger".into(),
                ledger.to_owned(),
            ])
        });
        if let Some(Ok(Value::Array(open))) = known {
            let shown = |open: &Value, key: &str| open[key].as_str().unwrap_or_default().to_owned();
            for prospect in open.iter().take(3) {
                let _written = writeln!(
                    text,
                    "- left open by round {}: {} ({}): {}",
                    shown(prospect, "round"),
                    shown(prospect, "pitch"),
                    shown(prospect, "verdict"),
                    line(&shown(prospect, "reason"), MAX_LINE)
                );
            }
        }
        Answer::new(text.trim())
    }

    /// Puts a pitch into an open round.
    pub(super) fn pitched(&self, asked: &Pitch) -> Answer {
        match self.put_pitch(asked) {
            Ok(said) => Answer::new(said),
            Err(why) => Answer::refusal(why),
        }
    }

    fn put_pitch(&self, asked: &Pitch) -> Result<String, String> {
        let open: Vec<_> = self
            .setup
            .rounds
            .iter()
            .map(|round| places::folder_of_pitches(round))
            .collect::<Result<_, _>>()?;
        let names: Vec<_> = open.iter().map(|(name, _)| name.as_str()).collect();
        let named = asked.round.as_deref();
        let mut meant = open
            .iter()
            .filter(|(name, _)| named.is_none_or(|wanted| wanted == name));
        let (round, folder) = match (meant.next(), meant.next()) {
            (Some(one), None) => one,
            (None, _) if open.is_empty() => {
                return Err(
                    "No round is open. Whoever runs the server opens one by `gauntlet mcp --round FILE`."
                        .to_owned(),
                );
            }
            _ => return Err(format!("Say which round: {} are open.", names.join(", "))),
        };
        let pitch: gauntlet_tournament::Pitch = toml::from_str(&asked.toml).map_err(|error| {
            format!(
                "It is no pitch: {}; `gauntlet schema pitch-file` and docs/guide/rounds.md describe one.",
                error.message()
            )
        })?;
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_ ".contains(letter);
        if pitch.name.is_empty() || pitch.name.len() > 80 || !pitch.name.chars().all(is_plain) {
            return Err(
                "The pitch's name becomes a file's: give letters, digits, blanks, - and _.".to_owned(),
            );
        }
        let path = folder.join(format!("{}.toml", pitch.name.replace(' ', "-")));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => format!(
                    "Round {round} has a pitch `{}`: give yours another name.",
                    pitch.name
                ),
                _ => format!("{} cannot be written: {error}", path.display()),
            })?;
        file.write_all(asked.toml.as_bytes())
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        Ok(format!(
            "Pitch `{}` is in round {round}, and is judged when the round is played.",
            pitch.name
        ))
    }
}

/// A case in a few words: its name, and its sizes unless the name is made of them.
fn case_in_words(case: &Value) -> String {
    let name = case["name"].as_str().unwrap_or_default();
    let problem = &case["problem"];
    let sizes = problem["parameters"].as_object().or(problem.as_object());
    let sizes = sizes
        .into_iter()
        .flatten()
        .filter(|(key, value)| *key != "family" && !value.is_object() && !value.is_array());
    let sizes: Vec<_> = sizes
        .map(|(key, value)| format!("{key}={}", value.to_string().trim_matches('"')))
        .collect();
    if name.contains('=') || sizes.is_empty() {
        name.to_owned()
    } else {
        format!("{name} ({})", sizes.join(" "))
    }
}

/// A ticket in a line.
fn in_a_line(status: &Status) -> String {
    let kernel = match status.judgement.command {
        JudgementKind::Compare => status.judgement.kernels.get(1),
        _ => status.judgement.kernels.first(),
    };
    let kernel = kernel.map_or("", String::as_str);
    let verdict = status.result.as_ref().and_then(|result| result.verdict.clone());
    let win = match (&status.result, &status.confirmation) {
        _ if status.is_a_win() => ", a win",
        (Some(result), _) if result.is_adopted() && status.is_over() => ", not confirmed",
        (Some(result), _) if result.is_adopted() => ", not confirmed yet",
        _ => "",
    };
    format!(
        "`{}` {} `{}` on `{}`: {}{win}",
        status.id,
        status.judgement.command.name(),
        line(kernel, 60),
        line(&status.judgement.task, 40),
        verdict.unwrap_or_else(|| status.state.to_string()),
    )
}

/// What to do after a ticket.
fn advice(status: &Status) -> &'static str {
    let verdict = status
        .result
        .as_ref()
        .and_then(|result| result.verdict.as_deref());
    match (status.state, verdict) {
        _ if !status.is_over() => "Wait for it: `verdict`.",
        _ if status.is_a_win() => "It is a win. Make it the baseline of the next comparison.",
        (State::Failed, _) => "`verdict` says what is wrong with it.",
        (State::Cancelled, _) => "It was given up: ask again when you are ready.",
        (State::Void, _) => "It could not be judged; `explain` says what is missing or what disturbed it.",
        (_, Some("right")) => "It is right: `judge` it.",
        (_, Some("not-right" | "incorrect" | "racy" | "does-not-compile" | "infeasible" | "over-budget")) => {
            "`explain` says where it fails; mend it and `check` again."
        }
        (_, Some("adopt")) => {
            "The second comparison did not show it: it was luck, or is small. Look for a larger change."
        }
        (_, Some("inconclusive")) => {
            "Undecided: a larger `budget`, fewer cases, or a change that promises more."
        }
        (_, Some("marginal")) => "Faster by less than the target: build on it, or leave it.",
        (_, Some("valid-negative")) => {
            "It makes no difference: its idea is not what bounds this kernel. `explain`, then another."
        }
        (_, Some("regression")) => "It is slower: drop it. `explain`, then another idea.",
        _ => "`explain` says more.",
    }
}
