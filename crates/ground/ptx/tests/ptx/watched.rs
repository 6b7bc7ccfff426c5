//! Accesses to memory that nothing orders, in kernels written by hand. `crates/judge/hosts/nvrtc/tests/races` has more, in CUDA C++.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_ptx::{Kernel, Launch, Memory, watch};

/// Threads of a block.
const THREADS: u32 = 64;

/// A kernel whose `body` runs with its thread's number in %r0, the address of its word of memory in %rd1, and that of its word of
/// shared memory in %r2, behind which lies that of the next thread.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        ".global .align 4 .u32 flag = 0;
.visible .entry one(.param .u64 memory)
{{
.reg .pred %p<4>;
.reg .b32 %r<16>;
.reg .b64 %rd<8>;
.shared .align 16 .b8 row[260];
.loc 1 7 1
ld.param.u64 %rd0, [memory];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1;
mov.u32 %r1, row; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2;
{body}
ret;
}}
.file 1 \"folder/one.cu\""
    );
    Kernel::read(&text, "one").unwrap()
}

/// What is found in one of six orders of events; none if nothing is.
fn found(body: &str, blocks: u32) -> Option<String> {
    let kernel = kernel(body);
    (0..6).find_map(|seed| {
        let mut memory = Memory::new();
        let words = memory.allocate_unwritten(4 * THREADS as usize);
        memory.call(words, "words");
        let launch = Launch {
            parameter: &words.to_le_bytes(),
            ..Launch::of(&kernel, [blocks, 1, 1], [THREADS, 1, 1])
        };
        let result = watch(&[launch], &mut memory, seed);
        result.err().map(|fault| {
            assert_eq!(fault.is_race(), fault.to_string().contains("race: "));
            fault.to_string()
        })
    })
}

#[track_caller]
fn is_right(body: &str, blocks: u32) {
    assert_eq!(found(body, blocks), None);
}

#[track_caller]
fn is_found(body: &str, blocks: u32, phrases: &[&str]) {
    let found = found(body, blocks).unwrap_or_default();
    assert!(phrases.iter().all(|phrase| found.contains(phrase)), "{found}");
}

#[test]
fn a_race_is_told_with_both_lines_and_what_is_missing() {
    let body = |between: &str| {
        format!(
            ".loc 1 12 3
            st.shared.u32 [%r2], %r0; st.shared.u32 [%r1+256], 7;
            {between}
            .loc 1 14 3, function_name $L__info, inlined_at 1 30 1
            ld.shared.u32 %r3, [%r2+4];"
        )
    };
    let found = found(&body(""), 1).unwrap();
    for phrase in [
        "one.cu:12 (line ",
        "race: ",
        "of the shared memory of block 0 (row+",
        "nothing orders the two",
    ] {
        assert!(found.contains(phrase), "{found}");
    }
    // Only one thread may write the last word.
    let right = body("bar.sync 0;").replace(
        "st.shared.u32 [%r1+256], 7;",
        "setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [%r1+256], 7;",
    );
    is_right(&right, 1);
    is_found(
        &right.replace("bar.sync 0;", "bar.warp.sync -1;"),
        1,
        &["one.cu:12", "one.cu:14", "such as __syncthreads()"],
    );
}

#[test]
fn blocks_are_ordered_by_atomic_accesses_with_fences() {
    // Whoever comes second reads what the first has stored.
    let body = |fences: [&str; 2], scope: &str| {
        format!(
            "setp.ne.u32 %p0, %r0, 0; @%p0 bra END;
            mov.u32 %r3, %ctaid.x; setp.ne.u32 %p1, %r3, 0; @%p1 bra SECOND;
            st.global.u32 [%rd0+8], 5; {}
            st.relaxed.{scope}.global.u32 [%rd0], 1; bra END;
            SECOND: ld.relaxed.{scope}.global.u32 %r4, [%rd0]; setp.ne.u32 %p2, %r4, 1; @%p2 bra SECOND;
            {} ld.global.u32 %r5, [%rd0+8];
            END:",
            fences[0], fences[1]
        )
    };
    let both = ["fence.acq_rel.gpu;", "fence.acq_rel.gpu;"];
    // The flag is read before it is set, which is what polling is: only its first value is undefined.
    let polled = |body: &str| found(body, 2).filter(|found| !found.contains("uninitialised"));
    assert_eq!(polled(&body(both, "gpu")), None);
    for fences in [["", both[1]], [both[0], ""], ["fence.acq_rel.cta;", both[1]]] {
        is_found(
            &body(fences, "gpu"),
            2,
            &[
                "race: reads 4 bytes at byte 8 of 256 of `words`",
                "blocks of a launch",
            ],
        );
    }
    is_found(&body(both, "cta"), 2, &["race: "]);
}

