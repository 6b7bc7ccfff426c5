//! NVIDIA's tracing library, CUPTI, which records what a GPU does while it is on.
//!
//! It is looked for when it is needed. A library that the process has loaded already, as PyTorch's, is preferred: a process
//! should not have two.
//!
//! CUPTI hands records out in buffers, from a thread of its own or from a flush, to a function without a context; so what
//! it recorded is kept in one place for the process.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::activity::{Collected, KINDS, Record, TracedCall};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// RTLD_NOW and RTLD_NOLOAD of dlopen(3).
const NOW: c_int = 2;
const LOADED_ALREADY: c_int = 4;

/// Names of the library, newer ones first.
const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];

/// Where the library may lie in a folder of CUDA's libraries: a toolkit's, or one of pip's.
const FOLDERS: [&str; 6] = [
    "",
    "lib64",
    "lib",
    "extras/CUPTI/lib64",
    "nvidia/cu13/lib",
    "nvidia/cuda_cupti/lib",
];

/// CUPTI_ERROR_MAX_LIMIT_REACHED: a buffer has no further record.
const NO_MORE: c_int = 12;

/// A buffer for records. CUPTI's documentation recommends 1 to 10 MB; the alignment is CUPTI's.
// SAFETY: the alignment is a power of two, and the size far from the largest.
const BUFFER: Layout = unsafe { Layout::from_size_align_unchecked(1 << 20, 8) };

/// CUpti_BuffersCallbackRequestFunc and CUpti_BuffersCallbackCompleteFunc.
type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Functions of the library; each returns 0, or the number of an error.
struct Cupti {
    register: unsafe extern "C" fn(Requested, Completed) -> c_int,
    enable: unsafe extern "C" fn(u32) -> c_int,
    disable: unsafe extern "C" fn(u32) -> c_int,
    flush: unsafe extern "C" fn(u32) -> c_int,
    next: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int,
    now: unsafe extern "C" fn(*mut u64) -> c_int,
    result: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
}

fn cupti() -> Result<&'static Cupti, String> {
    static FOUND: OnceLock<Result<Cupti, String>> = OnceLock::new();
    FOUND.get_or_init(Cupti::open).as_ref().map_err(Clone::clone)
}

impl Cupti {
    fn open() -> Result<Self, String> {
        let loaded = NAMES
            .iter()
            .find_map(|name| open(name.into(), NOW | LOADED_ALREADY));
        let library = loaded
            .or_else(|| places().into_iter().find_map(|place| open(place.into(), NOW)))
            .or_else(|| NAMES.iter().find_map(|name| open(name.into(), NOW)))
            .ok_or(
                "CUPTI (libcupti.so) is not found: it comes with PyTorch and with the CUDA toolkit; name its folder by \
                 CUDA_HOME or GAUNTLET_CUDA_LIBRARIES",
            )?;
        let find = |name: &CStr| {
            // SAFETY: the library stays loaded, and the name ends with a null byte.
            let found = unsafe { dlsym(library, name.as_ptr()) };
            if found.is_null() {
                Err(format!("this CUPTI has no {}", name.to_string_lossy()))
            } else {
                Ok(found)
            }
        };
        use std::mem::transmute;
        // SAFETY: each type is that of the function in `cupti_activity.h` and `cupti_result.h`.
        unsafe {
            Ok(Self {
                register: transmute::<*mut c_void, unsafe extern "C" fn(Requested, Completed) -> c_int>(
                    find(c"cuptiActivityRegisterCallbacks")?,
                ),
                enable: transmute::<*mut c_void, unsafe extern "C" fn(u32) -> c_int>(find(
                    c"cuptiActivityEnable",
                )?),
                disable: transmute::<*mut c_void, unsafe extern "C" fn(u32) -> c_int>(find(
                    c"cuptiActivityDisable",
                )?),
                flush: transmute::<*mut c_void, unsafe extern "C" fn(u32) -> c_int>(find(
                    c"cuptiActivityFlushAll",
                )?),
                next: transmute::<*mut c_void, unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int>(
                    find(c"cuptiActivityGetNextRecord")?,
                ),
                now: transmute::<*mut c_void, unsafe extern "C" fn(*mut u64) -> c_int>(find(
                    c"cuptiGetTimestamp",
                )?),
                result: transmute::<*mut c_void, unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>(
                    find(c"cuptiGetResultString")?,
                ),
            })
        }
    }

    /// A status as a result; `what` names the call.
    fn checked(&self, status: c_int, what: &str) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: CUPTI fills the variable with a string that lives as long as the library.
        let named = unsafe { (self.result)(status, &raw mut name) } == 0 && !name.is_null();
        // SAFETY: as above.
        let name = named.then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
        let name = name.filter(|name| !name.is_empty());
        let name = name.map_or(String::new(), |name| format!(" ({name})"));
        Err(format!("CUPTI {what}: error {status}{name}"))
    }
}

