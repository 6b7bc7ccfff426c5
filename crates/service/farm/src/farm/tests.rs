//! The farm with a scheduler in memory.

use std::sync::Mutex;

use gauntlet_queue::{JobResult, Judgement, State, Submission};

use super::*;

/// A scheduler in memory.
#[derive(Default)]
struct Cluster {
    started: Mutex<Vec<(String, bool)>>,
    alive: Mutex<BTreeMap<String, String>>,
    is_down: Mutex<bool>,
    refuses: Mutex<bool>,
    cancelled: Mutex<Vec<String>>,
    avoided: Mutex<Vec<String>>,
}

impl Engine for Arc<Cluster> {
    fn name(&self) -> &'static str {
        "a cluster"
    }

    fn start(&mut self, batch: &Batch<'_>) -> Result<Vec<String>, EngineError> {
        if *self.refuses.lock().unwrap() {
            return Err(EngineError("invalid partition".to_owned()));
        }
        *self.avoided.lock().unwrap() = batch.avoided.to_vec();
        let number = self.started.lock().unwrap().len();
        for (index, ticket) in batch.tickets.iter().enumerate() {
            assert!(batch.ticket_folder.join(format!("{ticket}.json")).exists());
            self.started
                .lock()
                .unwrap()
                .push((ticket.clone(), batch.is_of_checks));
            self.alive
                .lock()
                .unwrap()
                .insert(ticket.clone(), format!("{number}_{index}"));
        }
        Ok((0..batch.tickets.len())
            .map(|index| format!("{number}_{index}"))
            .collect())
    }

    fn alive(&mut self) -> Result<BTreeMap<String, String>, EngineError> {
        match *self.is_down.lock().unwrap() {
            true => Err(EngineError("nobody is there".to_owned())),
            false => Ok(self.alive.lock().unwrap().clone()),
        }
    }

    fn ending(&mut self, _job: &str) -> Option<Ending> {
        Some(Ending {
            said: "NODE_FAIL".to_owned(),
            node: Some("n1".to_owned()),
            was_told: false,
        })
    }

    fn cancel(&mut self, job: &str) -> Result<(), EngineError> {
        self.cancelled.lock().unwrap().push(job.to_owned());
        Ok(())
    }
}

fn queued(folder: &tempfile::TempDir, count: usize) -> (Arc<Queue>, Vec<String>) {
    let queue = Arc::new(Queue::open(folder.path()).unwrap());
    let ids = (0..count).map(|number| {
        let judgement = Judgement::compare("rms-norm", "builtin", &format!("stages={number}"));
        queue.submit(&Submission::new("ada", judgement)).unwrap().id
    });
    let ids = ids.collect();
    (queue, ids)
}

fn publish(queue: &Queue, id: &str, verdict: &str) {
    let now = Timestamp::now();
    let result = JobResult {
        schema: JobResult::SCHEMA.to_owned(),
        ticket: id.to_owned(),
        attempt: "n1-1".to_owned(),
        began: now,
        ended: now,
        exit: 0,
        state: State::Decided,
        verdict: Some(verdict.to_owned()),
        report: String::new(),
        result: None,
    };
    let text = serde_json::to_string(&result).unwrap();
    std::fs::write(queue.results().join(format!("{id}.json")), text).unwrap();
}

fn farm(queue: &Arc<Queue>, cluster: &Arc<Cluster>, most: usize) -> Farm {
    Farm {
        late: Duration::ZERO,
        ..Farm::new(queue.clone(), cluster.clone(), most)
    }
}

fn state(queue: &Queue, id: &str) -> State {
    queue.status(id).unwrap().state
}

#[test]
fn what_is_published_decides_whatever_the_scheduler_says() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, ids) = queued(&folder, 3);
    let mut farm = farm(&queue, &cluster, 2);
    farm.step().unwrap();
    assert_eq!(
        cluster.started.lock().unwrap().len(),
        2,
        "no more than may run at a time"
    );
    // The first ends while the scheduler does not answer; the second is lost.
    publish(&queue, &ids[0], "regression");
    *cluster.is_down.lock().unwrap() = true;
    let events = farm.step().unwrap();
    assert!(
        matches!(&events[..], [Event::Silent(_), Event::Ended { .. }]),
        "{events:?}"
    );
    assert_eq!(state(&queue, &ids[0]), State::Decided);
    assert_eq!(state(&queue, &ids[1]), State::Running);
    assert_eq!(farm.step().unwrap(), [], "it is told once");
    *cluster.is_down.lock().unwrap() = false;
    cluster.alive.lock().unwrap().clear();
    let events = farm.step().unwrap();
    let lost = events.iter().find_map(|event| match event {
        Event::Void { ticket, reason } => Some((ticket, reason)),
        _ => None,
    });
    let (ticket, reason) = lost.unwrap();
    assert_eq!(ticket, &ids[1]);
    assert!(reason.contains("NODE_FAIL"), "{reason}");
    // Its job was not lost, and publishes while it waits for another.
    assert_eq!(state(&queue, &ids[1]), State::Queued);
    publish(&queue, &ids[1], "regression");
    farm.step().unwrap();
    let status = queue.status(&ids[1]).unwrap();
    assert_eq!(status.state, State::Decided);
    assert_eq!((status.attempts.len(), &status.attempts[0].reason), (1, &None));
}

