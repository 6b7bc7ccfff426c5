//! `gauntlet doctor`.

use std::path::{Path, PathBuf};

use gauntlet_cpu::SimdPath;
use gauntlet_device::Device;
use gauntlet_executor::{Safeguard, Standing, safeguards};
use serde::Serialize;

use crate::arguments::Doctor;
use crate::exit::Exit;
use crate::listing;
use crate::sink::write_json;
use crate::trouble::Trouble;

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    /// What the machine has.
    machine: Vec<Item>,
    /// What holds workers.
    isolation: Vec<Item>,
}

/// One thing that matters, whether it is here, and what to do about it.
#[derive(Debug, Serialize)]
struct Item {
    what: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    remedy: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    Worse,
    Missing,
}

/// Says what this machine has and lacks. What is missing is no failure: everything but the GPU works without it.
pub fn doctor(arguments: &Doctor) -> Result<Exit, Trouble> {
    let findings = Findings {
        machine: examine(&Device::host()),
        isolation: safeguards().into_iter().map(isolation).collect(),
    };
    if arguments.json {
        write_json(Path::new("-"), &findings)?;
        return Ok(Exit::Done);
    }
    tell("what", findings.machine)?;
    tell("isolation: a worker", findings.isolation)?;
    Ok(Exit::Done)
}

fn tell(title: &str, items: Vec<Item>) -> Result<(), Trouble> {
    let rows = items.into_iter().map(|item| {
        let mark = match item.state {
            State::Good => "✓",
            State::Worse => "!",
            State::Missing => "–",
        };
        vec![
            mark.to_owned(),
            item.what.to_owned(),
            item.found,
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
        tool(
            "NVIDIA driver",
            &library("libcuda.so.1"),
            "install NVIDIA's driver to run on a GPU",
        ),
        tool(
            "NVRTC",
            &library("libnvrtc.so.13"),
            "install CUDA 13, or the PyPI wheel nvidia-cuda-nvrtc",
        ),
        tool(
            "nvcc",
            &program("nvcc"),
            "install CUDA 13; only needed for device code",
        ),
        tool(
            "ncu",
            &program("ncu"),
            "install Nsight Compute to read hardware counters",
        ),
        tool(
            "compute-sanitizer",
            &program("compute-sanitizer"),
            "install CUDA 13 to check GPU kernels for races",
        ),
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
        what: "processor",
        state,
        found: model.unwrap_or_else(|| "not told by the system".to_owned()),
        remedy: "",
    }
}

fn simd() -> Item {
    let available: Vec<_> = SimdPath::available().iter().map(ToString::to_string).collect();
    let plain = SimdPath::best() == SimdPath::Portable;
    Item {
        what: "SIMD paths",
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
        what: "processors",
        state: if alone { State::Worse } else { State::Good },
        found: cores.to_string(),
        remedy: if alone {
            "schedules with specialised roles need two"
        } else {
            ""
        },
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
        what: "caches",
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
        what: "frequency governor",
        state,
        found: governor.unwrap_or("not told").to_owned(),
        remedy,
    }
}

fn tool(what: &'static str, found: &Option<PathBuf>, remedy: &'static str) -> Item {
    match found {
        Some(path) => Item {
            what,
            state: State::Good,
            found: path.display().to_string(),
            remedy: "",
        },
        None => Item {
            what,
            state: State::Missing,
            found: "not found".to_owned(),
            remedy,
        },
    }
}

fn temporary() -> Item {
    let folder = std::env::temp_dir();
    let writable = tempfile::tempfile_in(&folder).is_ok();
    Item {
        what: "folder for operands",
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
        what: safeguard.what,
        state,
        found,
        remedy: if state == State::Good {
            ""
        } else {
            "workers run all the same: run only those you trust, or use a newer kernel"
        },
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Where the dynamic linker usually finds a library.
fn library(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/local/cuda/lib64",
    ];
    std::env::split_paths(&named)
        .chain(usual.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| path.exists())
}
