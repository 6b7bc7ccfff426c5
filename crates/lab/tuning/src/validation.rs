//! Validation: the model's predictions for a grid of schedules and shapes, compared with measured times.
//!
//! A GPU's description may contain results of kernels on some shapes of the grid; the other shapes are reported
//! separately.

mod grid;
mod measure;

use gauntlet_device::{Device, Gpu, MAX_MEAN_ERROR, MIN_RANK_CORRELATION, Pipeline};
use gauntlet_families::operations::problem;
use gauntlet_problems::Schedule;
use gauntlet_simulate::{HostTerm, MissingFigure, simulate};
use gauntlet_stats::{Fit, Predicted, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use grid::{Shape, grid};
pub use measure::{Measured, Plan, measure};

/// The result of a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Validation {
    /// Worker processes, each of which measured every point.
    pub processes: usize,
    /// The model.
    #[serde(alias = "calibrated")]
    pub model: Fit,
    /// The model without the measured figures of the GPU's units, except the latency of products, without which it makes
    /// no prediction.
    #[serde(alias = "uncalibrated")]
    pub without_units: Fit,
    /// The model on the shapes that were not used to make it, if some shapes were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<Fit>,
    /// Each shape's own figures.
    pub shapes: Vec<ShapeAccuracy>,
    /// Every point.
    pub points: Vec<Point>,
}

/// A requirement on the model.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// The quantity.
    pub name: &'static str,
    figure: fn(&Fit) -> f64,
    /// The required minimum or maximum.
    bound: Bound,
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// The requirements on the model.
pub const GOALS: [Goal; 3] = [
    Goal {
        name: "mean error at most 15 %",
        figure: |accuracy| accuracy.mean_error,
        bound: Bound::AtMost(MAX_MEAN_ERROR),
    },
    Goal {
        name: "rank correlation in a shape at least 0.8",
        figure: |accuracy| accuracy.rank_correlation,
        bound: Bound::AtLeast(MIN_RANK_CORRELATION),
    },
    Goal {
        name: "regret of the best of eight at most 3 %",
        figure: |accuracy| accuracy.regret_of_eight,
        bound: Bound::AtMost(0.03),
    },
];

impl Goal {
    /// Whether a model meets the requirement.
    pub fn is_reached(&self, accuracy: &Fit) -> bool {
        let figure = (self.figure)(accuracy);
        match self.bound {
            Bound::AtLeast(bound) => figure >= bound,
            Bound::AtMost(bound) => figure <= bound,
        }
    }
}

/// One shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ShapeAccuracy {
    /// Its name.
    pub shape: String,
    /// The accuracy of the model.
    pub accuracy: Fit,
    /// The median of predicted over measured.
    pub bias: f64,
}

/// One schedule on one shape, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Point {
    /// The shape's name.
    pub shape: String,
    /// The schedule.
    pub schedule: Schedule,
    /// The median over processes of each one's median call.
    pub measured: f64,
    /// Each process's median call.
    pub processes: Vec<f64>,
    /// The fastest of all calls; the median's distance from it shows how disturbed the machine was.
    pub fastest: f64,
    /// The prediction.
    #[serde(alias = "calibrated")]
    pub predicted: f64,
    /// The prediction without the measured figures of the GPU's units.
    #[serde(alias = "uncalibrated")]
    pub without_units: f64,
}

