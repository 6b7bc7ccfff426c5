//! Functions of a shared library against the oracle of RMSNorm, over the worker protocol. Without a C compiler these
//! tests print a note and pass, unless `GAUNTLET_REQUIRE_CC` is set.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use gauntlet_host_library::{LibraryHost, LibraryOptions, Returns};
use gauntlet_host_native::{Argument, HostService};
use gauntlet_parameters::Parameters;
use gauntlet_rms_norm::RmsNorm;
use gauntlet_task::{Coverage, ErrorMeasures, InputKind, Inputs, Output, Rules, Sizes};
use gauntlet_tensors::{DataType, Tensor, TensorSpec, save_tensors};
use gauntlet_worker::protocol::{CaseRequest, FailureKind};
use gauntlet_worker::{Calls, Service};
use tempfile::TempDir;

/// A library compiled from a source of this repository, with the table beside it; none without a compiler.
fn compiled(source: &str, table: Option<&str>) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("librms_norm.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let made = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .arg("-lm")
        .status();
    match made {
        Ok(status) => assert!(status.success(), "{} does not compile", source.display()),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_CC").is_none(), "{error}");
            eprintln!("skipped: there is no C compiler ({error})");
            return None;
        }
    }
    if let Some(table) = table {
        std::fs::write(library.with_extension("toml"), table).unwrap();
    }
    Some((folder, library))
}

const TABLE: &str = "
rms_norm.arguments = ['x', 'weight', 'y', 'rows', 'columns']
checked.arguments = ['int columns', 'int rows', 'float* y', 'const float* weight', 'const float* x']
checked.returns = 'int'
failing = { arguments = ['x', 'weight', 'y'], returns = 'int' }
without_weight.arguments = ['x', 'weight', 'y', 'rows', 'columns']
forgets_the_last.arguments = ['x', 'weight', 'y', 'rows', 'columns']
remembers.arguments = ['x', 'weight', 'y', 'rows', 'columns']
aligned = { arguments = ['x', 'weight', 'y', 'rows', 'columns'], returns = 'int' }
many.arguments = ['1', 'int -2', '3', 'int -4', '5', 'int -6', 'x', 'weight', 'y', 'int rows', 'columns']
";

/// A service with a case built and operands of two files loaded.
struct Served {
    service: HostService<LibraryHost>,
    folder: TempDir,
    sizes: Sizes,
    inputs: Vec<Box<dyn Inputs>>,
}

fn sizes() -> Sizes {
    let sizes = RmsNorm {
        rows: 5,
        columns: 67,
        format: DataType::F32,
    };
    sizes.checked().unwrap()
}

fn opened(library: &Path, function: &str) -> HostService<LibraryHost> {
    let host = LibraryHost::open(library, function, &LibraryOptions::default()).unwrap();
    HostService::new(host)
}

impl Served {
    fn new(library: &Path, function: &str, kind: InputKind) -> Self {
        let mut service = opened(library, function);
        let (folder, sizes) = (tempfile::tempdir().unwrap(), sizes());
        service
            .build(&CaseRequest::of(&sizes), &Parameters::new())
            .unwrap();
        let inputs: Vec<_> = [3, 4].map(|seed| sizes.generate(kind, seed).unwrap()).into();
        let paths: Vec<PathBuf> = (0..2)
            .map(|index| folder.path().join(format!("{index}.inputs")))
            .collect();
        for (inputs, path) in inputs.iter().zip(&paths) {
            inputs.save(path).unwrap();
        }
        service.load(&paths, 4).unwrap();
        service.prepare().unwrap();
        Self {
            service,
            folder,
            sizes,
            inputs,
        }
    }

    /// The fault of a result, as the rules see it.
    fn fault(&mut self, call: usize, copy: usize) -> Option<String> {
        let path = self.folder.path().join("y");
        self.service.output(&path, call).unwrap();
        let output = Output::load(&path, &self.sizes.outputs()).unwrap();
        let expected = self
            .sizes
            .expected(&*self.inputs[copy % 2], Coverage::Full)
            .unwrap();
        let rules = Rules::default().suited_to(&self.sizes.outputs());
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        rules.fault(&errors, self.sizes.rightness(None))
    }

