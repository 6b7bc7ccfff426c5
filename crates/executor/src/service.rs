//! The worker's side of the protocol.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use gauntlet_problem::Problem;
use gauntlet_schedule::Schedule;

use crate::protocol::{
    Answer, Description, Envelope, Failure, FailureKind, Outcome, Parameter, Reply, Request, Resources,
    Sample,
};

/// What an executor does behind the protocol. A failure is answered and the worker lives on.
pub trait Service {
    /// Who it is and what it runs on.
    fn describe(&self) -> Description;
    /// Prepares a schedule for a problem.
    fn build(&mut self, problem: &Problem, schedule: &Schedule) -> Result<Resources, Failure>;
    /// Reads operands from one or more files and keeps `copies` of them, copy i of file i modulo their number; returns
    /// their bytes.
    fn load(&mut self, inputs: &[PathBuf], copies: usize) -> Result<u64, Failure>;
    /// Poisons the output and computes once.
    fn run(&mut self, copy: usize) -> Result<Sample, Failure>;
    /// Computes `samples` times on copies from `first_copy` on, in rotation.
    fn time(&mut self, samples: usize, first_copy: usize, phases: bool) -> Result<Vec<Sample>, Failure>;
    /// Measures what its primitives cost, if it has a model to calibrate.
    fn calibrate(&mut self, _quick: bool) -> Result<Vec<Parameter>, Failure> {
        Err(Failure {
            kind: FailureKind::Refused,
            message:
                "this worker has nothing to calibrate; its device's description is all that the model knows"
                    .to_owned(),
        })
    }
    /// Writes down what each part of the device does when in a call, if it can; returns the file's bytes.
    fn trace(&mut self, _path: &Path) -> Result<u64, Failure> {
        Err(Failure {
            kind: FailureKind::Refused,
            message: "this worker does not write down what it does when; only the cuda executor does"
                .to_owned(),
        })
    }
    /// Writes the last result; returns its bytes.
    fn output(&mut self, path: &Path) -> Result<u64, Failure>;
}

/// Answers requests from `input` on `output` until `stop` or the end of `input`. A line that is no request is answered
/// with a failure under number 0, since its own cannot be told.
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
        Request::Build { problem, schedule } => {
            problem
                .validate()
                .map_err(|error| bad_request(error.to_string()))?;
            Answer::Built {
                resources: service.build(&problem, &schedule)?,
            }
        }
        Request::Load { inputs, .. } if inputs.is_empty() => {
            return Err(bad_request("load names no file".to_owned()));
        }
        Request::Load { inputs, copies } => Answer::Loaded {
            bytes: service.load(&inputs, copies.max(1))?,
        },
        Request::Run { copy } => Answer::Ran(service.run(copy)?),
        Request::Time {
            samples,
            first_copy,
            phases,
        } => Answer::Timed {
            samples: service.time(samples, first_copy, phases)?,
        },
        Request::Output { path } => Answer::Written {
            bytes: service.output(&path)?,
        },
        Request::Calibrate { quick } => Answer::Calibrated {
            parameters: service.calibrate(quick)?,
        },
        Request::Trace { path } => Answer::Written {
            bytes: service.trace(&path)?,
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
