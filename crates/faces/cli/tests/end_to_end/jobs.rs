//! `gauntlet job`: run once, published whole, whatever is killed.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use gauntlet_queue::{Judgement, Queue, State, Submission};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::{NORM_SUITE, Place, names, schemas};

/// The timeout for events that are certain to happen, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(240);

fn place(budget: &str) -> Place {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    let judgement = json!({
        "command": "compare", "task": "suite.toml", "kernels": ["builtin", "rows-per-task=8"], "budget": budget,
    });
    let ticket = json!({ "id": "one", "judgement": judgement });
    assert_eq!(schemas::faults("ticket-file", &ticket), Vec::<String>::new());
    place.write("ticket.json", &ticket.to_string());
    place
}

const JOB: [&str; 4] = ["job", "ticket.json", "--out", "out"];

/// The files of attempts that end so.
fn attempts(place: &Place, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("out/attempts"))
        .into_iter()
        .flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|own| own == ending))
        .collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(place: &Place) -> Child {
    let child = place
        .command(&JOB)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The job, the command that judges, and a worker of it.
    wait_until("the attempt", || commands_in(place) > 2);
    child
}

#[test]
fn a_job_publishes_what_is_found_once() {
    let place = place("2s");
    let first = place.run(&JOB);
    assert!(matches!(first.code, Some(0 | 4)), "{}", first.err);
    let read = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(place.path("out/one.json")).unwrap()).unwrap()
    };
    let published = read();
    assert_eq!(schemas::faults("job-result", &published), Vec::<String>::new());
    assert_eq!(published["result"]["schema"], "gauntlet/comparison/2");
    assert!(published["report"].as_str().unwrap().starts_with("###"));
    let again = place.run(&JOB);
    assert_eq!(again.code, first.code);
    assert_eq!(
        (read(), attempts(&place, "json").len()),
        (published, 1),
        "nothing was run again"
    );
}

#[test]
fn a_ticket_whose_words_are_wrong_fails_for_good() {
    let place = place("2s");
    let text = std::fs::read_to_string(place.path("ticket.json")).unwrap();
    place.write("ticket.json", &text.replace("suite.toml", "missing.toml"));
    place.run(&JOB).expect(2);
    let published: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("out/one.json")).unwrap()).unwrap();
    assert_eq!(published["state"], "failed");
    assert!(published["report"].as_str().unwrap().contains("missing.toml"));
    place.write("ticket.json", &text.replace("compare", "compete"));
    names(
        &place.run(&JOB).expect(2),
        &["ticket.json", "compete", "gauntlet schema ticket-file"],
    );
}

#[test]
fn an_attempt_that_is_ended_publishes_nothing_and_takes_its_command_along() {
    let place = place("60s");
    let mut job = start(&place);
    kill(Pid::from_raw(job.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(job.wait().unwrap().code(), Some(130));
    assert!(!place.path("out/one.json").exists());
    let notes = attempts(&place, "json");
    let note: Value = serde_json::from_str(&std::fs::read_to_string(&notes[0]).unwrap()).unwrap();
    assert_eq!(
        (&note["exit"], &note["is-published"]),
        (&json!(130), &json!(false))
    );
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let mut job = start(&place);
    job.kill().unwrap();
    job.wait().unwrap();
    wait_until("the end of the command", || commands_in(&place) == 0);
    assert!(!place.path("out/one.json").exists());
}

/// How many processes were started in a place: their temporary files are in it.
fn commands_in(place: &Place) -> usize {
    let variable = format!("TMPDIR={}", place.folder.path().display());
    let processes = std::fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let has = |path: &PathBuf| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry.starts_with(variable.as_bytes()))
    };
    processes.filter(has).count()
}

/// Servers and jobs are killed so often while so many tickets are decided.
fn killed(kills: u32, tickets: usize) {
    let place = place("2s");
    let queue = Queue::open(&place.path("queue")).unwrap();
    let suite = place.path("suite.toml").display().to_string();
    let submit = |number: usize| {
        let judgement = Judgement {
            budget: Some("2s".to_owned()),
            pairs: Some(6),
            ..Judgement::compare(&suite, "builtin", "rows-per-task=8")
        };
        let submission = Submission {
            key: Some(number.to_string()),
            ..Submission::new(&format!("client {}", number % 3), judgement)
        };
        queue.submit(&submission).unwrap().id
    };
    let ids: Vec<String> = (0..tickets).map(submit).collect();
    let begin = || {
        let server = place
            .command(&["mcp", "--queue", "queue"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        server.unwrap()
    };
    let mut server = begin();
    for round in 0..kills {
        // Moments that differ from kill to kill, in the same way each time.
        std::thread::sleep(Duration::from_millis(150 + u64::from(round * 7919 % 1200)));
        if round % 3 == 0 {
            for job in jobs_in(&place) {
                let _gone = kill(Pid::from_raw(job), Signal::SIGKILL);
            }
        } else {
            server.kill().unwrap();
            server.wait().unwrap();
            server = begin();
        }
    }
    let is_over = |id: &String| queue.status(id).unwrap().is_over();
    wait_until("the last verdict", || ids.iter().all(is_over));
    drop(server.stdin.take());
    server.wait().unwrap();
    for id in &ids {
        let status = queue.status(id).unwrap();
        let unexplained = status
            .attempts
            .iter()
            .filter(|attempt| attempt.ended.is_some() && attempt.reason.is_none());
        match status.state {
            State::Failed => assert!(status.reason.unwrap().contains("attempt"), "{id}"),
            _ => {
                assert_eq!(status.result.unwrap().ticket, *id);
                assert_eq!(
                    unexplained.count(),
                    1,
                    "one attempt found it, and the others say why they did not: {:?}",
                    status.attempts
                );
            }
        }
    }
}

/// The jobs that were started in a place.
fn jobs_in(place: &Place) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    let folder = place.folder.path().display().to_string();
    let is_job = |line: &str| line.contains("\0job\0") && line.contains(&folder);
    let jobs = processes
        .filter(|entry| is_job(&std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default()));
    jobs.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[test]
fn each_ticket_is_decided_once_though_servers_and_jobs_are_killed() {
    killed(4, 2);
}

#[test]
#[ignore = "takes minutes"]
fn ten_tickets_are_decided_once_though_servers_and_jobs_are_killed_twenty_times() {
    killed(20, 10);
}
