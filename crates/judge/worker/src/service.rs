//! The worker's side of the protocol.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use gauntlet_parameters::Parameters;

use crate::protocol::{
    Answer, CallActivity, CaseRequest, Description, Envelope, Failure, FailureKind, HOLD, Outcome, Reply,
    Request, Resources, Sample, Scope,
};

/// Calls that the coordinator steps through.
#[derive(Debug, Clone)]
pub struct Steps {
    /// The copy of the operands for each call.
    pub copies: Vec<usize>,
    /// The byte that fills outputs before each call.
    pub poison: u8,
    /// Seconds of load right before each call; empty for none.
    pub heat: Vec<f64>,
    /// From where to where each call is clocked.
    pub scope: Scope,
    /// Seconds for which a device is held back before a call.
    pub hold: f64,
}

/// The arguments of a request for timed calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Calls {
    /// The copy of the operands for each call, in order.
    pub copies: Vec<usize>,
    /// Whether to report phases too.
    pub phases: bool,
    /// From where to where each call is clocked.
    pub scope: Scope,
    /// The calls whose results are kept; all of them if there is none.
    pub results: Option<Vec<usize>>,
    /// Seconds for which a device is held back before a call that is clocked there.
    pub hold: f64,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            copies: Vec::new(),
            phases: false,
            scope: Scope::default(),
            results: None,
            hold: HOLD,
        }
    }
}

/// What an executor implements behind the protocol. The worker answers with the failure and keeps running.
pub trait Service {
    /// Which worker this is and what it runs on.
    fn describe(&self) -> Description;
    /// Prepares a kernel for a case.
    fn build(&mut self, case: &CaseRequest, parameters: &Parameters) -> Result<Resources, Failure>;
    /// Reads operands from one or more files and keeps `copies` of them; copy i comes from file i modulo the number of
    /// files. Returns the bytes of all copies.
    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure>;
    /// Prepares everything that stays the same in every call; returns the bytes that this takes besides the operands.
    fn prepare(&mut self) -> Result<u64, Failure> {
        Ok(0)
    }
    /// Fills the outputs with a byte and computes once.
    fn run(&mut self, copy: usize, poison: u8) -> Result<Sample, Failure>;
    /// Computes several times, and keeps every result, or those that are chosen, until the next request to compute.
    fn time(&mut self, calls: Calls) -> Result<Vec<Sample>, Failure>;
    /// Writes a timeline of one call on the device to a file, if it can; returns the file's bytes.
    fn trace(&mut self, _path: &Path) -> Result<u64, Failure> {
        Err(Failure {
            kind: FailureKind::Refused,
            message: "this worker does not write down what it does when; only the cuda executor does"
                .to_owned(),
        })
    }
    /// Computes once on each of these copies, keeps every result as [`time`](Self::time) does, and says what the device did in
    /// each call. Only for workers that describe their `activity`.
    fn activity(&mut self, _copies: &[usize]) -> Result<Vec<CallActivity>, Failure> {
        Err(Failure {
            kind: FailureKind::Refused,
            message: "this worker does not trace its device".to_owned(),
        })
    }
    /// Computes once on each of these copies, with outputs that hold a byte before, and takes [turns](crate::Turns) with the
    /// coordinator. Only for workers that describe their `memory`.
    fn step(&mut self, _steps: &Steps) -> Result<(), Failure> {
        Err(bad_request(
            "this worker is not held, and does not step".to_owned(),
        ))
    }
    /// Writes the result of a call of the last request to compute, counted from 0; returns its bytes.
    fn output(&mut self, path: &Path, index: usize) -> Result<u64, Failure>;
}

/// Answers requests from `input` on `output` until `stop` or the end of `input`. A malformed line is answered with a
/// failure under number 0, since its own number is unknown.
pub fn serve(service: &mut dyn Service, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let (id, outcome, stop) = match serde_json::from_str::<Envelope>(&line) {
            Ok(Envelope { id, request }) => {
                let stop = matches!(request, Request::Stop);
                (id, answer(service, request), stop)
            }
            Err(error) => (
                0,
                Err(bad_request(format!("not a request of this protocol: {error}"))),
                false,
            ),
        };
        let outcome = match outcome {
            Ok(answer) => Outcome::Done(answer),
            Err(error) => Outcome::Failed { error },
        };
        serde_json::to_writer(&mut output, &Reply { id, outcome })?;
        output.write_all(b"\n")?;
        output.flush()?;
        if stop {
            break;
        }
    }
    Ok(())
}

fn answer(service: &mut dyn Service, request: Request) -> Result<Answer, Failure> {
    Ok(match request {
        Request::Describe => Answer::Description(service.describe()),
        Request::Build { case, parameters, .. } => Answer::Built {
            resources: service.build(&case, &parameters)?,
        },
        Request::Load { inputs, .. } if inputs.is_empty() => {
            return Err(bad_request("load names no file".to_owned()));
        }
        Request::Load { inputs, copies } => Answer::Loaded {
            bytes: service.load(&inputs, copies.max(1))?,
        },
        Request::Prepare => Answer::Prepared {
            bytes: service.prepare()?,
        },
        Request::Run { copy, poison } => Answer::Ran(service.run(copy, poison)?),
        Request::Time {
            copies,
            phases,
            scope,
            results,
            hold,
        } => Answer::Timed {
            samples: service.time(Calls {
                copies,
                phases,
                scope,
                results,
                hold,
            })?,
        },
        Request::Step { copies, heat, .. } if !heat.is_empty() && heat.len() != copies.len() => {
            return Err(bad_request("heat is not as long as copies".to_owned()));
        }
        Request::Step {
            copies,
            poison,
            heat,
            scope,
            hold,
        } => {
            service.step(&Steps {
                copies,
                poison,
                heat,
                scope,
                hold,
            })?;
            Answer::Stepped
        }
        Request::Output { path, index } => Answer::Written {
            bytes: service.output(&path, index)?,
        },
        Request::Trace { path } => Answer::Written {
            bytes: service.trace(&path)?,
        },
        Request::Activity { copies } => Answer::Recorded {
            calls: service.activity(&copies)?,
        },
        Request::Stop => Answer::Stopped,
    })
}

fn bad_request(message: String) -> Failure {
    Failure {
        kind: FailureKind::BadRequest,
        message,
    }
}
