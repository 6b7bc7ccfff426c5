//! The CPU executor behind the worker protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gauntlet_kernels_cpu::{Engine, EngineError, EngineOptions};
use gauntlet_parameters::Parameters;
use gauntlet_worker::protocol::{self, CaseRequest, Description, Failure, Resources, Sample};
use gauntlet_worker::{Calls, Service};

use crate::families::CpuFamilies;
use crate::session::{Session, bad_request};

/// Serves the CPU executor: an engine, and the session of the kernel built last.
pub struct CpuHost {
    engine: Engine,
    families: CpuFamilies,
    session: Option<Box<dyn Session>>,
}

impl CpuHost {
    /// Starts the engine.
    ///
    /// # Errors
    ///
    /// If the processor lacks the instruction set, or the threads cannot be started.
    pub fn new(options: EngineOptions, families: CpuFamilies) -> Result<Self, EngineError> {
        Ok(Self {
            engine: Engine::new(options)?,
            families,
            session: None,
        })
    }
}

/// The current session; fails if no build has started one.
fn built(session: &mut Option<Box<dyn Session>>) -> Result<&mut dyn Session, Failure> {
    session
        .as_deref_mut()
        .ok_or_else(|| bad_request("nothing has been built; call build first"))
}

impl Service for CpuHost {
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
            ..Description::default()
        }
    }

    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure> {
        self.families
            .build(&self.engine, case, parameters, &mut self.session)
    }

    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure> {
        built(&mut self.session)?.load(inputs, copies)
    }

    fn run(&mut self, copy: usize, poison: u8) -> Result<Sample, Failure> {
        let sample = built(&mut self.session)?.run(&self.engine, copy, poison);
        self.engine.rest();
        sample
    }

    fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure> {
        let samples = built(&mut self.session)?.time(&self.engine, calls);
        // The coordinator may call another worker next, which shares these processors.
        self.engine.rest();
        samples
    }

    fn output(&mut self, path: &Path, index: usize) -> Result<u64, Failure> {
        built(&mut self.session)?.output(path, index)
    }
}
