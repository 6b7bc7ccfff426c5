//! Idealised mechanisms.

/// The mechanisms that cost no time. Each corresponds to the part of the breakdown with the same name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ideal {
    /// No time from the first block's start to the last one's, nor at the end of the kernel.
    pub ramp: bool,
    /// The kernel ends with its last product.
    pub tail: bool,
    /// Writing results takes no time.
    pub epilogue: bool,
    /// Barriers and signals take no time.
    pub barriers: bool,
    /// Converting operands and computing exponentials take no time.
    pub conversion: bool,
    /// Memory and second-level cache serve all requests immediately.
    pub contention: bool,
    /// A tile's first operands are available immediately, and its last product has no latency.
    pub fill: bool,
    /// Copies, and reading operands from shared memory, take no time.
    pub copy: bool,
}
