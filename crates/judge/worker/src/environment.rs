//! The environment variables that a worker gets: those that Python, compilers and libraries for arrays and devices read, and
//! no others. A variable may hold a secret, and what a worker prints goes into reports.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

/// Names more variables, separated by commas; a name that ends with `*` stands for all that begin so.
const MORE: &str = "GAUNTLET_WORKER_ENVIRONMENT";

/// Variables by name.
const NAMES: [&str; 36] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "CUDACXX",
    "CUDAHOSTCXX",
    "MAX_JOBS",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_DATASETS_CACHE",
    "SOURCE_DATE_EPOCH",
    "NO_COLOR",
];

/// Variables by the beginnings of their names.
const BEGINNINGS: [&str; 46] = [
    "LC_",
    "PYTHON",
    "GAUNTLET_",
    "MALLOC_",
    "GLIBC_",
    "TCMALLOC_",
    // Devices and their compilers.
    "CUDA_",
    "CUDNN_",
    "CUBLAS_",
    "CUBLASLT_",
    "CUTLASS_",
    "CUTE_",
    "NVIDIA_",
    "NVCC_",
    "NVRTC_",
    "NCCL_",
    "NVSHMEM_",
    "HIP_",
    "HSA_",
    "ROCM_",
    "ROCR_",
    "SYCL_",
    "ONEAPI_",
    // Libraries for arrays.
    "TORCH_",
    "TORCHINDUCTOR_",
    "TORCHDYNAMO_",
    "PYTORCH_",
    "ATEN_",
    "TRITON_",
    "TILELANG_",
    "CUPY_",
    "NUMBA_",
    "NUMEXPR_",
    "JAX_",
    "XLA_",
    "TF_XLA_",
    // Threads of libraries.
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OPENBLAS_",
    "BLIS_",
    // Sanitizers and other languages' run times.
    "ASAN_",
    "LSAN_",
    "UBSAN_",
    "RUST_",
];

/// Parts of names of secrets, which no beginning lets pass.
const SECRET: [&str; 6] = ["SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL", "_KEY"];

/// Variables that all workers get besides.
static GIVEN: Mutex<BTreeMap<String, OsString>> = Mutex::new(BTreeMap::new());

/// Gives a variable to every worker that this process starts from now on: what it has found out for all of them.
pub fn give_to_workers(name: &str, value: impl Into<OsString>) {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    given.insert(name.to_owned(), value.into());
}

/// The variables of this process that a worker gets, and those that were given to all.
pub(crate) fn allowed() -> impl Iterator<Item = (OsString, OsString)> {
    let more = env::var(MORE).unwrap_or_default();
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    env::vars_os()
        .filter(move |(name, _)| name.to_str().is_some_and(|name| is_allowed(name, &more)))
        .chain(given.into_iter().map(|(name, value)| (name.into(), value)))
}

/// The variables of this process without those that may be secrets: what a program of the user's own gets.
pub(crate) fn without_secrets() -> impl Iterator<Item = (OsString, OsString)> {
    let more = env::var(MORE).unwrap_or_default();
    env::vars_os().filter(move |(name, _)| {
        name.to_str()
            .is_some_and(|name| !is_secret(name) || is_named(name, &more))
    })
}

fn is_allowed(name: &str, more: &str) -> bool {
    let has_beginning = || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    NAMES.contains(&name) || has_beginning() && !is_secret(name) || is_named(name, more)
}

fn is_secret(name: &str) -> bool {
    SECRET.iter().any(|part| name.contains(part))
}

/// Whether a variable is one of those in a list like that of [`MORE`].
fn is_named(name: &str, more: &str) -> bool {
    let is_meant = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    more.split(',')
        .map(str::trim)
        .filter(|pattern| !pattern.is_empty())
        .any(is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libraries_read_passes_and_secrets_do_not() {
        for name in [
            "PATH",
            "CUDA_VISIBLE_DEVICES",
            "OMP_NUM_THREADS",
            "LC_ALL",
            "PYTHONPATH",
            "TRITON_INTERPRET",
        ] {
            assert!(is_allowed(name, ""), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "HF_TOKEN",
            "NVIDIA_API_KEY",
            "SSH_AUTH_SOCK",
            "MINE",
        ] {
            assert!(!is_allowed(name, ""), "{name}");
        }
        let more = "MINE, OURS_*";
        assert!(["MINE", "OURS_TOO"].iter().all(|name| is_allowed(name, more)));
        assert!(!is_allowed("MINE_TOO", more) && !is_allowed("", ""));
    }
}
