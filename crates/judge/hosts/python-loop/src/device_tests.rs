//! The device's clock and memory against a driver that works on the host's memory.

mod load;

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::rc::Rc;

use crate::device::Device;
use crate::driver::{Address, Driver, Handle, NO_MEMORY, NOT_SUPPORTED};
use crate::memory::{Block, Layout};

thread_local! {
    /// Bytes that can still be allocated.
    static LEFT: Cell<usize> = const { Cell::new(1 << 20) };
    /// Calls of the driver, by the first letters of their names, in order.
    static HELD: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    static CALLS: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
    /// The status that the next synchronisation returns.
    static FAULT: Cell<c_int> = const { Cell::new(0) };
}

fn called(letter: char) {
    CALLS.with_borrow_mut(|calls| calls.push(letter));
}

unsafe extern "C" fn current_device(device: *mut c_int) -> c_int {
    // SAFETY: the caller passes a variable.
    unsafe { *device = 0 };
    0
}

unsafe extern "C" fn attribute(value: *mut c_int, _attribute: c_int, _device: c_int) -> c_int {
    // SAFETY: the caller passes a variable.
    unsafe { *value = 1024 };
    0
}

unsafe extern "C" fn synchronize() -> c_int {
    called('s');
    FAULT.take()
}

unsafe extern "C" fn allocate(address: *mut Address, bytes: usize) -> c_int {
    let left = LEFT.get();
    if bytes > left {
        return 2;
    }
    LEFT.set(left - bytes);
    let block = vec![0_u64; bytes.div_ceil(8)].leak();
    // SAFETY: the caller passes a variable.
    unsafe { *address = block.as_mut_ptr() as Address };
    0
}

unsafe extern "C" fn free(_address: Address) -> c_int {
    called('f');
    0
}

unsafe extern "C" fn copy(target: Address, source: Address, bytes: usize) -> c_int {
    called('c');
    // SAFETY: the tests pass live memory of that length.
    unsafe { std::ptr::copy(source as *const u8, target as *mut u8, bytes) };
    0
}

unsafe extern "C" fn copy_down(target: *mut c_void, source: Address, bytes: usize) -> c_int {
    // SAFETY: the tests pass live memory of that length.
    unsafe { std::ptr::copy(source as *const u8, target.cast(), bytes) };
    0
}

unsafe extern "C" fn copy_up(target: Address, source: *const c_void, bytes: usize) -> c_int {
    called('u');
    // SAFETY: the tests pass live memory of that length.
    unsafe { std::ptr::copy(source.cast(), target as *mut u8, bytes) };
    0
}

unsafe extern "C" fn lock(_memory: *mut c_void, _bytes: usize, _flags: c_uint) -> c_int {
    called('l');
    0
}

unsafe extern "C" fn unlock(_memory: *mut c_void) -> c_int {
    called('n');
    0
}

unsafe extern "C" fn load_module(_module: *mut Handle, text: *const c_void) -> c_int {
    // SAFETY: the text ends with a null byte.
    let text = unsafe { std::ffi::CStr::from_ptr(text.cast()) };
    let kernels = [".entry gauntlet_hold_back(", ".entry gauntlet_open("];
    assert!(
        kernels
            .iter()
            .any(|kernel| text.to_str().unwrap().contains(kernel))
    );
    0
}

/// The handle of the kernel that opens operands; that of the hold is null.
const OPENER: usize = 1;

unsafe extern "C" fn find_function(
    function: *mut Handle,
    _module: Handle,
    name: *const std::ffi::c_char,
) -> c_int {
    // SAFETY: the name ends with a null byte, and the caller passes a variable.
    unsafe {
        if std::ffi::CStr::from_ptr(name) == c"gauntlet_open" {
            *function = std::ptr::without_provenance_mut(OPENER);
        }
    }
    0
}

unsafe extern "C" fn launch(
    function: Handle,
    blocks: c_uint,
    _: c_uint,
    _: c_uint,
    threads: c_uint,
    _: c_uint,
    _: c_uint,
    _shared: c_uint,
    _stream: Handle,
    arguments: *mut *mut c_void,
    _more: *mut *mut c_void,
) -> c_int {
    if function.addr() == OPENER {
        called('o');
        // SAFETY: the loop passes four numbers: the address, how many blocks lie there, and how they are sealed.
        unsafe {
            let [address, blocks, tensor, key] =
                [0, 1, 2, 3].map(|index| *(*arguments.add(index)).cast::<u64>());
            let bytes = std::slice::from_raw_parts_mut(address as *mut u8, 16 * blocks as usize);
            gauntlet_calls::seal::apply(key, tensor, 0, bytes);
        }
        return 0;
    }
    // SAFETY: the kernel of the hold takes one number.
    HELD.set(unsafe { *(*arguments).cast::<u64>() });
    called('g');
    // 1024 multiprocessors of 1024 threads each.
    assert_eq!(blocks * threads, 1 << 20);
    0
}

unsafe extern "C" fn reset_persisting() -> c_int {
    called('p');
    NOT_SUPPORTED
}

