//! Drops root's privileges for workers that run as root.
//!
//! With them, a worker could raise its own limits and priority, set the GPU's clocks, or trace the coordinator.
//! Privileges over files stay: a worker may have to read files of other users, and other rules decide what it may
//! write.

use std::io;

use caps::{CapSet, Capability, CapsHashSet};

/// The capabilities that a worker keeps.
const KEPT: [Capability; 2] = [Capability::CAP_DAC_OVERRIDE, Capability::CAP_DAC_READ_SEARCH];

/// The capabilities that sanitizers and profilers keep in addition. The driver requires the first one for reading a
/// GPU's counters, unless it is configured to allow all users (NVIDIA, "ERR_NVGPUCTRPERM: Permission issue with
/// Performance Counters").
const KEPT_BY_INSTRUMENTS: [Capability; 3] = [
    Capability::CAP_SYS_ADMIN,
    Capability::CAP_PERFMON,
    Capability::CAP_SYS_PTRACE,
];

/// Drops the capabilities of the calling thread, and those that programs started by it could gain.
pub(crate) fn drop_in_thread(instruments: bool) -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    let held = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let is_kept =
        |held: &Capability| KEPT.contains(held) || instruments && KEPT_BY_INSTRUMENTS.contains(held);
    let kept: CapsHashSet = held.into_iter().filter(is_kept).collect();
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)?;
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(io::Error::other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_those_over_files_are_kept() {
        let before = caps::read(None, CapSet::Permitted).unwrap();
        let kept = thread::spawn(|| {
            drop_in_thread(false).unwrap();
            caps::read(None, CapSet::Permitted).unwrap()
        })
        .join()
        .unwrap();
        assert!(kept.iter().all(|kept| KEPT.contains(kept)), "{kept:?}");
        // Only the other thread was restricted.
        assert_eq!(caps::read(None, CapSet::Permitted).unwrap(), before);
    }
}
