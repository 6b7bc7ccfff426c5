//! Tables that declare parameters.

use std::borrow::Cow;
use std::fmt;

use crate::error::did_you_mean;
use crate::{Domain, ParameterError, Parameters, Value};

/// How a parameter appears in the one line that describes a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shown {
    /// By name and value: `stages 3`.
    #[default]
    Named,
    /// By its value alone, a self-explanatory word: `staged`.
    Value,
    /// By name and value, if it differs from the default.
    Changed,
    /// By its name alone, if it is `true`.
    Flag,
}

/// One parameter of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, in kebab case.
    pub name: Cow<'static, str>,
    /// The values it accepts.
    pub domain: Domain,
    /// Its value if a candidate does not name it.
    pub default: Value,
    /// A one-line description of its effect.
    pub meaning: Cow<'static, str>,
    /// Its effect on a CPU, if that differs.
    pub on_cpu: Option<Cow<'static, str>>,
    /// How it appears in one line.
    pub shown: Shown,
}

impl Parameter {
    /// A parameter that appears by name and value and does the same on every device.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        domain: Domain,
        default: Value,
        meaning: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            name: name.into(),
            domain,
            default,
            meaning: meaning.into(),
            on_cpu: None,
            shown: Shown::Named,
        }
    }

    /// The same parameter, shown in another way.
    #[must_use]
    pub fn shown(self, shown: Shown) -> Self {
        Self { shown, ..self }
    }

    /// The same parameter, with another meaning on a CPU.
    #[must_use]
    pub fn on_cpu(self, meaning: impl Into<Cow<'static, str>>) -> Self {
        Self {
            on_cpu: Some(meaning.into()),
            ..self
        }
    }
}

/// All parameters of a kernel, in the order in which they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    owner: Cow<'static, str>,
    parameters: Vec<Parameter>,
}

/// A parameter with its value before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The parameter.
    pub name: String,
    /// Its value before.
    pub before: Value,
    /// Its value after.
    pub after: Value,
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} → {}", self.name, self.before, self.after)
    }
}

impl Table {
    /// The parameters of `owner`, whose name appears in messages.
    pub fn new(owner: impl Into<Cow<'static, str>>, parameters: Vec<Parameter>) -> Self {
        Self {
            owner: owner.into(),
            parameters,
        }
    }

    /// The parameters, in the order in which they are written.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// A parameter by its name.
    pub fn find(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// These parameters, and those of `other` that have other names; messages name this table's owner. If several tasks
    /// share a candidate, each takes the parameters that it knows, see [`restrict`](Self::restrict).
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        for parameter in &other.parameters {
            if self.find(&parameter.name).is_none() {
                self.parameters.push(parameter.clone());
            }
        }
        self
    }

