//! Decoded instructions.

use crate::matrix::DEPTH_BYTES;
use crate::tensor_core::instruction::{TensorOperation, TensorWarpOperation};
use crate::tensor_map::MapField;

/// A register of a thread: its index among all registers of the kernel.
pub(crate) type Register = u32;

/// Maps the bits of up to four operand registers (values in the low bits) to the bits of the result.
pub(crate) type Function = fn([u64; 4]) -> u64;

/// A source operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Register),
    Constant(u64),
    Special(Special),
    /// The address of a variable in shared memory, without the rank of the thread's block.
    Shared(u32),
}

/// Special registers, which the hardware maintains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    ThreadX,
    ThreadY,
    ThreadZ,
    ThreadsX,
    ThreadsY,
    ThreadsZ,
    BlockX,
    BlockY,
    BlockZ,
    BlocksX,
    BlocksY,
    BlocksZ,
    Lane,
    Warp,
    RankInCluster,
    BlocksInCluster,
    Cluster,
    Clusters,
    Clock,
}

/// The number of special registers.
pub(crate) const SPECIALS: usize = 19;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub base: Operand,
    pub offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    /// A thread's own.
    Local,
    Parameter,
    /// Any of them, decided by the address.
    Generic,
}

/// Whose accesses a fence or an atomic access orders: those of the block, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Block,
    Device,
}

/// How an access is ordered with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Whether it may meet others that are atomic too.
    pub is_atomic: bool,
    pub is_volatile: bool,
    pub acquires: bool,
    pub releases: bool,
    pub scope: Scope,
}

/// An instruction and its position in the text.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    /// Executed only if the register is set (`true`) or not set (`false`).
    pub guard: Option<(Register, bool)>,
    pub operation: Operation,
    /// Byte offset in the text.
    pub at: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// Concerns only the thread itself.
    Own(Own),
    Load {
        space: Space,
        bytes: usize,
        /// Whether the sign fills the rest of 64 bits.
        extends: bool,
        order: Order,
        to: Vec<Register>,
        from: Address,
    },
    Store {
        space: Space,
        bytes: usize,
        order: Order,
        to: Address,
        from: Vec<Operand>,
    },
    /// Changes a word of memory atomically: the function gives the new value from the old one and the operands.
    Change {
        space: Space,
        bytes: usize,
        order: Order,
        function: Function,
        /// Whether the new value depends on the old one.
        reads: bool,
        old: Register,
        to: Address,
        from: [Operand; 2],
    },
    Exit,
    /// Ends the launch with an error.
    Trap,
    /// Makes the thread's stores to shared memory visible to the copy engine and the matrix unit.
    Fence,
    /// Orders the thread's accesses to memory for others of a scope.
    OrderMemory {
        scope: Scope,
        /// Whether all such fences are in one order.
        is_sequential: bool,
    },
    /// Lets the next launch begin, as far as this block is concerned.
    LetNextBegin,
    /// Waits for the previous launch to end.
    WaitForBefore,
    Barrier(BarrierOperation),
    /// Waits for a number of threads, or for all of the block, at one of the block's numbered barriers.
    Meet {
        number: Operand,
        threads: Option<Operand>,
        waits: bool,
        /// Whether all lanes of a warp have to execute it together.
        is_aligned: bool,
        vote: Option<BarrierVote>,
    },
    ArriveInCluster {
        /// Whether it orders memory.
        releases: bool,
    },
    WaitForCluster,
    /// Maps a shared-memory address to the block of another rank.
    MapAddress {
        to: Register,
        from: Operand,
        rank: Operand,
    },
    Copy(CopyOperation),
    Map(MapOperation),
    Tensor(TensorOperation),
    /// Executed by a warp as a whole.
    Warp(WarpOperation),
}

/// Operations on a thread's own registers.
#[derive(Debug, Clone)]
pub(crate) enum Own {
    Compute {
        function: Function,
        to: Register,
        from: [Operand; 4],
    },
    /// Joins parts of equal width, the lowest first.
    Join {
        to: Register,
        from: Vec<Operand>,
        bits: u32,
    },
    Split {
        to: Vec<Register>,
        from: Operand,
        bits: u32,
    },
    Branch(usize),
    /// Instructions without effect here: fences of other proxies, prefetches, releases of registers.
    Nothing,
}

/// What threads that wait at a numbered barrier are told of the predicates of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BarrierVote {
    pub kind: VoteKind,
    pub to: Register,
    pub from: Operand,
    pub is_negated: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum VoteKind {
    All,
    Any,
    Count,
}

/// Operations on barriers in shared memory.
#[derive(Debug, Clone)]
pub(crate) enum BarrierOperation {
    Initialise {
        barrier: Address,
        arrivals: Operand,
    },
    /// Arrives at a barrier of any block of the cluster, after announcing bytes.
    Arrive {
        barrier: Address,
        expected: Option<Operand>,
        count: Operand,
    },
    /// Announces bytes without an arrival.
    Expect {
        barrier: Address,
        expected: Operand,
    },
    Invalidate {
        barrier: Address,
    },
    /// Sets the register if the phase of this parity has ended.
    Test {
        ended: Register,
        barrier: Address,
        parity: Operand,
    },
}

