//! NVRTC, found and loaded at run time: a machine without a GPU may lack it or have it from a PyPI wheel.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use super::{File, caches};
use crate::error::CompileError;

/// Names a folder that is searched first.
pub const LIBRARIES_VARIABLE: &str = "GAUNTLET_CUDA_LIBRARIES";

/// Where libraries lie under such a folder: directly in it, in a toolkit, in the wheels since CUDA 13, and in older
/// wheels.
const FOLDERS: [&str; 5] = ["", "lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];

/// Names passed to the dynamic linker if no folder has the library.
const NAMES: [&str; 3] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];

/// NVRTC's opaque type of a program being compiled.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}
type Handle = *mut Opaque;
type Status = c_int;

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)+) => {
        /// The functions used, as nvrtc.h declares them.
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl Functions {
            fn load(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $(
                        // SAFETY: the type matches the declaration in nvrtc.h, which has not changed since the first
                        // release with cubins (11.1).
                        $field: *unsafe { library.get($symbol.as_bytes())? },
                    )+
                })
            }
        }
    };
}

functions! {
    version = "nvrtcVersion": fn(*mut c_int, *mut c_int) -> Status;
    error_string = "nvrtcGetErrorString": fn(Status) -> *const c_char;
    add_name = "nvrtcAddNameExpression": fn(Handle, *const c_char) -> Status;
    lowered_name = "nvrtcGetLoweredName": fn(Handle, *const c_char, *mut *const c_char) -> Status;
    create = "nvrtcCreateProgram": fn(
        *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> Status;
    destroy = "nvrtcDestroyProgram": fn(*mut Handle) -> Status;
    compile = "nvrtcCompileProgram": fn(Handle, c_int, *const *const c_char) -> Status;
    log_size = "nvrtcGetProgramLogSize": fn(Handle, *mut usize) -> Status;
    log = "nvrtcGetProgramLog": fn(Handle, *mut c_char) -> Status;
    cubin_size = "nvrtcGetCUBINSize": fn(Handle, *mut usize) -> Status;
    cubin = "nvrtcGetCUBIN": fn(Handle, *mut c_char) -> Status;
    ptx_size = "nvrtcGetPTXSize": fn(Handle, *mut usize) -> Status;
    ptx = "nvrtcGetPTX": fn(Handle, *mut c_char) -> Status;
}

/// NVRTC, loaded for the rest of the process: unloading it is not safe because it leaves threads and thread-local state
/// behind.
pub(super) struct Nvrtc {
    functions: Functions,
    version: (i32, i32),
    path: PathBuf,
}

/// The result of a compilation.
pub(super) enum Made {
    /// Code of the kind that the options ask for, the log, and the name in the code of the kernel asked for, if one was.
    Code {
        code: Vec<u8>,
        log: String,
        entry: Option<String>,
    },
    /// The source does not compile; the log gives the reason.
    Refused { log: String },
}

/// The kind of output; the options have to ask for the same kind.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Machine code for a real architecture, `sm_…`.
    Cubin,
    /// PTX for a virtual architecture, `compute_…`.
    Ptx,
}

impl Nvrtc {
    /// Loads NVRTC from the first place that has it.
    pub fn load() -> Result<Self, CompileError> {
        let mut looked = Vec::new();
        for root in roots() {
            for folder in FOLDERS.map(|folder| root.join(folder)) {
                if let Some(path) = newest(&folder, "libnvrtc.so") {
                    return Self::open(&path, newest(&folder, "libnvrtc-builtins.so"));
                }
            }
            looked.push(root);
        }
        let found = NAMES.iter().find(|name| {
            // SAFETY: NVRTC's initialisers only set up NVRTC's own state.
            unsafe { Library::open(Some(**name), RTLD_NOW | RTLD_LOCAL) }
                .map(std::mem::forget)
                .is_ok()
        });
        match found {
            Some(name) => Self::open(Path::new(name), None),
            None => Err(CompileError::NoCompiler { looked }),
        }
    }

    /// Loads NVRTC, and before it the library of built-in functions. NVRTC would otherwise search the dynamic linker's
    /// paths for that library by name; the linker reuses a library that is already loaded.
    fn open(path: &Path, builtins: Option<PathBuf>) -> Result<Self, CompileError> {
        let failed = |error: libloading::Error| CompileError::Library {
            path: path.to_owned(),
            message: error.to_string(),
        };
        if let Some(builtins) = builtins {
            // SAFETY: the library's initialisers only set up its own state.
            let library = unsafe { Library::open(Some(builtins), RTLD_NOW | RTLD_GLOBAL) };
            std::mem::forget(library.map_err(failed)?);
        }
        // SAFETY: NVRTC's initialisers only set up NVRTC's own state.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
        let functions = Functions::load(&library).map_err(failed)?;
        std::mem::forget(library);
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers point to integers that live through the call.
        let status = unsafe { (functions.version)(&raw mut major, &raw mut minor) };
        if status != 0 {
            return Err(CompileError::Library {
                path: path.to_owned(),
                message: format!("nvrtcVersion answers {status}"),
            });
        }
        Ok(Self {
            functions,
            version: (major, minor),
            path: mapped(path),
        })
    }

