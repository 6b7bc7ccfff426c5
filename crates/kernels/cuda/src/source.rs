//! The device code, embedded: one kernel a file, and the headers they share.
//!
//! Adding a kernel or a header is a line in a list.

mod products;
mod wgmma;

use std::fmt;
use std::sync::LazyLock;

use gauntlet_cuda::compiler::File;

use crate::plan::{Source, Variant};

pub use wgmma::widths;

macro_rules! file {
    ($name:literal) => {
        File {
            name: $name,
            text: include_str!(concat!("../kernels/", $name)),
        }
    };
}

/// Each source with its file; the kernel in it is named as the file, without `.cu`.
const KERNELS: &[(Source, File)] = &[
    (Source::Arrange, file!("arrange.cu")),
    (Source::AttentionMerge, file!("attention_merge.cu")),
    (Source::AttentionResident, file!("attention_resident.cu")),
    (Source::AttentionSpecialised, file!("attention_specialised.cu")),
    (Source::AttentionUnified, file!("attention_unified.cu")),
    (Source::Combine, file!("combine.cu")),
    (Source::Count, file!("count.cu")),
    (Source::Narrow, file!("narrow.cu")),
    (Source::Native, file!("native.cu")),
    (Source::Repack, file!("repack.cu")),
    (Source::Rows, file!("rows.cu")),
    (Source::Swapped, file!("swapped.cu")),
    (Source::Tokens, file!("tokens.cu")),
    (Source::Unified, file!("unified.cu")),
];

/// Headers that lie under `kernels/`.
const HEADERS: &[File] = &[
    file!("attention.cuh"),
    file!("attention_operands.cuh"),
    file!("attention_parts.cuh"),
    file!("attention_specialised_loads.cuh"),
    file!("attention_specialised_merge.cuh"),
    file!("attention_specialised_products.cuh"),
    file!("attention_specialised_ring.cuh"),
    file!("attention_unified_fragments.cuh"),
    file!("attention_unified_memory.cuh"),
    file!("attention_unified_parts.cuh"),
    file!("attention_unified_results.cuh"),
    file!("attention_unified_scalar.cuh"),
    file!("attention_unified_softmax.cuh"),
    file!("attention_unified_work.cuh"),
    file!("convert.cuh"),
    file!("eights.cuh"),
    file!("format.cuh"),
    file!("mixture.cuh"),
    file!("native_loads.cuh"),
    file!("native_maps.cuh"),
    file!("native_products.cuh"),
    file!("native_results.cuh"),
    file!("native_words.cuh"),
    file!("place.cuh"),
    file!("problem.cuh"),
    file!("ptx.cuh"),
    file!("results.cuh"),
    file!("rows_loads.cuh"),
    file!("rows_products.cuh"),
    file!("rows_results.cuh"),
    file!("rows_words.cuh"),
    file!("schedule.cuh"),
    file!("swapped_loads.cuh"),
    file!("swapped_problem.cuh"),
    file!("swapped_products.cuh"),
    file!("swapped_results.cuh"),
    file!("swapped_ring.cuh"),
    file!("swapped_routed.cuh"),
    file!("swapped_steps.cuh"),
    file!("tcgen05.cuh"),
    file!("trace.cuh"),
    file!("work.cuh"),
];

/// All headers, the generated ones too.
pub fn headers() -> &'static [File<'static>] {
    static ALL: LazyLock<Vec<File>> = LazyLock::new(|| {
        let generated = [
            ("products.cuh", products::header()),
            ("wgmma.cuh", wgmma::header()),
        ]
        .map(|(name, text)| File { name, text });
        HEADERS.iter().copied().chain(generated).collect()
    });
    &ALL
}

impl Source {
    /// Its file; none if this build of Gauntlet has no such kernel.
    pub fn file(self) -> Option<File<'static>> {
        KERNELS
            .iter()
            .find(|(source, _)| *source == self)
            .map(|(_, file)| *file)
    }

    /// The name of its kernel.
    pub fn entry(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Swapped => "swapped",
            Self::Tokens => "tokens",
            Self::Arrange => "arrange",
            Self::Count => "count",
            Self::Combine => "combine",
            Self::Repack => "repack",
            Self::Narrow => "narrow",
            Self::Unified => "unified",
            Self::Native => "native",
            Self::AttentionUnified => "attention_unified",
            Self::AttentionSpecialised => "attention_specialised",
            Self::AttentionMerge => "attention_merge",
            Self::AttentionResident => "attention_resident",
        }
    }
}

/// The kernel with its definitions, as messages name it: `rows (STAGES=4 TILE_N=128)`.
impl fmt::Display for Variant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.source.entry())?;
        for (index, (name, value)) in self.defines.iter().enumerate() {
            let before = if index == 0 { " (" } else { " " };
            write!(formatter, "{before}{name}={value}")?;
        }
        if !self.defines.is_empty() {
            formatter.write_str(")")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn kernels_are_named_as_their_files() {
        for (source, file) in KERNELS {
            assert_eq!(file.name.strip_suffix(".cu"), Some(source.entry()));
        }
    }

    #[test]
    fn every_header_that_is_included_is_there() {
        let known: Vec<_> = headers().iter().map(|header| header.name).collect();
        let files = headers().iter().chain(KERNELS.iter().map(|(_, file)| file));
        for file in files {
            for line in file.text.lines() {
                let Some(included) = line.trim().strip_prefix("#include \"") else {
                    continue;
                };
                let included = included.trim_end_matches('"');
                assert!(known.contains(&included), "{} includes {included}", file.name);
            }
        }
    }

    #[test]
    fn a_variant_names_its_definitions() {
        let mut variant = Variant {
            source: Source::Rows,
            defines: BTreeMap::new(),
            threads: 128,
            shared_bytes: 0,
            registers: 255,
        };
        assert_eq!(variant.to_string(), "rows");
        variant.defines = [("TILE_N", "64".to_owned()), ("STAGES", "2".to_owned())].into();
        assert_eq!(variant.to_string(), "rows (STAGES=2 TILE_N=64)");
    }
}
