//! Tickets, attempts and leases.

use gauntlet_queue::{JudgementKind, LEASE, QueueError, Recorded, this_worker};
use jiff::SignedDuration;

use super::*;

/// Leases the next ticket at a place and returns its id.
fn next(queue: &Queue, place: &str, now: Timestamp) -> Option<(String, u32)> {
    let leased = queue.lease("worker", place, now).unwrap();
    leased.map(|(ticket, attempt)| (ticket.id, attempt))
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::now() + SignedDuration::from_secs(seconds)
}

#[test]
fn a_ticket_is_decided_once() {
    let (_folder, queue) = queue();
    let id = submit(&queue, "a", compare("stages=2"));
    assert_eq!(next(&queue, "here", later(0)), Some((id.clone(), 1)));
    assert_eq!(
        queue.record(1, &found(&id, "regression")).unwrap(),
        Recorded::First
    );
    assert_eq!(queue.record(1, &found(&id, "adopt")).unwrap(), Recorded::Late);
    let status = queue.status(&id).unwrap();
    assert_eq!(status.result.unwrap().verdict.unwrap(), "regression");
    assert_eq!(next(&queue, "here", later(0)), None, "nothing is left to run");
}

#[test]
fn three_dead_attempts_fail_a_ticket_and_an_interrupted_one_is_no_death() {
    let (_folder, queue) = queue();
    let id = submit(&queue, "a", compare("stages=2"));
    for (attempt, died) in [(1, true), (2, false), (3, true), (4, true)] {
        let now = later(i64::from(attempt) * 100);
        assert_eq!(next(&queue, "here", now), Some((id.clone(), attempt)));
        queue
            .end_attempt(&id, attempt, &format!("reason {attempt}"), died)
            .unwrap();
    }
    let status = queue.status(&id).unwrap();
    assert_eq!(status.state, State::Failed);
    let reasons = "attempt 1: reason 1\nattempt 3: reason 3\nattempt 4: reason 4";
    assert_eq!(status.reason.as_deref(), Some(reasons));
    assert_eq!((status.attempts.len(), status.result), (4, None));
    // An attempt that was taken for dead publishes after all.
    publish(&queue, &found(&id, "regression"));
    let status = queue.status(&id).unwrap();
    assert_eq!(status.state, State::Decided);
    assert_eq!(status.result.unwrap().verdict.unwrap(), "regression");
    assert_eq!(queue.record(4, &found(&id, "adopt")).unwrap(), Recorded::Late);
}

#[test]
fn a_ticket_whose_attempt_died_waits_while_others_go_first() {
    let (_folder, queue) = queue();
    let dies = submit(&queue, "a", compare("stages=2"));
    let other = submit(&queue, "a", compare("stages=3"));
    assert_eq!(next(&queue, "here", later(0)), Some((dies.clone(), 1)));
    queue.end_attempt(&dies, 1, "exit code 3", true).unwrap();
    assert_eq!(next(&queue, "here", later(1)), Some((other.clone(), 1)));
    queue.record(1, &found(&other, "regression")).unwrap();
    assert_eq!(next(&queue, "here", later(2)), None);
    assert_eq!(next(&queue, "here", later(20)), Some((dies, 2)));
}

#[test]
fn a_place_where_attempts_die_one_after_another_rests_ever_longer() {
    let (_folder, queue) = queue();
    let ids: Vec<_> = (2..12)
        .map(|stages| submit(&queue, "a", compare(&format!("stages={stages}"))))
        .collect();
    let dies = |place: &str, seconds: i64| {
        let (id, attempt) = next(&queue, place, later(seconds))?;
        queue.end_attempt(&id, attempt, "no such device", true).unwrap();
        Some(id)
    };
    // By this test's clock no time passes between the deaths themselves.
    assert!(dies("broken", 0).is_some() && dies("broken", 0).is_some());
    assert_eq!(dies("broken", 5), None, "it rests for 10 s");
    assert!(next(&queue, "sound", later(5)).is_some(), "others do not");
    assert!(dies("broken", 15).is_some());
    assert_eq!(dies("broken", 50), None, "it rests for 60 s");
    let rest = queue.rest("broken", later(50)).unwrap().unwrap();
    assert_eq!((rest.deaths, rest.reason.as_str()), (3, "no such device"));
    // One that ends with a result makes good.
    let (id, attempt) = next(&queue, "broken", later(70)).unwrap();
    queue.record(attempt, &found(&id, "regression")).unwrap();
    assert_eq!(queue.rest("broken", later(70)).unwrap(), None);
    let failed = ids
        .iter()
        .filter(|id| queue.status(id).unwrap().state == State::Failed);
    assert_eq!(failed.count(), 0);
}

