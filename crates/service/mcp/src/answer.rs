//! What tools answer: at most 1.5 kB of Markdown, and the whole as a resource.

use rmcp::model::{CallToolResult, ContentBlock, Resource};

/// The most bytes of an answer's text.
pub const MAX_BYTES: usize = 1500;

/// An answer of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Markdown.
    text: String,
    /// The ticket whose result is the whole.
    ticket: Option<String>,
    /// Whether the tool could not do what it was asked.
    is_error: bool,
}

impl Answer {
    /// An answer with nothing behind it.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ticket: None,
            is_error: false,
        }
    }

    /// What was wrong with the question.
    pub fn refusal(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::new(text)
        }
    }

    /// The same with a link to a ticket's result.
    pub fn with_result_of(mut self, ticket: &str) -> Self {
        self.ticket = Some(ticket.to_owned());
        self
    }
}

impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> Self {
        let mut content = vec![ContentBlock::text(beginning(&answer.text, MAX_BYTES))];
        content.extend(answer.ticket.map(|ticket| {
            let resource =
                Resource::new(address(&ticket), "the whole result").with_mime_type("application/json");
            ContentBlock::resource_link(resource)
        }));
        if answer.is_error {
            Self::error(content)
        } else {
            Self::success(content)
        }
    }
}

/// The address of a ticket's result.
pub fn address(ticket: &str) -> String {
    format!("gauntlet://tickets/{ticket}/result")
}

/// The ticket of such an address.
pub fn ticket_of(address: &str) -> Option<&str> {
    address
        .strip_prefix("gauntlet://tickets/")?
        .strip_suffix("/result")
}

/// The mark of what was left out.
const LEFT_OUT: &str = "…";

/// As many whole lines of a text as fit into so many bytes; of a longer line its beginning.
pub fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(LEFT_OUT.len() + 1));
    let line = text[..end].rfind('\n').filter(|at| *at > most / 2);
    format!("{}\n{LEFT_OUT}", text[..line.unwrap_or(end)].trim_end())
}

/// As many whole lines from the end of a text as fit into so many bytes.
pub fn ending(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let begin = text.ceil_char_boundary(text.len() - most.saturating_sub(LEFT_OUT.len() + 1).min(text.len()));
    let line = text[begin..].find('\n').filter(|at| *at < most / 2);
    format!("{LEFT_OUT}\n{}", &text[begin + line.map_or(0, |at| at + 1)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_lines_and_never_longer_than_allowed() {
        assert_eq!(beginning("one\ntwo", 7), "one\ntwo");
        assert_eq!(beginning("one two\nthree\nfour", 17), "one two\nthree\n…");
        assert_eq!(ending("one\ntwo\nthree four", 16), "…\nthree four");
        for most in 5..60 {
            for text in ["ü".repeat(40), "größer\n".repeat(12), "a b\n".repeat(30)] {
                assert!(beginning(&text, most).len() <= most, "{most}: {text}");
                assert!(ending(&text, most).len() <= most, "{most}: {text}");
            }
        }
    }

    #[test]
    fn an_address_names_its_ticket() {
        assert_eq!(ticket_of(&address("0a1b")), Some("0a1b"));
        assert_eq!(ticket_of("gauntlet://tickets/0a1b"), None);
    }
}
