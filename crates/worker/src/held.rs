//! A worker that the coordinator holds: it is stopped while nothing is asked of it, and the coordinator writes operands
//! into its memory and reads results out of it.
//!
//! A kernel in Python shares its process with the code that would otherwise load its operands and write its results,
//! and can replace that code. Held like this, it has no operands before the clock runs, and no time after the clock has
//! stopped: only requests are left, and the coordinator measures these as a whole.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU8;
use std::thread;
use std::time::{Duration, Instant};

use gauntlet_formats::{Tensor, TensorSpec};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::WorkerError;
use crate::process::WorkerProcess;
use crate::protocol::{Failure, FailureKind};

/// The bytes that lie at the address that a worker names in its description.
const PROBE: &[u8; 8] = b"gauntlet";

/// The address of a probe in this process, for a worker's description. It lies in memory that can be written.
pub fn probe() -> u64 {
    static MEMORY: OnceLock<[AtomicU8; 8]> = OnceLock::new();
    let memory = MEMORY.get_or_init(|| PROBE.map(AtomicU8::new));
    memory.as_ptr().expose_provenance() as u64
}

/// How long to wait until all threads of a worker have stopped, and how long between looks. A thread that waits for a
/// device is stopped only when it wakes up.
const MOST_WAITING: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_micros(100);

/// Where a worker keeps the operands of one file: for each tensor by name, the addresses of all its copies.
pub type Places = BTreeMap<String, Vec<u64>>;

/// What the coordinator knows of the memory of a worker that it holds.
#[derive(Debug)]
pub(crate) struct Held {
    process: Pid,
    /// For each file of the last load.
    places: Vec<Places>,
    /// Places that a tensor of a file can have at most.
    most_places: usize,
    /// Where the results of the last request lie, one call after the other.
    results: Option<u64>,
    is_stopped: bool,
}

impl Held {
    /// A process, if the system lets this program read and write its memory: the probe lies at the address.
    pub fn tried(process: Pid, address: u64) -> io::Result<Self> {
        let mut found = [0; PROBE.len()];
        read(process, address, &mut found)?;
        if &found != PROBE {
            return Err(io::Error::other(
                "the worker's probe is not where the worker says",
            ));
        }
        write(process, address, PROBE)?;
        Ok(Self {
            process,
            places: Vec::new(),
            most_places: 0,
            results: None,
            is_stopped: false,
        })
    }

    /// Notes where the worker keeps what it has just loaded: `copies` in all, and one of each file that no kernel sees.
    pub fn note_places(&mut self, places: Vec<Places>, copies: usize) {
        self.most_places = copies.div_ceil(places.len().max(1)) + 1;
        self.places = places;
        self.results = None;
    }

    /// Notes where the results of the last request lie.
    pub fn note_results(&mut self, results: Option<u64>) {
        self.results = results;
    }

    /// Stops the worker's process group. Does nothing before operands are loaded: until then there is nothing that the worker
    /// could do in advance.
    pub fn stop(&mut self) {
        if self.places.is_empty() || self.is_stopped {
            return;
        }
        // If the group is gone, the next request says so.
        self.is_stopped = killpg(self.process, Signal::SIGSTOP).is_ok();
    }

    /// Lets the worker go on.
    pub fn resume(&mut self) {
        if std::mem::take(&mut self.is_stopped) {
            let _gone = killpg(self.process, Signal::SIGCONT);
        }
    }

    /// Writes a tensor of a file to all of its places.
    ///
    /// # Errors
    /// If the worker named no place for it, or a place where nothing can be written.
    pub fn write(&self, file: usize, name: &str, bytes: &[u8]) -> io::Result<()> {
        let places = self.places.get(file).and_then(|places| places.get(name));
        let places = places.filter(|places| !places.is_empty()).ok_or_else(|| {
            io::Error::other(format!(
                "the worker does not say where it keeps `{name}` of set {file}"
            ))
        })?;
        if places.len() > self.most_places {
            let (named, most) = (places.len(), self.most_places);
            return Err(io::Error::other(format!(
                "the worker names {named} places of `{name}`, and there are at most {most}"
            )));
        }
        places
            .iter()
            .try_for_each(|place| write(self.process, *place, bytes))
    }

