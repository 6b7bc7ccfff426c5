//! What is to be computed: problems, suites, their inputs, the f64 oracle and the measures of error.

mod inputs;
mod output;
mod problem;

pub use inputs::{AttentionInputs, GroupInputs, HeadTensor, Inputs};
pub use output::Output;
pub use problem::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, OutputFormat, Part, Problem, Sequence,
};
