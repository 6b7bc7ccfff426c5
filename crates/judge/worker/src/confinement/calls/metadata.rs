//! Calls that change what a file system keeps about a file besides its contents: mode, owner, times, attributes.
//!
//! Landlock does not govern them. Where the files of others are mounted read-only, the system refuses them there by itself. A
//! filter cannot tell which file a call is about, so elsewhere it refuses them for all files, the worker's own included:
//! changes of modes and times seem to work and do nothing, since programs that copy files or link code make them and need
//! nothing of them.

use nix::libc::{self, c_long};

/// By their numbers, which are the same on all machines: the C library of nix has no names for them.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const FILE_SETATTR: c_long = 469;

/// Modes and times.
#[cfg(target_arch = "x86_64")]
pub(super) const MODES_AND_TIMES: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_utimensat,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const MODES_AND_TIMES: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_utimensat,
];

/// Owners.
#[cfg(target_arch = "x86_64")]
pub(super) const OWNERS: &[c_long] = &[
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OWNERS: &[c_long] = &[libc::SYS_fchown, libc::SYS_fchownat];

/// Attributes, lists for access control included.
pub(super) const ATTRIBUTES: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// Commands of ioctl(2) that set flags or attributes, make a file unchangeable, encrypt a folder, or make a volume of btrfs
/// in one (include/uapi/linux: fs.h, fsverity.h, fscrypt.h, btrfs.h).
pub(super) const COMMANDS: [u64; 11] = [
    0x4008_6602,
    0x4004_6602,
    0x4008_7602,
    0x4004_7602,
    0x401c_5820,
    0x4080_6685,
    0x800c_6613,
    0x5000_9401,
    0x5000_940e,
    0x5000_9417,
    0x5000_9418,
];

/// Arguments of a call by place, with the bits that are looked at and their value.
type Arguments = Vec<(u8, u64, u64)>;

/// Calls that give a file the right to run as its owner or group, refused for all files: another user could run a file of a
/// worker, and so act as the worker's user.
pub(super) fn set_user_id() -> Vec<(c_long, Arguments)> {
    let mut changed = vec![
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (FCHMODAT2, 2),
        (libc::SYS_mknodat, 2),
    ];
    let mut opened = vec![(libc::SYS_openat, 2, 3)];
    #[cfg(target_arch = "x86_64")]
    {
        changed.extend([(libc::SYS_chmod, 1), (libc::SYS_mknod, 1), (libc::SYS_creat, 1)]);
        opened.push((libc::SYS_open, 1, 2));
    }
    let mut calls = Vec::new();
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        calls.extend(
            changed
                .iter()
                .map(|(call, mode)| (*call, vec![(*mode, bit, bit)])),
        );
        // The mode counts only where a file is made.
        for making in [
            libc::O_CREAT as u64,
            (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64,
        ] {
            let arguments = |flags, mode| vec![(flags, making, making), (mode, bit, bit)];
            calls.extend(
                opened
                    .iter()
                    .map(|(call, flags, mode)| (*call, arguments(*flags, *mode))),
            );
        }
    }
    calls
}
