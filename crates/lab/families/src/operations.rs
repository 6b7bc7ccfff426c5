//! Operations of the tiled families, for code that has operations and not tasks, such as the tests and benchmarks of
//! kernel libraries: operands, references, constraints, and models.

mod rules;

use gauntlet_attention::AttentionFamily;
use gauntlet_device::Device;
use gauntlet_gemm::GemmFamily;
use gauntlet_problems::{Inputs, Operation, Output, Schedule};
use gauntlet_simulate::Problem;
use gauntlet_task::{Coverage, Expected, InputKind, Sizes, Violation};
use gauntlet_tiled_family::TiledSizes;

pub use rules::rules;

/// The operation as sizes of its task.
///
/// # Errors
/// When the operation is not valid.
pub fn sizes(operation: &Operation) -> Result<Sizes, String> {
    match operation {
        Operation::GroupedGemm(gemm) => TiledSizes::<GemmFamily>::checked(gemm.clone()),
        Operation::Attention(attention) => TiledSizes::<AttentionFamily>::checked(attention.clone()),
    }
}

/// The operation with its family's model.
pub fn problem(operation: &Operation) -> Problem {
    match operation {
        Operation::GroupedGemm(gemm) => gauntlet_gemm::problem(gemm),
        Operation::Attention(attention) => gauntlet_attention::problem(attention),
    }
}

/// Every constraint that the schedule breaks on a device.
pub fn check(schedule: &Schedule, operation: &Operation, device: &Device) -> Vec<Violation> {
    match operation {
        Operation::GroupedGemm(_) => gauntlet_tiled_family::check::<GemmFamily>(schedule, operation, device),
        Operation::Attention(_) => {
            gauntlet_tiled_family::check::<AttentionFamily>(schedule, operation, device)
        }
    }
}

/// Whether the schedule keeps every constraint.
pub fn accepts(schedule: &Schedule, operation: &Operation, device: &Device) -> bool {
    match operation {
        Operation::GroupedGemm(_) => {
            gauntlet_tiled_family::accepts::<GemmFamily>(schedule, operation, device)
        }
        Operation::Attention(_) => {
            gauntlet_tiled_family::accepts::<AttentionFamily>(schedule, operation, device)
        }
    }
}

/// Operands drawn from a seed.
pub fn generate(operation: &Operation, kind: InputKind, seed: u64) -> Inputs {
    match operation {
        Operation::GroupedGemm(gemm) => Inputs::GroupedGemm(gauntlet_gemm::generate(gemm, kind, seed)),
        Operation::Attention(attention) => {
            Inputs::Attention(gauntlet_attention::generate(attention, kind, seed))
        }
    }
}

/// The expected result for the operands, in f64.
///
/// # Errors
/// When the operands belong to another operation.
pub fn expected(operation: &Operation, inputs: &Inputs, coverage: Coverage) -> Result<Expected, String> {
    inputs.validate(operation).map_err(|error| error.to_string())?;
    let grids = match (operation, inputs) {
        (Operation::GroupedGemm(gemm), Inputs::GroupedGemm(groups)) => {
            gauntlet_gemm::grids(gemm, groups, coverage)
        }
        (Operation::Attention(attention), Inputs::Attention(inputs)) => {
            gauntlet_attention::grids(attention, inputs, coverage)
        }
        _ => return Err("the operands are those of another operation".to_owned()),
    };
    Ok(Expected::new(coverage, &operation.outputs(), grids))
}

/// A kernel's result as the tensors of a task.
pub fn output(operation: &Operation, output: &Output) -> gauntlet_task::Output {
    let mut rest = output.bytes.as_slice();
    let tensors = operation.outputs().into_iter().map(|spec| {
        let (bytes, after) = rest.split_at(spec.bytes());
        rest = after;
        gauntlet_tensors::Tensor {
            spec,
            bytes: bytes.to_vec(),
        }
    });
    gauntlet_task::Output(tensors.collect())
}
