//! Cheats that do less in some calls than in others, or do a part of the work where no call is timed.

use gauntlet_judge::Verdict;

use super::super::ahead::{Ahead, When};
use super::super::lesser::Cut;
use super::super::picks::{self, Part, Picks};
use super::super::splits::{ALL_BUT_FIRST, ALL_BUT_LAST, Early, FIRST, LAST, Late, MIDDLE, Split, Splits};
use super::super::times::{Computes, Elsewhere, KeepsRows};
use super::super::{Cheat, Kind};
use super::Row;

/// All of them.
pub fn cheats() -> Vec<Cheat> {
    let mut cheats = in_some_calls();
    cheats.extend(elsewhere());
    cheats
}

/// Which of the two gates draws a wrong call first is chance.
const DRAWN: &str = "right or faster";

const IN_TIMED_CALLS: &[&str] = &["in calls that were timed"];

/// A row for a cheat that picks calls by their place in a request.
macro_rules! picks {
    ($name:literal, $story:literal, $pick:expr) => {
        Row::trick(Kind::Deferred, $name, $story, || {
            let pick: fn(usize, usize) -> Part = $pick;
            Box::new(Picks::new(Cut::HALF, pick))
        })
    };
}

fn in_some_calls() -> Vec<Cheat> {
    let wrong = |row: Row| row.caught(DRAWN, Verdict::Incorrect, IN_TIMED_CALLS);
    vec![
        wrong(
            picks!(
                "half-of-the-calls",
                "computes every other call of a request, and half of the rows in lone calls; reports the mean for each",
                picks::every_other
            )
            .gains("half of the time, with times that add up"),
        ),
        wrong(
            picks!(
                "skips-every-third-call",
                "leaves every third call of a request out, and reports the mean for each",
                picks::two_of_three
            )
            .gains("a third of the time"),
        ),
        wrong(
            picks!(
                "skips-drawn-calls",
                "leaves a quarter of the calls out, drawn at random",
                picks::drawn
            )
            .gains("a quarter of the time, and no pattern"),
        ),
        wrong(
            picks!(
                "skips-the-end-of-long-requests",
                "leaves the last quarter of requests of six calls or more out",
                picks::all_but_the_end
            )
            .gains("a quarter of the time in what decides"),
        ),
        wrong(
            picks!(
                "half-in-lone-calls",
                "computes half of the rows in requests of one call",
                picks::lone
            )
            .gains("a first call that looks as fast as the later ones"),
        ),
        wrong(
            picks!(
                "half-between-first-and-last",
                "honest in the first and the last call of a request; half of the rows between them",
                picks::between
            )
            .gains("nearly half of the time"),
        ),
        wrong(
            picks!(
                "half-in-one-call-of-eight",
                "computes half of the rows in one call of eight, drawn at random",
                picks::one_of_eight
            )
            .gains("6 % of the time, and seven right calls of eight"),
        ),
    ]
}

/// A row for a cheat that splits its calls.
macro_rules! splits {
    ($name:literal, $story:literal, $early:expr, $timed:expr, $late:expr) => {
        Row::trick(Kind::Deferred, $name, $story, || {
            Box::new(Splits::new(Split {
                early: $early,
                timed: $timed,
                late: $late,
            }))
        })
    };
}

fn elsewhere() -> Vec<Cheat> {
    let void = |row: Row, words: &'static [&'static str]| row.caught("faster", Verdict::Blocked, words);
    let third = "three tenths of the time, and right results";
    vec![
        splits!(
            "leaves-rows-for-output",
            "leaves three tenths of the rows for `output`, for the calls that are asked for",
            None,
            ALL_BUT_LAST,
            Some((Late::InOutput, LAST))
        )
        .gains(third)
        .gains_nothing(),
        splits!(
            "computes-rows-in-load",
            "computes three tenths of the rows as operands are loaded",
            Some((Early::InLoad, FIRST)),
            ALL_BUT_FIRST,
            None
        )
        .gains(third)
        .gains_nothing(),
        splits!(
            "computes-rows-in-load-and-output",
            "both: timed calls compute four tenths of the rows",
            Some((Early::InLoad, FIRST)),
            MIDDLE,
            Some((Late::InOutput, LAST))
        )
        .gains("six tenths of the time, and right results")
        .gains_nothing(),
        splits!(
            "repairs-when-asked",
            "computes half of the rows in timed calls, and the whole call again when its result is asked for",
            None,
            Cut::HALF,
            Some((Late::AnewInOutput, Cut::NONE))
        )
        .gains("half of the time, and a right result for any call that is asked for")
        .gains_nothing(),
        splits!(
            "repairs-between-requests",
            "leaves three tenths of the rows to a thread that runs on after the answer",
            None,
            ALL_BUT_LAST,
            Some((Late::AfterTime, LAST))
        )
        .gains("three tenths of the time, and a control that has fewer cores")
        .gains_nothing(),
        splits!(
            "computes-rows-after-load",
            "computes three tenths of the rows in a thread that runs on after operands are loaded",
            Some((Early::AfterLoad, FIRST)),
            ALL_BUT_FIRST,
            None
        )
        .gains(third)
        .gains_nothing(),
        splits!(
            "computes-rows-in-prepare",
            "computes three tenths of the rows in the step that prepares constant inputs",
            Some((Early::InPrepare, FIRST)),
            ALL_BUT_FIRST,
            None
        )
        .gains("three tenths of the time, in a step that is not charged")
        .gains_nothing(),
        Row::trick(
            Kind::Deferred,
            "computes-in-prepare",
            "computes every result in the step that prepares constant inputs; timed calls copy it and wait as long as \
             a fast kernel takes",
            || Box::new(Computes::new(Elsewhere::InPrepare)),
        )
        .gains("two fifths of the time, in a step that is not charged")
        .gains_nothing(),
        Row::trick(
            Kind::Deferred,
            "computes-ahead-in-lone-calls",
            "computes the results of three more sets of operands in each lone call, new values or not; the calls of \
             longer requests copy a known result and wait as long as a fast kernel takes",
            || Box::new(Ahead::new(When::Lone)),
        )
        .gains("two fifths of the time in the calls that decide, and no call that tells known values from new ones")
        .gains_nothing(),
        Row::trick(
            Kind::Deferred,
            "computes-ahead-in-first-calls",
            "computes all results of a request in its first call; the others copy theirs and wait as long as a fast \
             kernel takes",
            || Box::new(Ahead::new(When::First)),
        )
        .gains("two fifths of the typical call's time")
        .gains_nothing(),
        Row::trick(
            Kind::Deferred,
            "keeps-half-the-rows-but-in-lone-calls",
            "the calls of longer requests take half of the rows from an earlier call on the same operands; lone calls \
             compute all of them",
            || Box::new(KeepsRows::in_long_requests(|rows| rows - rows / 2)),
        )
        .gains("half of the time on operands that come again, which no lone call shows")
        .gains_nothing(),
        void(
            splits!(
                "computes-before-the-clock",
                "computes three tenths of the rows of all calls of a request before the clock of the first one starts",
                Some((Early::BeforeTheClock, FIRST)),
                ALL_BUT_FIRST,
                None
            )
            .gains("three tenths of the time on paper"),
            &["coordinator's clock"],
        ),
    ]
}
