//! A queue's tickets as jobs of a cluster: one ticket, one job, one card of one node.
//!
//! A [`Farm`] leases tickets, starts `gauntlet job` for each by an [`Engine`], and records what the jobs publish. What the engine says
//! of its jobs is a hint: a job that it calls lost may go on and publish, and one that it started twice publishes once. Only the
//! published result decides a ticket, and the queue takes one.
//!
//! [`Slurm`] is an engine; another scheduler is one implementation of the trait, and a place where `gauntlet queue work` makes the
//! engine that its options ask for (`commands/queue.rs` of the command).

mod engine;
mod farm;
mod shunned;
mod slurm;

pub use engine::{Batch, Ending, Engine, EngineError};
pub use farm::{Event, Farm};
pub use slurm::{Slurm, SlurmOptions};
