//! Sizes of a tiled family as sizes of a task.

use std::any::Any;
use std::fmt;
use std::path::Path;

use gauntlet_device::Device;
use gauntlet_parameters::{ParameterError, Parameters, Space};
use gauntlet_problems::{Inputs, Operation, Schedule, StorageError};
use gauntlet_simulate::{Problem, repeated_limit};
use gauntlet_task::{
    Cached, Coverage, Expected, FULL_AT_A_GLANCE, FULL_BELOW, Grid, InputKind, Rightness, Schedules, Sizes,
    Task, TaskSizes, Violation,
};
use gauntlet_tensors::{TensorFileError, TensorSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::constraints::{Rules, Situation, accepts, check};

/// The parts that each family of tiled kernels provides.
pub trait TiledFamily: fmt::Debug + Send + Sync + Sized + 'static {
    /// Its sizes.
    type Sizes: Clone + fmt::Debug + fmt::Display + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// The task.
    const TASK: &'static dyn Task;

    /// The sizes of an operation of this family.
    fn sizes_of(operation: &Operation) -> Option<&Self::Sizes>;

    /// Its sizes as an operation, with the tile programs and costs of its kernels.
    fn problem(sizes: &Self::Sizes) -> Problem;

    /// The constraints of these sizes on this device.
    fn rules(situation: &Situation<Self>) -> Rules<Self>;

    /// The depth that every tile has, if it follows from the sizes.
    fn fixed_depth(_sizes: &Self::Sizes) -> Option<usize> {
        None
    }

    /// Operands drawn from a seed.
    fn generate(sizes: &Self::Sizes, kind: InputKind, seed: u64) -> Inputs;

    /// The expected elements of each output tensor; none for operands of another family.
    fn grids(sizes: &Self::Sizes, inputs: &Inputs, coverage: Coverage) -> Option<Vec<Vec<Grid>>>;

    /// Names of the input tensors that stay the same in every call.
    fn constant_inputs(sizes: &Self::Sizes) -> Vec<String>;

    /// Which part of a large result to compare when a kernel is examined.
    fn sample(sizes: &Self::Sizes, seed: u64) -> Coverage;

    /// Which part of a large result to compare between measurements.
    fn glance(seed: u64) -> Coverage;

    /// The criteria for a correct result.
    fn rightness(sizes: &Self::Sizes, kind: Option<InputKind>) -> Rightness;

    /// Sizes around the edges of what a schedule computes at a time.
    fn edge_sizes(
        sizes: &Self::Sizes,
        schedule: &Schedule,
        device: &Device,
    ) -> Vec<(&'static str, Self::Sizes)>;

    /// The parameters worth trying on a device.
    fn tuning_space(sizes: &Self::Sizes, device: &Device) -> Space;

    /// Values of parameters to combine on a CPU.
    fn covering_space(sizes: &Self::Sizes) -> Space;

    /// See [`Schedules::distance`].
    fn distance(one: &Self::Sizes, other: &Self::Sizes) -> Option<f64>;
}

/// Sizes of a tiled family.
#[derive(Debug)]
pub struct TiledSizes<F: TiledFamily> {
    sizes: F::Sizes,
    problem: Problem,
}

impl<F: TiledFamily> TiledSizes<F> {
    /// These sizes, if the family can compute them.
    ///
    /// # Errors
    /// Says which size is wrong and what would be right.
    pub fn checked(sizes: F::Sizes) -> Result<Sizes, String> {
        let problem = F::problem(&sizes);
        problem
            .operation()
            .validate()
            .map_err(|error| error.to_string())?;
        Ok(Sizes::new(Self { sizes, problem }))
    }

    /// Sizes from a record, where records of the first edition name the family too.
    ///
    /// # Errors
    /// As [`checked`](Self::checked), and for a record that holds no such sizes.
    pub fn recorded(record: &serde_json::Value) -> Result<Sizes, String> {
        let mut record = record.clone();
        if let Some(fields) = record.as_object_mut() {
            fields.remove("family");
        }
        Self::checked(serde_json::from_value(record).map_err(|error| error.to_string())?)
    }

    fn operation(&self) -> &Operation {
        self.problem.operation()
    }
}

/// The operation of sizes of a tiled family; none for those of any other task.
pub fn operation(sizes: &Sizes) -> Option<&Operation> {
    Problem::of(sizes).map(Problem::operation)
}

#[derive(Debug)]
struct Operands(Inputs);

impl gauntlet_task::Inputs for Operands {
    fn save(&self, path: &Path) -> Result<(), TensorFileError> {
        self.0.save(path)
    }
}

impl<F: TiledFamily> fmt::Display for TiledSizes<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sizes.fmt(formatter)
    }
}

