//! Instructions of common kernels, in small kernels as a compiler writes them.

use gauntlet_ptx::{Kernel, Launch, Memory, run};

use super::words_at;

/// Runs a kernel whose parameters are the address of words and a number.
fn words(
    body: &str,
    grid: [u32; 3],
    block: [u32; 3],
    words: &[u32],
    number: u32,
) -> Result<Vec<u32>, String> {
    let text = format!(
        ".visible .entry one(
  .param .u64 .ptr .align 1 one_param_0,
  .param .u32 one_param_1
)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .f32 %f<8>;
.reg .b64 %rd<8>;
.shared .align 4 .f32 single;
.shared .align 4 .b8 staged[256];
ld.param.u64 %rd0, [one_param_0];
ld.param.u32 %r10, [one_param_1];
cvta.to.global.u64 %rd0, %rd0;
mov.u32 %r0, %tid.x;
{body}
ret;
}}"
    );
    let kernel = Kernel::read(&text, "one").map_err(|error| error.to_string())?;
    let mut memory = Memory::new();
    let address = memory.allocate(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    let mut parameter = address.to_le_bytes().to_vec();
    parameter.extend(number.to_le_bytes());
    let launch = Launch {
        parameter: &parameter,
        ..Launch::of(&kernel, grid, block)
    };
    run(&[launch], &mut memory, 3).map_err(|error| error.to_string())?;
    Ok(words_at(&memory, address))
}

const OWN_WORD: &str = "mul.wide.u32 %rd1, %r0, 4; add.s64 %rd1, %rd0, %rd1;";

#[test]
fn a_signed_number_fills_a_wider_register() {
    let loaded = |data_type: &str| {
        let body = format!(
            "ld.global.{data_type} %rd2, [%rd0]; setp.lt.s64 %p0, %rd2, 0; selp.u32 %r1, 1, 0, %p0; st.global.u32 [%rd0], %r1;"
        );
        words(&body, [1; 3], [1; 3], &[u32::MAX], 0).unwrap()
    };
    assert_eq!((loaded("s32"), loaded("u32")), (vec![1], vec![0]));
}

#[test]
fn a_warp_sums_with_shuffles_and_votes() {
    let body = format!(
        "{OWN_WORD} ld.global.nc.u32 %r1, [%rd1];
        shfl.sync.down.b32 %r2|%p1, %r1, 16, 31, -1; @%p1 add.s32 %r1, %r1, %r2;
        shfl.sync.down.b32 %r2|%p1, %r1, 8, 31, -1; @%p1 add.s32 %r1, %r1, %r2;
        shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, -1; @%p1 add.s32 %r1, %r1, %r2;
        shfl.sync.down.b32 %r2|%p1, %r1, 2, 31, -1; @%p1 add.s32 %r1, %r1, %r2;
        shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, -1; @%p1 add.s32 %r1, %r1, %r2;
        setp.ne.s32 %p2, %r0, 0;
        vote.sync.ballot.b32 %r3, %p2, -1;
        @%p2 bra DONE;
        st.global.v2.u32 [%rd0], {{%r1, %r3}};
        DONE:"
    );
    let numbers: Vec<u32> = (0..32).collect();
    let found = words(&body, [1; 3], [32, 1, 1], &numbers, 0).unwrap();
    assert_eq!(found[..2], [496, u32::MAX - 1]);
}

#[test]
fn lanes_of_a_mask_go_on_without_the_others() {
    // The upper half has ended; the lower half exchanges among itself, in segments of eight lanes.
    let body = format!(
        "{OWN_WORD} setp.gt.u32 %p0, %r0, 15; @%p0 bra END;
        shfl.sync.up.b32 %r1, %r0, 1, 6144, 65535;
        redux.sync.add.s32 %r2, %r0, 65535;
        add.s32 %r1, %r1, %r2;
        bar.warp.sync 65535;
        st.global.u32 [%rd1], %r1; END:"
    );
    let found = words(&body, [1; 3], [32, 1, 1], &[0; 32], 0).unwrap();
    let expected: Vec<u32> = (0..16_u32)
        .map(|lane| 120 + if lane % 8 == 0 { lane } else { lane - 1 })
        .collect();
    assert_eq!(found[..16], expected);
    let reads_an_ended_lane =
        "setp.gt.u32 %p0, %r0, 15; @%p0 bra END; shfl.sync.bfly.b32 %r1, %r0, 16, 31, -1; END:";
    let fault = words(reads_an_ended_lane, [1; 3], [32, 1, 1], &[0], 0).unwrap_err();
    assert!(fault.contains("lane 0 takes the value of lane 16"), "{fault}");
}

