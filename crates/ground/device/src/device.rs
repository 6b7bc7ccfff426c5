//! A device, and the source of its description.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host;
use crate::{
    Arch, Bandwidth, ByteRate, Bytes, Count, Cycles, DeviceError, Fact, Figure, FlopRate, Flops, Frequency,
    ModelTest, OperationRate, Pipeline, Time,
};

/// The embedded descriptions. To add one, add a file and a line here.
const BUILTIN: &[(&str, &str)] = &[
    ("l4", include_str!("../devices/l4.toml")),
    ("a100", include_str!("../devices/a100.toml")),
    ("h100", include_str!("../devices/h100.toml")),
    ("h200", include_str!("../devices/h200.toml")),
    ("b200", include_str!("../devices/b200.toml")),
];

/// A machine that runs candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Device {
    /// Its name on the command line and in files.
    pub name: String,
    /// The maker's name for it.
    pub title: String,
    /// The instruction set of its code.
    pub arch: Arch,
    /// Streaming multiprocessors of a GPU, hardware threads of a CPU.
    pub processors: Figure<Count>,
    /// Boost clock of a GPU; the observed clock of a CPU, or its highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Figure<Frequency>>,
    /// Memory and the caches that all processors share.
    #[serde(default)]
    pub memory: Memory,
    /// Figures that only GPUs have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Figures that only CPUs have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Recorded accuracy of the model's predictions for this device, one entry per kernel family.
    #[serde(default, rename = "model-test", skip_serializing_if = "Vec::is_empty")]
    pub model_tests: Vec<ModelTest>,
}

/// Memory, and the second-level cache (shared by all processors of a GPU, one per core of a CPU).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Memory {
    /// Bandwidth of reads from memory.
    pub bandwidth: Option<Figure<Bandwidth>>,
    /// Latency of a load that misses every cache.
    pub latency: Option<Figure<Cycles>>,
    /// Capacity of the second-level cache.
    pub l2_size: Option<Figure<Bytes>>,
    /// Rate of reads that hit the second-level cache, for each processor while all read. Per clock: the cache follows
    /// the clock of the processors, and memory does not.
    pub l2_rate: Option<Figure<ByteRate>>,
    /// Latency of a load that hits the second-level cache.
    pub l2_latency: Option<Figure<Cycles>>,
    /// The same as a time, if it is only known as a time.
    pub l2_latency_time: Option<Figure<Time>>,
}

/// Limits and rates of one streaming multiprocessor, and costs of starting a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gpu {
    /// Shared memory of a multiprocessor.
    pub shared_memory: Figure<Bytes>,
    /// Shared memory one block may ask for.
    pub shared_memory_block: Figure<Bytes>,
    /// 32-bit registers of a multiprocessor.
    pub registers: Figure<Count>,
    /// Registers one thread may have.
    pub registers_thread: Figure<Count>,
    /// Warps resident on a multiprocessor.
    pub warps: Figure<Count>,
    /// Columns of tensor memory, each 128 lanes of 32 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_memory: Option<Figure<Count>>,
    /// Shared memory traffic.
    pub shared_memory_rate: Figure<ByteRate>,
    /// Dense fp16 products with fp32 sums.
    pub fp16_rate: Figure<FlopRate>,
    /// Dense e4m3 products.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp8_rate: Option<Figure<FlopRate>>,
    /// Dense e2m1 products with block scales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp4_rate: Option<Figure<FlopRate>>,
    /// Exponentials.
    pub exp_rate: Figure<OperationRate>,
    /// Costs of starting a kernel.
    #[serde(default)]
    pub launch: Launch,
    /// Latencies and rates of its units.
    #[serde(default)]
    pub pipeline: Pipeline,
}

/// The fixed costs of a kernel, in addition to its work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Launch {
    /// From the start of a kernel until all multiprocessors are at work, plus the same at its end.
    pub ramp: Option<Figure<Time>>,
    /// The fixed part of a first read from memory.
    pub cold_read: Option<Figure<Time>>,
    /// From one launch to the next in a stream.
    pub stream: Option<Figure<Time>>,
    /// The same when replayed from a graph.
    pub graph: Option<Figure<Time>>,
}

