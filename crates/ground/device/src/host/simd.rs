//! Vector extensions the processor and the operating system both support.

use crate::Fact;

/// The extensions kernels choose between, by their usual names.
pub(super) fn features() -> Fact<Vec<String>> {
    let value = detected()
        .into_iter()
        .filter(|(_, present)| *present)
        .map(|(name, _)| name.to_owned())
        .collect();
    Fact {
        value,
        source: "detected: at run time, for the architecture this was built for".to_owned(),
    }
}

#[cfg(target_arch = "x86_64")]
fn detected() -> Vec<(&'static str, bool)> {
    macro_rules! features {
        ($($name:tt),+) => { vec![$(($name, std::arch::is_x86_feature_detected!($name))),+] };
    }
    features!(
        "sse2",
        "avx",
        "f16c",
        "fma",
        "avx2",
        "avx512f",
        "avx512bw",
        "avx512dq",
        "avx512vl",
        "avx512vbmi",
        "avx512vnni",
        "avx512bf16",
        "avx512fp16",
        "avxvnni"
    )
}

#[cfg(target_arch = "aarch64")]
fn detected() -> Vec<(&'static str, bool)> {
    vec![("neon", std::arch::is_aarch64_feature_detected!("neon"))]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detected() -> Vec<(&'static str, bool)> {
    Vec::new()
}