#[test]
fn launches_are_ordered_unless_they_overlap() {
    let first = kernel("griddepcontrol.launch_dependents; st.global.u32 [%rd1], %r0;");
    let second = |waits: &str| {
        kernel(&format!(
            "{waits} xor.b32 %r3, %r0, 1; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd2, %rd0, %rd2; ld.global.u32 %r4, [%rd2];"
        ))
    };
    let run = |second: &Kernel, overlaps: bool| {
        (0..6).find_map(|seed| {
            let mut memory = Memory::new();
            let words = memory.allocate(vec![0; 4 * THREADS as usize]);
            let parameter = words.to_le_bytes();
            let launch = |kernel, overlaps| Launch {
                overlaps,
                parameter: &parameter,
                ..Launch::of(kernel, [1, 1, 1], [THREADS, 1, 1])
            };
            let launches = [launch(&first, false), launch(second, overlaps)];
            watch(&launches, &mut memory, seed).err()
        })
    };
    assert_eq!(run(&second(""), false), None);
    assert_eq!(run(&second("griddepcontrol.wait;"), true), None);
    assert!(run(&second(""), true).unwrap().is_race());
}

#[test]
fn what_nobody_has_written_is_told_unless_a_race_explains_it() {
    is_found(
        "ld.shared.u32 %r3, [%r2];",
        1,
        &[
            "uninitialised read: nobody has written",
            " of the shared memory of block 0 (row+",
        ],
    );
    is_found(
        "ld.global.u32 %r3, [%rd1];",
        1,
        &["uninitialised read: nobody has written", " of 256 of `words`"],
    );
    // The other thread stores it later.
    let late = "setp.ne.u32 %p0, %r0, 40; @!%p0 st.global.u32 [%rd0], 1; @%p0 ld.global.u32 %r3, [%rd0];";
    is_found(late, 1, &["race: "]);
    is_right("st.global.u32 [%rd1], %r0; ld.global.u32 %r3, [%rd1];", 1);
}

#[test]
fn barriers_that_threads_go_around_are_told() {
    let around = "and.b32 %r3, %r0, 31; setp.ne.u32 %p0, %r3, 0; @%p0 bra PAST;
        bar.sync 0;
        PAST: st.global.u32 [%rd1], %r0;";
    is_found(around, 1, &["divergent barrier: thread ", "has gone around it"]);
    let early = "setp.gt.u32 %p0, %r0, 40; @%p0 bra END; bar.sync 0; st.global.u32 [%rd1], %r0; END:";
    is_right(early, 1);
    let two = "and.b32 %r3, %r0, 1; setp.ne.u32 %p0, %r3, 0; @%p0 bra ODD;
        bar.sync 0; bra END;
        ODD: bar.sync 0;
        END:";
    is_found(two, 1, &["divergent barrier: thread ", "of the same warp"]);
    // Barriers that are not aligned may be met anywhere.
    is_right(&two.replace("bar.sync", "barrier.sync"), 1);
}

