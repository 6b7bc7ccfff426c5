//! The corpus: every cheat with its description, its possible gain, and the gate that must catch it.

mod deferring;
mod disturbing;
mod in_the_host;
mod kernels;
mod lying;
mod miscomputing;
mod telling;
mod undefended;

use std::io;

use gauntlet_judge::Verdict;

pub use self::kernels::kernels;
use super::work::{Honest, Trick};
use super::{Cheat, End, Kind, Worker, processes};

/// All cheats, by kind, and the honest candidates after them.
pub fn corpus() -> Vec<Cheat> {
    let mut corpus = miscomputing::cheats();
    corpus.extend(lying::cheats());
    corpus.extend(deferring::cheats());
    corpus.extend(disturbing::cheats());
    corpus.extend(telling::cheats());
    corpus.extend(undefended::cheats());
    corpus.extend(honest());
    corpus
}

/// Honest candidates: a gate that stops them is too strict.
fn honest() -> Vec<Cheat> {
    let row = |name, story, worker| Cheat {
        name,
        kind: Kind::Honest,
        story,
        gain: "nothing",
        end: End::Measured,
        held_by: None,
        worker: Worker::Trick(worker),
    };
    vec![
        row(
            "honest",
            "computes what it is asked for, when it is asked",
            || Box::new(Honest),
        ),
        row(
            "honest-with-helpers",
            "the same, with threads and a child process of its own that sleep",
            || {
                Box::new(processes::AtBuild::new(
                    "its helpers cannot be started",
                    processes::keep_a_helper,
                ))
            },
        ),
    ]
}

impl Cheat {
    /// Marks a cheat that only this safeguard can stop.
    fn held_by(self, safeguard: &'static str) -> Self {
        Self {
            held_by: Some(safeguard),
            ..self
        }
    }
}

/// The message of a cheat that was kept from cheating.
const KEPT: &str = "kept from cheating";

/// A cheat without its expected end, to be completed by [`Row::caught`].
struct Row {
    name: &'static str,
    kind: Kind,
    story: &'static str,
    gain: &'static str,
    worker: Worker,
}

impl Row {
    /// A cheat that modifies a step of the honest kernel.
    fn trick(kind: Kind, name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Self {
        Self::new(kind, name, story, Worker::Trick(trick))
    }

    /// A cheat that is a separate program.
    fn program(name: &'static str, story: &'static str, program: fn() -> io::Result<()>) -> Self {
        Self::new(Kind::Protocol, name, story, Worker::Program(program))
    }

    fn new(kind: Kind, name: &'static str, story: &'static str, worker: Worker) -> Self {
        Self {
            name,
            kind,
            story,
            gain: "",
            worker,
        }
    }

    fn gains(self, gain: &'static str) -> Self {
        Self { gain, ..self }
    }

    /// Expects this gate to stop the cheat with this verdict, for a reason that contains one of these texts.
    fn caught(self, gate: &'static str, verdict: Verdict, words: &'static [&'static str]) -> Cheat {
        self.ends(End::Caught { gate, verdict, words })
    }

    /// Expects the operating system, or the watch over both sides, to keep the cheat from it.
    fn held(self, words: &'static [&'static str]) -> Cheat {
        self.ends(End::Held { words })
    }

    /// Expects a measurement, or a void one, and no gain.
    fn gains_nothing(self) -> Cheat {
        self.ends(End::NoGain)
    }

    fn ends(self, end: End) -> Cheat {
        let Self {
            name,
            kind,
            story,
            gain,
            worker,
        } = self;
        Cheat {
            name,
            kind,
            story,
            gain,
            end,
            held_by: None,
            worker,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gauntlet_gates::GATES;
    use gauntlet_worker::safeguards;

    use super::super::kernels::On;
    use super::*;

    /// Workers and kernels.
    fn all() -> Vec<Cheat> {
        let mut all = corpus();
        all.extend(kernels(On::Cuda));
        all
    }

    #[test]
    fn names_are_their_own_and_gates_are_gates() {
        let corpus = all();
        let names: BTreeSet<_> = corpus.iter().map(|cheat| cheat.name).collect();
        assert_eq!(names.len(), corpus.len());
        for cheat in &corpus {
            assert!(
                !cheat.gain.is_empty() && !cheat.story.is_empty(),
                "{}",
                cheat.name
            );
            if let End::Caught { gate, .. } = cheat.end {
                let is_gate = |name: &str| GATES.iter().any(|known| known.name() == name);
                assert!(gate.split(" or ").all(is_gate), "{}", cheat.name);
            }
            if let End::Caught { words, .. } | End::Held { words } = cheat.end {
                let any = words.iter().any(|words| words.is_empty());
                assert!(!words.is_empty() && !any, "{}: any reason would do", cheat.name);
            }
            if let Some(safeguard) = cheat.held_by {
                let known = safeguards().iter().any(|known| known.what == safeguard);
                assert!(known || !cfg!(target_os = "linux"), "{}", cheat.name);
            }
            let of_kind = match cheat.end {
                End::Measured => cheat.kind == Kind::Honest,
                End::Undefended { .. } => cheat.kind == Kind::Undefended,
                _ => !matches!(cheat.kind, Kind::Honest | Kind::Undefended),
            };
            assert!(of_kind, "{}", cheat.name);
        }
    }

    /// The documentation's row of a candidate.
    fn row(cheat: &Cheat) -> String {
        let mark = if cheat.held_by.is_some() { "¹" } else { "" };
        let end = match cheat.end {
            End::Caught { gate, verdict, .. } => format!("{gate} | {verdict}"),
            End::Held { .. } => "the system or the watch | stopped".to_owned(),
            End::NoGain => "faster | no gain".to_owned(),
            End::Undefended { size } => size.to_owned(),
            End::Measured => "measured".to_owned(),
        };
        format!("| {}{mark} | {} | {end} |", cheat.name, cheat.story)
    }

    #[test]
    fn the_documentation_has_every_candidate_under_its_kind() {
        let documentation = include_str!("../../../../../docs/explanation/cheats.md");
        let on_cpus = kernels(On::Cpu).into_iter();
        let on_cpus = on_cpus.filter(|cheat| matches!(cheat.kind, Kind::Deferred | Kind::Undefended));
        for corpus in [corpus(), kernels(On::Cuda), on_cpus.collect()] {
            for kind in Kind::ALL {
                let rows = corpus.iter().filter(|cheat| cheat.kind == kind).map(row);
                let rows: String = rows.map(|row| row + "\n").collect();
                assert!(
                    documentation.contains(&rows),
                    "docs/explanation/cheats.md lacks these rows:\n{rows}"
                );
            }
        }
    }
}
