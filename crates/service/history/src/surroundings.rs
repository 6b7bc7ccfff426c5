//! What beside the code may make two measurements differ: the machine, its stack of software, and the method.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a circumstance of a measurement belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The software between the kernel and the device: system, driver, compiler, libraries.
    Stack,
    /// The device, the processor, and how many of it there were.
    Machine,
    /// How was measured: Gauntlet itself, and what its variables say.
    Method,
}

/// Names that change from run to run and say nothing of speed.
const PASSING: [&str; 3] = ["job", "gpu-neighbours", "gpu-pci-bus"];

/// Names of an environment that mean the machine. Every other one, but for Gauntlet's own, means software.
const MACHINE: [&str; 8] = [
    "host",
    "processor",
    "processors",
    "gpu",
    "gpu-uuid",
    "gpu-name",
    "gpu-architecture",
    "gpu-memory",
];

/// The name of Gauntlet's version among the circumstances.
const PROGRAM: &str = "gauntlet";

/// What a circumstance belongs to; none if it says nothing of speed.
pub fn layer_of(name: &str) -> Option<Layer> {
    if PASSING.contains(&name) {
        None
    } else if MACHINE.contains(&name) {
        Some(Layer::Machine)
    } else if name == PROGRAM || name == "simd" || name.starts_with("GAUNTLET_") {
        Some(Layer::Method)
    } else {
        Some(Layer::Stack)
    }
}

/// The circumstances of a result: its environment and the program's version.
pub fn circumstances(environment: &BTreeMap<String, String>, version: &str) -> BTreeMap<String, String> {
    let mut all = environment.clone();
    all.insert(PROGRAM.to_owned(), version.to_owned());
    all
}

/// The device that kernels were measured on, by the kind that its speed depends on.
pub fn device_kind(environment: &BTreeMap<String, String>) -> String {
    let known = ["gpu", "processor", "processors"];
    let named = known.iter().find_map(|name| environment.get(*name));
    named.map_or("unknown", String::as_str).to_owned()
}

/// What of the circumstances makes a series: two results with the same stack and method continue each other.
pub fn stack(circumstances: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_kept = |name: &str| matches!(layer_of(name), Some(Layer::Stack | Layer::Method));
    let kept = circumstances.iter().filter(|(name, _)| is_kept(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A circumstance that is another one than it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// What it belongs to.
    pub layer: Layer,
    /// Its name in the environment.
    pub name: String,
    /// What it was; none if it was not told.
    pub was: Option<String>,
    /// What it is; none if it is not told.
    pub is: Option<String>,
}

/// What differs between the circumstances of two results, by layer.
pub fn changed(was: &BTreeMap<String, String>, is: &BTreeMap<String, String>) -> Vec<Changed> {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let differing = names.into_iter().filter(|name| was.get(*name) != is.get(*name));
    let mut changed: Vec<Changed> = differing
        .filter_map(|name| {
            Some(Changed {
                layer: layer_of(name)?,
                name: name.clone(),
                was: was.get(name).cloned(),
                is: is.get(name).cloned(),
            })
        })
        .collect();
    changed.sort_by_key(|one| one.layer);
    changed
}

/// The one layer to which everything belongs that has changed; none if nothing has, or more than one.
pub fn only_layer(changed: &[Changed]) -> Option<Layer> {
    let layer = changed.first()?.layer;
    changed.iter().all(|one| one.layer == layer).then_some(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter().map(|(name, value)| (*name, *value));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_driver_is_told_from_a_machine_and_from_the_method() {
        let was = of(&[
            ("gpu-driver", "570"),
            ("host", "a"),
            ("gauntlet", "1"),
            ("job", "7"),
        ]);
        let is = of(&[
            ("gpu-driver", "580"),
            ("host", "b"),
            ("gauntlet", "2"),
            ("job", "8"),
        ]);
        let layers: Vec<_> = changed(&was, &is)
            .into_iter()
            .map(|one| (one.layer, one.name))
            .collect();
        let expected = [
            (Layer::Stack, "gpu-driver".to_owned()),
            (Layer::Machine, "host".to_owned()),
            (Layer::Method, "gauntlet".to_owned()),
        ];
        assert_eq!(layers, expected);
        let all = changed(&was, &is);
        assert_eq!((only_layer(&all), only_layer(&[])), (None, None));
        assert_eq!(only_layer(&all[1..2]), Some(Layer::Machine));
        assert_eq!(stack(&was), of(&[("gpu-driver", "570"), ("gauntlet", "1")]));
    }
}
