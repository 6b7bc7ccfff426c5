//! The accuracy of a device's model, from comparisons of its predictions with measured times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A comparison of predictions with times that the model was not fitted to, for one kernel family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelTest {
    /// The kernel family, by the name that suite files use.
    pub family: String,
    /// Schedules × shapes compared.
    pub points: usize,
    /// The mean of |predicted / measured − 1|.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_error: Option<f64>,
    /// Rank correlation (Spearman) of predicted with measured times within a shape: the lowest and the highest over the
    /// sets of points that were compared; the same twice if there was one set.
    pub rank_correlation: [f64; 2],
    /// How much longer the schedule with the best prediction takes than the best of its shape; again the lowest and the
    /// highest.
    pub regret: [f64; 2],
    /// The same for a rule that takes one schedule for every shape, without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regret_of_constant_rule: Option<f64>,
    /// The record of the comparison, and its uncertainties.
    pub source: String,
}