impl Validation {
    /// Compares the model with the measurements on `shapes`.
    ///
    /// # Errors
    /// If the device lacks a figure that the model needs.
    pub fn of(shapes: &[Shape], measured: &[Measured], device: &Device) -> Result<Self, MissingFigure> {
        let plain = without_units(device);
        let mut points = Vec::new();
        for one in measured {
            let problem = problem(&shapes[one.shape].operation);
            let predict = |device: &Device| simulate(&problem, &one.schedule, device, HostTerm::default());
            points.push(Point {
                shape: shapes[one.shape].name.to_owned(),
                schedule: one.schedule.clone(),
                measured: median(&one.calls),
                processes: one.calls.clone(),
                fastest: one.fastest,
                predicted: predict(device)?.seconds,
                without_units: predict(&plain)?.seconds,
            });
        }
        let of_those = |wanted: &dyn Fn(&Shape) -> bool, time: fn(&Point) -> f64| {
            let shape =
                |shape: &Shape| predicted(points.iter().filter(|point| point.shape == shape.name), time);
            let wanted = shapes.iter().filter(|shape| wanted(shape));
            Fit::of(&wanted.map(shape).collect::<Vec<_>>())
        };
        let of = |time: fn(&Point) -> f64| of_those(&|_| true, time);
        let any_seen = shapes.iter().any(|shape| shape.seen);
        Ok(Self {
            processes: measured.iter().map(|one| one.calls.len()).max().unwrap_or(0),
            model: of(|point| point.predicted),
            without_units: of(|point| point.without_units),
            held_out: any_seen.then(|| of_those(&|shape| !shape.seen, |point| point.predicted)),
            shapes: shapes
                .iter()
                .map(|shape| shape_accuracy(shape, &points))
                .collect(),
            points,
        })
    }

    /// Re-evaluates measurements from a GPU, for a model or a description that has changed since.
    ///
    /// # Errors
    /// The name of a shape that the grid does not have.
    pub fn measured(&self, shapes: &[Shape]) -> Result<Vec<Measured>, String> {
        let place = |name: &str| shapes.iter().position(|shape| shape.name == name);
        let points = self.points.iter().map(|point| {
            Ok(Measured {
                shape: place(&point.shape).ok_or_else(|| point.shape.clone())?,
                schedule: point.schedule.clone(),
                calls: point.processes.clone(),
                fastest: point.fastest,
            })
        });
        points.collect()
    }
}

/// Checks that the model has all figures that a validation on these shapes needs, before device time is spent.
///
/// # Errors
/// If the device lacks a figure that the model needs.
pub fn check(shapes: &[Shape], device: &Device) -> Result<(), MissingFigure> {
    let plain = without_units(device);
    for Shape {
        operation, schedules, ..
    } in shapes
    {
        for device in [device, &plain] {
            if let Some(schedule) = schedules.first() {
                simulate(&problem(operation), schedule, device, HostTerm::default())?;
            }
        }
    }
    Ok(())
}

/// The device without the measured figures of its units.
fn without_units(device: &Device) -> Device {
    let without = |gpu: Gpu| Gpu {
        pipeline: Pipeline {
            products: gpu.pipeline.products,
            ..Pipeline::default()
        },
        ..gpu
    };
    Device {
        gpu: device.gpu.clone().map(without),
        ..device.clone()
    }
}

fn predicted<'p>(points: impl Iterator<Item = &'p Point>, time: fn(&Point) -> f64) -> Vec<Predicted> {
    points
        .map(|point| Predicted {
            predicted: time(point),
            measured: point.measured,
        })
        .collect()
}

fn shape_accuracy(shape: &Shape, points: &[Point]) -> ShapeAccuracy {
    let own = || points.iter().filter(|point| point.shape == shape.name);
    let ratios: Vec<f64> = own().map(|point| point.predicted / point.measured).collect();
    ShapeAccuracy {
        shape: shape.name.to_owned(),
        accuracy: Fit::of(&[predicted(own(), |point| point.predicted)]),
        bias: median(&ratios),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_of_which_kernels_are_measured_has_all_figures_with_and_without_what_was_measured_of_its_units() {
        let device = Device::builtin("h200").unwrap_or_else(|error| panic!("{error}"));
        let shapes = grid(&device);
        assert_eq!(check(&shapes, &device), Ok(()));
        let measured: Vec<Measured> = shapes
            .iter()
            .enumerate()
            .map(|(shape, one)| Measured {
                shape,
                schedule: one.schedules[0].clone(),
                calls: vec![1e-4],
                fastest: 1e-4,
            })
            .collect();
        let found = Validation::of(&shapes, &measured, &device).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.points.len(), shapes.len());
        assert!(
            found
                .points
                .iter()
                .all(|point| point.predicted != point.without_units)
        );
        let nothing_known = Device {
            clock: None,
            ..device
        };
        assert!(check(&shapes, &nothing_known).is_err());
    }
}