fn open(name: OsString, flags: c_int) -> Option<*mut c_void> {
    let name = CString::new(name.into_vec()).ok()?;
    // SAFETY: the name ends with a null byte.
    let library = unsafe { dlopen(name.as_ptr(), flags) };
    (!library.is_null()).then_some(library)
}

/// Files that may be the library.
fn places() -> Vec<PathBuf> {
    let named = ["GAUNTLET_CUDA_LIBRARIES", "CUDA_HOME"].map(std::env::var_os);
    let named = named.into_iter().flatten().map(PathBuf::from);
    let roots: Vec<PathBuf> = named.chain(["/usr/local/cuda".into()]).collect();
    let folders = roots
        .iter()
        .flat_map(|root| FOLDERS.map(|folder| root.join(folder)));
    let files = folders.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    files.filter(|file| file.is_file()).collect()
}

/// What was recorded since the last call.
static COLLECTED: Mutex<Collected> = Mutex::new(Collected::new(0));

fn collected() -> MutexGuard<'static, Collected> {
    COLLECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives CUPTI a buffer.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // SAFETY: CUPTI passes variables. Without memory it gets a null pointer, and drops records. The size is not zero.
    unsafe {
        *buffer = alloc(BUFFER);
        *size = if (*buffer).is_null() { 0 } else { BUFFER.size() };
        *most_records = 0;
    }
}

/// Takes a buffer back, with records in its first `valid` bytes.
unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    if let Ok(cupti) = cupti() {
        let since = collected().since;
        let valid = valid.min(BUFFER.size());
        let mut record = std::ptr::null_mut::<u8>();
        loop {
            // SAFETY: the first `valid` bytes of the buffer are records. CUPTI sets `record` to the record after it, and to the
            // first one if it is null.
            let status = unsafe { (cupti.next)(buffer, valid, &raw mut record) };
            if status != 0 {
                if status != NO_MORE {
                    collected().add(cupti.checked(status, "gives no record").map(|()| None));
                }
                break;
            }
            let offset = (record as usize).wrapping_sub(buffer as usize);
            if offset >= valid {
                collected().add(Err("a record lies outside of its buffer".to_owned()));
                break;
            }
            // SAFETY: the record lies in the buffer, whose valid bytes CUPTI has written, and the slice ends with them.
            let bytes = unsafe { std::slice::from_raw_parts(record, valid - offset) };
            let read = Record::read(bytes, since, |address| {
                if address == 0 {
                    return String::new();
                }
                // SAFETY: CUPTI's strings end with a null byte and live as long as the process, and the record has the layout
                // that is expected: its times are possible.
                let name = unsafe { CStr::from_ptr(address as *const c_char) };
                name.to_string_lossy().into_owned()
            });
            collected().add(read);
        }
    }
    // SAFETY: `requested` allocated the buffer with this layout, and CUPTI has given it back.
    unsafe { dealloc(buffer, BUFFER) };
}

/// Tracing, which is on as long as this lives. It slows launches down.
pub struct Tracer(&'static Cupti);

impl Tracer {
    /// Turns tracing on for the whole process.
    ///
    /// # Errors
    /// If there is no CUPTI, or it refuses: another profiler is attached, or this user may not trace.
    pub fn start() -> Result<Self, String> {
        let cupti = cupti()?;
        // SAFETY: both functions have the types that CUPTI expects.
        let registered = unsafe { (cupti.register)(requested, completed) };
        cupti.checked(registered, "cannot be used")?;
        let tracer = Self(cupti);
        for kind in KINDS {
            // SAFETY: the function takes a number.
            let enabled = unsafe { (cupti.enable)(kind) };
            cupti.checked(enabled, "cannot trace")?;
        }
        Ok(tracer)
    }

    /// Forgets what was recorded until now. The device has to be idle.
    pub fn clear(&self) {
        // A flush that fails fails after the call too, where that is told.
        let _flushed = self.flush();
        let mut now = 0;
        // SAFETY: CUPTI fills the variable. At 0 no record is possible, which is told too.
        let _read = unsafe { (self.0.now)(&raw mut now) };
        *collected() = Collected::new(now);
    }

    /// What was recorded since: one call between two marks. The device has to be idle.
    ///
    /// # Errors
    /// If CUPTI does not hand its records out, or they cannot be read.
    pub fn call(&self) -> Result<TracedCall, String> {
        self.flush()?;
        std::mem::replace(&mut *collected(), Collected::new(0)).into_call()
    }

    /// Lets CUPTI hand out all records of work that has ended.
    fn flush(&self) -> Result<(), String> {
        // SAFETY: the function takes a number.
        let flushed = unsafe { (self.0.flush)(0) };
        self.0.checked(flushed, "does not hand its records out")
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        for kind in KINDS {
            // SAFETY: the function takes a number. A kind that is not on is refused, which changes nothing.
            let _disabled = unsafe { (self.0.disable)(kind) };
        }
        self.clear();
    }
}
