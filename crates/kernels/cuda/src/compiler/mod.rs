//! Compiles a variant to machine code with NVRTC: to a cubin and never to PTX, because drivers older than the compiler
//! refuse its PTX.

mod beforehand;
mod cache;
mod library;
mod log;
mod user;

use std::collections::BTreeMap;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use gauntlet_device::Arch;
use serde::{Deserialize, Serialize};

use crate::error::CompileError;
use crate::plan::{Code, Variant};
use crate::source::{self, File};
use cache::{Cache, Entry};
use library::{Kind, Made, Nvrtc};

pub(crate) use beforehand::Beforehand;
pub use cache::CACHE_VARIABLE;
pub use library::LIBRARIES_VARIABLE;
pub use log::KernelResources;
pub use user::{UserKernel, UserPtx, UserSource};

/// The first NVRTC that has a cache of its own (NVRTC documentation, Caching: CUDA 12.9).
const FIRST_WITH_CACHE: (i32, i32) = (12, 9);

/// The stack of a thread that compiles: as much as Linux gives a program's first thread by default.
const STACK_BYTES: usize = 8 << 20;

/// A variant's machine code, and the compiler's messages about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// Machine code.
    pub cubin: Vec<u8>,
    /// The kernel's name in it.
    pub entry: &'static str,
    /// The kernel's resources.
    pub resources: KernelResources,
    /// The compiler's warnings and the assembler's numbered remarks, for example that wgmma instructions are serialised
    /// (C7510 and the numbers after it), that waits for them were injected (C7517, C7519), or that `setmaxnreg` is
    /// ignored (C7508).
    pub warnings: Vec<String>,
    /// Whether it was compiled now or came from the cache.
    pub origin: Origin,
}

/// The origin of machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// From the cache, or compiled beforehand.
    Cache,
    /// Compiled now and written to the cache.
    Compiler,
    /// Compiled now but not cached, with the reason.
    NotKept(String),
}

/// The compiler's report on a source, as cached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Report {
    resources: BTreeMap<String, KernelResources>,
    warnings: Vec<String>,
    log: String,
    /// The name in the code of the kernel that was asked for by its C++ name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
}

/// A source with everything that determines the compiled code.
struct Unit<'a> {
    /// For messages.
    name: &'a str,
    file: File<'a>,
    defines: &'a BTreeMap<&'static str, String>,
}

/// All that the compiler reads.
struct Text<'a> {
    file: File<'a>,
    headers: &'a [File<'a>],
    options: Vec<String>,
    /// The kernel's C++ name, where its name in the code is wanted.
    kernel: Option<&'a str>,
}

/// NVRTC with a cache.
pub struct Compiler {
    nvrtc: Nvrtc,
    cache: Option<Cache>,
    tell: Option<Tell>,
}

/// Told the name of a kernel that is compiled next.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

impl Compiler {
    /// Finds NVRTC: in the folder that `GAUNTLET_CUDA_LIBRARIES` names, in the default folder of
    /// `scripts/install-cuda-compiler`, in a toolkit (`CUDA_HOME`, `/usr/local/cuda`), or wherever the dynamic linker
    /// finds it.
    ///
    /// # Errors
    /// If NVRTC is not found or cannot be loaded.
    pub fn new() -> Result<Self, CompileError> {
        Ok(Self {
            nvrtc: Nvrtc::load()?,
            cache: Cache::of_user(),
            tell: None,
        })
    }

