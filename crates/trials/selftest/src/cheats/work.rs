//! The honest kernel that cheats are built around, and the steps that they can replace.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use gauntlet_kernels_cpu::{Engine, EngineOptions, Kernel};
use gauntlet_parameters::Parameters;
use gauntlet_problems::Schedule;
use gauntlet_problems::{Inputs, Operation, Output};
use gauntlet_worker::protocol::{self, CaseRequest, Description, Failure, FailureKind, Resources, Sample};
use gauntlet_worker::{Calls, Service};

/// A built problem, with its operands once they are loaded.
pub struct Work {
    engine: Rc<Engine>,
    schedule: Schedule,
    kernel: Kernel,
    /// The problem.
    pub problem: Operation,
    /// The operands.
    pub copies: Vec<Inputs>,
    /// The result of the call under way, or of the last one.
    pub output: Output,
    /// The results of the last request, by call, and unused ones after them.
    kept: Vec<Output>,
    /// How many calls the last request had.
    calls: usize,
}

impl Work {
    /// Computes honestly.
    pub fn compute(&mut self, copy: usize) -> Result<(), Failure> {
        let copy = copy % self.copies.len();
        self.kernel
            .run(&self.copies[copy], &mut self.output)
            .map(drop)
            .map_err(broken)
    }

    /// Provides room for the results of a request of that many calls.
    pub fn begin(&mut self, calls: usize) {
        self.calls = calls;
        while self.kept.len() < calls {
            self.kept.push(Output::poisoned(&self.problem));
        }
    }

    /// Runs call `index` of the request, with the memory for its result as the output. Nothing is copied.
    pub fn call<T>(&mut self, index: usize, run: impl FnOnce(&mut Self) -> T) -> T {
        std::mem::swap(&mut self.output, &mut self.kept[index]);
        let done = run(self);
        std::mem::swap(&mut self.output, &mut self.kept[index]);
        done
    }

    /// The result of a call of the last request.
    pub fn result(&mut self, index: usize) -> Result<&mut Output, Failure> {
        let calls = self.calls;
        let kept = self.kept.get_mut(index).filter(|_| index < calls);
        kept.ok_or_else(|| broken(format!("there is no call {index}; the last request had {calls}")))
    }

    /// A kernel for another problem under the same schedule.
    pub fn kernel_for(&self, problem: &Operation) -> Result<Kernel, Failure> {
        self.engine.build(problem, &self.schedule).map_err(broken)
    }
}

/// The purpose of a computation, as far as a worker can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Its result will be checked.
    Run,
    /// It is timed.
    Timed,
    /// It is timed with phases.
    Traced,
}

impl Call {
    /// Whether it is timed.
    pub fn is_timed(self) -> bool {
        self != Self::Run
    }
}

/// The steps that a cheat can replace; each default is honest.
pub trait Trick {
    /// Called when a request has come in.
    fn asked(&mut self, _work: &mut Work) {}

    /// Called when the request has been served, before its answer is sent.
    fn served(&mut self) {}

    /// Called after a build.
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        Ok(())
    }

    /// Called after operands have been loaded from these files.
    fn loaded(&mut self, _work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        Ok(())
    }

    /// Called in the step that prepares constant inputs.
    fn prepared(&mut self, _work: &mut Work) -> Result<(), Failure> {
        Ok(())
    }

    /// Computes once.
    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        work.compute(copy)
    }

    /// Runs timed calls.
    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let each = copies.iter().enumerate();
        each.map(|(index, copy)| work.call(index, |work| timed(|| self.compute(work, *copy, call))))
            .collect()
    }

    /// Writes the result of a call of the last request; returns its bytes.
    fn output(&mut self, work: &mut Work, file: &Path, index: usize) -> Result<u64, Failure> {
        let result = work.result(index)?;
        result.save(file).map_err(broken)?;
        Ok(result.bytes.len() as u64)
    }
}

/// Changes nothing.
pub struct Honest;

impl Trick for Honest {}

/// A worker with a trick.
pub struct Candidate {
    engine: Rc<Engine>,
    work: Option<Work>,
    trick: Box<dyn Trick>,
}

impl Candidate {
    /// Starts the engine with as many threads as the honest worker has in a trial.
    pub fn new(trick: Box<dyn Trick>) -> Result<Self, gauntlet_kernels_cpu::EngineError> {
        Self::with_threads(trick, 1)
    }

    /// Starts the engine with that many threads.
    pub fn with_threads(
        trick: Box<dyn Trick>,
        threads: usize,
    ) -> Result<Self, gauntlet_kernels_cpu::EngineError> {
        Ok(Self {
            engine: Rc::new(Engine::new(EngineOptions {
                threads: Some(threads),
                ..EngineOptions::default()
            })?),
            work: None,
            trick,
        })
    }

