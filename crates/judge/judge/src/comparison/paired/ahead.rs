//! The processes of several pairs of trusted kernels, started side by side where the machine has processors to spare: importing
//! torch takes seconds. A process that waits for its turn uses no processor.

use std::panic::resume_unwind;
use std::thread;
use std::time::Instant;

use super::{Pair, PairedComparison};
use crate::runner::ExaminationFailure;

/// Processors for each pair that starts beside others.
const PROCESSORS: usize = 4;

/// Most pairs that wait for their turn at a time, since all of them occupy memory.
const MAX_WAITING: usize = 4;

impl<'a> PairedComparison<'a> {
    /// Starts the processes of a pair.
    pub(super) fn start_pair(&self, number: usize) -> Result<Pair<'a>, ExaminationFailure> {
        let Self {
            workshop, setting, ..
        } = self;
        let (baseline, candidate) = (&self.baseline, &self.candidate);
        Pair::start(
            workshop,
            &setting.rules,
            number,
            &setting.measurement,
            baseline,
            candidate,
        )
    }

    /// Starts the processes of the pairs up to the next look, as far as there are processors for them. Kernels that are watched
    /// start pair by pair: what waits for its turn could do something meanwhile.
    pub(super) fn start_ahead(&mut self) -> Result<(), ExaminationFailure> {
        let measurement = &self.setting.measurement;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let wanted = measurement.next_look(self.pairs).saturating_sub(self.pairs);
        let at_once = wanted.min(processors / PROCESSORS).min(MAX_WAITING);
        if measurement.trust.is_watched() || !self.started.is_empty() || at_once < 2 {
            return Ok(());
        }
        self.build_once()?;
        let begun = Instant::now();
        let this = &*self;
        let started = thread::scope(|scope| {
            let numbers = this.pairs..this.pairs + at_once;
            let starting: Vec<_> = numbers
                .map(|number| scope.spawn(move || this.start_pair(number)))
                .collect();
            let ended = starting
                .into_iter()
                .map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
            ended.collect::<Result<Vec<_>, _>>()
        });
        let share = begun.elapsed().as_secs_f64() / at_once as f64;
        self.started = started?.into_iter().map(|pair| pair.started_in(share)).collect();
        Ok(())
    }
}
