//! A worker's side of calls that the coordinator clocks one by one: `step` of the worker protocol.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};

/// The pipes of the protocol, between two lines of it.
pub struct Turns {
    requests: ManuallyDrop<File>,
    replies: ManuallyDrop<File>,
}

impl Turns {
    /// Takes turns on the descriptors of the protocol's input and output. Neither is closed.
    ///
    /// # Safety
    /// Both stay open as long as this lives.
    pub unsafe fn on(requests: RawFd, replies: RawFd) -> Self {
        // SAFETY: the caller vouches for the descriptors, and they are not closed here.
        let file = |descriptor| ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        Self {
            requests: file(requests),
            replies: file(replies),
        }
    }

    /// Says that everything is ready for a call, and waits until the coordinator has written the operands. `line` is the
    /// JSON object with the places of the inputs, without a line break.
    ///
    /// # Errors
    /// If the coordinator is gone.
    pub fn ready(&mut self, line: &[u8]) -> io::Result<()> {
        self.say([line, b"\n"].concat())
    }

    /// Says that the load before a call begins, and how many seconds it is to last.
    ///
    /// # Errors
    /// If the coordinator is gone.
    pub fn heating(&mut self, seconds: f64) -> io::Result<()> {
        self.replies
            .write_all(format!("{{\"heating\":{seconds:?}}}\n").as_bytes())
    }

    /// Says that the load before a call is over: how many calls it made, and for how many seconds calls ran.
    ///
    /// # Errors
    /// If the coordinator is gone.
    pub fn heated(&mut self, calls: usize, busy: f64) -> io::Result<()> {
        self.replies
            .write_all(format!("{{\"heated\":{calls},\"busy\":{busy:?}}}\n").as_bytes())
    }

    /// Waits for the key of sealed operands: a line of sixteen hexadecimal digits.
    ///
    /// # Errors
    /// If the coordinator is gone, or sends something else.
    pub fn key(&mut self) -> io::Result<u64> {
        let mut line = [0; 17];
        self.requests.read_exact(&mut line)?;
        let digits = std::str::from_utf8(&line[..16]).map_err(io::Error::other)?;
        u64::from_str_radix(digits, 16).map_err(io::Error::other)
    }

    /// Says that the operands have been copied to a GPU, and in how many seconds, and waits until the coordinator has
    /// started its clock. Only where tensors lie on a GPU.
    ///
    /// # Errors
    /// If the coordinator is gone.
    pub fn placed(&mut self, seconds: f64) -> io::Result<()> {
        self.say(format!("{{\"placed\":{seconds:?}}}\n").into_bytes())
    }

    /// Says how long the call took, in seconds, before its outputs are copied from a GPU, and how long the host took for it
    /// before it waited for the device. Only where tensors lie on a GPU.
    ///
    /// # Errors
    /// If the coordinator is gone.
    pub fn over(&mut self, seconds: f64, host: f64) -> io::Result<()> {
        self.replies
            .write_all(format!("{{\"over\":{seconds:?},\"host\":{host:?}}}\n").as_bytes())
    }

    /// Says how long the call took, in seconds, and where its outputs lie, each as an address and, unless it is
    /// row-major, its strides in bytes. Waits until the coordinator needs them no longer.
    ///
    /// # Errors
    /// If the coordinator is gone.
    pub fn done(&mut self, seconds: f64, outputs: &[Vec<i64>]) -> io::Result<()> {
        // Lists of numbers are shown as JSON writes them, and so is a time.
        self.say(format!("{{\"call\":{seconds:?},\"outputs\":{outputs:?}}}\n").into_bytes())
    }

    fn say(&mut self, line: Vec<u8>) -> io::Result<()> {
        self.replies.write_all(&line)?;
        self.requests.read_exact(&mut [0])
    }
}
