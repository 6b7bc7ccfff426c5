//! A schedule written out: what each role of one block does, in which order, and what it waits for.
//!
//! One text for several readers: the simulator gives each operation its time, the prover explores every interleaving
//! of the roles, and counts add up what is moved and multiplied. A program says nothing about sizes; readers take
//! those from the problem and the schedule.
//!
//! A loop over steps has an index, and operations name the step they are about by its distance `ahead`. A buffer
//! filled once a step uses the slot of the step's number modulo its slots, counted on over all tiles of the block; a
//! buffer filled once a tile, that of the tile's number.
//!
//! What a block does for one tile depends on tile, stages, epilogue, roles and swap-AB. Order, lookup, setup, split-K
//! and cluster decide which tiles it is given, and how many; where several follow one another, their sums may have two
//! slots.

/// What one block of threads does for the tiles it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileProgram {
    /// Memory that the roles, or asynchronous engines, share.
    pub buffers: Vec<Buffer>,
    /// Who runs, all at the same time.
    pub roles: Vec<Role>,
}

/// Memory with one or more slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// What lies in it.
    pub contents: Contents,
    /// How many times it is there.
    pub slots: usize,
    /// How often it is filled.
    pub filled: Filled,
    /// What keeps its readers and writers apart.
    pub guard: Guard,
}

/// What lies in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contents {
    /// Both operands of a step as they lie in memory (K and V for attention).
    Operands,
    /// An operand of a step as it is multiplied, where that differs from how it lies in memory.
    Converted,
    /// The queries of a tile.
    Queries,
    /// Scores of a step, on their way from one product to the other. A softmax may put the probabilities in their
    /// place: each warp then overwrites rows that it alone reads.
    Scores,
    /// Probabilities of a step, where they do not take the place of the scores.
    Probabilities,
    /// Sums that live outside registers (tensor memory).
    Accumulators,
    /// Results on their way out.
    Staging,
}

/// How often a buffer is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filled {
    /// Once a step.
    Step,
    /// Once a tile.
    Tile,
}

/// What keeps the readers and writers of a buffer apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guard {
    /// A barrier a slot that says it is full, and one that says it is empty.
    Barriers,
    /// Nothing of its own: the program waits for its copies and synchronises the block.
    Block,
}

/// A number of warps that run the same statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// What it is called in pictures and messages.
    pub name: &'static str,
    /// Warps (threads of a CPU).
    pub warps: usize,
    /// What each of them does.
    pub body: Vec<Statement>,
}

/// Part of a role's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// The body again and again.
    Repeat(Extent, Vec<Statement>),
    /// The body where the condition holds.
    If(Condition, Vec<Statement>),
    /// One operation.
    Do(Action),
}

impl From<Action> for Statement {
    fn from(action: Action) -> Self {
        Self::Do(action)
    }
}

/// How often a body is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extent {
    /// Once for each tile of the block.
    Tiles,
    /// Once for each step of the tile; the index of the loop is the step.
    Steps,
    /// Once for each of the first steps of the tile, at most so many; the index of the loop is the step.
    FirstSteps(usize),
    /// Exactly so often, however few steps the tile has; the index of the loop is the step.
    Times(usize),
    /// Once for each run of so many consecutive steps of the tile, the last perhaps shorter.
    Batches(usize),
    /// Inside of [`Extent::Batches`], once for each step of the batch; the index of the loop is the step.
    StepsOfBatch,
}

/// When a body is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The tile has a step so far ahead of the present one.
    HasStepAhead(usize),
    /// In the role's first warp only: it diverges.
    FirstWarp,
}

/// The number of a buffer in [`TileProgram::buffers`].
pub type BufferIndex = usize;

/// One thing a warp does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Waits until the slot of the step so far ahead is empty.
    Acquire {
        /// Which buffer.
        buffer: BufferIndex,
        /// Steps ahead.
        ahead: usize,
    },
    /// Starts to copy from memory into the slot of the step so far ahead.
    Load {
        /// Which buffer.
        buffer: BufferIndex,
        /// Steps ahead.
        ahead: usize,
        /// By what.
        copy: CopyMethod,
    },
    /// Closes the group of all asynchronous copies that this warp has started since the last group (`cp.async`).
    CommitCopies,
    /// Waits until at most so many of this warp's groups of copies are on their way (`cp.async.wait_group`).
    AwaitCopies {
        /// Groups that may still be on their way.
        outstanding: usize,
    },
    /// Asks the caches for the bytes of the step so far ahead.
    Prefetch {
        /// Steps ahead.
        ahead: usize,
    },
    /// Says that the slot of the present step or tile is full. (A bulk copy says so of itself.)
    Publish {
        /// Which buffer.
        buffer: BufferIndex,
        /// When it is said; the warp goes on at once.
        when: Signal,
    },
    /// Waits until the slot of the present step or tile is full.
    Await {
        /// Which buffer.
        buffer: BufferIndex,
    },
    /// Says that the slot of the present step or tile is empty.
    Release {
        /// Which buffer.
        buffer: BufferIndex,
        /// When it is said; the warp goes on at once.
        when: Signal,
    },
    /// Converts operands of the present step to the format that is multiplied.
    Convert {
        /// From where.
        from: BufferIndex,
        /// To where; registers if none.
        to: Option<BufferIndex>,
    },
    /// Multiplies the present step. The product of the scores also reads the queries, that of the values the
    /// probabilities, where there is a buffer for them.
    Multiply {
        /// Which product.
        product: Product,
        /// The buffer that holds the operands.
        from: BufferIndex,
        /// The buffer of the sums; registers if none.
        to: Option<BufferIndex>,
        /// Whether the warp goes on while the matrix unit works.
        asynchronous: bool,
    },
    /// Waits until at most so many of this warp's products are under way.
    AwaitProducts {
        /// Products that may still be under way.
        outstanding: usize,
    },
    /// Exponentials and their sums for the scores of the present step; rescales the sums of the values so far.
    Softmax {
        /// Where the scores are; registers if none.
        from: Option<BufferIndex>,
        /// Where the probabilities go, perhaps in place of the scores; registers if none.
        to: Option<BufferIndex>,
    },
    /// Takes the sums of the tile, scales and rounds them and writes them to memory, or into the staging buffer.
    Store {
        /// Where the sums are; registers if none. From the staging buffer: copies whole rows out of it.
        from: Option<BufferIndex>,
        /// The staging buffer; memory if none.
        to: Option<BufferIndex>,
    },
    /// Starts to copy the staging buffer to memory.
    BulkStore {
        /// Which buffer.
        from: BufferIndex,
    },
    /// Waits until the staging buffer has been read by all bulk stores that this warp has started.
    AwaitStore,
    /// All warps of the block wait for one another (`__syncthreads`).
    Synchronise,
    /// All warps of the role wait for one another (`bar.sync` with a name of its own).
    SynchroniseRole,
}

/// When a barrier is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// At once.
    Now,
    /// When all asynchronous copies that this warp has started are done (`cp.async.mbarrier.arrive`).
    CopiesDone,
    /// When all asynchronous products that this warp has started are done (`tcgen05.commit`).
    ProductsDone,
}

/// What copies from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyMethod {
    /// Through registers; done when the operation is.
    Registers,
    /// `cp.async`, each thread its own part; waited for in groups.
    Asynchronous,
    /// A bulk tensor copy by one thread; fills the slot's barrier when it is done.
    Bulk,
}

/// Which product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// Tokens by weights: the only one of a GEMM (both, in the dual form).
    Gemm,
    /// Queries by keys.
    Scores,
    /// Probabilities by values.
    Values,
}
