//! What becomes of the program when it is interrupted.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::exit::Exit;
use crate::trouble::say;

/// What a person who interrupts may rely on; nothing until there is something.
static KEPT: Mutex<Option<String>> = Mutex::new(None);

/// From now on an interrupt ends the workers, says what is kept, and ends the program.
pub fn handle() {
    // Workers are in process groups of their own, which an interrupt at the terminal does not reach.
    let handled = ctrlc::set_handler(|| {
        gauntlet_worker::end_all_workers();
        tell();
        std::process::exit(Exit::Interrupted as i32);
    });
    if let Err(error) = handled {
        say(&format!(
            "interrupts cannot be caught ({error}): workers may outlive this program\n"
        ));
    }
}

/// Notes what is kept if the program is interrupted from now on.
pub fn keeps(what: String) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

fn tell() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let kept = kept.unwrap_or_else(|| "no result was written".to_owned());
    // Neither through the lock of standard error, which may be held for ever by whom nobody listens to, nor where the
    // program would have to wait for being heard.
    let stderr = io::stderr();
    let mut heard = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut heard, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
        let _heard = nix::unistd::write(&stderr, format!("\ninterrupted: {kept}\n").as_bytes());
    }
}
