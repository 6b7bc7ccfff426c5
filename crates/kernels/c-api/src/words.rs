//! The enumerations of the header. C may give any number, so they arrive as integers.

use gauntlet_problems::{AttentionFormat, Form, OutputFormat, Packing, TokenFormat};

use crate::status::Failure;

pub fn output(dtype: i32) -> Result<OutputFormat, Failure> {
    match dtype {
        0 => Ok(OutputFormat::F16),
        1 => Ok(OutputFormat::Bf16),
        2 => Ok(OutputFormat::F32),
        other => Err(Failure::argument(format!(
            "output = {other}: results are GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_F32"
        ))),
    }
}

pub fn tokens(dtype: i32) -> Result<OutputFormat, Failure> {
    match dtype {
        0 => Ok(OutputFormat::F16),
        1 => Ok(OutputFormat::Bf16),
        2 => Ok(OutputFormat::F32),
        other => Err(Failure::argument(format!(
            "tokens = {other}: tokens without scales are GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_F32"
        ))),
    }
}

pub fn layer_tokens(dtype: i32) -> Result<TokenFormat, Failure> {
    match dtype {
        0 => Ok(TokenFormat::F16),
        1 => Ok(TokenFormat::Bf16),
        5 => Ok(TokenFormat::Nvfp4),
        other => Err(Failure::argument(format!(
            "tokens = {other}: the tokens of a layer are GAUNTLET_F16, GAUNTLET_BF16 or GAUNTLET_NVFP4"
        ))),
    }
}

pub fn packing(packing: i32) -> Result<Packing, Failure> {
    match packing {
        0 => Ok(Packing::Canonical),
        1 => Ok(Packing::Fragments),
        2 => Ok(Packing::Steps),
        other => Err(Failure::argument(format!(
            "packing = {other}: give GAUNTLET_ROWS, GAUNTLET_FRAGMENTS or GAUNTLET_STEPS"
        ))),
    }
}

pub fn operands(dtype: i32) -> Result<AttentionFormat, Failure> {
    match dtype {
        0 => Ok(AttentionFormat::F16),
        1 => Ok(AttentionFormat::Bf16),
        3 => Ok(AttentionFormat::E4m3),
        4 => Ok(AttentionFormat::Int8),
        other => Err(Failure::argument(format!(
            "operands = {other}: attention takes GAUNTLET_F16, GAUNTLET_BF16, GAUNTLET_E4M3 or GAUNTLET_INT8"
        ))),
    }
}

pub fn form(form: i32) -> Result<Form, Failure> {
    match form {
        0 => Ok(Form::Plain),
        1 => Ok(Form::Swiglu),
        other => Err(Failure::argument(format!(
            "form = {other}: give GAUNTLET_PLAIN or GAUNTLET_SWIGLU"
        ))),
    }
}
