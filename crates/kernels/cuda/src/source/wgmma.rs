//! The header `wgmma.cuh`: one struct for each width that `wgmma.mma_async` has, too regular to be written by hand.
//!
//! The instruction names each accumulator register, so each width needs its own text (PTX ISA, "Asynchronous Warpgroup
//! Level Matrix Multiply-Accumulate Instructions": shapes m64nNk16, N from 8 to 256 in steps of 8).

use std::sync::LazyLock;

/// Columns of a product that the instruction can compute at once.
pub fn widths() -> impl Iterator<Item = usize> {
    (8..=256).step_by(8)
}

/// The header: `Wgmma<N>::registers` and `Wgmma<N>::shared` add a product of 64 × N × 16 to the sums, which lie as the
/// instruction lays them out; fences, commits and waits are the caller's.
pub(super) fn header() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let structs: String = widths()
            .flat_map(|width| [false, true].map(|brain| structure(width, width / 2, brain)))
            .collect();
        format!("{PREFACE}{structs}")
    });
    &TEXT
}

const PREFACE: &str = "\
// wgmma.mma_async m64nNk16, fp16 or (BRAIN) bf16 operands, fp32 sums; written by src/source/wgmma.rs.
#pragma once
#include \"problem.cuh\"

template <int N, bool BRAIN = false> struct Wgmma;
";

fn structure(width: usize, sums: usize, brain: bool) -> String {
    let format = if brain { "bf16" } else { "f16" };
    let instruction = format!("wgmma.mma_async.sync.aligned.m64n{width}k16.f32.{format}.{format}");
    let list = |range: std::ops::Range<usize>| {
        let names: Vec<_> = range.map(|index| format!("%{index}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let results = list(0..sums);
    let rows = list(sums..sums + 4);
    let outputs: Vec<_> = (0..sums).map(|index| format!("\"+f\"(sums[{index}])")).collect();
    let outputs = outputs.join(", ");
    // The immediates: scale-d (add to the sums), signs of A and B, and transposition of what comes from shared memory.
    format!(
        "
template <> struct Wgmma<{width}, {brain}> {{
  static __device__ __forceinline__ void registers(float (&sums)[{sums}], const u32 (&a)[4], u64 columns) {{
    asm volatile(\"{instruction} {results}, {rows}, %{four}, 1, 1, 1, 0;\"
      : {outputs}
      : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(columns));
  }}
  static __device__ __forceinline__ void shared(float (&sums)[{sums}], u64 rows, u64 columns) {{
    asm volatile(\"{instruction} {results}, %{sums}, %{one}, 1, 1, 1, 0, 0;\"
      : {outputs}
      : \"l\"(rows), \"l\"(columns));
  }}
}};
",
        four = sums + 4,
        one = sums + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_all_widths_and_each_names_its_registers() {
        assert_eq!(widths().count(), 32);
        for width in widths() {
            let head = format!("template <> struct Wgmma<{width}, false> ");
            let text = header().split(&head).nth(1).unwrap();
            let text = text.split("template").next().unwrap();
            let outputs = text.matches("\"+f\"").count();
            assert_eq!(outputs, 2 * width / 2, "{width}");
            assert_eq!(text.matches(&format!("m64n{width}k16")).count(), 2, "{width}");
            // The last operands: the descriptor after four registers, and the second descriptor.
            assert!(
                text.contains(&format!("%{}, 1, 1, 1, 0;", width / 2 + 4)),
                "{width}"
            );
            assert!(
                text.contains(&format!("%{}, %{}, 1, 1, 1, 0, 0;", width / 2, width / 2 + 1)),
                "{width}"
            );
        }
    }
}
