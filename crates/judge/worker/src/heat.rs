//! The load right before a call of a held worker: the kernel is called back to back on other operands, so that the call in
//! earnest meets a device that is under load.

use std::time::Instant;

use crate::error::WorkerError;
use crate::process::{Asked, WorkerProcess};
use crate::protocol::Turn;

/// The load that is asked for before a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat {
    /// Seconds that it lasts.
    pub seconds: f64,
    /// The key that seals the operands of the call, if the load comes after they were written. Each call has its own.
    pub key: u64,
}

/// What the coordinator saw of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Seconds by the coordinator's clock, and no less than were asked for.
    pub seconds: f64,
    /// How many calls the worker says that it made.
    pub calls: usize,
    /// Seconds in which calls ran, by the worker's report.
    pub busy: f64,
    /// Seconds of processor time of the worker in the load, and those that its threads waited for a processor, where the system
    /// reports them. The waiting is left out where a GPU waits for the coordinator.
    pub active: Option<f64>,
}

/// The least time of a load, as a share of the time that was asked for. Two clocks differ by far less.
const LEAST: f64 = 0.95;

impl WorkerProcess {
    /// Waits for the end of a load. `line` told its beginning, in answer to what was sent at `since`. `sealed` says whether
    /// operands have been written and wait for their key.
    pub(crate) fn load_after(
        &mut self,
        asked: &Asked,
        (since, line): (Instant, &str),
        heat: Option<Heat>,
        sealed: bool,
    ) -> Result<Load, WorkerError> {
        let Some(heat) = heat else {
            return Err(self.out_of_turn(asked, line));
        };
        let waited = |worker: &Self| (!sealed).then(|| worker.waited_seconds()).flatten();
        let before = (self.cpu_seconds(), waited(self));
        let begun = Instant::now();
        let line = self.await_line(asked, &[])?;
        let seconds = begun.elapsed().as_secs_f64();
        let Turn::Heated { heated, busy } = self.turn(asked, &line)? else {
            return Err(self.out_of_turn(asked, &line));
        };
        let used = before
            .0
            .zip(self.cpu_seconds())
            .map(|(before, after)| after - before);
        let waited = before
            .1
            .zip(waited(self))
            .map_or(0.0, |(before, after)| after - before);
        // This program may have read the first line late, and so the time between the lines is no measure of a short load.
        let most = since.elapsed().as_secs_f64();
        if most < LEAST * heat.seconds || heated == 0 || !(busy >= 0.0 && busy.is_finite()) {
            let asked_for = heat.seconds;
            let reason =
                format!("it loaded its device for less than {most:.4} s, and not for {asked_for:.4} s");
            return Err(self.garbage(asked.call, reason, &line));
        }
        Ok(Load {
            seconds: seconds.max(heat.seconds),
            calls: heated,
            busy,
            // Threads that ended meanwhile take what they waited with them.
            active: used.map(|used| used + waited.max(0.0)),
        })
    }
}
