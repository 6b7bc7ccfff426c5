//! `gauntlet doctor`.

mod gpu;

use std::borrow::Cow;

use gauntlet_device::Device;
use gauntlet_kernels_cpu::SimdPath;
use gauntlet_worker::{Safeguard, Standing, safeguards};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Doctor;
use crate::documents::Document;
use crate::error::CliError;
use crate::exit::Exit;
use crate::listing;
use crate::load::Load;

/// The result of `gauntlet doctor`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Findings {
    /// Properties of the machine.
    machine: Vec<Item>,
    /// Requirements for running on a GPU.
    gpu: Vec<Item>,
    /// The confinement of workers.
    isolation: Vec<Item>,
}

/// One requirement, whether it is met, and the remedy if not.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Requirement")]
struct Item {
    /// What is required, or the property of the machine.
    what: Cow<'static, str>,
    /// Whether it is met.
    state: State,
    /// What was found.
    found: String,
    /// What to do about it; left out where nothing needs to be done.
    #[serde(skip_serializing_if = "str::is_empty")]
    remedy: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Fulfilment")]
enum State {
    /// It is met.
    Good,
    /// It is met in part, or makes measurements worse.
    Worse,
    /// It is not met, or not known.
    Missing,
}

impl Document for Findings {
    const NAME: &'static str = "doctor";
    const VERSION: u32 = 1;
}

/// Prints the capabilities of this machine. A missing one is not a failure: everything but the GPU works without it.
pub fn doctor(arguments: &Doctor) -> Result<Exit, CliError> {
    arguments.json.check()?;
    let findings = Findings {
        machine: examine(&Device::host()),
        gpu: gpu::examine(),
        isolation: safeguards().into_iter().map(isolation).collect(),
    };
    arguments.json.deliver(&findings, || {
        tell("what", &findings.machine)?;
        tell("GPU", &findings.gpu)?;
        tell("isolation: a worker", &findings.isolation)
    })?;
    Ok(Exit::Done)
}

fn tell(title: &str, items: &[Item]) -> Result<(), CliError> {
    let rows = items.iter().map(|item| {
        let mark = match item.state {
            State::Good => "✓",
            State::Worse => "!",
            State::Missing => "–",
        };
        vec![
            mark.to_owned(),
            item.what.to_string(),
            item.found.clone(),
            item.remedy.to_owned(),
        ]
    });
    listing::print(&["", title, "found", "what to do"], rows)
}

fn examine(host: &Device) -> Vec<Item> {
    vec![
        processor(host),
        simd(),
        cores(),
        caches(host),
        governor(host),
        load(&Load::sample()),
        temporary(),
    ]
}

fn processor(host: &Device) -> Item {
    let model = host
        .cpu
        .as_ref()
        .and_then(|cpu| cpu.model.as_ref())
        .map(|model| model.value.clone());
    let state = if model.is_some() {
        State::Good
    } else {
        State::Missing
    };
    Item {
        what: "processor".into(),
        state,
        found: model.unwrap_or_else(|| "not told by the system".to_owned()),
        remedy: "",
    }
}

fn simd() -> Item {
    let available: Vec<_> = SimdPath::available().iter().map(ToString::to_string).collect();
    let plain = SimdPath::best() == SimdPath::Portable;
    Item {
        what: "SIMD paths".into(),
        state: if plain { State::Worse } else { State::Good },
        found: available.join(", "),
        remedy: if plain {
            "kernels run, slowly; AVX2 or AVX-512 would speed them up"
        } else {
            ""
        },
    }
}

fn cores() -> Item {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let alone = cores < 2;
    Item {
        what: "processors".into(),
        state: if alone { State::Worse } else { State::Good },
        found: cores.to_string(),
        remedy: if alone {
            "schedules with specialised roles need two"
        } else {
            ""
        },
    }
}

fn load(load: &Load) -> Item {
    let (state, remedy) = if load.is_busy() {
        (
            State::Worse,
            "times measured now describe the other programs too: stop them, or wait until they end (`top` lists them)",
        )
    } else if load.other_processes.is_none() {
        (
            State::Missing,
            "look at it yourself before you measure, with `top`",
        )
    } else {
        (State::Good, "")
    };
    Item {
        what: "load".into(),
        state,
        found: load.sentence(),
        remedy,
    }
}

fn caches(host: &Device) -> Item {
    let texts = [
        host.cpu
            .as_ref()
            .and_then(|cpu| cpu.l1_size.as_ref())
            .map(|size| format!("L1 {}", size.text())),
        host.memory
            .l2_size
            .as_ref()
            .map(|size| format!("L2 {}", size.text())),
        host.cpu
            .as_ref()
            .and_then(|cpu| cpu.last_level_size.as_ref())
            .map(|size| format!("last {}", size.text())),
    ];
    let found: Vec<_> = texts.into_iter().flatten().collect();
    let unknown = found.is_empty();
    Item {
        what: "caches".into(),
        state: if unknown { State::Missing } else { State::Good },
        found: if unknown {
            "not told by the system".to_owned()
        } else {
            found.join(", ")
        },
        remedy: if unknown {
            "cold measurements cannot rotate operands past a cache of unknown size"
        } else {
            ""
        },
    }
}

fn governor(host: &Device) -> Item {
    let governor = host
        .cpu
        .as_ref()
        .and_then(|cpu| cpu.governor.as_ref())
        .map(|governor| governor.value.as_str());
    let (state, remedy) = match governor {
        Some("performance") => (State::Good, ""),
        Some(_) => (
            State::Worse,
            "`cpupower frequency-set -g performance` narrows the intervals",
        ),
        None => (
            State::Missing,
            "the system does not tell; the paired design does without",
        ),
    };
    Item {
        what: "frequency governor".into(),
        state,
        found: governor.unwrap_or("not told").to_owned(),
        remedy,
    }
}

fn temporary() -> Item {
    let folder = std::env::temp_dir();
    let writable = tempfile::tempfile_in(&folder).is_ok();
    Item {
        what: "folder for operands".into(),
        state: if writable { State::Good } else { State::Missing },
        found: folder.display().to_string(),
        remedy: if writable {
            ""
        } else {
            "cannot be written: set TMPDIR to a folder with room"
        },
    }
}

fn isolation(safeguard: Safeguard) -> Item {
    let (state, found) = match safeguard.standing {
        Standing::Active(by) => (State::Good, format!("active: {by}")),
        Standing::Partly { by, lacking } => (State::Worse, format!("active in part: {by}; not {lacking}")),
        Standing::Missing(why) => (State::Missing, format!("not available: {why}")),
    };
    Item {
        what: safeguard.what.into(),
        state,
        found,
        remedy: if state == State::Good {
            ""
        } else {
            "workers run all the same: run only those you trust, or use a newer kernel"
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_reported_with_a_remedy() {
        let item = |other_processes| {
            load(&Load {
                other_processes,
                processors: 2,
                load_averages: Some([7.0, 7.0, 7.0]),
            })
        };
        let busy = item(Some(0.9));
        assert_eq!(busy.state, State::Worse);
        assert!(
            busy.found.contains("90 %") && busy.remedy.contains("stop them"),
            "{busy:?}"
        );
        assert_eq!(
            (item(Some(0.01)).state, item(Some(0.01)).remedy),
            (State::Good, "")
        );
        assert_eq!(item(None).state, State::Missing);
    }
}
