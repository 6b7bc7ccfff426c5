//! The lab's findings, as text for a terminal, a page of HTML, Markdown and JUnit XML. Pure functions: nothing is printed here.
//!
//! Texts of others are shown with visible escapes (`foreign.rs`). Text has ANSI styles; the caller strips them where the terminal does not support them. It is laid out for the given
//! width in columns; from 70 columns on, no line is longer than the width.
//!
//! ```
//! use gauntlet_report::{duration, visible};
//!
//! assert_eq!(duration(1.25e-3), "1.25 ms");
//! assert_eq!(visible("a name \u{1b}[2J"), r"a name \u{1b}[2J");
//! ```

mod activity;
mod axis;
mod bar;
mod baseline;
mod cases;
mod claims;
mod comparison;
mod counted;
mod diagnosis;
mod doubts;
mod duration;
mod explanation;
mod figure;
mod finding;
mod forecasters;
mod foreign;
mod html;
mod judged;
mod junit;
mod kernel_name;
mod lineage;
mod markdown;
mod narrowing;
mod outline;
mod panel;
mod picture;
mod plain;
mod prospects;
mod rendered;
mod round;
mod several;
mod speedup;
mod story;
mod table;
mod text;
mod timed;
mod timeline;
mod tone;
mod tournament;
mod tuning;
mod validation;
mod verdicts;

pub use axis::Axis;
pub use comparison::{Detail, comparison};
pub use counted::counted;
pub use diagnosis::diagnoses;
pub use duration::duration;
pub use explanation::{Explanation, compared, explained};
pub use finding::finding;
pub use forecasters::forecasters;
pub use foreign::{printed, visible, visible_lines};
pub use html::{CommitTime, badge, commit_times, glance, looks, page};
pub use judged::judged;
pub use junit::UnwritableXml;
pub use narrowing::narrowing;
pub use outline::criteria;
pub use plain::plainly;
pub use prospects::prospects;
pub use rendered::Rendered;
pub use round::round;
pub use several::several;
pub use speedup::times;
pub use story::{message, sentence};
pub use table::{Column, table};
pub use text::{bold, dim, paint, paragraph, usable, widest};
pub use timed::{CaseTime, timed};
pub use timeline::{Trace, timeline_picture, timeline_roles, trace};
pub use tone::Tone;
pub use tuning::{replay, tuned_case, tuning};
pub use validation::validation;
