//! Limits that the kernel keeps for each process: see setrlimit(2).
//!
//! Memory is not among them. Addresses are no measure of it (CUDA reserves terabytes of them), nor is what may be
//! written (sanitizers map that much for their shadows), so memory in use is watched instead. Nor are processes: that
//! limit counts all of a user's, and does not bind root.

use std::io;

use nix::libc::rlim_t;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::limits::Limits;

/// What each process may have, as the soft and the hard limit.
pub(crate) struct Resources(Vec<(Resource, rlim_t, rlim_t)>);

impl Resources {
    /// Never more than this program may have itself.
    pub fn within(limits: &Limits) -> io::Result<Self> {
        let wanted = [
            (Resource::RLIMIT_CORE, 0),
            (Resource::RLIMIT_FSIZE, limits.file),
            (Resource::RLIMIT_NOFILE, limits.open_files),
            // Nobody is to be more urgent than its rival.
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
