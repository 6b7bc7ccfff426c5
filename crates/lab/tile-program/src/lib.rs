//! A schedule as a program: what each role of one block does, in which order, and what it waits for.
//!
//! One program has several readers: the simulator gives each operation its time, and counters add up the bytes
//! moved and the products. A program does not contain sizes; readers take
//! them from the problem and the schedule.
//!
//! A loop over steps has an index, and operations name their step by its distance `ahead`. A buffer filled once a step
//! uses slot (step number modulo number of slots); step numbers continue over all tiles of the block. A buffer filled
//! once a tile uses the tile's number in the same way.
//!
//! The work of a block for one tile depends on tile, stages, epilogue, roles and swap-AB. Order, lookup, setup, split-K
//! and cluster decide which tiles it gets, and how many; if a block gets several tiles, their sums may have two slots.
//!
//! A loop that copies the operands of a step, multiplies them, and fills the same slot again. Without the second barrier a
//! fast warp would fill it while a slow one still multiplies:
//!
//! ```
//! use gauntlet_tile_program::{
//!     Action, Buffer, Contents, CopyMethod, Extent, Filled, Guard, Product, Role, Statement, TileProgram,
//! };
//!
//! let step = [
//!     Action::Load { buffer: 0, ahead: 0, copy: CopyMethod::Registers },
//!     Action::Synchronise,
//!     Action::Multiply { product: Product::Gemm, from: 0, to: None, asynchronous: false },
//!     Action::Synchronise,
//! ];
//! let steps = step.map(Statement::from).to_vec();
//! let store = Action::Store { from: None, to: None };
//! let tile = vec![Statement::Repeat(Extent::Steps, steps), store.into()];
//! let program = TileProgram {
//!     buffers: vec![Buffer {
//!         contents: Contents::Operands,
//!         slots: 1,
//!         filled: Filled::Step,
//!         guard: Guard::Block,
//!     }],
//!     roles: vec![Role {
//!         name: "everyone",
//!         warps: 4,
//!         body: vec![Statement::Repeat(Extent::Tiles, tile)],
//!     }],
//! };
//! assert_eq!(program.roles[0].warps, 4);
//! ```

/// What one block of threads does for its tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileProgram {
    /// Memory that the roles, or asynchronous engines, share.
    pub buffers: Vec<Buffer>,
    /// The roles, which all run at the same time.
    pub roles: Vec<Role>,
}

/// Memory with one or more slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// The contents.
    pub contents: Contents,
    /// The number of slots.
    pub slots: usize,
    /// How often it is filled.
    pub filled: Filled,
    /// How readers and writers are synchronised.
    pub guard: Guard,
}

/// The contents of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contents {
    /// Both operands of a step in the format of memory (K and V for attention).
    Operands,
    /// An operand of a step in the format that is multiplied, if that differs from the format in memory.
    Converted,
    /// The queries of a tile.
    Queries,
    /// Scores of a step, between the two products. A softmax may overwrite them with the probabilities: each warp then
    /// overwrites only rows that no other warp reads.
    Scores,
    /// Probabilities of a step, if they do not overwrite the scores.
    Probabilities,
    /// Sums outside registers (tensor memory).
    Accumulators,
    /// Results before they are stored.
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

/// How the readers and writers of a buffer are synchronised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guard {
    /// Two barriers a slot: one for full, one for empty.
    Barriers,
    /// No barriers: the program waits for its copies and synchronises the block.
    Block,
}

/// A number of warps that run the same statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Its name in pictures and messages.
    pub name: &'static str,
    /// Warps.
    pub warps: usize,
    /// What each of them does.
    pub body: Vec<Statement>,
}

/// Part of a role's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// Repeats the body.
    Repeat(Extent, Vec<Statement>),
    /// The body if the condition holds.
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
    /// Once for each of the first steps of the tile, at most this many; the index of the loop is the step.
    FirstSteps(usize),
    /// Exactly this many times, even if the tile has fewer steps; the index of the loop is the step.
    Times(usize),
}

/// When a body is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The tile has a step this many steps after the present one.
    HasStepAhead(usize),
    /// In the role's first warp only, which diverges.
    FirstWarp,
}

/// The number of a buffer in [`TileProgram::buffers`].
pub type BufferIndex = usize;

/// One operation of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Waits until the slot of the step `ahead` of the present one is empty.
    Acquire {
        /// Which buffer.
        buffer: BufferIndex,
        /// Steps ahead.
        ahead: usize,
    },
    /// Starts to copy from memory into the slot of the step `ahead` of the present one.
    Load {
        /// Which buffer.
        buffer: BufferIndex,
        /// Steps ahead.
        ahead: usize,
        /// The copy method.
        copy: CopyMethod,
    },
    /// Closes the group of all asynchronous copies that this warp has started since the last group (`cp.async`).
    CommitCopies,
    /// Waits until at most `outstanding` of this warp's groups of copies are in flight (`cp.async.wait_group`).
    AwaitCopies {
        /// Groups that may still be in flight.
        outstanding: usize,
    },
    /// Signals that the slot of the present step or tile is full. (A bulk copy signals this itself.)
    Publish {
        /// Which buffer.
        buffer: BufferIndex,
        /// When it is signalled; the warp does not wait for it.
        when: Signal,
    },
    /// Waits until the slot of the present step or tile is full.
    Await {
        /// Which buffer.
        buffer: BufferIndex,
    },
    /// Signals that the slot of the present step or tile is empty.
    Release {
        /// Which buffer.
        buffer: BufferIndex,
        /// When it is signalled; the warp does not wait for it.
        when: Signal,
    },
    /// Converts operands of the present step to the format that is multiplied.
    Convert {
        /// The source.
        from: BufferIndex,
        /// The destination; registers if none.
        to: Option<BufferIndex>,
    },
    /// Multiplies the present step. The product of the scores also reads the queries, and the product of the values the
    /// probabilities, if there is a buffer for them.
    Multiply {
        /// Which product.
        product: Product,
        /// The buffer that holds the operands.
        from: BufferIndex,
        /// The buffer of the sums; registers if none.
        to: Option<BufferIndex>,
        /// Whether the warp continues while the matrix unit works.
        asynchronous: bool,
    },
    /// Waits until at most `outstanding` of this warp's products are in flight.
    AwaitProducts {
        /// Products that may still be in flight.
        outstanding: usize,
    },
    /// Computes exponentials of the scores of the present step and their sums; rescales the sums of the values
    /// accumulated before.
    Softmax {
        /// The buffer of the scores; registers if none.
        from: Option<BufferIndex>,
        /// The buffer of the probabilities, which may be that of the scores; registers if none.
        to: Option<BufferIndex>,
    },
    /// Scales and rounds the sums of the tile and writes them to memory, or into the staging buffer.
    Store {
        /// The buffer of the sums; registers if none. From the staging buffer: copies whole rows out of it.
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

/// When a barrier is signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Immediately.
    Now,
    /// When all asynchronous copies that this warp has started are complete (`cp.async.mbarrier.arrive`).
    CopiesDone,
    /// When all asynchronous products that this warp has started are complete (`tcgen05.commit`).
    ProductsDone,
}

/// How data is copied from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyMethod {
    /// Through registers; complete when the operation is.
    Registers,
    /// `cp.async`, by each thread for its own part; waited for in groups.
    Asynchronous,
    /// A bulk tensor copy by one thread; it signals the slot's barrier when it is complete.
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
