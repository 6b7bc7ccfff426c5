//! Compiles variants: their sources are part of this crate.

mod beforehand;
#[cfg(test)]
mod tests;

use gauntlet_cuda::CompileError;
use gauntlet_cuda::compiler::{Compiler, Entry, File, KernelResources, Origin, Text, Told};
use gauntlet_device::Arch;

use crate::plan::{Code, Variant};
use crate::source;

pub(crate) use beforehand::Beforehand;
pub use beforehand::compile_beforehand;

/// A variant's machine code, and the compiler's messages about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// Machine code.
    pub cubin: Vec<u8>,
    /// The kernel's name in it.
    pub entry: &'static str,
    /// The kernel's resources.
    pub resources: KernelResources,
    /// The compiler's [warnings](gauntlet_cuda::compiler::Report::warnings).
    pub warnings: Vec<String>,
    /// Whether it was compiled now or came from the cache.
    pub origin: Origin,
}

/// Compiles variants [side by side](Compiler::side_by_side), or takes them from the cache.
///
/// # Errors
/// As [`Variant::compile`]: of the first variant that has one. The others are cached all the same.
pub fn compile_all(
    compiler: &Compiler,
    variants: &[&Variant],
    code: impl Into<Code>,
) -> Result<Vec<Compiled>, CompileError> {
    let code = code.into();
    let pieces = variants.iter();
    compiler.side_by_side(pieces.map(|variant| move |tell: Told<'_>| variant.translate(compiler, code, tell)))
}

impl Variant {
    /// Compiles the variant, or takes it from the cache. Needs no GPU.
    ///
    /// # Errors
    /// If the kernel's instructions do not exist on the architecture, or the source does not compile.
    pub fn compile(&self, compiler: &Compiler, code: impl Into<Code>) -> Result<Compiled, CompileError> {
        self.translate(compiler, code.into(), &|name| compiler.say(name))
    }

    fn translate(&self, compiler: &Compiler, code: Code, tell: Told<'_>) -> Result<Compiled, CompileError> {
        let arch = code.arch();
        if !self.source.runs_on(arch) {
            return Err(CompileError::Impossible(format!(
                "{self} cannot be built for {arch}: kernels by mma.sync and cp.async are built for sm_80, sm_89 and sm_90a, \
                 those by wgmma and bulk copies for sm_90a alone, and those by tcgen05 for sm_100a alone"
            )));
        }
        let mut text = self.text(code)?;
        // Lets profilers and sanitizers show source lines; adds no instructions.
        text.options.push("--generate-line-info".to_owned());
        let (entry, origin) = compiler.kept(&text, &self.to_string(), tell)?;
        self.found(entry, origin)
    }

    /// Compiles the variant to PTX, for the interpreter.
    ///
    /// # Errors
    /// If the source does not compile.
    pub fn ptx(&self, compiler: &Compiler, arch: Arch) -> Result<String, CompileError> {
        self.ptx_of(self.file()?, compiler, arch)
    }

    /// The same of a variant whose source is another text.
    pub(crate) fn ptx_of(
        &self,
        file: File<'_>,
        compiler: &Compiler,
        arch: Arch,
    ) -> Result<String, CompileError> {
        let virtual_arch = arch.to_string().replace("sm_", "compute_");
        let options = [format!("--gpu-architecture={virtual_arch}")].into_iter();
        let text = Text {
            file,
            headers: source::headers(),
            options: options.chain(self.language_options()).collect(),
            kernel: None,
        };
        Ok(compiler.ptx(&text, &self.to_string())?.text)
    }

    /// What is compiled to machine code.
    fn text(&self, code: Code) -> Result<Text<'static>, CompileError> {
        let options = [
            format!("--gpu-architecture={code}"),
            "--ptxas-options=-v".to_owned(),
        ];
        Ok(Text {
            file: self.file()?,
            headers: source::headers(),
            options: options.into_iter().chain(self.language_options()).collect(),
            kernel: None,
        })
    }

    /// The definitions come last, sorted by name.
    fn language_options(&self) -> impl Iterator<Item = String> {
        let defines = self.defines.iter();
        ["--std=c++17".to_owned()]
            .into_iter()
            .chain(defines.map(|(name, value)| format!("--define-macro={name}={value}")))
    }

    pub(crate) fn file(&self) -> Result<File<'static>, CompileError> {
        self.source.file().ok_or_else(|| {
            CompileError::Impossible(format!(
                "{self}: this build of Gauntlet has no kernel of that name"
            ))
        })
    }

    /// Its kernel in what was compiled.
    fn found(&self, Entry { report, cubin }: Entry, origin: Origin) -> Result<Compiled, CompileError> {
        let entry = self.source.entry();
        match report.resources.get(entry) {
            Some(resources) => Ok(Compiled {
                cubin,
                entry,
                resources: *resources,
                warnings: report.warnings,
                origin,
            }),
            None => Err(CompileError::Impossible(format!(
                "{self} compiles, but its source has no kernel `{entry}`; kernels are named as their files"
            ))),
        }
    }
}