    fn serve<T>(
        &mut self,
        call: impl FnOnce(&mut dyn Trick, &mut Work) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let work = self
            .work
            .as_mut()
            .ok_or_else(|| broken("nothing has been built"))?;
        self.trick.asked(work);
        let answer = call(&mut *self.trick, work);
        self.trick.served();
        answer
    }
}

impl Service for Candidate {
    fn describe(&self) -> Description {
        Description {
            protocol: protocol::VERSION,
            worker: "gauntlet cheat".to_owned(),
            device: "host".to_owned(),
            ..Description::default()
        }
    }

    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        let sizes = gauntlet_families::open(&case.record()).map_err(broken)?;
        let problem =
            gauntlet_tiled_family::operation(&sizes).ok_or_else(|| broken("a task without a cheat"))?;
        let schedule = &Schedule::of(parameters).map_err(broken)?;
        let mut work = Work {
            kernel: self.engine.build(problem, schedule).map_err(broken)?,
            engine: Rc::clone(&self.engine),
            schedule: schedule.clone(),
            problem: problem.clone(),
            copies: Vec::new(),
            output: Output::poisoned(problem),
            kept: vec![Output::poisoned(problem)],
            calls: 1,
        };
        // Like the honest worker, keeps operands of the same problem.
        if let Some(before) = self.work.take().filter(|before| before.problem == *problem) {
            work.copies = before.copies;
        }
        self.work = Some(work);
        self.serve(|trick, work| trick.built(work))?;
        Ok(Resources::default())
    }

    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure> {
        self.serve(|trick, work| {
            let read = |file: &PathBuf| Inputs::load(file, &work.problem).map_err(broken);
            let sets: Vec<Inputs> = inputs.iter().take(copies).map(read).collect::<Result<_, _>>()?;
            work.copies = sets.iter().cycle().take(copies).cloned().collect();
            trick.loaded(work, inputs)?;
            Ok(work.copies.iter().map(|copy| copy.memory_bytes() as u64).sum())
        })
    }

    fn prepare(&mut self) -> Result<u64, Failure> {
        self.serve(|trick, work| trick.prepared(work))?;
        Ok(0)
    }

    fn run(&mut self, copy: usize, poison: u8) -> Result<Sample, Failure> {
        self.serve(|trick, work| {
            work.begin(1);
            work.result(0)?.bytes.fill(poison);
            work.call(0, |work| timed(|| trick.compute(work, copy, Call::Run)))
        })
    }

    fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure> {
        let call = if calls.phases { Call::Traced } else { Call::Timed };
        self.serve(|trick, work| {
            work.begin(calls.copies.len());
            trick.time(work, &calls.copies, call)
        })
    }

    fn output(&mut self, path: &Path, index: usize) -> Result<u64, Failure> {
        self.serve(|trick, work| trick.output(work, path, index))
    }
}

/// Runs a closure and returns how long it took.
pub fn timed(work: impl FnOnce() -> Result<(), Failure>) -> Result<Sample, Failure> {
    let start = Instant::now();
    work()?;
    Ok(sample(start.elapsed().as_secs_f64()))
}

/// A sample of one call, in seconds.
pub fn sample(call: f64) -> Sample {
    Sample {
        call,
        kernel: None,
        clock: None,
        phases: Default::default(),
    }
}

/// A failure of the worker's own.
pub fn broken(message: impl ToString) -> Failure {
    Failure {
        kind: FailureKind::Broken,
        message: message.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use gauntlet_task::InputKind;

    use super::*;

    /// The copies of the calls of the request whose results are looked at.
    pub const COPIES: [usize; 4] = [1, 0, 0, 1];

    /// The results of all calls of a request for each timed case, as a coordinator gets them.
    pub fn results_of(trick: Box<dyn Trick>, threads: usize) -> Vec<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = Candidate::with_threads(trick, threads).unwrap();
        let mut results = Vec::new();
        for case in crate::cheats::suite().unwrap().benchmark {
            let files = [0, 1].map(|seed| {
                let file = folder.path().join(format!("{seed}"));
                case.sizes
                    .generate(InputKind::Competition, seed)
                    .unwrap()
                    .save(&file)
                    .unwrap();
                file
            });
            worker
                .build(&CaseRequest::of(&case.sizes), &crate::cheats::parameters())
                .unwrap();
            worker.load(&files, 2).unwrap();
            worker.prepare().unwrap();
            let samples = worker
                .time(Calls {
                    copies: COPIES.into(),
                    ..Calls::default()
                })
                .unwrap();
            assert_eq!(samples.len(), COPIES.len());
            for index in 0..COPIES.len() {
                let file = folder.path().join("output");
                worker.output(&file, index).unwrap();
                results.push(std::fs::read(&file).unwrap());
            }
        }
        results
    }
}