    /// Major and minor.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// The path of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compiles a program; the headers are given in memory. `kernel` is a kernel as C++ names it, such as
    /// `softmax<128>`, whose name in the code is wanted; it also makes the compiler instantiate a template.
    pub fn compile(
        &self,
        kind: Kind,
        file: File,
        headers: &[File],
        options: &[String],
        kernel: Option<&str>,
    ) -> Result<Made, CompileError> {
        let program = Program::new(self, file, headers)?;
        let kernel = strings(kernel)?.pop();
        if let Some(kernel) = &kernel {
            // SAFETY: the program is alive and not compiled yet; the name ends in zero and is copied.
            let status = unsafe { (self.functions.add_name)(program.handle, kernel.as_ptr()) };
            self.check("nvrtcAddNameExpression", status)?;
        }
        let options = strings(options.iter().map(String::as_str))?;
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = c_int::try_from(options.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program is alive, and `count` is the number of options.
        let status = unsafe { (self.functions.compile)(program.handle, count, options.as_ptr()) };
        let log = program.log()?;
        match status {
            0 => Ok(Made::Code {
                code: program.code(kind)?,
                entry: kernel.and_then(|kernel| program.lowered(&kernel)),
                log,
            }),
            // NVRTC_ERROR_COMPILATION.
            6 => Ok(Made::Refused { log }),
            _ => Err(self.broken("nvrtcCompileProgram", status, log)),
        }
    }

    fn check(&self, call: &'static str, status: Status) -> Result<(), CompileError> {
        match status {
            0 => Ok(()),
            _ => Err(self.broken(call, status, String::new())),
        }
    }

    fn broken(&self, call: &'static str, status: Status, log: String) -> CompileError {
        // SAFETY: for any status NVRTC returns a static string that ends in zero.
        let name = unsafe { CStr::from_ptr((self.functions.error_string)(status)) };
        CompileError::Broken {
            call,
            name: name.to_string_lossy().into_owned(),
            log,
        }
    }
}

/// A program that is destroyed when dropped.
struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: Handle,
}

impl<'a> Program<'a> {
    fn new(nvrtc: &'a Nvrtc, file: File, headers: &[File]) -> Result<Self, CompileError> {
        let own = strings([file.text, file.name])?;
        let texts = strings(headers.iter().map(|header| header.text))?;
        let names = strings(headers.iter().map(|header| header.name))?;
        let pointers = |strings: &[CString]| strings.iter().map(|text| text.as_ptr()).collect::<Vec<_>>();
        let (texts_at, names_at) = (pointers(&texts), pointers(&names));
        let count = c_int::try_from(headers.len()).unwrap_or(c_int::MAX);
        let mut handle = ptr::null_mut();
        // SAFETY: all strings end in zero and outlive the call, which copies them; the lists have the lengths passed.
        let status = unsafe {
            (nvrtc.functions.create)(
                &raw mut handle,
                own[0].as_ptr(),
                own[1].as_ptr(),
                count,
                texts_at.as_ptr(),
                names_at.as_ptr(),
            )
        };
        nvrtc.check("nvrtcCreateProgram", status)?;
        Ok(Self { nvrtc, handle })
    }

