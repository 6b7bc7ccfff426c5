//! The names that expressions and arguments can use: sizes of a case, parameters of a kernel, tensors.

use std::collections::BTreeMap;

use gauntlet_parameters::{Parameters, Value};
use gauntlet_tensors::TensorSpec;
use serde_json::Value as Json;

/// Names with their meanings. Hyphens of a task's own names become underscores, since names in expressions have none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scope {
    numbers: BTreeMap<String, i64>,
    reals: BTreeMap<String, f64>,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
    sizes: Vec<String>,
}

impl Scope {
    /// The sizes and tensors of a case. Sizes are the numbers of `sizes`, or of their `parameters` if there are any.
    pub fn of(sizes: &Json, inputs: &[TensorSpec], outputs: &[TensorSpec]) -> Self {
        let mut scope = Self {
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            ..Self::default()
        };
        let given = sizes.get("parameters").unwrap_or(sizes);
        for (name, value) in given.as_object().into_iter().flatten() {
            let name = name.replace('-', "_");
            match value {
                Json::Bool(flag) => {
                    scope.numbers.insert(name, i64::from(*flag));
                }
                Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                    (Some(whole), _) => {
                        scope.sizes.push(name.clone());
                        scope.numbers.insert(name, whole);
                    }
                    (None, Some(real)) => {
                        scope.reals.insert(name, real);
                    }
                    (None, None) => {}
                },
                _ => {}
            }
        }
        scope
    }

    /// The same names and one more whole number.
    #[must_use]
    pub fn with(mut self, name: &str, number: i64) -> Self {
        self.numbers.insert(name.to_owned(), number);
        self
    }

    /// The same names and those of parameters that are numbers or flags.
    #[must_use]
    pub fn with_parameters(mut self, parameters: &Parameters) -> Self {
        for (name, value) in parameters.iter() {
            let number = match value {
                Value::Flag(flag) => Some(i64::from(*flag)),
                Value::Number(number) => i64::try_from(*number).ok(),
                Value::Numbers(_) | Value::Word(_) => None,
            };
            if let Some(number) = number {
                self.numbers.insert(name.replace('-', "_"), number);
            }
        }
        self
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    /// A number that may have a fraction.
    pub fn real(&self, name: &str) -> Option<f64> {
        self.reals
            .get(name)
            .copied()
            .or_else(|| self.number(name).map(|number| number as f64))
    }

    /// A tensor, input or output.
    pub fn tensor(&self, name: &str) -> Option<&TensorSpec> {
        let mut tensors = self.inputs.iter().chain(&self.outputs);
        tensors.find(|spec| spec.name == name)
    }

    /// The input tensors, in the order of the case.
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    /// The output tensors, in the order of the case.
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    /// The names of the case's whole numbers, as the case lists them.
    pub fn sizes(&self) -> &[String] {
        &self.sizes
    }

    /// All names, for messages.
    pub fn names(&self) -> Vec<&str> {
        let tensors = self.inputs.iter().chain(&self.outputs);
        let numbers = self.numbers.keys().chain(self.reals.keys());
        tensors
            .map(|spec| spec.name.as_str())
            .chain(numbers.map(String::as_str))
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use gauntlet_tensors::DataType;
    use serde_json::json;

    use super::*;

    fn sizes() -> Json {
        json!({ "rows": 7, "row-groups": 2, "epsilon": 0.5, "format": "f32", "causal": true })
    }

    pub(crate) fn case() -> Scope {
        let inputs = [
            TensorSpec::new("x", DataType::F32, [7, 5]),
            TensorSpec::new("weight", DataType::F32, [5]),
        ];
        Scope::of(&sizes(), &inputs, &[TensorSpec::new("y", DataType::F32, [7, 5])])
    }

    #[test]
    fn names_are_those_of_sizes_tensors_and_parameters() {
        let scope = case().with_parameters(&Parameters::new().with("WIDE", true).with("ROWS", 4_usize));
        assert_eq!(
            [
                scope.number("rows"),
                scope.number("row_groups"),
                scope.number("causal")
            ],
            [Some(7), Some(2), Some(1)]
        );
        assert_eq!((scope.number("WIDE"), scope.number("ROWS")), (Some(1), Some(4)));
        assert_eq!(
            (scope.real("epsilon"), scope.real("rows")),
            (Some(0.5), Some(7.0))
        );
        assert_eq!(scope.number("format"), None);
        assert_eq!(scope.tensor("y").map(TensorSpec::elements), Some(35));
        assert_eq!(scope.sizes(), ["row_groups", "rows"]);
    }

    #[test]
    fn sizes_of_a_python_task_are_its_parameters() {
        let scope = Scope::of(&json!({ "parameters": { "rows": 3 }, "seed": 9 }), &[], &[]);
        assert_eq!((scope.number("rows"), scope.number("seed")), (Some(3), None));
    }
}
