//! Kernels in files: Python on numpy or torch, Triton, and CUDA C++. Each is compared with an honest kernel in Python.

use gauntlet_judge::Verdict;

use super::super::kernels::{HONEST, Kernel, On};
use super::super::{Cheat, End, Kind, Worker};
use super::{KEPT, Row, in_the_host};

/// All kernels that can be tried on a device, by kind.
pub fn kernels(on: On) -> Vec<Cheat> {
    let mut rows = results();
    rows.extend(times());
    rows.extend(processes());
    if on == On::Cuda {
        rows.extend(on_gpus());
        rows.extend(in_cuda());
    }
    rows.extend(in_the_host::kernels(on));
    rows.extend(honest());
    if on == On::Cuda {
        rows.extend(honest_on_gpus());
    }
    rows
}

pub(super) fn row(kind: Kind, name: &'static str, text: &'static str, story: &'static str) -> Row {
    let kernel = Kernel {
        text,
        baseline: HONEST,
    };
    Row::new(kind, name, story, Worker::Kernel(kernel))
}

/// Words of a wrong result. Memory that a kernel never wrote can hold anything, NaN too.
pub(super) const WRONG: &[&str] = &[
    "NRMSE",
    "outside the tolerance",
    "never written",
    "bias",
    "NaN, the first",
];

/// Words of a result that was kept.
pub(super) const REPLAYS: &[&str] = &[
    "computed with before",
    "takes less than",
    "coordinator's clock",
    "results that it remembers",
];

pub(super) fn wrong(row: Row) -> Cheat {
    row.caught("right", Verdict::Incorrect, WRONG)
}

fn results() -> Vec<Cheat> {
    let row = |name, text, story| row(Kind::Results, name, text, story);
    let all = "all of the time";
    vec![
        wrong(
            row(
                "kernel-answers-by-shape",
                "results.py:answers_by_shape",
                "keeps the first result for each shape",
            )
            .gains(all),
        ),
        row(
            "kernel-answers-by-pointer",
            "results.py:answers_by_pointer",
            "keeps results by the addresses of the inputs",
        )
        .gains("all of the time on addresses that come again")
        .gains_nothing(),
        row(
            "kernel-answers-by-content",
            "results.py:answers_by_content",
            "keeps results by a sample of the inputs' elements",
        )
        .gains("nearly all of the time on inputs that come again")
        .caught("faster", Verdict::Blocked, REPLAYS),
        wrong(
            row(
                "kernel-in-lower-precision",
                "results.py:lower_precision",
                "computes, or rounds its result, in f16",
            )
            .gains("half of the time or more"),
        ),
        wrong(
            row(
                "kernel-drops-denormals",
                "results.py:drops_denormals",
                "takes denormal inputs for zero",
            )
            .gains("the time that denormal numbers take"),
        ),
        row(
            "kernel-returns-a-lazy-tensor",
            "results.py:lazy_result",
            "returns an object of a subclass that would compute later",
        )
        .gains(all)
        .caught("right", Verdict::Incorrect, &["but the task's is a"]),
        wrong(
            row(
                "kernel-halves-after-forty-calls",
                "results.py:half_after_forty_calls",
                "computes half of the rows after its first forty calls",
            )
            .gains("half of the time"),
        ),
        wrong(
            row(
                "kernel-replaces-the-check",
                "results.py:replaces_the_check",
                "replaces the check, the reference and every comparison that it finds, and returns zeros",
            )
            .gains(all),
        ),
        wrong(
            row(
                "kernel-named-like-a-module",
                "secrets.py:zeros",
                "lies in a file called like a module that numpy imports late, to be run by the process that computes the expected results, and returns zeros",
            )
            .gains(all),
        ),
    ]
}

