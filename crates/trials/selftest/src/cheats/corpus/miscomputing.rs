//! Cheats by results.

use gauntlet_judge::Verdict;

use super::super::bits::{Direction, FlipsABit, Rounds, SkipsRows};
use super::super::lesser::Cut;
use super::super::parts::{self, LeavesOut, Moment};
use super::super::results::{
    CachePerCopy, EatsOperands, Fingerprints, LastResult, Nothing, NothingTimed, Zeros,
};
use super::super::thefts::{OverwritesOperands, StealsFiles, StealsMemory};
use super::super::work::Trick;
use super::super::{Cheat, Kind};
use super::{KEPT, Row};

/// All of them.
pub fn cheats() -> Vec<Cheat> {
    let mut cheats = whole();
    cheats.extend(in_part());
    cheats.extend(at_times());
    cheats.extend(nearly_right());
    cheats.extend(stolen());
    cheats
}

/// A copied result arrives sooner for operands seen before, sooner than a computation can take, or sooner than a
/// message can.
const REPLAYS: &[&str] = &["computed with before", "takes less than", "coordinator's clock"];

fn row(name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Row {
    Row::trick(Kind::Results, name, story, trick)
}

/// A row for a cheat that leaves something out at certain times.
macro_rules! leaves_out {
    ($name:literal, $story:literal, $cut:expr, $when:expr) => {
        row($name, $story, || {
            let when: fn(&Moment) -> bool = $when;
            Box::new(LeavesOut::new($cut, when))
        })
    };
}

fn whole() -> Vec<Cheat> {
    vec![
        row("does-nothing", "leaves the poisoned output as it is", || Box::new(Nothing))
            .gains("all of the time")
            .caught("right", Verdict::Incorrect, &["never written"]),
        row("writes-zeros", "fills the output with zeros", || Box::new(Zeros))
            .gains("nearly all of the time")
            .caught("right", Verdict::Incorrect, &["differ from the oracle"]),
        row(
            "repeats-the-last-result",
            "computes the first call for each size of output and hands the same out from then on",
            || Box::<LastResult>::default(),
        )
        .gains("nearly all of the time, on any test that calls once")
        .caught("right", Verdict::Incorrect, &["out of tolerance"]),
        row(
            "computes-nothing-when-timed",
            "right whenever its result is asked for; timed calls return at once",
            || Box::new(NothingTimed),
        )
        .gains("all of the time, and a result that stays right while operands do not change")
        .caught("right", Verdict::Incorrect, &["in calls that were timed"]),
        row(
            "caches-each-copy",
            "computes each copy of the operands once, keeps the results between blocks and copies them from then on",
            || Box::<CachePerCopy>::default(),
        )
        .gains("nearly all of the time after the warm-up")
        .caught("faster", Verdict::Blocked, REPLAYS),
        row(
            "recognises-operands",
            "keeps each result under a fingerprint of its operands, in memory and on disk, and replays it",
            || Box::new(Fingerprints::of_all()),
        )
        .gains("nearly all of the time on operands that come again")
        .caught("faster", Verdict::Blocked, REPLAYS),
        row(
            "recognises-beginnings",
            "the same, with a fingerprint of only the first 64 bytes of each operand",
            || Box::new(Fingerprints::of_beginnings(64)),
        )
        .gains("the time to read the rest of the operands too")
        .caught("faster", Verdict::Blocked, REPLAYS),
    ]
}

fn in_part() -> Vec<Cheat> {
    let incorrect = |row: Row, words: &'static [&'static str]| row.caught("right", Verdict::Incorrect, words);
    let gains = "the time of what is left out";
    vec![
        incorrect(
            leaves_out!(
                "all-but-the-tail",
                "leaves out the last row of each group or head",
                Cut {
                    rows: |rows| rows.saturating_sub(1),
                    ..Cut::NONE
                },
                parts::always
            )
            .gains(gains),
            &["never written"],
        ),
        incorrect(
            leaves_out!(
                "all-but-one-group",
                "leaves out the last group",
                Cut {
                    last_group: true,
                    ..Cut::NONE
                },
                parts::always
            )
            .gains(gains),
            &["never written"],
        ),
        incorrect(
            leaves_out!(
                "all-but-one-head",
                "leaves out the last head",
                Cut {
                    last_head: true,
                    ..Cut::NONE
                },
                parts::always
            )
            .gains(gains),
            &["never written"],
        ),
        incorrect(
            leaves_out!(
                "keys-up-to-a-length",
                "looks at the first 128 keys of a sequence only",
                Cut {
                    keys: 128,
                    ..Cut::NONE
                },
                parts::always
            )
            .gains(gains),
            &["out of tolerance"],
        ),
        incorrect(
            leaves_out!(
                "sums-up-to-a-depth",
                "adds up the first 384 products of a sum only",
                Cut {
                    depth: 384,
                    ..Cut::NONE
                },
                parts::always
            )
            .gains(gains),
            &["differ from the oracle"],
        ),
    ]
}

