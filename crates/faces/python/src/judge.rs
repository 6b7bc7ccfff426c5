//! The judge in the interpreter's process.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use gauntlet_cli::CliError;
use gauntlet_cli::in_process::{self, Question, Terms};
use gauntlet_judge::{Finding, Narrowing, Observer};
use gauntlet_stats::percent_interval;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::{command, error};

create_exception!(
    _native,
    Refused,
    PyValueError,
    "The judge refuses what it is given."
);
create_exception!(_native, Failed, PyRuntimeError, "The judge fails.");

/// How often Python is asked whether it was interrupted.
const PAUSE: Duration = Duration::from_millis(50);

/// The options of a comparison, by the names that Python's functions give them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    task: Option<String>,
    cases: Vec<String>,
    device: Option<String>,
    budget: String,
    pairs: Option<usize>,
    warm: bool,
    regime: String,
    scope: String,
    activity: bool,
    quick: bool,
}

impl From<Options> for Terms {
    fn from(options: Options) -> Self {
        Self {
            task: options.task,
            cases: options.cases,
            device: options.device,
            budget: options.budget,
            pairs: options.pairs,
            warm: options.warm,
            regime: options.regime,
            scope: options.scope,
            activity: options.activity,
            quick: options.quick,
        }
    }
}

/// Compares two kernels, a baseline and a candidate, or sends the candidate through all gates. `program` is as in
/// [`command::main`]; `tell` is called with each event as a line of text.
#[pyfunction]
pub fn ask(
    py: Python<'_>,
    kernels: (Option<String>, String),
    all_gates: bool,
    options: Options,
    program: Vec<OsString>,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    command::set_program(program)?;
    let (baseline, candidate) = kernels;
    let question = Question {
        baseline,
        candidate,
        all_gates,
    };
    let terms = options.into();
    answered(py, tell, move |observer| {
        in_process::ask(&question, &terms, observer)
    })
}

/// Adds pairs to the comparison in a file.
#[pyfunction]
pub fn add_pairs(
    py: Python<'_>,
    file: PathBuf,
    pairs: usize,
    program: Vec<OsString>,
    tell: Option<Py<PyAny>>,
) -> PyResult<String> {
    command::set_program(program)?;
    answered(py, tell, move |observer| {
        in_process::add_pairs(&file, pairs, observer)
    })
}

/// What the thread of a question says to the one that asked.
enum Event {
    Told(String),
    Answered(std::thread::Result<Result<String, CliError>>),
}

/// Answers a question in a thread of its own, so that this one can pass on what is told and hear of interrupts. After an
/// interrupt, or an exception of `tell`, the workers are ended and the exception is raised once the thread has ended.
fn answered(
    py: Python<'_>,
    tell: Option<Py<PyAny>>,
    question: impl FnOnce(&dyn Observer) -> Result<String, CliError> + Send + 'static,
) -> PyResult<String> {
    let (sender, receiver) = channel();
    // Only so that it can be waited on without the interpreter's lock.
    let receiver = Mutex::new(receiver);
    let next = || match receiver.lock() {
        Ok(receiver) => receiver.recv_timeout(PAUSE),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    };
    let thread = std::thread::spawn(move || {
        let observer = Telling(Mutex::new(sender.clone()));
        let answer = catch_unwind(AssertUnwindSafe(|| question(&observer)));
        // The other end has gone only if it panicked.
        let _heard = sender.send(Event::Answered(answer));
    });
    let mut stopped: Option<PyErr> = None;
    let answer = loop {
        match py.detach(next) {
            Ok(Event::Answered(answer)) => break answer,
            Ok(Event::Told(text)) => {
                if let (Some(tell), None) = (&tell, &stopped) {
                    stopped = tell.call1(py, (text,)).err();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                in_process::go_on();
                return Err(error::runtime("the judge's thread ended"));
            }
        }
        if stopped.is_none() {
            stopped = py.check_signals().err();
        }
        if stopped.is_some() {
            in_process::stop();
        }
    };
    let _ended = py.detach(|| thread.join());
    if let Some(stopped) = stopped {
        in_process::go_on();
        return Err(stopped);
    }
    match answer {
        Ok(Ok(document)) => Ok(document),
        Ok(Err(refused)) if refused.is_of_input() => Err(Refused::new_err(refused.text())),
        Ok(Err(failed)) => Err(Failed::new_err(failed.text())),
        Err(panic) => Err(error::internal(&*panic)),
    }
}

/// Sends what happens as lines of text.
struct Telling(Mutex<Sender<Event>>);

impl Telling {
    fn tell(&self, text: String) {
        if let Ok(sender) = self.0.lock() {
            // The other end has gone only if it panicked.
            let _heard = sender.send(Event::Told(text));
        }
    }
}

impl Observer for Telling {
    fn gate_begins(&self, candidate: &str, gate: &str) {
        self.tell(format!("{candidate}: {gate}"));
    }

    fn progress(&self, message: &str) {
        self.tell(message.to_owned());
    }

    fn narrows(&self, narrowing: &Narrowing) {
        self.tell(format!(
            "{} pairs of processes: {}",
            narrowing.pairs,
            percent_interval(&narrowing.interval)
        ));
    }

    fn gate_ends(&self, candidate: &str, finding: &Finding) {
        self.tell(format!("{candidate}: {}: {}", finding.gate, finding.reason));
    }

    fn notice(&self, message: &str) {
        self.tell(format!("note: {message}"));
    }
}
