//! Per-process limits of the kernel: see setrlimit(2).
//!
//! Memory is not limited here but watched while in use: address space is no measure of it (CUDA reserves terabytes),
//! nor is writable memory (sanitizers map as much for their shadows). Processes are not limited here either: that limit
//! counts all processes of a user, and does not apply to root.

use std::io;

use nix::libc::rlim_t;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::limits::Limits;

/// The soft and the hard limit of each resource.
pub(crate) struct Resources(Vec<(Resource, rlim_t, rlim_t)>);

impl Resources {
    /// The limits, capped at those of this program.
    pub fn within(limits: &Limits) -> io::Result<Self> {
        let wanted = [
            (Resource::RLIMIT_CORE, 0),
            (Resource::RLIMIT_FSIZE, limits.file),
            (Resource::RLIMIT_NOFILE, limits.open_files),
            // No worker may run at a higher priority than its rival.
            #[cfg(target_os = "linux")]
            (Resource::RLIMIT_NICE, 0),
            #[cfg(target_os = "linux")]
            (Resource::RLIMIT_RTPRIO, 0),
        ];
        let lowered = |(resource, wanted): (Resource, u64)| -> io::Result<_> {
            let (soft, hard) = getrlimit(resource)?;
            Ok((resource, soft.min(wanted), hard.min(wanted)))
        };
        Ok(Self(wanted.into_iter().map(lowered).collect::<io::Result<_>>()?))
    }

    /// Limits the calling process; allocates nothing.
    pub fn restrict_process(&self) -> io::Result<()> {
        for (resource, soft, hard) in &self.0 {
            setrlimit(*resource, *soft, *hard)?;
        }
        Ok(())
    }
}
