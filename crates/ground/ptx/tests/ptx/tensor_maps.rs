//! Tensor maps that a kernel changes itself, and the faults detected then.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_ptx::{Fault, Kernel, Launch, Memory, Swizzle, TensorMap, run};

use super::words_at;

/// Runs one warp with 64 words of input, the map of its first four rows of eight words, and 64 words of output of which the
/// first 32 get what the copies brought to shared memory. `%rd2` is a place for a map in global memory.
fn launched(body: &str, seed: u64) -> Result<Vec<u32>, Fault> {
    let text = format!(
        ".extern .shared .align 1024 .b8 memory[];
.visible .entry one(.param .u64 one_param_0, .param .u64 one_param_1, .param .u64 one_param_2, .param .u64 one_param_3)
{{
.reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %rd<16>;
ld.param.u64 %rd0, [one_param_0]; ld.param.u64 %rd1, [one_param_1]; ld.param.u64 %rd2, [one_param_2];
ld.param.u64 %rd3, [one_param_3];
mov.u32 %r0, %tid.x; mov.u32 %r1, memory; add.u32 %r2, %r1, 512; add.u32 %r3, %r1, 256; setp.ne.u32 %p0, %r0, 0;
@%p0 bra PREPARED; mbarrier.init.shared::cta.b64 [%r2], 1; PREPARED: bar.sync 0;
{body}
mul.lo.u32 %r4, %r0, 4; add.u32 %r5, %r1, %r4; ld.shared.u32 %r6, [%r5];
cvt.u64.u32 %rd4, %r4; add.u64 %rd4, %rd4, %rd3; st.global.u32 [%rd4], %r6;
ret;
}}"
    );
    let kernel = Kernel::read(&text, "one").unwrap();
    let mut memory = Memory::new();
    let input = memory.allocate((0..64_u32).flat_map(u32::to_le_bytes).collect());
    let map = TensorMap {
        address: input,
        element_bytes: 4,
        sizes: vec![8, 4],
        strides: vec![32],
        boxes: vec![8, 4],
        swizzle: Swizzle::None,
    };
    let template = memory.allocate(map.encode().to_vec());
    let own = memory.allocate_unwritten(128);
    let output = memory.allocate_unwritten(128);
    let parameter = [input, template, own, output].map(u64::to_le_bytes).concat();
    let launch = Launch {
        shared_bytes: 1024,
        parameter: &parameter,
        ..Launch::of(&kernel, [1, 1, 1], [32, 1, 1])
    };
    run(&[launch], &mut memory, seed)?;
    Ok(words_at(&memory, output))
}

fn fault(body: &str) -> String {
    launched(body, 0).unwrap_err().to_string()
}

/// The first lane copies the map, word by word, to where `to` says.
fn copied(space: &str, to: &str) -> String {
    let words = (0..16).map(|word| {
        let offset = 8 * word;
        format!("ld.global.u64 %rd5, [%rd1+{offset}]; st.{space}.u64 [{to}+{offset}], %rd5;\n")
    });
    words.collect()
}

/// Makes the map describe the first four words of each of the last two rows.
const REPLACED: &str = "add.u64 %rd6, %rd0, 192;
    tensormap.replace.tile.global_address.SPACE.b1024.b64 [MAP], %rd6;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [MAP], 0, 4;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [MAP], 1, 2;
    mov.u64 %rd7, 32; tensormap.replace.tile.global_stride.SPACE.b1024.b64 [MAP], 0, %rd7;\n";
const RELEASE: &str = "fence.proxy.tensormap::generic.release.gpu;\n";
const ACQUIRE: &str = "fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n";
const COPY: &str = "mov.u32 %r8, 0; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r8, %r8}], [%r2];\n";
const WAIT: &str = "COME: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra COME;\n";

fn replaced(space: &str, map: &str) -> String {
    REPLACED.replace("SPACE", space).replace("MAP", map)
}

