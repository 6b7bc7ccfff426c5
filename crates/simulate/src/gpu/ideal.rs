//! Mechanisms made ideal, one after another.

/// What is thought away. Each is as in the part of the breakdown that bears its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ideal {
    /// No time from the first block to all, and none to the end of the kernel.
    pub(super) ramp: bool,
    /// The kernel ends with its last product.
    pub(super) tail: bool,
    /// Results leave in no time.
    pub(super) epilogue: bool,
    /// Barriers and signals take no time.
    pub(super) barriers: bool,
    /// Operands are converted, and exponentials taken, in no time.
    pub(super) conversion: bool,
    /// Memory and second-level cache serve everyone at once.
    pub(super) contention: bool,
    /// A tile's first operands are there at once, and its last product has no latency.
    pub(super) fill: bool,
    /// Copies take no time, nor does reading operands from shared memory.
    pub(super) copy: bool,
}
