//! CUDA C++ kernels against references, in the PTX interpreter. These tests need NVRTC, not a GPU. Without it they print
//! a note and pass, unless `GAUNTLET_REQUIRE_COMPILER` is set.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use gauntlet_host_native::HostService;
use gauntlet_host_nvrtc::{InterpretedHost, KernelFile};
use gauntlet_parameters::Parameters;
use gauntlet_rms_norm::RmsNorm;
use gauntlet_task::Scope;
use gauntlet_task::{Coverage, ErrorMeasures, InputKind, Output, Rules, Sizes};
use gauntlet_tensors::{DataType, Tensor, TensorSpec, save_tensors};
use gauntlet_worker::Service;
use gauntlet_worker::protocol::{CaseRequest, Failure, FailureKind};

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// The service of a kernel; none without a compiler.
fn service(file: &str, kernel: &str, architecture: &str) -> Option<HostService<InterpretedHost>> {
    let file = KernelFile::open(&path(file), kernel).unwrap();
    match InterpretedHost::new(file, architecture) {
        Ok(host) => Some(HostService::new(host)),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_COMPILER").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

fn sizes() -> Sizes {
    let sizes = RmsNorm {
        rows: 7,
        columns: 101,
        format: DataType::F32,
    };
    sizes.checked().unwrap()
}

/// The fault of a kernel's result as the rules of its task see it.
fn fault(
    kernel: &str,
    architecture: &str,
    parameters: &Parameters,
    kind: InputKind,
) -> Option<Result<Option<String>, Failure>> {
    let mut service = service("tests/kernels/rms_norm.cu", kernel, architecture)?;
    let (sizes, folder) = (sizes(), tempfile::tempdir().unwrap());
    let computed = service
        .build(&CaseRequest::of(&sizes), parameters)
        .and_then(|resources| {
            assert!(resources.0["registers"] > 0.0, "{resources:?}");
            let inputs = sizes.generate(kind, 5).unwrap();
            let file = folder.path().join("inputs");
            inputs.save(&file).unwrap();
            service.load(&[file], 1)?;
            service.run(0, 0xFF)?;
            let result = folder.path().join("y");
            service.output(&result, 0)?;
            let output = Output::load(&result, &sizes.outputs()).unwrap();
            let expected = sizes.expected(&*inputs, Coverage::Full).unwrap();
            let rules = Rules::default().suited_to(&sizes.outputs());
            let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
            Ok(rules.fault(&errors, sizes.rightness(Some(kind))))
        });
    Some(computed)
}

#[test]
fn right_kernels_are_right_on_every_architecture() {
    let defaults = Parameters::new();
    for (kernel, architecture, parameters) in [
        ("rms_norm", "sm_75", defaults.clone()),
        ("rms_norm", "sm_80", defaults.clone().with("THREADS", 256_usize)),
        ("rms_norm", "sm_90a", defaults.clone().with("THREADS", 96_usize)),
        ("rms_norm", "sm_100a", defaults.clone()),
        ("by_threads", "sm_89", defaults.clone()),
        ("by_atomics", "sm_75", defaults.clone()),
    ] {
        for kind in [InputKind::Competition, InputKind::Wide] {
            let Some(found) = fault(kernel, architecture, &parameters, kind) else {
                return;
            };
            assert_eq!(found, Ok(None), "{kernel}, {architecture}, {parameters}, {kind}");
        }
    }
}

#[test]
fn wrong_kernels_are_noticed() {
    let found = |kernel| fault(kernel, "sm_90a", &Parameters::new(), InputKind::Competition);
    let Some(without_weight) = found("without_weight") else {
        return;
    };
    assert!(without_weight.unwrap().is_some());
    assert!(found("forgets_the_last").unwrap().unwrap().is_some());
    let beyond = found("reads_beyond").unwrap().unwrap_err();
    assert_eq!(beyond.kind, FailureKind::BadRequest);
    assert!(
        beyond.message.contains("global memory are not allocated"),
        "{}",
        beyond.message
    );
    // Nothing is known about a kernel that the interpreter does not know: that is no fault of the kernel's.
    let unknown = found("rounded_toward_zero").unwrap().unwrap_err();
    assert_eq!(unknown.kind, FailureKind::Broken);
    assert!(
        unknown.message.contains("unsupported: ") && unknown.message.contains("rms_norm.cu:66"),
        "{}",
        unknown.message
    );
}

#[test]
fn parameters_are_those_of_the_table() {
    let refused = |parameters: Parameters| {
        let found = fault("rms_norm", "sm_80", &parameters, InputKind::Competition)?;
        let failure = found.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        Some(failure.message)
    };
    let Some(value) = refused(Parameters::new().with("THREADS", 33_usize)) else {
        return;
    };
    assert!(value.contains("33 is not allowed in `THREADS`"), "{value}");
    let restricted = refused(Parameters::new().with("THREADS", 100_usize)).unwrap();
    assert!(
        restricted.ends_with(
            "rms_norm.toml: rms_norm.restrictions: `THREADS % 32 == 0` does not hold; choose other values of the parameters"
        ),
        "{restricted}"
    );
    let file = KernelFile::open(&path("tests/kernels/rms_norm.cu"), "rms_norm").unwrap();
    let unknown = file
        .parameters()
        .scope(Scope::default(), &Parameters::new().with("THREAD", 32_usize))
        .unwrap_err();
    assert!(
        unknown.contains("has no parameter `THREAD`; its parameters are `THREADS`"),
        "{unknown}"
    );
    assert_eq!(file.parameters().space().len(), 5);
    assert_eq!(
        file.parameters().table().describe(&Parameters::new()),
        "THREADS 64"
    );
}

/// The examples compute the same softmax as a reference in f64.
#[test]
fn the_examples_are_right() {
    for (kernel, parameters) in [
        ("softmax_warp", Parameters::new()),
        ("softmax_warp", Parameters::new().with("ROWS", 1_usize)),
        ("softmax_block", Parameters::new().with("THREADS", 128_usize)),
        ("softmax_block", Parameters::new().with("KEEP", false)),
    ] {
        let Some(mut service) = service("../../../../examples/softmax/softmax.cu", kernel, "sm_80") else {
            return;
        };
        let spec = |name: &str| TensorSpec::new(name, DataType::F32, [5, 150]);
        let case = CaseRequest {
            task: "softmax".to_owned(),
            sizes: serde_json::json!({ "rows": 5, "cols": 150 }),
            inputs: vec![spec("x")],
            constant: Vec::new(),
            outputs: vec![spec("y")],
        };
        let values: Vec<f64> = (0..750)
            .map(|index| f64::from(index * 37 % 101) / 10.0 - 5.0)
            .collect();
        let x = Tensor::of(spec("x"), values.iter().copied());
        let folder = tempfile::tempdir().unwrap();
        let (inputs, result) = (folder.path().join("x"), folder.path().join("y"));
        save_tensors([(&x.spec, x.bytes.as_slice())], &inputs).unwrap();
        service.build(&case, &parameters).unwrap();
        service.load(&[inputs], 1).unwrap();
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
                    "{kernel} {parameters}: {found} for {expected}"
                );
            }
        }
    }
}

