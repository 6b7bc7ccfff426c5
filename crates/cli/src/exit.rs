//! Exit codes, which scripts rely on.

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// What was asked for with `--require`, or of `check`, `compile`, `schedules`, `selftest` or `ledger verify`, was not reached.
    NotReached = 1,
    /// Something given is malformed or missing.
    BadInput = 2,
    /// Something broke: a disk, a driver, the ledger, this program.
    Broken = 3,
}
