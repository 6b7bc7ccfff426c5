//! The header `products.cuh`: `wgmma` for attention, in three operand formats, with sums that are continued or
//! restarted.
//!
//! As in [`super::wgmma`], the instruction names each accumulator register, so each width needs its own text (PTX ISA,
//! "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions").

use std::fmt::Write;
use std::sync::LazyLock;

/// Widths that attention's tiles use: keys of a step, and head sizes.
const WIDTHS: [usize; 8] = [32, 64, 96, 128, 160, 192, 224, 256];

/// Operand formats: their tag in the header, the instruction's name for them, and its depth.
const FORMATS: [(&str, &str, usize); 3] = [("Half", "f16", 16), ("Brain", "bf16", 16), ("Eight", "e4m3", 32)];

const PREFACE: &str = "\
// wgmma.mma_async m64nNkK with fp32 sums; written by src/source/products.rs. `add` false starts a new sum.
#pragma once
#include \"problem.cuh\"

struct Half {};
struct Brain {};
struct Eight {};
template <class Format, int N> struct Product;
";

/// The header: `Product<Format, N>::shared` takes both operands from shared memory, `registers` the rows from registers,
/// and `registers_turned` likewise with columns that lie column first (16-bit formats only); fences, commits and waits are
/// the caller's.
pub(super) fn header() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = PREFACE.to_owned();
        for (tag, format, depth) in FORMATS {
            for width in WIDTHS {
                text += &structure(tag, format, depth, width);
            }
        }
        text
    });
    &TEXT
}

fn structure(tag: &str, format: &str, depth: usize, width: usize) -> String {
    let sums = width / 2;
    let names = |range: std::ops::Range<usize>| {
        let names: Vec<_> = range.map(|index| format!("%{index}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let outputs: Vec<_> = (0..sums).map(|index| format!("\"+f\"(sums[{index}])")).collect();
    let (results, outputs) = (names(0..sums), outputs.join(", "));
    let instruction = format!("wgmma.mma_async.sync.aligned.m64n{width}k{depth}.f32.{format}.{format}");
    let mut text = format!("\ntemplate <> struct Product<{tag}, {width}> {{\n");
    // The immediates after the predicate: signs of both operands, then, for 16-bit formats alone, the transposition of
    // each operand that comes from shared memory.
    let mut function = |name: &str, registers: bool, immediates: &str| {
        let (parameter, operand, constraint, add) = if registers {
            (
                "const u32 (&rows)[4]",
                names(sums..sums + 4),
                "\"r\"(rows[0]), \"r\"(rows[1]), \"r\"(rows[2]), \"r\"(rows[3])",
                sums + 5,
            )
        } else {
            ("u64 rows", format!("%{sums}"), "\"l\"(rows)", sums + 2)
        };
        let _ = write!(
            text,
            "  static __device__ __forceinline__ void {name}(float (&sums)[{sums}], {parameter}, u64 columns, bool add) {{
    asm volatile(\"{{ .reg .pred add; setp.ne.b32 add, %{add}, 0; {instruction} {results}, {operand}, %{columns}, add, {immediates}; }}\"
      : {outputs}
      : {constraint}, \"l\"(columns), \"r\"((u32)add));
  }}
",
            columns = add - 1,
        );
    };
    if depth == 16 {
        function("shared", false, "1, 1, 0, 0");
        function("registers", true, "1, 1, 0");
        function("registers_turned", true, "1, 1, 1");
    } else {
        function("shared", false, "1, 1");
        function("registers", true, "1, 1");
    }
    text + "};\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_every_width_and_its_own_functions() {
        for (tag, format, depth) in FORMATS {
            for width in WIDTHS {
                let text = header()
                    .split(&format!("template <> struct Product<{tag}, {width}> "))
                    .nth(1)
                    .and_then(|text| text.split("template <>").next())
                    .unwrap();
                let functions = if depth == 16 { 3 } else { 2 };
                let instruction = format!("m64n{width}k{depth}.f32.{format}.{format}");
                assert_eq!(text.matches(&instruction).count(), functions, "{tag} {width}");
                assert_eq!(
                    text.matches("\"+f\"").count(),
                    functions * width / 2,
                    "{tag} {width}"
                );
            }
        }
    }
}
