//! Calls on a GPU, with a stand-in for the driver: `driver.c`. Without a C compiler these tests print a note and pass, unless
//! `GAUNTLET_REQUIRE_CC` is set.
//!
//! What the stand-in does not show: that the kernel which opens operands does what `seal.rs` says, which a test of
//! `gauntlet-python-loop` interprets, and that a device is busy in the load.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::ffi::c_char;
use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use gauntlet_calls::seal;
use gauntlet_host_native::{Addresses, Call, CudaPlace, Operands, Planned, bad_request};
use gauntlet_tensors::{DataType, Tensor, TensorSpec, save_tensors};
use gauntlet_worker::Turns;
use gauntlet_worker::protocol::{CaseRequest, Failure, FailureKind, HOLD, Scope, Turn};
use libloading::Library;

/// Not a whole number of blocks of the seal.
const BYTES: usize = 21;

const POISON: u8 = 0x5A;

/// What the stand-in has told, each as a letter, and the load as `k`.
static ORDER: Mutex<String> = Mutex::new(String::new());

fn note(what: char) {
    ORDER.lock().unwrap().push(what);
}

unsafe extern "C" fn told(what: c_char, numbers: *const u64) {
    note(char::from(what.cast_unsigned()));
    if what.cast_unsigned() == b'o' {
        // SAFETY: the stand-in passes the four numbers of a launch: the address, how many blocks lie there, and how they are
        // sealed.
        unsafe {
            let [address, blocks, tensor, key] = *numbers.cast::<[u64; 4]>();
            let memory = std::ptr::with_exposed_provenance_mut(address as usize);
            let bytes = std::slice::from_raw_parts_mut(memory, seal::BLOCK * blocks as usize);
            seal::apply(key, tensor, 0, bytes);
        }
    }
}

/// The stand-in, which a process has once, for one test at a time; none without a C compiler.
fn stand_in() -> Option<(MutexGuard<'static, ()>, &'static Library)> {
    static DRIVER: OnceLock<Option<Library>> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = DRIVER
        .get_or_init(|| loaded(tempfile::tempdir().unwrap().path()))
        .as_ref()?;
    limit(driver, usize::MAX);
    ORDER.lock().unwrap().clear();
    Some((turn, driver))
}

/// Compiles the stand-in, and loads it under the driver's name, by which it is found from then on.
fn loaded(folder: &Path) -> Option<Library> {
    let library = folder.join("libcuda.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver.c");
    let made = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so", "-o"])
        .args([&library, &source])
        .status();
    match made {
        Ok(status) => assert!(status.success(), "{} does not compile", source.display()),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_CC").is_none(), "{error}");
            eprintln!("skipped: there is no C compiler ({error})");
            return None;
        }
    }
    // SAFETY: the library has no initialisers, and its functions have the types named here.
    unsafe {
        let library = Library::new(&library).unwrap();
        let tell =
            library.get::<unsafe extern "C" fn(unsafe extern "C" fn(c_char, *const u64))>(b"stand_in_tell");
        tell.unwrap()(told);
        Some(library)
    }
}

fn limit(driver: &Library, bytes: usize) {
    // SAFETY: the stand-in has this function.
    unsafe {
        driver
            .get::<unsafe extern "C" fn(usize)>(b"stand_in_limit")
            .unwrap()(bytes)
    }
}

/// How many allocations there are.
fn live(driver: &Library) -> usize {
    // SAFETY: the stand-in has this function.
    unsafe {
        driver
            .get::<unsafe extern "C" fn() -> usize>(b"stand_in_live")
            .unwrap()()
    }
}

/// `BYTES` bytes at an address, and those after them up to a whole number of blocks.
unsafe fn at<'m>(address: u64) -> &'m mut [u8] {
    // SAFETY: the caller vouches for the memory.
    unsafe {
        let memory = std::ptr::with_exposed_provenance_mut(address as usize);
        std::slice::from_raw_parts_mut(memory, BYTES.next_multiple_of(seal::BLOCK))
    }
}

/// What a call found.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    addresses: Addresses,
    x: Vec<u8>,
    constant: Vec<u8>,
    y: Vec<u8>,
}

