//! Cheats that move a part of each call's work to where no call is timed.

use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use gauntlet_problems::Output;
use gauntlet_worker::protocol::{Failure, Sample};

use super::lesser::{Cut, Lesser};
use super::work::{Call, Honest, Trick, Work, broken, timed};

/// Where the first rows are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Early {
    /// In `load`.
    InLoad,
    /// In `prepare`.
    InPrepare,
    /// By a thread that runs on after the answer to `load`.
    AfterLoad,
    /// In `time`, for all calls of the request, before the clock of the first one starts.
    BeforeTheClock,
}

/// Where the last rows are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// In `output`, for the call that is asked for.
    InOutput,
    /// In `output`, by computing the whole call again.
    AnewInOutput,
    /// By a thread that runs on after the answer to `time`.
    AfterTime,
}

/// The rows of each part of a result that are computed early, in the timed call, and late.
#[derive(Debug, Clone, Copy)]
pub struct Split {
    /// Where the early rows are computed, and which.
    pub early: Option<(Early, Cut)>,
    /// The rows of the timed call.
    pub timed: Cut,
    /// Where the late rows are computed, and which.
    pub late: Option<(Late, Cut)>,
}

/// Three tenths of the rows, from the first one on.
pub const FIRST: Cut = Cut {
    rows: |rows| rows * 3 / 10,
    ..Cut::NONE
};

/// All rows but those of [`FIRST`].
pub const ALL_BUT_FIRST: Cut = Cut {
    start: |rows| rows * 3 / 10,
    rows: |rows| rows - rows * 3 / 10,
    ..Cut::NONE
};

/// Three tenths of the rows, up to the last one.
pub const LAST: Cut = Cut {
    start: |rows| rows - rows * 3 / 10,
    rows: |rows| rows * 3 / 10,
    ..Cut::NONE
};

/// All rows but those of [`LAST`].
pub const ALL_BUT_LAST: Cut = Cut {
    rows: |rows| rows - rows * 3 / 10,
    ..Cut::NONE
};

/// All rows but those of [`FIRST`] and [`LAST`].
pub const MIDDLE: Cut = Cut {
    start: |rows| rows * 3 / 10,
    rows: |rows| rows - 2 * (rows * 3 / 10),
    ..Cut::NONE
};

/// A twentieth of the rows, up to the last one.
pub const TWENTIETH: Cut = Cut {
    start: |rows| rows - rows / 20,
    rows: |rows| rows / 20,
    ..Cut::NONE
};

/// All rows but those of [`TWENTIETH`].
pub const ALL_BUT_TWENTIETH: Cut = Cut {
    rows: |rows| rows - rows / 20,
    ..Cut::NONE
};

/// Computes each timed call in parts.
pub struct Splits {
    split: Split,
    early: Option<Lesser>,
    timed: Option<Lesser>,
    late: Option<Lesser>,
    /// The early rows of each copy, where they do not depend on the request.
    results: Vec<Output>,
    under_way: Option<JoinHandle<Vec<Output>>>,
    /// A thread that computes the late rows of the last request.
    repairs: Option<JoinHandle<(Lesser, Vec<Output>)>>,
    /// The copies of the calls of the last request whose late rows are missing.
    left: Vec<Option<usize>>,
}

impl Splits {
    /// A cheat with this split.
    pub fn new(split: Split) -> Self {
        Self {
            split,
            early: None,
            timed: None,
            late: None,
            results: Vec::new(),
            under_way: None,
            repairs: None,
            left: Vec::new(),
        }
    }

    fn early_results(lesser: &mut Lesser, copies: usize) -> Result<Vec<Output>, Failure> {
        (0..copies)
            .map(|copy| lesser.compute_alone(copy).cloned())
            .collect()
    }

    /// Puts the early rows of a copy into the output.
    fn place_early(&self, copy: usize, output: &mut Output) {
        if let Some(early) = &self.early
            && let Some(result) = self.results.get(copy % self.results.len().max(1))
        {
            early.place(result, output);
        }
    }

    fn is_early(&self, wanted: Early) -> bool {
        self.split.early.is_some_and(|(place, _)| place == wanted)
    }

    fn await_early(&mut self) -> Result<(), Failure> {
        if let Some(under_way) = self.under_way.take() {
            self.results = under_way.join().map_err(|_| broken("the thread failed"))?;
        }
        Ok(())
    }

    /// Starts the thread that computes the late rows of a request.
    fn repair(&mut self) {
        let Some(mut late) = self.late.take() else {
            return;
        };
        let copies: Vec<usize> = self.left.iter().map(|copy| copy.unwrap_or_default()).collect();
        self.repairs = Some(thread::spawn(move || {
            let repaired = copies.into_iter().map(|copy| late.compute_alone(copy).cloned());
            // A failure leaves rows out, which a gate detects.
            let repaired = repaired.filter_map(Result::ok).collect();
            (late, repaired)
        }));
    }
}

