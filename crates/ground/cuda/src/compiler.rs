//! Compiles CUDA C++ with NVRTC, and keeps machine code in a cache. What is loaded is a cubin and never PTX, because drivers
//! older than the compiler refuse its PTX.

mod cache;
mod library;
mod log;
mod user;

use std::collections::BTreeMap;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::error::CompileError;
use library::{Kind, Made, Nvrtc};

pub use cache::{CACHE_VARIABLE, Cache, Entry};
pub use library::LIBRARIES_VARIABLE;
pub use log::KernelResources;
pub use user::{UserKernel, UserPtx, UserSource};

/// The first NVRTC that has a cache of its own (NVRTC documentation, Caching: CUDA 12.9).
const FIRST_WITH_CACHE: (i32, i32) = (12, 9);

/// The stack of a thread that compiles: as much as Linux gives a program's first thread by default.
const STACK_BYTES: usize = 8 << 20;

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

/// A source in PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    /// The text.
    pub text: String,
    /// The name in it of the kernel that was asked for by its C++ name; none if there is no such kernel.
    pub entry: Option<String>,
}

/// The compiler's report on a source, as cached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The resources of each kernel, by its name in the code.
    pub resources: BTreeMap<String, KernelResources>,
    /// The compiler's warnings and the assembler's numbered remarks, for example that wgmma instructions are serialised
    /// (C7510 and the numbers after it), that waits for them were injected (C7517, C7519), or that `setmaxnreg` is
    /// ignored (C7508).
    pub warnings: Vec<String>,
    /// All that the compiler wrote.
    pub log: String,
    /// The name in the code of the kernel that was asked for by its C++ name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// A file of device code, as the compiler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'t> {
    /// Its name, as in `#include "…"` and in messages.
    pub name: &'t str,
    /// Its text.
    pub text: &'t str,
}

/// All that the compiler reads.
#[derive(Debug, Clone)]
pub struct Text<'a> {
    /// The file.
    pub file: File<'a>,
    /// Headers, named as `#include` names them.
    pub headers: &'a [File<'a>],
    /// Options; they ask for machine code or for PTX.
    pub options: Vec<String>,
    /// The kernel's C++ name, where its name in the code is wanted.
    pub kernel: Option<&'a str>,
}

/// NVRTC with a cache.
pub struct Compiler {
    nvrtc: Nvrtc,
    cache: Option<Cache>,
    tell: Option<Tell>,
}

/// Told the name of a kernel that is compiled next.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Called with the name of a kernel before it is compiled.
pub type Told<'a> = &'a dyn Fn(&str);

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

    /// Compiles side by side, each piece of work in a thread of its own. The compiler uses one core for each, so with enough cores all
    /// together take about as long as the slowest. Names are told as their kernels begin.
    ///
    /// # Errors
    /// The first piece's that has one. The others are done all the same.
    pub fn side_by_side<T: Send>(
        &self,
        pieces: impl IntoIterator<Item = impl Fn(Told<'_>) -> Result<T, CompileError> + Send + Clone>,
    ) -> Result<Vec<T>, CompileError> {
        let (names, told) = mpsc::channel();
        thread::scope(|scope| {
            let mut running = Vec::new();
            for piece in pieces {
                let names = names.clone();
                let work = move || {
                    piece(&|name| {
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

    /// Tells a name to whom [`telling`](Self::telling) named.
    pub fn say(&self, name: &str) {
        if let Some(tell) = &self.tell {
            tell(name);
        }
    }

    /// Compiles a text to PTX, which can be read and interpreted but is never loaded. This takes a fraction of the time of machine
    /// code, and the result is not cached. The name is for messages.
    ///
    /// # Errors
    /// If the source does not compile.
    pub fn ptx(&self, text: &Text<'_>, name: &str) -> Result<Ptx, CompileError> {
        match self
            .nvrtc
            .compile(Kind::Ptx, text.file, text.headers, &text.options, text.kernel)?
        {
            Made::Code { code, entry, .. } => Ok(Ptx {
                text: String::from_utf8_lossy(&code).trim_end_matches('\0').to_owned(),
                entry,
            }),
            Made::Refused { log } => Err(rejected(name, log)),
        }
    }

    /// The code of a text, from the cache or compiled; `tell` is called with the name, which is for messages, before it is compiled.
    ///
    /// # Errors
    /// If the source does not compile.
    pub fn kept(&self, text: &Text<'_>, name: &str, tell: Told<'_>) -> Result<(Entry, Origin), CompileError> {
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
pub fn digest(compiler: &str, text: &Text<'_>) -> blake3::Hash {
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

fn rejected(name: &str, log: String) -> CompileError {
    let (place, message) = log::first_error(&log);
    CompileError::Rejected {
        variant: name.to_owned(),
        place,
        message,
        log,
    }
}

/// Gauntlet's folder in the user's cache folder (XDG base directory specification); `None` if the system names none.
fn caches() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    // The specification says that a path that is not absolute must be ignored.
    let folder = named.filter(|path| path.is_absolute()).or_else(usual)?;
    Some(folder.join("gauntlet"))
}

#[cfg(test)]
mod tests;
