//! Forecasts: what pitches stated before anything was measured, the outcomes, the resulting accuracy of their authors,
//! and what is worth trying next.
//!
//! Data flow: a [`Forecast`] is written into the ledger with its verdict → an [`Answer`] → [`Forecasts`], each counted
//! once → [`Forecasters`], the scores for people to read, and [`TrackRecord`], the same in the form that the panel and
//! [`Roi`] use.

mod answers;
mod forecasters;
mod prospects;
mod record;
mod roi;
mod stated;

pub use answers::{Answer, Forecasts};
pub use forecasters::{Forecaster, Forecasters, OddsScores, SpeedupScores};
pub use prospects::{Prospect, Return, prospects, returns};
pub use record::TrackRecord;
pub use roi::Roi;
pub(crate) use roi::{Grounds, SHORTEST_HOURS, expectation};
pub use stated::{Forecast, Scope, UntriedFallback};

#[cfg(test)]
mod tests;
