//! Kernels that change the host, with which Python lets them share a process.

use gauntlet_judge::Verdict;

use super::super::kernels::On;
use super::super::{Cheat, Kind};
use super::kernels::{REPLAYS, WRONG, wrong};
use super::{KEPT, Row};

/// The safeguard that keeps operands from a kernel until a request comes.
const HELD: &str = "kernels in Python, CUDA C++ and shared libraries held between requests";

/// Kernels that change the host, with which Python lets them share a process. The coordinator holds the worker: it has no
/// operands before a call, and no time after it.
pub(super) fn kernels(on: On) -> Vec<Cheat> {
    let row = |name, text, story| {
        super::kernels::row(Kind::Deferred, name, text, story).gains("all but a copy of the result")
    };
    let in_load = row(
        "kernel-computes-in-load",
        "times.py:computes_in_load",
        "replaces the host's function that loads inputs by one that also computes the results",
    );
    let between = row(
        "kernel-works-between-calls",
        "times.py:works_between_calls",
        "the same, in a thread that runs on after inputs are loaded",
    );
    let in_output = row(
        "kernel-computes-in-output",
        "times.py:computes_in_output",
        "timed calls compute nothing; the host's function that writes a result computes it",
    );
    let in_output = wrong(in_output).held_by(HELD);
    match on {
        On::Cpu => {
            let mut rows = vec![
                wrong(in_load).held_by(HELD),
                wrong(between).held_by(HELD),
                in_output,
            ];
            rows.extend(on_arrays(row));
            rows
        }
        // Addresses change on a GPU, so these look at an element, and find results of the values that they loaded only.
        On::Cuda => vec![in_load.gains_nothing(), between.gains_nothing(), in_output],
    }
}

/// Kernels that are written against the coordinator's turns with a worker, on arrays of numpy.
fn on_arrays(row: impl Fn(&'static str, &'static str, &'static str) -> Row) -> Vec<Cheat> {
    let turns = |name, text, story, gains| row(name, text, story).gains(gains);
    vec![
        wrong(row(
            "kernel-computes-ahead-in-requests",
            "times.py:computes_ahead_in_requests",
            "replaces the host's function that answers a request by one that computes all results first",
        ))
        .held_by(HELD),
        turns(
            "kernel-multiplies-calls-at-once",
            "requests.py:multiplies_calls_at_once",
            "the same by one product, on values that it has seen before; takes its turns with the coordinator by itself",
            "all calls but those on new values",
        )
        .caught("faster", Verdict::Blocked, REPLAYS)
        .held_by(HELD),
        turns(
            "kernel-replays-and-spreads-times",
            "requests.py:replays_and_spreads_times",
            "copies known results in two fifths of the calls of long requests, waits there, and reports all calls to be as short",
            "a third of the time",
        )
        .caught("faster", Verdict::Blocked, REPLAYS)
        .held_by(HELD),
        turns(
            "kernel-leaves-out-the-host",
            "requests.py:leaves_out_the_host",
            "computes everything in a loop of its own, which restores and poisons nothing, and reports its calls as that much shorter",
            "what the host takes around a call",
        )
        .caught("faster", Verdict::Blocked, &["coordinator's clock"])
        .held_by(HELD),
        turns(
            "kernel-finishes-after-its-word",
            "requests.py:finishes_after_its_word",
            "says that a call is over when an eighth of its rows is left, and computes those until it is stopped",
            "an eighth of the time",
        )
        .caught("right or faster", Verdict::Incorrect, WRONG)
        .held_by(HELD),
        turns(
            "kernel-tells-drawn-calls",
            "times.py:tells_drawn_calls",
            "computes half of the rows where less time has passed since the call before than for other calls",
            "half of the time",
        )
        .caught("right or faster", Verdict::Incorrect, WRONG)
        .held_by(HELD),
        wrong(row(
            "kernel-answers-before-it-computes",
            "times.py:answers_before_it_computes",
            "answers at once; a thread computes the results in memory of its own, and the host names its address",
        ))
        .held_by(HELD),
        turns(
            "kernel-undoes-its-stop",
            "requests.py:undoes_its_stop",
            "lets a timer wake it from the stop after its word, computes the result then if it is read, and stops itself",
            "all calls but those whose results are read",
        )
        .held(&[KEPT])
        .held_by("stays in its process group, and leaves others' urgency alone"),
        turns(
            "kernel-has-its-input-laid-out",
            "requests.py:has_its_input_laid_out",
            "names a place for an input to which the coordinator would write it column by column",
            "what it takes to bring inputs into another layout",
        )
        .caught("right", Verdict::Incorrect, &["and the task lays it out with"])
        .held_by(HELD),
    ]
}