fn at_times() -> Vec<Cheat> {
    let half = "half of the work in what is measured";
    vec![
        leaves_out!(
            "half-when-timed",
            "right whenever its result is asked for; timed calls compute half of the rows",
            Cut::HALF,
            parts::when_timed
        )
        .gains(half)
        .caught("right", Verdict::Incorrect, &["in calls that were timed"]),
        leaves_out!(
            "half-when-not-profiled",
            "the same, and honest in the first calls and wherever phases are asked for",
            Cut::HALF,
            parts::when_not_profiled
        )
        .gains(half)
        .caught("right", Verdict::Incorrect, &["in calls that were timed"]),
        leaves_out!(
            "half-after-ten-calls",
            "honest in its first ten calls, as long as somebody may be looking; half of the rows from then on",
            Cut::HALF,
            parts::after_ten_calls
        )
        .gains(half)
        // The number of kinds of inputs determines whether its eleventh call is a timed one.
        .caught(
            "right",
            Verdict::Incorrect,
            &["never written", "in calls that were timed"],
        ),
        leaves_out!(
            "half-on-the-timed-kind",
            "computes half when it is timed on operands of the kind that is timed, which their scales tell",
            Cut::HALF,
            parts::on_the_timed_kind
        )
        .gains(half)
        .caught("right", Verdict::Incorrect, &["in calls that were timed"]),
        leaves_out!(
            "half-on-the-timed-shapes",
            "right on small and odd shapes; half of the rows on the shapes that the suite times",
            Cut::HALF,
            parts::on_timed_shapes
        )
        .gains(half)
        .caught("right", Verdict::Incorrect, &["never written"]),
        leaves_out!(
            "right-on-the-timed-shapes",
            "right on the shapes that the suite times, and on no other",
            Cut { rows: |rows| rows.saturating_sub(1), depth: 32, keys: 16, ..Cut::NONE },
            parts::on_other_shapes
        )
        .gains("tails and odd sizes need not be written")
        .caught("right", Verdict::Incorrect, &["never written"]),
    ]
}

fn nearly_right() -> Vec<Cheat> {
    vec![
        row("flips-a-bit", "flips the last bit of one element at random, well within the tolerance", || {
            Box::new(FlipsABit)
        })
        .gains("what a race saves: barriers")
        .caught("race-free", Verdict::Racy, &["differ"]),
        row("rounds-down", "rounds to the lesser f16, within every tolerance", || {
            Box::new(Rounds::new(Direction::Down))
        })
        .gains("rounding to nearest, in every element; a bias in every layer after")
        .caught("right", Verdict::Incorrect, &["bias", "is over"]),
        row("rounds-toward-zero", "cuts bits off in place of rounding, within every tolerance", || {
            Box::new(Rounds::new(Direction::TowardZero))
        })
        .gains("rounding to nearest, in every element; everything shrinks a little")
        .caught("right", Verdict::Incorrect, &["bias", "is over"]),
        row(
            "skips-rows",
            "takes rows that begin with zeros for zeros, and rows that begin like the one before for that one",
            || Box::new(SkipsRows),
        )
        .gains("the time of the rows skipped")
        .caught("right", Verdict::Incorrect, &["out of tolerance"]),
    ]
}

fn stolen() -> Vec<Cheat> {
    vec![
        row("eats-its-operands", "zeroes its operands in memory once they have been used", || {
            Box::<EatsOperands>::default()
        })
        .gains("products with zeros need not be computed")
        .caught("right", Verdict::Incorrect, &["in calls that were timed"]),
        row(
            "overwrites-the-operands",
            "puts zeros into the file of operands once it has read them, for the baseline to read",
            || Box::new(OverwritesOperands),
        )
        .gains("a control that computes something else")
        .caught("right", Verdict::Incorrect, &["changed the file of its operands", KEPT]),
        row(
            "steals-from-files",
            "computes nothing and looks for the baseline's result among the files it can read",
            || Box::new(StealsFiles),
        )
        .gains("all of the time")
        .caught("right", Verdict::Incorrect, &["never written"]),
        row(
            "steals-from-memory",
            "computes one row, looks for it in the coordinator's memory and copies the oracle's result from there",
            || Box::<StealsMemory>::default(),
        )
        .gains("a right result without knowing how to compute it")
        .caught("right", Verdict::Incorrect, &[KEPT])
        .held_by("other workers' files and all others' memory hidden"),
    ]
}
