//! Exit codes, which scripts rely on. The README and `--help` list them too.

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// What was asked for was not reached: by `--require` or `--require-goals`, or of `bench`, `check`, `compile`, `schedules`,
    /// `selftest` or `ledger verify`.
    NotReached = 1,
    /// Something given is malformed or missing, or a place that was named cannot be written.
    BadInput = 2,
    /// Something broke: a disk is full, a driver or a worker fails, the ledger is damaged or held by another program.
    Broken = 3,
    /// Interrupted, or told to end: what shells expect of a program ended by an interrupt, 128 and the signal's number.
    Interrupted = 130,
}
