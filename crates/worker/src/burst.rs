//! Calls back to back for some time on the host, as the load before a call.
//!
//! Only the standard library is used: the loop of Python kernels, which depends on no crate, is compiled with this file
//! too.

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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

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
}
