//! The parameters of a user's kernel, as the table beside its source declares them.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use gauntlet_parameters::{ParameterTable, Parameters, Space, Table};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::{Expression, ExpressionError, Scope, Sizes};

/// The entry of a function in the table beside its source, if the function needs nothing but parameters.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct OwnTable {
    /// Keyword arguments that can vary.
    pub parameters: BTreeMap<String, ParameterTable>,
    /// Conditions that parameters and sizes must meet.
    pub restrictions: Vec<Expression>,
}

/// One entry of a table of tables; others may have another form.
///
/// # Errors
/// If the text is not TOML, or the entry has another form.
pub fn table_entry<T: DeserializeOwned>(text: &str, name: &str) -> Result<Option<T>, toml::de::Error> {
    struct Entry<'a, T>(&'a str, PhantomData<T>);

    impl<'de, T: DeserializeOwned> Visitor<'de> for Entry<'_, T> {
        type Value = Option<T>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("tables, one for each function")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
            let mut found = None;
            while let Some(key) = map.next_key::<String>()? {
                if key == self.0 {
                    found = Some(map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }

    toml::Deserializer::parse(text)?.deserialize_map(Entry(name, PhantomData))
}

/// The parameters of a user's kernel, and the conditions that they and the sizes of a case must meet.
#[derive(Debug, Clone)]
pub struct OwnParameters {
    table: Table,
    restrictions: Vec<Expression>,
}

impl OwnParameters {
    /// The parameters that a table declares; `owner` names the kernel in messages.
    ///
    /// # Errors
    /// The parameter that is wrong, with the error and the remedy.
    pub fn new(
        owner: &str,
        rows: &BTreeMap<String, ParameterTable>,
        restrictions: &[Expression],
    ) -> Result<Self, (String, String)> {
        let rows = rows.iter().map(|(name, row)| {
            let is_identifier = name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
                && !name.starts_with(|letter: char| letter.is_ascii_digit());
            if !is_identifier {
                let message = "a parameter's name has letters, digits and underscores only".to_owned();
                return Err((name.clone(), message));
            }
            row.parameter(name).map_err(|message| (name.clone(), message))
        });
        Ok(Self {
            table: Table::new(owner.to_owned(), rows.collect::<Result<_, _>>()?),
            restrictions: restrictions.to_vec(),
        })
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// All values that a search can try; a range counts in powers of two and its ends.
    pub fn space(&self) -> Space {
        let rows = self.table.parameters().iter();
        rows.fold(Space::new(), |space, row| {
            space.with(&row.name, row.domain.tried())
        })
    }

    /// The names of a case with the values of all parameters.
    ///
    /// # Errors
    /// If a parameter is unknown or has a value that it does not take.
    pub fn scope(&self, case: Scope, given: &Parameters) -> Result<Scope, String> {
        self.table.check(given).map_err(|error| error.message)?;
        Ok(case.with_parameters(&self.table.complete(given)))
    }

    /// The restriction that a case with these parameters breaks, if any.
    ///
    /// # Errors
    /// If a restriction has no value.
    pub fn broken_restriction(&self, scope: &Scope) -> Result<Option<&Expression>, ExpressionError> {
        for restriction in &self.restrictions {
            if restriction.value(scope)? == 0 {
                return Ok(Some(restriction));
            }
        }
        Ok(None)
    }

    /// Whether the restrictions allow these values for a case.
    pub fn accepts(&self, sizes: &Sizes, given: &Parameters) -> bool {
        let case = Scope::of(&sizes.record(), &sizes.inputs(), &sizes.outputs());
        let scope = self.scope(case, given);
        scope.is_ok_and(|scope| matches!(self.broken_restriction(&scope), Ok(None)))
    }

    /// The points of the space that the restrictions allow for a case.
    pub fn points(&self, sizes: &Sizes) -> Vec<Parameters> {
        let space = self.space();
        space
            .combinations()
            .filter(|point| self.accepts(sizes, point))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_beside_others_of_another_form() {
        let text = "[warp]\ngrid = \"rows\"\n[fast]\nrestrictions = [\"BLOCK <= rows\"]\nparameters = { BLOCK = [64, 32] }\n";
        let entry: OwnTable = table_entry(text, "fast").unwrap().unwrap();
        let own = OwnParameters::new("fast", &entry.parameters, &entry.restrictions).unwrap();
        assert_eq!(
            (own.space().len(), own.table().describe(&Parameters::new())),
            (2, "BLOCK 64".to_owned())
        );
        assert_eq!(table_entry::<OwnTable>(text, "slow").unwrap(), None);
        let wrong = table_entry::<OwnTable>(text, "warp").unwrap_err().to_string();
        assert!(wrong.contains("line 2") && wrong.contains("`grid`"), "{wrong}");
        let range = "[f]\nparameters = { UNROLL = { least = 3, most = 20 } }\n";
        let entry: OwnTable = table_entry(range, "f").unwrap().unwrap();
        let ranged = OwnParameters::new("f", &entry.parameters, &[]).unwrap();
        let tried: Vec<String> = ranged
            .space()
            .combinations()
            .map(|point| point.to_string())
            .collect();
        assert_eq!(
            tried,
            ["UNROLL=3", "UNROLL=4", "UNROLL=8", "UNROLL=16", "UNROLL=20"]
        );
        let entry: OwnTable = table_entry(text, "fast").unwrap().unwrap();
        let name = OwnParameters::new(
            "f",
            &[("a-b".to_owned(), entry.parameters["BLOCK"].clone())].into(),
            &[],
        );
        assert_eq!(name.unwrap_err().0, "a-b");
    }
}
