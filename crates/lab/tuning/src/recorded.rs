//! Spaces whose times were recorded, in the formats of Kernel Tuner: a search is tested on them without a kernel.

mod t4;

use std::collections::HashSet;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::search::Space;

pub use t4::written;

/// A space with the time of every point.
pub struct RecordedSpace {
    /// The names of the parameters.
    pub parameters: Vec<String>,
    /// The points, each with a value for every parameter.
    pub points: Vec<Vec<Value>>,
    /// The time of each point in the record's unit; none if it failed.
    pub times: Vec<Option<f64>>,
    /// What the record calls the time.
    pub objective: String,
    /// Its unit, where the record names one.
    pub unit: Option<String>,
}

/// Why a record cannot be replayed.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// It has neither of the known forms.
    #[error("neither `results`, as in T4 files, nor `cache`, as in cache files of Kernel Tuner")]
    Unknown,
    /// A part is missing or has another form.
    #[error("result {index} {fault}")]
    Result {
        /// Its number, from 1.
        index: usize,
        /// What is wrong.
        fault: String,
    },
    /// No point has a time.
    #[error("none of its points has a time")]
    NoTimes,
}

impl RecordedSpace {
    /// Reads a T4 file or a cache file of Kernel Tuner.
    ///
    /// # Errors
    /// If the text has neither form, or no point has a time.
    pub fn read(text: &str) -> Result<Self, RecordError> {
        let record: Value = serde_json::from_str(text)?;
        let space = if record["results"].is_array() {
            t4::read(&record)?
        } else if let Some(cache) = record["cache"].as_object() {
            of_cache(&record, cache)?
        } else {
            return Err(RecordError::Unknown);
        };
        match space.optimum() {
            Some(_) => Ok(space),
            None => Err(RecordError::NoTimes),
        }
    }

    /// The shortest time.
    pub fn optimum(&self) -> Option<f64> {
        self.times.iter().flatten().copied().min_by(f64::total_cmp)
    }

    /// The points in the form that a search takes.
    pub fn space(&self) -> Space {
        Space::of(&self.points)
    }

    /// The space of these results; of results with the same configuration the first counts.
    fn of(
        objective: &str,
        unit: Option<String>,
        results: impl Iterator<Item = (Map<String, Value>, Option<f64>)>,
    ) -> Result<Self, RecordError> {
        let mut space = Self {
            parameters: Vec::new(),
            points: Vec::new(),
            times: Vec::new(),
            objective: objective.to_owned(),
            unit,
        };
        let mut known = HashSet::new();
        for (index, (configuration, time)) in results.enumerate() {
            if index == 0 {
                space.parameters = configuration.keys().cloned().collect();
            }
            let values = space
                .parameters
                .iter()
                .map(|name| configuration.get(name).cloned());
            let point: Option<Vec<Value>> = values.collect();
            let fault = |fault: &str| RecordError::Result {
                index: index + 1,
                fault: fault.to_owned(),
            };
            let point = point
                .filter(|point| point.len() == configuration.len())
                .ok_or_else(|| fault("has other parameters than the first"))?;
            if time.is_some_and(|time| time <= 0.0) {
                return Err(fault("has a time that is not positive"));
            }
            if known.insert(Value::from(point.clone()).to_string()) {
                space.points.push(point);
                space.times.push(time);
            }
        }
        Ok(space)
    }
}

/// The space of a cache file: its entries mix parameters and measurements, and `tune_params_keys` says which are which.
fn of_cache(record: &Value, cache: &Map<String, Value>) -> Result<RecordedSpace, RecordError> {
    let names: Vec<&str> = record["tune_params_keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let objective = record["objective"].as_str().unwrap_or("time");
    let results = cache.values().map(|entry| {
        let configuration = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), entry.get(*name)?.clone())));
        // Kernel Tuner writes the name of an error in place of the time of what failed.
        let time = entry[objective].as_f64().filter(|time| time.is_finite());
        (configuration.collect(), time)
    });
    RecordedSpace::of(objective, None, results)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cache_file_tells_parameters_from_measurements() {
        let record = json!({
            "tune_params_keys": ["block", "unroll"],
            "objective": "time",
            "cache": {
                "32,1": {"block": 32, "unroll": 1, "time": 2.5, "times": [2.4, 2.6]},
                "64,1": {"block": 64, "unroll": 1, "time": "RuntimeFailedConfig"},
            },
        });
        let space = RecordedSpace::read(&record.to_string()).unwrap();
        assert_eq!(space.parameters, ["block", "unroll"]);
        assert_eq!(space.points, [[json!(32), json!(1)], [json!(64), json!(1)]]);
        assert_eq!(
            (space.times.as_slice(), space.optimum()),
            ([Some(2.5), None].as_slice(), Some(2.5))
        );
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_with_the_reason() {
        let refused = |text: &str| {
            RecordedSpace::read(text)
                .err()
                .map(|error| error.to_string())
                .unwrap()
        };
        assert!(refused("{").contains("not JSON"));
        assert!(refused("{}").contains("neither"));
        let result = |block: Value, time: f64| {
            json!({"configuration": block, "invalidity": "correct", "objectives": ["time"],
                   "measurements": [{"name": "time", "value": time, "unit": "ms"}]})
        };
        let of = |results: &[Value]| refused(&json!({"results": results}).to_string());
        assert!(of(&[]).contains("none of its points"));
        let other = of(&[result(json!({"a": 1}), 1.0), result(json!({"b": 1}), 1.0)]);
        assert_eq!(other, "result 2 has other parameters than the first");
        assert!(of(&[result(json!({"a": 1}), -1.0)]).contains("not positive"));
        assert!(of(&[json!({})]).contains("result 1 has no configuration"));
    }
}
