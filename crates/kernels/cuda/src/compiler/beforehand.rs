//! Kernels compiled beforehand and shipped with a program, so that its first call need not compile them, nor find a compiler.
//!
//! A folder holds an entry for each kernel, in the form of the [cache](super::cache), under the digest of its source and options, and
//! `compiler.json`, which says for which drivers they are. A kernel whose source has changed since is not found and is compiled.

use std::fs;
use std::path::Path;

use gauntlet_device::Arch;
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Entry};
use super::{Compiled, Compiler, Origin, Text, digest, of_machine_code, unit};
use crate::error::CompileError;
use crate::plan::{Code, Variant};
use crate::source;

const MANIFEST: &str = "compiler.json";

/// A folder of kernels.
pub(crate) struct Beforehand(Cache);

/// The compiler that made them.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// Its major version; a driver accepts machine code of its own major version and of older ones.
    major: i32,
}

impl Beforehand {
    /// The kernels in a folder; none if there is no such folder, or a driver of this version (1000 × major + 10 × minor) does not
    /// accept them.
    pub fn open(folder: &Path, driver: i32) -> Option<Self> {
        let manifest = fs::read(folder.join(MANIFEST)).ok()?;
        let manifest: Manifest = serde_json::from_slice(&manifest).ok()?;
        (manifest.major <= driver / 1000).then(|| Self(Cache::at(folder)))
    }

    /// A kernel, if it is there and undamaged.
    pub fn find(&self, variant: &Variant, code: Code) -> Option<Compiled> {
        let name = variant.to_string();
        let entry = self.0.read(&key(&text(variant, &name, code).ok()?))?;
        super::compiled(entry, Origin::Cache, variant).ok()
    }
}

impl Compiler {
    /// Compiles variants, as many side by side as there are processors, and writes them to a folder for
    /// [`Library::telling`](crate::Library::telling). `told` is called with the name of each before it is compiled.
    ///
    /// # Errors
    /// If one does not compile, or the folder cannot be written.
    pub fn compile_beforehand(
        &self,
        variants: &[Variant],
        arch: Arch,
        folder: &Path,
        told: impl Fn(&str) + Sync,
    ) -> Result<(), CompileError> {
        let code = Code::from(arch);
        let cache = Cache::at(folder);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for some in variants.chunks(threads) {
            let made: Vec<Result<(), CompileError>> = std::thread::scope(|scope| {
                let running: Vec<_> = some
                    .iter()
                    .map(|variant| scope.spawn(|| self.make_beforehand(variant, code, &cache, &told)))
                    .collect();
                let joined = running.into_iter().map(|one| one.join());
                joined
                    .map(|done| done.unwrap_or_else(|cause| std::panic::resume_unwind(cause)))
                    .collect()
            });
            made.into_iter().collect::<Result<(), _>>()?;
        }
        let manifest = Manifest {
            major: self.major_version(),
        };
        let written = serde_json::to_vec(&manifest)
            .map_err(std::io::Error::from)
            .and_then(|bytes| fs::write(folder.join(MANIFEST), bytes));
        written.map_err(|error| CompileError::Folder {
            message: format!("{}: {error}", folder.display()),
        })
    }

    fn make_beforehand(
        &self,
        variant: &Variant,
        code: Code,
        cache: &Cache,
        told: &impl Fn(&str),
    ) -> Result<(), CompileError> {
        let name = variant.to_string();
        let text = text(variant, &name, code)?;
        let (entry, _) = self.kept(&text, &name, told)?;
        // A kernel that its file does not name is refused now, not by its users.
        super::compiled(
            Entry {
                report: entry.report.clone(),
                cubin: Vec::new(),
            },
            Origin::Cache,
            variant,
        )?;
        cache
            .write(&key(&text), &entry)
            .map_err(|message| CompileError::Folder { message })
    }
}

/// What is compiled: without the lines of the source, which profilers show and calls do not need.
fn text<'a>(variant: &'a Variant, name: &'a str, code: Code) -> Result<Text<'a>, CompileError> {
    let unit = unit(name, variant)?;
    Ok(Text {
        file: unit.file,
        headers: source::headers(),
        options: of_machine_code(&unit, code),
        kernel: None,
    })
}

fn key(text: &Text<'_>) -> blake3::Hash {
    digest("made beforehand", text)
}
