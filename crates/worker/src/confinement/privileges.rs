//! A root worker without root's privileges.
//!
//! With them it could raise its own limits and urgency, set the GPU's clocks, or trace the coordinator. Those over
//! files stay: a worker may have to read what belongs to others, and what it may write is decided elsewhere.

use std::io;

use caps::{CapSet, Capability, CapsHashSet};

/// What a worker keeps of what it has.
const KEPT: [Capability; 2] = [Capability::CAP_DAC_OVERRIDE, Capability::CAP_DAC_READ_SEARCH];

/// What tools that look into a worker keep besides: the driver asks for the first of whoever reads a GPU's counters,
/// unless it was told to let everyone (NVIDIA, "ERR_NVGPUCTRPERM: Permission issue with Performance Counters").
const KEPT_BY_INSTRUMENTS: [Capability; 3] = [
    Capability::CAP_SYS_ADMIN,
    Capability::CAP_PERFMON,
    Capability::CAP_SYS_PTRACE,
];

/// Takes the calling thread's privileges, and those that programs could give to what it starts.
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
        // The thread alone was restricted.
        assert_eq!(caps::read(None, CapSet::Permitted).unwrap(), before);
    }
}
