//! The targets.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use gauntlet_device::Device;
use gauntlet_families::TASKS;
use gauntlet_host_library::FunctionTable;
use gauntlet_host_native::Argument;
use gauntlet_host_nvrtc::KernelFile;
use gauntlet_host_python::Solution;
use gauntlet_parameters::Parameters;
use gauntlet_problems::{Operation, Schedule};
use gauntlet_python_task::TaskToml;
use gauntlet_task::{DispatchTable, Expression, Scope, Suite};
use gauntlet_tensors::{DataType, TensorFile, TensorSpec};
use gauntlet_tournament::{Overrides, Tournament};
use gauntlet_worker::Record;
use gauntlet_worker::protocol::{Envelope, Reply};
use safetensors::SafeTensors;

use crate::Target;

/// All targets.
pub const TARGETS: &[Target] = &[
    of(
        "parameters",
        |bytes| text(bytes, |text| Parameters::parse(text).is_ok()),
        &[],
    ),
    of(
        "schedule",
        |bytes| text(bytes, |text| toml::from_str::<Schedule>(text).is_ok()),
        &[],
    ),
    of(
        "problem",
        |bytes| serde_json::from_slice::<Operation>(bytes).is_ok(),
        &[],
    ),
    of("expression", |bytes| text(bytes, expression), &[]),
    of("argument", |bytes| text(bytes, argument), &[]),
    of("launch-table", launch_table, &["examples/softmax/softmax.toml"]),
    of(
        "function-table",
        function_table,
        &["examples/softmax/libsoftmax.toml"],
    ),
    of(
        "task-toml",
        |bytes| text(bytes, |text| toml::from_str::<TaskToml>(text).is_ok()),
        &[],
    ),
    of(
        "suite",
        |bytes| {
            text(bytes, |text| {
                Suite::parse(text, Path::new("suite.toml"), TASKS).is_ok()
            })
        },
        &[
            "crates/lab/gemm/suites/group-gemm.toml",
            "crates/lab/attention/suites/attention.toml",
        ],
    ),
    of(
        "dispatch",
        |bytes| {
            text(bytes, |text| {
                DispatchTable::parse(text, Path::new("dispatch.toml")).is_ok()
            })
        },
        &[],
    ),
    of(
        "device",
        |bytes| {
            text(bytes, |text| {
                Device::from_toml(text, Path::new("device.toml")).is_ok()
            })
        },
        &[
            "crates/ground/device/devices/h200.toml",
            "crates/ground/device/devices/l4.toml",
        ],
    ),
    of(
        "record",
        |bytes| file(bytes, "record.toml", |file| Record::load(file).is_ok()),
        &[],
    ),
    of("round", |bytes| file(bytes, "round.toml", round), &[]),
    of("samples-json", |bytes| file(bytes, "runs.json", samples), &[]),
    of("samples-csv", |bytes| file(bytes, "runs.csv", samples), &[]),
    of(
        "solution",
        |bytes| file(bytes, "solution.json", |file| Solution::read(file).is_ok()),
        &[],
    ),
    of("tensors", |bytes| file(bytes, "x.safetensors", tensors), &[]),
    of("checkpoint", checkpoint, &[]),
    of(
        "request",
        |bytes| serde_json::from_slice::<Envelope>(bytes).is_ok(),
        &[],
    ),
    of(
        "reply",
        |bytes| serde_json::from_slice::<Reply>(bytes).is_ok(),
        &[],
    ),
    of("ptx", |bytes| text(bytes, ptx), &[]),
];

const fn of(name: &'static str, read: fn(&[u8]) -> bool, examples: &'static [&'static str]) -> Target {
    Target { name, read, examples }
}

fn text(bytes: &[u8], read: impl FnOnce(&str) -> bool) -> bool {
    std::str::from_utf8(bytes).is_ok_and(read)
}

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// A file with these bytes in a folder of this thread.
fn written(bytes: &[u8], name: &str) -> Option<PathBuf> {
    FOLDER.with(|folder| {
        if folder.get().is_none() {
            let _ = folder.set(tempfile::tempdir().ok()?);
        }
        let path = folder.get()?.path().join(name);
        fs::write(&path, bytes).ok()?;
        Some(path)
    })
}

fn file(bytes: &[u8], name: &str, read: impl FnOnce(&Path) -> bool) -> bool {
    written(bytes, name).is_some_and(|path| read(&path))
}

fn sizes() -> Scope {
    Scope::default()
        .with("rows", 1000)
        .with("cols", -3)
        .with("n", i64::MAX)
}

/// The expression, its value, and the expression as it is shown.
fn expression(text: &str) -> bool {
    let Ok(expression) = text.parse::<Expression>() else {
        return false;
    };
    let _ = expression.value(&sizes());
    let _ = (
        expression.to_string(),
        expression.is_condition(),
        expression.as_name(),
    );
    true
}

fn argument(text: &str) -> bool {
    text.parse::<Argument>().is_ok_and(|argument| {
        let _ = argument.bind(&sizes());
        true
    })
}

/// A launch table beside a source, and the launches that it describes.
fn launch_table(bytes: &[u8]) -> bool {
    let Some(source) = written(b"", "softmax.cu") else {
        return false;
    };
    file(bytes, "softmax.toml", |_| {
        KernelFile::open(&source, "softmax_warp").is_ok_and(|kernel| {
            let own = kernel.parameters();
            if let Ok(scope) = own.scope(sizes(), &Parameters::new()) {
                let _ = (own.broken_restriction(&scope).is_ok(), kernel.launch(&scope));
            }
            let _ = own.space();
            true
        })
    })
}

fn function_table(bytes: &[u8]) -> bool {
    file(bytes, "libsoftmax.toml", |table| {
        FunctionTable::beside(&table.with_extension("so"), "softmax").is_ok()
    })
}

fn round(file: &Path) -> bool {
    Tournament::load(file, &Overrides::default()).is_ok()
}

fn samples(file: &Path) -> bool {
    let both = gauntlet_foreign_measurements::read_both(file);
    if let Ok([baseline, candidate]) = &both {
        let _ = gauntlet_foreign_measurements::compare(baseline, candidate, &Default::default(), None);
    }
    both.is_ok() || gauntlet_foreign_measurements::read(file).is_ok()
}

fn tensors(file: &Path) -> bool {
    let spec = TensorSpec {
        name: "x".to_owned(),
        data_type: DataType::F32,
        shape: vec![2, 3],
    };
    TensorFile::open(file).is_ok_and(|file| file.tensor(&spec).is_ok())
}

fn checkpoint(bytes: &[u8]) -> bool {
    SafeTensors::deserialize(bytes)
        .is_ok_and(|tensors| gauntlet_nvfp4::checkpoint::read(&tensors, "up").is_ok())
}

fn ptx(text: &str) -> bool {
    let mut words = text.split(".entry ").skip(1);
    let name = words
        .next()
        .and_then(|rest| rest.split('(').next())
        .unwrap_or_default();
    gauntlet_ptx::Kernel::read(text, name).is_ok()
}