impl<F: TiledFamily> TaskSizes for TiledSizes<F> {
    fn task(&self) -> &'static dyn Task {
        F::TASK
    }

    fn record(&self) -> serde_json::Value {
        serde_json::to_value(&self.sizes).unwrap_or_default()
    }

    fn inputs(&self) -> Vec<TensorSpec> {
        self.operation().inputs()
    }

    fn constant_inputs(&self) -> Vec<String> {
        F::constant_inputs(&self.sizes)
    }

    fn outputs(&self) -> Vec<TensorSpec> {
        self.operation().outputs()
    }

    fn generate(&self, kind: InputKind, seed: u64) -> Result<Box<dyn gauntlet_task::Inputs>, String> {
        Ok(Box::new(Operands(F::generate(&self.sizes, kind, seed))))
    }

    /// Values are drawn in f32 and rounded. An NVFP4 value of half a byte is drawn as a code, except among outliers.
    fn host_bytes(&self, kind: InputKind) -> u64 {
        let drawn = match kind {
            InputKind::Outliers => 9,
            InputKind::Competition | InputKind::Wide | InputKind::Adversarial => 5,
        };
        let bytes =
            |tensors: Vec<TensorSpec>| -> u64 { tensors.iter().map(|spec| spec.bytes() as u64).sum() };
        bytes(self.inputs())
            .saturating_mul(drawn)
            .saturating_add(bytes(self.outputs()))
    }

    fn load(&self, path: &Path) -> Result<Box<dyn gauntlet_task::Inputs>, String> {
        let load = || -> Result<_, StorageError> { Ok(Operands(Inputs::load(path, self.operation())?)) };
        match load() {
            Ok(operands) => Ok(Box::new(operands)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn expected(&self, inputs: &dyn gauntlet_task::Inputs, coverage: Coverage) -> Result<Expected, String> {
        const FOREIGN: &str = "the operands are those of another task";
        let Operands(inputs) = inputs.downcast().ok_or(FOREIGN)?;
        inputs
            .validate(self.operation())
            .map_err(|error| error.to_string())?;
        let grids = F::grids(&self.sizes, inputs, coverage).ok_or(FOREIGN)?;
        Ok(Expected::new(coverage, &self.outputs(), grids))
    }

    fn coverage(&self, seed: u64) -> Coverage {
        if self.operation().flops() < FULL_BELOW {
            Coverage::Full
        } else {
            F::sample(&self.sizes, seed)
        }
    }

    fn spot(&self, seed: u64) -> Coverage {
        if self.operation().flops() < FULL_AT_A_GLANCE {
            Coverage::Full
        } else {
            F::glance(seed)
        }
    }

    fn rightness(&self, kind: Option<InputKind>) -> Rightness {
        F::rightness(&self.sizes, kind)
    }

    fn flops(&self) -> Option<u64> {
        Some(self.operation().flops())
    }

    fn bytes(&self) -> u64 {
        self.operation().bytes()
    }

    fn limit(&self, device: &Device, cached: Cached) -> Option<f64> {
        repeated_limit(&self.problem, device, cached)
    }

    fn schedules(&self) -> Option<&dyn Schedules> {
        Some(self)
    }
}

impl<F: TiledFamily> Schedules for TiledSizes<F> {
    fn violations(&self, parameters: &Parameters, device: &Device) -> Vec<Violation> {
        let schedule = match Schedule::among(parameters) {
            Ok(schedule) => schedule,
            Err(error) => return vec![not_accepted(error, parameters)],
        };
        let mut violations = check::<F>(&schedule, self.operation(), device);
        for remedy in violations
            .iter_mut()
            .flat_map(|violation| &mut violation.remedies)
        {
            remedy.parameters = F::TASK.parameters().restrict(&remedy.parameters);
        }
        violations
    }

    fn accepts(&self, parameters: &Parameters, device: &Device) -> bool {
        Schedule::among(parameters).is_ok_and(|schedule| accepts::<F>(&schedule, self.operation(), device))
    }

    fn edge_sizes(&self, parameters: &Parameters, device: &Device) -> Vec<(&'static str, Sizes)> {
        let edges = |schedule| F::edge_sizes(&self.sizes, &schedule, device);
        let sizes = Schedule::among(parameters).map_or_else(|_| Vec::new(), edges);
        sizes
            .into_iter()
            .filter_map(|(name, sizes)| Some((name, Self::checked(sizes).ok()?)))
            .collect()
    }

    fn tuning_space(&self, device: &Device) -> Space {
        F::tuning_space(&self.sizes, device)
    }

    fn covering_space(&self) -> Space {
        F::covering_space(&self.sizes)
    }

    fn distance(&self, other: &Sizes) -> Option<f64> {
        let other: &Self = other.downcast()?;
        F::distance(&self.sizes, &other.sizes)
    }

    fn model(&self) -> Option<&dyn Any> {
        Some(&self.problem)
    }
}

/// A value that the schedule's table does not accept, as a broken constraint.
fn not_accepted(error: ParameterError, parameters: &Parameters) -> Violation {
    Violation {
        value: parameters
            .get(&error.name)
            .map(ToString::to_string)
            .unwrap_or_default(),
        parameter: error.name,
        rule: error.message,
        source: "the table of parameters".to_owned(),
        remedies: Vec::new(),
    }
}

/// The rising values up to the first that covers `size`: a tile that reaches beyond only computes more padding.
pub fn up_to(values: &[usize], size: usize) -> Vec<usize> {
    let covered = values.iter().position(|value| *value >= size);
    values[..covered.map_or(values.len(), |place| place + 1)].to_vec()
}

/// The largest of the logarithms of the ratios of sizes.
pub fn largest_ratio(one: &[f64], other: &[f64]) -> f64 {
    let ratios = one.iter().zip(other);
    ratios
        .map(|(one, other)| (one.max(1.0) / other.max(1.0)).ln().abs())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beyond_the_first_tile_that_covers_the_size() {
        assert_eq!(up_to(&[16, 32, 64], 17), [16, 32]);
        assert_eq!(up_to(&[16, 32, 64], 16), [16]);
        assert_eq!(up_to(&[16, 32, 64], 1000), [16, 32, 64]);
    }
}
