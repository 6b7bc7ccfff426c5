//! The engine behind the worker protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gauntlet_executor::Service;
use gauntlet_executor::protocol::{self, Description, Failure, FailureKind, Parameter, Resources, Sample};
use gauntlet_problem::{Inputs, Output, Problem};
use gauntlet_schedule::Schedule;

use crate::memory::available_bytes;
use crate::{BuildError, Engine, EngineError, EngineOptions, Kernel, Phases, RunTimes};

/// Serves the CPU executor.
pub struct CpuService {
    engine: Engine,
    built: Option<Built>,
}

/// What was built last, with its operands once they are loaded.
struct Built {
    problem: Problem,
    kernel: Kernel,
    copies: Vec<Inputs>,
    output: Output,
}

impl CpuService {
    /// Starts the engine.
    ///
    /// # Errors
    /// If the processor lacks the instruction set, or the threads cannot be had.
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        Ok(Self {
            engine: Engine::new(options)?,
            built: None,
        })
    }

    fn built(&mut self) -> Result<&mut Built, Failure> {
        self.built
            .as_mut()
            .ok_or_else(|| bad_request("nothing has been built; call build first"))
    }

    fn loaded(&mut self) -> Result<&mut Built, Failure> {
        match self.built()? {
            Built { copies, .. } if copies.is_empty() => Err(bad_request("no operands; call load first")),
            built => Ok(built),
        }
    }
}

impl Service for CpuService {
    fn describe(&self) -> Description {
        Description {
            protocol: protocol::VERSION,
            worker: format!("gauntlet cpu {}", env!("CARGO_PKG_VERSION")),
            device: "host".to_owned(),
            details: BTreeMap::from([
                ("simd".to_owned(), self.engine.simd().to_string()),
                ("dots".to_owned(), self.engine.dots().to_owned()),
                ("threads".to_owned(), self.engine.threads().to_string()),
            ]),
        }
    }

    /// Operands stay loaded when the problem is that of the build before.
    fn build(&mut self, problem: &Problem, schedule: &Schedule) -> Result<Resources, Failure> {
        let kernel = self
            .engine
            .build(problem, schedule)
            .map_err(|error| refusal(&error))?;
        let resources = resources(&kernel);
        let before = self.built.take().filter(|before| before.problem == *problem);
        self.built = Some(match before {
            Some(mut before) => {
                // What the kernel before computed is not this one's result.
                before.output.poison();
                Built { kernel, ..before }
            }
            None => {
                check_memory("the result", problem.output_bytes())?;
                Built {
                    problem: problem.clone(),
                    kernel,
                    copies: Vec::new(),
                    output: Output::poisoned(problem),
                }
            }
        });
        Ok(resources)
    }

    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure> {
        let built = self.built()?;
        // The old operands go first: both at once might not fit.
        built.copies.clear();
        let read = |path: &PathBuf| {
            Inputs::load(path, &built.problem).map_err(|error| bad_request(&error.to_string()))
        };
        let mut loaded: Vec<Inputs> = inputs.iter().take(copies).map(read).collect::<Result<_, _>>()?;
        let bytes = loaded.first().map_or(0, Inputs::memory_bytes);
        let more = bytes.saturating_mul(copies.saturating_sub(loaded.len()));
        check_memory(
            &format!(
                "{copies} copies of the operands, the first {} apart,",
                loaded.len()
            ),
            more,
        )?;
        for copy in loaded.len()..copies {
            loaded.push(loaded[copy % inputs.len()].clone());
        }
        built.copies = loaded;
        Ok((bytes * copies) as u64)
    }

    fn run(&mut self, copy: usize) -> Result<Sample, Failure> {
        let built = self.loaded()?;
        built.output.poison();
        let copy = copy % built.copies.len();
        let sample = built.call(copy, false);
        self.engine.rest();
        sample
    }

    fn time(&mut self, samples: usize, first_copy: usize, phases: bool) -> Result<Vec<Sample>, Failure> {
        let built = self.loaded()?;
        let copies = built.copies.len();
        let samples = (0..copies)
            .cycle()
            .skip(first_copy % copies)
            .take(samples)
            .map(|copy| built.call(copy, phases))
            .collect();
        // The next request may be another worker's, on the same processors.
        self.engine.rest();
        samples
    }

    fn calibrate(&mut self, quick: bool) -> Result<Vec<Parameter>, Failure> {
        self.engine
            .calibrate(quick)
            .map_err(|error| broken(&error.to_string()))
    }

    fn output(&mut self, path: &Path) -> Result<u64, Failure> {
        let built = self.loaded()?;
        built
            .output
            .save(path)
            .map_err(|error| broken(&error.to_string()))?;
        Ok(built.output.bytes.len() as u64)
    }
}

impl Built {
    fn call(&mut self, copy: usize, phases: bool) -> Result<Sample, Failure> {
        let start = Instant::now();
        let times = if phases {
            self.kernel.run_traced(&self.copies[copy], &mut self.output)
        } else {
            self.kernel.run(&self.copies[copy], &mut self.output)
        };
        let call = start.elapsed().as_secs_f64();
        times
            .map(|times| sample(call, times))
            .map_err(|error| broken(&error.to_string()))
    }
}

fn sample(call: f64, times: RunTimes) -> Sample {
    let phases = times.phases.map_or_else(BTreeMap::new, |phases| {
        let Phases {
            setup,
            load,
            multiply,
            epilogue,
            wait,
        } = phases;
        [
            ("setup", setup),
            ("load", load),
            ("multiply", multiply),
            ("epilogue", epilogue),
            ("wait", wait),
        ]
        .map(|(phase, time)| (phase.to_owned(), time.as_secs_f64()))
        .into()
    });
    Sample {
        call,
        kernel: Some(times.kernel.as_secs_f64()),
        clock: None,
        phases,
    }
}

fn resources(kernel: &Kernel) -> Resources {
    let resources = kernel.resources();
    let named = [
        ("threads", resources.threads),
        ("producers", resources.producers),
        ("panel-bytes", resources.panel_bytes_per_thread),
        ("workspace-bytes", resources.workspace_bytes),
        ("tiles", resources.tiles),
        ("register-rows", resources.register_rows),
        ("register-columns", resources.register_columns),
        ("accumulator-registers", resources.accumulator_registers),
    ];
    Resources(named.map(|(name, value)| (name.to_owned(), value as f64)).into())
}

/// Fails what would not fit: taking the memory would end the worker.
fn check_memory(what: &str, bytes: usize) -> Result<(), Failure> {
    let available = available_bytes();
    if bytes <= available {
        return Ok(());
    }
    Err(broken(&format!(
        "{what} would take {bytes} bytes of memory, and {available} can be had; use a smaller problem or fewer copies"
    )))
}

fn refusal(error: &BuildError) -> Failure {
    Failure {
        kind: FailureKind::Refused,
        message: error.to_string(),
    }
}

fn bad_request(message: &str) -> Failure {
    Failure {
        kind: FailureKind::BadRequest,
        message: message.to_owned(),
    }
}

fn broken(message: &str) -> Failure {
    Failure {
        kind: FailureKind::Broken,
        message: message.to_owned(),
    }
}