unsafe extern "C" fn fill(target: Address, byte: u8, bytes: usize) -> c_int {
    called('m');
    // SAFETY: the tests pass live memory of that length.
    unsafe { std::ptr::write_bytes(target as *mut u8, byte, bytes) };
    0
}

unsafe extern "C" fn fill_on(_target: Address, _byte: u8, bytes: usize, _stream: Handle) -> c_int {
    assert_eq!(bytes, gauntlet_calls::activity::MARK_BYTES);
    called('b');
    0
}

unsafe extern "C" fn create_event(event: *mut Handle, _flags: c_uint) -> c_int {
    // SAFETY: the caller passes a variable.
    unsafe { *event = std::ptr::null_mut() };
    0
}

unsafe extern "C" fn record_event(_event: Handle, _stream: Handle) -> c_int {
    called('r');
    0
}

unsafe extern "C" fn wait_for_event(_event: Handle) -> c_int {
    called('w');
    0
}

unsafe extern "C" fn elapsed(milliseconds: *mut f32, _start: Handle, _end: Handle) -> c_int {
    // SAFETY: the caller passes a variable.
    unsafe { *milliseconds = 0.25 };
    0
}

fn driver() -> Driver {
    Driver {
        current_device,
        attribute,
        synchronize,
        allocate,
        free,
        copy,
        copy_down,
        copy_up,
        lock,
        unlock,
        load_module,
        find_function,
        launch,
        reset_persisting,
        fill,
        fill_on,
        create_event,
        record_event,
        wait_for_event,
        elapsed,
    }
}

#[test]
fn a_call_is_timed_between_two_events_until_the_whole_device_is_idle() {
    let device = Device::new(driver()).unwrap();
    CALLS.take();
    let (result, seconds, host) = device
        .time(std::ptr::null_mut(), 1_300_000, || {
            called('k');
            std::thread::sleep(std::time::Duration::from_millis(2));
            Ok::<_, String>(7)
        })
        .unwrap();
    assert_eq!(CALLS.take(), "grkrws", "behind the hold");
    assert_eq!(HELD.get(), 1_300_000);
    assert!(host >= 2e-3, "{host}");
    assert_eq!(result, 7);
    assert!(seconds >= 0.25e-3, "{seconds}");
    device.clear_cache().unwrap();
    assert_eq!(CALLS.take(), "pm", "lines that persist first");
}

#[test]
fn a_whole_call_is_timed_without_a_hold_until_the_whole_device_is_idle() {
    let device = Device::new(driver()).unwrap();
    CALLS.take();
    let call = || {
        called('k');
        std::thread::sleep(std::time::Duration::from_millis(2));
        Ok::<_, String>(7)
    };
    let (result, seconds) = device.time_whole(call).unwrap();
    assert_eq!((CALLS.take().as_str(), result), ("ks", 7));
    assert!(
        seconds >= 2e-3,
        "{seconds}: the host's time counts, not the events'"
    );
}

#[test]
fn a_traced_call_lies_between_two_marks_behind_the_hold() {
    let device = Device::new(driver()).unwrap();
    CALLS.take();
    let call = || {
        called('k');
        Ok::<_, String>(7)
    };
    assert_eq!(device.marked(std::ptr::null_mut(), 600_000, call), Ok(7));
    assert_eq!((CALLS.take().as_str(), HELD.get()), ("gbkbs", 600_000));
}

#[test]
fn a_failure_of_the_kernel_and_a_lack_of_memory_are_named() {
    let device = Device::new(driver()).unwrap();
    FAULT.set(700);
    let failed = device
        .time(std::ptr::null_mut(), 600_000, || Ok::<_, String>(()))
        .unwrap_err();
    assert_eq!(
        failed,
        "the kernel failed on the device: the CUDA driver reports error 700"
    );
    let failed = Block::new(Some(&device.driver), 1 << 30).err().unwrap();
    assert!(failed.starts_with(NO_MEMORY), "{failed}");
}

#[test]
fn blocks_keep_what_they_took_on_the_host_and_on_the_device() {
    let device = Device::new(driver()).unwrap();
    for driver in [None, Some(&device.driver)] {
        let mut given: Vec<u8> = (0..16).collect();
        let mut block = Block::new(driver, 16).unwrap();
        // SAFETY: the bytes are alive.
        unsafe { block.take(0, given.as_ptr() as u64, 16) }.unwrap();
        given.fill(9);
        assert_eq!(block.read(4, 2).unwrap(), [4, 5]);
        // SAFETY: as above.
        unsafe { block.give(given.as_mut_ptr() as u64) }.unwrap();
        assert_eq!(given[15], 15);
        // SAFETY: as above.
        let long = unsafe { block.take(8, given.as_ptr() as u64, 16) };
        assert!(long.unwrap_err().contains("longer than its place"));
    }
    assert_eq!(
        Rc::strong_count(&device.driver),
        3,
        "the cache's block, the hold and the device"
    );
}