/// Operations that start asynchronous copies and wait for them.
#[derive(Debug, Clone)]
pub(crate) enum CopyOperation {
    /// A copy by this thread, padded with zeros.
    OfThread {
        to: Address,
        from: Address,
        bytes: Operand,
        given: Operand,
    },
    CommitOfThread,
    /// Waits for all copies of the thread, also those of no group.
    WaitOfThreadForAll,
    /// Waits until at most `left` groups are pending.
    WaitOfThread {
        left: u64,
    },
    /// Arrives at a barrier once all copies that the thread has requested have landed.
    ArriveOfThread {
        barrier: Address,
    },
    Bulk {
        from: Address,
        bytes: Operand,
        target: Target,
    },
    Tensor {
        map: Operand,
        at: Vec<Operand>,
        target: Target,
    },
    ToGlobal {
        to: Address,
        from: Address,
        bytes: Operand,
    },
    TensorToGlobal {
        map: Operand,
        at: Vec<Operand>,
        from: Address,
    },
    CommitToGlobal,
    WaitToGlobal {
        left: u64,
    },
    /// Stores registers to another block's shared memory.
    Remote {
        to: Address,
        from: Vec<Operand>,
        barrier: Address,
    },
}

/// Operations of one thread on tensor maps.
#[derive(Debug, Clone)]
pub(crate) enum MapOperation {
    Replace {
        space: Space,
        map: Address,
        field: MapField,
        value: Operand,
    },
    /// Makes the thread's changes visible to threads that acquire them later.
    Release,
    /// Makes released changes of a map visible to the copies that the thread requests.
    Acquire { map: Address },
}

/// Where a bulk copy goes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub to: Address,
    pub barrier: Address,
    /// The ranks of the blocks that get the same copy; without it, only the block of the address.
    pub multicast: Option<Operand>,
    /// Whether the barrier may be that of the other block of a pair (`.cta_group::2`).
    pub pairs: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum WarpOperation {
    /// Waits for the warp's matrix unit or for all lanes.
    Synchronise,
    /// Waits for the lanes of a mask.
    SynchroniseLanes {
        mask: Operand,
    },
    /// Elects one of the lanes of a mask.
    Elect {
        /// Gets the number of the elected lane.
        lane: Register,
        /// Set in the elected lane.
        one: Register,
        mask: Operand,
    },
    Vote {
        kind: Vote,
        to: Register,
        from: Operand,
        mask: Operand,
    },
    Shuffle {
        kind: Shuffle,
        to: Register,
        /// Set if the source lane is in range.
        is_in_range: Option<Register>,
        from: Operand,
        lane: Operand,
        /// The last lane, and the mask of segments.
        clamp: Operand,
        mask: Operand,
    },
    /// Combines the values of the lanes of a mask.
    Reduce {
        function: Function,
        to: Register,
        from: Operand,
        mask: Operand,
    },
    /// Finds the lanes of a mask that have the same value: of each lane, or whether all have.
    Match {
        all: bool,
        to: Register,
        /// Set if all have.
        same: Option<Register>,
        from: Operand,
        mask: Operand,
    },
    LoadMatrices {
        to: Vec<Register>,
        from: Address,
        transposed: bool,
    },
    StoreMatrices {
        to: Address,
        from: Vec<Operand>,
        transposed: bool,
    },
    /// An m16n8 product: result, fragments of both operands, previous sums.
    Multiply {
        element: Element,
        sums: Vec<Register>,
        left: Vec<Operand>,
        right: Vec<Operand>,
        before: Vec<Operand>,
    },
    MultiplyGroup(Box<GroupProduct>),
    CommitProducts,
    WaitForProducts {
        left: u64,
    },
    /// Copies a tensor map from shared memory to global memory and releases it.
    PublishMap {
        to: Address,
        from: Address,
    },
    Tensor(TensorWarpOperation),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Index,
    Butterfly,
    Up,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    Any,
    All,
    Uniform,
    Ballot,
}

impl WarpOperation {
    /// The mask of the lanes that execute it; none if it is all of them.
    pub fn mask(&self) -> Option<Operand> {
        match self {
            Self::SynchroniseLanes { mask }
            | Self::Elect { mask, .. }
            | Self::Vote { mask, .. }
            | Self::Shuffle { mask, .. }
            | Self::Reduce { mask, .. }
            | Self::Match { mask, .. } => Some(*mask),
            _ => None,
        }
    }
}

/// The element types of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    Bf16,
    E4m3,
}

impl Element {
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::E4m3 => 1,
        }
    }

    /// The depth (K) of one product.
    pub fn depth(self) -> usize {
        DEPTH_BYTES / self.bytes()
    }
}

/// A product of a warp group: `sums` += `left` · `right`.
#[derive(Debug, Clone)]
pub(crate) struct GroupProduct {
    pub element: Element,
    pub columns: usize,
    pub sums: Vec<Register>,
    pub left: Left,
    /// The descriptor of the second operand.
    pub right: Operand,
    /// Whether the columns of the second operand are contiguous in memory.
    pub right_transposed: bool,
    /// If not set, the sums start from zero.
    pub add: Operand,
}

#[derive(Debug, Clone)]
pub(crate) enum Left {
    Fragments(Vec<Operand>),
    Descriptor(Operand),
}
