//! A table of measured times, read from CSV.
//!
//! The first line names the columns, in any order: `g` (groups, may be left out where a size is a list), `m`, `n`, `k` (a
//! number for all groups, or a list), `time` with its unit in the name (`time (µs)`, `time_us`) or behind each number,
//! and, where there are any, `variant`, `form` (plain or swiglu) and `spread` (standard error in percent). Lines that
//! begin with `#` are comments.

use std::ops::Range;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use gauntlet_diagnose::Measurement;
use gauntlet_entrants::FileError;
use serde_json::{Value, json};

use super::cell;

/// The contents of a table.
pub struct Table {
    path: PathBuf,
    text: String,
    /// The variants in the order in which they appear.
    pub variants: Vec<VariantRows>,
}

/// The rows of one variant.
pub struct VariantRows {
    /// Its name; none if the table has no column for it.
    pub name: Option<String>,
    /// The times.
    pub measurements: Vec<Measurement>,
    /// The byte range of each in the text.
    pub spans: Vec<Range<usize>>,
}

/// The task of the calls that a table times.
const TASK: &str = "grouped-gemm";

/// More groups than this are most likely a typing error.
const MAX_GROUPS: usize = 1 << 16;

/// A description of the table's format.
const REMEDY: &str = "the columns are g, m, n, k and time, and, where there are any, variant, form and spread; \
                      `docs/explanation/diagnosis.md` explains them";

/// Reads a table.
pub fn read(path: &Path) -> Result<Table, FileError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        FileError::whole(
            path,
            format!("the table of times cannot be read: {error}"),
            "give a CSV file in UTF-8; check the path",
        )
    })?;
    let mut table = Table {
        path: path.to_owned(),
        // Spreadsheets often write a byte order mark at the start.
        text: text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned(),
        variants: Vec::new(),
    };
    table.variants = table.rows()?;
    Ok(table)
}

