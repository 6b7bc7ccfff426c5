//! Two things at once that mostly wait for processes.

use std::panic::resume_unwind;
use std::thread;

/// Runs two functions at the same time and returns both results. Each has a thread that may wait: rayon's threads are left
/// to computations.
pub fn side_by_side<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn each_can_wait_for_the_other() {
        let both = Barrier::new(2);
        let meet = |answer| {
            both.wait();
            answer
        };
        assert_eq!(side_by_side(|| meet(1), || meet(2)), (1, 2));
    }
}