    fn log(&self) -> Result<String, CompileError> {
        let functions = &self.nvrtc.functions;
        let bytes = self.bytes("nvrtcGetProgramLog", functions.log_size, functions.log)?;
        let text = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// The name in the code of a kernel that was asked for before the compilation; none if there is no such kernel.
    fn lowered(&self, kernel: &CStr) -> Option<String> {
        let mut name = ptr::null();
        // SAFETY: the program is compiled; the name ends in zero, and the pointer is a local variable.
        let status =
            unsafe { (self.nvrtc.functions.lowered_name)(self.handle, kernel.as_ptr(), &raw mut name) };
        if status != 0 || name.is_null() {
            return None;
        }
        // SAFETY: NVRTC keeps the string, which ends in zero, until the program is destroyed.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn code(&self, kind: Kind) -> Result<Vec<u8>, CompileError> {
        let functions = &self.nvrtc.functions;
        match kind {
            Kind::Cubin => self.bytes("nvrtcGetCUBIN", functions.cubin_size, functions.cubin),
            Kind::Ptx => self.bytes("nvrtcGetPTX", functions.ptx_size, functions.ptx),
        }
    }

    fn bytes(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(Handle, *mut usize) -> Status,
        fill: unsafe extern "C" fn(Handle, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, CompileError> {
        let mut length = 0;
        // SAFETY: the program is alive, and the length is written to a local variable.
        let status = unsafe { size(self.handle, &raw mut length) };
        self.nvrtc.check(call, status)?;
        let mut bytes = vec![0_u8; length];
        // SAFETY: the buffer has the length that NVRTC just reported.
        let status = unsafe { fill(self.handle, bytes.as_mut_ptr().cast()) };
        self.nvrtc.check(call, status)?;
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is that of a live program and is not used again.
        let _ = unsafe { (self.nvrtc.functions.destroy)(&raw mut self.handle) };
    }
}

/// Folders that may contain NVRTC, in order of preference.
fn roots() -> Vec<PathBuf> {
    let named = std::env::var_os(LIBRARIES_VARIABLE).map(PathBuf::from);
    let installed = caches().map(|caches| caches.join("cuda-compiler"));
    let toolkit = std::env::var_os("CUDA_HOME").map(PathBuf::from);
    let usual = Some(PathBuf::from("/usr/local/cuda"));
    [named, installed, toolkit, usual].into_iter().flatten().collect()
}

/// The newest version of a library in a folder. NVRTC's `.alt` libraries are skipped: they serve other purposes.
fn newest(folder: &Path, name: &str) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?;
    files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter_map(|path| {
            let version = path.file_name()?.to_str()?.strip_prefix(name)?;
            let numbers = version.split('.').filter_map(|part| part.parse::<u32>().ok());
            Some((numbers.collect::<Vec<_>>(), path))
        })
        .max()
        .map(|(_, path)| path)
}

/// The path of a loaded library; the requested name if the system does not report it.
fn mapped(asked: &Path) -> PathBuf {
    let name = asked
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .find(|path| path.contains(&format!("/{name}")))
        .map_or_else(|| asked.to_owned(), PathBuf::from)
}

fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<CString>, CompileError> {
    texts
        .into_iter()
        .map(|text| CString::new(text).map_err(|_| CompileError::ZeroByte))
        .collect()
}

#[cfg(test)]
mod meeting {
    //! NVRTC whose compilations wait for each other.

    use std::sync::{Condvar, Mutex, OnceLock};
    use std::time::Duration;

    use super::{Handle, Nvrtc, Status, c_char, c_int};

    type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status;

    static COMPILE: OnceLock<Compile> = OnceLock::new();
    static BEGUN: Mutex<usize> = Mutex::new(0);
    static ONE_MORE: Condvar = Condvar::new();

    /// NVRTC_ERROR_INTERNAL_ERROR.
    const ALONE: Status = 11;

    impl Nvrtc {
        /// NVRTC that compiles once two compilations have begun; one that stays alone fails after a minute. For one test of a
        /// process.
        pub(in crate::compiler) fn in_pairs(mut self) -> Self {
            COMPILE.get_or_init(|| self.functions.compile);
            self.functions.compile = compile;
            self
        }
    }

    unsafe extern "C" fn compile(program: Handle, count: c_int, options: *const *const c_char) -> Status {
        let mut begun = BEGUN.lock().unwrap();
        *begun += 1;
        ONE_MORE.notify_all();
        let (begun, waited) = ONE_MORE
            .wait_timeout_while(begun, Duration::from_secs(60), |begun| *begun < 2)
            .unwrap();
        drop(begun);
        match COMPILE.get() {
            // SAFETY: the caller keeps the promises that NVRTC's own function asks for.
            Some(compile) if !waited.timed_out() => unsafe { compile(program, count, options) },
            _ => ALONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_taken_and_the_alternative_is_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "libnvrtc.so.12",
            "libnvrtc.so.13",
            "libnvrtc.so.9",
            "libnvrtc.alt.so.14",
            "libnvrtc-builtins.so.13.0",
            "libnvrtc-builtins.so.13.1",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let name = |library: &str| {
            let path = newest(folder.path(), library)?;
            Some(path.file_name()?.to_str()?.to_owned())
        };
        assert_eq!(name("libnvrtc.so").as_deref(), Some("libnvrtc.so.13"));
        assert_eq!(
            name("libnvrtc-builtins.so").as_deref(),
            Some("libnvrtc-builtins.so.13.1")
        );
        assert_eq!(name("libcuda.so"), None);
    }

    #[test]
    fn a_file_that_is_no_library_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnvrtc.so.13");
        fs::write(&path, "not a library").unwrap();
        let error = Nvrtc::open(&path, None).err().unwrap().to_string();
        assert!(error.contains("libnvrtc.so.13"), "{error}");
    }
}
