//! The queue's promises: each ticket is decided once, whatever dies; and jobs publish whole or not at all.
#![expect(clippy::unwrap_used, reason = "tests")]

mod jobs;
mod tickets;

use gauntlet_queue::{JobResult, Judgement, Queue, State, Submission};
use jiff::Timestamp;
use tempfile::TempDir;

/// A queue in a folder of its own.
fn queue() -> (TempDir, Queue) {
    let folder = tempfile::tempdir().unwrap();
    let queue = Queue::open(folder.path()).unwrap();
    (folder, queue)
}

fn compare(candidate: &str) -> Judgement {
    Judgement::compare("rms-norm", "builtin", candidate)
}

fn submit(queue: &Queue, client: &str, judgement: Judgement) -> String {
    queue.submit(&Submission::new(client, judgement)).unwrap().id
}

fn found(ticket: &str, verdict: &str) -> JobResult {
    JobResult {
        schema: JobResult::SCHEMA.to_owned(),
        ticket: ticket.to_owned(),
        attempt: "host-1-1".to_owned(),
        began: Timestamp::UNIX_EPOCH,
        ended: Timestamp::UNIX_EPOCH,
        exit: 0,
        state: State::Decided,
        verdict: Some(verdict.to_owned()),
        report: "### a report".to_owned(),
        result: None,
    }
}

/// Publishes a result as a job does.
fn publish(queue: &Queue, result: &JobResult) {
    let text = serde_json::to_vec(result).unwrap();
    std::fs::write(queue.results().join(format!("{}.json", result.ticket)), text).unwrap();
}
