//! Honest workers with odd habits: each is compared with its own twin, and must be neither accused nor adopted.
//!
//! The corpus of cheats shows that the judge is strict enough; this zoo shows that it is not too strict. Warm-up, pauses,
//! spinning threads and slow starts are the habits of real frameworks. [`residents`] lists them, and [`run`] compares
//! each with itself.

mod habits;
mod residents;
mod trial;

use std::io;

use crate::ServeError;
use crate::cheats::work::{Candidate, Trick};
use gauntlet_worker::serve as serve_protocol;

pub use residents::residents;
pub use trial::{Outcome, ResidentReport, Settings, ZooError, run};

/// An honest worker with a habit.
#[derive(Debug, Clone)]
pub struct Resident {
    /// The name for `gauntlet-selftest worker zoo`.
    pub name: &'static str,
    /// What is odd about it, in a sentence.
    pub story: &'static str,
    habit: Habit,
}

/// The implementation of a habit.
#[derive(Debug, Clone, Copy)]
enum Habit {
    /// A modified step of the honest kernel, on that many threads.
    Trick(fn() -> Box<dyn Trick>, fn() -> usize),
    /// The same, with something that happens before the first request.
    AtStart(fn()),
    /// A program in Python that needs numpy.
    Numpy(&'static str),
}

/// Serves a resident on standard input and output until standard input ends.
pub fn serve(name: &str) -> Result<(), ServeError> {
    let unknown = || ServeError::Unknown {
        what: "honest worker",
        name: name.to_owned(),
    };
    let resident = residents().into_iter().find(|resident| resident.name == name);
    let mut candidate = match resident.ok_or_else(unknown)?.habit {
        Habit::Trick(trick, threads) => Candidate::with_threads(trick(), threads())?,
        Habit::AtStart(start) => {
            start();
            Candidate::new(Box::new(crate::cheats::work::Honest))?
        }
        Habit::Numpy(_) => return Err(unknown()),
    };
    Ok(serve_protocol(&mut candidate, io::stdin().lock(), io::stdout())?)
}
