//! Handling of signals.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;

use crate::error::{CliError, say_line};
use crate::exit::Exit;

/// A description of the results that are kept after an interrupt; none until there are some.
static KEPT: Mutex<Option<String>> = Mutex::new(None);

/// Installs handlers: on an interrupt, and when the program is told to end, it ends the workers, removes temporary files, says what is
/// kept, and exits. A file at the limit of sizes (`ulimit -f`) is an error like a full disk, and does not end the program.
pub fn handle() {
    // A handler that does nothing, because workers would inherit it if the signal were ignored.
    // SAFETY: the handler does nothing, so it may run at any moment.
    let _set = unsafe { signal(Signal::SIGXFSZ, SigHandler::Handler(nothing)) };
    // Workers have process groups of their own, so an interrupt at the terminal does not reach them.
    let handled = ctrlc::set_handler(|| {
        let command = COMMAND.load(Ordering::Relaxed);
        if command != 0 && kill(Pid::from_raw(command), Signal::SIGTERM).is_ok() {
            return;
        }
        // A second signal ends it at once.
        if KEEPS_PAIRS.swap(false, Ordering::Relaxed) {
            request();
            std::thread::spawn(wind_down);
        } else {
            end();
        }
    });
    if let Err(error) = handled {
        say_line(format_args!(
            "interrupts cannot be caught ({error}): workers may outlive this program"
        ));
    }
}

/// Ends the program.
fn end() -> ! {
    gauntlet_worker::end_all_workers();
    gauntlet_scratch::remove_all();
    tell();
    std::process::exit(Exit::Interrupted as i32);
}

/// How long a command may take to write what it keeps.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ends workers, those too that are just being started, until the command has written what it keeps, or has had its time.
fn wind_down() {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        gauntlet_worker::end_all_workers();
        std::thread::sleep(Duration::from_millis(20));
    }
    end();
}

/// Whether the command itself writes what it has measured when a signal comes.
static KEEPS_PAIRS: AtomicBool = AtomicBool::new(false);

/// Measures something of which a signal leaves what was measured so far. None if nothing is left of it.
pub fn keeping<T>(
    measure: impl FnOnce() -> Result<T, CliError>,
    is_worth_keeping: impl FnOnce(&T) -> bool,
) -> Result<Option<T>, CliError> {
    KEEPS_PAIRS.store(true, Ordering::Relaxed);
    let measured = measure();
    KEEPS_PAIRS.store(false, Ordering::Relaxed);
    if !is_requested() {
        return measured.map(Some);
    }
    let kept = measured.ok().filter(is_worth_keeping);
    if kept.is_none() {
        tell();
    }
    Ok(kept)
}

/// The command that this program runs and waits for; 0 if there is none.
static COMMAND: AtomicI32 = AtomicI32::new(0);

/// Passes interrupts on to a command that this program waits for: it decides what is kept, and this program ends after it.
pub fn forward_to(command: Option<u32>) {
    let number = command.and_then(|number| i32::try_from(number).ok());
    COMMAND.store(number.unwrap_or(0), Ordering::Relaxed);
}

extern "C" fn nothing(_signal: i32) {}

/// Whether a caller in this process wants all measurements to end.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// How often that was requested.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// Asks whatever waits for the machine to give up.
pub fn request() {
    REQUESTS.fetch_add(1, Ordering::Relaxed);
    REQUESTED.store(true, Ordering::Relaxed);
}

/// How often measurements were to end so far: one during which this changes has lost its workers.
pub fn requests() -> usize {
    REQUESTS.load(Ordering::Relaxed)
}

/// Withdraws the request.
pub fn withdraw() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// Whether whatever waits for the machine is to give up.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Sets the description of what is kept if the program is interrupted from now on.
pub fn keeps(what: String) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

fn tell() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let kept = kept.unwrap_or_else(|| "no result was written".to_owned());
    // Does not take the lock of standard error, which a blocked writer may hold forever, and does not block on a full
    // pipe.
    let stderr = io::stderr();
    let mut heard = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut heard, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
        let _heard = nix::unistd::write(&stderr, format!("\ninterrupted: {kept}\n").as_bytes());
    }
}
