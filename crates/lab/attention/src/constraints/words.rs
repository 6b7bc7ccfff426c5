//! Words that several rules use.

/// `1, 2 or 4`.
pub(super) fn listed(numbers: &[usize]) -> String {
    let names: Vec<_> = numbers.iter().map(usize::to_string).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
