//! Cheats by other processes, files and the network.

use gauntlet_judge::Verdict;

use super::super::disturbances::{WhileIdle, flood_stderr};
use super::super::meddling::{self, Meddles};
use super::super::processes::{self, AtBuild};
use super::super::work::Trick;
use super::super::{Cheat, Kind};
use super::{KEPT, Row};

fn row(name: &'static str, story: &'static str, trick: fn() -> Box<dyn Trick>) -> Row {
    Row::trick(Kind::Processes, name, story, trick)
}

/// All of them.
pub fn cheats() -> Vec<Cheat> {
    let mut cheats = against_the_control();
    cheats.extend(by_scheduling());
    cheats.extend(while_idle());
    cheats.extend(against_the_machine());
    cheats
}

fn against_the_control() -> Vec<Cheat> {
    let void = |row: Row, words: &'static [&'static str]| row.caught("faster", Verdict::Blocked, words);
    vec![
        void(
            row(
                "burns-cores-when-idle",
                "keeps every core busy while the baseline is measured",
                || Box::new(WhileIdle::burning()),
            )
            .gains("a control that has half of the cores"),
            &["while nothing is asked"],
        ),
        void(
            row(
                "streams-memory-when-idle",
                "goes through memory while the baseline is measured",
                || Box::new(WhileIdle::streaming()),
            )
            .gains("a control without caches"),
            &["while nothing is asked"],
        ),
        void(
            row(
                "burns-cores-in-children",
                "starts a child on each core that keeps it busy",
                || {
                    Box::new(AtBuild::new(
                        "children cannot be started",
                        processes::burn_in_children,
                    ))
                },
            )
            .gains("a control that has half of the cores"),
            &["while nothing is asked"],
        ),
        void(
            row(
                "leaves-children",
                "the same; each child first asks for a process group of its own, so that its CPU time would not be counted",
                || {
                    Box::new(AtBuild::new(
                        "children cannot be started",
                        processes::leave_children,
                    ))
                },
            )
            .gains("a control that has half of the cores, and every round after it too"),
            &["while nothing is asked"],
        )
        .held_by("stays in its process group, and leaves others' urgency alone"),
        row(
            "stops-the-control",
            "stops and continues the baseline with signals, for half of the time it is measured",
            || Box::new(WhileIdle::stopping_others()),
        )
        .gains("a control that is twice as slow, at no cost of its own")
        .held(&[KEPT])
        .held_by("signals only to itself"),
        row(
            "pins-the-control",
            "pins all threads of the baseline to one processor, and then computes honestly",
            || Box::new(WhileIdle::pinning_others()),
        )
        .gains("a control that has one core")
        .held(&[KEPT, "processors"])
        .held_by("sees and reaches only its own processes"),
    ]
}

/// Cheats by what the scheduler does with the rival, or with the cheat.
fn by_scheduling() -> Vec<Cheat> {
    const URGENCY: &str = "stays in its process group, and leaves others' urgency alone";
    vec![
        row(
            "lowers-the-controls-priority",
            "gives the baseline the lowest priority",
            || Box::new(Meddles::lowering()),
        )
        .gains("a control that waits for every other program")
        .held(&[KEPT, "priority"])
        .held_by(URGENCY),
        row(
            "idles-the-control",
            "puts the baseline into the scheduling class that runs when nothing else does",
            || Box::new(Meddles::idling()),
        )
        .gains("a control that waits for every other program")
        .held(&[KEPT, "scheduling"])
        .held_by(URGENCY),
        row(
            "asks-for-real-time",
            "asks for real-time priority for itself",
            || {
                Box::new(AtBuild::new(
                    "real-time priority is not given",
                    meddling::ask_for_real_time,
                ))
            },
        )
        .gains("calls that no other program interrupts, while the baseline's are")
        .held(&[KEPT])
        .held_by("no privileges of root"),
    ]
}

/// Cheats that keep the machine busy in ways that look like nothing much.
fn while_idle() -> Vec<Cheat> {
    let void = |row: Row| {
        row.caught(
            "faster",
            Verdict::Blocked,
            &["while nothing is asked", "was moved while"],
        )
    };
    vec![
        void(
            row(
                "takes-memory-when-idle",
                "takes, touches and gives back memory while the baseline is measured",
                || Box::new(WhileIdle::taking_memory()),
            )
            .gains("a control whose memory calls take longer"),
        ),
        row(
            "wakes-when-idle",
            "wakes thousands of times a second on each core while the baseline is measured",
            || Box::new(WhileIdle::waking()),
        )
        .gains("a control that is interrupted all the time")
        .gains_nothing(),
        row(
            "burns-in-bursts-when-idle",
            "keeps a quarter of one processor busy, a fraction of a millisecond at a time, while the baseline is measured",
            || Box::new(WhileIdle::burning_in_bursts()),
        )
        .gains("a control whose threads wait for the one that was interrupted")
        .gains_nothing(),
        void(
            row(
                "burns-politely-when-idle",
                "keeps every core busy at the lowest priority while the baseline is measured",
                || Box::new(WhileIdle::burning_politely()),
            )
            .gains("a control without a second thread on its core, and lower clocks"),
        ),
        row(
            "writes-to-disk-when-idle",
            "writes files through to the disk while the baseline is measured",
            || Box::new(WhileIdle::writing()),
        )
        .gains("a control that waits for the disk")
        .gains_nothing(),
    ]
}

fn against_the_machine() -> Vec<Cheat> {
    fn at_build(
        name: &'static str,
        story: &'static str,
        gain: &'static str,
        trick: fn() -> Box<dyn Trick>,
        words: &'static [&'static str],
    ) -> Cheat {
        let row = row(name, story, trick).gains(gain);
        row.caught("compiles", Verdict::DoesNotCompile, words)
    }
    vec![
        at_build(
            "floods-stderr",
            "writes a quarter of a gigabyte to standard error for the coordinator to read",
            "a coordinator that is busy while it measures the baseline",
            || Box::new(AtBuild::new("nobody listens", flood_stderr)),
            &["on standard error"],
        ),
        at_build(
            "fork-bomb",
            "starts five hundred children",
            "a machine that has time for nothing else",
            || Box::new(AtBuild::new("children cannot be started", processes::fork_bomb)),
            &["processes, of"],
        ),
        at_build(
            "phones-home",
            "opens a connection, to send operands away or to fetch results",
            "results computed elsewhere",
            || Box::new(AtBuild::new("no connection can be opened", processes::phone_home)),
            &[KEPT],
        )
        .held_by("no network"),
        at_build(
            "writes-outside",
            "writes a file outside of its folder",
            "a place for results of before, or someone's files",
            || {
                Box::new(AtBuild::new(
                    "nothing can be written outside",
                    processes::write_outside,
                ))
            },
            &[KEPT],
        )
        .held_by("writes only in its own folder"),
        row(
            "exhausts-memory",
            "takes half a gibibyte more memory than it may",
            || Box::new(AtBuild::new("memory cannot be had", processes::exhaust_memory)),
        )
        .gains("a control that swaps, or is killed")
        // The machine is not said to be too small for a kernel that is wrong: nothing is said of the kernel.
        .caught("compiles", Verdict::Blocked, &["out of memory", "of memory, of"]),
        at_build(
            "fills-the-disk",
            "makes a file of sixteen terabytes in its own folder",
            "a machine without room, for operands or for the ledger",
            || Box::new(AtBuild::new("the file cannot be made", processes::fill_the_disk)),
            &["SIGXFSZ", KEPT],
        ),
    ]
}