    /// Reads the result of a call of the last request.
    ///
    /// # Errors
    /// If the worker did not say where results lie, or nothing can be read there.
    pub fn result(&self, call: usize, outputs: &[TensorSpec]) -> io::Result<Vec<Tensor>> {
        let results = self
            .results
            .ok_or_else(|| io::Error::other("the worker does not say where its results lie"))?;
        let row: usize = outputs.iter().map(TensorSpec::bytes).sum();
        // The worker names the address, so the sum may lie beyond the last one; nothing can be read there.
        let mut address = results.wrapping_add((call * row) as u64);
        let mut read_one = |spec: &TensorSpec| {
            let mut tensor = Tensor::filled(spec.clone(), 0);
            read(self.process, address, &mut tensor.bytes)?;
            address = address.wrapping_add(tensor.bytes.len() as u64);
            Ok(tensor)
        };
        outputs.iter().map(&mut read_one).collect()
    }
}

impl WorkerProcess {
    /// Whether the coordinator holds the worker: it is stopped while nothing is asked of it, operands are
    /// [written](Self::write) into its memory, and results are [read](Self::result) out of it.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Why the worker is not held though its description offers that: the system does not let this program reach the
    /// worker's memory, or the worker keeps it from that.
    pub fn unreachable(&self) -> Option<&str> {
        self.unreachable.as_deref()
    }

    /// Writes tensors into all places where a held worker keeps them for this file of the last `load`. The worker is
    /// stopped meanwhile, with all of its processes.
    ///
    /// # Errors
    /// If the worker is not held, names no place that can be written to, or has a process that runs all the same.
    pub fn reveal<'t>(
        &mut self,
        file: usize,
        tensors: impl IntoIterator<Item = (&'t str, &'t [u8])>,
    ) -> Result<(), WorkerError> {
        let before = self.seconds_when_stopped()?;
        for (name, bytes) in tensors {
            self.in_memory("write operands", |held| held.write(file, name, bytes))?;
        }
        if self.seconds_when_stopped()? == before {
            Ok(())
        } else {
            Err(beyond(
                "processes of the worker ran while they were stopped and operands were written",
            ))
        }
    }

    /// Reads the result of a call of the last `run` or `time` out of a held worker's memory.
    ///
    /// # Errors
    /// If the worker is not held, names no place that can be read, or has a process that still runs.
    pub fn result(&mut self, call: usize, outputs: &[TensorSpec]) -> Result<Vec<Tensor>, WorkerError> {
        self.seconds_when_stopped()?;
        self.in_memory("read a result", |held| held.result(call, outputs))
    }

    /// Seconds of processor time that the stopped worker has used; waits for threads that the stop has not reached yet.
    fn seconds_when_stopped(&mut self) -> Result<f64, WorkerError> {
        let begun = Instant::now();
        loop {
            if let Some(seconds) = self.group.seconds_if_stopped() {
                return Ok(seconds);
            }
            if begun.elapsed() > MOST_WAITING {
                return Err(beyond("a process of the worker does not stay stopped"));
            }
            thread::sleep(PAUSE);
        }
    }

    fn in_memory<T>(&self, what: &str, work: impl FnOnce(&Held) -> io::Result<T>) -> Result<T, WorkerError> {
        let held = self
            .held
            .as_ref()
            .ok_or_else(|| io::Error::other("it is not held"));
        let done = held.and_then(work);
        done.map_err(|error| beyond(&format!("{what}: {error}")))
    }
}

/// The failure of a held worker.
fn beyond(why: &str) -> WorkerError {
    WorkerError::Failed(Failure {
        kind: FailureKind::BadRequest,
        message: format!("the coordinator cannot hold the worker: {why}"),
    })
}