/// One thread changes a map in global memory and copies by it.
fn in_global_memory() -> String {
    let (copied, replaced) = (copied("global", "%rd2"), replaced("global", "%rd2"));
    format!("@%p0 bra WAIT;\n{copied}{replaced}{RELEASE}{ACQUIRE}{COPY}WAIT: {WAIT}")
}

/// One thread changes a map in shared memory, and its warp publishes it.
fn in_shared_memory() -> String {
    let (copied, replaced) = (copied("shared", "%r3"), replaced("shared::cta", "%r3"));
    format!(
        "@%p0 bra PUBLISH;\n{copied}{replaced}PUBLISH: bar.warp.sync -1;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r3], 128;
        @%p0 bra WAIT;\n{ACQUIRE}{COPY}WAIT: {WAIT}"
    )
}

#[test]
fn a_changed_map_brings_what_it_describes() {
    let row = |first: u32| (first..first + 4).chain([0; 4]);
    let expected: Vec<u32> = row(48).chain(row(56)).chain([0; 16]).collect();
    for seed in 0..8 {
        assert_eq!(launched(&in_global_memory(), seed).unwrap(), expected);
        assert_eq!(launched(&in_shared_memory(), seed).unwrap(), expected);
    }
}

#[test]
fn a_map_without_its_fences_is_a_fault() {
    let no_release = in_global_memory().replace(RELEASE, "");
    assert!(fault(&no_release).contains("no release fence since"));
    let no_acquire = in_global_memory().replace(ACQUIRE, "");
    assert!(fault(&no_acquire).contains("no acquire fence on it since"));
    let too_early =
        in_global_memory().replace(&format!("{RELEASE}{ACQUIRE}"), &format!("{ACQUIRE}{RELEASE}"));
    assert!(fault(&too_early).contains("no acquire fence on it since"));
    let published = in_shared_memory().replace(ACQUIRE, "");
    assert!(fault(&published).contains("no acquire fence on it since"));
    // Ordinary stores change a map too.
    let stored = in_global_memory().replace(&replaced("global", "%rd2"), "");
    assert!(launched(&stored, 0).is_ok());
    let unfenced = stored.replace(ACQUIRE, "");
    assert!(fault(&unfenced).contains("no acquire fence on it since"));
}

#[test]
fn a_map_that_changes_under_a_copy_is_a_fault() {
    let again = "tensormap.replace.tile.global_dim.global.b1024.b32 [%rd2], 1, 1;\n";
    let under = in_global_memory().replace(COPY, &format!("{COPY}{again}"));
    let found: Vec<_> = (0..8).filter_map(|seed| launched(&under, seed).err()).collect();
    assert!(!found.is_empty());
    for fault in found {
        let text = fault.to_string();
        assert!(
            text.ends_with("a tensor map changes while a copy that reads it is on its way"),
            "{text}"
        );
    }
    let after = in_global_memory() + again;
    for seed in 0..8 {
        assert!(launched(&after, seed).is_ok());
    }
}

#[test]
fn what_cannot_be_replaced_is_named() {
    let refused = |line: &str| {
        let text = format!(".visible .entry one()\n{{\n.reg .b64 %rd<2>; .reg .b32 %r<2>;\n{line}\n}}");
        Kernel::read(&text, "one").unwrap_err().to_string()
    };
    assert!(
        refused("tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd0], 1;")
            .ends_with("no replacement of `swizzle_mode` in a tensor map here")
    );
    assert!(
        refused("tensormap.replace.tile.global_dim.global.b1024.b32 [%rd0], 5, %r0;")
            .ends_with("a map has no dimension 5 here")
    );
    assert!(
        refused("fence.proxy.tensormap::generic.acquire.gpu [%rd0], 64;")
            .ends_with("64 bytes of a tensor map, which has 128")
    );
    let none = in_global_memory().replace(&copied("global", "%rd2"), "");
    assert!(fault(&none).ends_with("what is taken for a tensor map is none"));
}