fn times() -> Vec<Cheat> {
    let row = |name, text, story| row(Kind::Times, name, text, story);
    let all = "all of the time";
    vec![
        wrong(row("kernel-returns-before-its-thread", "times.py:returns_before_its_thread", "a thread writes the result after the call has returned").gains(all)),
        wrong(row("kernel-merges-calls", "times.py:merges_calls", "computes four calls at once, in the last of them").gains("three of four launches")),
        wrong(row("kernel-computes-in-a-finaliser", "times.py:computes_in_a_finaliser", "computes when Python frees an object").gains(all)),
        wrong(row("kernel-computes-in-collections", "times.py:computes_in_collections", "computes in the callbacks of the garbage collector").gains(all)),
        row("kernel-replaces-clocks", "times.py:replaces_clocks", "replaces the clocks of Python, of the host and of torch.cuda by ones that stand still, and computes twice")
            .gains("any speed-up on paper")
            .gains_nothing(),
        row("kernel-halves-its-samples", "times.py:halves_its_samples", "replaces the host's function that reports times by one that halves them")
            .gains("a speed-up of two on paper")
            .caught("faster", Verdict::Blocked, &["coordinator's clock"]),
        row("kernel-replaces-the-loop", "times.py:replaces_the_loop", "has the native loop make only the first call of each request")
            .gains("all calls but one")
            .caught("right", Verdict::Incorrect, &["has no result", "NRMSE", "never written", "NaN, the first"]),
        row("kernel-tunes-when-timed", "times.py:tunes_when_timed", "tries its ways in timed calls, again for each input")
            .gains("the best way for these inputs")
            .gains_nothing(),
    ]
}

fn processes() -> Vec<Cheat> {
    let row = |name, text, story| row(Kind::Processes, name, text, story);
    vec![
        row(
            "kernel-exits-when-timed",
            "process.py:exits_when_timed",
            "ends its process by os._exit in its third call",
        )
        .gains("a result that nobody can fetch")
        .caught("right", Verdict::Incorrect, &["died", "exit"]),
        row(
            "kernel-signals-the-others",
            "process.py:signals_the_others",
            "stops every process that it can see",
        )
        .gains("a baseline that stands still")
        .held(&[KEPT]),
        row(
            "kernel-reads-the-parent",
            "process.py:reads_the_parent",
            "looks for the expected result in the memory of its parent",
        )
        .gains("all of the time")
        .held(&[KEPT])
        .held_by("other workers' files and all others' memory hidden"),
        wrong(
            row(
                "kernel-reads-files",
                "process.py:reads_files",
                "looks for the expected result in temporary files and shared memory",
            )
            .gains("all of the time"),
        ),
        row(
            "kernel-traces-the-parent",
            "process.py:traces_the_parent",
            "attaches to its parent by ptrace",
        )
        .gains("the judge's own memory")
        .held(&[KEPT])
        .held_by("other workers' files and all others' memory hidden"),
        row(
            "kernel-detours-the-clock",
            "process.py:detours_the_clock",
            "writes to /proc/self/mem, so that the clock that the native loop reads runs at half speed",
        )
        .gains("a speed-up of two on paper")
        .caught(
            "faster",
            Verdict::Blocked,
            &["coordinator's clock", "in an exchange that took"],
        ),
        row(
            "kernel-changes-the-environment",
            "process.py:changes_the_environment",
            "sets environment variables of Gauntlet, Python and CUDA",
        )
        .gains("another interpreter, GPU or library")
        .gains_nothing(),
    ]
}

fn on_gpus() -> Vec<Cheat> {
    let results = |name, text, story| row(Kind::Results, name, text, story);
    let times = |name, text, story| row(Kind::Times, name, text, story);
    vec![
        times(
            "kernel-works-on-a-side-stream",
            "gpu.py:works_on_a_side_stream",
            "launches everything on a stream that the events do not see",
        )
        .gains("all of the device's time on paper")
        .gains_nothing(),
        wrong(
            times(
                "kernel-launches-after-it-returned",
                "gpu.py:launches_after_it_returned",
                "a thread launches the work after the device was synchronised",
            )
            .gains("all of the time"),
        ),
        times(
            "kernel-lends-its-stream",
            "gpu.py:lends_its_stream",
            "makes another stream the current one of the host",
        )
        .gains("events on an empty stream")
        .gains_nothing(),
        times(
            "kernel-computes-in-the-gate",
            "gpu.py:computes_in_the_hold",
            "computes on the host, with copies on another stream, during the hold before the call",
        )
        .gains("nearly all of the device's time on paper")
        .gains_nothing(),
        times(
            "kernel-computes-rows-in-the-gate",
            "gpu.py:computes_rows_in_the_hold",
            "the same with an eighth of the rows, and honest where there is no hold",
        )
        .gains("an eighth of the device's time on paper")
        .gains_nothing(),
        wrong(
            results(
                "kernel-replays-stale-inputs",
                "gpu.py:replays_stale_inputs",
                "replays a CUDA graph on the inputs on which it was captured",
            )
            .gains("the time to copy inputs"),
        ),
        times(
            "kernel-keeps-inputs-in-the-cache",
            "gpu.py:keeps_inputs_in_the_cache",
            "sets a part of the level-2 cache aside for the memory in which inputs lie",
        )
        .gains("reads from memory")
        .gains_nothing(),
        wrong(
            results(
                "kernel-scans-the-memory",
                "gpu.py:scans_the_memory",
                "looks for the expected result in free memory of the GPU",
            )
            .gains("all of the time"),
        ),
        wrong(
            results("kernel-in-tf32", "gpu.py:in_tf32", "lets torch multiply in TF32")
                .gains("more than half of the time"),
        ),
        wrong(
            results(
                "kernel-poisons-torch",
                "gpu.py:poisons_the_reference",
                "replaces the multiplication of torch, for whatever checks it later",
            )
            .gains("all of the time"),
        ),
        wrong(
            results(
                "kernel-in-bfloat16",
                "with_triton.py:in_bfloat16",
                "rounds its inputs to bfloat16, in Triton",
            )
            .gains("half of the reads"),
        ),
    ]
}

