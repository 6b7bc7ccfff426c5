//! Probes, and the worker's lines.

use super::*;
use crate::protocol::Turn;

fn address<T>(place: &T) -> u64 {
    std::ptr::from_ref(place).expose_provenance() as u64
}

#[test]
fn a_probe_that_is_not_there_is_an_error() {
    // The system always lets this process reach its own memory.
    assert!(Held::tried(Pid::this(), probe()).is_ok());
    assert!(Held::tried(Pid::this(), address(b"somewhat")).is_err());
    assert!(Held::tried(Pid::this(), 8).is_err(), "no memory is mapped there");
}

#[test]
fn a_worker_takes_its_turns_in_lines_of_the_protocol() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::AsRawFd;

    let (requests, mut coordinator) = io::pipe().unwrap();
    let (told, replies) = io::pipe().unwrap();
    coordinator.write_all(b"\n00000000000000ff\n\n\n").unwrap();
    // SAFETY: both pipes stay open until the end of this test.
    let mut turns = unsafe { crate::Turns::on(requests.as_raw_fd(), replies.as_raw_fd()) };
    turns.ready(br#"{"inputs":{"x":[8,-4]}}"#).unwrap();
    turns.heating(0.5).unwrap();
    turns.heated(12, 0.25).unwrap();
    assert_eq!(turns.key().unwrap(), 255);
    turns.placed(2e-3).unwrap();
    turns.over(1.5e-7, 3e-5).unwrap();
    turns.done(1.5e-7, &[vec![16], vec![32, 4, -8]]).unwrap();
    drop(coordinator);
    assert!(turns.done(1.0, &[]).is_err(), "the coordinator is gone");
    let lines: Vec<String> = BufReader::new(told).lines().take(6).map(Result::unwrap).collect();
    let read = |line: &String| serde_json::from_str::<Turn>(line).unwrap();
    let inputs = [("x".to_owned(), vec![8, -4])].into();
    let sealed = false;
    assert_eq!(read(&lines[0]), Turn::Ready { inputs, sealed });
    assert_eq!(read(&lines[1]), Turn::Heating { heating: 0.5 });
    assert_eq!(
        read(&lines[2]),
        Turn::Heated {
            heated: 12,
            busy: 0.25
        }
    );
    assert_eq!(read(&lines[3]), Turn::Placed { placed: 2e-3 });
    let (over, host) = (1.5e-7, 3e-5);
    assert_eq!(read(&lines[4]), Turn::Over { over, host });
    let outputs = vec![vec![16], vec![32, 4, -8]];
    assert_eq!(
        read(&lines[5]),
        Turn::Done {
            call: 1.5e-7,
            outputs
        }
    );
}
