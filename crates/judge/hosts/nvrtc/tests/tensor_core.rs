//! A kernel for the tensor cores of sm_100a, as the compiler makes PTX of it, in the interpreter. Needs NVRTC; without it the test
//! prints a note and passes, unless `GAUNTLET_REQUIRE_COMPILER` is set.

#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_cuda::compiler::File;
use gauntlet_cuda::compiler::{Compiler, UserSource};
use gauntlet_ptx::{Kernel, Launch, Memory, run};
use gauntlet_tensors::e4m3;

const SOURCE: &str = include_str!("kernels/tensor_core.cu");
const ROWS: usize = 128;
const COLUMNS: usize = 72;
const DEPTH: usize = 512;
/// Bytes of the kernel's shared memory: both operands of a chunk, their scales, a barrier and an address.
const SHARED_BYTES: u32 = (ROWS + COLUMNS) as u32 * 128 + 2 * 4 * 512 + 16;

/// The PTX of the kernel with a part of its source replaced.
fn kernel(compiler: &Compiler, right: &str, other: &str) -> Kernel {
    assert!(SOURCE.contains(right));
    let source = UserSource {
        file: File {
            name: "tensor_core.cu",
            text: &SOURCE.replace(right, other),
        },
        headers: &[],
        options: &[],
        kernel: "multiply",
    };
    let ptx = compiler.ptx_of_user(&source, "compute_100a").unwrap();
    Kernel::read(&ptx.text, &ptx.entry).unwrap()
}

/// Codes and scales of rows, from a simple sequence: all codes, and all scales from 2⁻⁶ to 15.
fn operand(rows: usize, begin: usize) -> (Vec<u8>, Vec<u8>) {
    let mixed = |index: usize| (index * 2_654_435_761 + begin) >> 7;
    let codes = (0..rows * DEPTH / 2).map(|index| mixed(index) as u8);
    let scales = (0..rows * DEPTH / 16).map(|index| 8 + (mixed(index) % 80) as u8);
    (codes.collect(), scales.collect())
}

fn values((codes, scales): &(Vec<u8>, Vec<u8>)) -> Vec<f64> {
    const MAGNITUDES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let value = |index: usize| {
        let code = codes[index / 2] >> (4 * (index % 2)) & 0xF;
        let sign = if code & 8 == 0 { 1.0 } else { -1.0 };
        sign * MAGNITUDES[usize::from(code & 7)] * f64::from(e4m3::decode(scales[index / 16]))
    };
    (0..2 * codes.len()).map(value).collect()
}

/// What is wrong with the kernel's results, if anything.
fn wrong(kernel: &Kernel, seed: u64) -> Option<String> {
    let (left, right) = (operand(ROWS, 3), operand(COLUMNS, 11));
    let mut memory = Memory::new();
    let inputs = [&left.0, &left.1, &right.0, &right.1];
    let inputs = inputs.map(|bytes| memory.allocate(bytes.clone()));
    let output = memory.allocate_unwritten(4 * ROWS * COLUMNS);
    let addresses = inputs.into_iter().chain([output]);
    let parameter: Vec<u8> = addresses.flat_map(u64::to_le_bytes).collect();
    let launch = Launch {
        parameter: &parameter,
        shared_bytes: SHARED_BYTES,
        ..Launch::of(kernel, [1; 3], [128, 1, 1])
    };
    if let Err(fault) = run(&[launch], &mut memory, seed) {
        return Some(fault.to_string());
    }
    let found: Vec<f32> = memory
        .contents(output)
        .unwrap()
        .chunks_exact(4)
        .map(|word| f32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let (left, right) = (values(&left), values(&right));
    (0..ROWS * COLUMNS).find_map(|index| {
        let of = |values: &[f64], row: usize| values[row * DEPTH..][..DEPTH].to_vec();
        let (left, right) = (of(&left, index / COLUMNS), of(&right, index % COLUMNS));
        let terms: Vec<f64> = left.iter().zip(&right).map(|(one, other)| one * other).collect();
        let size: f64 = terms.iter().map(|term| term.abs()).sum();
        let error = (f64::from(found[index]) - terms.iter().sum::<f64>()).abs();
        let is_right = error <= size * 2.0_f64.powi(-21);
        (!is_right).then(|| format!("result {index} is off by {error}"))
    })
}

#[test]
fn a_compiled_kernel_is_right_and_its_mistakes_are_seen() {
    let compiler = match Compiler::new() {
        Ok(compiler) => compiler,
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none(), "{error}");
            println!("skipped: {error}");
            return;
        }
    };
    let right = kernel(&compiler, "", "");
    for seed in 0..4 {
        assert_eq!(wrong(&right, seed), None, "seed {seed}");
    }
    for (part, mistake, expected) in [
        ("of_right = of_left + 4", "of_right = of_left", "is off by"),
        ("wait(&shared.done, chunk & 1);", "", ""),
        (
            "\"fence.proxy.async.shared::cta;\"",
            "\"\"",
            "without a fence since (fence.proxy.async)",
        ),
        ("\"tcgen05.wait::ld.sync.aligned;\"", "\"\"", ""),
        (
            "tensor + (u32)(warp << 21)",
            "tensor + (u32)(warp << 20)",
            "it reaches lanes",
        ),
    ] {
        let mistaken = kernel(&compiler, part, mistake);
        let seen: Vec<_> = (0..4).filter_map(|seed| wrong(&mistaken, seed)).collect();
        assert!(
            seen.iter().any(|seen| seen.contains(expected)),
            "{part}: {seen:?}"
        );
    }
}