/// Adds its inputs, and then spoils them.
#[derive(Default)]
struct Adding {
    addresses: Option<Addresses>,
    found: Vec<Found>,
}

impl Call for Adding {
    fn prepare(&mut self, addresses: &Addresses) -> Result<(), Failure> {
        self.addresses = Some(addresses.clone());
        Ok(())
    }

    fn call(&mut self) -> Result<(), Failure> {
        let Some(addresses) = &self.addresses else {
            return Err(bad_request("not prepared"));
        };
        note('k');
        // SAFETY: the place has allocated these tensors, with more memory after them than a block.
        let [x, constant, y] = unsafe {
            [
                at(addresses.inputs[0]),
                at(addresses.inputs[1]),
                at(addresses.outputs[0]),
            ]
        };
        self.found.push(Found {
            addresses: addresses.clone(),
            x: x.to_vec(),
            constant: constant.to_vec(),
            y: y.to_vec(),
        });
        for index in 0..BYTES {
            y[index] = x[index].wrapping_add(constant[index]);
            (x[index], constant[index]) = (0, 0);
        }
        Ok(())
    }
}

fn case(bytes: usize) -> CaseRequest {
    let spec = |name: &str| TensorSpec::new(name, DataType::U8, [bytes]);
    CaseRequest {
        task: "adding".to_owned(),
        sizes: serde_json::Value::Null,
        inputs: vec![spec("x"), spec("constant")],
        constant: vec!["constant".to_owned()],
        outputs: vec![spec("y")],
    }
}

/// Two copies of operands that the worker knows, one for each of these bytes in turn: `x` is full of it, and the constant of 3.
fn known(folder: &Path, case: &CaseRequest, bytes: &[u8]) -> Operands {
    let file = |byte: &u8| {
        let path = folder.join(byte.to_string());
        let filled = case.inputs.iter().zip([*byte, 3]);
        let tensors: Vec<Tensor> = filled
            .map(|(spec, byte)| Tensor::filled(spec.clone(), byte))
            .collect();
        let tensors = tensors
            .iter()
            .map(|tensor| (&tensor.spec, tensor.bytes.as_slice()));
        save_tensors(tensors, &path).unwrap();
        path
    };
    let files: Vec<_> = bytes.iter().map(file).collect();
    Operands::load(&files, &case.inputs, 2).unwrap()
}

/// The values of `x` that the coordinator writes for a call, and the key that seals them.
fn values(call: usize) -> (Vec<u8>, u64) {
    let bytes = (0..BYTES).map(|index| (7 * index + 50 * call + 50) as u8);
    (bytes.collect(), 0xFEDC_BA98_7654_3210 + call as u64)
}

/// The coordinator's side of a request: returns the output of each call.
fn coordinate(calls: usize, is_loaded: bool, lines: impl BufRead, mut to_worker: PipeWriter) -> Vec<Vec<u8>> {
    let mut lines = lines.lines();
    let mut turn = || serde_json::from_str::<Turn>(&lines.next().unwrap().unwrap()).unwrap();
    let outputs = (0..calls).map(|call| {
        let Turn::Ready { inputs, sealed } = turn() else {
            panic!("not ready");
        };
        assert_eq!(sealed, is_loaded);
        assert_eq!(
            inputs.keys().collect::<Vec<_>>(),
            ["x"],
            "constant inputs are not written"
        );
        let address = inputs["x"][0] as u64;
        let (mut values, key) = values(call);
        if is_loaded {
            seal::apply(key, address, 0, &mut values);
        }
        // SAFETY: the worker, which is this process, waits, and has as many bytes there.
        unsafe { std::slice::from_raw_parts_mut(address as *mut u8, BYTES) }.copy_from_slice(&values);
        to_worker.write_all(b"\n").unwrap();
        if is_loaded {
            assert_eq!(turn(), Turn::Heating { heating: 0.0 });
            let Turn::Heated { heated: 1, busy } = turn() else {
                panic!("not heated");
            };
            assert!(busy >= 0.0);
            writeln!(to_worker, "{key:016x}").unwrap();
        }
        assert!(matches!(turn(), Turn::Placed { .. }));
        to_worker.write_all(b"\n").unwrap();
        assert!(matches!(turn(), Turn::Over { .. }));
        let Turn::Done { outputs, .. } = turn() else {
            panic!("not done");
        };
        // SAFETY: as above.
        let output = unsafe { std::slice::from_raw_parts(outputs[0][0] as *const u8, BYTES) }.to_vec();
        to_worker.write_all(b"\n").unwrap();
        output
    });
    outputs.collect()
}

