//! The current case: its kernel, the copies of its operands, its outputs, and the loop of timed calls.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gauntlet_device::available_bytes;
use gauntlet_kernels_cpu::{Engine, Phases, RunTimes};
use gauntlet_task::Sizes;
use gauntlet_worker::Calls;
use gauntlet_worker::protocol::{Failure, FailureKind, POISON, Resources, Sample};

use crate::kernel::CpuKernel;

/// The requests that a session serves, independent of the kernel type. Each call covers a whole request, so that the
/// loop over timed calls runs on the concrete kernel type.
pub(crate) trait Session: Any {
    fn sizes(&self) -> &Sizes;
    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure>;
    fn run(&mut self, engine: &Engine, copy: usize, poison: u8) -> Result<Sample, Failure>;
    fn time(&mut self, engine: &Engine, calls: Calls) -> Result<Vec<Sample>, Failure>;
    fn output(&self, path: &Path, index: usize) -> Result<u64, Failure>;
}

/// A kernel and the memory it works on.
struct KernelSession<K: CpuKernel> {
    sizes: Sizes,
    kernel: K,
    /// Empty until operands are loaded.
    copies: Vec<K::Operands>,
    /// At least one; call i of a request writes to output i. Their number never falls, so that requests of different
    /// lengths do not allocate each time.
    outputs: Vec<K::Output>,
    /// Number of results of the last request.
    kept: usize,
}

/// Replaces the current session by one for `kernel`. Operands stay loaded if the sizes are the same as before.
pub(crate) fn start<K: CpuKernel>(
    kernel: K,
    sizes: &Sizes,
    current: &mut Option<Box<dyn Session>>,
) -> Result<Resources, Failure> {
    let named = kernel.resources().into_iter();
    let resources = Resources(named.map(|(name, value)| (name.to_owned(), value)).collect());
    let before = current
        .take()
        .filter(|before| before.sizes() == sizes)
        .map(|before| -> Box<dyn Any> { before })
        .and_then(|before| before.downcast::<KernelSession<K>>().ok());
    *current = Some(match before {
        Some(mut session) => {
            session.kernel = kernel;
            // The outputs still hold results of the previous kernel.
            session.outputs.truncate(1);
            session.kept = 1;
            session.kernel.poison(&mut session.outputs[0], POISON);
            session
        }
        None => {
            check_memory("the result", kernel.output_bytes())?;
            Box::new(KernelSession {
                sizes: sizes.clone(),
                copies: Vec::new(),
                outputs: vec![kernel.allocate_output()],
                kept: 1,
                kernel,
            })
        }
    });
    Ok(resources)
}

impl<K: CpuKernel> KernelSession<K> {
    fn check_loaded(&self) -> Result<(), Failure> {
        if self.copies.is_empty() {
            return Err(bad_request("no operands; call load first"));
        }
        Ok(())
    }

    /// Allocates as many outputs as there are results to keep.
    fn keep(&mut self, results: usize) -> Result<(), Failure> {
        let more = results.saturating_sub(self.outputs.len());
        check_memory(
            &format!("{results} results"),
            self.kernel.output_bytes().saturating_mul(more),
        )?;
        let kernel = &self.kernel;
        self.outputs.extend((0..more).map(|_| kernel.allocate_output()));
        self.kept = results;
        Ok(())
    }

    /// Times one call on one copy, into the output of this index.
    fn call(&mut self, engine: &Engine, copy: usize, index: usize, phases: bool) -> Result<Sample, Failure> {
        let operands = &self.copies[copy % self.copies.len()];
        let output = &mut self.outputs[index];
        let start = Instant::now();
        let times = self.kernel.run(engine, operands, output, phases);
        let call = start.elapsed().as_secs_f64();
        times
            .map(|times| sample(call, times))
            .map_err(|error| broken(error.to_string()))
    }
}

impl<K: CpuKernel> Session for KernelSession<K> {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure> {
        // Free the old operands first: old and new together might not fit into memory.
        self.copies.clear();
        let read = |path: &PathBuf| {
            self.kernel
                .load(path)
                .map_err(|error| bad_request(error.to_string()))
        };
        let mut loaded: Vec<K::Operands> = inputs.iter().take(copies).map(read).collect::<Result<_, _>>()?;
        let bytes = loaded
            .first()
            .map_or(0, |operands| self.kernel.operand_bytes(operands));
        let more = bytes.saturating_mul(copies.saturating_sub(loaded.len()));
        check_memory(
            &format!(
                "{copies} copies of the operands, of which {} are loaded,",
                loaded.len()
            ),
            more,
        )?;
        for copy in loaded.len()..copies {
            loaded.push(loaded[copy % inputs.len()].clone());
        }
        self.copies = loaded;
        Ok((bytes * copies) as u64)
    }

    fn run(&mut self, engine: &Engine, copy: usize, poison: u8) -> Result<Sample, Failure> {
        self.check_loaded()?;
        self.keep(1)?;
        self.kernel.poison(&mut self.outputs[0], poison);
        self.call(engine, copy, 0, false)
    }

    fn time(&mut self, engine: &Engine, calls: Calls) -> Result<Vec<Sample>, Failure> {
        self.check_loaded()?;
        self.keep(calls.copies.len())?;
        let each = calls.copies.iter().enumerate();
        each.map(|(index, copy)| self.call(engine, *copy, index, calls.phases))
            .collect()
    }

    fn output(&self, path: &Path, index: usize) -> Result<u64, Failure> {
        self.check_loaded()?;
        if index >= self.kept {
            return Err(bad_request(format!(
                "there is no call {index} in the last request, which had {}",
                self.kept
            )));
        }
        self.kernel
            .save(&self.outputs[index], path)
            .map_err(|error| broken(error.to_string()))?;
        Ok(self.kernel.output_bytes() as u64)
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

/// Fails if `bytes` more would not fit into memory: the system kills a process that exceeds the available memory.
fn check_memory(what: &str, bytes: usize) -> Result<(), Failure> {
    let available = available_bytes();
    if bytes <= available {
        return Ok(());
    }
    Err(broken(format!(
        "{what} would take {bytes} more bytes of memory, but only {available} are available; use a smaller problem or fewer copies"
    )))
}

pub(crate) fn refused(message: impl Into<String>) -> Failure {
    failure(FailureKind::Refused, message)
}

pub(crate) fn bad_request(message: impl Into<String>) -> Failure {
    failure(FailureKind::BadRequest, message)
}

pub(crate) fn broken(message: impl Into<String>) -> Failure {
    failure(FailureKind::Broken, message)
}

fn failure(kind: FailureKind, message: impl Into<String>) -> Failure {
    Failure {
        kind,
        message: message.into(),
    }
}
