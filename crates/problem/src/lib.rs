//! What is to be computed: problems, suites, their inputs, the f64 oracle and the measures of error.

mod attention;
mod display;
mod generate;
pub mod hadamard;
mod inputs;
mod measures;
mod number;
mod oracle;
mod output;
mod problem;
mod quantise;
mod rounding;
pub mod storage;
pub mod suite;
mod validate;
mod work;

pub use generate::InputKind;
pub use inputs::{AttentionInputs, GroupInputs, HeadTensor, Inputs, InputsError};
pub use measures::{ErrorMeasures, PartMeasures, Tolerance, Worst};
pub use oracle::{Coverage, Expected, ExpectedPart, Grid, Oracle};
pub use output::{Output, OutputError};
pub use problem::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, OutputFormat, Part, Problem, SCALE_BLOCK,
    Scaling, Sequence,
};
pub use storage::StorageError;
pub use suite::{Case, SpeedOfLight, Suite, SuiteError};
pub use validate::{MAX_HEAD_SIZE, ProblemError};