#[test]
fn a_silent_worker_loses_its_lease_and_what_it_finishes_anyway_counts_if_it_is_first() {
    let (_folder, queue) = queue();
    let id = submit(&queue, "a", compare("stages=2"));
    assert_eq!(next(&queue, "one", later(0)), Some((id.clone(), 1)));
    assert!(queue.renew(&id, 1, later(5)).unwrap());
    assert_eq!(next(&queue, "two", later(6)), None, "it is leased");
    let silent = later(LEASE.as_secs() + 10);
    assert_eq!(next(&queue, "two", silent), Some((id.clone(), 2)));
    assert!(
        !queue.renew(&id, 1, silent).unwrap(),
        "another attempt has the ticket"
    );
    let first = &queue.status(&id).unwrap().attempts[0];
    assert_eq!(
        first.reason.as_deref(),
        Some("its worker was not heard of for 30 s")
    );
    // The lost worker finishes after all.
    assert_eq!(
        queue.record(1, &found(&id, "regression")).unwrap(),
        Recorded::First
    );
    assert_eq!(queue.record(2, &found(&id, "marginal")).unwrap(), Recorded::Late);
    let status = queue.status(&id).unwrap();
    assert_eq!(status.result.unwrap().verdict.unwrap(), "regression");
    assert!(status.attempts[1].reason.as_deref().unwrap().contains("first"));
}

#[test]
fn what_a_silent_worker_had_published_is_recorded() {
    let (_folder, queue) = queue();
    let id = submit(&queue, "a", compare("stages=2"));
    next(&queue, "here", later(0)).unwrap();
    publish(&queue, &found(&id, "regression"));
    assert_eq!(next(&queue, "here", later(LEASE.as_secs() + 1)), None);
    let status = queue.status(&id).unwrap();
    assert_eq!((status.state, status.attempts.len()), (State::Decided, 1));
}

#[test]
fn clients_take_turns_and_checks_go_first() {
    let (_folder, queue) = queue();
    let many: Vec<_> = (2..5)
        .map(|stages| submit(&queue, "a", compare(&format!("stages={stages}"))))
        .collect();
    let one = submit(&queue, "b", compare("stages=2"));
    assert_eq!(queue.status(&one).unwrap().ahead, 3);
    let check = Judgement::new(JudgementKind::Check, "rms-norm", &["k.py:f"]);
    let check = submit(&queue, "b", check);
    let mut order = Vec::new();
    for round in 0..5 {
        let (id, attempt) = next(&queue, "here", later(round)).unwrap();
        queue.record(attempt, &found(&id, "regression")).unwrap();
        order.push(id);
    }
    let [first, second, third] = &many[..] else {
        unreachable!()
    };
    assert_eq!(order, [&check, first, &one, second, third].map(String::clone));
}

#[test]
fn a_place_runs_one_ticket_at_a_time() {
    let (_folder, queue) = queue();
    for stages in 2..4 {
        submit(&queue, "a", compare(&format!("stages={stages}")));
    }
    assert!(next(&queue, "here", later(0)).is_some());
    assert_eq!(next(&queue, "here", later(0)), None);
    assert!(next(&queue, "elsewhere", later(0)).is_some());
}

#[test]
fn the_same_question_is_the_same_ticket_while_it_is_open_and_a_key_is_one_for_ever() {
    let (_folder, queue) = queue();
    let keyed = |judgement, key: &str| {
        queue.submit(&Submission {
            key: Some(key.to_owned()),
            ..Submission::new("a", judgement)
        })
    };
    let open = submit(&queue, "a", compare("stages=2"));
    assert_eq!(submit(&queue, "a", compare("stages=2")), open);
    assert_ne!(
        submit(&queue, "b", compare("stages=2")),
        open,
        "another client's is another"
    );
    let key = keyed(compare("stages=3"), "one").unwrap().id;
    assert_eq!(keyed(compare("stages=3"), "one").unwrap().id, key);
    assert!(matches!(
        keyed(compare("stages=4"), "one"),
        Err(QueueError::KeyTaken(_))
    ));
    assert!(queue.cancel(&open).unwrap() && queue.cancel(&key).unwrap());
    assert!(!queue.cancel(&open).unwrap(), "it was cancelled before");
    assert_ne!(submit(&queue, "a", compare("stages=2")), open);
    assert_eq!(keyed(compare("stages=3"), "one").unwrap().id, key);
    assert!(matches!(queue.cancel("none"), Err(QueueError::UnknownTicket(_))));
}