/// Most bytes of one system call, which takes at most 2 GiB.
#[cfg(target_os = "linux")]
const PIECE: usize = 1 << 30;

#[cfg(target_os = "linux")]
fn read(process: Pid, address: u64, target: &mut [u8]) -> io::Result<()> {
    use nix::sys::uio::{RemoteIoVec, process_vm_readv};

    let mut done = 0;
    while done < target.len() {
        let rest = &mut target[done..];
        let len = rest.len().min(PIECE);
        let from = RemoteIoVec {
            base: (address as usize).wrapping_add(done),
            len,
        };
        match process_vm_readv(process, &mut [io::IoSliceMut::new(&mut rest[..len])], &[from])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn write(process: Pid, address: u64, source: &[u8]) -> io::Result<()> {
    use nix::sys::uio::{RemoteIoVec, process_vm_writev};

    let mut done = 0;
    while done < source.len() {
        let len = (source.len() - done).min(PIECE);
        let to = RemoteIoVec {
            base: (address as usize).wrapping_add(done),
            len,
        };
        match process_vm_writev(process, &[io::IoSlice::new(&source[done..done + len])], &[to])? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => done += written,
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn read(_process: Pid, _address: u64, _target: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn write(_process: Pid, _address: u64, _source: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use gauntlet_formats::DataType;

    use super::*;

    fn address<T>(place: &T) -> u64 {
        std::ptr::from_ref(place).expose_provenance() as u64
    }

    /// This process, whose memory the system always lets it reach.
    fn held() -> io::Result<Held> {
        Held::tried(Pid::this(), probe())
    }

    #[test]
    fn a_probe_that_is_not_there_is_an_error() {
        assert!(Held::tried(Pid::this(), address(b"somewhat")).is_err());
        assert!(Held::tried(Pid::this(), 8).is_err(), "no memory is mapped there");
    }

    #[test]
    fn a_tensor_is_written_to_each_of_its_places() {
        let mut held = held().unwrap();
        let places: [[AtomicU8; 3]; 2] = Default::default();
        let addresses = places.iter().map(address).collect();
        held.note_places(
            vec![Places::new(), Places::from([("x".to_owned(), addresses)])],
            2,
        );
        held.write(1, "x", &[7, 8, 9]).unwrap();
        let found = places
            .each_ref()
            .map(|place| place.each_ref().map(|byte| byte.load(Relaxed)));
        assert_eq!(found, [[7, 8, 9]; 2]);
        for (file, name) in [(0, "x"), (1, "y"), (2, "x")] {
            let error = held.write(file, name, &[1]).unwrap_err().to_string();
            assert!(error.contains("does not say where"), "{error}");
        }
        let many = vec![address(&places[0]); 3];
        held.note_places(vec![Places::from([("x".to_owned(), many)])], 1);
        let error = held.write(0, "x", &[1]).unwrap_err().to_string();
        assert!(error.contains("at most 2"), "{error}");
    }

    #[test]
    fn the_results_of_a_call_follow_those_of_the_call_before() {
        let mut held = held().unwrap();
        let outputs = [
            TensorSpec::new("y", DataType::U8, [2]),
            TensorSpec::new("z", DataType::I16, [1]),
        ];
        assert!(held.result(0, &outputs).is_err(), "no request has been made");
        let results = Box::new([1_u8, 2, 3, 0, 4, 5, 6, 0]);
        held.note_results(Some(address(&*results)));
        let second = held.result(1, &outputs).unwrap();
        assert_eq!((second[0].bytes.as_slice(), second[1].get(0)), (&[4, 5][..], 6.0));
        held.note_results(Some(u64::MAX));
        assert!(held.result(1, &outputs).is_err(), "no such address");
        // Results of an earlier load are gone.
        held.note_places(Vec::new(), 1);
        assert!(held.result(1, &outputs).is_err());
    }
}
