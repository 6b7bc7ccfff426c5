//! One figure of a device: a value with its unit, its source, and its uncertainties.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Dimension;

/// A value with its unit and source. [`get`](Self::get) returns it in the first unit of the dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure<D> {
    written: Written,
    factor: f64,
    dimension: PhantomData<D>,
}

/// A value that is not a number, with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// The source.
    pub source: String,
}

/// A measured value next to a published one, in the same unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// In the figure's unit.
    pub value: f64,
    /// The origin of the measurement, and the method.
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Written {
    /// The value in `unit`; greater than 0.
    value: f64,
    /// The unit of all values of this figure.
    unit: String,
    /// The source of the value.
    source: String,
    /// The lowest and highest value reported, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    /// Values that were measured in addition to the published one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Measurement>,
    /// A reason to doubt the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
}

impl<D: Dimension> Figure<D> {
    /// A figure in the first unit of its dimension.
    pub fn new(value: f64, source: impl Into<String>) -> Self {
        let (unit, factor) = D::UNITS[0];
        let written = Written {
            value,
            unit: unit.to_owned(),
            source: source.into(),
            range: None,
            measured: Vec::new(),
            doubt: None,
        };
        Self {
            written,
            factor,
            dimension: PhantomData,
        }
    }

    /// The same written in another unit; unchanged if the dimension has no such unit.
    #[must_use]
    pub fn in_unit(mut self, name: &str) -> Self {
        if let Some((unit, factor)) = D::UNITS.iter().find(|(unit, _)| *unit == name) {
            let rescale = |value: f64| value * self.factor / factor;
            self.written.value = rescale(self.written.value);
            self.written.range = self.written.range.map(|range| range.map(rescale));
            self.written
                .measured
                .iter_mut()
                .for_each(|measurement| measurement.value = rescale(measurement.value));
            self.written.unit = (*unit).to_owned();
            self.factor = *factor;
        }
        self
    }

    /// The value in the first unit of the dimension.
    pub fn get(&self) -> f64 {
        self.written.value * self.factor
    }

    /// The first measured value if there is one, else the published one: the most that a kernel can expect.
    pub fn attainable(&self) -> f64 {
        self.written
            .measured
            .first()
            .map_or(self.written.value, |measurement| measurement.value)
            * self.factor
    }

    /// The highest possible value, by its range and by measurements.
    pub fn most(&self) -> f64 {
        let measured = self.written.measured.iter().map(|measurement| measurement.value);
        let range = self.written.range.map(|[_, most]| most);
        measured.chain(range).fold(self.written.value, f64::max) * self.factor
    }

    /// The value as it is written, with its unit.
    pub fn text(&self) -> String {
        format!("{} {}", self.written.value, self.written.unit)
    }

    /// Where the value comes from.
    pub fn source(&self) -> &str {
        &self.written.source
    }

    /// The lowest and highest value reported, in the first unit of the dimension.
    pub fn range(&self) -> Option<(f64, f64)> {
        self.written
            .range
            .map(|[low, high]| (low * self.factor, high * self.factor))
    }

    /// Values measured in addition to the published one, in the unit of [`text`](Self::text).
    pub fn measured(&self) -> &[Measurement] {
        &self.written.measured
    }

    /// Uncertainties of the value.
    pub fn doubt(&self) -> Option<&str> {
        self.written.doubt.as_deref()
    }

    fn from_written(written: Written) -> Result<Self, String> {
        let Some((_, factor)) = D::UNITS.iter().find(|(unit, _)| *unit == written.unit) else {
            let units: Vec<_> = D::UNITS.iter().map(|(unit, _)| format!("`{unit}`")).collect();
            return Err(format!(
                "unit `{}` is not {}; write one of {}",
                written.unit,
                D::NAME,
                units.join(", ")
            ));
        };
        let mut values = vec![written.value];
        values.extend(written.range.iter().flatten());
        values.extend(written.measured.iter().map(|measurement| measurement.value));
        if let Some(value) = values
            .into_iter()
            .find(|value| !(value.is_finite() && *value > 0.0))
        {
            return Err(format!(
                "value {value} is not a positive number; leave the figure out if it is unknown"
            ));
        }
        if written.source.trim().is_empty() {
            return Err("the source is empty; say where the figure comes from".to_owned());
        }
        if written
            .range
            .is_some_and(|[low, high]| !(low <= written.value && written.value <= high))
        {
            return Err(format!("value {} is outside its own range", written.value));
        }
        Ok(Self {
            factor: *factor,
            written,
            dimension: PhantomData,
        })
    }
}

impl<'de, D: Dimension> Deserialize<'de> for Figure<D> {
    fn deserialize<S: Deserializer<'de>>(deserializer: S) -> Result<Self, S::Error> {
        Self::from_written(Written::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl<D> Serialize for Figure<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl<D: Dimension> JsonSchema for Figure<D> {
    fn schema_name() -> Cow<'static, str> {
        let quantity = D::NAME.split_whitespace().skip(1).collect::<Vec<_>>().join("-");
        format!("figure-{quantity}").into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}::{}", module_path!(), Self::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.subschema_for::<Written>();
        schema.insert(
            "description".to_owned(),
            format!("The figure is {}, with its unit and source.", D::NAME).into(),
        );
        let units: Vec<&str> = D::UNITS.iter().map(|(unit, _)| *unit).collect();
        if let Some(unit) = schema.pointer_mut("/properties/unit") {
            *unit = json_schema!({ "description": "The unit of all values of this figure.", "enum": units })
                .into();
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Count, Frequency};

    #[test]
    fn another_unit_changes_the_text_and_not_the_value() {
        let clock = Figure::<Frequency>::new(2.5e9, "made up").in_unit("MHz");
        assert_eq!((clock.text().as_str(), clock.get()), ("2500 MHz", 2.5e9));
        assert_eq!(clock.clone().in_unit("GB/s"), clock);
        assert_eq!(
            Figure::<Count>::new(2.0, "made up").in_unit("thread").text(),
            "2 thread"
        );
    }
}