#[test]
fn blocks_of_any_shape_add_atomically_to_all_memories() {
    // 3 × 2 blocks of 5 × 3 threads: each thread counts at its block's y, in shared memory first.
    let body = "
        mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %r0;
        mov.u32 %r4, staged; cvt.u64.u32 %rd2, %r4; cvta.shared.u64 %rd3, %rd2;
        setp.ne.s32 %p0, %r3, 0; @%p0 bra READY; st.shared.u32 [staged], 0;
        READY: bar.sync 0;
        atom.add.u32 %r5, [%rd3], 1;
        bar.sync 0;
        @%p0 bra DONE;
        ld.u32 %r6, [%rd3];
        mov.u32 %r7, %ctaid.y; mul.wide.u32 %rd4, %r7, 4; add.s64 %rd4, %rd0, %rd4;
        red.global.add.u32 [%rd4], %r6;
        mov.f32 %f1, 0f3F000000;
        red.global.add.f32 [%rd0+8], %f1;
        atom.global.cas.b32 %r8, [%rd0+12], 7, %r10;
        atom.global.max.s32 %r9, [%rd0+16], %r7;
        DONE:";
    let found = words(body, [3, 2, 1], [5, 3, 1], &[0, 0, 0, 7, u32::MAX], 9).unwrap();
    assert_eq!(found, [45, 45, 3.0_f32.to_bits(), 9, 1]);
}

#[test]
fn a_thread_that_left_is_not_waited_for() {
    let body = format!(
        "{OWN_WORD} setp.ge.u32 %p0, %r0, %r10; @%p0 bra END;
        bar.sync 0; st.global.u32 [%rd1], 1; END:"
    );
    let found = words(&body, [1; 3], [50, 1, 1], &[0; 50], 40).unwrap();
    assert_eq!(found.iter().sum::<u32>(), 40);
}

#[test]
fn what_is_not_known_is_named() {
    let refused = |body: &str| words(body, [1; 3], [32, 1, 1], &[0], 0).unwrap_err();
    for (body, message) in [
        (
            "call.uni (%r1), helper, (%r0);",
            "unsupported: a call of `helper`, whose code the PTX does not have",
        ),
        ("add.rz.f32 %f1, %f1, %f1;", "no such instruction here"),
        (
            "setp.lt.s32 %p1|%p2, %r0, 1;",
            "no such instruction with these operands here",
        ),
        ("bar.red.xor.pred %p1, 0, %p1;", "no such vote at a barrier here"),
        (
            "atom.global.mul.u32 %r1, [%rd0], 1;",
            "no such atomic operation here",
        ),
    ] {
        let found = refused(body);
        assert!(found.contains(message) && found.contains("line 1"), "{found}");
    }
}

#[test]
fn eight_words_are_accessed_at_once() {
    let body = "setp.ne.u32 %p0, %r0, 0; @%p0 bra END;
        ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd0];
        st.global.v8.b32 [%rd0+32], {%r8, %r7, %r6, %r5, %r4, %r3, %r2, %r1}; END:";
    let found = words(body, [1; 3], [32, 1, 1], &(0..16).collect::<Vec<_>>(), 0).unwrap();
    assert_eq!(found[8..], [7, 6, 5, 4, 3, 2, 1, 0]);
}

#[test]
fn a_trap_ends_the_launch() {
    let body = "setp.eq.u32 %p0, %r0, %r10; @%p0 trap;";
    assert!(words(body, [1; 3], [32, 1, 1], &[0], 40).is_ok());
    let fault = words(body, [1; 3], [32, 1, 1], &[0], 4).unwrap_err();
    assert!(
        fault.contains("thread 4") && fault.contains("with an error here"),
        "{fault}"
    );
}
