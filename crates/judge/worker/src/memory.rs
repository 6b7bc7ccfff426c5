//! Tensors in the memory of another process.

use std::io;

use gauntlet_tensors::TensorSpec;
use nix::unistd::Pid;

use crate::protocol::Place;

#[cfg(target_os = "linux")]
pub use linux::{read, write, write_changed};

/// Most bytes of one piece, and of one system call. Copying them takes about 2 ms, far longer than the call itself, and a
/// tensor of more bytes is shared among threads.
const PIECE: usize = 8 << 20;

/// Where the bytes of a tensor lie in a worker's memory: contiguous pieces of equal length, in row-major order. None of them is
/// listed in memory: a worker that names other strides than the task may make each element a piece.
///
/// Two are equal if each byte of the tensor lies at the same address in both, however the worker names the strides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    address: i64,
    /// How many pieces there are in each dimension, and the bytes from one to the next; the innermost dimension first.
    outer: Vec<(usize, i64)>,
    /// Bytes of each piece.
    length: usize,
}

impl Pieces {
    /// The pieces of a tensor at a place.
    ///
    /// # Errors
    /// If the worker gives no address, or more strides than the tensor has dimensions.
    pub fn of(place: &Place, spec: &TensorSpec) -> io::Result<Self> {
        let [address, strides @ ..] = place.as_slice() else {
            return Err(io::Error::other(format!("`{}` has no address", spec.name)));
        };
        if strides.len() > spec.shape.len() {
            let count = strides.len();
            return Err(io::Error::other(format!("`{}` has {count} strides", spec.name)));
        }
        let mut pieces = Self::whole(*address, spec.bytes());
        if pieces.length == 0 {
            return Ok(pieces);
        }
        let shape = &spec.shape[..strides.len()];
        pieces.length /= shape.iter().product::<usize>();
        for (size, stride) in shape.iter().zip(strides).rev() {
            match pieces.outer.last_mut() {
                // There is no neighbour that the stride could lead to.
                _ if *size == 1 => {}
                None if *stride == pieces.length as i64 => pieces.length *= size,
                Some((count, step)) if step.wrapping_mul(*count as i64) == *stride => *count *= size,
                _ => pieces.outer.push((*size, *stride)),
            }
        }
        Ok(pieces)
    }

    /// One piece.
    pub fn whole(address: i64, length: usize) -> Self {
        Self {
            address,
            outer: Vec::new(),
            length,
        }
    }

    /// The address of each piece and its bytes, at most `most`: a longer piece comes in several.
    pub fn iter(&self, most: usize) -> impl Iterator<Item = (u64, usize)> {
        (0..self.count()).flat_map(move |number| {
            let begin = self.address(number) as u64;
            let starts = (0..self.length).step_by(most);
            starts.map(move |start| (begin.wrapping_add(start as u64), most.min(self.length - start)))
        })
    }

    /// Bytes of all pieces.
    pub fn bytes(&self) -> usize {
        self.count() * self.length
    }

    /// How many pieces there are.
    fn count(&self) -> usize {
        self.outer.iter().map(|(count, _)| count).product()
    }

    /// Where a piece begins. The worker may name any numbers: the system refuses to read or write at an invalid address.
    fn address(&self, mut number: usize) -> i64 {
        let mut address = self.address;
        for (count, step) in &self.outer {
            address = address.wrapping_add(step.wrapping_mul((number % count) as i64));
            number /= count;
        }
        address
    }
}

