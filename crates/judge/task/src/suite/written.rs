//! Sizes in the form of a suite file.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;

use super::error::Fault;

/// Sizes in the form of a suite file, with their place in it.
#[derive(Debug, Clone)]
pub struct WrittenSizes {
    value: Spanned<toml::Value>,
    /// The text of an inline table: parsing it locates an error more precisely than the whole table does.
    inline: Option<String>,
}

/// The prefix of the text when it is parsed on its own.
const KEY: &str = "sizes=";

impl WrittenSizes {
    pub(super) fn new(value: Spanned<toml::Value>, text: &str) -> Self {
        let own = text.get(value.span()).filter(|own| own.starts_with('{'));
        Self {
            inline: own.map(str::to_owned),
            value,
        }
    }

    /// Where the sizes stand in the file.
    pub fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// The sizes as a type.
    ///
    /// # Errors
    /// The error, and its place.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let start = self.value.span().start;
        if let Some(text) = &self.inline {
            #[derive(serde::Deserialize)]
            struct Alone<T> {
                sizes: T,
            }
            return toml::from_str::<Alone<T>>(&format!("{KEY}{text}"))
                .map(|alone| alone.sizes)
                .map_err(|error| {
                    let place = |span: Range<usize>| {
                        let moved = |at: usize| (at + start).saturating_sub(KEY.len()).max(start);
                        moved(span.start)..moved(span.end)
                    };
                    Fault {
                        span: error.span().map(place),
                        message: error.message().to_owned(),
                    }
                });
        }
        T::deserialize(self.value.get_ref().clone())
            .map_err(|error| Fault::at(self.span(), error.message().to_owned()))
    }

    /// A fault of these sizes as a whole.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::at(self.span(), message)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rows {
        rows: usize,
        #[serde(default)]
        lengths: Vec<usize>,
    }

    fn written(text: &str) -> WrittenSizes {
        let mut table: BTreeMap<String, Spanned<toml::Value>> = toml::from_str(text).unwrap();
        WrittenSizes::new(table.remove("softmax").unwrap(), text)
    }

    /// Message, and the text at fault.
    fn fault(text: &str) -> (String, String) {
        let Fault { span, message } = written(text).parse::<Rows>().unwrap_err();
        (message, text[span.unwrap()].to_owned())
    }

    #[test]
    fn sizes_are_read_in_every_way_of_writing_them() {
        let rows = |rows, lengths: &[usize]| Rows {
            rows,
            lengths: lengths.to_vec(),
        };
        for text in [
            "softmax = { rows = 8, lengths = [1, 2] }",
            "other = 1\nsoftmax = { rows = 8, lengths = [\n1, # one\n2\n] }",
            "softmax.rows = 8\nsoftmax.lengths = [1, 2]",
            "[softmax]\nrows = 8\nlengths = [1, 2]",
        ] {
            assert_eq!(written(text).parse::<Rows>(), Ok(rows(8, &[1, 2])), "{text}");
        }
    }

    #[test]
    fn a_fault_in_an_inline_table_is_where_it_is_written() {
        let before = "# Größen\nname = \"one\"\nsoftmax = ";
        let at = |sizes: &str| fault(&format!("{before}{sizes}\n"));
        assert_eq!(at("{ rows = \"8\" }").1, "\"8\"");
        assert_eq!(at("{ rows = -8 }").1, "-8");
        assert_eq!(at("{ rows = 8, lengths = [1, true, 3] }").1, "true");
        assert_eq!(at("{ rows = 8, lengths = [\n  1,\n  \"é\",\n] }").1, "\"é\"");
        let (message, text) = at("{ rows = 8, columns = 3 }");
        assert!(message.starts_with("unknown field `columns`"), "{message}");
        assert_eq!(text, "columns");
        let (message, text) = at("{ lengths = [] }");
        assert_eq!(message, "missing field `rows`");
        assert_eq!(text, "{ lengths = [] }");
    }

    #[test]
    fn a_fault_elsewhere_is_at_the_sizes_as_a_whole() {
        let (message, text) = fault("softmax = [1, 2]\n");
        assert!(message.starts_with("invalid type"), "{message}");
        assert_eq!(text, "[1, 2]");
        let (message, text) = fault("[softmax]\nrows = \"8\"\n");
        assert!(message.starts_with("invalid type: string"), "{message}");
        assert!(text.starts_with("[softmax]"), "{text}");
        let sizes = written("name = \"one\"\nsoftmax = { rows = 8 }\n");
        let whole = sizes.fault("too many rows");
        assert_eq!(
            (whole.message.as_str(), whole.span),
            ("too many rows", Some(sizes.span()))
        );
        assert_eq!(sizes.span(), 23..35);
    }
}
