//! What blocks of a cluster do together: copies to several blocks, arrivals at each other's barriers, and their own barrier.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_ptx::{Fault, Kernel, Launch, Memory, Swizzle, TensorMap, run};

use super::words_at;

/// Runs blocks of 32 threads, two a cluster, with 64 words of input, a tensor map of them as rows of eight, and 64 words of
/// output.
fn launched(body: &str, seed: u64) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".extern .shared .align 1024 .b8 memory[];
.visible .entry one(.param .u64 one_param_0, .param .u64 one_param_1, .param .u64 one_param_2)
{{
.reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<24>; .reg .b64 %rd<12>;
ld.param.u64 %rd0, [one_param_0]; ld.param.u64 %rd1, [one_param_1]; ld.param.u64 %rd2, [one_param_2];
mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, memory; add.u32 %r3, %r2, 512;
setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0;
mov.u32 %r4, %ctaid.x; shl.b32 %r4, %r4, 7; shl.b32 %r5, %r0, 2; add.u32 %r4, %r4, %r5;
cvt.u64.u32 %rd3, %r4; add.u64 %rd3, %rd3, %rd2;
{body}
END: ret;
}}"
    );
    let kernel = Kernel::read(&text, "one").unwrap();
    let mut memory = Memory::new();
    let input = memory.allocate((0..64_u32).flat_map(u32::to_le_bytes).collect());
    let output = memory.allocate_unwritten(256);
    let map = |address| TensorMap {
        address,
        element_bytes: 4,
        sizes: vec![8, 8],
        strides: vec![32],
        boxes: vec![8, 4],
        swizzle: Swizzle::Bytes32,
    };
    let maps = [map(input).encode(), map(output).encode()].concat();
    let maps = memory.allocate(maps);
    let parameter = [input, maps, output].map(u64::to_le_bytes).concat();
    let launch = Launch {
        cluster: 2,
        shared_bytes: 1024,
        parameter: &parameter,
        ..Launch::of(&kernel, [2, 1, 1], [32, 1, 1])
    };
    run(&[launch], &mut memory, seed)?;
    Ok(words_at(&memory, output))
}

fn fault(body: &str) -> String {
    launched(body, 0).unwrap_err().to_string()
}

const MEET: &str = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
const STORE: &str = "add.u32 %r6, %r2, %r5; ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd3], %r7;";

/// Each block copies half of what both get.
fn multicast() -> String {
    format!(
        "@%p0 bra PREPARED;
        mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
        PREPARED: {MEET} @%p0 bra WAIT;
        shl.b32 %r8, %r1, 6; cvt.u64.u32 %rd4, %r8; add.u64 %rd4, %rd4, %rd0; add.u32 %r8, %r8, %r2; mov.b16 %h0, 3;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r8], [%rd4], 64, [%r3], %h0;
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra WAIT; {STORE}"
    )
}

#[test]
fn a_multicast_reaches_all_blocks_of_its_mask() {
    let expected: Vec<u32> = (0..32).chain(0..32).collect();
    for seed in 0..8 {
        assert_eq!(launched(&multicast(), seed).unwrap(), expected);
    }
    let one = multicast().replace("mov.b16 %h0, 3;", "mov.b16 %h0, 1;");
    assert!(fault(&one).starts_with("nothing goes on"));
    let beyond = multicast().replace("mov.b16 %h0, 3;", "mov.b16 %h0, 4;");
    assert!(fault(&beyond).contains("no block of rank 2"));
    let none = multicast().replace("mov.b16 %h0, 3;", "mov.b16 %h0, 0;");
    assert!(fault(&none).contains("to no block"));
    // An address that lies in no block of the cluster.
    let nowhere = PAIR
        .replace("[%r2], [%rd1", "[%r13], [%rd1")
        .replace("shl.b32 %r10", "not.b32 %r13, %r2; shl.b32 %r10");
    let problem = fault(&nowhere);
    assert!(problem.contains("to the block of rank 25"), "{problem}");
}

/// Both blocks copy a box each, and signal the even block's barrier, which then tells the odd one.
const PAIR: &str = "and.b32 %r9, %r3, 4278190079; @%p0 bra PREPARED;
    mbarrier.init.shared::cta.b64 [%r3], 2; mbarrier.init.shared::cta.b64 [%r3+8], 1;
    PREPARED: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; @%p0 bra WAIT;
    mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r9], 128; shl.b32 %r10, %r1, 2;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r2], [%rd1, {0, %r10}], [%r9];
    @%p1 bra WAIT;
    BOTH: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra BOTH;
    mov.u32 %r11, 0; TELL: mapa.shared::cluster.u32 %r12, %r3, %r11;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12+8]; add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, 2; @%p3 bra TELL;
    WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3+8], 0; @!%p2 bra WAIT;";