/// Detected properties of a CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cpu {
    /// The processor's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Fact<String>>,
    /// Vector extensions that kernels may use, by their usual names (`avx2`, `avx512f`, …).
    pub simd: Fact<Vec<String>>,
    /// First-level data cache of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l1_size: Option<Figure<Bytes>>,
    /// The last-level cache, shared or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_level_size: Option<Figure<Bytes>>,
    /// The frequency governor, if the system reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<Fact<String>>,
    /// An upper bound for all threads in any format: a time that implies more is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Figure<Flops>>,
}

impl Device {
    /// The embedded description of that name, or `host` for the CPU at hand.
    ///
    /// # Errors
    /// [`DeviceError::Unknown`] with the nearest name if there is none.
    pub fn builtin(name: &str) -> Result<Self, DeviceError> {
        if name == "host" {
            return Ok(Self::host());
        }
        match BUILTIN.iter().find(|(known, _)| *known == name) {
            Some((known, text)) => Self::from_toml(text, Path::new(&format!("{known}.toml"))),
            None => Err(unknown(name)),
        }
    }

    /// A GPU without a description: only what its driver tells. The model predicts nothing for it. Its name ends in
    /// `(not described)`; its architecture is the newest known one that its code runs on.
    pub fn undescribed(title: &str, capability: (u32, u32), processors: f64, l2_bytes: Option<f64>) -> Self {
        let source = "the CUDA driver";
        Self {
            name: format!("{title} (not described)"),
            title: title.to_owned(),
            arch: match capability {
                (10, _) => Arch::Sm100a,
                (9, _) => Arch::Sm90a,
                (major, minor) if (major, minor) >= (8, 9) => Arch::Sm89,
                _ => Arch::Sm80,
            },
            processors: Figure::new(processors, source),
            clock: None,
            memory: Memory {
                l2_size: l2_bytes.map(|bytes| Figure::new(bytes, source)),
                ..Memory::default()
            },
            gpu: None,
            cpu: None,
            model_tests: Vec::new(),
        }
    }

    /// The names [`builtin`](Self::builtin) knows besides `host`.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// A description from a file.
    ///
    /// # Errors
    /// [`DeviceError::Read`] or [`DeviceError::Invalid`].
    pub fn load(path: &Path) -> Result<Self, DeviceError> {
        let text = std::fs::read_to_string(path).map_err(|source| DeviceError::Read {
            file: path.to_owned(),
            source,
        })?;
        Self::from_toml(&text, path)
    }

    /// A description from TOML; `file` is its name in messages.
    ///
    /// # Errors
    /// [`DeviceError::Invalid`] with the faulty bytes.
    pub fn from_toml(text: &str, file: &Path) -> Result<Self, DeviceError> {
        let invalid = |span, message| DeviceError::Invalid {
            file: file.to_owned(),
            span,
            message,
        };
        let device: Self =
            toml::from_str(text).map_err(|error| invalid(error.span(), error.message().to_owned()))?;
        match device.arch {
            Arch::Cpu if device.cpu.is_none() => Err(invalid(
                None,
                "arch is `cpu`, but there is no [cpu] table; add one".to_owned(),
            )),
            Arch::Cpu => Ok(device),
            arch if device.gpu.is_none() => Err(invalid(
                None,
                format!("arch is `{arch}`, but there is no [gpu] table; add one"),
            )),
            _ => Ok(device),
        }
    }

    /// The CPU at hand, as far as the system describes it.
    pub fn host() -> Self {
        host::detect()
    }
}

fn unknown(name: &str) -> DeviceError {
    let suggestion = Device::builtin_names()
        .chain(["host"])
        .map(|known| (strsim::damerau_levenshtein(known, &name.to_lowercase()), known))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, known)| known.to_owned());
    let known: Vec<_> = Device::builtin_names().map(|name| format!("`{name}`")).collect();
    DeviceError::Unknown {
        name: name.to_owned(),
        suggestion,
        known: known.join(", "),
    }
}
