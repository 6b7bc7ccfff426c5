//! Foreign text: names of kernels, cases and files, words of workers, pitches and other programs.
//!
//! A terminal obeys the control characters of a text, and a line break or a mark of the direction of writing can make a part of
//! it look like words of this program's own. [`visible`] writes such characters as escapes. Faces need not remember it:
//! results pass through [`shown`] before they are rendered, names and titles through [`line`], and cells of tables and all that
//! is printed through [`printed`]. JSON keeps texts as they are, by its own escapes.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Letters of a line that are shown.
const MAX_LINE: usize = 1000;

/// Letters of a message of several lines that are shown.
const MAX_MESSAGE: usize = 20_000;

/// The fields of results that hold messages, which may have several lines. All other texts are names or sentences.
const MESSAGES: [&str; 10] = [
    "reason",
    "described",
    "fault",
    "notes",
    "notices",
    "problem",
    "change",
    "refused",
    "patch",
    "files",
];

/// The codes of the styles that this program uses, beside colours: none of them hides a text.
const STYLES: [&str; 11] = ["", "0", "1", "2", "3", "4", "22", "23", "24", "39", "49"];

/// A text on one line, in which every character can be seen; a very long one is cut.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, MAX_LINE, |_| false)
}

/// The same with its line breaks and tabulators: a message.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    // A line that ends as on other systems is a line too.
    if text.contains("\r\n") {
        return Cow::Owned(visible_lines(&text.replace("\r\n", "\n")).into_owned());
    }
    escaped(text, MAX_MESSAGE, |letter| matches!(letter, '\n' | '\t'))
}

/// A text that this program has laid out, with its line breaks and its styles, and nothing else that a terminal would obey.
pub fn printed(text: &str) -> Cow<'_, str> {
    styled(text, |letter| matches!(letter, '\n' | '\t'))
}

/// A line that this program has laid out, with its styles.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    styled(text, |_| false)
}

/// A result whose texts are all visible.
///
/// Results with nothing to escape, which are nearly all, are returned as they are. A result that cannot be built again from
/// its own parts, which no test knows of, is returned as it is too, and what is printed of it still passes [`printed`].
pub(crate) fn shown<T: Clone + Serialize + DeserializeOwned>(result: &T) -> Cow<'_, T> {
    let Ok(mut value) = serde_json::to_value(result) else {
        return Cow::Borrowed(result);
    };
    if !escape_texts(&mut value, false) {
        return Cow::Borrowed(result);
    }
    serde_json::from_value(value).map_or(Cow::Borrowed(result), Cow::Owned)
}

