//! Words of others in every face: nothing of them is obeyed by a terminal, hidden, or taken for words of the program.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use crate::common::{Place, Ran, has_numpy, pitch, repository};

/// A style, a title of the terminal, a bell, markup, a line that looks like an outcome, a mark that turns the direction of
/// writing, and a line break that is no line feed.
const EVIL: &str = "\u{1b}[31mX\u{1b}]0;t\u{7}<script>alert(1)</script>|a|`b`\r\n\u{2714} adopt: +99 %\u{202e} ]]> & \" ' \u{85}";

/// Runs a command with all forms of its result, and looks at each.
#[track_caller]
fn harmless(place: &Place, command: &[&str]) -> Ran {
    let forms = [
        "--html",
        "r.html",
        "--markdown",
        "r.md",
        "--junit",
        "r.xml",
        "--json",
        "r.json",
    ];
    let ran = place.run(&[command, &forms].concat());
    assert!(matches!(ran.code, Some(0 | 1 | 4)), "{}\n{}", ran.out, ran.err);
    for form in ["r.html", "r.md", "r.xml", "r.json"] {
        let text = std::fs::read_to_string(place.path(form)).unwrap();
        look(form, &text);
        assert!(
            form == "r.json" || text.contains("u{202e}"),
            "{form} leaves the text out"
        );
    }
    let json: Value = serde_json::from_slice(&std::fs::read(place.path("r.json")).unwrap()).unwrap();
    assert!(
        json.to_string().contains('\u{202e}'),
        "JSON keeps texts as they are"
    );
    printed(ran)
}

#[track_caller]
fn look(form: &str, text: &str) {
    let lines = text.lines().collect::<Vec<_>>();
    // JSON escapes what it must by its own rules, and keeps the rest.
    let hidden =
        |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}' || letter == '\u{85}';
    let is_hidden = |letter: char| match form {
        "r.json" => letter < ' ' && letter != '\n',
        _ => hidden(letter),
    };
    if let Some(found) = text.chars().find(|letter| is_hidden(*letter)) {
        panic!("{form} holds {found:?}");
    }
    // Pages and comments have no lines but those of their markup.
    let is_printed = form.starts_with("standard");
    let forged = lines
        .iter()
        .find(|line| is_printed && line.starts_with('\u{2714}'));
    assert_eq!(forged, None, "{form}");
    if form.ends_with("html") || form.ends_with("md") {
        assert!(!text.contains("<script>alert"), "{form} holds markup");
    }
}

#[track_caller]
fn printed(ran: Ran) -> Ran {
    look("standard output", &ran.out);
    look("standard error", &ran.err);
    ran
}

fn times(shift: f64) -> Vec<f64> {
    (0..12)
        .map(|run| 1e-3 * (1.0 + shift + f64::from(run * 5 % 12) / 100.0))
        .collect()
}

#[test]
fn exports_of_other_programs() {
    let place = Place::new();
    let write = |name: &str, value: Value| place.write(name, &value.to_string());
    let run = |end: &str, shift| json!({ "command": format!("{EVIL}{end}"), "times": times(shift), "exit_codes": vec![0; 12] });
    write("h.json", json!({ "results": [run("", 0.0), run("2", 0.011)] }));
    let round = |end: &str, shift| json!({ "name": EVIL, "fullname": format!("{EVIL}{end}"), "stats": { "data": times(shift) } });
    write(
        "p.json",
        json!({ "machine_info": { "node": EVIL }, "benchmarks": [round("1", 0.0), round("2", 0.011)] }),
    );
    let mut repetitions: Vec<Value> = Vec::new();
    for (name, shift) in [("a", 0.0), ("b", 0.011)] {
        repetitions.extend(
            times(shift)
                .iter()
                .map(|time| json!({ "name": name, "real_time": time, "time_unit": "ms" })),
        );
    }
    repetitions.push(json!({ "name": EVIL, "error_occurred": true, "error_message": EVIL }));
    write("g.json", json!({ "context": {}, "benchmarks": repetitions }));
    for file in ["h.json", "p.json", "g.json"] {
        harmless(
            &place,
            &["compare", "--samples", file, "--between-processes", "2"],
        );
    }
    write(
        "f.json",
        json!({ "results": [{ "command": EVIL, "times": [1.0], "exit_codes": [1] }] }),
    );
    printed(place.run(&["compare", "--samples", "f.json"]).expect(2));
    place.write("t.csv", &format!("g,m,n,k,time (us)\n1,16,256,256,{EVIL}\n"));
    printed(place.run(&["explain", "--times", "t.csv"]).expect(2));
}