    /// Calls this with a kernel's name before it is compiled to machine code, which takes up to a minute. Not called for
    /// what the cache has. It is called in the thread that asks for the kernel.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            tell: Some(Box::new(tell)),
            ..self
        }
    }

    /// Uses this cache instead of the user's.
    #[must_use]
    pub fn with_cache(self, folder: &Path) -> Self {
        Self {
            cache: Some(Cache::at(folder)),
            ..self
        }
    }

    /// NVRTC's version, such as `13.0`.
    pub fn version(&self) -> String {
        let (major, minor) = self.nvrtc.version();
        format!("{major}.{minor}")
    }

    /// NVRTC's major version; a driver accepts machine code of its own major version and of older ones.
    pub fn major_version(&self) -> i32 {
        self.nvrtc.version().0
    }

    /// The path of NVRTC.
    pub fn path(&self) -> &Path {
        self.nvrtc.path()
    }

    /// Compiles a variant, or takes it from the cache. Needs no GPU.
    ///
    /// # Errors
    /// If the kernel's instructions do not exist on the architecture, or the source does not compile.
    pub fn compile(&self, variant: &Variant, code: impl Into<Code>) -> Result<Compiled, CompileError> {
        self.compile_telling(variant, code.into(), &|name| self.say(name))
    }

    /// Compiles variants side by side, each in a thread of its own, or takes them from the cache. The compiler uses one core for
    /// each, so with enough cores all together take about as long as the slowest. Names are told as their kernels begin.
    ///
    /// # Errors
    /// As of [`compile`](Self::compile): of the first variant that has one. The others are cached all the same.
    pub fn compile_all(
        &self,
        variants: &[&Variant],
        code: impl Into<Code>,
    ) -> Result<Vec<Compiled>, CompileError> {
        let code = code.into();
        let (names, told) = mpsc::channel();
        thread::scope(|scope| {
            let mut running = Vec::with_capacity(variants.len());
            for variant in variants {
                let names = names.clone();
                let work = move || {
                    self.compile_telling(variant, code, &|name| {
                        // The receiver lives until all senders are gone.
                        names.send(name.to_owned()).ok();
                    })
                };
                let thread = thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, work.clone());
                // The system may refuse a thread; then this one does its work.
                running.push(thread.map_err(|_| work()));
            }
            drop(names);
            // Names are told in the caller's thread: a listener may need a lock that this thread holds while it waits for the
            // others, such as the lock of Python's interpreter.
            told.iter().for_each(|name: String| self.say(&name));
            let compiled = running.into_iter().map(|one| match one {
                Ok(thread) => thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause)),
                Err(result) => result,
            });
            // All of them have ended before an error is returned.
            compiled.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn compile_telling(
        &self,
        variant: &Variant,
        code: Code,
        tell: &dyn Fn(&str),
    ) -> Result<Compiled, CompileError> {
        let name = variant.to_string();
        let arch = code.arch();
        if !variant.source.runs_on(arch) {
            return Err(CompileError::Architecture { variant: name, arch });
        }
        let (entry, origin) = self.translate(&unit(&name, variant)?, code, tell)?;
        compiled(entry, origin, variant)
    }

    fn say(&self, name: &str) {
        if let Some(tell) = &self.tell {
            tell(name);
        }
    }

    /// Compiles a variant to PTX, which can be read and interpreted but is never loaded, because drivers older than the
    /// compiler refuse it. This takes a fraction of the time of machine code, and the result is not cached.
    ///
    /// # Errors
    /// If the source does not compile.
    pub fn ptx(&self, variant: &Variant, arch: Arch) -> Result<String, CompileError> {
        self.ptx_of(&unit(&variant.to_string(), variant)?, arch)
    }

    /// The same of a variant whose source is another text.
    #[cfg(test)]
    pub(crate) fn ptx_of_text(
        &self,
        variant: &Variant,
        text: &str,
        arch: Arch,
    ) -> Result<String, CompileError> {
        let name = variant.to_string();
        let Unit { file, defines, .. } = unit(&name, variant)?;
        let file = File { text, ..file };
        let name = &name;
        self.ptx_of(&Unit { name, file, defines }, arch)
    }

    fn ptx_of(&self, unit: &Unit<'_>, arch: Arch) -> Result<String, CompileError> {
        let virtual_arch = arch.to_string().replace("sm_", "compute_");
        let mut options = vec![format!("--gpu-architecture={virtual_arch}")];
        options.extend(language_options(unit));
        match self
            .nvrtc
            .compile(Kind::Ptx, unit.file, source::headers(), &options, None)?
        {
            Made::Code { code, .. } => Ok(String::from_utf8_lossy(&code).trim_end_matches('\0').to_owned()),
            Made::Refused { log } => Err(rejected(unit.name, log)),
        }
    }

    fn translate(
        &self,
        unit: &Unit<'_>,
        code: Code,
        tell: &dyn Fn(&str),
    ) -> Result<(Entry, Origin), CompileError> {
        let text = Text {
            file: unit.file,
            headers: source::headers(),
            options: options(unit, code),
            kernel: None,
        };
        self.kept(&text, unit.name, tell)
    }

    /// The code of a text, from the cache or compiled; `tell` is called with the name, which is for messages, before it is compiled.
    fn kept(
        &self,
        text: &Text<'_>,
        name: &str,
        tell: &dyn Fn(&str),
    ) -> Result<(Entry, Origin), CompileError> {
        let key = self.key(text);
        if let Some(entry) = self.cache.as_ref().and_then(|cache| cache.read(&key)) {
            return Ok((entry, Origin::Cache));
        }
        tell(name);
        let entry = self.make(text, name)?;
        let kept = match &self.cache {
            Some(cache) => cache.write(&key, &entry),
            None => Err(format!(
                "this system names no folder for caches, so kernels are compiled each time; set {CACHE_VARIABLE}"
            )),
        };
        Ok((entry, kept.map_or_else(Origin::NotKept, |()| Origin::Compiler)))
    }

    fn make(&self, text: &Text<'_>, name: &str) -> Result<Entry, CompileError> {
        let mut options = text.options.clone();
        // Machine code from NVRTC's own cache comes without the assembler's log, and so without the kernel's resources
        // (NVRTC documentation, Caching; NVIDIA/cuda-python issue 1124).
        if self.nvrtc.version() >= FIRST_WITH_CACHE {
            options.push("--no-cache".to_owned());
        }
        match self
            .nvrtc
            .compile(Kind::Cubin, text.file, text.headers, &options, text.kernel)?
        {
            Made::Code {
                code: cubin,
                log,
                entry,
            } => Ok(Entry {
                report: Report {
                    resources: log::resources(&log),
                    warnings: log::warnings(&log),
                    log,
                    entry,
                },
                cubin,
            }),
            Made::Refused { log } => Err(rejected(name, log)),
        }
    }

    /// The digest of everything that determines the compiled code. Two releases of NVRTC may have the same version, but
    /// hardly the same file length.
    fn key(&self, text: &Text<'_>) -> blake3::Hash {
        let length = std::fs::metadata(self.path()).map_or(0, |file| file.len());
        digest(&format!("{} {length}", self.version()), text)
    }
}

