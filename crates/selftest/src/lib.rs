//! The lab's self-test: how often its verdicts are wrong when the truth is known, and whether it catches candidates
//! that cheat.

pub mod characteristics;
pub mod cheats;
