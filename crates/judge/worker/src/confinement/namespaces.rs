//! A PID namespace for each worker: the worker sees only its own processes, so it cannot signal, trace, pin or
//! reprioritise any other, whatever system calls it uses.
//!
//! Process 1 of the namespace is a fork of this program (see [`init`](super::init)) that mounts a `/proc` of its own
//! and reaps orphans. The worker is process 2 and a child of the coordinator, which therefore sees its exit status.
//! Root may make namespaces on the thread that starts the worker. Other users need a user namespace, which a program
//! with several threads cannot enter (unshare(2)): a fork makes it, and the worker joins it just before it starts.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, chdir, fork, getegid, geteuid, pipe2, read, setpgid, write};

use super::init::{self, Init};
use super::mounts::Own;

/// How this user may make namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// With root's privileges.
    Root,
    /// Inside a user namespace.
    User,
}

/// Set if Gauntlet's own worker starts only without a namespace.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// From now on, workers start without namespaces, or with them again.
pub(crate) fn give_up(given_up: bool) {
    GIVEN_UP.store(given_up, Ordering::Relaxed);
}

/// How workers get a namespace on this system, or the reason why they get none; tried once.
pub(crate) fn way() -> Result<Way, String> {
    static TRIED: OnceLock<Result<Way, String>> = OnceLock::new();
    if GIVEN_UP.load(Ordering::Relaxed) {
        return Err("Gauntlet's own worker starts only without one here".to_owned());
    }
    TRIED
        .get_or_init(|| {
            // Restrictions of the trying thread end with it.
            thread::spawn(attempt)
                .join()
                .map_err(|_| "the attempt failed".to_owned())?
                .map_err(|error| format!("the system refuses one: {error}"))
        })
        .clone()
}

fn attempt() -> io::Result<Way> {
    if geteuid().is_root() {
        return Namespace::as_root().map(|_ended| Way::Root);
    }
    let (_ended, passage) = Namespace::as_user(None)?.split(Path::new("/"))?;
    let Some((passage, arrivals)) = passage else {
        return Err(Errno::ENOTSUP.into());
    };
    // SAFETY: the child only makes system calls on data prepared before the fork, and ends without running destructors.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let joined = passage.enter();
            // SAFETY: `_exit` may be called in a forked child.
            unsafe { libc::_exit(i32::from(joined.is_err())) }
        }
        ForkResult::Parent { child } => {
            let _ended = waitpid(child, None);
            waitpid(arrivals.next()?, None)?;
            Ok(Way::User)
        }
    }
}

/// A PID namespace without a worker yet.
pub(crate) struct Namespace {
    init: Init,
    /// The user, mount and PID namespaces to enter; empty if the calling thread is inside already.
    doors: Vec<(OwnedFd, CloneFlags)>,
    /// The folder `/proc` of the namespace.
    processes: File,
}

impl Namespace {
    /// Makes a namespace for all processes that the calling thread starts from now on. For other users than root, all but
    /// their `own` folders are mounted read-only there, where the system allows it.
    pub fn make(way: Way, own: Option<&Own>) -> io::Result<Self> {
        match way {
            Way::Root => Self::as_root(),
            Way::User => Self::as_user(own),
        }
    }

    /// Whether all but the worker's own folders are mounted read-only.
    pub fn is_sealed(&self) -> bool {
        self.init.is_sealed()
    }

    fn as_root() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID)?;
        // Mounts from here on must not propagate to the rest of the system.
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        let (own, other) = UnixStream::pair()?;
        // SAFETY: the child only makes system calls on data prepared before the fork, and never returns.
        match unsafe { fork() }? {
            ForkResult::Child => init::serve(other.as_raw_fd(), None),
            ForkResult::Parent { child } => {
                drop(other);
                Ok(Self {
                    init: Init::when_ready(child, own)?,
                    doors: Vec::new(),
                    processes: File::open("/proc")?,
                })
            }
        }
    }

    fn as_user(folders: Option<&Own>) -> io::Result<Self> {
        let maps = [
            ("/proc/self/setgroups", "deny".to_owned()),
            ("/proc/self/uid_map", format!("{0} {0} 1\n", geteuid())),
            ("/proc/self/gid_map", format!("{0} {0} 1\n", getegid())),
        ];
        let (made, making) = pipe2(OFlag::O_CLOEXEC)?;
        let (own, other) = UnixStream::pair()?;
        // SAFETY: the child only makes system calls on data prepared before the fork, and ends without running
        // destructors.
        let maker = match unsafe { fork() }? {
            ForkResult::Child => {
                let failed = make_for_user(&maps, making.as_fd(), other.as_raw_fd(), folders).err();
                let errno = failed.map_or(0, |errno| errno as i32);
                let _read_by_the_parent = write(&making, &(-errno).to_ne_bytes());
                // SAFETY: `_exit` may be called in a forked child.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => child,
        };
        drop((making, other));
        let _ended = waitpid(maker, None);
        let init = Init::when_ready(read_pid(made.as_fd())?, own)?;
        let door = |name: &str, flag| -> io::Result<(OwnedFd, CloneFlags)> {
            let path = format!("/proc/{}/ns/{name}", init.id());
            Ok((File::open(path)?.into(), flag))
        };
        let doors = vec![
            door("user", CloneFlags::CLONE_NEWUSER)?,
            door("mnt", CloneFlags::CLONE_NEWNS)?,
            door("pid", CloneFlags::CLONE_NEWPID)?,
        ];
        let processes = File::open(format!("/proc/{}/root/proc", init.id()))?;
        Ok(Self {
            init,
            doors,
            processes,
        })
    }

    /// The folder `/proc` that the worker sees.
    pub fn processes(&self) -> BorrowedFd<'_> {
        self.processes.as_fd()
    }

    /// Process 1, which the caller now owns, and the way in for a worker that starts in `folder`, if the calling thread
    /// is outside.
    pub fn split(self, folder: &Path) -> io::Result<(Init, Option<(Passage, Arrivals)>)> {
        if self.doors.is_empty() {
            return Ok((self.init, None));
        }
        let (arrived, told) = pipe2(OFlag::O_CLOEXEC)?;
        // A process that failed to enter writes nothing.
        fcntl(&arrived, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let passage = Passage {
            doors: self.doors,
            folder: folder.to_owned(),
            told,
        };
        Ok((self.init, Some((passage, Arrivals(arrived)))))
    }
}

