//! What is known of the schedules of a family's kernels.

use std::any::Any;

use gauntlet_device::Device;
use gauntlet_parameters::{Parameters, Space};

use crate::{Remedy, Sizes, Violation};

/// The name of the edge sizes that are deep enough for a pipeline to wrap around.
pub const DEEP: &str = "deep, with tails";

/// The name of the smallest edge sizes.
pub const SMALLEST: &str = "smallest";

/// What is known of the schedules of kernels that compute one set of sizes: which can be built, which are worth trying, and
/// which sizes test them. A family that comes with kernels answers; a task whose kernels are all its user's needs none of it.
pub trait Schedules {
    /// Constraints that the parameters break on a device; if empty, the kernel can be built.
    fn violations(&self, _parameters: &Parameters, _device: &Device) -> Vec<Violation> {
        Vec::new()
    }

    /// Whether the parameters keep every constraint: [`violations`](Self::violations) without the search for remedies.
    fn accepts(&self, parameters: &Parameters, device: &Device) -> bool {
        self.violations(parameters, device).is_empty()
    }

    /// Sizes that suites do not contain but that must be tested: around the edges of the tiles that these parameters
    /// give. Each has a name.
    fn edge_sizes(&self, _parameters: &Parameters, _device: &Device) -> Vec<(&'static str, Sizes)> {
        Vec::new()
    }

    /// The parameters worth trying on a device when a kernel is tuned.
    fn tuning_space(&self, _device: &Device) -> Space {
        Space::new()
    }

    /// Values of parameters to combine pairwise when a kernel is checked on a CPU.
    fn covering_space(&self) -> Space {
        Space::new()
    }

    /// How far other sizes of the same task are, as the logarithm of the largest ratio of a size: a dispatch table
    /// gives the parameters of the nearest sizes. None if they differ in more than sizes.
    fn distance(&self, _other: &Sizes) -> Option<f64> {
        None
    }

    /// The model from which times are predicted; only the simulator knows its type.
    fn model(&self) -> Option<&dyn Any> {
        None
    }
}

/// The same questions of any sizes.
impl Sizes {
    /// See [`Schedules::violations`]. A task without kernels of ours has none that could be built.
    pub fn violations(&self, parameters: &Parameters, device: &Device) -> Vec<Violation> {
        match self.schedules() {
            Some(schedules) => schedules.violations(parameters, device),
            None => vec![self.no_kernel(parameters)],
        }
    }

    fn no_kernel(&self, parameters: &Parameters) -> Violation {
        Violation {
            parameter: "kernel".to_owned(),
            value: "builtin".to_owned(),
            rule: format!("the task {} has no built-in kernel", self.task().name()),
            source: "the task, whose kernels are programs of its user".to_owned(),
            remedies: vec![Remedy {
                sentence: "name a kernel of your own: `command: PROGRAM ARGUMENTS` is one".to_owned(),
                parameters: parameters.clone(),
            }],
        }
    }

    /// See [`Schedules::accepts`].
    pub fn accepts(&self, parameters: &Parameters, device: &Device) -> bool {
        self.schedules()
            .is_some_and(|schedules| schedules.accepts(parameters, device))
    }

    /// See [`Schedules::edge_sizes`].
    pub fn edge_sizes(&self, parameters: &Parameters, device: &Device) -> Vec<(&'static str, Sizes)> {
        self.schedules()
            .map_or_else(Vec::new, |schedules| schedules.edge_sizes(parameters, device))
    }

    /// See [`Schedules::tuning_space`].
    pub fn tuning_space(&self, device: &Device) -> Space {
        self.schedules()
            .map_or_else(Space::new, |schedules| schedules.tuning_space(device))
    }

    /// See [`Schedules::covering_space`].
    pub fn covering_space(&self) -> Space {
        self.schedules()
            .map_or_else(Space::new, Schedules::covering_space)
    }

    /// See [`Schedules::distance`].
    pub fn distance(&self, other: &Sizes) -> Option<f64> {
        self.schedules()?.distance(other)
    }
}
