//! What holds a worker in its place, and what of it this system has.
//!
//! Nothing here needs root; a worker that is root is held by more. A thread restricts itself ([`Confinement::restrict_thread`]) and
//! starts the worker, which inherits what holds the thread; what is a matter of processes, or would keep the thread
//! from starting it, the child takes on itself just before it becomes the worker ([`Confinement::restrict_child`]).

mod allowances;
#[cfg(target_os = "linux")]
mod calls;
mod culprits;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod privileges;
mod resources;
mod safeguards;

use std::io;
use std::path::Path;

use crate::limits::Limits;
pub use allowances::{Allowances, Measure};
pub use culprits::{Culprits, culprits};
use resources::Resources;
pub use safeguards::{Safeguard, Standing, safeguards};

/// All that is laid on one worker.
pub(crate) struct Confinement {
    allowances: Allowances,
    resources: Resources,
    #[cfg(target_os = "linux")]
    files: files::Reach,
    #[cfg(target_os = "linux")]
    calls: Option<calls::Filter>,
}

impl Confinement {
    /// For a worker in the folder `own` of the yard, in which other workers have theirs.
    pub fn new(yard: &Path, own: &Path, limits: &Limits, allowances: &Allowances) -> io::Result<Self> {
        #[cfg(not(target_os = "linux"))]
        let _unused = (yard, own);
        Ok(Self {
            allowances: allowances.clone(),
            resources: Resources::within(limits)?,
            #[cfg(target_os = "linux")]
            files: files::Reach::new(yard, own, allowances)?,
            #[cfg(target_os = "linux")]
            calls: calls::Filter::tried()
                .clone()
                .ok()
                .filter(|_| allowances.has(Measure::Calls) && !allowances.instruments),
        })
    }

    /// Restricts the calling thread and all that it starts from now on.
    pub fn restrict_thread(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            // In this order: each takes away what the one before needs.
            let settings = if self.allowances.has(Measure::Mounts) {
                mounts::seal_in_thread()
            } else {
                mounts::Settings::Left
            };
            if self.allowances.has(Measure::Files) {
                self.files.restrict_thread(settings)?;
            }
            if self.allowances.has(Measure::Privileges) {
                privileges::drop_in_thread(self.allowances.instruments)?;
            } else {
                // The filter of calls needs it.
                nix::sys::prctl::set_no_new_privs()?;
            }
        }
        Ok(())
    }

    /// Restricts the calling process, between fork and exec: it only makes system calls, and allocates nothing.
    pub fn restrict_child(&self) -> io::Result<()> {
        if self.allowances.has(Measure::Resources) {
            self.resources.restrict_process()?;
        }
        #[cfg(target_os = "linux")]
        {
            // The worker ends with the thread that started it, however the coordinator ends; that thread lasts as long as
            // its lifeline. What the worker starts does not inherit it (prctl(2), PR_SET_PDEATHSIG).
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
            if let Some(calls) = &self.calls {
                calls.restrict_thread()?;
            }
        }
        Ok(())
    }
}
