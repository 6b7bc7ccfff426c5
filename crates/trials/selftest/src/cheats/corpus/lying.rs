//! Cheats by times and on the protocol.

use std::time::Duration;

use gauntlet_judge::Verdict;

use super::super::claims::TooFewTimes;
use super::super::protocol::{self, ExitsInTime, HangsInTime, PutsInPlace, WritesLate, WritesNoFile};
use super::super::times::{
    Computes, DirtiesCaches, Elsewhere, KeepsRows, NegativePhase, Reports, ReportsBest, Sleeps, StopsEarly,
    TooManyTimes,
};
use super::super::work::Trick;
use super::super::{Cheat, Kind, Worker};
use super::Row;

/// All of them.
pub fn cheats() -> Vec<Cheat> {
    let mut cheats = by_times();
    cheats.extend(on_the_protocol());
    cheats
}

fn by_times() -> Vec<Cheat> {
    fn row(name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Row {
        Row::trick(Kind::Times, name, story, trick)
    }
    let void = |row: Row, words: &'static [&'static str]| row.caught("faster", Verdict::Blocked, words);
    vec![
        void(
            row("halves-its-times", "reports half of each time", || {
                Box::new(Reports(|time| 0.5 * time))
            })
            .gains("a speed-up of two on paper"),
            &["coordinator's clock"],
        ),
        void(
            row("reports-a-constant", "reports a nanosecond, whatever it took", || {
                Box::new(Reports(|_| 1e-9))
            })
            .gains("any speed-up on paper"),
            &["void:"],
        ),
        row("reports-a-negative-phase", "reports phases of which one took less than no time", || {
            Box::new(NegativePhase)
        })
        .gains("a profile that suits its pitch")
        .caught("profiled", Verdict::Incorrect, &["time is not possible"]),
        row("reports-too-many-times", "hands in twice the times that were asked for", || {
            Box::new(TooManyTimes)
        })
        .gains("more weight in whatever is taken over them")
        .caught("right", Verdict::Incorrect, &["were asked for"]),
        void(
            row(
                "stops-the-clock-early",
                "answers with two fifths of the work to be done, which go on in a thread while the baseline is measured",
                || Box::<StopsEarly>::default(),
            )
            .gains("two fifths of the time, and a control that has fewer cores"),
            &["while nothing is asked", "coordinator's clock"],
        ),
        void(
            row("shaves-its-times", "reports a tenth less than each time", || {
                Box::new(Reports(|time| 0.9 * time))
            })
            .gains("a speed-up of a tenth on paper"),
            &["coordinator's clock"],
        ),
        void(
            row("reports-its-best", "reports the best of its times in place of each", || Box::new(ReportsBest))
                .gains("what noise costs the baseline"),
            &["coordinator's clock"],
        ),
        void(
            row("dirties-the-caches", "goes through memory between its last timed call and its answer", || {
                Box::new(DirtiesCaches::new())
            })
            .gains("a control that finds its operands in no cache"),
            &["coordinator's clock", "first call"],
        ),
            row(
                "computes-in-load",
                "computes as operands are loaded; timed calls copy the result and wait as long as a fast kernel takes",
                || Box::new(Computes::new(Elsewhere::InLoad)),
            )
            .gains("two fifths of the time, at a speed that could be")
            .gains_nothing(),
            row("computes-in-load-and-copies", "the same, without the wait", || {
                Box::new(Computes::at_once(Elsewhere::InLoad))
            })
            .gains("all but the time of a copy")
            .gains_nothing(),
        void(
            row(
                "computes-after-load",
                "the same, in a thread that runs on after operands are loaded, before anything is timed",
                || Box::new(Computes::new(Elsewhere::AfterLoad)),
            )
            .gains("two fifths of the time, and no time in `load` that could be seen"),
            &["void:"],
        ),
            row(
                "computes-in-output",
                "timed calls wait as long as a fast kernel takes; the result is computed when it is asked for",
                || Box::new(Computes::new(Elsewhere::InOutput)),
            )
            .gains("two fifths of the time, and a right result whenever anyone looks")
            .gains_nothing(),
        void(
            row(
                "keeps-half-the-rows",
                "honest in the first call on each copy of new operands; from then on half of the rows is kept from it",
                || Box::new(KeepsRows::computing(|rows| rows - rows / 2)),
            )
            .gains("some per cent of the time, and a right result whenever anyone looks"),
            &["void:"],
        ),
        row("sleeps-in-place-of-work", "sleeps a microsecond when it is timed", || {
            Box::new(Sleeps(Duration::from_micros(1)))
        })
        .gains("nearly all of the time")
        .caught("right", Verdict::Incorrect, &["in calls that were timed"]),
    ]
}

