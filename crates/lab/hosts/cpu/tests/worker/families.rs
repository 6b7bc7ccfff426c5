//! Observes the host's loop with a family of this test: which copies are computed, when the output is poisoned, and
//! when operands are kept.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gauntlet_host_cpu::{CpuError, CpuFamilies, CpuFamily, CpuHost, CpuKernel};
use gauntlet_kernels_cpu::{Engine, Phases, RunTimes};
use gauntlet_parameters::{Parameters, Value};
use gauntlet_task::{Sizes, Task};
use gauntlet_worker::Service;
use gauntlet_worker::protocol::{FailureKind, POISON};

use crate::{assert_failure, calls, case, gemm, options};

/// A call of the host on a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    /// A file is read.
    Load(String),
    /// The output is filled with this byte.
    Poison(u8),
    /// The result is computed from operands with this text.
    Run(String),
}

/// A test family: the operands are the text of a file, and the result is that text repeated once for each thread.
struct Echo {
    events: Arc<Mutex<Vec<Event>>>,
}

struct EchoKernel {
    output_bytes: usize,
    events: Arc<Mutex<Vec<Event>>>,
}

impl EchoKernel {
    fn note(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

impl CpuFamily for Echo {
    type Kernel = EchoKernel;

    fn tasks(&self) -> &'static [&'static dyn Task] {
        &[gauntlet_gemm::GEMM]
    }

    fn build(
        &self,
        _engine: &Engine,
        sizes: &Sizes,
        parameters: &Parameters,
    ) -> Result<EchoKernel, CpuError> {
        if parameters.get("stages").and_then(Value::number) > Some(3) {
            return Err("stages: at most 3".into());
        }
        Ok(EchoKernel {
            output_bytes: sizes.outputs().iter().map(|spec| spec.bytes()).sum(),
            events: Arc::clone(&self.events),
        })
    }
}

impl CpuKernel for EchoKernel {
    type Operands = String;
    type Output = String;

    fn resources(&self) -> Vec<(&'static str, f64)> {
        vec![("threads", 2.0)]
    }

    fn load(&self, file: &Path) -> Result<String, CpuError> {
        let text = std::fs::read_to_string(file)?;
        self.note(Event::Load(text.clone()));
        Ok(text)
    }

    fn operand_bytes(&self, operands: &String) -> usize {
        operands.len()
    }

    fn output_bytes(&self) -> usize {
        self.output_bytes
    }

    fn allocate_output(&self) -> String {
        "poison".to_owned()
    }

    fn poison(&self, output: &mut String, byte: u8) {
        self.note(Event::Poison(byte));
        *output = self.allocate_output();
    }

    fn run(
        &mut self,
        engine: &Engine,
        operands: &String,
        output: &mut String,
        traced: bool,
    ) -> Result<RunTimes, CpuError> {
        self.note(Event::Run(operands.clone()));
        let threads = AtomicUsize::new(0);
        engine.for_each_thread(&|_| {
            threads.fetch_add(1, Ordering::Relaxed);
        });
        *output = operands.repeat(threads.into_inner());
        let none = Duration::ZERO;
        Ok(RunTimes {
            kernel: Duration::from_micros(1),
            phases: traced.then_some(Phases {
                setup: none,
                load: none,
                multiply: Duration::from_micros(2),
                epilogue: none,
                wait: none,
            }),
        })
    }

    fn save(&self, output: &String, file: &Path) -> Result<(), CpuError> {
        Ok(std::fs::write(file, output)?)
    }
}

/// A host with the test's family, the events of its kernels, and a folder for files.
struct Observed {
    host: CpuHost,
    events: Arc<Mutex<Vec<Event>>>,
    folder: tempfile::TempDir,
}

impl Observed {
    fn new() -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let families = CpuFamilies::new().with(Echo {
            events: Arc::clone(&events),
        });
        Self {
            host: CpuHost::new(options(), families).unwrap(),
            events,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Writes a file that contains its own name.
    fn file(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, name).unwrap();
        path
    }

    /// Builds the kernel of a small GEMM.
    fn build(&mut self) {
        self.host
            .build(&case(&gemm(4, 16, 16)), &Parameters::new())
            .unwrap();
    }

    /// The result of the first call of the last request.
    fn result(&mut self) -> String {
        self.result_of(0)
    }

