//! Cheats that leave a part of the work out, always or when it seems safe.

use std::path::PathBuf;

use gauntlet_problems::Inputs;
use gauntlet_worker::protocol::Failure;

use super::lesser::{Cut, Lesser};
use super::trial;
use super::work::{Call, Trick, Work};

/// The information that a cheat has when it computes.
pub struct Moment<'a> {
    /// The problem and its operands.
    pub work: &'a Work,
    /// The purpose of the call.
    pub call: Call,
    /// Number of earlier calls in this process.
    pub calls: usize,
}

/// Leaves a part of the work out at certain times.
pub struct LeavesOut {
    cut: Cut,
    when: fn(&Moment) -> bool,
    lesser: Option<Lesser>,
    calls: usize,
}

impl LeavesOut {
    /// Leaves out everything that `cut` does not keep, when `when` returns true.
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

/// In timed calls.
pub fn when_timed(moment: &Moment) -> bool {
    moment.call.is_timed()
}

/// In calls timed without phases, after more calls than an examination makes.
pub fn when_not_profiled(moment: &Moment) -> bool {
    moment.call == Call::Timed && moment.calls >= 2
}

/// A number of calls after which the examination should be over.
pub fn after_ten_calls(moment: &Moment) -> bool {
    moment.calls >= 10
}

/// On the shapes that are timed, which are public in the suite.
pub fn on_timed_shapes(moment: &Moment) -> bool {
    is_timed_shape(moment.work)
}

/// On all shapes but those that are timed.
pub fn on_other_shapes(moment: &Moment) -> bool {
    !is_timed_shape(moment.work)
}

/// On operands of the kind that is timed, recognised by their block scales: all are 1 or 2.
pub fn on_the_timed_kind(moment: &Moment) -> bool {
    let Some(Inputs::GroupedGemm(groups)) = moment.work.copies.first() else {
        return moment.call.is_timed();
    };
    let scales = groups.iter().flat_map(|group| group.a.scales());
    moment.call.is_timed() && scales.into_iter().all(|scale| ONE_AND_TWO.contains(scale))
}

/// 1 and 2 in e4m3.
const ONE_AND_TWO: [u8; 2] = [0x38, 0x40];

fn is_timed_shape(work: &Work) -> bool {
    trial::suite().is_ok_and(|suite| {
        suite
            .benchmark
            .iter()
            .any(|case| gauntlet_tiled_family::operation(&case.sizes) == Some(&work.problem))
    })
}
