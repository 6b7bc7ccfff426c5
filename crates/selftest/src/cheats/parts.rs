//! Cheats that leave a part of the work out, always or when it seems safe.

use std::path::PathBuf;

use gauntlet_operations::Inputs;
use gauntlet_worker::protocol::Failure;

use super::lesser::{Cut, Lesser};
use super::trial;
use super::work::{Call, Trick, Work};

/// What a cheat can know of the moment in which it computes.
pub struct Moment<'a> {
    /// What is to be computed, and from what.
    pub work: &'a Work,
    /// What for.
    pub call: Call,
    /// Calls before this one in this process.
    pub calls: usize,
}

/// Leaves a part out in some moments.
pub struct LeavesOut {
    cut: Cut,
    when: fn(&Moment) -> bool,
    lesser: Option<Lesser>,
    calls: usize,
}

impl LeavesOut {
    /// Leaves out what `cut` does not keep, when `when` says so.
    pub fn new(cut: Cut, when: fn(&Moment) -> bool) -> Self {
        Self {
            cut,
            when,
            lesser: None,
            calls: 0,
        }
    }
}

impl Trick for LeavesOut {
    fn built(&mut self, _work: &mut Work) -> Result<(), Failure> {
        self.lesser = None;
        Ok(())
    }

    fn loaded(&mut self, work: &mut Work, _files: &[PathBuf]) -> Result<(), Failure> {
        self.lesser = Lesser::new(work, &self.cut)?;
        Ok(())
    }

    fn compute(&mut self, work: &mut Work, copy: usize, call: Call) -> Result<(), Failure> {
        let moment = Moment {
            work,
            call,
            calls: self.calls,
        };
        let now = (self.when)(&moment);
        self.calls += 1;
        match &mut self.lesser {
            Some(lesser) if now => lesser.compute(copy, &mut work.output),
            _ => work.compute(copy),
        }
    }
}

/// Every time.
pub fn always(_: &Moment) -> bool {
    true
}

/// When only the time is asked for.
pub fn when_timed(moment: &Moment) -> bool {
    moment.call.is_timed()
}

/// When timed without phases, after more calls than an examination makes.
pub fn when_not_profiled(moment: &Moment) -> bool {
    moment.call == Call::Timed && moment.calls >= 2
}

/// After so many calls that whoever examines it should have looked away.
pub fn after_ten_calls(moment: &Moment) -> bool {
    moment.calls >= 10
}

/// On the shapes that are timed, which stand in the suite for all to read.
pub fn on_timed_shapes(moment: &Moment) -> bool {
    is_timed_shape(moment.work)
}

/// On all shapes but those that are timed.
pub fn on_other_shapes(moment: &Moment) -> bool {
    !is_timed_shape(moment.work)
}

/// On operands of the kind that is timed, which their block scales tell: they are all 1 or 2.
pub fn on_the_timed_kind(moment: &Moment) -> bool {
    let Some(Inputs::GroupedGemm(groups)) = moment.work.copies.first() else {
        return moment.call.is_timed();
    };
    let scales = groups.iter().flat_map(|group| group.a.scales());
    moment.call.is_timed() && scales.into_iter().all(|scale| ONE_AND_TWO.contains(scale))
}

/// In e4m3.
const ONE_AND_TWO: [u8; 2] = [0x38, 0x40];

fn is_timed_shape(work: &Work) -> bool {
    trial::suite().is_ok_and(|suite| {
        suite
            .benchmark
            .iter()
            .any(|case| gauntlet_tiles::operation(&case.sizes) == Some(&work.problem))
    })
}