/// Copying between this program's memory and another process's, piece by piece.
#[cfg(target_os = "linux")]
mod linux {
    use std::iter;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};

    use super::*;

    /// Most pieces of one system call: `IOV_MAX` of Linux.
    const MAX_PIECES: usize = 1024;

    /// Most bytes that are changed and written by one system call: few enough to stay in a processor's cache between the two.
    const CHANGED: usize = 512 << 10;

    /// Threads that copy at a time. One copies some 4 GB/s, and the worker waits meanwhile.
    const MAX_THREADS: usize = 4;

    /// Reads all pieces into `target`, one after the other.
    ///
    /// # Errors
    /// If they have another number of bytes than `target`, or one of them cannot be read; some of them may have been read.
    pub fn read(process: Pid, pieces: &Pieces, target: &mut [u8]) -> io::Result<()> {
        same_length(pieces, target.len())?;
        let mut rest = target;
        let parts = batches(pieces, PIECE).map(|(remote, bytes)| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(bytes);
            rest = after;
            (remote, part)
        });
        each(threads(pieces, PIECE), parts, |remote, part| {
            let bytes = part.len();
            let read = process_vm_readv(process, &mut [io::IoSliceMut::new(part)], remote)?;
            if read < bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(())
        })
    }

    /// Writes `source` to all pieces, one after the other.
    ///
    /// # Errors
    /// If they have another number of bytes than `source`, or one of them cannot be written; some of them may have been
    /// written.
    pub fn write(process: Pid, pieces: &Pieces, source: &[u8]) -> io::Result<()> {
        same_length(pieces, source.len())?;
        let parts = with_source(batches(pieces, PIECE), source);
        each(threads(pieces, PIECE), parts, |remote, part| {
            write_batch(process, remote, part)
        })
    }

    /// Writes `source` to all pieces, one after the other. Before, `change` is called on a copy of each piece, or part of a
    /// long one, with the address that it is written to.
    ///
    /// # Errors
    /// As for [`write`], and if `change` fails.
    pub fn write_changed(
        process: Pid,
        pieces: &Pieces,
        source: &[u8],
        change: impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        same_length(pieces, source.len())?;
        let parts = with_source(batches(pieces, CHANGED), source);
        each(threads(pieces, CHANGED), parts, |remote, part| {
            let mut changed = part.to_vec();
            let mut rest = changed.as_mut_slice();
            for piece in remote {
                let (bytes, after) = rest.split_at_mut(piece.len);
                change(piece.base as u64, bytes)?;
                rest = after;
            }
            write_batch(process, remote, &changed)
        })
    }

    /// Each batch with its part of what is written.
    fn with_source(
        batches: impl Iterator<Item = (Vec<RemoteIoVec>, usize)>,
        mut source: &[u8],
    ) -> impl Iterator<Item = (Vec<RemoteIoVec>, &[u8])> {
        batches.map(move |(remote, bytes)| {
            let (part, after) = source.split_at(bytes);
            source = after;
            (remote, part)
        })
    }

    fn write_batch(process: Pid, remote: &[RemoteIoVec], part: &[u8]) -> io::Result<()> {
        let written = process_vm_writev(process, &[io::IoSlice::new(part)], remote)?;
        if written < part.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    fn same_length(pieces: &Pieces, bytes: usize) -> io::Result<()> {
        let found = pieces.bytes();
        if found == bytes {
            return Ok(());
        }
        let why = format!("{found} bytes of another process for {bytes} of this one");
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// The pieces of each system call, at most [`MAX_PIECES`] and `most` bytes of them, and how many bytes they have. All
    /// pieces come, in their order.
    fn batches(pieces: &Pieces, most: usize) -> impl Iterator<Item = (Vec<RemoteIoVec>, usize)> {
        let mut rest = pieces.iter(most).peekable();
        iter::from_fn(move || {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while batch.len() < MAX_PIECES
                && let Some((address, len)) = rest.next_if(|(_, len)| bytes + len <= most)
            {
                batch.push(RemoteIoVec {
                    base: address as usize,
                    len,
                });
                bytes += len;
            }
            (bytes > 0).then_some((batch, bytes))
        })
    }

    /// No more threads than system calls, each of at most `most` bytes.
    fn threads(pieces: &Pieces, most: usize) -> usize {
        let calls = pieces
            .count()
            .div_ceil(MAX_PIECES)
            .max(pieces.bytes().div_ceil(most));
        MAX_THREADS.min(calls)
    }

    /// Does `copy` for each batch and its part of this program's memory, several at a time.
    fn each<P: Send>(
        threads: usize,
        batches: impl Iterator<Item = (Vec<RemoteIoVec>, P)> + Send,
        copy: impl Fn(&[RemoteIoVec], P) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let left = Mutex::new(batches);
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((remote, part)) = next() {
                copy(&remote, part)?;
            }
            Ok(())
        };
        if threads <= 1 {
            return work();
        }
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let ended = others.into_iter().map(thread::ScopedJoinHandle::join);
            let ended = ended.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            iter::once(own).chain(ended).collect()
        })
    }
}

