//! Exit codes, which scripts rely on. `docs/reference/commands.md` and `--help` list them too.

/// The result of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command did its task, and all requirements are shown to be met by evidence.
    Done = 0,
    /// Evidence shows that a requirement is not met: one of `--require` or `--require-goals`, or what `compare`, `check`, `audit`, `compile`,
    /// `bisect`, `watch`, `schedules`, `selftest` and `ledger verify` require by themselves.
    NotReached = 1,
    /// Something given is malformed or missing, or a place that was named cannot be written.
    BadInput = 2,
    /// Something broke: a disk is full, a driver or a worker fails, the ledger is damaged or held by another program.
    Broken = 3,
    /// No evidence decides the requirement: a verdict is inconclusive, aborted, blocked or void, nothing
    /// was compared, a bisection ends with a range, or the machine was too busy for goals to count.
    Undecided = 4,
    /// Interrupted or terminated: 128 plus the signal's number, as shells expect of a program ended by an interrupt.
    Interrupted = 130,
}
