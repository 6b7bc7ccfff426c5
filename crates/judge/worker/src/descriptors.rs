//! Descriptors sent to another process over a socket: unix(7), `SCM_RIGHTS`.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::libc;

/// Most descriptors of a message.
const MOST: usize = 8;

/// Sends bytes, the first of them with descriptors. The socket may have a timeout.
///
/// # Errors
/// If the other end is closed or does not take the bytes in time, or there are over eight descriptors.
pub fn send(socket: &UnixStream, mut bytes: &[u8], mut descriptors: &[BorrowedFd]) -> io::Result<()> {
    if descriptors.len() > MOST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    while !bytes.is_empty() {
        match send_some(socket, bytes, descriptors) {
            Err(Errno::EINTR) => {}
            sent => {
                bytes = &bytes[sent?..];
                descriptors = &[];
            }
        }
    }
    Ok(())
}

fn send_some(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd]) -> Result<usize, Errno> {
    let length = size_of::<libc::c_int>() * descriptors.len();
    // Aligned like the header of the control message that it holds.
    let mut control = [0_u64; 8];
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all zeros are a message without address, data or control message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if !descriptors.is_empty() {
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: these compute lengths. `control` has 64 bytes, and MOST descriptors with their header take 48 at most.
        let (space, whole) = unsafe { (libc::CMSG_SPACE(length as u32), libc::CMSG_LEN(length as u32)) };
        message.msg_controllen = space as _;
        // SAFETY: the message has a control buffer of the length that the header and the descriptors take, so the pointers
        // lie in it.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = whole as _;
            let data = libc::CMSG_DATA(header).cast::<libc::c_int>();
            for (place, descriptor) in descriptors.iter().enumerate() {
                data.add(place).write_unaligned(descriptor.as_raw_fd());
            }
        }
    }
    // SAFETY: the message and all that it points to outlive the call, which only reads them.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    Errno::result(sent).map(|sent| sent as usize)
}