#[cfg(not(target_os = "linux"))]
pub fn read(_process: Pid, _pieces: &Pieces, _target: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub fn write(_process: Pid, _pieces: &Pieces, _source: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub fn write_changed(
    _process: Pid,
    _pieces: &Pieces,
    _source: &[u8],
    _change: impl Fn(u64, &mut [u8]) -> io::Result<()> + Sync,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::AtomicU8;
    use std::sync::atomic::Ordering::Relaxed;

    use gauntlet_tensors::DataType;

    use super::*;

    fn listed(place: &[i64], spec: &TensorSpec) -> io::Result<Vec<(u64, usize)>> {
        Ok(Pieces::of(&place.to_vec(), spec)?.iter(PIECE).collect())
    }

    #[test]
    fn a_tensor_may_lie_in_pieces() {
        let spec = TensorSpec::new("x", DataType::U8, [2, 3, 2]);
        let of = |place: &[i64]| listed(place, &spec);
        assert_eq!(of(&[100]).unwrap(), [(100, 12)]);
        assert_eq!(of(&[100, 6, 2, 1]).unwrap(), [(100, 12)]);
        assert_eq!(of(&[100, 8, 2, 1]).unwrap(), [(100, 6), (108, 6)]);
        // Elements of two bytes, column by column, and backward.
        let columns = [(100, 2), (104, 2), (108, 2), (102, 2), (106, 2), (110, 2)];
        assert_eq!(of(&[100, 2, 4]).unwrap(), columns);
        assert_eq!(of(&[100, -6]).unwrap(), [(100, 6), (94, 6)]);
        assert_eq!(of(&[100, 0, 2]).unwrap(), [(100, 6), (100, 6)]);
        assert!(of(&[]).is_err() && of(&[100, 1, 1, 1, 1]).is_err());
        let empty = TensorSpec::new("x", DataType::U8, [0, 3]);
        assert_eq!(listed(&[100, 9, 9], &empty).unwrap(), []);
    }

    #[test]
    fn places_with_the_same_bytes_at_the_same_addresses_are_equal() {
        let spec = TensorSpec::new("x", DataType::U8, [2, 1, 3, 2]);
        let of = |place: &[i64]| Pieces::of(&place.to_vec(), &spec).unwrap();
        for (one, other) in [
            (&[100][..], &[100, 6, 77, 2, 1][..]),
            (&[100, 12, 0, 4], &[100, 12, 5, 4, 1]),
            (&[100, 2, 0, 4], &[100, 2, 9, 4]),
        ] {
            assert_eq!(of(one), of(other));
        }
        // Rows of a dimension of its own, and the same rows counted on.
        assert_eq!(of(&[100, 12, 0, 4]).outer, [(6, 4)]);
        for other in [&[101][..], &[100, 12, 0, 4], &[100, 6, 0, 2, 0], &[100, 2, 0, 4]] {
            assert_ne!(of(&[100]), of(other));
        }
    }

    #[test]
    fn pieces_are_read_and_written_in_order() {
        let process = Pid::this();
        let memory: Vec<AtomicU8> = (0..6000_u32).map(|index| AtomicU8::new(index as u8)).collect();
        // More than one system call takes.
        let spec = TensorSpec::new("x", DataType::U8, [2000]);
        let every_third = vec![memory.as_ptr().expose_provenance() as i64, 3];
        let every_third = Pieces::of(&every_third, &spec).unwrap();
        let mut found = vec![0; 2000];
        read(process, &every_third, &mut found).unwrap();
        assert!(
            found
                .iter()
                .enumerate()
                .all(|(index, byte)| *byte == (3 * index) as u8)
        );
        write(process, &every_third, &[7; 2000]).unwrap();
        let now = |index: usize| memory[index].load(Relaxed);
        assert!((0..2000).all(|index| now(3 * index) == 7 && now(3 * index + 1) == (3 * index + 1) as u8));
        // More than one thread takes.
        let large = vec![3_u8; 5 * PIECE + 1];
        let whole = Pieces::whole(large.as_ptr().expose_provenance() as i64, large.len());
        let mut found = vec![0; large.len()];
        read(process, &whole, &mut found).unwrap();
        assert_eq!(found, large);
        // Each byte is changed once, by its address, in parts of pieces and in many pieces.
        let begin = whole.iter(PIECE).next().unwrap().0;
        let add_number = |address: u64, bytes: &mut [u8]| {
            let numbers = (address - begin)..;
            bytes
                .iter_mut()
                .zip(numbers)
                .for_each(|(byte, number)| *byte += number as u8 % 200);
            Ok(())
        };
        write_changed(process, &whole, &large.clone(), add_number).unwrap();
        read(process, &whole, &mut found).unwrap();
        assert!(
            found
                .iter()
                .enumerate()
                .all(|(index, byte)| *byte == 3 + index as u8 % 200)
        );
        let three = |_: u64, bytes: &mut [u8]| {
            bytes.fill(3);
            Ok(())
        };
        write_changed(process, &every_third, &[7; 2000], three).unwrap();
        assert!((0..2000).all(|index| now(3 * index) == 3 && now(3 * index + 1) == (3 * index + 1) as u8));
        let refuses = |_: u64, _: &mut [u8]| Err(io::Error::other("no"));
        assert!(write_changed(process, &every_third, &[7; 2000], refuses).is_err());
        // Nothing lies at the end of memory.
        assert!(read(process, &Pieces::whole(-1, 2), &mut [0; 2]).is_err());
        assert!(write(process, &Pieces::whole(8, 1), &[0]).is_err());
        // Memory of another length.
        for bytes in [1999, 2001] {
            assert!(read(process, &every_third, &mut vec![0; bytes]).is_err());
            assert!(write(process, &every_third, &vec![0; bytes]).is_err());
        }
    }
}
