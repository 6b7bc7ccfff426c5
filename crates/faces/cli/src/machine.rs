//! Locks on the CPU or GPU for measuring commands: two at the same time would disturb each other.
//!
//! There are two files for each. The first belongs to this user alone, and is waited for until its holder ends. The second is shared
//! by all users of the machine, any of whom can hold it as long as they like, so it is waited for only so long.

mod holder;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::Uid;

use self::holder::Holder;
use crate::arguments::MeasuredExecutor;
use crate::error::{CliError, say_line};
use crate::interrupt;

/// The variable that limits how long a command waits for another one.
const LIMIT: &str = "GAUNTLET_WAIT";

/// How long to wait for programs of other users unless the variable says otherwise.
const PATIENCE_WITH_OTHERS: Duration = Duration::from_secs(600);

/// How often to look whether a lock is free.
const PAUSE: Duration = Duration::from_millis(100);

/// Locked files in a folder that all programs of the machine share. The locks end with the process, in every case; the files stay, so that all
/// later programs lock the same ones.
#[must_use = "what is held is let go of when this is dropped"]
pub struct Hold {
    _locks: Vec<File>,
    /// After the files: they belong to the process as a whole, so one thread must not close what another has locked.
    _own: MutexGuard<'static, ()>,
}

/// Which thread of this process measures on the CPU, and which on a GPU.
static OWN: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];

/// Waits for the other threads of this process.
fn own(executor: MeasuredExecutor) -> Result<MutexGuard<'static, ()>, CliError> {
    let mutex = &OWN[usize::from(executor == MeasuredExecutor::Cuda)];
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if interrupt::is_requested() => return Err(interrupted()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

/// The caller wants no measurement any more.
fn interrupted() -> CliError {
    CliError::broken("interrupted while it waited for the machine")
}

impl Hold {
    /// Locks an executor's hardware. If another program holds a lock, says which one and since when, and waits for it to end: for one
    /// of this user without a limit, for one of another user ten minutes, unless `GAUNTLET_WAIT` says how long. Another thread of
    /// this program is waited for without a limit.
    ///
    /// # Errors
    /// If a program of this user holds the lock beyond the limit, or the limit is no duration.
    pub fn take(executor: MeasuredExecutor) -> Result<Self, CliError> {
        let (name, words) = match executor {
            MeasuredExecutor::Cpu => ("cpu".to_owned(), "this machine's CPU".to_owned()),
            MeasuredExecutor::Cuda => {
                let gpu = gpu();
                (format!("gpu-{gpu}"), format!("GPU {gpu}"))
            }
        };
        let limit = limit()?;
        let own = own(executor)?;
        let user = Uid::effective();
        let folder = folder();
        let path = |name: String| folder.join(format!("gauntlet-measuring-{name}.lock"));
        // Always in this order, so that no two programs wait for each other.
        let locks = [
            Lock {
                path: path(format!("{name}-{user}")),
                owner: Some(user),
                words: &words,
                limit,
            },
            Lock {
                path: path(name),
                owner: None,
                words: &words,
                limit: Some(limit.unwrap_or(PATIENCE_WITH_OTHERS)),
            },
        ];
        let locks: Vec<Option<File>> = locks.iter().map(Lock::take).collect::<Result<_, _>>()?;
        Ok(Self {
            _locks: locks.into_iter().flatten().collect(),
            _own: own,
        })
    }
}

/// The limit that the user set.
fn limit() -> Result<Option<Duration>, CliError> {
    let Some(text) = std::env::var_os(LIMIT) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let parsed = text.parse::<SignedDuration>().ok();
    let parsed = parsed.and_then(|time| Duration::try_from(time).ok());
    parsed.map(Some).ok_or_else(|| {
        CliError::bad_input(
            format!("{LIMIT} is `{text}`, which is no duration"),
            "give how long to wait for another program that measures, such as 10m or 0s, or unset it",
        )
    })
}

/// A file to lock.
struct Lock<'a> {
    path: PathBuf,
    /// The user whose file it is; none if it is everybody's.
    owner: Option<Uid>,
    /// What is measured.
    words: &'a str,
    /// How long to wait.
    limit: Option<Duration>,
}