#[test]
fn a_pair_waits_at_the_barrier_of_its_even_block() {
    // Rows of 32 bytes with the 32-byte swizzle, which exchanges the halves of every other four rows: the box begins at a multiple of 1024.
    let swizzled = |index: usize| (index ^ (index / 32 % 2) << 2) as u32;
    let expected: Vec<u32> = (0..64)
        .map(|index| 32 * (index as u32 / 32) + swizzled(index % 32))
        .collect();
    for seed in 0..8 {
        assert_eq!(launched(&format!("{PAIR} {STORE}"), seed).unwrap(), expected);
    }
    let alone = PAIR.replace(".cta_group::2", "");
    assert!(fault(&alone).contains("with .cta_group::2 it may be the other block of the pair"));
    let early = PAIR.replace("@!%p2 bra WAIT;", "");
    assert!((0..20).any(|seed| launched(&format!("{early} {STORE}"), seed) != Ok(expected.clone())));
}

#[test]
fn a_box_is_stored_to_a_tensor() {
    let store = format!(
        "{PAIR} @%p0 bra END;
        add.u64 %rd5, %rd1, 128; cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd5, {{0, %r10}}], [%r2];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    );
    assert_eq!(launched(&store, 3).unwrap(), (0..64).collect::<Vec<u32>>());
    let beyond = store.replace("{0, %r10}], [%r2];", "{2, %r10}], [%r2];");
    let found = launched(&beyond, 3).unwrap();
    assert_eq!(
        (found[1], found[2], found[7], found[8]),
        (u32::MAX, 0, 5, u32::MAX)
    );
}

#[test]
fn a_cluster_s_barrier_waits_for_threads_that_are_left() {
    // Half of the odd block's threads end at once. Between arrival and wait, a thread may wait for another that waits already.
    let body = format!(
        "setp.gt.u32 %p2, %r0, 15; and.pred %p2, %p2, %p1; @%p2 bra END;
        @%p0 bra PREPARED; mbarrier.init.shared::cta.b64 [%r3], 1; PREPARED: {MEET}
        barrier.cluster.arrive.relaxed; @%p0 bra ARRIVED;
        mbarrier.arrive.shared::cta.b64 _, [%r3];
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0; @!%p3 bra WAIT;
        ARRIVED: barrier.cluster.wait.acquire; st.global.u32 [%rd3], %r0;"
    );
    for seed in 0..8 {
        let found = launched(&body, seed).unwrap();
        assert_eq!((found[31], found[47], found[48]), (31, 15, u32::MAX));
    }
    assert!(fault("barrier.cluster.wait.acquire;").contains("without having arrived"));
    assert!(
        fault("barrier.cluster.arrive.relaxed; barrier.cluster.arrive.relaxed;").contains("again before")
    );
}

#[test]
fn addresses_of_another_block_are_not_its_own() {
    let other = "xor.b32 %r6, %r1, 1; mapa.shared::cluster.u32 %r6, %r2, %r6; ld.shared.u32 %r7, [%r6];";
    let problem = fault(other);
    assert!(problem.contains("used as one of the own block's"), "{problem}");
    let body = "mov.u32 %r6, %cluster_nctarank; mov.u32 %r7, %clusterid.x; mov.u32 %r8, %nclusterid.x; mov.u32 %r9, %warpid;
        mad.lo.u32 %r6, %r6, 10, %r7; mad.lo.u32 %r6, %r6, 10, %r8; mad.lo.u32 %r6, %r6, 10, %r9; st.global.u32 [%rd3], %r6;";
    assert!(launched(body, 0).unwrap().iter().all(|word| *word == 2010));
}

#[test]
fn one_lane_of_a_mask_is_elected() {
    let body = "setp.lt.u32 %p2, %r0, 5; @%p2 bra END; elect.sync %r6|%p3, -32; selp.b32 %r6, 100, %r6, %p3; st.global.u32 [%rd3], %r6;";
    let found = launched(body, 0).unwrap();
    assert_eq!((found[5], found[6], found[31]), (100, 5, 5));
}