    /// The result of a call of the last request.
    fn result_of(&mut self, index: usize) -> String {
        let path = self.folder.path().join("result");
        self.host.output(&path, index).unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    /// The events since the last call of this function.
    fn events(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
}

fn load(name: &str) -> Event {
    Event::Load(name.to_owned())
}

fn run(name: &str) -> Event {
    Event::Run(name.to_owned())
}

#[test]
fn calls_take_the_copies_that_are_asked_for_and_only_run_poisons_the_output() {
    let mut observed = Observed::new();
    let files = ["a", "b"].map(|name| observed.file(name));
    let resources = observed.host.build(&case(&gemm(4, 16, 16)), &Parameters::new());
    assert_eq!(resources.unwrap().0["threads"], 2.0);
    assert_eq!(observed.host.load(&files, 3).unwrap(), 3);
    assert_eq!(observed.events(), [load("a"), load("b")]);

    // Copy 2 is a second copy of the first file.
    let samples = observed.host.time(calls(&[4, 2, 0, 1, 0], false)).unwrap();
    assert_eq!(observed.events(), ["b", "a", "a", "b", "a"].map(run));
    assert!(samples.iter().all(|sample| sample.phases.is_empty()));
    assert_eq!(samples[0].kernel, Some(1e-6));
    assert_eq!(observed.result_of(4), "aa");

    let sample = observed.host.run(4, POISON).unwrap();
    assert_eq!(observed.events(), [Event::Poison(POISON), run("b")]);
    assert!(sample.phases.is_empty());
    assert_eq!(observed.result(), "bb");

    let traced = observed.host.time(calls(&[0], true)).unwrap();
    assert_eq!(traced[0].phases["multiply"], 2e-6);
    assert_eq!(traced[0].phases.len(), 5);
}

#[test]
fn more_files_than_copies_are_not_read() {
    let mut observed = Observed::new();
    let files = ["a", "b", "c"].map(|name| observed.file(name));
    observed.build();
    assert_eq!(observed.host.load(&files, 2).unwrap(), 2);
    assert_eq!(observed.events(), [load("a"), load("b")]);
}

#[test]
fn operands_stay_for_the_same_problem_and_the_output_does_not() {
    let mut observed = Observed::new();
    let file = observed.file("a");
    observed.build();
    observed.host.load(std::slice::from_ref(&file), 1).unwrap();
    observed.host.run(0, POISON).unwrap();
    observed.events();

    observed.build();
    assert_eq!(observed.events(), [Event::Poison(POISON)]);
    assert_eq!(observed.result(), "poison");
    observed.host.time(calls(&[0], false)).unwrap();
    assert_eq!(observed.result(), "aa");

    // After a refused build, the previous kernel is still usable.
    let deep = Parameters::new().with("stages", 4_usize);
    let refused = observed.host.build(&case(&gemm(4, 16, 16)), &deep);
    assert_failure(refused, FailureKind::Refused, "stages: at most 3");
    observed.host.run(0, POISON).unwrap();

    observed
        .host
        .build(&case(&gemm(8, 16, 16)), &Parameters::new())
        .unwrap();
    assert_failure(
        observed.host.run(0, POISON),
        FailureKind::BadRequest,
        "no operands",
    );
}

#[test]
fn every_result_of_a_request_is_kept_until_the_next() {
    let mut observed = Observed::new();
    let files = ["a", "b", "c"].map(|name| observed.file(name));
    observed.build();
    observed.host.load(&files, 3).unwrap();
    observed.host.time(calls(&[2, 0, 0, 1], false)).unwrap();
    assert_eq!(
        [3, 0, 2, 1].map(|index| observed.result_of(index)),
        ["bb", "cc", "aa", "aa"]
    );
    let path = observed.folder.path().join("result");
    let absent = "there is no call 4 in the last request, which had 4";
    assert_failure(observed.host.output(&path, 4), FailureKind::BadRequest, absent);

    observed.host.time(calls(&[1, 0], false)).unwrap();
    assert_eq!([0, 1].map(|index| observed.result_of(index)), ["bb", "aa"]);
    assert_failure(observed.host.output(&path, 2), FailureKind::BadRequest, "had 2");
    observed.host.run(2, POISON).unwrap();
    assert_eq!(observed.result(), "cc");
    assert_failure(observed.host.output(&path, 1), FailureKind::BadRequest, "had 1");

    // Results of the previous kernel are gone after a build.
    observed.host.time(calls(&[0, 1], false)).unwrap();
    observed.build();
    assert_eq!(observed.result(), "poison");
    assert_failure(observed.host.output(&path, 1), FailureKind::BadRequest, "had 1");
}

#[test]
fn a_run_fills_the_output_with_the_byte_that_is_asked_for() {
    let mut observed = Observed::new();
    let file = observed.file("a");
    observed.build();
    observed.host.load(&[file], 1).unwrap();
    observed.events();
    for byte in [0, 0x5A, POISON] {
        observed.host.run(0, byte).unwrap();
        assert_eq!(observed.events(), [Event::Poison(byte), run("a")]);
    }
}

#[test]
fn a_task_without_a_kernel_is_refused() {
    let mut observed = Observed::new();
    let mut other = case(&gemm(4, 16, 16));
    other.task = "softmax".to_owned();
    let built = observed.host.build(&other, &Parameters::new());
    let message = "there is no CPU kernel of the task `softmax`; there are kernels of `grouped-gemm`";
    assert_failure(built, FailureKind::Refused, message);
}
