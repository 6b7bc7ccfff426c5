//! What is to be computed: problems, suites, their inputs, the f64 oracle and the measures of error.

mod attention;
mod generate;
mod inputs;
pub mod oracle;
mod output;
mod problem;
mod work;

pub use generate::InputKind;
pub use inputs::{AttentionInputs, GroupInputs, HeadTensor, Inputs, InputsError};
pub use oracle::{Coverage, Expected};
pub use output::Output;
pub use problem::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, OutputFormat, Part, Problem, Sequence,
};