/// The digest of a text and of who compiles it.
fn digest(compiler: &str, text: &Text<'_>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    add(compiler);
    for option in text.options.iter().map(String::as_str).chain(text.kernel) {
        add(option);
    }
    for file in text.headers.iter().chain([&text.file]) {
        add(file.name);
        add(file.text);
    }
    hasher.finalize()
}

/// A variant's kernel in what was compiled.
fn compiled(
    Entry { report, cubin }: Entry,
    origin: Origin,
    variant: &Variant,
) -> Result<Compiled, CompileError> {
    let entry = variant.source.entry();
    match report.resources.get(entry) {
        Some(resources) => Ok(Compiled {
            cubin,
            entry,
            resources: *resources,
            warnings: report.warnings,
            origin,
        }),
        None => Err(CompileError::NoEntry {
            variant: variant.to_string(),
            entry: entry.to_owned(),
        }),
    }
}

/// A variant's source.
fn unit<'a>(name: &'a str, variant: &'a Variant) -> Result<Unit<'a>, CompileError> {
    match variant.source.file() {
        Some(file) => Ok(Unit {
            name,
            file,
            defines: &variant.defines,
        }),
        None => Err(CompileError::NoSource {
            variant: name.to_owned(),
        }),
    }
}

fn rejected(name: &str, log: String) -> CompileError {
    let (place, message) = log::first_error(&log);
    CompileError::Rejected {
        variant: name.to_owned(),
        place,
        message,
        log,
    }
}

fn options(unit: &Unit<'_>, code: Code) -> Vec<String> {
    let mut options = of_machine_code(unit, code);
    // Lets profilers and sanitizers show source lines; adds no instructions.
    options.push("--generate-line-info".to_owned());
    options
}

fn of_machine_code(unit: &Unit<'_>, code: Code) -> Vec<String> {
    [
        format!("--gpu-architecture={code}"),
        "--ptxas-options=-v".to_owned(),
    ]
    .into_iter()
    .chain(language_options(unit))
    .collect()
}

/// The definitions come last, sorted by name.
fn language_options(unit: &Unit<'_>) -> impl Iterator<Item = String> {
    let defines = unit.defines.iter();
    ["--std=c++17".to_owned()]
        .into_iter()
        .chain(defines.map(|(name, value)| format!("--define-macro={name}={value}")))
}

/// Gauntlet's folder in the user's cache folder (XDG base directory specification); `None` if the system names none.
pub(crate) fn caches() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    // The specification says that a path that is not absolute must be ignored.
    let folder = named.filter(|path| path.is_absolute()).or_else(usual)?;
    Some(folder.join("gauntlet"))
}

#[cfg(test)]
mod tests;
