//! Small kernels, written by hand, and the faults detected in them.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_ptx::{Fault, Kernel, Launch, Memory, run};

use super::words_at;

/// A kernel with one address as its parameter; `body` runs after `%rd0` is set to it.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        ".extern .shared .align 1024 .b8 memory[];
.visible .entry one(.param .align 8 .b8 one_param_0[8])
{{
.reg .pred %p<8>;
.reg .b32 %r<16>;
.reg .b64 %rd<8>;
ld.param.u64 %rd0, [one_param_0];
mov.u32 %r0, %tid.x;
{body}
ret;
}}"
    );
    Kernel::read(&text, "one").unwrap()
}

struct Tried {
    result: Result<(), Fault>,
    words: Vec<u32>,
}

/// Runs a kernel over words of global memory.
fn tried(kernel: &Kernel, grid: [u32; 3], words: &[u32], seed: u64) -> Tried {
    launched(&[(kernel, false)], grid, words, seed)
}

/// Runs launches with the given numbers of blocks, blocks per cluster and threads; some overlap with the launch before.
fn launched(
    kernels: &[(&Kernel, bool)],
    [blocks, cluster, threads]: [u32; 3],
    words: &[u32],
    seed: u64,
) -> Tried {
    let mut memory = Memory::new();
    let address = memory.allocate(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let parameter = address.to_le_bytes();
    let launches: Vec<_> = kernels
        .iter()
        .map(|(kernel, overlaps)| Launch {
            kernel,
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            cluster,
            shared_bytes: 1024,
            parameter: &parameter,
            overlaps: *overlaps,
            only: None,
        })
        .collect();
    let result = run(&launches, &mut memory, seed);
    Tried {
        result,
        words: words_at(&memory, address),
    }
}

fn fault(body: &str, words: &[u32]) -> String {
    tried(&kernel(body), [1, 1, 32], words, 0)
        .result
        .unwrap_err()
        .to_string()
}

/// Sets %rd1 to the address of the thread's word.
const OWN_WORD: &str = "mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1;";

#[test]
fn lanes_part_and_meet_again() {
    // Odd lanes double their number, then each lane takes the number of its neighbour.
    let kernel = kernel(&format!(
        "{OWN_WORD}
        and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0; mov.u32 %r2, %r0;
        @%p0 bra MEET;
        shl.b32 %r2, %r0, 1;
        MEET: shfl.sync.bfly.b32 %r3|%p1, %r2, 1, 31, -1;
        st.global.u32 [%rd1], %r3;"
    ));
    let Tried { result, words } = tried(&kernel, [1, 1, 64], &[0; 64], 3);
    result.unwrap();
    let expected: Vec<u32> = (0..64_u32)
        .map(|lane| lane ^ 1)
        .map(|other| if other % 2 == 1 { 2 * other } else { other })
        .collect();
    assert_eq!(words, expected);
}

#[test]
fn an_access_outside_names_the_thread_and_the_place() {
    assert_eq!(
        fault(&format!("{OWN_WORD} st.global.u32 [%rd1+4], %r0;"), &[0; 32]),
        "block 0, thread 31, line 9, `st.global.u32 [%rd1+4], %r0`: 4 bytes at 0x100000080 of global memory are not allocated, 128 \
         bytes from the begin of 128 bytes"
    );
    assert!(
        fault("ld.global.u32 %r1, [%rd0+2];", &[0; 2]).ends_with("address 0x100000002 is no multiple of 4")
    );
    assert!(
        fault("mov.u32 %r1, memory; st.shared.u32 [%r1+1024], %r0;", &[0])
            .ends_with("4 bytes at 2048 of shared memory, which lies from 1024 to 2048")
    );
}

#[test]
fn who_waits_in_vain_is_named() {
    let message = fault(
        "mov.u32 %r1, memory; mbarrier.init.shared::cta.b64 [%r1], 2;
        mbarrier.arrive.shared::cta.b64 _, [%r1];
        setp.ne.u32 %p0, %r0, 0; @%p0 bra END;
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 1;
        @%p1 bra WAIT;
        END: bar.sync 0;",
        &[0],
    );
    assert!(
        message.starts_with("nothing goes on: block 0 warp 0 at line"),
        "{message}"
    );
    assert!(message.contains("bar.sync 0"), "{message}");
}

/// Copies to shared memory, counting bytes at a barrier, then runs `wait`; lanes store the values that they find.
fn copied(wait: &str) -> Kernel {
    kernel(&format!(
        "{OWN_WORD}
        mov.u32 %r1, memory; add.s32 %r2, %r1, 512;
        setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
        mbarrier.init.shared::cta.b64 [%r2], 1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 128, [%r2];
        READY: bar.sync 0;
        {wait}
        shl.b32 %r3, %r0, 2; add.s32 %r3, %r3, %r1;
        ld.shared.u32 %r4, [%r3]; add.s32 %r4, %r4, 1;
        st.global.u32 [%rd1], %r4;"
    ))
}

#[test]
fn a_copy_lands_when_it_likes() {
    let words: Vec<u32> = (0..32).collect();
    let expected: Vec<u32> = (1..33).collect();
    let waits = copied("WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;");
    let does_not = copied("");
    let mut wrong = 0;
    for seed in 0..40 {
        let Tried { result, words: found } = tried(&waits, [1, 1, 32], &words, seed);
        result.unwrap();
        assert_eq!(found, expected, "seed {seed}");
        wrong += usize::from(tried(&does_not, [1, 1, 32], &words, seed).words != expected);
    }
    assert!(wrong > 0, "nothing was read too early");
}

#[test]
fn what_threads_stored_needs_a_fence_and_a_wait() {
    let stored = |fence: &str, wait: &str| {
        format!(
            "mov.u32 %r1, memory; shl.b32 %r2, %r0, 2; add.s32 %r2, %r2, %r1;
            st.shared.u32 [%r2], %r0; {fence} bar.sync 0;
            setp.ne.u32 %p0, %r0, 0; @%p0 bra END;
            cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 128;
            cp.async.bulk.commit_group; {wait} END:"
        )
    };
    let (fence, wait) = (
        "fence.proxy.async.shared::cta;",
        "cp.async.bulk.wait_group.read 0;",
    );
    let Tried { result, words } = tried(&kernel(&stored(fence, wait)), [1, 1, 32], &[0; 32], 0);
    result.unwrap();
    assert_eq!(words, (0..32).collect::<Vec<u32>>());
    assert!(fault(&stored("", wait), &[0; 32]).contains("without a fence since"));
    let ends = (0..20).any(|seed| {
        let result = tried(&kernel(&stored(fence, "")), [1, 1, 32], &[0; 32], seed).result;
        result.is_err_and(|fault| fault.to_string().contains("ends while its bulk stores"))
    });
    assert!(ends);
}

#[test]
fn blocks_of_a_cluster_reach_each_other() {
    // The first lane of each block stores its rank plus 10 to the other block, which waits for it.
    let kernel = kernel(
        "mov.u32 %r1, memory; add.s32 %r2, %r1, 16;
        setp.ne.u32 %p0, %r0, 0; @%p0 bra MEET;
        mbarrier.init.shared::cta.b64 [%r2], 1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;
        MEET: barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;
        @%p0 bra END;
        mov.u32 %r3, %ctaid.x; xor.b32 %r4, %r3, 1; add.s32 %r5, %r3, 10;
        mapa.shared::cluster.u32 %r6, %r1, %r4; mapa.shared::cluster.u32 %r7, %r2, %r4;
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r6], {%r5, %r5, %r5, %r5}, [%r7];
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
        ld.shared.u32 %r8, [%r1+12];
        mul.wide.u32 %rd1, %r3, 4; add.s64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r8;
        END:",
    );
    let Tried { result, words } = tried(&kernel, [2, 2, 32], &[0; 2], 5);
    result.unwrap();
    assert_eq!(words, [11, 10]);
}