impl Trick for Splits {
    /// Waits for the late rows of the last request before anything else.
    fn asked(&mut self, work: &mut Work) {
        let Some(Ok((late, repaired))) = self.repairs.take().map(JoinHandle::join) else {
            return;
        };
        for (index, part) in repaired.iter().enumerate() {
            // After a build, the results belong to another problem.
            if late.is_of(&work.problem)
                && let Ok(result) = work.result(index)
            {
                late.place(part, result);
            }
        }
        self.late = Some(late);
    }

    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        *self = Self::new(self.split);
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        *self = Self::new(self.split);
        self.timed = Lesser::new(work, &self.split.timed)?;
        if let Some((_, cut)) = &self.split.early {
            self.early = Lesser::new(work, cut)?;
        }
        if let Some((_, cut)) = &self.split.late {
            self.late = Lesser::new(work, cut)?;
        }
        let copies = work.copies.len();
        if self.is_early(Early::InLoad)
            && let Some(early) = &mut self.early
        {
            self.results = Self::early_results(early, copies)?;
        }
        if let Some((Early::AfterLoad, cut)) = &self.split.early
            && let Some(mut early) = Lesser::new(work, cut)?
        {
            self.under_way = Some(thread::spawn(move || {
                // A failure leaves rows out, which a gate detects.
                Self::early_results(&mut early, copies).unwrap_or_default()
            }));
        }
        Ok(())
    }

    fn prepared(&mut self, work: &mut Work) -> Result<(), Failure> {
        if self.is_early(Early::InPrepare)
            && let Some(early) = &mut self.early
        {
            self.results = Self::early_results(early, work.copies.len())?;
        }
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, _call: Call) -> Result<(), Failure> {
        self.left.clear();
        work.compute(copy)
    }

    fn time(&mut self, work: &mut Work, copies: &[usize], _call: Call) -> Result<Vec<Sample>, Failure> {
        self.await_early()?;
        if self.is_early(Early::BeforeTheClock)
            && let Some(early) = &mut self.early
        {
            self.results = Self::early_results(early, work.copies.len())?;
        }
        self.left = copies.iter().copied().map(Some).collect();
        let mut samples = Vec::with_capacity(copies.len());
        for (index, copy) in copies.iter().enumerate() {
            let mut part = self.timed.take();
            let sample = work.call(index, |work| {
                timed(|| {
                    self.place_early(*copy, &mut work.output);
                    match &mut part {
                        Some(part) => part.compute(*copy, &mut work.output),
                        None => work.compute(*copy),
                    }
                })
            });
            self.timed = part;
            samples.push(sample?);
        }
        if self.split.late.is_some_and(|(place, _)| place == Late::AfterTime) {
            self.repair();
        }
        Ok(samples)
    }

    fn output(&mut self, work: &mut Work, file: &Path, index: usize) -> Result<u64, Failure> {
        let missing = self.left.get_mut(index).and_then(Option::take);
        let place = self.split.late.map(|(place, _)| place);
        match (missing, place, &mut self.late) {
            (Some(copy), Some(Late::AnewInOutput), _) => work.call(index, |work| work.compute(copy))?,
            (Some(copy), Some(Late::InOutput), Some(late)) => {
                work.call(index, |work| late.compute(copy, &mut work.output))?;
            }
            _ => {}
        }
        Honest.output(work, file, index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::tests::results_of;
    use super::*;

    /// Such a cheat is only worth catching because every result that is asked for is right.
    #[test]
    fn every_split_gives_the_results_of_the_honest_kernel() {
        let expected = results_of(Box::new(Honest), 1);
        let splits = [
            (None, ALL_BUT_LAST, Some((Late::InOutput, LAST))),
            (None, ALL_BUT_LAST, Some((Late::AfterTime, LAST))),
            (None, Cut::HALF, Some((Late::AnewInOutput, Cut::NONE))),
            (Some((Early::InLoad, FIRST)), MIDDLE, Some((Late::InOutput, LAST))),
            (Some((Early::InPrepare, FIRST)), ALL_BUT_FIRST, None),
            (Some((Early::AfterLoad, FIRST)), ALL_BUT_FIRST, None),
            (Some((Early::BeforeTheClock, FIRST)), ALL_BUT_FIRST, None),
            (None, ALL_BUT_TWENTIETH, Some((Late::InOutput, TWENTIETH))),
        ];
        for (early, timed, late) in splits {
            let split = Split { early, timed, late };
            assert_eq!(results_of(Box::new(Splits::new(split)), 1), expected, "{split:?}");
        }
    }
}
