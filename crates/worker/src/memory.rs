//! Tensors in the memory of another process.

use std::io;

use gauntlet_formats::TensorSpec;
use nix::unistd::Pid;

use crate::protocol::Place;

/// The contiguous pieces of a tensor in a worker's memory, each an address and its bytes, in row-major order.
///
/// # Errors
/// If the worker gives no address, or more strides than the tensor has dimensions.
pub fn pieces(place: &Place, spec: &TensorSpec) -> io::Result<Vec<(u64, usize)>> {
    let [address, strides @ ..] = place.as_slice() else {
        return Err(io::Error::other(format!("`{}` has no address", spec.name)));
    };
    if strides.len() > spec.shape.len() {
        let count = strides.len();
        return Err(io::Error::other(format!("`{}` has {count} strides", spec.name)));
    }
    let shape = &spec.shape[..strides.len()];
    let elements: usize = shape.iter().product();
    if spec.bytes() == 0 {
        return Ok(Vec::new());
    }
    let mut piece = spec.bytes() / elements;
    let mut outer = shape.len();
    while outer > 0 && (shape[outer - 1] == 1 || strides[outer - 1] == piece as i64) {
        outer -= 1;
        piece *= shape[outer];
    }
    let mut addresses = vec![*address];
    for (size, stride) in shape.iter().zip(strides).take(outer) {
        // The worker may name any numbers. The system refuses to read or write at an invalid address.
        let step = |base: &i64| {
            let base = *base;
            (0..*size as i64).map(move |index| base.wrapping_add(index.wrapping_mul(*stride)))
        };
        addresses = addresses.iter().flat_map(step).collect();
    }
    let parts = |address: i64| {
        let starts = (0..piece).step_by(PIECE);
        starts.map(move |start| {
            (
                (address as u64).wrapping_add(start as u64),
                PIECE.min(piece - start),
            )
        })
    };
    Ok(addresses.into_iter().flat_map(parts).collect())
}

/// Most bytes of one piece, and of one system call. Copying them takes about 2 ms, far longer than the call itself, and a
/// tensor of more bytes is shared among threads.
const PIECE: usize = 8 << 20;

/// Most pieces of one system call: `IOV_MAX` of Linux.
#[cfg(target_os = "linux")]
const MOST_PIECES: usize = 1024;

/// Threads that copy at a time. One copies some 4 GB/s, and the worker waits meanwhile.
#[cfg(target_os = "linux")]
const MOST_THREADS: usize = 4;

/// Divides pieces into those of one system call each, with the bytes that they hold.
#[cfg(target_os = "linux")]
fn batches(pieces: &[(u64, usize)]) -> impl Iterator<Item = (Vec<nix::sys::uio::RemoteIoVec>, usize)> {
    let mut rest = pieces;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |(_, len): &&(u64, usize)| {
            bytes += len;
            bytes <= PIECE
        };
        let count = rest.iter().take(MOST_PIECES).take_while(fits).count();
        let (batch, after) = rest.split_at(count);
        rest = after;
        let remote = |(address, len): &(u64, usize)| nix::sys::uio::RemoteIoVec {
            base: *address as usize,
            len: *len,
        };
        let bytes = batch.iter().map(|(_, len)| len).sum();
        (count > 0).then(|| (batch.iter().map(remote).collect(), bytes))
    })
}

/// Does `copy` for each batch and its part of this program's memory, several at a time.
#[cfg(target_os = "linux")]
fn each<P: Send>(
    batches: Vec<(Vec<nix::sys::uio::RemoteIoVec>, P)>,
    copy: impl Fn(&[nix::sys::uio::RemoteIoVec], P) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let threads = MOST_THREADS.min(batches.len());
    let left = std::sync::Mutex::new(batches.into_iter());
    let next = || {
        left.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .next()
    };
    let work = || {
        while let Some((remote, part)) = next() {
            copy(&remote, part)?;
        }
        Ok(())
    };
    if threads <= 1 {
        return work();
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let ended = others.into_iter().map(std::thread::ScopedJoinHandle::join);
        let ended = ended.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(own).chain(ended).collect()
    })
}