#[test]
fn a_win_needs_a_second_comparison() {
    let (_folder, queue) = queue();
    let id = submit(&queue, "a", compare("stages=2"));
    let (_, attempt) = next(&queue, "here", later(0)).unwrap();
    queue.record(attempt, &found(&id, "adopt")).unwrap();
    let status = queue.status(&id).unwrap();
    assert_eq!(status.state, State::Decided);
    assert!(!status.is_over() && !status.is_a_win());
    let second = status.confirmation.unwrap().ticket;
    assert_eq!(next(&queue, "here", later(0)), Some((second.clone(), 1)));
    assert_eq!(
        queue.history(Some("a"), None, 9).unwrap().len(),
        1,
        "it is part of the first"
    );
    queue.record(1, &found(&second, "adopt")).unwrap();
    let status = queue.status(&id).unwrap();
    assert!(status.is_over() && status.is_a_win());
    assert_eq!(
        next(&queue, "here", later(0)),
        None,
        "the second is not confirmed in turn"
    );
    // One that the second comparison does not show again is no win.
    let lucky = submit(&queue, "a", compare("stages=3"));
    for verdict in ["adopt", "inconclusive"] {
        let (id, attempt) = next(&queue, "here", later(0)).unwrap();
        queue.record(attempt, &found(&id, verdict)).unwrap();
    }
    let status = queue.status(&lucky).unwrap();
    assert!(status.is_over() && !status.is_a_win());
}

#[test]
fn tries_are_counted_by_client_and_task() {
    let (_folder, queue) = queue();
    let tries = |id: &str| queue.status(id).unwrap().tries;
    let first = submit(&queue, "a", compare("stages=2"));
    let (_, attempt) = next(&queue, "here", later(0)).unwrap();
    queue.record(attempt, &found(&first, "adopt")).unwrap();
    let check = Judgement::new(JudgementKind::Check, "rms-norm", &["k.py:f"]);
    submit(&queue, "a", check);
    let second = submit(&queue, "a", compare("stages=3"));
    assert_eq!(
        (tries(&first), tries(&second)),
        (1, 2),
        "neither checks nor second comparisons are tries"
    );
    assert_eq!(tries(&submit(&queue, "b", compare("stages=3"))), 1);
    let other = Judgement::compare("group-gemm", "builtin", "stages=3");
    assert_eq!(tries(&submit(&queue, "a", other)), 1);
}

#[test]
fn one_client_cannot_fill_the_queue() {
    let (_folder, queue) = queue();
    for number in 0..64 {
        submit(&queue, "a", compare(&format!("stages={number}")));
    }
    let full = queue
        .submit(&Submission::new("a", compare("stages=64")))
        .unwrap_err();
    assert!(
        full.to_string().starts_with("64 tickets of a wait already"),
        "{full}"
    );
    submit(&queue, "b", compare("stages=2"));
}

#[test]
fn programs_that_start_together_share_a_new_queue() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..24 {
            let folder = folder.path();
            scope.spawn(move || {
                submit(
                    &Queue::open(folder).unwrap(),
                    "a",
                    compare(&format!("stages={number}")),
                )
            });
        }
    });
    let queue = Queue::open(folder.path()).unwrap();
    assert_eq!(queue.counts().unwrap()["queued"], 24);
}

#[test]
fn the_ticket_of_a_worker_that_has_ended_is_free_at_once() {
    let (_folder, queue) = queue();
    let id = submit(&queue, "a", compare("stages=2"));
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let living = this_worker();
    let own = format!("-{}-", std::process::id());
    let ended = living.replace(&own, &format!("-{}-", ended.id()));
    // A process of another container may have any number.
    let elsewhere = ended.clone() + "1";
    // Each comes back only after the lease of the one before has run out.
    let pause = LEASE.as_secs() + 10;
    for attempt in 1..=4 {
        let now = later(i64::from(attempt) * pause);
        let leased = queue.lease(&ended, "here", now).unwrap().unwrap();
        assert_eq!(
            (&leased.0.id, leased.1),
            (&id, attempt),
            "a server that ends is no death of the attempt"
        );
    }
    let now = later(5 * pause);
    assert_eq!(queue.lease(&elsewhere, "here", now).unwrap().unwrap().1, 5);
    assert_eq!(queue.lease(&living, "here", now).unwrap(), None);
    let now = later(6 * pause);
    assert_eq!(queue.lease(&living, "here", now).unwrap().unwrap().1, 6);
    assert_eq!(queue.lease(&living, "here", now).unwrap(), None);
}
