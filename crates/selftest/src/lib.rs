//! The lab's self-test: how often its verdicts are wrong when the truth is known, whether it catches candidates
//! that cheat, whether it leaves odd but honest ones alone, and what it finds within a given time.

pub mod burner;
pub mod characteristics;
pub mod cheats;
pub mod honest;
pub mod power;