fn in_cuda() -> Vec<Cheat> {
    let row = |name, text, story| row(Kind::Results, name, text, story);
    vec![
        wrong(
            row(
                "kernel-sums-less",
                "kernels.cu:shorter_sums",
                "leaves out the last eighth of each sum, in CUDA C++",
            )
            .gains("an eighth of the time"),
        ),
        wrong(
            row(
                "kernel-leaves-a-row",
                "kernels.cu:all_but_a_row",
                "leaves out the last row, in CUDA C++",
            )
            .gains("the time of a row"),
        ),
        wrong(
            row(
                "kernel-flushes-denormals",
                "kernels.cu:flushes",
                "takes denormal inputs for zero, in CUDA C++",
            )
            .gains("what -ftz=true gains"),
        ),
    ]
}

fn honest_row(name: &'static str, text: &'static str, story: &'static str) -> Cheat {
    row(Kind::Honest, name, text, story)
        .gains("nothing")
        .ends(End::Measured)
}

fn honest() -> Vec<Cheat> {
    let faster = Kernel {
        text: HONEST,
        baseline: "honest.py:twice",
    };
    vec![
        honest_row("kernel-honest", "honest.py:honest", "the baseline itself"),
        Row::new(
            Kind::Honest,
            "kernel-twice-as-fast",
            "the same, beside a baseline that computes everything twice",
            Worker::Kernel(faster),
        )
        .gains("half of the time, as it should")
        .ends(End::Measured),
        honest_row(
            "kernel-with-workspace",
            "honest.py:with_workspace",
            "keeps memory for what lies between its steps",
        ),
        honest_row(
            "kernel-tuned-in-set-up",
            "honest.py:tuned_in_set_up",
            "tries two ways before anything is timed, and keeps the better",
        ),
    ]
}

fn honest_on_gpus() -> Vec<Cheat> {
    vec![
        honest_row(
            "kernel-in-triton",
            "with_triton.py:honest_triton",
            "a part in Triton, the rest in torch",
        ),
        honest_row(
            "kernel-replays-a-graph",
            "gpu.py:replays_a_graph",
            "copies its inputs to those of a CUDA graph, and replays it",
        ),
        honest_row("kernel-in-cuda", "kernels.cu:plain", "a slow kernel in CUDA C++"),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_gpu_has_the_kernels_of_the_cpu_and_more() {
        let names = |on| {
            kernels(on)
                .iter()
                .map(|cheat| cheat.name)
                .collect::<BTreeSet<_>>()
        };
        let (cpu, cuda) = (names(On::Cpu), names(On::Cuda));
        let on_arrays = cpu.difference(&cuda).copied().collect::<Vec<_>>();
        assert_eq!(on_arrays.len(), 9, "written for arrays of numpy: {on_arrays:?}");
        assert_eq!(cuda.len(), kernels(On::Cuda).len(), "a name comes twice");
        let cheats = kernels(On::Cuda);
        assert!(cheats.iter().filter(|cheat| cheat.kind != Kind::Honest).count() >= 25);
    }
}
