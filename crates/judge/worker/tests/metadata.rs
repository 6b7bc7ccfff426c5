//! Whoever runs it, and whether it has namespaces or not: a worker changes nothing about files outside its folder, and leaves no
//! note there.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::env;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use common::{DESCRIPTION, shell};
use gauntlet_worker::{Timeouts, WorkerProcess};
use nix::errno::Errno;
use nix::libc::{self, c_long};
use nix::unistd::{geteuid, getgid, getuid};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// The folder whose files [`change_everything`] tries to change.
const TARGET: &str = "GAUNTLET_TEST_TARGET";

/// Whether [`start_a_worker_and_look`] may make namespaces: `with` or `without`.
const NAMESPACES: &str = "GAUNTLET_TEST_NAMESPACES";

/// A user that owns nothing.
const NOBODY: &str = "65534";

fn call(number: c_long, arguments: [c_long; 6]) -> Result<c_long, Errno> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the callers pass numbers, and pointers to values that outlive the call and are as long as it expects.
    Errno::result(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

/// Not a test of its own: the worker of other tests runs it, with a folder in [`TARGET`]. Tries every call that changes what is
/// kept about a file.
#[test]
fn change_everything() {
    let Some(target) = env::var_os(TARGET) else {
        return;
    };
    for entry in fs::read_dir(target).unwrap().flatten() {
        try_all(&entry.path());
    }
    println!("tried everything");
}

fn try_all(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    let name = name.as_ptr() as c_long;
    let folder = c_long::from(libc::AT_FDCWD);
    let file = fs::File::open(path).map(|file| (file.as_raw_fd().into(), file));
    let file: c_long = file.as_ref().map_or(-1, |(descriptor, _)| *descriptor);
    let attribute = c"user.note".as_ptr() as c_long;
    let value = c"note".as_ptr() as c_long;
    let old = [[0_i64; 2]; 2];
    let times = old.as_ptr() as c_long;
    let flags = 0x80_i64;
    let flags = &raw const flags as c_long;
    let extended = [0x80_u32, 0, 0, 0, 0, 0, 0];
    let extended = extended.as_ptr() as c_long;
    let xattr_arguments = [value as u64, 4];
    let xattr_arguments = xattr_arguments.as_ptr() as c_long;
    let hint = 3_u64;
    let hint = &raw const hint as c_long;
    let group = c_long::from(getgid().as_raw());
    let user = c_long::from(getuid().as_raw());
    let tries: [(c_long, [c_long; 6]); 27] = [
        (libc::SYS_fchmodat, [folder, name, 0o666, 0, 0, 0]),
        (libc::SYS_fchmodat, [folder, name, 0o4755, 0, 0, 0]),
        (libc::SYS_fchmod, [file, 0o666, 0, 0, 0, 0]),
        (452, [folder, name, 0o666, 0, 0, 0]),
        (libc::SYS_fchownat, [folder, name, user, group, 0, 0]),
        (libc::SYS_fchown, [file, user, group, 0, 0, 0]),
        (libc::SYS_fchownat, [folder, name, 12345, 12345, 0, 0]),
        (libc::SYS_utimensat, [folder, name, times, 0, 0, 0]),
        (libc::SYS_utimensat, [file, 0, times, 0, 0, 0]),
        (libc::SYS_setxattr, [name, attribute, value, 4, 0, 0]),
        (libc::SYS_lsetxattr, [name, attribute, value, 4, 0, 0]),
        (libc::SYS_fsetxattr, [file, attribute, value, 4, 0, 0]),
        (463, [folder, name, 0, attribute, xattr_arguments, 16]),
        (
            libc::SYS_removexattr,
            [name, c"user.old".as_ptr() as c_long, 0, 0, 0, 0],
        ),
        (466, [folder, name, 0, c"user.old".as_ptr() as c_long, 0, 0]),
        (469, [folder, name, extended, 24, 0, 0]),
        (libc::SYS_ioctl, [file, 0x4008_6602, flags, 0, 0, 0]),
        (libc::SYS_ioctl, [file, 0x401c_5820, extended, 0, 0, 0]),
        (
            libc::SYS_fcntl,
            [file, libc::F_SETLEASE.into(), libc::F_WRLCK.into(), 0, 0, 0],
        ),
        (
            libc::SYS_fcntl,
            [file, libc::F_SETLEASE.into(), libc::F_RDLCK.into(), 0, 0, 0],
        ),
        (libc::SYS_fcntl, [file, libc::F_NOTIFY.into(), 1, 0, 0, 0]),
        (libc::SYS_fcntl, [file, 1036, hint, 0, 0, 0]),
        (
            libc::SYS_linkat,
            [folder, name, folder, c"linked".as_ptr() as c_long, 0, 0],
        ),
        (
            libc::SYS_renameat,
            [folder, name, folder, c"moved".as_ptr() as c_long, 0, 0],
        ),
        (libc::SYS_truncate, [name, 0, 0, 0, 0, 0]),
        (
            libc::SYS_openat,
            [folder, name, (libc::O_WRONLY | libc::O_TRUNC).into(), 0, 0, 0],
        ),
        (libc::SYS_unlinkat, [folder, name, 0, 0, 0, 0]),
    ];
    for (number, arguments) in tries {
        let result = call(number, arguments).map_or_else(|errno| errno.to_string(), |_| "done".to_owned());
        println!("{} {number}: {result}", path.display());
    }
    #[cfg(target_arch = "x86_64")]
    for (number, arguments) in [
        (libc::SYS_chmod, [name, 0o666, 0, 0, 0, 0]),
        (libc::SYS_chown, [name, user, group, 0, 0, 0]),
        (libc::SYS_lchown, [name, user, group, 0, 0, 0]),
        (libc::SYS_utime, [name, times, 0, 0, 0, 0]),
        (libc::SYS_utimes, [name, times, 0, 0, 0, 0]),
        (libc::SYS_futimesat, [folder, name, times, 0, 0, 0]),
    ] {
        let result = call(number, arguments).map_or_else(|errno| errno.to_string(), |_| "done".to_owned());
        println!("{} {number}: {result}", path.display());
    }
}

/// What is kept about each file; the time of the last change stands for all that has no entry of its own. A read may be noted.
fn kept(folder: &Path) -> BTreeMap<String, [i64; 7]> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| {
            let found = fs::symlink_metadata(entry.path()).unwrap();
            let what = [
                i64::from(found.mode()),
                i64::from(found.uid()),
                i64::from(found.gid()),
                found.mtime_nsec(),
                found.ctime(),
                found.ctime_nsec(),
                found.len() as i64,
            ];
            (entry.file_name().to_string_lossy().into_owned(), what)
        })
        .collect()
}

