//! Which files and processes a worker can access: landlock(7).
//!
//! Rules only grant access, and a rule for a folder covers everything beneath it. To hide the other workers' folders,
//! the rules grant all siblings along the path to the hidden folder instead of its ancestors.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, make_bitflags, path_beneath_rules,
};

use super::Allowances;
use super::mounts::{SHARED_MEMORY, Settings};
use crate::artefacts::Artefacts;

/// The newest access rights used; a kernel that knows fewer enforces those that it knows.
const KNOWN: ABI = ABI::V9;

/// Devices that reveal nothing about other processes, and accelerators, by the prefixes of their names in `/dev`.
const DEVICES: [&str; 9] = [
    "null", "zero", "full", "random", "urandom", "nvidia", "dri", "kfd", "accel",
];

/// The files that a worker can access.
pub(crate) struct Reach {
    /// The folder that holds the folders of all workers, which are hidden from each other.
    workers_folder: PathBuf,
    own: PathBuf,
    /// Allowed folders besides the worker's own.
    folders: Vec<PathBuf>,
    artefacts: Option<Artefacts>,
    network: bool,
}

impl Reach {
    pub fn new(
        workers_folder: &Path,
        own: &Path,
        allowances: &Allowances,
        artefacts: Option<&Artefacts>,
    ) -> io::Result<Self> {
        Ok(Self {
            workers_folder: workers_folder.canonicalize()?,
            own: own.canonicalize()?,
            folders: allowances.folders.clone(),
            artefacts: artefacts.cloned(),
            network: allowances.instruments,
        })
    }

    /// Restricts the calling thread, and all that it starts, to these files, as far as the kernel can.
    /// `processes` is the `/proc` of the worker's PID namespace, if it has one.
    pub fn restrict_thread(
        &self,
        settings: Settings,
        processes: Option<BorrowedFd>,
    ) -> io::Result<RestrictionStatus> {
        self.restrict(settings, processes).map_err(io::Error::other)
    }

    fn restrict(
        &self,
        settings: Settings,
        processes: Option<BorrowedFd>,
    ) -> Result<RestrictionStatus, RulesetError> {
        let read = AccessFs::from_read(KNOWN);
        let write = AccessFs::from_all(KNOWN) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock});
        let device = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});
        let may_write = settings != Settings::Open;
        let entries = read | make_bitflags!(AccessFs::{WriteFile | Truncate});
        let in_namespace = processes
            .filter(|_| may_write)
            .map(|folder| Ok::<_, RulesetError>(PathBeneath::new(folder, entries)));
        let ruleset = Ruleset::default().handle_access(AccessFs::from_all(KNOWN))?;
        let ruleset = match self.network {
            true => ruleset,
            false => ruleset.handle_access(AccessNet::from_all(ABI::V4))?,
        };
        ruleset
            .scope(Scope::from_all(KNOWN))?
            .create()?
            .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
            .add_rules(
                beside(&self.workers_folder)
                    .into_iter()
                    .filter_map(|path| rule(&path, read)),
            )?
            .add_rules(
                devices()
                    .into_iter()
                    .filter_map(|path| rule(&path, read | device)),
            )?
            .add_rules(path_beneath_rules(may_write.then_some("/proc"), entries))?
            .add_rules(in_namespace)?
            // Libraries need write access even for their own semaphores.
            .add_rules(path_beneath_rules([SHARED_MEMORY], read | write))?
            .add_rules(path_beneath_rules([&self.own], read | write))?
            .add_rules(path_beneath_rules(&self.folders, read | write))?
            .add_rules(self.artefacts.iter().filter_map(|artefacts| {
                let access = if artefacts.writable { read | write } else { read };
                rule(&artefacts.folder, access)
            }))?
            .restrict_self()
    }
}

/// A rule for a path; `None` if the path does not exist.
fn rule(path: &Path, access: BitFlags<AccessFs>) -> Option<Result<PathBeneath<PathFd>, RulesetError>> {
    path_beneath_rules([path], access).next()
}

