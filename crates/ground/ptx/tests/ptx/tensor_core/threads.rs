//! Operations of two threads that fences order: one thread copies scales, another multiplies.

use super::kernel::{Case, STAGES, Swizzle};
use super::{CASE, wrong};

const SHALLOW: Case = Case {
    columns: 8,
    depth: 64,
    chunk: 64,
    swizzle: Swizzle::Bytes32,
    ..CASE
};

/// The kernel in which the first thread of warp 2 copies the scales, and that of warp 1 does the rest.
fn divided(before: &str, after: &str) -> String {
    let barrier = STAGES * SHALLOW.stage_bytes() + 48;
    let text = SHALLOW.text();
    let replaced = |text: String, part: &str, by: &str| {
        assert_eq!(text.matches(part).count(), 1, "{part}");
        text.replace(part, by)
    };
    let text = replaced(
        text,
        "fence.mbarrier_init.release.cluster;",
        &format!("mbarrier.init.shared::cta.b64 [%r2+{barrier}], 1; fence.mbarrier_init.release.cluster;"),
    );
    let text = replaced(
        text,
        "setp.ne.u32 %p4, %r0, 32; @%p4 bra ISSUED;",
        "setp.eq.u32 %p6, %r0, 64; setp.eq.u32 %p7, %r0, 32; or.pred %p4, %p6, %p7; @!%p4 bra ISSUED;",
    );
    let text = replaced(text, "@!%p2 bra FULL0;", "@!%p2 bra FULL0; @%p7 bra MULTIPLY;");
    replaced(
        text,
        "add.u64 %rd6,",
        &format!(
            "{before} mbarrier.arrive.shared::cta.b64 _, [%r2+{barrier}]; bra ISSUED;
MULTIPLY: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+{barrier}], 0; @!%p2 bra MULTIPLY; {after}
add.u64 %rd6,"
        ),
    )
}

#[test]
fn copies_of_another_thread_come_first_if_fences_say_so() {
    let (before, after) = (
        "tcgen05.fence::before_thread_sync;",
        "tcgen05.fence::after_thread_sync;",
    );
    let seen = |before, after| (0..12).filter_map(move |seed| wrong(&divided(before, after), SHALLOW, seed));
    assert_eq!(seen(before, after).next(), None);
    // The commit then covers the product, and not the copies, which may also be late.
    for (before, after) in [("", after), (before, "")] {
        let seen: Vec<_> = seen(before, after).collect();
        assert!(
            seen.iter().any(|seen| seen.contains("has not been committed")),
            "{seen:?}"
        );
    }
}
