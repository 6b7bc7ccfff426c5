//! The safeguards that confine workers on this system, for display to the user.

use nix::unistd::Pid;

use crate::held::{Held, probe};
use crate::limits::Limits;

/// One safeguard, and whether it is active here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Safeguard {
    /// What it ensures.
    pub what: &'static str,
    /// Whether it is active.
    pub standing: Standing,
}

/// Whether a safeguard is active.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Active by these means.
    Active(String),
    /// Active by these means, but only in part.
    Partly {
        /// The means.
        by: String,
        /// The part that is not enforced.
        lacking: String,
    },
    /// Not active, for this reason.
    Missing(String),
}

/// All safeguards, each tested on this system where possible.
pub fn safeguards() -> Vec<Safeguard> {
    let limits = Limits::default();
    let mut safeguards = of_the_system();
    safeguards.push(Safeguard {
        what: "kernels in Python, CUDA C++ and shared libraries held between requests",
        standing: match Held::tried(Pid::this(), probe()) {
            Ok(_) => Standing::Active(
                "stopped by SIGSTOP; their memory written and read by process_vm_writev and process_vm_readv"
                    .to_owned(),
            ),
            Err(why) => Standing::Missing(format!("the memory of processes cannot be reached: {why}")),
        },
    });
    safeguards.push(Safeguard {
        what: "files within limits",
        standing: Standing::Active(format!(
            "each at most {}, {} open in a process, no core dumps (setrlimit)",
            size(limits.file),
            limits.open_files
        )),
    });
    safeguards.push(Safeguard {
        what: "memory and processes within limits",
        standing: if cfg!(target_os = "linux") {
            Standing::Active(format!(
                "watched while a worker is at work: {} of memory, {} processes, {} threads, {} in its folder",
                size(limits.memory),
                limits.processes,
                limits.threads,
                size(limits.folder)
            ))
        } else {
            Standing::Missing("only Linux tells what a group of processes takes".to_owned())
        },
    });
    safeguards.push(Safeguard {
        what: "output and time within limits",
        standing: Standing::Active(format!(
            "{} on standard error, replies of 16 MiB, a time for each call",
            size(limits.standard_error)
        )),
    });
    safeguards
}

/// What protects the system's settings, if mounting ends well, and whether the files of others are mounted read-only.
#[cfg(target_os = "linux")]
fn tried_mounts() -> (Option<super::mounts::Settings>, bool) {
    use super::mounts::{Own, seal_in_thread};
    use super::namespaces::{Namespace, way};

    // Restrictions of the trying thread end with it.
    let tried = std::thread::spawn(|| {
        let own = Own::new(std::iter::empty())?;
        let namespace = way()
            .ok()
            .map(|way| Namespace::make(way, Some(&own)))
            .transpose()?;
        let (settings, is_sealed) = seal_in_thread(&own)?;
        let is_sealed = is_sealed || namespace.is_some_and(|namespace| namespace.is_sealed());
        std::io::Result::Ok((Some(settings), is_sealed))
    });
    tried.join().ok().and_then(Result::ok).unwrap_or((None, false))
}