/// All entries beside the path to a folder; together with the folder itself these are all entries. Links are left out,
/// since they may lead to the folder; their targets elsewhere are covered under their own paths.
fn beside(folder: &Path) -> Vec<PathBuf> {
    let on_the_way: Vec<&Path> = folder.ancestors().collect();
    let places = on_the_way.iter().skip(1);
    places
        .flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten())
        .filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .map(|entry| entry.path())
        .filter(|path| !on_the_way.contains(&path.as_path()))
        .collect()
}

fn devices() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            DEVICES.iter().any(|device| name.starts_with(device))
        })
        .map(|entry| entry.path())
        .collect()
}

/// The version of the kernel's Landlock, determined on a thread that ends afterwards; else the reason why there is
/// none.
pub(crate) fn version() -> Result<i32, String> {
    let place = tempfile::tempdir().map_err(|error| format!("no folder to try it on: {error}"))?;
    let reach = Reach::new(place.path(), place.path(), &Allowances::default(), None)
        .map_err(|error| error.to_string())?;
    let status = std::thread::spawn(move || reach.restrict_thread(Settings::Open, None))
        .join()
        .map_err(|_| "the trial failed".to_owned())?
        .map_err(|error| error.to_string())?;
    match status.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => Ok(kernel_abi.unwrap_or(effective_abi as i32)),
        LandlockStatus::NotEnabled => Err("the kernel has Landlock, and was started without it".to_owned()),
        LandlockStatus::NotImplemented => Err("the kernel has no Landlock (Linux 5.13)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_beside_the_way_leaves_out_the_way_and_links() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let workers_folder = place.join("workers");
        fs::create_dir(&workers_folder).unwrap();
        fs::create_dir(place.join("operands")).unwrap();
        File::create(workers_folder.join("result")).unwrap();
        symlink(&workers_folder, place.join("link")).unwrap();
        let found = beside(&workers_folder);
        assert!(found.contains(&place.join("operands")));
        assert!(
            found
                .iter()
                .all(|path| !path.starts_with(&workers_folder) && !workers_folder.starts_with(path))
        );
        assert!(!found.contains(&place.join("link")));
    }

    #[test]
    fn only_its_own_folder_is_written_and_other_workers_are_not_read() {
        if let Err(why) = version() {
            println!("skipped: {why}");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let workers_folder = place.path().join("workers");
        let (own, other) = (workers_folder.join("own"), workers_folder.join("other"));
        let operands = place.path().join("operands");
        for folder in [&own, &other, &operands] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(other.join("result"), "secret").unwrap();
        let reach = Reach::new(&workers_folder, &own, &Allowances::default(), None).unwrap();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (made, is_made) = std::sync::mpsc::channel();
        let given = operands.join("given");
        let confined = std::thread::spawn(move || {
            reach.restrict_thread(Settings::Open, None).unwrap();
            ready.send(()).unwrap();
            is_made.recv().unwrap();
            let denied = |result: io::Result<()>| {
                assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            };
            let write = |path: PathBuf| fs::write(path, "written");
            denied(fs::read(other.join("result")).map(|_| ()));
            denied(write(other.join("result")));
            denied(write(operands.join("changed")));
            denied(write(workers_folder.join("new")));
            // The kernel reports a refused hard link as a link between file systems.
            let link = fs::hard_link(operands.join("given"), own.join("given"));
            assert_eq!(link.unwrap_err().kind(), io::ErrorKind::CrossesDevices);
            assert_eq!(fs::read(operands.join("given")).unwrap(), b"given");
            write(own.join("result")).unwrap();
            write("/dev/null".into()).unwrap();
            fs::read("/proc/self/status").unwrap();
            File::open("/usr/bin/env").unwrap();
        });
        is_ready.recv().unwrap();
        // Operands are written after the worker has started.
        fs::write(given, "given").unwrap();
        made.send(()).unwrap();
        confined.join().unwrap();
    }
}
