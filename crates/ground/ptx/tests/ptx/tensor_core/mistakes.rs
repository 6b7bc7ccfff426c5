//! Mistakes put into the kernel, one at a time: each has to be seen.

use gauntlet_ptx::Kernel;

use super::kernel::{Case, Filled, Swizzle};
use super::{CASE, wrong};

/// Orders of events in which a mistake is looked for.
const SEEDS: std::ops::Range<u64> = 0..12;

/// A shallow case, so that twelve orders of events take little time.
const SMALL: Case = Case { columns: 8, ..CASE };

/// What is seen when a part of the kernel is replaced.
fn seen(case: Case, right: &str, mistake: &str) -> String {
    let text = case.text();
    assert!(text.contains(right), "`{right}` is not in the kernel");
    let text = text.replace(right, mistake);
    let seen: Vec<_> = SEEDS.filter_map(|seed| wrong(&text, case, seed)).collect();
    assert!(!seen.is_empty(), "`{mistake}` for `{right}` was not seen");
    seen.join("\n")
}

#[track_caller]
fn check(case: Case, right: &str, mistake: &str, expected: &str) {
    let seen = seen(case, right, mistake);
    assert!(seen.contains(expected), "{seen}");
}

/// The barrier at which the results are awaited.
fn done(case: Case) -> usize {
    case.shared_bytes() - super::kernel::REST + 32
}

#[test]
fn no_commit() {
    let last = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r15];";
    let done = format!("add.u32 %r15, %r2, {};", done(SMALL));
    check(SMALL, &format!("{done} {last}"), "", "nothing goes on");
    // Without a wait either: in each order of events it is seen, though the products may have ended.
    let case = Case { depth: 128, ..SMALL };
    let text = case.text().replace(last, "").replace("@!%p2 bra DONE;", "");
    let seen: Vec<_> = SEEDS.map(|seed| wrong(&text, case, seed).unwrap()).collect();
    let early = |seen: &&String| seen.contains("before a commit has arrived");
    assert!(seen.iter().any(|seen| early(&seen)), "{seen:?}");
}

#[test]
fn a_read_before_the_wait() {
    check(SMALL, "@!%p2 bra DONE;", "", "before a commit has arrived");
}

#[test]
fn no_fence_after_the_wait() {
    let wait = "@!%p2 bra DONE;\ntcgen05.fence::after_thread_sync;";
    check(SMALL, wait, "@!%p2 bra DONE;", "without a fence since the commit");
}

#[test]
fn no_wait_for_loads() {
    let wait = "tcgen05.wait::ld.sync.aligned;";
    check(SMALL, wait, "", "frees column");
    // A wait behind the first use of what was loaded.
    let text = SMALL.text().replace(wait, "");
    let (before, behind) = text.rsplit_once("tcgen05.fence::before_thread_sync;").unwrap();
    let text = format!("{before} {wait} tcgen05.fence::before_thread_sync; {behind}");
    for seed in SEEDS {
        let seen = wrong(&text, SMALL, seed).unwrap();
        assert!(seen.contains("row 0, column 0: NaN instead of"), "{seen}");
    }
}

/// A result may be moved before the wait, as a compiler does, and two may be joined.
#[test]
fn loads_whose_results_are_moved_before_the_wait() {
    let wait = "tcgen05.wait::ld.sync.aligned;";
    let moved = "mov.b32 %v20, %v0; mov.b64 %rd10, {%v1, %v20};";
    let used = "mov.b64 {%v1, %v0}, %rd10;";
    let text = SMALL.text().replace(wait, &format!("{moved} {wait} {used}"));
    assert_eq!(wrong(&text, SMALL, 5), None);
    let text = SMALL.text().replace(
        wait,
        &format!("{moved} add.u32 %v0, %v20, 0; {wait} mov.b32 %v0, %v20; {used}"),
    );
    assert_eq!(wrong(&text, SMALL, 5), None);
    let text = SMALL
        .text()
        .replace(wait, &format!("add.u32 %v20, %v0, 0; {wait} mov.b32 %v0, %v20;"));
    assert!(wrong(&text, SMALL, 5).unwrap().contains("NaN instead of"));
}

#[test]
fn a_stage_that_is_overwritten_too_early() {
    for chunk in [2, 3] {
        let (wait, mistake) = (format!("@!%p2 bra EMPTY{chunk};"), "");
        check(
            SMALL,
            &wait,
            mistake,
            "was changed before the tensor core had read it",
        );
    }
}

#[test]
fn operands_that_have_not_landed() {
    check(SMALL, "@!%p2 bra FULL3;", "", "");
}

#[test]
fn no_fence_between_stores_and_the_tensor_core() {
    let case = Case {
        filled: Filled::ByThreads,
        depth: 256,
        ..SMALL
    };
    assert_eq!(wrong(&case.text(), case, 3), None);
    check(
        case,
        "fence.proxy.async.shared::cta;",
        "",
        "without a fence since (fence.proxy.async)",
    );
}

