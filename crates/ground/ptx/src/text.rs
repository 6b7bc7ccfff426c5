//! Splits PTX text into pieces.

/// A piece of a kernel's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    /// A scope begins: names declared in it are its own.
    Open,
    /// The innermost scope ends.
    Close,
    /// A branch target.
    Label(&'t str),
    /// Anything else, without its semicolon.
    Statement(&'t str),
}

/// The text with comments blanked out; line breaks are kept.
pub(crate) fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The pieces of a text from byte `begin`, just behind the body's opening brace, up to its closing brace; each with the
/// byte at which it begins.
pub(crate) fn pieces(text: &str, begin: usize) -> Vec<(usize, Piece<'_>)> {
    let (mut pieces, mut at, mut depth) = (Vec::new(), begin, 0);
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let rest = &text[at..];
        let (piece, length) = match rest.as_bytes().first() {
            None => break,
            Some(b'{') => (Piece::Open, 1),
            Some(b'}') if depth == 0 => break,
            Some(b'}') => (Piece::Close, 1),
            Some(_) => statement(rest),
        };
        match piece {
            Piece::Open => depth += 1,
            Piece::Close => depth -= 1,
            _ => {}
        }
        pieces.push((at, piece));
        at += length;
    }
    pieces
}

/// A label or a statement, and its length including its terminator.
fn statement(rest: &str) -> (Piece<'_>, usize) {
    let name = rest
        .find(|letter: char| !(letter.is_alphanumeric() || "_$%".contains(letter)))
        .unwrap_or(rest.len());
    if rest[name..].starts_with(':') && !rest[name..].starts_with("::") {
        return (Piece::Label(&rest[..name]), name + 1);
    }
    // Directives of lines end with theirs.
    let is_of_lines = rest.starts_with(".loc\t") || rest.starts_with(".loc ");
    let ends = if is_of_lines { '\n' } else { ';' };
    let end = rest.find(ends).unwrap_or(rest.len());
    (Piece::Statement(rest[..end].trim()), (end + 1).min(rest.len()))
}

/// What stands at the outermost level of a text: statements without their semicolons, and heads with the place behind the opening
/// brace of their body.
pub(crate) fn items(text: &str) -> Vec<(&str, Option<usize>)> {
    let (mut items, mut at) = (Vec::new(), 0);
    while let Some(found) = text[at..].find([';', '{']) {
        let (begin, place) = (at, at + found);
        let head = &text[begin..place];
        let has_body = [".entry", ".func"]
            .iter()
            .any(|word| head.split_whitespace().any(|one| one == *word));
        let closing = |from: usize| {
            let mut depth = 1;
            let close = text[from..].char_indices().find(|(_, letter)| {
                depth += i32::from(*letter == '{') - i32::from(*letter == '}');
                depth == 0
            });
            close.map_or(text.len(), |(close, _)| from + close + 1)
        };
        if text[place..].starts_with(';') {
            items.push((head, None));
            at = place + 1;
        } else if has_body {
            items.push((head, Some(place + 1)));
            at = closing(place + 1);
        } else {
            // The values of a variable, or a section, which has no semicolon.
            let close = closing(place + 1);
            let rest = text[close..].trim_start();
            items.push((&text[begin..close], None));
            at = text.len() - rest.strip_prefix(';').unwrap_or(rest).len();
        }
    }
    items
}

/// Operands, split at the commas outside of brackets.
pub(crate) fn operands(text: &str) -> Vec<&str> {
    let (mut operands, mut begin, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                operands.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    let last = text[begin..].trim();
    if !last.is_empty() {
        operands.push(last);
    }
    operands
}

/// The text between the brackets, if there are any.
pub(crate) fn within(text: &str, brackets: [char; 2]) -> Option<&str> {
    text.strip_prefix(brackets[0])?.strip_suffix(brackets[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_into_scopes_labels_and_statements() {
        let text = "{ a:\n{.reg .pred p;\nld.shared::cta.v2.u32 {x, y}, [z];}\n@!p bra a; } rest";
        let found: Vec<_> = pieces(text, 1).into_iter().map(|(_, piece)| piece).collect();
        let expected = [
            Piece::Label("a"),
            Piece::Open,
            Piece::Statement(".reg .pred p"),
            Piece::Statement("ld.shared::cta.v2.u32 {x, y}, [z]"),
            Piece::Close,
            Piece::Statement("@!p bra a"),
        ];
        assert_eq!(found, expected);
        assert_eq!(operands("{x, y}, [z, {c}], -1"), ["{x, y}", "[z, {c}]", "-1"]);
        assert_eq!(without_comments("a; // b\nc"), "a; \nc");
    }
}
