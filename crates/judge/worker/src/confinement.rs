//! Confines a worker as far as this system supports it.
//!
//! None of this needs root; a worker that runs as root gets additional restrictions. A thread restricts itself
//! ([`Confinement::restrict_thread`]) and starts the worker, which inherits the thread's restrictions. Restrictions
//! that apply to whole processes, or that would keep the thread from starting the worker, are applied by the child just
//! before it becomes the worker ([`Confinement::restrict_child`]).

mod allowances;
#[cfg(target_os = "linux")]
mod calls;
mod culprits;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(not(target_os = "linux"))]
mod no_namespaces;
#[cfg(target_os = "linux")]
mod privileges;
mod resources;
mod safeguards;

use std::io;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

use crate::artefacts::Artefacts;
use crate::limits::Limits;
pub use allowances::{Allowances, Measure};
pub use culprits::{Culprits, culprits};
#[cfg(target_os = "linux")]
pub(crate) use init::Init;
#[cfg(target_os = "linux")]
pub(crate) use namespaces::{Arrivals, Namespace, give_up, way};
#[cfg(not(target_os = "linux"))]
pub(crate) use no_namespaces::{Arrivals, Init, Namespace, give_up, way};
use resources::Resources;
pub use safeguards::{Safeguard, Standing, safeguards};

/// All restrictions of one worker.
pub(crate) struct Confinement {
    allowances: Allowances,
    resources: Resources,
    #[cfg(target_os = "linux")]
    way: Option<namespaces::Way>,
    #[cfg(target_os = "linux")]
    files: files::Reach,
    #[cfg(target_os = "linux")]
    own: mounts::Own,
    /// Whether all other files are mounted read-only.
    #[cfg(target_os = "linux")]
    is_sealed: bool,
    #[cfg(target_os = "linux")]
    calls: Option<calls::Filter>,
}

impl Confinement {
    /// The confinement of a worker in the folder `own`, inside the folder that holds the folders of all workers.
    pub fn new(
        workers_folder: &Path,
        own: &Path,
        limits: &Limits,
        allowances: &Allowances,
        artefacts: Option<&Artefacts>,
    ) -> io::Result<Self> {
        #[cfg(not(target_os = "linux"))]
        let _unused = (workers_folder, own, artefacts);
        Ok(Self {
            allowances: allowances.clone(),
            resources: Resources::within(limits)?,
            #[cfg(target_os = "linux")]
            way: namespaces::way()
                .ok()
                .filter(|_| allowances.has(Measure::Processes) && !allowances.instruments),
            #[cfg(target_os = "linux")]
            files: files::Reach::new(workers_folder, own, allowances, artefacts)?,
            #[cfg(target_os = "linux")]
            own: {
                let written = artefacts.filter(|artefacts| artefacts.writable);
                let folders = written.map(|artefacts| artefacts.folder.as_path());
                let folders = folders
                    .into_iter()
                    .chain(allowances.folders.iter().map(PathBuf::as_path));
                mounts::Own::new(std::iter::once(own).chain(folders))?
            },
            #[cfg(target_os = "linux")]
            is_sealed: false,
            #[cfg(target_os = "linux")]
            calls: calls::Filter::tried()
                .clone()
                .ok()
                .filter(|_| allowances.has(Measure::Calls) && !allowances.instruments),
        })
    }

    /// Restricts the calling thread and all that it starts from now on.
    pub fn restrict_thread(&mut self) -> io::Result<Option<Namespace>> {
        #[cfg(target_os = "linux")]
        {
            // The order matters: each step takes away permissions that the step before needs.
            let own = Some(&self.own).filter(|_| self.allowances.has(Measure::Mounts));
            let namespace = self.way.map(|way| Namespace::make(way, own)).transpose()?;
            let (settings, is_sealed) = match own {
                Some(own) => mounts::seal_in_thread(own)?,
                None => (mounts::Settings::Left, false),
            };
            self.is_sealed = is_sealed || namespace.as_ref().is_some_and(Namespace::is_sealed);
            if self.allowances.has(Measure::Files) {
                self.files
                    .restrict_thread(settings, namespace.as_ref().map(Namespace::processes))?;
            }
            if self.allowances.has(Measure::Privileges) {
                privileges::drop_in_thread(self.allowances.instruments)?;
            } else {
                // The system-call filter requires it.
                nix::sys::prctl::set_no_new_privs()?;
            }
            Ok(namespace)
        }
        #[cfg(not(target_os = "linux"))]
        Ok(None)
    }

    /// Restricts the calling process, between fork and exec: it only makes system calls, and allocates nothing.
    pub fn restrict_child(&self) -> io::Result<()> {
        if self.allowances.has(Measure::Resources) {
            self.resources.restrict_process()?;
        }
        #[cfg(target_os = "linux")]
        {
            // The worker ends with the thread that started it, however the coordinator ends; that thread lasts as long
            // as its lifeline. Processes that the worker starts do not inherit this (prctl(2), PR_SET_PDEATHSIG).
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
            if let Some(calls) = &self.calls {
                calls.restrict_thread(self.is_sealed)?;
            }
        }
        Ok(())
    }
}