#[test]
fn descriptors_that_say_something_else() {
    let case = Case {
        depth: 128,
        swizzle: Swizzle::Bytes64,
        ..SMALL
    };
    let descriptor: u64 = (512 >> 4) << 32 | 1 << 16 | 1 << 46 | 4 << 61;
    let first = |descriptor: u64| format!("add.u64 %rd6, %rd4, {descriptor};");
    let wrong = |bits: u64, expected| check(case, &first(descriptor), &first(bits), expected);
    wrong(descriptor ^ (512 >> 4 ^ 1024 >> 4) << 32, "instead of");
    wrong(descriptor ^ (4 ^ 2) << 61, "instead of");
    wrong(descriptor ^ 1 << 46, "bits 46 to 48 hold 0");
    wrong(descriptor ^ (4 ^ 3) << 61, "the swizzle 3");
    wrong(descriptor | 1 << 30, "have to be 0");
    let description = |bits: u64| format!("mov.u32 %r16, {bits};");
    let bits = 1 << 7 | 1 << 10 | 1 << 17 | 1 << 27;
    let wrong = |other: u64, expected| check(case, &description(bits), &description(other), expected);
    wrong(bits | 1 << 23, "the type of the scales (ue4m3) is 0");
    wrong(bits ^ 3 << 27, "the number of rows of A");
    let case = Case { columns: 16, ..case };
    check(
        case,
        &description(bits + (1 << 17)),
        &description(bits),
        "column 8: NaN instead of",
    );
}

#[test]
fn scales_of_another_block() {
    let case = Case { depth: 128, ..SMALL };
    let copy = |from: usize| {
        format!(
            "add.u64 %rd5, %rd4, {};",
            (from as u64 >> 4) + (8 << 32 | 1 << 46)
        )
    };
    let scales = 136 * 64;
    check(case, &copy(scales), &copy(scales + 512), "instead of");
    let place = |column: usize| format!("add.u32 %r17, %r6, {column}; add.u32 %r18, %r6, {};", column + 4);
    let swapped = "add.u32 %r17, %r6, 36; add.u32 %r18, %r6, 32;";
    check(case, &place(32), swapped, "instead of");
    check(case, &place(32), &place(48), "instead of");
    check(case, &place(32), &place(33), "even one");
    check(case, &place(32), &place(6), "hold scales");
    check(case, &place(32), &place(62), "are not allocated");
}

#[test]
fn columns_that_another_warp_or_nobody_has() {
    check(
        SMALL,
        "shl.b32 %r19, %r1, 21;",
        "mov.u32 %r19, 0;",
        "it reaches lanes 32 to 63 only",
    );
    check(
        SMALL,
        "shl.b32 %r19, %r1, 21;",
        "shl.b32 %r19, %r1, 20;",
        "lane 16 on",
    );
    check(SMALL, "[%r19+0]", "[%r19+60]", "are not allocated");
    // The address that the allocation has given is not used.
    check(SMALL, "[%r6], %rd6", "[%r22], %rd6", "are not allocated");
}

#[test]
fn allocations_that_are_none() {
    let free = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;";
    check(SMALL, free, "", "that it has not freed");
    check(
        SMALL,
        free,
        &free.replace("64;", "32;"),
        "no 32 columns of tensor memory are allocated",
    );
    check(SMALL, free, &free.repeat(2), "nothing is allocated");
    let early = format!("@%p1 bra ALLOC; {free} ALLOC: bar.sync 1; DONE:");
    check(SMALL, "DONE:", &early, "tensor memory");
    let ask = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 64;";
    check(
        SMALL,
        ask,
        &ask.replace("64;", "480;"),
        "480 columns, where powers of two",
    );
    check(
        SMALL,
        ask,
        &ask.replace("64;", "16;"),
        "16 columns, where powers of two",
    );
    let smaller = format!("{} {ask}", ask.replace("64;", "32;"));
    check(SMALL, ask, &smaller, "64 columns after 32");
    // The ninth allocation of 64 columns waits for ever: the first eight fill tensor memory and are never freed.
    check(SMALL, ask, &ask.repeat(9), "nothing goes on");
    let relinquish = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;";
    let after = format!("{relinquish} {}", ask.replace("64;", "32;"));
    check(SMALL, relinquish, &after, "has given up the right to");
}

#[test]
fn pairs_that_do_not_agree() {
    let case = Case {
        columns: 16,
        depth: 256,
        chunk: 128,
        pair: true,
        ..CASE
    };
    let ask = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r5], 64;";
    let guarded = format!("setp.ne.u32 %p6, %r3, 0; @%p6 bra ASKED; {ask} ASKED:");
    check(case, ask, &guarded, "nothing goes on");
    let different = format!(
        "setp.ne.u32 %p6, %r3, 0; selp.b32 %r21, 64, 32, %p6; {}",
        ask.replace("64;", "%r21;")
    );
    check(case, ask, &different, "ask for different things");
    // Each block signals its own barrier: the even one, which multiplies, waits for both.
    let own = "and.b32 %r4, %r2, 4278190079;";
    check(case, own, "mov.b32 %r4, %r2;", "");
    check(case, "mov.b16 %h0, 3;", "mov.b16 %h0, 1;", "nothing goes on");
    check(
        case,
        "::bytes.cta_group::2 [",
        "::bytes [",
        "with .cta_group::2 it may be",
    );
}

#[test]
fn instructions_of_different_groups_are_refused() {
    let text = SMALL
        .text()
        .replace("dealloc.cta_group::1", "dealloc.cta_group::2");
    let refused = Kernel::read(&text, "one").unwrap_err().to_string();
    assert!(refused.contains("another .cta_group"), "{refused}");
    let text = SMALL.text().replace("scale_vec::4X", "scale_vec::2X");
    let refused = Kernel::read(&text, "one").unwrap_err().to_string();
    assert!(refused.contains("scale_vec::4X` is known here"), "{refused}");
}
