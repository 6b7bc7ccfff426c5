//! Doc comments as text for users: a line a paragraph, without the links that only rustdoc follows.

use serde_json::Value;

/// Tidies every description in a schema.
pub fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, below) in entries {
                match below {
                    Value::String(text) if key == "description" => *text = unwrapped(&without_links(text)),
                    _ => tidy(below),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The text with ``[`name`](path)``, ``[`name`]`` and `[name](path)` replaced by the name. Other brackets stay.
fn without_links(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        made.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        let named = after.find(']').map(|end| (&after[..end], &after[end + 1..]));
        match named {
            Some((name, next)) if next.starts_with('(') => {
                made.push_str(name);
                rest = after_parentheses(next);
            }
            Some((name, next)) if name.starts_with('`') && name.ends_with('`') => {
                made.push_str(name);
                rest = next;
            }
            _ => {
                made.push('[');
                rest = after;
            }
        }
    }
    made + rest
}

/// The text with each paragraph on one line.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// What follows the parentheses that a text begins with, which may hold others.
fn after_parentheses(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return &text[at + 1..],
            ')' => depth -= 1,
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_stay_and_paths_go() {
        assert_eq!(
            without_links("see [`Table`](crate::Table), [`METRICS`] and [needed](crate::needed()) ones"),
            "see `Table`, `METRICS` and needed ones"
        );
        for text in [
            "A is `[m, k]`, B is `[n, k]`",
            "a `[host]` table",
            "an open [",
            "x[0] (twice)",
        ] {
            assert_eq!(without_links(text), text);
        }
        let mut schema = json!({ "description": "[`a`]\nand\n\nb", "items": [{ "description": "[b](c)", "const": "[`d`]" }] });
        tidy(&mut schema);
        assert_eq!(
            schema,
            json!({ "description": "`a` and\n\nb", "items": [{ "description": "b", "const": "[`d`]" }] })
        );
    }
}