#[test]
fn inputs_that_a_kernel_changed_are_restored() {
    let mut given = [1_u8, 2, 3];
    let mut block = Block::new(None, 3).unwrap();
    // SAFETY: the bytes are alive.
    unsafe { block.take(0, given.as_ptr() as u64, 3) }.unwrap();
    given[1] = 7;
    // SAFETY: as above.
    unsafe { block.restore(given.as_mut_ptr() as u64) };
    assert_eq!(given, [1, 2, 3]);
}

#[test]
fn strided_tensors_are_gathered_in_row_major_order() {
    let elements: Vec<u16> = (0..6).collect();
    let gathered = |address: *const u16, shape: &[usize], strides: &[isize]| {
        let layout = Layout {
            address: address as u64,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            element: 2,
        };
        let mut target = vec![0_u8; layout.bytes()];
        // SAFETY: the tests name elements of the vector only.
        unsafe { layout.gather(&mut target) };
        let values = target.chunks_exact(2).map(|pair| u16::from(pair[0]));
        let order = match (layout.is_row_major(), layout.is_dense()) {
            (true, _) => "row-major",
            (false, true) => "dense",
            (false, false) => "with gaps",
        };
        (order, values.collect::<Vec<_>>())
    };
    let start = elements.as_ptr();
    assert_eq!(
        gathered(start, &[2, 3], &[6, 2]),
        ("row-major", vec![0, 1, 2, 3, 4, 5])
    );
    assert_eq!(
        gathered(start, &[3, 2], &[2, 6]),
        ("dense", vec![0, 3, 1, 4, 2, 5])
    );
    assert_eq!(gathered(start, &[2, 1], &[6, 500]), ("with gaps", vec![0, 3]));
    assert_eq!(
        gathered(start, &[3, 2], &[0, 2]),
        ("with gaps", vec![0, 1, 0, 1, 0, 1])
    );
    assert_eq!(
        gathered(start.wrapping_add(5), &[3], &[-2]),
        ("with gaps", vec![5, 4, 3])
    );
    assert_eq!(gathered(start, &[], &[]), ("row-major", vec![0]));
    assert_eq!(gathered(start, &[0, 3], &[6, 2]), ("row-major", vec![]));
}

#[test]
fn operands_reach_the_device_as_the_coordinator_wrote_them_and_results_come_back() {
    use crate::staging::Staging;

    let driver = Rc::new(driver());
    let loaded = [7_u8; 64];
    let block = || {
        let mut block = Block::new(Some(&driver), loaded.len()).unwrap();
        // SAFETY: the array is as long as the block.
        unsafe { block.take(0, loaded.as_ptr() as u64, loaded.len()) }.unwrap();
        block
    };
    let inputs = [block(), block(), block()];
    let changing = [true, false, true];
    let outputs = [Some(64), None].into_iter();
    let mut staging = Staging::new(&driver, inputs.iter().zip(changing), outputs).unwrap();
    let written: Vec<Option<u64>> = staging.addresses().collect();
    assert_eq!(
        written.iter().map(Option::is_some).collect::<Vec<_>>(),
        changing,
        "constant inputs stay on the device"
    );
    let mut targets = [[0_u8; 64]; 3];
    let addresses = targets.each_mut().map(|target| target.as_mut_ptr() as u64);
    staging.send().unwrap();
    // SAFETY: each array is as long as its operand.
    unsafe { staging.reveal(&addresses) }.unwrap();
    assert_eq!(targets, [loaded, [0; 64], loaded], "nothing else was written");
    for (place, byte) in [(0, 9), (2, 8)] {
        let address = written[place].unwrap() as *mut u8;
        // SAFETY: the operand's memory on the host is as long as that, and only read by `reveal`.
        unsafe { std::ptr::write_bytes(address, byte, loaded.len()) };
    }
    CALLS.with_borrow_mut(String::clear);
    staging.send().unwrap();
    // SAFETY: as above.
    unsafe { staging.reveal(&addresses) }.unwrap();
    assert_eq!(targets, [[9; 64], [0; 64], [8; 64]]);
    // All come over the bus to where no kernel looks before the first is copied to where one does.
    assert_eq!(CALLS.with_borrow(String::clone), "uucc");

    let layout = |target: &[u8; 64]| Layout {
        address: target.as_ptr() as u64,
        shape: vec![64],
        strides: vec![1],
        element: 1,
    };
    let layouts = [layout(&targets[0]), layout(&targets[2])];
    // SAFETY: the arrays are alive and in row-major order.
    let places = unsafe { staging.bring_down(&layouts) }.unwrap();
    assert_eq!(
        places[1],
        [layouts[1].address as i64],
        "one on the host stays there"
    );
    // SAFETY: the copy is alive and 64 bytes long.
    let read = unsafe { std::slice::from_raw_parts(places[0][0] as *const u8, 64) };
    assert_eq!(read, [9; 64]);
    drop(staging);
    assert!(CALLS.with_borrow(|calls| calls.contains('n')), "it is unlocked");
}
