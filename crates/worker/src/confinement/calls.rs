//! System calls that a worker has no use for, refused by seccomp(2).

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

/// Refused whatever their arguments, with `EPERM`.
const NEVER: [libc::c_long; 17] = [
    // The worker is ended with its process group, so all of it has to stay in there.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // Does what other calls do without making them, sockets included.
    libc::SYS_io_uring_setup,
    // The memory and the open files of others.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Files by number, past the rules for paths.
    libc::SYS_open_by_handle_at,
    // What outlives the worker and could tell the next one something.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The one call for another process's urgency that hides whom it names from a filter.
    libc::SYS_ioprio_set,
];

/// A call and arguments (by place) that are all other than those allowed.
type Unless = (libc::c_long, &'static [(u8, u64)]);

/// Refused unless one of the arguments is as said. Calls with several rows are refused if any of these says so.
/// A process is 0 where a caller means itself.
const UNLESS: [Unless; 9] = [
    // No network: only sockets between processes of this machine.
    (libc::SYS_socket, &[(0, libc::AF_UNIX as u64)]),
    // Another's limits; with no new limit in the third argument they are only read.
    (libc::SYS_prlimit64, &[(0, 0), (2, 0)]),
    // Another's urgency, or that of a whole user or group.
    (libc::SYS_setpriority, &[(0, libc::PRIO_PROCESS as u64)]),
    (libc::SYS_setpriority, &[(1, 0)]),
    (libc::SYS_sched_setscheduler, &[(0, 0)]),
    (libc::SYS_sched_setparam, &[(0, 0)]),
    (libc::SYS_sched_setattr, &[(0, 0)]),
    // Another's memory, to a far node.
    (libc::SYS_migrate_pages, &[(0, 0)]),
    (libc::SYS_move_pages, &[(0, 0)]),
];

/// The filter, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Filter(Arc<BpfProgram>);

/// As the kernel takes a filter.
#[repr(C)]
struct Program {
    length: libc::c_ushort,
    instructions: *const sock_filter,
}

impl Filter {
    /// The filter if this system takes it, else why not; found out once, on a thread that ends with the trial.
    pub fn tried() -> &'static Result<Self, String> {
        static TRIED: OnceLock<Result<Filter, String>> = OnceLock::new();
        TRIED.get_or_init(|| {
            let filter = Self::compile().map_err(|error| error.to_string())?;
            let trial = filter.clone();
            thread::spawn(move || {
                nix::sys::prctl::set_no_new_privs()?;
                trial.restrict_thread()
            })
            .join()
            .map_err(|_| "the trial failed".to_owned())?
            .map_err(|error| format!("the kernel refuses filters of system calls: {error}"))?;
            Ok(filter)
        })
    }

    fn compile() -> Result<Self, seccompiler::BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        for call in NEVER {
            for number in numbers(call) {
                rules.insert(number, Vec::new());
            }
        }
        for (call, arguments) in UNLESS {
            for number in numbers(call) {
                let conditions = arguments.iter().map(|(place, allowed)| {
                    // Identities are 32 bits wide, and the kernel ignores the rest; pointers are not.
                    let width = if *place == 2 {
                        SeccompCmpArgLen::Qword
                    } else {
                        SeccompCmpArgLen::Dword
                    };
                    SeccompCondition::new(*place, width, SeccompCmpOp::Ne, *allowed)
                });
                let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
                rules.entry(number).or_default().push(rule);
            }
        }
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM as u32),
            std::env::consts::ARCH.try_into()?,
        )?;
        Ok(Self(Arc::new(filter.try_into()?)))
    }

    /// Lays the filter on the calling thread and all that it starts; allocates nothing. The thread must have given up
    /// new privileges.
    pub fn restrict_thread(&self) -> io::Result<()> {
        let program = Program {
            length: libc::c_ushort::try_from(self.0.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            instructions: self.0.as_ptr(),
        };
        // Kernels before 5.16 otherwise turn speculation off for whoever is filtered, which slows what is to be timed.
        let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        // SAFETY: the kernel copies the program, which `self` keeps alive through the call, and writes to nothing.
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
}

/// The numbers under which a call can be made: x86-64 kernels may know each by a second one, for the x32 ABI.
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

    /// Runs on a thread under the filter, or says why not.
    fn filtered(test: fn()) {
        match Filter::tried() {
            Ok(filter) => thread::spawn(move || {
                nix::sys::prctl::set_no_new_privs().unwrap();
                filter.restrict_thread().unwrap();
                test();
            })
            .join()
            .unwrap(),
            Err(why) => println!("skipped: {why}"),
        }
    }

    fn raw(call: libc::c_long, arguments: [libc::c_long; 4]) -> Result<(), Errno> {
        let [first, second, third, fourth] = arguments;
        // SAFETY: the calls tested here take numbers, or null where they take addresses.
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
            assert_eq!(setpgid(Pid::from_raw(0), getpgrp()), Err(Errno::EPERM));
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
            // With a limit that cannot be read, the call would fail in another way if it were let through.
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