/// Writes a kernel with its table and builds it.
fn built(source: &str, table: &str) -> Option<Result<(), String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scale.cu");
    std::fs::write(&file, source).unwrap();
    std::fs::write(file.with_extension("toml"), table).unwrap();
    let shown = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    let kernel = match KernelFile::open(&file, "scale") {
        Ok(kernel) => kernel,
        Err(error) => return Some(Err(shown(error.to_string()))),
    };
    let host = InterpretedHost::new(kernel, "sm_80").ok()?;
    let built = HostService::new(host).build(&CaseRequest::of(&sizes()), &Parameters::new());
    Some(built.map(|_| ()).map_err(|failure| shown(failure.message)))
}

const SCALE: &str = "extern \"C\" __global__ void scale(const float* x, float* y, int rows) { y[threadIdx.x] = x[0] + rows; }";
const TABLE: &str = "[scale]\narguments = [\"x\", \"y\", \"int rows\"]\ngrid = 1\nblock = 32\n";

#[test]
fn errors_name_file_key_and_remedy() {
    let Some(right) = built(SCALE, TABLE) else {
        println!("skipped: no compiler");
        return;
    };
    assert_eq!(right, Ok(()));
    let error =
        |source: &str, from: &str, to: &str| built(source, &TABLE.replace(from, to)).unwrap().unwrap_err();
    let messages = [
        error(SCALE, "\"y\"", "\"z\""),
        error(SCALE, "grid = 1", "grid = \"ceil_div(row, 4)\""),
        error(SCALE, "grid = 1", "grid = [\"rows\", \"rows - 7\"]"),
        error(SCALE, "block = 32", "block = [64, 32]"),
        error(SCALE, "grid = 1", "grid = \"rows +\""),
        error(SCALE, "block = 32", "blocks = 32"),
        error(SCALE, ", \"int rows\"", ""),
        error(SCALE, "\"int rows\"", "\"double 1.5\""),
        error(SCALE, "[scale]", "[scaled]"),
        error(
            SCALE,
            "block = 32",
            "block = 32\nparameters = { ROWS = { values = [1, 2], default = 3 } }",
        ),
        error(
            SCALE,
            "block = 32",
            "block = 32\nparameters = { ROWS = [1, \"two\"] }",
        ),
        error(SCALE, "block = 32", "block = 32\ncluster = 2"),
        error(SCALE, "block = 32", "block = 32\nkernel = \"scala\""),
        error(&SCALE.replace("x[0]", "z[0]"), "", ""),
        error(&SCALE.replace("__global__", "__device__"), "", ""),
    ];
    insta::assert_snapshot!(messages.join("\n---\n"));
}

#[test]
fn a_kernel_without_a_table_is_told_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scale.cu");
    let missing = KernelFile::open(&file, "scale").unwrap_err().to_string();
    assert!(missing.contains("scale.cu cannot be read"), "{missing}");
    std::fs::write(&file, SCALE).unwrap();
    let error = KernelFile::open(&file, "scale").unwrap_err().to_string();
    assert!(
        error.contains("scale.toml is missing") && error.contains("[scale]\narguments = "),
        "{error}"
    );
}

#[test]
fn nothing_is_timed_and_nothing_large_is_interpreted() {
    let Some(mut service) = service("tests/kernels/rms_norm.cu", "by_atomics", "sm_80") else {
        return;
    };
    let large = RmsNorm {
        rows: 2000,
        columns: 3,
        format: DataType::F32,
    };
    let sizes = large.checked().unwrap();
    service
        .build(&CaseRequest::of(&sizes), &Parameters::new())
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inputs");
    sizes.generate(InputKind::Wide, 1).unwrap().save(&file).unwrap();
    service.load(&[file], 1).unwrap();
    let failure = service.run(0, 0xFF).unwrap_err();
    assert!(failure.message.contains("96000 threads"), "{}", failure.message);
    let calls = gauntlet_worker::Calls {
        copies: vec![0],
        ..gauntlet_worker::Calls::default()
    };
    let timed = service.time(calls).unwrap_err();
    assert!(
        timed.message.contains("there is no GPU here"),
        "{}",
        timed.message
    );
}