#[test]
fn a_variable_of_the_module_keeps_its_value_from_launch_to_launch() {
    let text = ".global .align 4 .u32 count = 3;
        .visible .entry one(.param .u64 memory) {
        .reg .b32 %r<2>; .reg .b64 %rd<2>;
        ld.param.u64 %rd0, [memory];
        atom.global.add.u32 %r0, [count], 1;
        st.global.u32 [%rd0], %r0; ret; }";
    let kernel = Kernel::read(text, "one").unwrap();
    let mut memory = Memory::new();
    let word = memory.allocate_unwritten(4);
    let parameter = word.to_le_bytes();
    let launch = Launch {
        parameter: &parameter,
        ..Launch::of(&kernel, [1; 3], [1; 3])
    };
    for expected in [[4], [6]] {
        watch(&[launch, launch], &mut memory, 0).unwrap();
        assert_eq!(super::words_at(&memory, word), expected);
    }
    // What is allocated later lies elsewhere.
    let other = memory.allocate(vec![1; 4]);
    assert_eq!(memory.contents(other), Some(&[1; 4][..]));
}

#[test]
fn functions_are_put_in_place_of_their_calls() {
    let text = ".func (.param .b32 doubled) twice(.param .b32 number) {
        .reg .b32 %r<3>; .reg .pred %p0;
        ld.param.u32 %r0, [number]; setp.eq.u32 %p0, %r0, 5; @%p0 bra FIVE;
        add.u32 %r1, %r0, %r0; st.param.b32 [doubled+0], %r1; ret;
        FIVE: mov.u32 %r1, 55; st.param.b32 [doubled+0], %r1; ret; }
        .visible .entry one(.param .u64 memory) {
        .reg .b32 %r<4>; .reg .b64 %rd<2>;
        .local .align 4 .b8 kept[8];
        ld.param.u64 %rd0, [memory]; mov.u32 %r0, %tid.x;
        { .param .b32 given; .param .b32 got; st.param.b32 [given+0], %r0;
        call.uni (got), twice, (given); ld.param.b32 %r1, [got+0]; }
        mov.u64 %rd1, kept; st.local.u32 [%rd1+4], %r1; ld.local.u32 %r2, [kept+4];
        mul.wide.u32 %rd1, %r0, 4; add.s64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r2; ret; }";
    let kernel = Kernel::read(text, "one").unwrap();
    let mut memory = Memory::new();
    let words = memory.allocate_unwritten(4 * 7);
    let launch = Launch {
        parameter: &words.to_le_bytes(),
        ..Launch::of(&kernel, [1; 3], [7, 1, 1])
    };
    watch(&[launch], &mut memory, 1).unwrap();
    assert_eq!(super::words_at(&memory, words), [0, 2, 4, 6, 8, 55, 12]);
    let itself = text.replace("add.u32 %r1, %r0, %r0;", "call twice, (number);");
    let refused = Kernel::read(&itself, "one").unwrap_err().to_string();
    assert!(
        refused.contains("unsupported: recursion: `twice` calls itself"),
        "{refused}"
    );
}

/// A lock is tried for in a loop that stores: who holds it goes on even if its warp is the one that is held back.
#[test]
fn nobody_is_held_back_for_ever() {
    is_right(
        "and.b32 %r3, %r0, 31; setp.ne.u32 %p0, %r3, 0; @%p0 bra END;
        setp.ne.u32 %p0, %r0, 0; @%p0 bra MEET;
        st.global.u32 [%rd0], 0; st.global.u32 [%rd0+4], 0;
        MEET: barrier.sync 1, 2;
        TRY: atom.acquire.gpu.global.cas.b32 %r4, [%rd0], 0, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra TRY;
        ld.global.u32 %r5, [%rd0+4]; add.u32 %r5, %r5, 1; st.global.u32 [%rd0+4], %r5;
        atom.release.gpu.global.exch.b32 %r4, [%rd0], 0;
        END:",
        1,
    );
}

