//! The panel: judges rank pitches by written rules, before anything is built.
//!
//! A judge is a set of weights over four dimensions. Scores that a judge does not give by hand follow from the rules in
//! `rules`, which use only the pitch and the findings of the first gates about it.

mod credit;
mod dossier;
#[cfg(test)]
pub(crate) mod fixture;
mod flag;
mod ranking;
mod rules;
mod score;

pub use credit::PanelRecord;
pub use dossier::Dossier;
pub use flag::Flag;
pub(crate) use ranking::USUAL_WEIGHTS;
pub use ranking::{Judgement, Panel, Ranking, Standing};
pub use score::{Dimension, Origin, Score, Scores};