/// The first launch lets the second begin and then increments a word; the second adds the value that it finds to
/// another word.
#[test]
fn a_launch_that_overlaps_waits_or_reads_too_early() {
    let one_thread = "setp.ne.u32 %p0, %r0, 0; @%p0 bra END;";
    let first = kernel(&format!(
        "griddepcontrol.launch_dependents; {one_thread} ld.global.u32 %r1, [%rd0]; add.s32 %r1, %r1, 5; st.global.u32 [%rd0], %r1; \
         END:"
    ));
    let second = |wait: &str| {
        kernel(&format!(
            "{wait} {one_thread} ld.global.u32 %r1, [%rd0]; st.global.u32 [%rd0+4], %r1; END:"
        ))
    };
    let found = |second: &Kernel, overlaps: bool, seed: u64| {
        let Tried { result, words } =
            launched(&[(&first, false), (second, overlaps)], [1, 1, 32], &[0, 0], seed);
        result.unwrap();
        words[1]
    };
    let (waits, does_not) = (second("griddepcontrol.wait;"), second(""));
    assert!((0..50).all(|seed| found(&waits, true, seed) == 5 && found(&does_not, false, seed) == 5));
    assert!((0..50).any(|seed| found(&does_not, true, seed) == 0));
}

#[test]
fn a_launch_that_does_not_fit_is_refused() {
    let kernel = kernel("");
    let mut memory = Memory::new();
    let mut refused = |blocks, threads, parameter| {
        let launch = Launch {
            cluster: 2,
            parameter,
            ..Launch::of(&kernel, [blocks, 1, 1], [threads, 1, 1])
        };
        run(&[launch], &mut memory, 0).unwrap_err().to_string()
    };
    assert_eq!(
        refused(2, 32, &[0; 4]),
        "parameters of 4 bytes for a kernel that takes 8"
    );
    assert!(refused(3, 32, &[0; 8]).starts_with("3 blocks in clusters of 2"));
    assert!(refused(2, 1025, &[0; 8]).contains("1025 threads"));
}