#[cfg(target_os = "linux")]
fn of_the_system() -> Vec<Safeguard> {
    use super::mounts::Settings;
    use super::{calls, files, namespaces};

    let filter = calls::Filter::tried();
    let landlock = files::version();
    let by_landlock = |since: i32, release: &str| match &landlock {
        Ok(version) if *version >= since => Standing::Active(format!("Landlock, version {version}")),
        Ok(version) => Standing::Missing(format!(
            "Landlock is of version {version}; version {since} came with Linux {release}"
        )),
        Err(why) => Standing::Missing(why.clone()),
    };
    let by_filter = || match filter {
        Ok(_) => Standing::Active("seccomp".to_owned()),
        Err(why) => Standing::Missing(why.clone()),
    };
    let network = match (filter, &landlock) {
        (Ok(_), _) => Standing::Active("seccomp: no sockets but those within the machine".to_owned()),
        (Err(why), Ok(4..)) => Standing::Partly {
            by: "Landlock refuses TCP".to_owned(),
            lacking: format!("UDP and the rest: {why}"),
        },
        (Err(why), _) => Standing::Missing(why.clone()),
    };
    let writes = match &landlock {
        Ok(version @ 1..=2) => Standing::Partly {
            by: format!("Landlock, version {version}"),
            lacking: "files elsewhere may be cut short: version 3 came with Linux 6.2".to_owned(),
        },
        _ => by_landlock(1, "5.13"),
    };
    let (settings, is_sealed) = tried_mounts();
    let settings = match settings {
        Some(Settings::Roots) => Standing::Active("they are root's, and this user is not".to_owned()),
        Some(Settings::Sealed) => Standing::Active("mounted read-only; shared memory of its own".to_owned()),
        Some(Settings::SealedByContainer) => {
            Standing::Active("mounted read-only in this container".to_owned())
        }
        Some(Settings::Open | Settings::Left) | None => Standing::Partly {
            by: "nothing in /proc may be written".to_owned(),
            lacking: "even what CUDA must write to start: run as another user than root".to_owned(),
        },
    };
    let metadata = match (is_sealed, filter) {
        (true, _) => Standing::Active("all but its own folders mounted read-only".to_owned()),
        (false, Ok(_)) => Standing::Active("seccomp: not even in its own folder".to_owned()),
        (false, Err(why)) => Standing::Missing(format!("nothing can be mounted here, and {why}")),
    };
    let processes = match namespaces::way() {
        Ok(namespaces::Way::Root) => Standing::Active("a PID namespace with a /proc of its own".to_owned()),
        Ok(namespaces::Way::User) => {
            Standing::Active("a PID namespace with a /proc of its own, in a user namespace".to_owned())
        }
        Err(why) => Standing::Missing(why),
    };
    [
        ("writes only in its own folder", writes),
        ("changes no modes, times or attributes of others' files", metadata),
        ("sees and reaches only its own processes", processes),
        ("no settings of the system in /proc", settings),
        (
            "other workers' files and all others' memory hidden",
            by_landlock(1, "5.13"),
        ),
        ("signals only to itself", by_landlock(6, "6.12")),
        (
            "no services of this machine through their sockets",
            by_landlock(9, "7.1"),
        ),
        ("no network", network),
        (
            "stays in its process group, and leaves others' urgency alone",
            by_filter(),
        ),
        (
            "no privileges of root",
            Standing::Active("capabilities dropped, none to be gained".to_owned()),
        ),
    ]
    .map(|(what, standing)| Safeguard { what, standing })
    .into()
}

#[cfg(not(target_os = "linux"))]
fn of_the_system() -> Vec<Safeguard> {
    [
        "writes only in its own folder",
        "no network",
        "stays in its process group",
    ]
    .map(|what| Safeguard {
        what,
        standing: Standing::Missing("this needs Linux".to_owned()),
    })
    .into()
}

/// Formats bytes as whole GiB or MiB.
fn size(bytes: u64) -> String {
    match bytes {
        u64::MAX => "any amount".to_owned(),
        bytes if bytes >= 1 << 30 => format!("{:.0} GiB", bytes as f64 / (1_u64 << 30) as f64),
        bytes => format!("{:.0} MiB", bytes as f64 / (1_u64 << 20) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_with_means_or_reason() {
        let all = safeguards();
        let mut names: Vec<_> = all.iter().map(|safeguard| safeguard.what).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for safeguard in all {
            let told = match safeguard.standing {
                Standing::Active(text) | Standing::Missing(text) => vec![text],
                Standing::Partly { by, lacking } => vec![by, lacking],
            };
            assert!(told.iter().all(|text| !text.is_empty()), "{}", safeguard.what);
        }
    }
}
