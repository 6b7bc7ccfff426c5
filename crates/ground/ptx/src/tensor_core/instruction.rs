//! Decoded instructions of the tensor cores.

use crate::instruction::{Address, Operand, Register};

/// How many blocks an instruction concerns (`.cta_group`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    One,
    /// A block and that of its cluster whose rank differs in the last bit.
    Pair,
}

/// Instructions that one thread executes.
#[derive(Debug, Clone)]
pub(crate) enum TensorOperation {
    Multiply(Group, Box<Multiply>),
    /// Copies from shared to tensor memory.
    Copy {
        group: Group,
        shape: CopyShape,
        to: Address,
        from: Operand,
    },
    /// Arrives at a barrier once all that the thread has issued before has ended.
    Commit {
        group: Group,
        barrier: Address,
        /// The ranks of the blocks at whose barriers it arrives; without it, only at that of the address.
        multicast: Option<Operand>,
    },
    FenceBefore,
    FenceAfter,
}

/// A block-scaled product of e2m1 operands in shared memory, with scales in tensor memory.
#[derive(Debug, Clone)]
pub(crate) struct Multiply {
    pub sums: Address,
    /// The descriptors of both operands.
    pub operands: [Operand; 2],
    /// The instruction descriptor.
    pub description: Operand,
    pub scales: [Address; 2],
    /// If not set, the sums start from zero.
    pub add: Operand,
}

/// What a copy writes to tensor memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyShape {
    /// Rows in shared memory, one a lane. With 32, each quarter of the lanes gets all of them.
    pub rows: usize,
    /// Columns of four bytes.
    pub columns: usize,
}

/// Instructions that a warp executes as a whole.
#[derive(Debug, Clone)]
pub(crate) enum TensorWarpOperation {
    /// Allocates columns of tensor memory and stores their address to shared memory.
    Allocate {
        group: Group,
        to: Address,
        columns: Operand,
    },
    Free {
        group: Group,
        address: Operand,
        columns: Operand,
    },
    /// Gives up the right to allocate.
    Relinquish(Group),
    Load {
        to: Vec<Register>,
        from: Address,
    },
    Store {
        to: Address,
        from: Vec<Operand>,
    },
    /// Ends the warp's loads, then executes the moves of their results that stand before it again.
    WaitForLoads {
        moves: Vec<usize>,
    },
    WaitForStores,
}

impl TensorOperation {
    pub fn group(&self) -> Option<Group> {
        match self {
            Self::Multiply(group, _) | Self::Copy { group, .. } | Self::Commit { group, .. } => Some(*group),
            Self::FenceBefore | Self::FenceAfter => None,
        }
    }
}

impl TensorWarpOperation {
    pub fn group(&self) -> Option<Group> {
        match self {
            Self::Allocate { group, .. } | Self::Free { group, .. } | Self::Relinquish(group) => Some(*group),
            Self::Load { .. } | Self::Store { .. } | Self::WaitForLoads { .. } | Self::WaitForStores => None,
        }
    }
}
