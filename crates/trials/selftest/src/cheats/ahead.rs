//! Cheats that compute results ahead within calls that do not decide, so that the calls that do are short.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use gauntlet_worker::protocol::{Failure, Sample};

use super::work::{Call, Trick, Work, timed};

/// The share of an honest call that a call with a known result seems to take.
const SHOWN: f64 = 0.6;

/// Results that a lone call computes besides its own.
const AT_A_TIME: usize = 3;

/// Which calls compute ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Lone calls, for any operands that are loaded.
    Lone,
    /// The first call of each request, for the other calls of the request.
    First,
}

/// Computes ahead in some calls. Other calls copy the result and wait as long as a fast kernel takes.
pub struct Ahead {
    when: When,
    known: HashMap<usize, Vec<u8>>,
    /// The shortest honest call so far, in seconds.
    honest: f64,
    /// The copy to compute next.
    next: usize,
}

impl Ahead {
    /// Computes ahead in these calls.
    pub fn new(when: When) -> Self {
        Self {
            when,
            known: HashMap::new(),
            honest: f64::INFINITY,
            next: 0,
        }
    }

    fn honestly(&mut self, work: &mut Work, copy: usize) -> Result<(), Failure> {
        let start = Instant::now();
        work.compute(copy)?;
        self.honest = self.honest.min(start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Computes and keeps the results of some copies without touching the output.
    fn ahead(&mut self, work: &mut Work, copies: &[usize]) -> Result<(), Failure> {
        let own = work.output.bytes.clone();
        for copy in copies {
            work.compute(*copy)?;
            self.known.insert(*copy, work.output.bytes.clone());
        }
        work.output.bytes.copy_from_slice(&own);
        Ok(())
    }
}

impl Trick for Ahead {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        self.honest = f64::INFINITY;
        Ok(())
    }

    fn loaded(&mut self, _work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        self.known.clear();
        self.next = 0;
        Ok(())
    }

    fn time(&mut self, work: &mut Work, copies: &[usize], call: Call) -> Result<Vec<Sample>, Failure> {
        let loaded = work.copies.len();
        let copies: Vec<usize> = copies.iter().map(|copy| copy % loaded).collect();
        if self.when == When::First {
            self.known.clear();
        }
        let lone = copies.len() == 1 && call == Call::Timed;
        let each = copies.iter().enumerate();
        each.map(|(index, copy)| {
            work.call(index, |work| {
                timed(|| match self.when {
                    When::Lone if lone => {
                        self.honestly(work, *copy)?;
                        // As many for each lone call, whether they are known or not, so that all take equally long.
                        let ahead: Vec<usize> =
                            (0..AT_A_TIME).map(|step| (self.next + step) % loaded).collect();
                        self.next += AT_A_TIME;
                        self.ahead(work, &ahead)
                    }
                    When::First if index == 0 => {
                        self.honestly(work, *copy)?;
                        self.ahead(work, &copies[1..])
                    }
                    _ => {
                        let start = Instant::now();
                        let Some(known) = self.known.get(copy) else {
                            return self.honestly(work, *copy);
                        };
                        work.output.bytes.copy_from_slice(known);
                        while start.elapsed().as_secs_f64() < SHOWN * self.honest {
                            std::hint::spin_loop();
                        }
                        Ok(())
                    }
                })
            })
        })
        .collect()
    }
}