impl Lock<'_> {
    /// Locks the file. If it cannot be locked, or another program holds it for longer than the limit, prints a note and returns none.
    fn take(&self) -> Result<Option<File>, CliError> {
        let words = self.words;
        let without = |why: String| {
            say_line(format_args!(
                "note: {} {why}: should another program measure on {words} now, neither result is worth anything",
                self.path.display()
            ));
            Ok(None)
        };
        let file = match self.open() {
            Ok(file) => file,
            Err(error) => return without(format!("cannot be locked ({error})")),
        };
        match self.wait(&file) {
            Ok(None) => Ok(Some(file)),
            Ok(Some((holder, waited))) => match self.owner {
                Some(_) => Err(CliError::undecided(
                    format!("{holder} is still measuring on {words} after {waited:.0?}"),
                    format!("wait for it to end, end it, or give a longer {LIMIT}"),
                )),
                None => without(format!("is still held by {holder} after {waited:.0?}")),
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(interrupted()),
            Err(error) => without(format!("cannot be locked ({error})")),
        }
    }

    /// Opens the file, and creates it if it does not exist. What others put there in its place is refused, and nothing waits for it.
    fn open(&self) -> io::Result<File> {
        let options = || {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            options
        };
        let (mode, there) = match self.owner {
            Some(_) => (0o600, options().open(&self.path)),
            None => (0o666, options().open(&self.path)),
        };
        let file = match there {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match options().create_new(true).mode(mode).open(&self.path) {
                    Ok(file) => {
                        file.set_permissions(Permissions::from_mode(mode))?;
                        file
                    }
                    // Another program created it first.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => options().open(&self.path)?,
                    Err(error) => return Err(error),
                }
            }
            found => found?,
        };
        let found = file.metadata()?;
        if !found.is_file() || self.owner.is_some_and(|owner| owner.as_raw() != found.uid()) {
            return Err(io::Error::other("another user put it there"));
        }
        Ok(file)
    }

    /// Locks the whole file with a POSIX lock: such locks report their holder, and workers do not inherit them. If another program still
    /// holds it when the limit has passed, returns that program and how long this call waited.
    fn wait(&self, file: &File) -> io::Result<Option<(Holder, Duration)>> {
        let start = Instant::now();
        let mut told = None;
        loop {
            match fcntl(file, FcntlArg::F_SETLK(&whole_file())) {
                Err(Errno::EACCES | Errno::EAGAIN) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(None),
            }
            let mut lock = whole_file();
            fcntl(file, FcntlArg::F_GETLK(&mut lock))?;
            if i32::from(lock.l_type) == libc::F_UNLCK {
                continue;
            }
            let holder = Holder::of(lock.l_pid);
            let waited = start.elapsed();
            if self.limit.is_some_and(|limit| waited >= limit) {
                return Ok(Some((holder, waited)));
            }
            if told != Some(lock.l_pid) {
                told = Some(lock.l_pid);
                self.tell(&holder);
            }
            if interrupt::is_requested() {
                return Err(ErrorKind::Interrupted.into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn tell(&self, holder: &Holder) {
        let limit = match self.limit {
            Some(limit) => format!("for {limit:.0?} at most ({LIMIT} changes that)"),
            None => format!("for it to end ({LIMIT} limits that)"),
        };
        say_line(format_args!(
            "{holder} is measuring on {}; waiting {limit}, since two at once would measure each other",
            self.words
        ));
    }
}

/// The variable that names the folder of the locks.
const FOLDER: &str = "GAUNTLET_LOCKS";

/// Where the locks are: not where temporary files are, since a scheduler gives each job a folder of its own for those. All users must
/// choose the same one, so it is the first of these in which everybody may make files and delete only their own.
fn folder() -> PathBuf {
    if let Some(named) = std::env::var_os(FOLDER).filter(|named| !named.is_empty()) {
        return named.into();
    }
    let is_everybodys = |folder: &&str| {
        let mode = std::fs::metadata(folder).map(|found| found.mode() & 0o1777);
        mode.is_ok_and(|mode| mode == 0o1777)
    };
    let found = ["/run/lock", "/dev/shm"].into_iter().find(is_everybodys);
    PathBuf::from(found.unwrap_or("/tmp"))
}

/// The GPU that workers use, under the same name for all programs: its UUID, since two jobs that each see one card both call it 0. Where
/// no driver tells it, the words of the variables that choose it.
fn gpu() -> String {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let ordinal = variable("GAUNTLET_GPU").parse().unwrap_or(0_usize);
    gauntlet_cuda::driver::Device::new(ordinal).map_or_else(
        |_| words(ordinal, &variable("CUDA_VISIBLE_DEVICES")),
        |gpu| gpu.uuid,
    )
}

/// The words that choose a GPU: with a list of visible devices, the driver counts only those.
fn words(ordinal: usize, shown: &str) -> String {
    let shown = shown.split(',').nth(ordinal).unwrap_or_default();
    let name: String = shown
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
        .collect();
    if name.is_empty() {
        ordinal.to_string()
    } else {
        name
    }
}

fn whole_file() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    fn lock(path: PathBuf, owner: Option<Uid>) -> Lock<'static> {
        Lock {
            path,
            owner,
            words: "this machine's CPU",
            limit: Some(Duration::ZERO),
        }
    }

    #[test]
    fn a_file_that_another_user_may_have_put_there_is_not_locked() {
        let place = tempfile::tempdir().unwrap();
        let mode = |path: &PathBuf| std::fs::metadata(path).unwrap().mode() & 0o777;
        let own = place.path().join("own.lock");
        assert!(
            lock(own.clone(), Some(Uid::effective()))
                .take()
                .unwrap()
                .is_some()
        );
        assert_eq!(mode(&own), 0o600);
        let shared = place.path().join("shared.lock");
        assert!(lock(shared.clone(), None).take().unwrap().is_some());
        assert_eq!(mode(&shared), 0o666);
        let stranger = Uid::from_raw(Uid::effective().as_raw() + 1);
        assert!(lock(own, Some(stranger)).open().is_err());
        let (link, pipe) = (place.path().join("link.lock"), place.path().join("pipe.lock"));
        symlink(&shared, &link).unwrap();
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for trap in [link, pipe] {
            assert!(lock(trap, None).open().is_err());
        }
    }

    #[test]
    fn a_gpu_that_no_driver_tells_of_has_the_words_that_choose_it() {
        for (ordinal, shown, name) in [
            (0, "", "0"),
            (3, "", "3"),
            (0, "3", "3"),
            (1, "2, 5", "5"),
            (0, "GPU-8932f937-d72c", "GPU-8932f937-d72c"),
            (0, "../x", "x"),
        ] {
            assert_eq!(words(ordinal, shown), name, "{ordinal} of {shown}");
        }
    }
}
