//! Copies to tensor memory, and its loads and stores.

use gauntlet_ptx::{Fault, Kernel, Launch, Memory, run};

/// Runs 128 threads that allocate 64 columns, do as `body` says, and then each load eight columns of its lane.
fn lanes(body: &str, seed: u64) -> Result<Vec<[u32; 8]>, Fault> {
    let text = format!(
        ".extern .shared .align 1024 .b8 memory[];
.visible .entry one(.param .u64 one_param_0)
{{
.reg .pred %p<4>; .reg .b32 %r<32>; .reg .b64 %rd<8>;
ld.param.u64 %rd0, [one_param_0];
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, memory;
setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r1, 0;
@!%p0 mbarrier.init.shared::cta.b64 [%r2+8192], 1;
@%p1 bra ALLOCATED;
add.u32 %r3, %r2, 8200; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], 64;
ALLOCATED: bar.sync 0; ld.shared.u32 %r4, [%r2+8200];
shl.b32 %r5, %r1, 21; add.u32 %r5, %r5, %r4;
{body}
tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}}, [%r5];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd1, %r0, 32; add.u64 %rd1, %rd1, %rd0;
st.global.v8.b32 [%rd1], {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}};
bar.sync 0; @%p1 bra END; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 64;
END: ret;
}}"
    );
    let kernel = Kernel::read(&text, "one").unwrap();
    let mut memory = Memory::new();
    let output = memory.allocate_unwritten(128 * 32);
    let parameter = output.to_le_bytes();
    let launch = Launch {
        shared_bytes: 8208,
        parameter: &parameter,
        ..Launch::of(&kernel, [1; 3], [128, 1, 1])
    };
    run(&[launch], &mut memory, seed)?;
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let lanes = memory.contents(output).unwrap().chunks_exact(32);
    Ok(lanes
        .map(|lane| std::array::from_fn(|index| word(&lane[4 * index..4 * index + 4])))
        .collect())
}

/// Each thread stores 16 words of shared memory, each the index of the word; one copies them by `copy`.
fn copied(copy: &str, descriptor: u64) -> String {
    format!(
        "shl.b32 %r6, %r0, 6; add.u32 %r6, %r6, %r2; shl.b32 %r7, %r0, 4; mov.u32 %r8, 0;
FILL: st.shared.u32 [%r6], %r7; add.u32 %r6, %r6, 4; add.u32 %r7, %r7, 1; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 16; @%p2 bra FILL;
fence.proxy.async.shared::cta; bar.sync 0; @%p0 bra COPIED;
cvt.u64.u32 %rd2, %r2; shr.u64 %rd2, %rd2, 4; and.b64 %rd2, %rd2, 16383; add.u64 %rd2, %rd2, {descriptor};
tcgen05.cp.cta_group::1.{copy} [%r4], %rd2; add.u32 %r9, %r2, 8192;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r9];
COPIED: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2+8192], 0; @!%p3 bra COPIED; tcgen05.fence::after_thread_sync;"
    )
}

#[test]
fn copies_find_rows_in_pieces_of_eight() {
    // Pieces of eight rows of 16 bytes; the next rows 512 bytes further, and the next bytes 128 or 256.
    let descriptor = |leading: u64| (leading >> 4) << 16 | (512 >> 4) << 32 | 1 << 46;
    let word = |row: usize, word: usize, leading: usize| {
        (row / 8 * 128 + row % 8 * 4 + word / 4 * leading / 4 + word % 4) as u32
    };
    let wide = lanes(&copied("128x256b", descriptor(256)), 1).unwrap();
    let narrow = lanes(&copied("128x128b", descriptor(128)), 2).unwrap();
    let all = lanes(&copied("32x128b.warpx4", descriptor(128)), 3).unwrap();
    for row in 0..128 {
        assert_eq!(
            wide[row],
            std::array::from_fn(|one| word(row, one, 256)),
            "row {row}"
        );
        let four = |row| std::array::from_fn(|one| if one < 4 { word(row, one, 0) } else { u32::MAX });
        assert_eq!((narrow[row], all[row]), (four(row), four(row % 32)), "row {row}");
    }
}

#[test]
fn what_a_warp_has_stored_it_loads_after_a_wait() {
    let stored = |wait: &str| {
        format!(
            "add.u32 %r6, %r5, 2; add.u32 %r7, %r0, 100;
tcgen05.st.sync.aligned.32x32b.x2.b32 [%r6], {{%r0, %r7}}; mov.u32 %r7, 0; {wait}"
        )
    };
    let found = lanes(&stored("tcgen05.wait::st.sync.aligned;"), 0).unwrap();
    for (lane, found) in found.into_iter().enumerate() {
        let none = u32::MAX;
        let expected = [none, none, lane as u32, 100 + lane as u32, none, none, none, none];
        assert_eq!(found, expected);
    }
    let fault = lanes(&stored(""), 0).unwrap_err().to_string();
    assert!(fault.contains("has stored without a wait"), "{fault}");
}