/// Each thread fences before a barrier, and one of them counts behind it: enough only if fences are in one order.
#[test]
fn sequential_fences_of_all_threads_order_what_one_of_them_hands_on() {
    let body = |fence: &str, between: &str| {
        format!(
            "mov.u32 %r3, %ctaid.x; setp.ne.u32 %p1, %r3, 0; @%p1 bra SECOND;
            st.global.u32 [%rd1], 5;
            {fence} {between}
            setp.ne.u32 %p0, %r0, 0; @!%p0 st.relaxed.gpu.global.u32 [flag], 1; bra END;
            SECOND: setp.ne.u32 %p0, %r0, 0; @%p0 bra MEET;
            TRY: ld.relaxed.gpu.global.u32 %r4, [flag]; setp.ne.u32 %p2, %r4, 1; @%p2 bra TRY;
            MEET: bar.sync 0; {fence} ld.global.u32 %r5, [%rd1];
            END:"
        )
    };
    for fence in ["membar.gl;", "fence.sc.gpu;"] {
        is_right(&body(fence, "bar.sync 0;"), 2);
    }
    for (fence, between) in [
        ("fence.acq_rel.gpu;", "bar.sync 0;"),
        ("membar.cta;", "bar.sync 0;"),
        ("membar.gl;", ""),
    ] {
        is_found(&body(fence, between), 2, &["race: reads 4 bytes at byte"]);
    }
}

#[test]
fn a_copy_past_the_end_of_shared_memory_is_told() {
    is_found(
        "cp.async.cg.shared.global [%r1+256], [%rd0], 16; cp.async.wait_all;",
        1,
        &["16 bytes at 1280 of shared memory, which lies from 1024 to 1284"],
    );
}

/// Of lanes that write the same word with one instruction one is the last, whichever: so it is no race if all write the same.
#[test]
fn lanes_may_write_the_same_together() {
    let body = |lanes: &str, value: &str| {
        format!(
            "setp.ge.u32 %p0, %r0, {lanes}; @%p0 bra MEET;
            st.shared.u32 [%r1], {value};
            MEET: bar.sync 0; ld.shared.u32 %r3, [%r1];"
        )
    };
    is_right(&body("32", "5"), 1);
    is_found(&body("32", "%r0"), 1, &["race: writes 4 bytes at 1024"]);
    is_found(&body("64", "5"), 1, &["race: writes 4 bytes at 1024"]);
}

#[test]
fn a_copy_of_nothing_reads_nothing() {
    let body = |given: u32| {
        format!(
            "mov.u32 %r3, {given}; cp.async.ca.shared.global [%r2], [%rd1+4096], 4, %r3; cp.async.wait_all;
            ld.shared.u32 %r4, [%r2];"
        )
    };
    is_right(&body(0), 1);
    is_found(&body(4), 1, &["4 bytes at", "of global memory are not allocated"]);
}

#[test]
fn barriers_tell_all_threads_the_votes_of_all() {
    let text = ".visible .entry one(.param .u64 memory) {
        .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<3>;
        ld.param.u64 %rd0, [memory]; mov.u32 %r0, %tid.x;
        setp.lt.u32 %p0, %r0, 40;
        bar.red.popc.u32 %r1, 0, %p0;
        bar.red.popc.u32 %r2, 1, 64, !%p0;
        barrier.cta.red.and.aligned.pred %p1, 0, %p0; selp.u32 %r3, 1, 0, %p1;
        bar.red.or.pred %p2, 0, %p0; selp.u32 %r4, 1, 0, %p2;
        activemask.b32 %r5; shr.u32 %r5, %r5, %r0; and.b32 %r5, %r5, 1;
        setp.ne.u32 %p0, %r0, 7; @%p0 ret;
        st.global.v4.u32 [%rd0], {%r1, %r2, %r3, %r4}; st.global.u32 [%rd0+16], %r5; ret; }";
    let kernel = Kernel::read(text, "one").unwrap();
    let mut memory = Memory::new();
    let words = memory.allocate_unwritten(4 * 5);
    let launch = Launch {
        parameter: &words.to_le_bytes(),
        ..Launch::of(&kernel, [1; 3], [THREADS, 1, 1])
    };
    watch(&[launch], &mut memory, 1).unwrap();
    assert_eq!(super::words_at(&memory, words), [40, 24, 0, 1, 1]);
}

#[test]
fn what_is_exchanged_need_not_have_been_written() {
    is_right("atom.global.exch.b32 %r3, [%rd1], 5;", 1);
    is_found("atom.global.add.u32 %r3, [%rd1], 5;", 1, &["uninitialised read"]);
}