    /// The first fault among timed calls on these copies.
    fn timed(&mut self, copies: &[usize]) -> Option<String> {
        let calls = Calls {
            copies: copies.to_vec(),
            ..Calls::default()
        };
        let times = self.service.time(calls).unwrap();
        assert_eq!(times.len(), copies.len());
        assert!(times.iter().all(gauntlet_worker::protocol::Sample::is_possible));
        (0..copies.len()).find_map(|call| self.fault(call, copies[call]))
    }
}

#[test]
fn right_functions_are_right_in_every_call() {
    let Some((_folder, library)) = compiled("tests/rms_norm.c", Some(TABLE)) else {
        return;
    };
    for function in ["rms_norm", "checked", "aligned", "many"] {
        for kind in InputKind::ALL {
            let mut served = Served::new(&library, function, kind);
            served.service.run(0, 0x11).unwrap();
            assert_eq!(served.fault(0, 0), None, "{function}, {kind}");
            assert_eq!(
                served.timed(&[1, 0, 3, 3, 2, 1, 0, 0, 2]),
                None,
                "{function}, {kind}"
            );
        }
    }
}

#[test]
fn wrong_functions_are_noticed() {
    let Some((_folder, library)) = compiled("tests/rms_norm.c", Some(TABLE)) else {
        return;
    };
    for function in ["without_weight", "forgets_the_last"] {
        let mut served = Served::new(&library, function, InputKind::Competition);
        served.service.run(0, 0xFF).unwrap();
        assert!(served.fault(0, 0).is_some(), "{function}");
    }
    // Memory is used again with other values, so a cache by address answers wrongly in some call. Where each request gets the
    // memory of the one before, the values come in another order.
    let mut served = Served::new(&library, "remembers", InputKind::Competition);
    let orders = [[0, 1, 2, 3, 3, 2, 1, 0], [1, 0, 3, 2, 2, 3, 0, 1]];
    let wrong = (0..200).find_map(|turn| served.timed(&orders[turn % 2]));
    assert!(wrong.is_some());
    let mut failing = Served::new(&library, "failing", InputKind::Competition);
    let failure = failing.service.run(0, 0xFF).unwrap_err();
    assert_eq!(failure.kind, FailureKind::BadRequest);
    assert!(
        failure.message.starts_with("`failing` returned 7"),
        "{}",
        failure.message
    );
}

#[test]
fn errors_name_library_function_and_remedy() {
    let Some((_folder, library)) = compiled("tests/rms_norm.c", None) else {
        return;
    };
    let case = CaseRequest::of(&sizes());
    let error = |path: &Path, function: &str, options: &LibraryOptions| {
        LibraryHost::open(path, function, options)
            .err()
            .expect("it cannot be opened")
            .to_string()
    };
    let missing = error(&library, "softmax", &LibraryOptions::default());
    assert!(
        missing.contains("librms_norm.so has no function `softmax`"),
        "{missing}"
    );
    let nowhere = error(Path::new("nowhere.so"), "softmax", &LibraryOptions::default());
    assert!(nowhere.starts_with("nowhere.so cannot be loaded: "), "{nowhere}");

    let built = |arguments: &[&str]| {
        let options = LibraryOptions {
            arguments: Some(
                arguments
                    .iter()
                    .map(|one| one.parse().unwrap())
                    .collect::<Vec<Argument>>(),
            ),
            returns: Some(Returns::Void),
            ..LibraryOptions::default()
        };
        let mut service = HostService::new(LibraryHost::open(&library, "rms_norm", &options).unwrap());
        service
            .build(&case, &Parameters::new())
            .map_err(|failure| failure.message)
    };
    let unknown = built(&["x", "wieght", "y"]).unwrap_err();
    assert!(
        unknown.contains("argument `wieght`") && unknown.contains("`weight`"),
        "{unknown}"
    );
    let stream = built(&["x", "y", "stream"]).unwrap_err();
    assert!(stream.contains("there is no stream on the CPU"), "{stream}");
    let float = built(&["x", "float 1e-5"]).unwrap_err();
    assert!(float.contains("only pointers and whole numbers"), "{float}");
    let many = built(&["x"; 25]).unwrap_err();
    assert!(many.contains("25 arguments, and at most 24"), "{many}");

    let mut service = opened(&library, "rms_norm");
    let order = service.build(&case, &Parameters::new()).unwrap_err().message;
    assert!(
        order.contains("neither debug information (cc -g) nor a header"),
        "{order}"
    );
    let line =
        "librms_norm.toml: rms_norm = { arguments = [\"x\", \"weight\", \"y\", \"columns\", \"rows\"] }";
    assert!(order.ends_with(line), "{order}");
    let early = service.run(0, 0xFF).unwrap_err();
    assert_eq!(early.kind, FailureKind::BadRequest);
}

