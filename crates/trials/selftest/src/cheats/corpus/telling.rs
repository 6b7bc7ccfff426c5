//! Cheats that tell trials from examinations, recognise or predict operands, or make small false claims.

use gauntlet_judge::Verdict;

use super::super::claims::{self, Claims};
use super::super::lesser::Cut;
use super::super::parts::{self, LeavesOut, Moment};
use super::super::results::Fingerprints;
use super::super::seeds::GuessesSeeds;
use super::super::tells::{Sign, Tells};
use super::super::work::Trick;
use super::super::{Cheat, Kind};
use super::Row;

/// All of them.
pub fn cheats() -> Vec<Cheat> {
    let mut cheats = by_signs();
    cheats.extend(by_operands());
    cheats.extend(by_claims());
    cheats
}

fn row(name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Row {
    Row::trick(Kind::Deferred, name, story, trick)
}

fn by_signs() -> Vec<Cheat> {
    let half = "half of the time in what is measured";
    let words: &[&str] = &["in calls that were timed"];
    vec![
        row(
            "half-without-a-check",
            "computes half of the rows in timed calls if nothing was run since the build",
            || Box::new(Tells::new(Sign::NothingWasRun)),
        )
        .gains(half)
        .caught("faster", Verdict::Incorrect, words),
        row(
            "half-among-many-files",
            "computes half of the rows in timed calls where more files of operands lie than an examination needs",
            || Box::new(Tells::new(Sign::ManyOperandFiles)),
        )
        .gains(half)
        .caught("right or faster", Verdict::Incorrect, words),
        row(
            "half-in-later-processes",
            "counts its processes by notes in shared memory; half of the rows from the fifth process on",
            || Box::new(Tells::new(Sign::EarlierProcesses)),
        )
        .gains(half)
        .gains_nothing(),
        row(
            "half-beside-a-rival",
            "computes half of the rows in timed calls while another worker is alive",
            || Box::new(Tells::new(Sign::RivalAlive)),
        )
        .gains(half)
        .gains_nothing(),
        row(
            "feigns-a-warm-up",
            "takes twice as long in its first thirty calls; computes half of the rows in timed calls after them",
            || Box::new(Tells::new(Sign::WarmedUp)),
        )
        .gains("half of the time, once nobody looks for a warm-up any more")
        .caught("right or faster", Verdict::Incorrect, words),
    ]
}

fn by_operands() -> Vec<Cheat> {
    vec![
        row(
            "guesses-the-seed",
            "tries the names, times and inodes of operand files as the seed, to compute later results ahead",
            || Box::<GuessesSeeds>::default(),
        )
        .gains("all of the time, with a seed that can be guessed")
        .gains_nothing(),
        row(
            "recognises-samples",
            "keeps each result under a fingerprint of every thousandth byte of its operands, and replays it",
            || Box::new(Fingerprints::of_samples(1009)),
        )
        .gains("nearly all of the time on operands that come again")
        .caught(
            "faster",
            Verdict::Blocked,
            &["computed with before", "takes less than", "coordinator's clock"],
        ),
        row(
            "sums-most-when-timed",
            "adds up the first 1792 of 2048 products in timed calls only",
            || {
                let when: fn(&Moment) -> bool = parts::when_timed;
                let cut = Cut {
                    depth: 1792,
                    keys: 560,
                    ..Cut::NONE
                };
                Box::new(LeavesOut::new(cut, when))
            },
        )
        .gains("an eighth of the time, with results that are nearly right")
        .caught("faster", Verdict::Incorrect, &["in calls that were timed"]),
    ]
}

fn by_claims() -> Vec<Cheat> {
    let void = |row: Row, words: &'static [&'static str]| row.caught("faster", Verdict::Blocked, words);
    vec![
        row(
            "clips-its-slow-calls",
            "reports no call as longer than a fiftieth above the shortest of its request",
            || Box::new(Claims(claims::clipped)),
        )
        .gains("what noise costs the baseline")
        .gains_nothing(),
        void(
            row(
                "moves-time-to-lone-calls",
                "reports calls of long requests as a twenty-fifth shorter, and lone calls as that much longer",
                || Box::new(Claims(claims::moved_to_lone_calls)),
            )
            .gains("4 % on paper, and a total that is right"),
            // A lone call may be reported as longer than its exchange took.
            &["coordinator's clock", "in an exchange that took"],
        ),
        row(
            "claims-a-short-kernel",
            "reports half of each call as its time on the device",
            || Box::new(Claims(claims::short_kernel)),
        )
        .gains("a speed-up of two where the device's time decides")
        .gains_nothing(),
        row(
            "claims-a-low-clock",
            "reports a clock of 1 GHz for every call",
            || Box::new(Claims(claims::low_clock)),
        )
        .gains("times in cycles that look short")
        .gains_nothing(),
    ]
}
