//! System calls that a worker does not need, refused by seccomp(2).

mod metadata;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

/// Calls refused with `EPERM` whatever their arguments.
const NEVER: [libc::c_long; 18] = [
    // The worker is killed by its process group, so none of its processes may leave the group.
    libc::SYS_setsid,
    // It performs other calls without making them, sockets included.
    libc::SYS_io_uring_setup,
    // Access to memory and open files of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Makes the coordinator wait when it writes into the worker's memory.
    libc::SYS_userfaultfd,
    // A timer may send SIGCONT, which undoes the stop of a held worker. Timers of other calls send other signals.
    libc::SYS_timer_create,
    // Opens files by handle, which bypasses the rules for paths.
    libc::SYS_open_by_handle_at,
    // Objects that outlive the worker and could pass information to the next one.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Changes the I/O priority of other processes; unlike its relatives, it takes its target in a form that a filter
    // cannot check.
    libc::SYS_ioprio_set,
];

/// A call and pairs of argument index and value: the call is refused if every listed argument differs from its value.
type Unless = (libc::c_long, &'static [(u8, u64)]);

/// Calls refused unless one of the arguments has the listed value. A call with several rows is refused if any row
/// refuses it. Process 0 means the calling process.
const UNLESS: [Unless; 9] = [
    // No network: only sockets between processes of this machine.
    (libc::SYS_socket, &[(0, libc::AF_UNIX as u64)]),
    // Limits of other processes; without a new limit in the third argument, the call only reads.
    (libc::SYS_prlimit64, &[(0, 0), (2, 0)]),
    // Scheduling priority of another process, or of a whole user or group.
    (libc::SYS_setpriority, &[(0, libc::PRIO_PROCESS as u64)]),
    (libc::SYS_setpriority, &[(1, 0)]),
    (libc::SYS_sched_setscheduler, &[(0, 0)]),
    (libc::SYS_sched_setparam, &[(0, 0)]),
    (libc::SYS_sched_setattr, &[(0, 0)]),
    // Moves memory of another process to a distant node.
    (libc::SYS_migrate_pages, &[(0, 0)]),
    (libc::SYS_move_pages, &[(0, 0)]),
];

/// A call, and the argument by place with the bits that are looked at and their value.
type If = (libc::c_long, &'static [(u8, u64, u64)]);

/// Calls refused if all of these arguments have the listed values.
const IF: [If; 10] = [
    // These have the system send SIGCONT by itself, which would undo the stop of a held worker: when something can be read,
    // when a parent ends, or when a child ends. Processes can end, and files can change, while everything else is stopped.
    (
        libc::SYS_fcntl,
        &[(1, ALL_BITS, F_SETSIG), (2, ALL_BITS, libc::SIGCONT as u64)],
    ),
    (
        libc::SYS_prctl,
        &[
            (0, ALL_BITS, libc::PR_SET_PDEATHSIG as u64),
            (1, ALL_BITS, libc::SIGCONT as u64),
        ],
    ),
    (
        libc::SYS_clone,
        &[(0, libc::CSIGNAL as u64, libc::SIGCONT as u64)],
    ),
    // Whoever opens a leased file next waits until the lease is given back, for 45 seconds.
    (libc::SYS_fcntl, &[(1, ALL_BITS, libc::F_SETLEASE as u64)]),
    (libc::SYS_fcntl, &[(1, ALL_BITS, F_SETDELEG)]),
    (libc::SYS_fcntl, &[(1, ALL_BITS, libc::F_NOTIFY as u64)]),
    // Hints and keys stay with a file or a file system, where a later worker finds them.
    (libc::SYS_fcntl, &[(1, ALL_BITS, F_SET_RW_HINT)]),
    (libc::SYS_fcntl, &[(1, ALL_BITS, F_SET_FILE_RW_HINT)]),
    (libc::SYS_ioctl, &[(1, ALL_BITS, FS_IOC_ADD_ENCRYPTION_KEY)]),
    (libc::SYS_ioctl, &[(1, ALL_BITS, FS_IOC_REMOVE_ENCRYPTION_KEY)]),
];

const ALL_BITS: u64 = u32::MAX as u64;

/// Chooses the signal of fcntl(2) that says that something can be read; the C library of nix has no name for it.
const F_SETSIG: u64 = 10;

/// Also missing there: include/uapi/linux/fcntl.h and fscrypt.h.
const F_SETDELEG: u64 = 1040;
const F_SET_RW_HINT: u64 = 1036;
const F_SET_FILE_RW_HINT: u64 = 1038;
const FS_IOC_ADD_ENCRYPTION_KEY: u64 = 0xc050_6617;
const FS_IOC_REMOVE_ENCRYPTION_KEY: u64 = 0xc040_6618;

/// Calls that seem to be missing in the system, so that the C library makes an older one in their place. The signal that
/// clone3(2) sends when the child ends, and the mode of a file that openat2(2) makes, lie in memory, which a filter cannot
/// read.
const MISSING: [libc::c_long; 2] = [libc::SYS_clone3, libc::SYS_openat2];

/// Calls that do nothing and seem to succeed. Programs such as ninja, with which PyTorch builds extensions, give each process
/// that they start a group of its own and end if that is refused; all stay in the worker's group.
const WITHOUT_EFFECT: [libc::c_long; 1] = [libc::SYS_setpgid];

/// The filters, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Filter(Arc<Programs>);

#[derive(Debug)]
struct Programs {
    always: [BpfProgram; 3],
    /// Where files elsewhere are not mounted read-only.
    unsealed: [BpfProgram; 3],
}

/// The filter in the kernel's format.
#[repr(C)]
struct Program {
    length: libc::c_ushort,
    instructions: *const sock_filter,
}

impl Filter {
    /// The filter if this system accepts it, else the reason; determined once, on a thread that ends afterwards.
    pub fn tried() -> &'static Result<Self, String> {
        static TRIED: OnceLock<Result<Filter, String>> = OnceLock::new();
        TRIED.get_or_init(|| {
            let filter = Self::compile().map_err(|error| error.to_string())?;
            let trial = filter.clone();
            thread::spawn(move || {
                nix::sys::prctl::set_no_new_privs()?;
                trial.restrict_thread(false)
            })
            .join()
            .map_err(|_| "the trial failed".to_owned())?
            .map_err(|error| format!("the kernel refuses filters of system calls: {error}"))?;
            Ok(filter)
        })
    }

    fn compile() -> Result<Self, seccompiler::BackendError> {
        let mut refused = whole(&NEVER);
        for (call, arguments) in UNLESS {
            for number in numbers(call) {
                let conditions = arguments.iter().map(|(place, allowed)| {
                    // Process ids are 32 bits wide, and the kernel ignores the other bits; pointers are 64 bits wide.
                    let width = if *place == 2 {
                        SeccompCmpArgLen::Qword
                    } else {
                        SeccompCmpArgLen::Dword
                    };
                    SeccompCondition::new(*place, width, SeccompCmpOp::Ne, *allowed)
                });
                let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
                refused.entry(number).or_default().push(rule);
            }
        }
        for (call, arguments) in IF {
            refuse_if(&mut refused, call, arguments)?;
        }
        for (call, arguments) in metadata::set_user_id() {
            refuse_if(&mut refused, call, &arguments)?;
        }
        let mut unsupported = whole(metadata::ATTRIBUTES);
        for command in metadata::COMMANDS {
            refuse_if(&mut unsupported, libc::SYS_ioctl, &[(1, ALL_BITS, command)])?;
        }
        Ok(Self(Arc::new(Programs {
            always: [
                // The error 0 is none.
                compiled(whole(&WITHOUT_EFFECT), 0)?,
                compiled(whole(&MISSING), libc::ENOSYS)?,
                compiled(refused, libc::EPERM)?,
            ],
            unsealed: [
                compiled(whole(metadata::MODES_AND_TIMES), 0)?,
                compiled(whole(metadata::OWNERS), libc::EPERM)?,
                compiled(unsupported, libc::ENOTSUP)?,
            ],
        })))
    }

    /// Applies the filter to the calling thread and all that it starts; allocates nothing. The thread must have set
    /// no-new-privileges. `sealed`: all files but the worker's own are mounted read-only.
    pub fn restrict_thread(&self, sealed: bool) -> io::Result<()> {
        // Of two filters that both refuse a call, the one applied last gives the error.
        if !sealed {
            self.0.unsealed.iter().try_for_each(restrict_thread)?;
        }
        self.0.always.iter().try_for_each(restrict_thread)
    }
}

type Refused = BTreeMap<i64, Vec<SeccompRule>>;

/// Refuses calls whatever their arguments.
fn whole(calls: &[libc::c_long]) -> Refused {
    let numbers = calls.iter().flat_map(|call| numbers(*call));
    numbers.map(|number| (number, Vec::new())).collect()
}

/// Refuses a call if all of these arguments have these values.
fn refuse_if(
    refused: &mut Refused,
    call: libc::c_long,
    arguments: &[(u8, u64, u64)],
) -> Result<(), seccompiler::BackendError> {
    for number in numbers(call) {
        let conditions = arguments.iter().map(|(place, bits, value)| {
            let op = SeccompCmpOp::MaskedEq(*bits);
            SeccompCondition::new(*place, SeccompCmpArgLen::Dword, op, *value)
        });
        let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
        refused.entry(number).or_default().push(rule);
    }
    Ok(())
}

/// The program of a filter that lets these calls fail with an error.
fn compiled(rules: Refused, error: libc::c_int) -> Result<BpfProgram, seccompiler::BackendError> {
    let refused = SeccompAction::Errno(error as u32);
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        refused,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

fn restrict_thread(filter: &BpfProgram) -> io::Result<()> {
    let program = Program {
        length: libc::c_ushort::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        instructions: filter.as_ptr(),
    };
    // Without this flag, kernels before 5.16 turn speculation off for filtered threads, which slows the code to be
    // timed.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the kernel copies the program, which the caller's reference keeps alive through the call, and writes to
    // nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The numbers of a call: x86-64 kernels may accept a second one for the x32 ABI.
fn numbers(call: libc::c_long) -> impl Iterator<Item = i64> {
    const X32: i64 = 0x4000_0000;
    let second = cfg!(target_arch = "x86_64").then_some(call | X32);
    std::iter::once(call).chain(second)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixStream;

    use nix::errno::Errno;
    use nix::unistd::{Pid, getpgrp, setpgid, setsid};

    use super::*;

    /// Runs on a thread under the filter, or prints why it cannot.
    fn filtered(test: fn()) {
        match Filter::tried() {
            Ok(filter) => thread::spawn(move || {
                nix::sys::prctl::set_no_new_privs().unwrap();
                filter.restrict_thread(false).unwrap();
                test();
            })
            .join()
            .unwrap(),
            Err(why) => println!("skipped: {why}"),
        }
    }

    fn raw(call: libc::c_long, arguments: [libc::c_long; 4]) -> Result<(), Errno> {
        let [first, second, third, fourth] = arguments;
        // SAFETY: the tests pass numbers, and for pointers only null or an unmapped address, so the kernel writes to no
        // memory of this process.
        let result = unsafe { libc::syscall(call, first, second, third, fourth) };
        Errno::result(result).map(|_| ())
    }

    #[test]
    fn there_is_no_network_but_sockets_of_this_machine() {
        filtered(|| {
            for refused in [
                TcpListener::bind("127.0.0.1:0").map(|_| ()),
                UdpSocket::bind("[::1]:0").map(|_| ()),
            ] {
                assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
            }
            UnixStream::pair().unwrap();
        });
    }

    #[test]
    fn nobody_leaves_the_group() {
        filtered(|| {
            assert_eq!(setsid(), Err(Errno::EPERM));
            let before = getpgrp();
            // A group of one's own, as ninja asks for it.
            assert_eq!(setpgid(Pid::from_raw(0), Pid::from_raw(0)), Ok(()));
            assert_eq!(getpgrp(), before);
        });
    }

    #[test]
    fn every_call_is_refused_whatever_its_arguments() {
        filtered(|| {
            for call in NEVER {
                assert_eq!(raw(call, [0; 4]), Err(Errno::EPERM), "{call}");
            }
        });
    }

    #[test]
    fn nothing_has_the_system_send_the_signal_that_undoes_a_stop() {
        filtered(|| {
            let (cont, other) = (
                libc::c_long::from(libc::SIGCONT),
                libc::c_long::from(libc::SIGUSR1),
            );
            let set_signal = F_SETSIG as libc::c_long;
            let at_death = libc::c_long::from(libc::PR_SET_PDEATHSIG);
            assert_eq!(raw(libc::SYS_fcntl, [1, set_signal, cont, 0]), Err(Errno::EPERM));
            assert_eq!(raw(libc::SYS_fcntl, [1, set_signal, 0, 0]), Ok(()));
            assert_eq!(raw(libc::SYS_prctl, [at_death, cont, 0, 0]), Err(Errno::EPERM));
            assert_eq!(raw(libc::SYS_prctl, [at_death, 0, 0, 0]), Ok(()));
            // Threads that do not share their handlers are refused by the system itself.
            let impossible = libc::c_long::from(libc::CLONE_THREAD);
            assert_eq!(
                raw(libc::SYS_clone, [impossible | cont, 0, 0, 0]),
                Err(Errno::EPERM)
            );
            assert_eq!(
                raw(libc::SYS_clone, [impossible | other, 0, 0, 0]),
                Err(Errno::EINVAL)
            );
            assert_eq!(raw(libc::SYS_clone3, [0; 4]), Err(Errno::ENOSYS));
            // The C library does without it.
            assert!(thread::spawn(|| true).join().unwrap());
        });
    }

    /// Of the filter where files elsewhere are mounted read-only, and of the one where they are not.
    #[test]
    fn no_file_is_leased_watched_or_marked() {
        let Ok(filter) = Filter::tried() else { return };
        for sealed in [true, false] {
            let outcome = thread::spawn(move || {
                nix::sys::prctl::set_no_new_privs().unwrap();
                filter.restrict_thread(sealed).unwrap();
                let nowhere = -1;
                for command in [libc::F_SETLEASE, libc::F_NOTIFY, 1036, 1038, 1040] {
                    assert_eq!(
                        raw(libc::SYS_fcntl, [nowhere, command.into(), 0, 0]),
                        Err(Errno::EPERM),
                        "{command}"
                    );
                }
                assert_eq!(
                    raw(libc::SYS_fcntl, [nowhere, libc::F_GETFD.into(), 0, 0]),
                    Err(Errno::EBADF)
                );
                // Locks are needed by compilers' caches.
                assert_eq!(
                    raw(libc::SYS_flock, [nowhere, libc::LOCK_EX.into(), 0, 0]),
                    Err(Errno::EBADF)
                );
            });
            outcome.join().unwrap();
        }
    }

    #[test]
    fn others_are_left_alone_and_oneself_may_be_changed() {
        filtered(|| {
            let parent = libc::c_long::from(Pid::parent().as_raw());
            let process = libc::c_long::from(libc::PRIO_PROCESS);
            let user = libc::c_long::from(libc::PRIO_USER);
            assert_eq!(
                raw(libc::SYS_setpriority, [process, parent, 19, 0]),
                Err(Errno::EPERM)
            );
            assert_eq!(raw(libc::SYS_setpriority, [user, 0, 19, 0]), Err(Errno::EPERM));
            assert_eq!(
                raw(libc::SYS_sched_setscheduler, [parent, 0, 0, 0]),
                Err(Errno::EPERM)
            );
            // The address of the limit is unreadable, so the call fails with another error if it passes the filter.
            let nowhere = 1;
            assert_eq!(
                raw(libc::SYS_prlimit64, [parent, 0, nowhere, 0]),
                Err(Errno::EPERM)
            );
            assert_eq!(raw(libc::SYS_prlimit64, [0, 0, nowhere, 0]), Err(Errno::EFAULT));
            assert_eq!(raw(libc::SYS_prlimit64, [parent, 0, 0, 0]), Ok(()));
            assert_eq!(raw(libc::SYS_setpriority, [process, 0, 19, 0]), Ok(()));
        });
    }
}
