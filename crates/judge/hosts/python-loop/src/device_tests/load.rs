//! Loads, and operands that are sealed while they last.

use std::cell::Cell;
use std::rc::Rc;

use super::{CALLS, called, driver};
use crate::device::Device;
use crate::memory::Block;

#[test]
fn sealed_operands_are_opened_on_the_device() {
    use crate::staging::Staging;

    let driver = Rc::new(driver());
    // Not a whole number of blocks.
    let plain: Vec<u8> = (0..21).collect();
    let mut block = Block::new(Some(&driver), plain.len()).unwrap();
    // SAFETY: the vector is as long as the block.
    unsafe { block.take(0, plain.as_ptr() as u64, plain.len()) }.unwrap();
    let inputs = [block];
    let staging = Staging::new(&driver, inputs.iter().zip([true]), std::iter::empty()).unwrap();
    let written = staging.addresses().next().flatten().unwrap();
    // SAFETY: the operand's memory on the host is that long, and the loop only reads it.
    let there = unsafe { std::slice::from_raw_parts_mut(written as *mut u8, plain.len()) };
    gauntlet_calls::seal::apply(77, written, 0, there);
    let mut target = [255_u8; 24];
    let address = [target.as_mut_ptr() as u64];
    staging.send().unwrap();
    // SAFETY: the array is longer than the operand.
    unsafe { staging.reveal(&address) }.unwrap();
    assert_ne!(target[..21], plain);
    CALLS.take();
    staging.open(77).unwrap();
    // SAFETY: as above.
    unsafe { staging.reveal(&address) }.unwrap();
    assert_eq!(CALLS.take(), "oc");
    assert_eq!(target[..21], plain);
    assert_eq!(target[21..], [255; 3], "nothing beyond the operand is written");
}

#[test]
fn a_load_queues_calls_in_batches_and_never_waits_for_the_last_one() {
    let device = Device::new(driver()).unwrap();
    let loaded = |call: f64, seconds: f64| {
        CALLS.take();
        let now = Cell::new(1.0);
        // The stand-in computes as soon as a call is queued.
        let work = || {
            called('k');
            now.set(now.get() + call);
            Ok::<_, String>(())
        };
        let load = device
            .load(std::ptr::null_mut(), seconds, || now.get(), work)
            .unwrap();
        (load, CALLS.take())
    };
    // Long calls: one in a batch. The host waits for the batch before the last, and for the whole device at the end.
    let ((calls, seconds), order) = loaded(0.25, 1.0);
    assert_eq!((calls, seconds), (4, 1.0));
    assert_eq!(order, "krkrwkrwkrs");
    // An error ends it.
    let failed = device.load(std::ptr::null_mut(), 1.0, || 0.0, || Err("no".to_owned()));
    assert_eq!(failed, Err("no".to_owned()));
}

#[test]
fn the_kernel_that_opens_operands_computes_what_seals_them() {
    use gauntlet_ptx::{Kernel, Launch, Memory, run};

    use gauntlet_calls::opening::{CODE, ENTRY};

    let kernel = Kernel::read(CODE.trim_end_matches('\0'), ENTRY).unwrap();
    let plain: Vec<u8> = (0..16 * 70).map(|byte| (byte * 7 % 251) as u8).collect();
    let (tensor, key) = (0x7F12_3456_7000, 0xFEDC_BA98_7654_3210);
    let mut sealed = plain.clone();
    gauntlet_calls::seal::apply(key, tensor, 0, &mut sealed);
    let mut memory = Memory::new();
    let address = memory.allocate(sealed);
    let parameter: Vec<u8> = [address, 70, tensor, key]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    // Fewer threads than blocks of the seal, and more than the rest of them.
    let launch = Launch {
        kernel: &kernel,
        grid: [2, 1, 1],
        block: [32, 1, 1],
        cluster: 1,
        shared_bytes: 0,
        parameter: &parameter,
        overlaps: false,
        only: None,
    };
    run(&[launch], &mut memory, 1).unwrap();
    assert_eq!(memory.contents(address).unwrap(), plain);
}
