//! What a call finds in the cache.

/// What a call may find in the last-level cache because of the call before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cached {
    /// Nothing: all that it reads and writes is moved from or to memory.
    Nothing,
    /// Only the result's memory, which is written again before the cache has evicted it: operands differ each time.
    Results,
    /// The result's memory and the operands.
    Everything,
}
