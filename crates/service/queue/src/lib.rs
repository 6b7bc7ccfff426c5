//! Judgements as tickets: a queue that survives its programs, and the one-shot job that every engine runs.
//!
//! A [`Ticket`] holds the words of a judgement and the digests of its sources, whose contents lie in [`Blobs`]. [`run_job`] runs
//! a ticket in a process of its own and publishes a [`JobResult`] by a link, so that the first attempt that finishes is the
//! one that counts, whatever a scheduler believes. A [`Queue`] keeps tickets, attempts and leases in SQLite. Nothing here loads a kernel
//! or a task: that is left to the job's process.
//!
//! ```
//! use gauntlet_queue::{Judgement, Queue, State, Submission};
//!
//! let folder = std::env::temp_dir().join(format!("gauntlet-queue-example-{}", std::process::id()));
//! let queue = Queue::open(&folder)?;
//! let judgement = Judgement::compare("rms-norm", "builtin", "stages=2");
//! let ticket = queue.submit(&Submission::new("agent", judgement.clone()))?;
//! // The same once more, while it waits, is the same ticket.
//! assert_eq!(queue.submit(&Submission::new("agent", judgement))?.id, ticket.id);
//! assert_eq!(queue.status(&ticket.id)?.state, State::Queued);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blobs;
mod error;
mod job;
mod judgement;
mod looks;
mod outcome;
mod queue;
mod status;
mod submission;
mod ticket;
mod worker;

pub use blobs::{Blobs, digest};
pub use error::QueueError;
pub use job::{Job, JobEnd, run_job, this_machine};
pub use judgement::{ERRAND, Judgement, JudgementKind};
pub use looks::{LookLog, Looks, Seen};
pub use outcome::{JobResult, State};
pub use queue::{LEASE, MAX_DEAD_ATTEMPTS, Queue, Recorded, Rest};
pub use status::{Attempt, Confirmation, Status};
pub use submission::Submission;
pub use ticket::Ticket;
pub use worker::this_worker;
