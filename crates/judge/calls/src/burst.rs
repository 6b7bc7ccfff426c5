//! Calls back to back for some time, on the host or queued for a device, as the load before a call.

/// Calls again and again until `seconds` have passed by the clock, at least once. Returns the number of calls and the
/// seconds in which they ran.
///
/// # Errors
/// The first error of a call.
pub fn back_to_back<E>(
    seconds: f64,
    clock: impl Fn() -> f64,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<(usize, f64), E> {
    let begun = clock();
    let (mut calls, mut busy) = (0, 0.0);
    loop {
        let start = clock();
        call()?;
        let end = clock();
        calls += 1;
        busy += end - start;
        if end - begun >= seconds {
            return Ok((calls, busy));
        }
    }
}

/// Seconds that a batch of queued calls should take: batches grow until they do. Two batches are queued at a time, so the host
/// has this long to queue the next one, and a load ends up to twice this time late.
const BATCH: f64 = 2e-3;

/// A device for which calls are queued, and two marks in its queue.
pub trait Queue {
    /// Why the device cannot go on.
    type Error;

    /// Puts mark 0 or 1 at the end of the queue.
    ///
    /// # Errors
    /// If the device reports an error.
    fn mark(&self, mark: usize) -> Result<(), Self::Error>;

    /// Waits until the device has reached this mark.
    ///
    /// # Errors
    /// If the device reports an error.
    fn reach(&self, mark: usize) -> Result<(), Self::Error>;

    /// Waits until the whole device has finished, whatever the queue.
    ///
    /// # Errors
    /// If the device reports an error.
    fn finish(&self) -> Result<(), Self::Error>;
}

/// Queues calls in batches until `seconds` have passed by the clock, so that the device never waits for the host, and waits
/// until the device has finished. Queues one batch at least. Returns the number of calls and the seconds until then.
///
/// # Errors
/// The first error of a call, or of the device.
pub fn in_batches<Q: Queue, E: From<Q::Error>>(
    queue: &Q,
    seconds: f64,
    clock: impl Fn() -> f64,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<(usize, f64), E> {
    let begun = clock();
    let (mut calls, mut batches, mut size) = (0, 0, 1);
    let mut reached_before = begun;
    while batches == 0 || clock() - begun < seconds {
        let mark = batches % 2;
        if batches >= 2 {
            queue.reach(mark)?;
            let reached = clock();
            if reached - reached_before < BATCH {
                size *= 2;
            }
            reached_before = reached;
        }
        for _ in 0..size {
            call()?;
        }
        queue.mark(mark)?;
        calls += size;
        batches += 1;
    }
    queue.finish()?;
    Ok((calls, clock() - begun))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[test]
    fn calls_follow_until_the_time_is_over() {
        let now = Cell::new(3.0);
        // Half a second passes in each call, and a quarter around it.
        let clock = || {
            now.set(now.get() + 0.125);
            now.get() - 0.125
        };
        let call = || {
            now.set(now.get() + 0.375);
            Ok::<_, ()>(())
        };
        let (calls, busy) = back_to_back(2.0, clock, call).unwrap();
        assert_eq!((calls, busy), (4, 2.0));
        let once = back_to_back(0.0, || 1.0, || Ok::<_, ()>(()));
        assert_eq!(once, Ok((1, 0.0)), "a call at least");
        assert_eq!(back_to_back(1.0, || 1.0, || Err(7)), Err(7));
    }
    /// Notes what is asked of it: a mark as `a` or `b`, waiting for one as `A` or `B`, and the end as `.`.
    #[derive(Default)]
    struct Noted(RefCell<String>);

    impl Queue for Noted {
        type Error = &'static str;

        fn mark(&self, mark: usize) -> Result<(), Self::Error> {
            self.0.borrow_mut().push(['a', 'b'][mark]);
            Ok(())
        }

        fn reach(&self, mark: usize) -> Result<(), Self::Error> {
            self.0.borrow_mut().push(['A', 'B'][mark]);
            Ok(())
        }

        fn finish(&self) -> Result<(), Self::Error> {
            self.0.borrow_mut().push('.');
            Ok(())
        }
    }

    /// A load of calls that take `call` seconds as they are queued, and what was asked of the queue, each call as `c`.
    fn queued(call: f64, seconds: f64) -> ((usize, f64), String) {
        let (queue, now) = (Noted::default(), Cell::new(1.0));
        let work = || {
            queue.0.borrow_mut().push('c');
            now.set(now.get() + call);
            Ok::<_, &'static str>(())
        };
        let load = in_batches(&queue, seconds, || now.get(), work).unwrap();
        (load, queue.0.into_inner())
    }

    #[test]
    fn batches_are_queued_before_the_device_has_ended_the_last_one() {
        // Long calls: one in a batch.
        let (load, order) = queued(0.25, 1.0);
        assert_eq!(load, (4, 1.0));
        assert_eq!(order, "cacbAcaBcb.");
        assert_eq!(queued(0.25, 0.0).0.0, 1, "a batch at least");
    }

    #[test]
    fn batches_of_short_calls_grow() {
        // Calls of half a millisecond: batches grow until they take two milliseconds.
        let ((calls, seconds), order) = queued(0.5_f64.powi(11), 0.1);
        let batches: Vec<usize> = order
            .split(['a', 'b'])
            .map(|batch| batch.matches('c').count())
            .collect();
        assert_eq!(batches[..5], [1, 1, 2, 4, 8], "{order}");
        assert!(batches.iter().all(|batch| *batch <= 8), "{order}");
        assert!((0.1..0.105).contains(&seconds) && calls == batches.iter().sum::<usize>());
    }

    #[test]
    fn the_first_error_of_a_call_ends_a_load() {
        let queue = Noted::default();
        let failed = in_batches(&queue, 1.0, || 0.0, || Err("no"));
        assert_eq!(failed, Err("no"));
        assert_eq!(queue.0.into_inner(), "");
    }
}