fn on_the_protocol() -> Vec<Cheat> {
    fn row(name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Row {
        Row::trick(Kind::Protocol, name, story, trick)
    }
    let at_start =
        |row: Row, words: &'static [&'static str]| row.caught("compiles", Verdict::DoesNotCompile, words);
    vec![
        at_start(
            Row::program(
                "prints-garbage",
                "answers in words of its own",
                protocol::prints_garbage,
            )
            .gains("a coordinator that trips over it"),
            &["not a reply"],
        ),
        at_start(
            Row::program("prints-nothing", "never answers", protocol::prints_nothing)
                .gains("a coordinator that waits for ever"),
            &["no reply"],
        ),
        at_start(
            Row::program(
                "prints-a-gigabyte",
                "answers with a line of a gigabyte",
                protocol::prints_a_gigabyte,
            )
            .gains("a coordinator without memory"),
            &["a line longer than"],
        ),
        at_start(
            Row::program(
                "exits-early",
                "exits with code 0 in place of an answer",
                protocol::exits_early,
            )
            .gains("the look of having gone well"),
            &["exit code 0"],
        ),
        at_start(
            Row::new(
                Kind::Protocol,
                "answers-another-request",
                "answers a request with the number of another",
                Worker::Answers("\"id\":1,", "\"id\":2,"),
            )
            .gains("answers sent ahead of their questions"),
            &["it answers request"],
        ),
        at_start(
            Row::new(
                Kind::Protocol,
                "claims-another-version",
                "says that it speaks a protocol that there is not",
                Worker::Answers("\"protocol\":4", "\"protocol\":7"),
            )
            .gains("rules of its own"),
            &["version 7"],
        ),
        row(
            "hangs-when-timed",
            "computes, and never comes back from being timed",
            || Box::new(HangsInTime),
        )
        .gains("no bad time in the books")
        .caught("right", Verdict::Incorrect, &["no reply to `time`"]),
        row("exits-when-timed", "exits with code 0 when it is timed", || {
            Box::new(ExitsInTime)
        })
        .gains("no bad time in the books")
        .caught("right", Verdict::Incorrect, &["exit code 0"]),
        row(
            "writes-no-file",
            "says that its result is written, and has written none",
            || Box::new(WritesNoFile),
        )
        .gains("whatever lay there before is taken for its result")
        .caught("right", Verdict::Incorrect, &["its result cannot be used"]),
        row(
            "links-its-output",
            "puts a link to another file in the place of its result",
            || Box::new(PutsInPlace(protocol::link)),
        )
        .gains("a file of its choice, read with the coordinator's rights")
        .caught("right", Verdict::Incorrect, &["its result cannot be used"]),
        row("writes-a-pipe", "puts a pipe in the place of its result", || {
            Box::new(PutsInPlace(protocol::pipe))
        })
        .gains("a coordinator that waits at it for ever")
        .caught("right", Verdict::Incorrect, &["its result cannot be used"]),
        row(
            "writes-its-output-late",
            "says that its result is written, and writes it a fiftieth of a second later",
            || Box::new(WritesLate),
        )
        .gains("the time of writing, and of what it computes meanwhile")
        .caught("right", Verdict::Incorrect, &["its result cannot be used"]),
        row(
            "reports-too-few-times",
            "leaves the last of its times out",
            || Box::new(TooFewTimes),
        )
        .gains("no bad time in the books")
        .caught("right", Verdict::Incorrect, &["were asked for"]),
        Row::new(
            Kind::Protocol,
            "reports-an-infinite-time",
            "reports a time that is too large for a number",
            Worker::Answers("\"call\":", "\"call\":1e999,\"was\":"),
        )
        .gains("a figure that spoils every mean")
        .caught(
            "right",
            Verdict::Incorrect,
            &["not a reply", "time is not possible"],
        ),
        at_start(
            Row::program(
                "nests-its-answer",
                "answers with two hundred thousand open brackets",
                protocol::nests_its_answer,
            )
            .gains("a coordinator that runs out of stack"),
            &["not a reply"],
        ),
    ]
}
