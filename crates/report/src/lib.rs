//! The lab's findings, as text for a terminal and as a page of HTML. Pure functions: nothing is printed here.
//!
//! Text has ANSI styles; the caller strips them where the terminal does not support them. It is laid out for the given
//! width in columns; from 70 columns on, no line is longer than the width.

mod axis;
mod bar;
mod baseline;
mod calibration;
mod cases;
mod claims;
mod comparison;
mod diagnosis;
mod doubts;
mod duration;
mod explanation;
mod figure;
mod finding;
mod forecasters;
mod html;
mod judged;
mod narrowing;
mod outline;
mod panel;
mod picture;
mod plain;
mod plan;
mod power;
mod prospects;
mod round;
mod selftest;
mod speedup;
mod table;
mod text;
mod timeline;
mod tone;
mod tournament;
mod tuning;
mod validation;
mod verdicts;

pub use axis::Axis;
pub use calibration::calibration;
pub use comparison::comparison;
pub use diagnosis::diagnoses;
pub use duration::duration;
pub use explanation::{Explanation, GreatestGain, compared, explained};
pub use finding::finding;
pub use forecasters::forecasters;
pub use html::{ComparisonPage, html};
pub use judged::judged;
pub use narrowing::narrowing;
pub use outline::criteria;
pub use plain::plainly;
pub use power::power;
pub use prospects::prospects;
pub use round::round;
pub use selftest::characteristics;
pub use speedup::{percent, percent_interval, times};
pub use table::{Column, table};
pub use timeline::{Trace, timeline_picture, timeline_roles, trace};
pub use tone::Tone;
pub use tournament::tournament;
pub use tuning::{tuned_case, tuning};
pub use validation::validation;