/// Makes the texts of a value visible; whether one was not.
fn escape_texts(value: &mut Value, is_message: bool) -> bool {
    match value {
        Value::String(text) => {
            let seen = if is_message {
                visible_lines(text)
            } else {
                visible(text)
            };
            let Cow::Owned(seen) = seen else { return false };
            *text = seen;
            true
        }
        Value::Array(values) => {
            let mut changed = false;
            for value in values {
                changed |= escape_texts(value, is_message);
            }
            changed
        }
        Value::Object(fields) => {
            let mut changed = false;
            for (name, value) in fields.iter_mut() {
                changed |= escape_texts(value, MESSAGES.contains(&name.as_str()));
            }
            if fields.keys().any(|name| matches!(visible(name), Cow::Owned(_))) {
                changed = true;
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, value)| (visible(&name).into_owned(), value))
                    .collect();
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn escaped(text: &str, longest: usize, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let end = text.char_indices().nth(longest).map(|(end, _)| end);
    if end.is_none() && !text.chars().any(|letter| is_hidden(letter) && !is_kept(letter)) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    for letter in text[..end.unwrap_or(text.len())].chars() {
        push(&mut seen, letter, &is_kept);
    }
    if end.is_some() {
        seen += &format!("… ({} letters in all)", text.chars().count());
    }
    Cow::Owned(seen)
}

fn styled(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|letter| is_hidden(letter) && !is_kept(letter)) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let length = match style(rest) {
            Some(style) => {
                seen += style;
                style.len()
            }
            None => {
                push(&mut seen, letter, &is_kept);
                letter.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(seen)
}

fn push(seen: &mut String, letter: char, is_kept: &impl Fn(char) -> bool) {
    if is_hidden(letter) && !is_kept(letter) {
        seen.extend(letter.escape_default());
    } else {
        seen.push(letter);
    }
}

/// The code of one of this program's styles with which a text begins.
fn style(text: &str) -> Option<&str> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find(|letter: char| !(letter.is_ascii_digit() || letter == ';'))?;
    let codes = codes[end..].starts_with('m').then_some(&codes[..end])?;
    let is_colour = |code: &str| matches!(code.as_bytes(), [b'3' | b'9', b'0'..=b'7']);
    let is_known = codes.starts_with("38;5;")
        || codes.starts_with("38;2;")
        || codes
            .split(';')
            .all(|code| STYLES.contains(&code) || is_colour(code));
    is_known.then(|| &text[..2 + end + 1])
}

/// Whether a character cannot be seen where it stands, or changes what stands around it: control characters, separators of
/// lines and paragraphs, marks of the direction of writing, characters without width, tags, and no characters at all.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_as_an_escape() {
        for (text, seen) in [
            ("plain – ünïcode 全 ✓ a\u{a0}b", "plain – ünïcode 全 ✓ a\u{a0}b"),
            ("\u{1b}[31mred\u{7}\0", "\\u{1b}[31mred\\u{7}\\u{0}"),
            ("one\r\ntwo\tthree", "one\\r\\ntwo\\tthree"),
            ("\u{85}\u{2028}\u{2029}\u{b}", "\\u{85}\\u{2028}\\u{2029}\\u{b}"),
            ("a\u{202e}b\u{2066}c\u{200f}", "a\\u{202e}b\\u{2066}c\\u{200f}"),
            ("a\u{200b}b\u{feff}\u{e0041}", "a\\u{200b}b\\u{feff}\\u{e0041}"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
        ] {
            assert_eq!(visible(text), seen);
        }
        assert_eq!(visible_lines("one\r\ntwo\rthree\n"), "one\ntwo\\rthree\n");
        assert!(matches!(visible("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_very_long_is_cut_and_says_so() {
        let seen = visible_lines(&"x".repeat(65_540)).into_owned();
        assert!(seen.ends_with("x… (65540 letters in all)") && seen.len() < 21_000);
        assert_eq!(
            visible(&"ü".repeat(1001)),
            "ü".repeat(1000) + "… (1001 letters in all)"
        );
        assert_eq!(visible(&"ü".repeat(1000)), "ü".repeat(1000));
    }

    #[test]
    fn styles_of_this_program_pass_and_nothing_else() {
        let own = "\u{1b}[1mbold\u{1b}[0m \u{1b}[31;1mred\u{1b}[39m \u{1b}[38;2;1;2;3mfine\u{1b}[0m\n";
        assert_eq!(printed(own), own);
        for text in [
            "\u{1b}[8m",
            "\u{1b}[2J",
            "\u{1b}]0;title\u{7}",
            "\u{1b}[1;8m",
            "\u{1b}[31",
        ] {
            assert!(!printed(text).contains('\u{1b}'), "{text:?}");
        }
        assert_eq!(line("a\nb\u{1b}[1mc"), "a\\nb\u{1b}[1mc");
    }

    #[test]
    fn all_texts_of_a_result_are_made_visible_and_messages_keep_their_lines() {
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        struct Result {
            name: String,
            reason: String,
            times: Vec<f64>,
            by_name: BTreeMap<String, u64>,
        }
        let result = |end: &str, line: &str| Result {
            name: format!("a{end}"),
            reason: format!("a{line}b{end}"),
            times: vec![0.1, 1e-300],
            by_name: BTreeMap::from([(format!("a{end}"), u64::MAX)]),
        };
        let plain = result("", "\n");
        assert!(matches!(shown(&plain), Cow::Borrowed(_)));
        assert_eq!(*shown(&result("\u{7}", "\n")), result("\\u{7}", "\n"));
        assert_eq!(shown(&result("\n", "")).name, "a\\n");
    }
}