#[test]
fn a_node_on_which_jobs_die_is_given_no_more() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, _) = queued(&folder, 3);
    let mut farm = farm(&queue, &cluster, 2);
    farm.step().unwrap();
    cluster.alive.lock().unwrap().clear();
    let events = farm.step().unwrap();
    let shunned = Event::Shunned {
        node: "n1".to_owned(),
        tickets: 2,
    };
    assert_eq!(
        events.iter().filter(|event| **event == shunned).count(),
        1,
        "{events:?}"
    );
    // Both dead tickets wait; the third is started elsewhere.
    assert_eq!(cluster.started.lock().unwrap().len(), 3);
    assert_eq!(*cluster.avoided.lock().unwrap(), ["n1"]);
}

#[test]
fn another_farm_takes_over_the_jobs_that_are_there() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, ids) = queued(&folder, 1);
    cluster
        .alive
        .lock()
        .unwrap()
        .insert(ids[0].clone(), "7_0".to_owned());
    let mut farm = farm(&queue, &cluster, 4);
    let events = farm.step().unwrap();
    let job = "7_0".to_owned();
    assert_eq!(
        events,
        [Event::Started {
            ticket: ids[0].clone(),
            job
        }]
    );
    assert!(
        cluster.started.lock().unwrap().is_empty(),
        "no second job is started"
    );
}

#[test]
fn a_ticket_that_is_given_up_has_its_job_cancelled_and_checks_need_no_card() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, ids) = queued(&folder, 1);
    let check = Judgement::new(JudgementKind::Check, "rms-norm", &["builtin"]);
    let check = queue.submit(&Submission::new("ada", check)).unwrap().id;
    let mut farm = farm(&queue, &cluster, 4);
    farm.step().unwrap();
    let started: BTreeMap<String, bool> = cluster.started.lock().unwrap().iter().cloned().collect();
    assert_eq!(started, BTreeMap::from([(ids[0].clone(), false), (check, true)]));
    queue.cancel(&ids[0]).unwrap();
    farm.step().unwrap();
    assert_eq!(cluster.cancelled.lock().unwrap().len(), 1);
    assert_eq!(state(&queue, &ids[0]), State::Cancelled);
}

#[test]
fn a_job_whose_ticket_another_farm_has_leased_again_is_cancelled() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, ids) = queued(&folder, 1);
    let mut farm = farm(&queue, &cluster, 1);
    farm.step().unwrap();
    // It was silent for so long that another one took over.
    queue.end_attempt(&ids[0], 1, "silent", false).unwrap();
    let (_, attempt) = queue
        .lease("another", "elsewhere", Timestamp::now())
        .unwrap()
        .unwrap();
    assert_eq!(attempt, 2);
    let events = farm.step().unwrap();
    assert!(
        matches!(&events[..], [Event::Void { ticket, .. }] if *ticket == ids[0]),
        "{events:?}"
    );
    assert_eq!(*cluster.cancelled.lock().unwrap(), ["0_0"]);
    assert_eq!(
        state(&queue, &ids[0]),
        State::Running,
        "the other's attempt goes on"
    );
    assert!(queue.renew(&ids[0], attempt, Timestamp::now()).unwrap());
}

#[test]
fn a_place_whose_job_never_began_is_given_another_ticket() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, _) = queued(&folder, 1);
    let mut farm = farm(&queue, &cluster, 1);
    // The queue failed after the place was taken.
    farm.places[0] = Some("never-started".to_owned());
    farm.step().unwrap();
    assert_eq!(cluster.started.lock().unwrap().len(), 1);
}

#[test]
fn a_ticket_that_is_given_up_between_attempts_has_its_job_cancelled_once() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, ids) = queued(&folder, 1);
    // A dispatcher that has ended left it.
    cluster
        .alive
        .lock()
        .unwrap()
        .insert(ids[0].clone(), "7_0".to_owned());
    queue.cancel(&ids[0]).unwrap();
    let mut farm = farm(&queue, &cluster, 4);
    farm.step().unwrap();
    farm.step().unwrap();
    assert_eq!(*cluster.cancelled.lock().unwrap(), ["7_0"]);
}

#[test]
fn a_job_that_the_scheduler_does_not_take_is_no_attempt() {
    let (folder, cluster) = (tempfile::tempdir().unwrap(), Arc::<Cluster>::default());
    let (queue, ids) = queued(&folder, 1);
    *cluster.refuses.lock().unwrap() = true;
    let mut farm = farm(&queue, &cluster, 4);
    let events = farm.step().unwrap();
    assert!(
        matches!(&events[..], [Event::Refused(why)] if why.contains("invalid partition")),
        "{events:?}"
    );
    assert_eq!(farm.step().unwrap(), [], "it rests");
    let status = queue.status(&ids[0]).unwrap();
    assert_eq!((status.state, status.attempts.len()), (State::Queued, 0));
}