fn targets(folder: &Path) {
    for (name, mode) in [("key", 0o600), ("shell", 0o755), ("ledger", 0o644)] {
        fs::write(folder.join(name), name).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(folder.join("folder")).unwrap();
    symlink("key", folder.join("link")).unwrap();
}

/// Refuses namespaces to the calling thread and all that it starts.
fn refuse_namespaces() {
    let calls = [libc::SYS_unshare, libc::SYS_setns].map(|call| (call, Vec::new()));
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let target = env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls.into(), SeccompAction::Allow, refused, target).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

/// Not a test of its own: run by [`whoever_runs_it_and_wherever`] as some user.
#[test]
fn start_a_worker_and_look() {
    let Ok(namespaces) = env::var(NAMESPACES) else {
        return;
    };
    if namespaces == "without" {
        refuse_namespaces();
    }
    let place = tempfile::tempdir().unwrap();
    let [target, workers] = ["target", "workers"].map(|name| place.path().join(name));
    fs::create_dir(&target).unwrap();
    fs::create_dir(&workers).unwrap();
    targets(&target);
    let before = kept(&target);
    let script = format!(
        "read line
         {TARGET}='{}' '{}' --exact change_everything --nocapture > said 2>&1
         for mode in 640 4750; do echo text > own-$mode; chmod $mode own-$mode; done; touch -d @0 own-640
         cp -p own-640 copied; mkdir deep && echo x > deep/x && rm -r deep && echo > /dev/null
         echo '{DESCRIPTION}'; read line",
        target.display(),
        env::current_exe().unwrap().display(),
    );
    let timeouts = Timeouts::default().longer(10);
    let (worker, _) = WorkerProcess::start(&shell(&script), &workers, timeouts).unwrap();
    let said = fs::read_to_string(worker.folder().join("said")).unwrap();
    assert!(said.contains("tried everything"), "{said}");
    assert_eq!(kept(&target), before, "{said}");
    let own = |name: &str| fs::metadata(worker.folder().join(name)).unwrap();
    assert_eq!(own("own-4750").mode() & 0o6000, 0);
    // Without namespaces nobody can tell whose file it is, and nothing is changed.
    let is_changed = (own("own-640").mode() & 0o777 == 0o640, own("copied").mtime() == 0);
    let is_sealed = namespaces == "with";
    assert_eq!(is_changed, (is_sealed, is_sealed), "{said}");
}

#[test]
fn whoever_runs_it_and_wherever() {
    if !common::has("changes no modes, times or attributes of others' files") {
        return;
    }
    let this = env::current_exe().unwrap();
    let users: &[Option<&str>] = if geteuid().is_root() {
        &[None, Some(NOBODY)]
    } else {
        &[None]
    };
    for user in users {
        for namespaces in ["with", "without"] {
            if namespaces == "with" && !common::has("sees and reaches only its own processes") {
                continue;
            }
            let mut command = match user {
                None => Command::new(&this),
                Some(user) => {
                    let mut command = Command::new("setpriv");
                    let words = ["--reuid", user, "--regid", user, "--clear-groups", "--"];
                    command.args(words).arg(&this);
                    command
                }
            };
            command.args(["--exact", "start_a_worker_and_look", "--nocapture"]);
            command.env(NAMESPACES, namespaces).env("TMPDIR", "/tmp");
            match command.output() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    println!("skipped for {user:?}: there is no setpriv");
                }
                ran => {
                    let ran = ran.unwrap();
                    let told = [ran.stdout, ran.stderr].concat();
                    let told = String::from_utf8_lossy(&told);
                    assert!(ran.status.success(), "{user:?} {namespaces}: {told}");
                }
            }
        }
    }
}

/// So the refusals are not the program's fault.
#[test]
fn unconfined_the_same_calls_change_files() {
    let place = tempfile::tempdir().unwrap();
    targets(place.path());
    let before = kept(place.path());
    let ran = Command::new(env::current_exe().unwrap())
        .args(["--exact", "change_everything", "--nocapture"])
        .env(TARGET, place.path())
        .current_dir(tempfile::tempdir().unwrap().path())
        .output()
        .unwrap();
    assert!(ran.status.success());
    assert_ne!(kept(place.path()), before);
}
