//! What the kernel libraries compute: grouped GEMM on NVFP4 operands, and attention on quantised operands.
//!
//! [`Operation`] describes the computation, [`Inputs`] hold its operands, and a [`Schedule`] describes the
//! implementation: its parameters are declared in one table ([`Schedule::table`]). [`resources`] gives a schedule's
//! requirements on a processor. Nothing here computes a result; kernels, oracles and models build on these types.
//!
//! ```
//! use gauntlet_parameters::Parameters;
//! use gauntlet_problems::{Form, GroupedGemm, Operation, Schedule};
//!
//! let operation = Operation::GroupedGemm(GroupedGemm::new(Form::Plain, [[80, 4096, 7168], [0, 4096, 7168]]));
//! assert_eq!(operation.flops(), 2 * 80 * 4096 * 7168);
//!
//! let baseline = Schedule::baseline();
//! let schedule = baseline.changed(&Parameters::parse("stages=3")?)?;
//! assert_ne!(schedule, baseline);
//! let unknown = Parameters::parse("stagse=3")?;
//! assert!(baseline.changed(&unknown).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attention;
mod display;
mod field;
pub mod hadamard;
mod inputs;
mod operation;
mod output;
mod quantise;
pub mod resources;
mod rounding;
mod schedule;
mod storage;
mod tokens;
mod validate;
mod words;
mod work;

pub use field::{Choice, Field};
pub use inputs::{AttentionInputs, GroupInputs, HeadTensor, Inputs, InputsError};
pub use operation::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, Operation, OutputFormat, Part, SCALE_BLOCK,
    Scaling, Sequence, TokenFormat,
};
pub use output::{Output, OutputError};
pub use schedule::Schedule;
pub use storage::StorageError;
pub use tokens::{FloatTensor, Tokens};
pub use validate::{MAX_HEAD_SIZE, OperationError, check_heads};
pub use words::{
    Arithmetic, Cluster, Epilogue, Exponential, Layout, Lookup, Maps, Order, Packing, Roles, Scores, Setup,
    Tile, Values,
};