/// Steps through calls: what they found, and their outputs as the coordinator read them.
fn step(place: &mut CudaPlace, case: &CaseRequest, planned: &Planned<'_>) -> (Vec<Found>, Vec<Vec<u8>>) {
    let (requests, to_worker) = std::io::pipe().unwrap();
    let (from_worker, replies) = std::io::pipe().unwrap();
    let (calls, is_loaded) = (planned.copies.len(), !planned.heat.is_empty());
    let mut call = Adding::default();
    // SAFETY: both pipes stay open until the call below is over.
    let mut turns = unsafe { Turns::on(requests.as_raw_fd(), replies.as_raw_fd()) };
    let coordinator =
        thread::spawn(move || coordinate(calls, is_loaded, BufReader::new(from_worker), to_worker));
    place.step(planned, case, &mut call, &mut turns).unwrap();
    (call.found, coordinator.join().unwrap())
}

/// Why calls fail before the first of them.
fn refused(place: &mut CudaPlace, case: &CaseRequest, planned: &Planned<'_>) -> Failure {
    // The other ends of both pipes are closed.
    let (requests, replies) = (std::io::pipe().unwrap().0, std::io::pipe().unwrap().1);
    // SAFETY: both ends stay open until the call below is over.
    let mut turns = unsafe { Turns::on(requests.as_raw_fd(), replies.as_raw_fd()) };
    let mut call = Adding::default();
    let failure = place.step(planned, case, &mut call, &mut turns).unwrap_err();
    assert_eq!(call.found, []);
    failure
}

#[test]
fn a_load_does_not_know_the_operands_of_the_call_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_turn, driver)) = stand_in() else {
        return;
    };
    let mut place = CudaPlace::new(0).unwrap();
    let empty = live(driver);
    let case_of_bytes = case(BYTES);
    let operands = known(folder.path(), &case_of_bytes, &[10]);
    let planned = Planned {
        operands: &operands,
        load: 1,
        copies: &[0, 1, 0],
        poison: POISON,
        results: &[],
        is_timed: true,
        scope: Scope::Device,
        // Each load is one call.
        heat: &[0.0; 3],
        hold: HOLD,
    };

    let (found, outputs) = step(&mut place, &case_of_bytes, &planned);
    let of_all = |byte| vec![byte; BYTES];
    // Nothing is written after a tensor, though whole blocks are opened.
    let tail = [POISON; 11];
    let with_tail = |bytes: Vec<u8>| [bytes, tail.to_vec()].concat();
    assert_eq!(found.len(), 6);
    for (call, both) in found.chunks(2).enumerate() {
        let [load, earnest] = both else {
            panic!("a load of one call, and the call");
        };
        let (x, _) = values(call);
        assert_eq!(
            load.x,
            with_tail(of_all(10)),
            "the load computes on what is known"
        );
        assert_eq!(earnest.x, with_tail(x.clone()));
        for one in both {
            assert_eq!(one.constant, with_tail(of_all(3)));
            assert_eq!(one.y, [POISON; 32]);
        }
        let sums: Vec<u8> = x.iter().map(|byte| byte.wrapping_add(3)).collect();
        assert_eq!(outputs[call], sums);
    }
    let mut places: Vec<u64> = found
        .iter()
        .flat_map(|one| one.addresses.inputs.iter().chain(&one.addresses.outputs))
        .copied()
        .collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 18, "no tensor lies where another has lain");

    // Operands come over the bus before the load, are opened after it, and are revealed then, before the cache is cleared.
    let order = ORDER.lock().unwrap().clone();
    let (_, last) = order.rsplit_once('u').unwrap();
    assert_eq!(last, "skrscoceshrkrs", "{order}");

    // The next request has no loads, and nothing comes sealed.
    let known_memory = live(driver);
    let plain = Planned { heat: &[], ..planned };
    let (found, outputs) = step(&mut place, &case_of_bytes, &plain);
    for (call, found) in found.iter().enumerate() {
        assert_eq!(found.x, with_tail(values(call).0));
        assert_eq!(found.constant, with_tail(of_all(3)));
        assert_eq!(outputs[call][0], found.x[0].wrapping_add(3));
    }
    assert_eq!(
        live(driver),
        known_memory,
        "what loads need is kept for the next one"
    );

    // After other operands were loaded, the memory that loads need is made again.
    let again = Planned { load: 2, ..planned };
    step(&mut place, &case_of_bytes, &again);
    assert_eq!(live(driver), known_memory);
    // 32 of each of three tensors, the hidden one, and the two of the loads; the gaps between them are free again.
    assert_eq!(known_memory - empty, 3 * 32 + 3);

    // A load that finds no memory is told, and later calls without one find theirs.
    let plain = Planned { load: 3, ..plain };
    step(&mut place, &case_of_bytes, &plain);
    limit(driver, 0);
    let failure = refused(&mut place, &case_of_bytes, &Planned { load: 3, ..planned });
    assert_eq!(failure.kind, FailureKind::Broken);
    assert!(
        failure.message.contains("21 bytes of device memory"),
        "{}",
        failure.message
    );
    limit(driver, usize::MAX);
    step(&mut place, &case_of_bytes, &plain);
}

