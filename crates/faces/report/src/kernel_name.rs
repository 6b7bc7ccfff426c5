//! Names of C++ kernels as people know them.

/// The namespaces and the name of a C++ function from the symbol that a compiler makes of it, without template arguments and
/// parameters: `at::native::elementwise_kernel` for `_ZN2at6native18elementwise_kernelILi128E…`. Other names stay as they are, and so
/// does what this does not know, such as operators. Symbols may be cut off at their end.
///
/// They are built as the Itanium C++ ABI says (chapter 5.1, *External Names*): identifiers follow their lengths, between `N` and
/// `E` if there are several.
pub fn readable(symbol: &str) -> String {
    name(symbol).unwrap_or_else(|| symbol.to_owned())
}

/// None if it is no such symbol.
fn name(symbol: &str) -> Option<String> {
    let encoding = symbol.strip_prefix("_Z")?;
    let is_nested = encoding.starts_with('N');
    let mut rest = encoding.trim_start_matches(['N', 'L', 'K']);
    rest = rest.strip_prefix("St").unwrap_or(rest);
    let mut parts = Vec::new();
    while let Some((identifier, after)) = identifier(rest) {
        // An anonymous namespace has a name by which the compiler tells it from those of other files.
        if !identifier.starts_with("_GLOBAL__N_") {
            parts.push(identifier);
        }
        rest = after;
        if !is_nested {
            break;
        }
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

/// An identifier with its length before it, and what follows.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    let end = length.min(rest.len());
    Some((rest.get(..end)?, rest.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn symbols_of_functions_become_names() {
        for (symbol, name) in [
            (
                "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEviT0_",
                "at::native::vectorized_elementwise_kernel",
            ),
            (
                "_ZN43_GLOBAL__N__b6de9c8c_10_SoftMax_cu_9f978f6320softmax_warp_forwardIfffLi10ELb0EEEvPT0_",
                "softmax_warp_forward",
            ),
            ("_Z5scalePfi", "scale"),
            ("_ZL5scalePfi", "scale"),
            ("_ZN7cutlass13device_kernelIN4", "cutlass::device_kernel"),
            // Cut off within an identifier.
            ("_ZN2at6native29vectorized_ele", "at::native::vectorized_ele"),
        ] {
            assert_eq!(readable(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn other_names_stay() {
        for name in [
            "softmax_row",
            "triton_red_fused_0",
            "_Z",
            "_ZplRK1A",
            "_ZN",
            "_Z99999999999999999999x",
            "",
            "_Z1µ",
        ] {
            assert_eq!(readable(name), name);
        }
    }
}