    /// Whether all names are known and all values accepted.
    ///
    /// # Errors
    /// Names the first parameter that is unknown or has a value that is not accepted.
    pub fn check(&self, given: &Parameters) -> Result<(), ParameterError> {
        for (name, value) in given.iter() {
            let checked = match self.find(name) {
                Some(parameter) => parameter.domain.check(name, value),
                None => Err(self.unknown(name)),
            };
            checked.map_err(|message| ParameterError {
                name: name.to_owned(),
                message,
            })?;
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        let owner = &self.owner;
        if self.parameters.is_empty() {
            return format!("{owner} has no parameters, so none is called `{name}`; leave it out");
        }
        let known: Vec<&str> = self.parameters.iter().map(|known| known.name.as_ref()).collect();
        let meant = did_you_mean(name, known.iter().copied());
        let list: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
        format!(
            "{owner} has no parameter `{name}`{meant}; its parameters are {}",
            list.join(", ")
        )
    }

    /// The value of a parameter: the given value, else its default.
    pub fn value<'v>(&'v self, given: &'v Parameters, parameter: &'v Parameter) -> &'v Value {
        given.get(&parameter.name).unwrap_or(&parameter.default)
    }

    /// Every parameter of the table with its value.
    #[must_use]
    pub fn complete(&self, given: &Parameters) -> Parameters {
        let value =
            |parameter: &Parameter| (parameter.name.to_string(), self.value(given, parameter).clone());
        self.parameters.iter().map(value).collect()
    }

    /// The given parameters that this table knows.
    #[must_use]
    pub fn restrict(&self, given: &Parameters) -> Parameters {
        let known = given.iter().filter(|(name, _)| self.find(name).is_some());
        known
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect()
    }

    /// The parameters with different values, in the order of the table.
    pub fn changes(&self, before: &Parameters, after: &Parameters) -> Vec<Change> {
        self.parameters
            .iter()
            .map(|parameter| Change {
                name: parameter.name.to_string(),
                before: self.value(before, parameter).clone(),
                after: self.value(after, parameter).clone(),
            })
            .filter(|change| change.before != change.after)
            .collect()
    }

    /// One line: `tile 128×128×256 · stages 1 · direct`. Parameters that are not in the table come last, as given.
    pub fn describe(&self, given: &Parameters) -> String {
        let mut parts = Vec::new();
        for parameter in &self.parameters {
            let (name, value) = (&parameter.name, self.value(given, parameter));
            match parameter.shown {
                Shown::Named => parts.push(format!("{name} {value}")),
                Shown::Value => parts.push(value.to_string()),
                Shown::Changed if *value != parameter.default => parts.push(format!("{name} {value}")),
                Shown::Flag if *value == Value::Flag(true) => parts.push(name.to_string()),
                Shown::Changed | Shown::Flag => {}
            }
        }
        let others = given.iter().filter(|(name, _)| self.find(name).is_none());
        parts.extend(others.map(|(name, value)| format!("{name} {value}")));
        parts.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let numbers = Domain::Numbers {
            names: &["m", "n"],
            least: 1,
            most: 64,
            example: &[2, 1],
        };
        Table::new(
            "softmax",
            vec![
                Parameter::new("cluster", numbers, [1, 1].into(), "blocks that share loads")
                    .shown(Shown::Changed),
                Parameter::new(
                    "stages",
                    Domain::number(1, 8),
                    1_usize.into(),
                    "buffers in flight",
                ),
                Parameter::new(
                    "store",
                    Domain::choice(["direct", "staged"]),
                    "direct".into(),
                    "stores",
                )
                .shown(Shown::Value),
                Parameter::new("swap", Domain::Flag, false.into(), "exchange").shown(Shown::Flag),
            ],
        )
    }

    #[test]
    fn messages_name_the_parameter_what_it_takes_and_the_likely_intention() {
        let message = |text: &str| {
            let given: Parameters = toml::from_str(text).unwrap();
            table().check(&given).unwrap_err().message
        };
        assert_eq!(
            message("stagse = 3"),
            "softmax has no parameter `stagse`; did you mean `stages`?; its parameters are `cluster`, `stages`, \
             `store`, `swap`"
        );
        assert_eq!(
            message("stages = 9"),
            "9 is not allowed in `stages`; it takes a whole number from 1 to 8"
        );
        assert_eq!(
            message("cluster = [1]"),
            "`cluster` has 1 numbers; it takes two whole numbers from 1 to 64, as in [2, 1]"
        );
        assert_eq!(
            message("store = \"stagde\""),
            "`store` does not know `stagde`; did you mean `staged`?; it takes `direct`, `staged`"
        );
        assert_eq!(message("swap = 1"), "`swap` is 1; it takes `true` or `false`");
    }

    #[test]
    fn a_line_shows_what_differs_and_what_speaks_for_itself() {
        let plain = Parameters::new();
        assert_eq!(table().describe(&plain), "stages 1 · direct");
        let other = plain
            .with("swap", true)
            .with("store", "staged")
            .with("cluster", [2, 1])
            .with("unknown", 5_usize);
        assert_eq!(
            table().describe(&other),
            "cluster 2×1 · stages 1 · staged · swap · unknown 5"
        );
        let changes: Vec<_> = table()
            .changes(&Parameters::new(), &other)
            .iter()
            .map(Change::to_string)
            .collect();
        assert_eq!(
            changes,
            [
                "cluster: 1×1 → 2×1",
                "store: direct → staged",
                "swap: false → true"
            ]
        );
        assert_eq!(table().restrict(&other).get("unknown"), None);
    }

    fn layer_norm() -> Table {
        Table::new(
            "layer norm",
            vec![
                // Its domain and default differ from those of softmax.
                Parameter::new("stages", Domain::number(1, 2), 2_usize.into(), "passes"),
                Parameter::new("rows", Domain::number(1, 64), 4_usize.into(), "rows a block"),
            ],
        )
    }

    #[test]
    fn tables_are_joined_by_name_and_the_first_declaration_wins() {
        let both = table().with(&layer_norm());
        let names: Vec<_> = both
            .parameters()
            .iter()
            .map(|known| known.name.as_ref())
            .collect();
        assert_eq!(names, ["cluster", "stages", "store", "swap", "rows"]);
        assert_eq!(both.find("stages"), table().find("stages"));
        let message = both
            .check(&Parameters::new().with("rwos", 1_usize))
            .unwrap_err()
            .message;
        assert!(
            message.starts_with("softmax has no parameter `rwos`; did you mean `rows`?"),
            "{message}"
        );
        assert_eq!(
            both.clone().with(&table()).with(&layer_norm()),
            both,
            "nothing is joined twice"
        );
    }

    #[test]
    fn each_table_takes_the_parameters_that_it_knows() {
        let shared = Parameters::new().with("stages", 2_usize).with("rows", 8_usize);
        assert_eq!(
            table().restrict(&shared),
            Parameters::new().with("stages", 2_usize)
        );
        assert_eq!(layer_norm().restrict(&shared), shared);
        assert!(table().check(&shared).is_err());
        assert_eq!(table().check(&table().restrict(&shared)), Ok(()));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let given = Parameters::new().with("stages", 3_usize);
        let complete = table().complete(&given);
        assert_eq!(
            complete.to_string(),
            "cluster=1×1, stages=3, store=direct, swap=false"
        );
        assert_eq!(table().changes(&given, &complete), []);
        let names = table().complete(&given.with("unknown", 1_usize));
        assert_eq!(names.get("unknown"), None);
    }
}
