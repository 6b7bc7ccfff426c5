//! The lab examines itself: how often its verdicts err where the truth is known, and whether it catches
//! candidates that cheat.

pub mod characteristics;
pub mod cheats;