/// What a call finds does not depend on what an earlier one, which spoils its inputs, left in memory.
#[test]
fn each_call_of_a_trusted_kernel_has_its_own_copy_in_another_place() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_turn, driver)) = stand_in() else {
        return;
    };
    let mut place = CudaPlace::new(0).unwrap();
    let case = case(BYTES);
    let operands = known(folder.path(), &case, &[10, 20]);
    let copies: Vec<usize> = (0..40).map(|call| call / 2 % 2).collect();
    let planned = Planned {
        operands: &operands,
        load: 1,
        copies: &copies,
        poison: POISON,
        results: &[2, 4],
        is_timed: true,
        scope: Scope::Device,
        heat: &[],
        hold: HOLD,
    };
    let mut request = |planned: &Planned<'_>| {
        let (mut call, mut results) = (Adding::default(), Vec::new());
        let samples = place
            .compute(planned, &case.outputs, &mut call, &mut results)
            .unwrap();
        assert_eq!(samples.len(), planned.copies.len());
        (call.found, results)
    };
    let (found, results) = request(&planned);
    for (found, copy) in found.iter().zip(&copies) {
        assert_eq!(found.x[..BYTES], [[10; BYTES], [20; BYTES]][*copy]);
        assert_eq!(
            (&found.constant[..BYTES], &found.y[..BYTES]),
            (&[3; BYTES][..], &[POISON; BYTES][..])
        );
    }
    assert_eq!(results, [[23; BYTES], [13; BYTES]].concat(), "of calls 2 and 4");
    let places: BTreeSet<u64> = found.iter().map(|found| found.addresses.inputs[0]).collect();
    assert_eq!(places.len(), 40, "no two calls had it in the same place");

    // Other operands come with the next load.
    let others = known(folder.path(), &case, &[30, 40]);
    let (found, _) = request(&Planned {
        operands: &others,
        load: 2,
        ..planned
    });
    assert_eq!((found[0].x[0], found[39].x[0]), (30, 40));

    // Where memory is short there are two places, and no gaps between them.
    drop(place);
    limit(driver, 6 << 20);
    let mut place = CudaPlace::new(0).unwrap();
    let large = self::case(300 << 10);
    let operands = known(folder.path(), &large, &[10, 20]);
    let mut call = Adding::default();
    let short = Planned {
        operands: &operands,
        copies: &copies[..4],
        load: 1,
        ..planned
    };
    place
        .compute(&short, &large.outputs, &mut call, &mut Vec::new())
        .unwrap();
    assert_eq!(call.found.len(), 4);
}
