//! A queue's tickets as jobs: one ticket, one job, here or on one card of one node of a cluster.
//!
//! A [`Farm`] leases tickets, starts `gauntlet job` for each by an [`Engine`], and records what the jobs publish. What the engine says
//! of its jobs is a hint: a job that it calls lost may go on and publish, and one that it started twice publishes once. Only the
//! published result decides a ticket, and the queue takes one.
//!
//! [`Here`] and [`Slurm`] are engines, of which a [`Workplace`] names one; another scheduler is one implementation of the trait, and one more
//! workplace.

mod engine;
mod event;
mod farm;
mod here;
mod shunned;
mod slurm;
mod workplace;

pub use engine::{Batch, Ending, Engine, EngineError};
pub use event::Event;
pub use farm::Farm;
pub use here::Here;
pub use slurm::{Slurm, SlurmOptions};
pub use workplace::Workplace;
