//! Kernels compiled beforehand and shipped with a program, so that its first call need not compile them, nor find a compiler.
//!
//! A folder holds an entry for each kernel, in the form of the [cache](Cache), under the digest of its source and options, and
//! `compiler.json`, which says for which drivers they are. A kernel whose source has changed since is not found and is compiled.

use std::fs;
use std::path::Path;

use gauntlet_cuda::CompileError;
use gauntlet_cuda::compiler::{Cache, Compiler, Origin, Text, Told, digest};
use gauntlet_device::Arch;
use serde::{Deserialize, Serialize};

use super::Compiled;
use crate::plan::{Code, Variant};

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
        let entry = self.0.read(&key(&variant.text(code).ok()?))?;
        variant.found(entry, Origin::Cache).ok()
    }
}

/// Compiles variants, as many side by side as there are processors, and writes them to a folder for
/// [`Library::telling`](crate::Library::telling). The compiler tells the name of each before it is compiled.
///
/// # Errors
/// If one does not compile, or the folder cannot be written.
pub fn compile_beforehand(
    compiler: &Compiler,
    variants: &[Variant],
    arch: Arch,
    folder: &Path,
) -> Result<(), CompileError> {
    let cache = &Cache::at(folder);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for some in variants.chunks(threads) {
        let pieces = some.iter();
        compiler.side_by_side(
            pieces.map(|variant| move |tell: Told<'_>| make(compiler, variant, arch.into(), cache, tell)),
        )?;
    }
    let manifest = Manifest {
        major: compiler.major_version(),
    };
    let written = serde_json::to_vec(&manifest)
        .map_err(std::io::Error::from)
        .and_then(|bytes| fs::write(folder.join(MANIFEST), bytes));
    written.map_err(|error| CompileError::Folder {
        message: format!("{}: {error}", folder.display()),
    })
}

fn make(
    compiler: &Compiler,
    variant: &Variant,
    code: Code,
    cache: &Cache,
    tell: Told<'_>,
) -> Result<(), CompileError> {
    // Without the lines of the source, which profilers show and calls do not need.
    let text = variant.text(code)?;
    let (entry, _) = compiler.kept(&text, &variant.to_string(), tell)?;
    cache
        .write(&key(&text), &entry)
        .map_err(|message| CompileError::Folder { message })?;
    // A kernel that its file does not name is refused now, not by its users.
    variant.found(entry, Origin::Cache).map(drop)
}

fn key(text: &Text<'_>) -> blake3::Hash {
    digest("made beforehand", text)
}