impl Table {
    /// An error at a place in the table.
    pub fn error(
        &self,
        span: Option<Range<usize>>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> FileError {
        FileError {
            path: self.path.clone(),
            text: self.text.clone(),
            span,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    fn rows(&self) -> Result<Vec<VariantRows>, FileError> {
        let mut reader = ReaderBuilder::new()
            .trim(Trim::All)
            .comment(Some(b'#'))
            .from_reader(self.text.as_bytes());
        let header = reader.headers().map_err(|error| self.malformed(&error))?.clone();
        let columns =
            Columns::of(&header).map_err(|message| self.error(self.line_of(&header), message, REMEDY))?;
        let mut variants: Vec<VariantRows> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| self.malformed(&error))?;
            let span = self.line_of(&record);
            let measurement = columns.measurement(&record).map_err(|(column, message)| {
                let message = format!("column {}: {message}", column.unwrap_or("g, m, n and k"));
                self.error(span.clone(), message, "correct the cell")
            })?;
            let name = columns.variant.map(|index| record[index].to_owned());
            let place = variants.iter().position(|variant| variant.name == name);
            let place = place.unwrap_or_else(|| {
                variants.push(VariantRows {
                    name,
                    measurements: Vec::new(),
                    spans: Vec::new(),
                });
                variants.len() - 1
            });
            variants[place].measurements.push(measurement);
            variants[place].spans.push(span.unwrap_or_default());
        }
        if variants.is_empty() {
            let message = "the table has no rows";
            return Err(self.error(None, message, "give a line for each measured time"));
        }
        Ok(variants)
    }

    /// The text of a record, without the end of its line.
    fn line_of(&self, record: &StringRecord) -> Option<Range<usize>> {
        let position = usize::try_from(record.position()?.byte()).ok()?;
        let rest = self.text.get(position..)?;
        // The position of a record includes blank lines and comments before it.
        let skipped: usize = rest
            .split_inclusive('\n')
            .take_while(|line| line.trim().is_empty() || line.starts_with('#'))
            .map(str::len)
            .sum();
        let line = rest[skipped..].lines().next()?.trim_end();
        Some(position + skipped..position + skipped + line.len())
    }

    fn malformed(&self, error: &csv::Error) -> FileError {
        let start = error
            .position()
            .and_then(|position| usize::try_from(position.byte()).ok());
        let message = match error.kind() {
            csv::ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => {
                format!("the row has {len} cells, and the header {expected_len}")
            }
            _ => error.to_string(),
        };
        let remedy = "give each row a cell for each column; put lists with commas in quotation marks";
        self.error(start.map(|start| start..start), message, remedy)
    }
}

/// The position of each column.
struct Columns {
    g: Option<usize>,
    m: usize,
    n: usize,
    k: usize,
    time: usize,
    /// Seconds of the unit in the name of the time column.
    unit: Option<f64>,
    variant: Option<usize>,
    form: Option<usize>,
    spread: Option<usize>,
}

/// An error, and its column; none if columns do not fit together.
type Wrong = (Option<&'static str>, String);

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, String> {
        let mut unit = None;
        let mut places = [None; NAMES.len()];
        for (index, title) in header.iter().enumerate() {
            let (name, suffix) = titled(title);
            let Some(place) = NAMES.iter().position(|known| *known == name) else {
                return Err(format!("there is no column `{title}`"));
            };
            if places[place].replace(index).is_some() {
                return Err(format!("there are two columns `{name}`"));
            }
            match (name.as_str(), suffix.as_str()) {
                (_, "") | ("spread", "%") => {}
                ("time", suffix) => {
                    let seconds = cell::unit(suffix);
                    unit =
                        Some(seconds.ok_or_else(|| {
                            format!("`{suffix}` is no unit of time; s, ms, µs, us and ns are")
                        })?);
                }
                _ => return Err(format!("there is no column `{title}`")),
            }
        }
        let needed =
            |place: usize| places[place].ok_or_else(|| format!("the column `{}` is missing", NAMES[place]));
        Ok(Self {
            g: places[0],
            m: needed(1)?,
            n: needed(2)?,
            k: needed(3)?,
            time: needed(4)?,
            unit,
            variant: places[5],
            form: places[6],
            spread: places[7],
        })
    }

    fn measurement(&self, record: &StringRecord) -> Result<Measurement, Wrong> {
        let at = |name: &'static str| move |message| (Some(name), message);
        let form = match self.form {
            Some(index) => cell::form(&record[index]).map_err(at("form"))?,
            None => cell::PLAIN,
        };
        let sizes = json!({ "family": TASK, "groups": self.groups(record)?, "form": form });
        let sizes = gauntlet_families::open(&sizes).map_err(|error| (None, error))?;
        let problem = gauntlet_tiled_family::operation(&sizes)
            .cloned()
            .ok_or_else(|| (None, format!("{TASK} has no model")))?;
        Ok(Measurement {
            problem,
            seconds: cell::time(&record[self.time], self.unit).map_err(at("time"))?,
            spread: match self.spread.map(|index| &record[index]) {
                Some(text) if !text.is_empty() => Some(cell::percent(text).map_err(at("spread"))?),
                _ => None,
            },
        })
    }

    fn groups(&self, record: &StringRecord) -> Result<Vec<Value>, Wrong> {
        let sizes = |name, index: usize| {
            Ok((
                name,
                cell::sizes(&record[index]).map_err(|message| (Some(name), message))?,
            ))
        };
        let lists = [sizes("m", self.m)?, sizes("n", self.n)?, sizes("k", self.k)?];
        let longest = lists.iter().map(|(_, list)| list.len()).max().unwrap_or(1);
        let count = match self.g.map(|index| &record[index]) {
            Some(text) if !text.is_empty() => {
                match cell::sizes(text).map_err(|message| (Some("g"), message))?[..] {
                    [count] if (1..=MAX_GROUPS).contains(&count) => count,
                    _ => {
                        return Err((
                            Some("g"),
                            format!("`{text}` is no number of groups; give one from 1 to {MAX_GROUPS}"),
                        ));
                    }
                }
            }
            _ => longest,
        };
        if let Some((name, list)) = lists
            .iter()
            .find(|(_, list)| !matches!(list.len(), 1) && list.len() != count)
        {
            let message = format!(
                "{} numbers for {count} groups; give one for all, or one for each",
                list.len()
            );
            return Err((Some(name), message));
        }
        let of = |list: &[usize], group: usize| if list.len() == 1 { list[0] } else { list[group] };
        let [(_, m), (_, n), (_, k)] = &lists;
        Ok((0..count)
            .map(|group| json!({ "m": of(m, group), "n": of(n, group), "k": of(k, group) }))
            .collect())
    }
}

const NAMES: [&str; 8] = ["g", "m", "n", "k", "time", "variant", "form", "spread"];

/// A column's title as its name and unit: `time (µs)`, `time [µs]`, `time_us`.
fn titled(title: &str) -> (String, String) {
    let (name, rest) = title.split_at(title.find(['(', '[', '_']).unwrap_or(title.len()));
    let unit = rest
        .trim_start_matches(['(', '[', '_'])
        .trim_end_matches([')', ']'])
        .trim();
    (name.trim().to_lowercase(), unit.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<Table, FileError> {
        let mut table = Table {
            path: PathBuf::from("times.csv"),
            text: text.to_owned(),
            variants: Vec::new(),
        };
        table.variants = table.rows()?;
        Ok(table)
    }

    #[test]
    fn columns_in_any_order_lists_and_single_numbers() {
        let table = table(
            "# two cases\nTime (µs), k, n, m, g, variant\n373, 7168, 4096, 80 176, 2, a\n\n1 ms, 256, 64 128, 8, , b\n",
        )
        .unwrap();
        let [a, b] = &table.variants[..] else {
            unreachable!()
        };
        assert_eq!((a.name.as_deref(), b.name.as_deref()), (Some("a"), Some("b")));
        let groups = |rows: &VariantRows| {
            serde_json::to_value(&rows.measurements[0].problem).unwrap()["groups"].clone()
        };
        let expected = json!([{ "m": 80, "n": 4096, "k": 7168 }, { "m": 176, "n": 4096, "k": 7168 }]);
        assert_eq!(groups(a), expected);
        assert!((a.measurements[0].seconds - 373e-6).abs() < 1e-12);
        assert_eq!(
            groups(b),
            json!([{ "m": 8, "n": 64, "k": 256 }, { "m": 8, "n": 128, "k": 256 }])
        );
        assert_eq!(&table.text[b.spans[0].clone()], "1 ms, 256, 64 128, 8, , b");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let header = "g,m,n,k,time_us\n";
        for (text, line, phrase) in [
            ("g,m,n,time\n", Some(1), "`k` is missing"),
            ("g,m,n,k,time,tiem\n", Some(1), "no column `tiem`"),
            ("m,m,n,k,time\n", Some(1), "two columns `m`"),
            ("g,m,n,k,time (h)\n", Some(1), "`h` is no unit"),
            (
                &format!("{header}2,80 x,64,256,5\n"),
                Some(2),
                "column m: `x` is no whole number",
            ),
            (
                &format!("{header}\n# said\n2,80 1 1,64,256,5\n"),
                Some(4),
                "column m: 3 numbers for 2 groups",
            ),
            (
                &format!("{header}2,80,64,256,5\n2,80,64,250,5\n"),
                Some(3),
                "not a multiple of 16",
            ),
            (
                &format!("{header}2,80,64,256\n"),
                Some(2),
                "4 cells, and the header 5",
            ),
            (
                &format!("{header}0,80,64,256,1\n"),
                Some(2),
                "column g: `0` is no number of groups",
            ),
            (
                &format!("{header}999999999,80,64,256,1\n"),
                Some(2),
                "no number of groups",
            ),
            (
                &format!("{header}2,80,64,256,-5\n"),
                Some(2),
                "column time: `-5` is no time",
            ),
            (header, None, "no rows"),
        ] {
            let error = table(text).err().unwrap();
            assert!(error.message.contains(phrase), "{text}: {}", error.message);
            assert_eq!(error.line(), line, "{text}");
        }
    }
}