/// Each lane copies its own word twice by `cp.async`, to two places, a group each; then it waits by `wait` and reads the
/// place that is `from` bytes further.
fn copied_by_threads(wait: &str, from: u32) -> Kernel {
    kernel(&format!(
        "{OWN_WORD}
        mov.u32 %r1, memory; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; add.s32 %r3, %r1, 128;
        mov.u32 %r5, 9; st.shared.u32 [%r1], %r5; st.shared.u32 [%r3], %r5;
        cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.commit_group;
        cp.async.ca.shared.global [%r3], [%rd1], 4; {wait}
        ld.shared.u32 %r4, [%r1+{from}]; add.s32 %r4, %r4, 1; st.global.u32 [%rd1], %r4;"
    ))
}

/// A wait covers the groups that it counts and no others: what it does not cover may land at any time, also late.
#[test]
fn copies_of_a_thread_land_by_the_end_of_a_wait_that_covers_them() {
    let words: Vec<u32> = (0..32).collect();
    let expected: Vec<u32> = (1..33).collect();
    let late = |wait: &str, from: u32| {
        let kernel = copied_by_threads(wait, from);
        let found = (0..40).map(|seed| {
            let Tried { result, words } = tried(&kernel, [1, 1, 32], &words, seed);
            result.unwrap();
            words
        });
        found.filter(|found| *found != expected).count()
    };
    let both = "cp.async.commit_group; cp.async.wait_group 0;";
    let first = "cp.async.commit_group; cp.async.wait_group 1;";
    assert_eq!((late(both, 0), late(both, 128)), (0, 0));
    assert_eq!(
        (late("cp.async.wait_all;", 0), late("cp.async.wait_all;", 128)),
        (0, 0)
    );
    assert_eq!(late(first, 0), 0);
    assert!(
        late(first, 128) > 0,
        "a group that may be on its way was always there"
    );
    let without_commit = "cp.async.wait_group 0;";
    assert_eq!(late(without_commit, 0), 0);
    assert!(
        late(without_commit, 128) > 0,
        "a copy of no group was always there"
    );
    assert!(late("", 0) > 0, "a copy was always there at once");
}

#[test]
fn forms_that_are_not_known_are_refused_when_a_kernel_is_read() {
    let refused = |statement: &str| {
        let text = format!(
            ".visible .entry one(.param .align 8 .b8 one_param_0[8])
{{
.reg .b32 %r<16>;
.reg .b64 %rd<8>;
{statement}
ret;
}}"
        );
        Kernel::read(&text, "one").unwrap_err().to_string()
    };
    for (statement, why) in [
        (
            "cp.async.cg.shared.global [%r1], [%rd1], 8;",
            "copies of 8 bytes where [16]",
        ),
        (
            "cp.async.ca.shared.global [%r1], [%rd1], 12;",
            "copies of 12 bytes where [4, 8, 16]",
        ),
        (
            "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, \
             {%r0, %r1, %r2, %r3};",
            "m16n8k32.row.col.f32.e4m3.e4m3.f32` is known here",
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%r8}, {%r0, %r1, %r2, %r3};",
            "m16n8k16.row.col.f32.f16.f16.f32` is known here",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1};",
            "is known here",
        ),
        (
            "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];",
            "no such instruction here",
        ),
    ] {
        let message = refused(statement);
        assert!(message.contains(why), "{statement}: {message}");
    }
}

#[test]
fn only_chosen_blocks_run() {
    let kernel = kernel(
        "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd1, %rd0, %rd1;
        mov.u32 %r2, 7; st.global.u32 [%rd1], %r2;",
    );
    let run_only = |cluster, only: &[u32]| {
        let mut memory = Memory::new();
        let address = memory.allocate(vec![0; 4 * 8]);
        let launch = Launch {
            cluster,
            parameter: &address.to_le_bytes(),
            only: Some(only),
            ..Launch::of(&kernel, [8, 1, 1], [32, 1, 1])
        };
        run(&[launch], &mut memory, 0).map(|()| memory.contents(address).unwrap().to_vec())
    };
    let ran = |cluster, only: &[u32]| -> Vec<u32> {
        let words = run_only(cluster, only).unwrap();
        (0..8).filter(|block| words[4 * *block as usize] == 7).collect()
    };
    assert_eq!(ran(1, &[0, 5, 7]), [0, 5, 7]);
    assert_eq!(ran(2, &[2, 3, 6, 7]), [2, 3, 6, 7]);
    assert!(ran(1, &[]).is_empty());
    for (cluster, only) in [(2, &[1, 2][..]), (2, &[4]), (1, &[8]), (1, &[3, 3]), (1, &[5, 2])] {
        let message = run_only(cluster, only).unwrap_err().to_string();
        assert!(message.contains("no ascending whole clusters"), "{message}");
    }
}
