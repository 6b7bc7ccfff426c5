//! Kernels with and without races, in the PTX interpreter: each broken one is named as what it is, with the lines of its source that
//! are marked, whatever its results are; no right one is accused. These tests need NVRTC, not a GPU. Without it they print a note and
//! pass, unless `GAUNTLET_REQUIRE_COMPILER` is set.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use gauntlet_host_native::HostService;
use gauntlet_host_nvrtc::{InterpretedHost, KernelFile};
use gauntlet_parameters::Parameters;
use gauntlet_tensors::{DataType, Tensor, TensorSpec, save_tensors};
use gauntlet_worker::Service;
use gauntlet_worker::protocol::{CaseRequest, Failure, FailureKind};

/// Elements of the input and of the output.
const COUNT: usize = 256;

/// A kernel of a file of fixtures.
struct Fixture<'t> {
    name: &'t str,
    /// What is wrong with it, as the comment above it says.
    what: &'t str,
    launch: [u32; 2],
    /// The lines that a fault may name.
    lines: Vec<usize>,
}

/// The kernels of a text. The lines of a kernel end where those of the next begin; those of a template have its name in the comment.
fn fixtures(text: &str) -> Vec<Fixture<'_>> {
    let marked = |from: &str| -> Vec<usize> {
        let lines = text
            .lines()
            .enumerate()
            .skip_while(|(_, line)| !line.contains(from));
        let end = |line: &str| line == "}" || line.ends_with("}    // *");
        let body = lines.clone().position(|(_, line)| end(line)).unwrap_or(0);
        let body = lines.take(body + 1).filter(|(_, line)| line.contains("// *"));
        body.map(|(at, _)| at + 1).collect()
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for two in lines.windows(2) {
        let Some((launch, what)) = two[0]
            .strip_prefix("// <<<")
            .and_then(|rest| rest.split_once(">>> "))
        else {
            continue;
        };
        let name = two[1].trim_start_matches("KERNEL(").split(')').next().unwrap();
        let (blocks, threads) = launch.split_once(", ").unwrap();
        let (what, of) = what.split_once(" of ").unwrap_or((what, ""));
        found.push(Fixture {
            name,
            what,
            launch: [blocks.parse().unwrap(), threads.parse().unwrap()],
            lines: marked(&if of.is_empty() {
                format!("KERNEL({name})")
            } else {
                format!("void {of}(")
            }),
        });
    }
    found
}

/// Runs a kernel as `check` does.
fn run(folder: &Path, file: &str, kernel: &str) -> Option<Result<(), Failure>> {
    let host = InterpretedHost::new(KernelFile::open(&folder.join(file), kernel).unwrap(), "sm_90");
    let mut service = match host {
        Ok(host) => HostService::new(host),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none(), "{error}");
            println!("skipped: {error}");
            return None;
        }
    };
    let spec = |name: &str| TensorSpec::new(name, DataType::F32, [COUNT]);
    let case = CaseRequest {
        task: "races".to_owned(),
        sizes: serde_json::json!({ "n": COUNT }),
        inputs: vec![spec("x")],
        constant: Vec::new(),
        outputs: vec![spec("y")],
    };
    let x = Tensor::of(spec("x"), (0..COUNT).map(|at| (at * 37 % 101) as f64 / 101.0));
    let inputs = folder.join("inputs");
    save_tensors([(&x.spec, x.bytes.as_slice())], &inputs).unwrap();
    Some(service.build(&case, &Parameters::new()).and_then(|_| {
        service.load(&[inputs], 1)?;
        service.run(0, 0xFF).map(|_| ())
    }))
}

/// Why a kernel's outcome is not what its comment says; none if it is.
fn wrong(fixture: &Fixture<'_>, file: &str, outcome: Result<(), Failure>) -> Option<String> {
    let Fixture {
        name, what, lines, ..
    } = fixture;
    let wrong = |why: &str| Some(format!("{file}:{name} ({what}): {why}"));
    let Failure { kind, message } = match outcome {
        Ok(()) if *what == "right" => return None,
        Ok(()) => return wrong("nothing was found"),
        Err(failure) if *what == "right" => return wrong(&failure.message),
        Err(failure) => failure,
    };
    let phrase = |what| match what {
        "race" => "race: ",
        "overrun" => "more arrive at the barrier",
        "unwritten" => "uninitialised read: ",
        "divergent" => "divergent barrier: ",
        "outside" => "bytes at",
        "deadlock" => "nothing goes on: ",
        "leftover" => "still expects",
        "early" => "no barrier was initialised",
        unsupported => unsupported.trim_start_matches("unsupported: "),
    };
    let is_unsupported = what.starts_with("unsupported");
    if !what.split(" or ").any(|what| message.contains(phrase(what)))
        || is_unsupported != (kind == FailureKind::Broken)
        || message.contains("race: ") != (kind == FailureKind::Racy)
    {
        return wrong(&message);
    }
    let named: Vec<usize> = message
        .split(&format!("{file}:"))
        .skip(1)
        .filter_map(|rest| {
            rest.split(|letter: char| !letter.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        })
        .collect();
    // Both accesses of a race, which may stand in one line.
    let needed = if *what == "race" { 2 } else { lines.len().min(1) };
    let is_named = named.iter().all(|line| lines.contains(line)) && named.len() >= needed;
    (!is_unsupported && !is_named).then(|| format!("{file}:{name}: lines {named:?} of {lines:?}: {message}"))
}

/// The text with no kernel but one: blank lines stand for the others, so that lines keep their numbers and compilation is short.
fn alone(text: &str, kernel: &str) -> String {
    let (mut lines, mut is_other) = (Vec::new(), false);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("KERNEL(") {
            is_other = !rest.starts_with(&format!("{kernel})"));
        }
        lines.push(if is_other { "" } else { line });
        if line.starts_with('}') || line.starts_with("KERNEL(") && line.contains('}') {
            is_other = false;
        }
    }
    lines.join("\n")
}

/// Runs all kernels of a file.
fn examine(file: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/races")
        .join(file);
    let text = std::fs::read_to_string(from).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(file);
    let fixtures = fixtures(&text);
    let mut faults = Vec::new();
    for fixture in &fixtures {
        let (name, [blocks, threads]) = (fixture.name, fixture.launch);
        let table =
            format!("[{name}]\narguments = [\"x\", \"y\", \"int n\"]\ngrid = {blocks}\nblock = {threads}\n");
        std::fs::write(source.with_extension("toml"), table).unwrap();
        std::fs::write(&source, alone(&text, name)).unwrap();
        let Some(outcome) = run(folder.path(), file, name) else {
            return;
        };
        faults.extend(wrong(fixture, file, outcome));
    }
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        fixtures.len(),
        faults.join("\n")
    );
}

#[test]
fn threads_of_a_block() {
    examine("block.cu");
}

#[test]
fn blocks_of_a_launch() {
    examine("device.cu");
}

#[test]
fn lanes_of_a_warp() {
    examine("warp.cu");
}

#[test]
fn copies_and_barriers_in_shared_memory() {
    examine("copies.cu");
}

#[test]
fn code_that_compilers_make_besides() {
    examine("code.cu");
}

#[test]
fn reductions_scans_histograms_and_transpositions() {
    examine("samples.cu");
}

#[test]
fn what_looks_otherwise_than_it_is() {
    examine("tricky.cu");
}