#[test]
fn pitches_rounds_and_what_is_read_again() {
    let place = Place::new();
    let quoted = json!(EVIL).to_string().replace('\u{85}', "\\u0085");
    let record = "source = \"\"\n[uncertainty]\nrelative = 0.1\nwhy = \"a test\"\n";
    let times = |name: &str, time: f64| format!("[candidates.{name}]\ntimes = {{ two = {time} }}\n");
    place.write(
        "record.toml",
        &format!("{record}{}{}", times("baseline", 10.0), times(&quoted, 8.0)),
    );
    place.write("suite.toml", crate::common::ONE_CASE);
    let pitch = pitch("NAME", "stages = 2", "")
        .replace("\"NAME\"", &quoted)
        .replace("\"something is slow\"", &quoted)
        .replace("\"a test\"", &quoted);
    place.write(
        "round.toml",
        &format!(
            "name = {quoted}\ntitle = {quoted}\nexecutor = \"replay\"\ndevice = \"b200\"\nsuite = \"suite.toml\"\n\
             record = \"record.toml\"\n[baseline]\nschedule = {{}}\n{pitch}"
        ),
    );
    let ran = harmless(&place, &["run", "round.toml"]);
    assert!(ran.out.contains("\\u{1b}[31mX"), "{}", ran.out);
    std::fs::rename(place.path("r.json"), place.path("again.json")).unwrap();
    harmless(&place, &["report", "again.json"]);
    harmless(&place, &["report", "latest"]);
    printed(place.run(&["ledger", "list"]).expect(0));
    printed(place.run(&["ledger", "show", "latest"]).expect(0));
}

#[test]
fn suites_and_errors() {
    let place = Place::new();
    let quoted = json!(EVIL).to_string().replace('\u{85}', "\\u0085");
    let suite = format!(
        "name = {quoted}\ndescription = {quoted}\n[[benchmark]]\nname = {quoted}\nrms-norm = {{ rows = 4, columns = 512 }}\n"
    );
    place.write("s.toml", &suite);
    printed(place.run(&["suites", "s.toml"]).expect(0));
    printed(place.run(&["check", "s.toml"]).expect(0));
    // The line of the file that is shown with the error, too.
    place.write("t.toml", &suite.replace("rms-norm", "rms-nrm"));
    printed(place.run(&["suites", "t.toml"]).expect(2));
    place.write("u.toml", "name = \"\u{202e}\" oh\n");
    printed(place.run(&["suites", "u.toml"]).expect(2));
    printed(place.run(&["suites", EVIL]).expect(2));
    printed(place.run(&["compare", EVIL, EVIL]).expect(2));
}

#[test]
fn tasks_and_kernels_in_python() {
    if !has_numpy() {
        return;
    }
    let place = Place::new();
    let text = |after: &str| {
        let quoted = json!(EVIL).to_string();
        format!("import numpy as np\nE = {quoted}\n{after}")
    };
    place.write(
        "task.py",
        &text(
            "cases = [{'name': 'c' + E, 'rows': 3}]\n\
             def generate(rows, seed): return {'x': np.random.default_rng(seed).normal(size=rows).astype(np.float32)}\n\
             def reference(x): return {'y': x}\n\
             def check(inputs, output, expected):\n  if not np.array_equal(output['y'], expected['y']): return E\n",
        ),
    );
    place.write(
        "k.py",
        &text("def wrong(x): return x + 1\ndef fails(x): raise ValueError(E)\n"),
    );
    let name = "k\u{1b}[31m<script>alert(1)\u{202e}.py";
    place.write(name, "def f(x): return x + 1\n");
    printed(place.run(&["suites", "task.py"]).expect(0));
    for kernel in ["k.py:wrong", "k.py:fails", &format!("{name}:f")] {
        printed(place.run(&["check", kernel, "--task", "task.py"]).expect(1));
    }
    place.write("bad.py", &text("raise RuntimeError(E)\n"));
    printed(place.run(&["suites", "bad.py"]).expect(2));
    harmless(
        &place,
        &["judge", "k.py:fails", "--task", "task.py", "--budget", "1s"],
    );
}

#[test]
fn the_lines_of_this_program_keep_their_styles() {
    let place = Place::new();
    let file = repository("examples/shark-tank/rounds/b200-gemm-1.toml");
    let ran = place
        .command(&["run", file.to_str().unwrap(), "--executor", "replay"])
        .env_remove("NO_COLOR")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    assert!(out.contains("\u{1b}[1m") && !out.contains("u{1b}"), "{out}");
}
