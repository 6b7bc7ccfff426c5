//! The panel: judges rank pitches by written rules, before anything is built.
//!
//! A judge is a set of weights over four dimensions. What a judge does not score by hand follows from the
//! rules in `rules`, which look only at what the pitch says and what the first gates found out about it.

mod dossier;
#[cfg(test)]
pub(crate) mod fixture;
mod flag;
mod ranking;
mod rules;
mod score;

pub use dossier::Dossier;
pub use flag::Flag;
pub use ranking::{Judgement, Panel, Ranking, Standing};
pub use score::{Dimension, Origin, Score, Scores};