/// Reads the bytes of all pieces, one after the other.
#[cfg(target_os = "linux")]
pub fn read(process: Pid, pieces: &[(u64, usize)], target: &mut [u8]) -> io::Result<()> {
    let mut rest = target;
    let mut parts = Vec::new();
    for (remote, bytes) in batches(pieces) {
        let (part, after) = rest.split_at_mut(bytes);
        rest = after;
        parts.push((remote, part));
    }
    each(parts, |remote, part: &mut [u8]| {
        let bytes = part.len();
        let read = nix::sys::uio::process_vm_readv(process, &mut [io::IoSliceMut::new(part)], remote)?;
        if read < bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    })
}

/// Writes the bytes of all pieces, one after the other.
#[cfg(target_os = "linux")]
pub fn write(process: Pid, pieces: &[(u64, usize)], source: &[u8]) -> io::Result<()> {
    let mut rest = source;
    let mut parts = Vec::new();
    for (remote, bytes) in batches(pieces) {
        let (part, after) = rest.split_at(bytes);
        rest = after;
        parts.push((remote, part));
    }
    each(parts, |remote, part: &[u8]| {
        let written = nix::sys::uio::process_vm_writev(process, &[io::IoSlice::new(part)], remote)?;
        if written < part.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    })
}

#[cfg(not(target_os = "linux"))]
pub fn read(_process: Pid, _pieces: &[(u64, usize)], _target: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub fn write(_process: Pid, _pieces: &[(u64, usize)], _source: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::AtomicU8;
    use std::sync::atomic::Ordering::Relaxed;

    use gauntlet_formats::DataType;

    use super::*;

    #[test]
    fn a_tensor_may_lie_in_pieces() {
        let spec = TensorSpec::new("x", DataType::U8, [2, 3, 2]);
        let of = |place: &[i64]| pieces(&place.to_vec(), &spec);
        assert_eq!(of(&[100]).unwrap(), [(100, 12)]);
        assert_eq!(of(&[100, 6, 2, 1]).unwrap(), [(100, 12)]);
        assert_eq!(of(&[100, 8, 2, 1]).unwrap(), [(100, 6), (108, 6)]);
        // Elements of two bytes, column by column, and backward.
        let columns = [(100, 2), (104, 2), (108, 2), (102, 2), (106, 2), (110, 2)];
        assert_eq!(of(&[100, 2, 4]).unwrap(), columns);
        assert_eq!(of(&[100, -6]).unwrap(), [(100, 6), (94, 6)]);
        assert!(of(&[]).is_err() && of(&[100, 1, 1, 1, 1]).is_err());
        let empty = TensorSpec::new("x", DataType::U8, [0, 3]);
        assert_eq!(pieces(&vec![100, 9, 9], &empty).unwrap(), []);
    }

    #[test]
    fn pieces_are_read_and_written_in_order() {
        let process = Pid::this();
        let memory: Vec<AtomicU8> = (0..6000_u32).map(|index| AtomicU8::new(index as u8)).collect();
        // More than one system call takes.
        let spec = TensorSpec::new("x", DataType::U8, [2000]);
        let every_third = pieces(&vec![memory.as_ptr().expose_provenance() as i64, 3], &spec).unwrap();
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
        let spec = TensorSpec::new("x", DataType::U8, [large.len()]);
        let whole = pieces(&vec![large.as_ptr().expose_provenance() as i64], &spec).unwrap();
        let mut found = vec![0; large.len()];
        read(process, &whole, &mut found).unwrap();
        assert_eq!(found, large);
        // Nothing lies at the end of memory.
        assert!(read(process, &[(u64::MAX, 2)], &mut [0; 2]).is_err());
        assert!(write(process, &[(8, 1)], &[0]).is_err());
    }
}
