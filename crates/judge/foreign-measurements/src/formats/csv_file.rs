//! Plain CSV: a column `seconds` (or `ms`, `us`, `ns`), and where wanted `case` and `process`; a single column of numbers needs
//! no header. In place of the column of times there may be `baseline` and `candidate`, in seconds, for both sides in one file.
//!
//! A column `exit_code` says which runs failed.
//!
//! Without a column `process`, the times of one side are calls of one process; rows with `baseline` and `candidate` are each a
//! pair of processes.

use std::collections::HashMap;
use std::path::Path;

use csv::StringRecord;

use super::{refuse_failed, unit};
use crate::error::SamplesError;
use crate::measurements::{Benchmark, Measurements, Order};

const PROGRAM: &str = "another program (CSV)";

/// The forms of such a file.
const REMEDY: &str = "write a column `seconds` (or `ms`, `us`, `ns`), and where there are several, `case` and `process`; or the \
    columns `baseline` and `candidate` for both sides in one file";

/// The name of the only case of a file without a column `case`.
const CASE: &str = "times";

/// Reads one side.
pub fn read(path: &Path, text: &str) -> Result<Measurements, SamplesError> {
    let table = Table::of(path, text)?;
    if table.column("baseline").is_some() && table.column("candidate").is_some() {
        return Err(SamplesError::at(
            path,
            1,
            "the columns `baseline` and `candidate` hold both sides",
            "name only this file, and not a second one",
        ));
    }
    let (column, seconds) = table.times()?;
    let case = table.column("case");
    let process = table.column("process");
    let mut rows = Rows::default();
    for (line, row) in &table.rows {
        let time = table.number(*line, row, column)? * seconds;
        let name = case.and_then(|case| row.get(case)).unwrap_or(CASE);
        let process = process.and_then(|process| row.get(process)).unwrap_or_default();
        rows.add(name, process, time);
    }
    Measurements::new(path, PROGRAM, rows.cases, Vec::new(), REMEDY)
}

/// Reads both sides; none if the file has not the columns for both.
pub fn read_both(path: &Path, text: &str) -> Option<Result<[Measurements; 2], SamplesError>> {
    let table = match Table::of(path, text) {
        Ok(table) => table,
        Err(error) => return Some(Err(error)),
    };
    let columns = [table.column("baseline")?, table.column("candidate")?];
    Some(of_pairs(path, &table, columns))
}

fn of_pairs(path: &Path, table: &Table, columns: [usize; 2]) -> Result<[Measurements; 2], SamplesError> {
    let case = table.column("case");
    let process = table.column("process");
    let mut sides = [Rows::default(), Rows::default()];
    for (line, row) in &table.rows {
        let name = case.and_then(|case| row.get(case)).unwrap_or(CASE);
        // A row is a pair of processes unless the file says which process it belongs to.
        let own = line.to_string();
        let process = process.and_then(|process| row.get(process)).unwrap_or(&own);
        for (side, column) in sides.iter_mut().zip(columns) {
            side.add(name, process, table.number(*line, row, column)?);
        }
    }
    let [baseline, candidate] = sides.map(|rows| {
        let measurements = Measurements::new(path, PROGRAM, rows.cases, Vec::new(), REMEDY)?;
        Ok(Measurements {
            order: Order::SideBySide,
            ..measurements
        })
    });
    Ok([baseline?, candidate?])
}

/// Times by case and process, in the order in which these first come.
#[derive(Default)]
struct Rows {
    cases: Vec<Benchmark>,
    /// Where a case, and a process of it, stand in `cases`.
    places: HashMap<String, (usize, HashMap<String, usize>)>,
}

impl Rows {
    fn add(&mut self, case: &str, process: &str, time: f64) {
        let cases = &mut self.cases;
        let (place, known) = self.places.entry(case.to_owned()).or_insert_with(|| {
            cases.push(Benchmark {
                name: case.to_owned(),
                processes: Vec::new(),
            });
            (cases.len() - 1, HashMap::new())
        });
        let processes = &mut cases[*place].processes;
        match known.get(process) {
            Some(process) => processes[*process].push(time),
            None => {
                known.insert(process.to_owned(), processes.len());
                processes.push(vec![time]);
            }
        }
    }
}

/// The rows of a file with their lines, counted from 1.
struct Table<'f> {
    path: &'f Path,
    head: Vec<String>,
    rows: Vec<(u64, StringRecord)>,
}

impl<'f> Table<'f> {
    fn of(path: &'f Path, text: &str) -> Result<Self, SamplesError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(0, csv::Position::line);
                SamplesError::at(path, line, format!("not CSV: {error}"), REMEDY)
            })?;
            let line = record.position().map_or(0, csv::Position::line);
            rows.push((line, record));
        }
        let has_head = rows
            .first()
            .is_some_and(|(_, first)| first.iter().any(|cell| cell.parse::<f64>().is_err()));
        let head = match has_head {
            true => rows.remove(0).1.iter().map(str::to_lowercase).collect(),
            false => Vec::new(),
        };
        if rows.is_empty() {
            return Err(SamplesError::whole(path, "it holds no times", REMEDY));
        }
        let table = Self { path, head, rows };
        table.refuse_failed()?;
        Ok(table)
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.head.iter().position(|column| column == name)
    }

    /// The column of times, and the seconds of its unit.
    fn times(&self) -> Result<(usize, f64), SamplesError> {
        if self.head.is_empty() {
            return match self.rows.iter().find(|(_, row)| row.len() != 1) {
                None => Ok((0, 1.0)),
                Some((line, _)) => Err(SamplesError::at(
                    self.path,
                    line,
                    "several columns without names",
                    format!("name the columns in the first line: {REMEDY}"),
                )),
            };
        }
        let named = self.head.iter().enumerate();
        let mut units = named.filter_map(|(index, name)| Some((index, unit(name)?)));
        match (units.next(), units.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => Err(SamplesError::at(self.path, 1, "several columns of times", REMEDY)),
            (None, _) => Err(SamplesError::at(
                self.path,
                1,
                format!("no column of times among: {}", self.head.join(", ")),
                REMEDY,
            )),
        }
    }

    fn number(&self, line: u64, row: &StringRecord, column: usize) -> Result<f64, SamplesError> {
        let cell = row.get(column).unwrap_or_default();
        let time: f64 = cell
            .parse()
            .map_err(|_| SamplesError::at(self.path, line, format!("`{cell}` is not a time"), REMEDY))?;
        if time.is_finite() && time > 0.0 {
            return Ok(time);
        }
        Err(SamplesError::at(
            self.path,
            line,
            format!("a time is {cell}, which no call can take"),
            "times must be positive; remove failed calls from the file",
        ))
    }

    /// Refuses a file with runs that failed, if it has a column of exit codes.
    fn refuse_failed(&self) -> Result<(), SamplesError> {
        let Some(column) = self.column("exit_code") else {
            return Ok(());
        };
        let case = self.column("case");
        let mut names: Vec<&str> = Vec::new();
        let mut codes: Vec<Vec<Option<i64>>> = Vec::new();
        for (_, row) in &self.rows {
            let name = case.and_then(|case| row.get(case)).unwrap_or(CASE);
            let place = names
                .iter()
                .position(|known| *known == name)
                .unwrap_or(names.len());
            if place == names.len() {
                names.push(name);
                codes.push(Vec::new());
            }
            codes[place].push(row.get(column).and_then(|cell| cell.parse().ok()));
        }
        let mut cases = names.iter().zip(&codes);
        cases.try_for_each(|(name, codes)| refuse_failed(self.path, "exit_code", name, codes))
    }
}