/// The way into a namespace.
pub(crate) struct Passage {
    doors: Vec<(OwnedFd, CloneFlags)>,
    folder: PathBuf,
    told: OwnedFd,
}

impl Passage {
    /// Moves on to the worker between fork and exec: the calling process enters the namespace, tells the id of a new
    /// process, and ends; the new process, a child of the same parent, returns. Allocates nothing.
    pub fn enter(&self) -> io::Result<()> {
        for (door, flag) in &self.doors {
            setns(door, *flag)?;
        }
        // Entering a mount namespace leads to its root folder.
        chdir(self.folder.as_path())?;
        match fork_sibling()? {
            0 => Ok(setpgid(Pid::from_raw(0), Pid::from_raw(0))?),
            worker => {
                let written = write(&self.told, &worker.to_ne_bytes());
                // SAFETY: `_exit` may be called in a forked child.
                unsafe { libc::_exit(i32::from(written.is_err())) }
            }
        }
    }
}

/// The ids of the processes that entered a namespace.
pub(crate) struct Arrivals(OwnedFd);

impl Arrivals {
    /// The next process, which must have entered already.
    pub fn next(&self) -> io::Result<Pid> {
        read_pid(self.0.as_fd())
    }
}

/// Makes the namespaces of another user than root and starts process 1, whose id goes to `making`.
fn make_for_user(
    maps: &[(&str, String); 3],
    making: BorrowedFd,
    lifeline: i32,
    own: Option<&Own>,
) -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID)?;
    for (path, content) in maps {
        let file = nix::fcntl::open(*path, OFlag::O_WRONLY, nix::sys::stat::Mode::empty())?;
        write(&file, content.as_bytes())?;
    }
    match fork_sibling()? {
        0 => init::serve(lifeline, own),
        init => write(making, &init.to_ne_bytes()).map(drop),
    }
}

/// Forks a child of the calling process's parent; returns 0 in the child. Only for processes with one thread that end
/// or start a program soon, since libraries are not told of the fork.
fn fork_sibling() -> Result<i32, Errno> {
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: without CLONE_VM the child gets a copy of this process's memory, stack included, as from fork(2).
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(flags),
            0_usize,
            0_usize,
            0_usize,
            0_usize,
        )
    };
    Errno::result(result).map(|id| id as i32)
}

/// Reads a process id, or the negative number of an error.
fn read_pid(from: BorrowedFd) -> io::Result<Pid> {
    let mut bytes = [0; 4];
    let length = read(from, &mut bytes)?;
    match i32::from_ne_bytes(bytes) {
        _ if length < bytes.len() => Err(io::Error::other("the process that makes a namespace ended early")),
        id if id > 0 => Ok(Pid::from_raw(id)),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

#[cfg(test)]
mod tests {
    use nix::unistd::getpid;

    use super::*;

    /// The way of other users is open to root too.
    #[test]
    fn a_process_enters_the_namespace_of_a_user() {
        thread::spawn(|| {
            let namespace = match Namespace::as_user(None) {
                Ok(namespace) => namespace,
                Err(why) => return println!("skipped, since the system refuses user namespaces: {why}"),
            };
            let (mut init, passage) = namespace.split(Path::new("/")).unwrap();
            let (passage, arrivals) = passage.unwrap();
            // SAFETY: the child only makes system calls on data prepared before the fork, and ends without running
            // destructors.
            match unsafe { fork() }.unwrap() {
                ForkResult::Child => {
                    let is_second = passage.enter().is_ok() && getpid() == Pid::from_raw(2);
                    let sees_itself = Path::new("/proc/2/stat").exists() && !Path::new("/proc/3").exists();
                    // SAFETY: `_exit` may be called in a forked child.
                    unsafe { libc::_exit(if is_second && sees_itself { 7 } else { 1 }) }
                }
                ForkResult::Parent { child } => {
                    waitpid(child, None).unwrap();
                    let worker = arrivals.next().unwrap();
                    let ended = waitpid(worker, None).unwrap();
                    assert_eq!(ended, nix::sys::wait::WaitStatus::Exited(worker, 7));
                    init.kill();
                    init.reap(std::time::Instant::now() + std::time::Duration::from_secs(10));
                    assert_eq!(nix::sys::signal::kill(init.id(), None), Err(Errno::ESRCH));
                }
            }
        })
        .join()
        .unwrap();
    }
}