/// The line that the advice gives, written as it says, makes the kernel run.
#[test]
fn the_table_that_is_advised_has_the_functions_own_order() {
    for (flag, header) in [("-g", None), ("-O1", Some("rms_norm.h"))] {
        let folder = tempfile::tempdir().unwrap();
        let (source, library) = (
            folder.path().join("kernel.cpp.txt"),
            folder.path().join("librms_norm.so"),
        );
        let code = "int rms_norm(const float *x, float *y, const float *weight, long columns, long rows)";
        let own = "void other(float *a, long b) {}\nint unknown(float *x, long left) { return 0; }";
        std::fs::write(&source, format!("{code} {{ return 0; }}\n{own}\n")).unwrap();
        let made = Command::new("cc")
            .args(["-x", "c", flag, "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .status();
        let Ok(made) = made else {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_CC").is_none());
            return;
        };
        assert!(made.success());
        let declared = header.map(|header| {
            let text = format!("{code};\nint unknown(float *x, long left);\n");
            std::fs::write(folder.path().join(header), text).unwrap();
        });
        let by = if declared.is_some() {
            "by rms_norm.h"
        } else {
            "by the debug information"
        };
        let case = CaseRequest::of(&sizes());
        let refusal = |function: &str| {
            opened(&library, function)
                .build(&case, &Parameters::new())
                .unwrap_err()
                .message
        };
        let said = refusal("rms_norm");
        assert!(
            said.contains(&format!(
                "{by} its parameters are x, y, weight, columns, rows, so write to "
            )),
            "{said}"
        );
        let (place, line) = said
            .split_once("so write to ")
            .unwrap()
            .1
            .split_once(": ")
            .unwrap();
        let said = refusal("unknown");
        let unknown = "its parameters are x, left; put what each ? is, one of x, weight, y, columns, rows, and write to ";
        assert!(
            said.contains(unknown) && said.contains("[\"x\", \"?\"]"),
            "{said}"
        );
        std::fs::write(place, line).unwrap();
        assert!(
            opened(&library, "rms_norm")
                .build(&case, &Parameters::new())
                .is_ok()
        );
        let said = refusal("unknown");
        assert!(said.contains("give the entry [unknown] of "), "{said}");
    }
}

/// Both functions of the example compute the same softmax as a reference in f64.
#[test]
fn the_examples_are_right() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../examples/softmax/libsoftmax.toml");
    let table = std::fs::read_to_string(table).unwrap();
    let Some((folder, library)) = compiled("../../../../examples/softmax/softmax.c", Some(&table)) else {
        return;
    };
    let spec = |name: &str| TensorSpec::new(name, DataType::F32, [5, 150]);
    let case = CaseRequest {
        task: "softmax".to_owned(),
        sizes: serde_json::json!({ "parameters": { "rows": 5, "cols": 150 }, "library": "numpy" }),
        inputs: vec![spec("x")],
        constant: Vec::new(),
        outputs: vec![spec("y")],
    };
    let values = (0..750).map(|index| f64::from(index * 37 % 101) / 10.0 - 5.0);
    let x = Tensor::of(spec("x"), values);
    let (inputs, result) = (folder.path().join("x"), folder.path().join("y"));
    save_tensors([(&x.spec, x.bytes.as_slice())], &inputs).unwrap();
    for function in ["softmax", "softmax_online"] {
        let mut service = opened(&library, function);
        service.build(&case, &Parameters::new()).unwrap();
        service.load(std::slice::from_ref(&inputs), 1).unwrap();
        service.run(0, 0xFF).unwrap();
        service.output(&result, 0).unwrap();
        let found = Output::load(&result, &case.outputs).unwrap();
        for row in 0..5 {
            let of_row: Vec<f64> = (0..150).map(|col| x.get(row * 150 + col)).collect();
            let most = of_row.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = of_row.iter().map(|value| (value - most).exp()).sum();
            for (col, value) in of_row.iter().enumerate() {
                let (expected, found) = ((value - most).exp() / sum, found.0[0].get(row * 150 + col));
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{function}: {found} for {expected}"
                );
            }
        }
    }
}
