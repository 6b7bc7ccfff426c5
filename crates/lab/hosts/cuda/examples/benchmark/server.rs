//! Serves requests from another program, one line per request and answer.

use std::error::Error;
use std::io::{BufRead, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use super::cases;
use super::machine;
use super::measure::{Bench, Row};
use super::schedules;

/// A request.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    case: String,
    schedule: String,
}

/// Prints the machine and the list of cases, then answers requests until the end of input.
pub fn serve(bench: &mut Bench) -> Result<(), Box<dyn Error>> {
    let greeting = json!({ "machine": machine::describe(bench.engine()), "cases": cases::all()? });
    let answer_of = |line: &str| match answer(bench, line) {
        Ok(row) => json!(row),
        Err(error) => json!({ "error": error.to_string() }),
    };
    converse(
        std::io::stdin().lock(),
        std::io::stdout().lock(),
        greeting,
        answer_of,
    )
}

fn answer(bench: &mut Bench, line: &str) -> Result<Row, Box<dyn Error>> {
    let request: Request = serde_json::from_str(line)?;
    let target = bench.engine().device().target()?;
    let [case] = &cases::named(std::slice::from_ref(&request.case))?[..] else {
        return Err(format!("`{}` is more than one case", request.case).into());
    };
    let step = schedules::named(&request.schedule, &case.problem, target)?;
    bench.row(case, &step)
}

fn converse(
    input: impl BufRead,
    mut output: impl Write,
    greeting: Value,
    mut answer: impl FnMut(&str) -> Value,
) -> Result<(), Box<dyn Error>> {
    writeln!(output, "{greeting}")?;
    output.flush()?;
    for line in input.lines() {
        writeln!(output, "{}", answer(&line?))?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_answer() {
        let mut output = Vec::new();
        let mut heard = Vec::new();
        let answer = |line: &str| {
            heard.push(line.to_owned());
            json!(heard.len())
        };
        converse(&b"one\ntwo\n"[..], &mut output, json!({"device": "none"}), answer).unwrap();
        assert_eq!(heard, ["one", "two"]);
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "{\"device\":\"none\"}\n1\n2\n"
        );
    }

    #[test]
    fn a_request_names_a_case_and_a_schedule_and_nothing_else() {
        let request: Request =
            serde_json::from_str(r#"{"case": "decode/m1", "schedule": "automatic"}"#).unwrap();
        assert_eq!(
            (request.case.as_str(), request.schedule.as_str()),
            ("decode/m1", "automatic")
        );
        assert!(serde_json::from_str::<Request>(r#"{"case": "a", "schedule": "b", "calls": 3}"#).is_err());
    }
}
