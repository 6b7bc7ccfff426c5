//! Candidates that cheat, each an ordinary worker, and the gate that must catch each of them.
//!
//! Each cheat plays its own small round as a pitch against the honest CPU worker ([`run`]). It is caught when a gate
//! stops it because of its cheat. A cheat that is measured and judged like an honest candidate goes unnoticed. It
//! counts as missed if the verdict favours it, or if noise cannot explain why it went unnoticed. None does lasting harm
//! if it is missed: each ends by itself.

mod ahead;
mod bits;
mod claims;
mod corpus;
mod disturbances;
mod kernels;
mod lesser;
mod meddling;
mod outcome;
mod parts;
mod picks;
mod processes;
mod protocol;
mod quiet;
mod results;
mod seeds;
mod splits;
mod tells;
mod thefts;
mod times;
mod trial;
pub(crate) mod work;

use std::io;

use gauntlet_judge::Verdict;
use gauntlet_judge::gates::{Faster, Gate};
use gauntlet_worker::serve as serve_protocol;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::corpus::{corpus, kernels as corpus_of_kernels};
use self::kernels::Kernel;
pub use self::kernels::On;
pub use self::outcome::Outcome;
pub use self::quiet::Quiet;
pub use self::trial::{CheatReport, Settings, TrialError, run};
pub(crate) use self::trial::{MEMORY, parameters, suite};
use self::work::{Candidate, Trick};
use crate::ServeError;

/// A dishonest candidate, or an honest one that must not be taken for dishonest.
#[derive(Debug, Clone)]
pub struct Cheat {
    /// The name for `gauntlet-selftest worker cheat`.
    pub name: &'static str,
    /// The kind of cheat.
    pub kind: Kind,
    /// What it does, in a sentence.
    pub story: &'static str,
    /// What it would gain, in a sentence.
    pub gain: &'static str,
    /// The expected end.
    pub end: End,
    /// The safeguard that must be active for this end, by its name in `gauntlet doctor`; `None` for most cheats.
    pub held_by: Option<&'static str>,
    worker: Worker,
}

/// Kinds of cheats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Wrong results.
    Results,
    /// Wrong times, or work outside of timed calls.
    Times,
    /// Less work in some calls than in others, or a part of it where no call is timed.
    Deferred,
    /// Wrong answers.
    Protocol,
    /// Other processes, files and the network.
    Processes,
    /// Not defended against.
    Undefended,
    /// No cheat.
    Honest,
}

impl Kind {
    /// All kinds, in the order of the corpus.
    pub const ALL: [Self; 7] = [
        Self::Results,
        Self::Times,
        Self::Deferred,
        Self::Protocol,
        Self::Processes,
        Self::Undefended,
        Self::Honest,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Results => "results",
            Self::Times => "times",
            Self::Deferred => "deferred",
            Self::Protocol => "protocol",
            Self::Processes => "processes",
            Self::Undefended => "undefended",
            Self::Honest => "honest",
        }
    }
}

impl Cheat {
    /// Whether its end depends on measured times, which other programs on the machine disturb.
    pub fn needs_quiet(&self) -> bool {
        match self.end {
            // Draws decide where it is caught: all draws of a comparison that ends early may miss it.
            End::Caught { gate, .. } if gate != Faster.name() && gate.contains(Faster.name()) => true,
            End::Caught { gate, verdict, .. } => gate == Faster.name() && verdict == Verdict::Blocked,
            // Without a safeguard of the system, only the watch during the comparison notices it.
            End::Held { .. } => self.held_by.is_none(),
            End::NoGain | End::Undefended { .. } | End::Measured => true,
        }
    }
}

/// The expected end of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Stopped by a gate.
    Caught {
        /// The gate's name; ` or ` stands between alternatives, where chance decides which one looks first.
        gate: &'static str,
        /// With this verdict.
        verdict: Verdict,
        /// Texts that name the cheat; the reason must contain one of them.
        words: &'static [&'static str],
    },
    /// Kept from it by the operating system, or found out by the watch over both sides: stopped by whichever gate it
    /// tries it in.
    Held {
        /// Texts that name the cheat; the reason must contain one of them.
        words: &'static [&'static str],
    },
    /// Measured or void, and without gain: its work is charged where it is done, or its chance never comes.
    NoGain,
    /// Not defended against: any verdict is accepted.
    Undefended {
        /// How much it can gain.
        size: &'static str,
    },
    /// Measured; any verdict from the times is accepted.
    Measured,
}

/// The implementation of a cheat.
#[derive(Debug, Clone, Copy)]
enum Worker {
    /// The honest kernel with a modified step.
    Trick(fn() -> Box<dyn Trick>),
    /// The honest kernel, with one text in its answers replaced by another.
    Answers(&'static str, &'static str),
    /// A separate program.
    Program(fn() -> io::Result<()>),
    /// A kernel in a file, which workers of `gauntlet` call.
    Kernel(Kernel),
}

/// Serves a cheat on standard input and output until standard input ends.
pub fn serve(name: &str) -> Result<(), ServeError> {
    match name {
        "burn" => return Ok(processes::burn()?),
        "sleep" => return Ok(processes::sleep()?),
        crate::burner::NAME => return Ok(crate::burner::serve()?),
        _ => {}
    }
    let cheat = corpus().into_iter().find(|cheat| cheat.name == name);
    let cheat = cheat.ok_or_else(|| ServeError::Unknown {
        what: "cheat",
        name: name.to_owned(),
    })?;
    let (input, output) = (io::stdin().lock(), io::stdout());
    match cheat.worker {
        Worker::Trick(trick) => serve_protocol(&mut Candidate::new(trick())?, input, output)?,
        Worker::Answers(old, new) => {
            let to = protocol::Replaces {
                to: output,
                old,
                new,
                line: Vec::new(),
            };
            serve_protocol(&mut Candidate::new(Box::new(work::Honest))?, input, to)?;
        }
        Worker::Program(program) => {
            drop(input);
            program()?;
        }
        // None of them is in the corpus of workers.
        Worker::Kernel(_) => {}
    }
    Ok(())
}
