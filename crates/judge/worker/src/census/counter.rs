//! The processor time of a process and of all that it starts, by the system's performance events.
//!
//! If a process ignores `SIGCHLD`, the system drops the processor time of its children when they end: `/proc` shows it only
//! while they live. A counter that the children inherit keeps it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;

/// The first version of `perf_event_attr` in `linux/perf_event.h`, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

const SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
const INHERIT: u64 = 1 << 1;
/// Without these two, users other than root may be refused. They change nothing in what this clock counts.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// A counter that is inherited by all threads and processes that a process starts.
#[derive(Debug)]
pub(super) struct Counter(File);

impl Counter {
    /// A counter that starts at zero.
    ///
    /// # Errors
    /// If the system has no such events, or keeps them from this program.
    pub fn of(process: Pid) -> io::Result<Self> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: TASK_CLOCK,
            flags: INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        };
        let (any_processor, no_group) = (-1, -1);
        // SAFETY: the kernel reads `size` bytes of the attributes, which outlive the call.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                process.as_raw(),
                any_processor,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        let descriptor = Errno::result(opened)?;
        // SAFETY: the call has returned a new descriptor, which nothing else owns.
        Ok(Self(unsafe { File::from_raw_fd(descriptor as RawFd) }))
    }

    /// Seconds of processor time since.
    pub fn seconds(&self) -> Option<f64> {
        let mut nanoseconds = [0; 8];
        (&self.0).read_exact(&mut nanoseconds).ok()?;
        Some(1e-9 * u64::from_ne_bytes(nanoseconds) as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn time_of_children_whose_ends_are_ignored_is_kept() {
        let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let script = format!("trap '' CHLD; read line; (exec sh -c '{burn}'); echo over; read line");
        let mut shell = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        match Counter::of(Pid::from_raw(shell.id().cast_signed())) {
            Ok(counter) => {
                let mut input = shell.stdin.take().unwrap();
                writeln!(input, "go").unwrap();
                let mut output = BufReader::new(shell.stdout.take().unwrap());
                output.read_line(&mut String::new()).unwrap();
                let seconds = counter.seconds().unwrap();
                assert!(seconds > 0.03, "{seconds}");
            }
            Err(why) => println!("skipped: {why}"),
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
