//! T4, the format of results that tuners of kernels share: F.-J. Willemsen and others, "FAIR sharing of data in
//! autotuning research", ICPE (2024). <https://github.com/odgaard/TuningSchema>

use serde_json::{Map, Value, json};

use super::{RecordError, RecordedSpace};

/// The version that is written.
const VERSION: &str = "1.0.0";

/// Reads the results of a T4 document. The first objective counts, and smaller is better.
pub(super) fn read(record: &Value) -> Result<RecordedSpace, RecordError> {
    let results = record["results"].as_array().map_or(&[][..], Vec::as_slice);
    let first = results
        .first()
        .map_or(&Value::Null, |result| &result["objectives"][0]);
    let objective = first.as_str().unwrap_or("time");
    let named = |result: &Value| {
        measurement(result, objective).and_then(|one| one["unit"].as_str().map(str::to_owned))
    };
    let unit = results
        .first()
        .and_then(named)
        .or_else(|| record["metadata"]["timeunit"].as_str().map(str::to_owned))
        .filter(|unit| !unit.is_empty());
    let mut read: Vec<(Map<String, Value>, Option<f64>)> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let configuration = result["configuration"]
            .as_object()
            .ok_or_else(|| RecordError::Result {
                index: index + 1,
                fault: "has no configuration".to_owned(),
            })?;
        let is_valid = result["invalidity"].as_str().is_none_or(|word| word == "correct");
        let value = measurement(result, objective).and_then(|one| one["value"].as_f64());
        read.push((
            configuration.clone(),
            value.filter(|value| is_valid && value.is_finite()),
        ));
    }
    RecordedSpace::of(objective, unit, read.into_iter())
}

/// The measurement with this name.
fn measurement<'a>(result: &'a Value, name: &str) -> Option<&'a Value> {
    let measurements = result["measurements"].as_array()?;
    measurements.iter().find(|one| one["name"] == name)
}

/// A T4 document of these points of a space, in the order of their evaluation.
pub fn written(space: &RecordedSpace, evaluated: &[usize]) -> Value {
    let unit = space.unit.as_deref().unwrap_or_default();
    let results = evaluated.iter().map(|point| {
        let configuration: Map<String, Value> = space
            .parameters
            .iter()
            .cloned()
            .zip(space.points[*point].iter().cloned())
            .collect();
        let time = space.times[*point];
        // A failure of unknown kind is one of running.
        let (invalidity, measurements) = match time {
            Some(time) => (
                "correct",
                json!([{"name": space.objective, "value": time, "unit": unit}]),
            ),
            None => ("runtime", json!([])),
        };
        json!({
            "configuration": configuration,
            "times": {"runtimes": time.as_slice()},
            "invalidity": invalidity,
            "correctness": u8::from(time.is_some()),
            "measurements": measurements,
            "objectives": [space.objective],
        })
    });
    json!({
        "schema_version": VERSION,
        "metadata": {"timeunit": unit},
        "results": results.collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_as_the_same_space() {
        let space = RecordedSpace {
            parameters: vec!["block".to_owned(), "mode".to_owned()],
            points: vec![vec![json!(32), json!("plain")], vec![json!(64), json!("staged")]],
            times: vec![Some(0.5), None],
            objective: "time".to_owned(),
            unit: Some("ms".to_owned()),
        };
        let again = RecordedSpace::read(&written(&space, &[1, 0]).to_string()).unwrap();
        assert_eq!(again.parameters, space.parameters);
        assert_eq!(again.points, [space.points[1].clone(), space.points[0].clone()]);
        assert_eq!(again.times, [None, Some(0.5)]);
        assert_eq!(
            (again.objective.as_str(), again.unit.as_deref()),
            ("time", Some("ms"))
        );
    }
}
