//! Instructions as they are executed.

use crate::matrix::DEPTH_BYTES;

/// A register of a thread: its index among all of the kernel's.
pub(crate) type Register = u32;

/// Takes up to four operands as the bits of registers, the lowest first, and gives those of the result.
pub(crate) type Function = fn([u64; 4]) -> u64;

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Register),
    Constant(u64),
    Special(Special),
}

/// What the hardware keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Thread,
    Threads,
    Block,
    Blocks,
    Lane,
    RankInCluster,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub base: Operand,
    pub offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    Parameter,
}

/// One instruction, and where it is from.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    /// Executed only if the register is (`true`) or is not (`false`) set.
    pub guard: Option<(Register, bool)>,
    pub operation: Operation,
    /// Byte of the text.
    pub at: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// What concerns the thread alone.
    Own(Own),
    Load {
        space: Space,
        bytes: usize,
        to: Vec<Register>,
        from: Address,
    },
    Store {
        space: Space,
        bytes: usize,
        to: Address,
        from: Vec<Operand>,
    },
    /// Adds to a word of global memory, all at once.
    Add {
        old: Register,
        to: Address,
        value: Operand,
    },
    Exit,
    /// What the thread has stored in shared memory is there for the copy engine and the matrix unit.
    Fence,
    /// The next launch may begin, as far as this block goes.
    LetNextBegin,
    /// Waits for the end of the launch before.
    WaitForBefore,
    Barrier(BarrierOperation),
    /// Waits for so many threads at one of the block's numbered barriers, or all of the block.
    Meet {
        number: Operand,
        threads: Option<Operand>,
        waits: bool,
    },
    ArriveInCluster,
    WaitForCluster,
    /// Where an address lies in the block of another rank.
    MapAddress {
        to: Register,
        from: Operand,
        rank: Operand,
    },
    Copy(CopyOperation),
    /// Executed by a warp at once.
    Warp(WarpOperation),
}

/// What a thread does with its registers.
#[derive(Debug, Clone)]
pub(crate) enum Own {
    Compute {
        function: Function,
        to: Register,
        from: [Operand; 4],
    },
    /// Parts of so many bits each, the lowest first.
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
    /// What changes nothing here: other fences, prefetching, registers given back.
    Nothing,
}

/// Of barriers in shared memory.
#[derive(Debug, Clone)]
pub(crate) enum BarrierOperation {
    Initialise {
        barrier: Address,
        arrivals: Operand,
    },
    Arrive {
        barrier: Address,
        expected: Option<Operand>,
    },
    /// Sets the register if the phase of this parity has ended.
    Test {
        ended: Register,
        barrier: Address,
        parity: Operand,
    },
}

/// Copies that land later, and what waits for them.
#[derive(Debug, Clone)]
pub(crate) enum CopyOperation {
    /// By this thread, filled up with zeros.
    OfThread {
        to: Address,
        from: Address,
        bytes: Operand,
        given: Operand,
    },
    CommitOfThread,
    /// Until all but so many groups are there.
    WaitOfThread {
        left: u64,
    },
    /// Arrives once all that the thread has asked for is there.
    ArriveOfThread {
        barrier: Address,
    },
    Bulk {
        to: Address,
        from: Address,
        bytes: Operand,
        barrier: Address,
    },
    Tensor {
        to: Address,
        map: Operand,
        at: Vec<Operand>,
        barrier: Address,
    },
    ToGlobal {
        to: Address,
        from: Address,
        bytes: Operand,
    },
    CommitToGlobal,
    WaitToGlobal {
        left: u64,
    },
    /// Registers to another block's shared memory.
    Remote {
        to: Address,
        from: Vec<Operand>,
        barrier: Address,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum WarpOperation {
    Synchronise,
    Elect {
        one: Register,
    },
    Any {
        to: Register,
        from: Operand,
    },
    Shuffle {
        kind: Shuffle,
        to: Register,
        from: Operand,
        lane: Operand,
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
    /// m16n8: sums, the fragments of both operands, sums before.
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Index,
    Butterfly,
}

/// What matrices consist of.
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

    /// Of a product.
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
    /// Whether the second operand lies with its columns beside one another.
    pub right_transposed: bool,
    /// Not set: the sums begin anew.
    pub add: Operand,
}

#[derive(Debug, Clone)]
pub(crate) enum Left {
    Fragments(Vec<Operand>),
    Descriptor(Operand),
}
