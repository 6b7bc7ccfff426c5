//! Styled words and wrapped lines.

use owo_colors::{OwoColorize, Style};
use textwrap::core::display_width;

use crate::foreign::line;

/// The minimum width of a layout.
const NARROWEST: usize = 40;

/// Wider lines than this are hard to read.
const WIDEST: usize = 140;

/// The width of the layout for a terminal with `width` columns.
pub fn usable(width: usize) -> usize {
    width.clamp(NARROWEST, WIDEST)
}

/// Text in a style.
pub fn paint(text: impl std::fmt::Display, style: Style) -> String {
    let text = text.to_string();
    // Style codes around an empty text would prevent the trimming of lines.
    if text.is_empty() {
        text
    } else {
        text.style(style).to_string()
    }
}

/// Text of less importance.
pub fn dim(text: impl std::fmt::Display) -> String {
    paint(text, Style::new().dimmed())
}

/// Text of more importance, on one line: names and titles.
pub fn bold(text: impl std::fmt::Display) -> String {
    paint(line(&text.to_string()), Style::new().bold())
}

/// A paragraph wrapped after `first`, with all further lines indented by `hang` columns.
pub fn paragraph(first: &str, rest: &str, hang: usize, width: usize) -> String {
    let indent = " ".repeat(hang);
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(&indent);
    // A figure stays with its unit.
    let bound = rest.replace(" %", "\u{a0}%");
    textwrap::fill(&bound, options).replace('\u{a0}', " ") + "\n"
}

/// Text padded with blanks to `columns`, or cut to it with an ellipsis.
pub fn fitted(text: &str, columns: usize) -> String {
    let width = display_width(text);
    if width <= columns {
        return text.to_owned() + &" ".repeat(columns - width);
    }
    let mut cut = String::new();
    for character in text.chars() {
        if display_width(&cut) + display_width(&character.to_string()) + 1 > columns {
            break;
        }
        cut.push(character);
    }
    let gap = columns.saturating_sub(display_width(&cut) + 1);
    cut + "…" + &" ".repeat(gap)
}

/// All lines indented.
pub fn indented(text: &str, columns: usize) -> String {
    let indent = " ".repeat(columns);
    text.lines()
        .map(|line| format!("{indent}{line}").trim_end().to_owned() + "\n")
        .collect()
}

/// The columns of the longest of some texts.
pub fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> usize {
    texts.into_iter().map(display_width).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_filled_up_or_cut_to_its_columns() {
        assert_eq!(fitted("µs", 4), "µs  ");
        assert_eq!(fitted("persistent", 6), "persi…");
        assert_eq!(fitted("全部全部", 4), "全… ");
        assert_eq!(display_width(&fitted(&bold("ab"), 5)), 5);
    }

    #[test]
    fn paragraphs_hang_and_styles_take_no_room() {
        let text = paragraph(&bold("name: "), "one two three four", 2, 12);
        let lines: Vec<usize> = text.lines().map(display_width).collect();
        assert_eq!(lines.len(), 3, "{text:?}");
        assert!(lines.iter().all(|width| *width <= 12));
        assert!(text.lines().nth(1).unwrap().starts_with("  "));
    }
}
