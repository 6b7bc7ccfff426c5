//! CUDA C++ kernels on a GPU, against the oracle of RMSNorm. Without a GPU or a compiler these tests print a note and
//! pass.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use gauntlet_host_native::HostService;
use gauntlet_host_nvrtc::{KernelFile, NvrtcHost};
use gauntlet_parameters::Parameters;
use gauntlet_rms_norm::RmsNorm;
use gauntlet_task::{Coverage, ErrorMeasures, InputKind, Inputs, Output, Rules, Sizes};
use gauntlet_tensors::DataType;
use gauntlet_worker::protocol::{CaseRequest, FailureKind, Scope};
use gauntlet_worker::{Calls, Service};

fn service(kernel: &str) -> Option<HostService<NvrtcHost>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/rms_norm.cu");
    match NvrtcHost::new(KernelFile::open(&path, kernel).unwrap(), 0) {
        Ok(host) => Some(HostService::new(host)),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

fn sizes() -> Sizes {
    let sizes = RmsNorm {
        rows: 300,
        columns: 1001,
        format: DataType::F32,
    };
    sizes.checked().unwrap()
}

/// The faults of the results of timed calls on these copies, and the device's times.
fn timed(kernel: &str, parameters: &Parameters, copies: &[usize]) -> Option<(Vec<Option<String>>, Vec<f64>)> {
    let mut service = service(kernel)?;
    let (sizes, folder) = (sizes(), tempfile::tempdir().unwrap());
    let resources = service.build(&CaseRequest::of(&sizes), parameters).unwrap();
    assert!(resources.0["occupancy"] > 0.0, "{resources:?}");
    let inputs: Vec<Box<dyn Inputs>> = [1, 2]
        .map(|seed| sizes.generate(InputKind::Competition, seed).unwrap())
        .into();
    let paths: Vec<PathBuf> = (0..2)
        .map(|index| folder.path().join(index.to_string()))
        .collect();
    for (inputs, path) in inputs.iter().zip(&paths) {
        inputs.save(path).unwrap();
    }
    service.load(&paths, 4).unwrap();
    let calls = Calls {
        copies: copies.to_vec(),
        scope: Scope::Device,
        ..Calls::default()
    };
    let samples = service.time(calls).unwrap();
    assert!(
        samples
            .iter()
            .all(|sample| sample.is_possible() && sample.kernel <= Some(sample.call))
    );
    let rules = Rules::default().suited_to(&sizes.outputs());
    let mut faults = Vec::new();
    for (call, copy) in copies.iter().enumerate() {
        let result = folder.path().join("y");
        service.output(&result, call).unwrap();
        let output = Output::load(&result, &sizes.outputs()).unwrap();
        let expected = sizes.expected(&*inputs[copy % 2], Coverage::Full).unwrap();
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        faults.push(rules.fault(&errors, sizes.rightness(None)));
    }
    let kernels = samples.iter().filter_map(|sample| sample.kernel).collect();
    Some((faults, kernels))
}

#[test]
fn every_timed_call_is_right_and_has_a_device_time() {
    let copies = [0, 1, 1, 3, 2, 0, 0, 1];
    for (kernel, parameters) in [
        ("rms_norm", Parameters::new()),
        ("rms_norm", Parameters::new().with("THREADS", 256_usize)),
        ("by_threads", Parameters::new()),
        ("by_atomics", Parameters::new()),
    ] {
        let Some((faults, kernels)) = timed(kernel, &parameters, &copies) else {
            return;
        };
        assert!(faults.iter().all(Option::is_none), "{kernel}: {faults:?}");
        assert_eq!(kernels.len(), copies.len());
        assert!(
            kernels.iter().all(|seconds| (1e-7..1e-2).contains(seconds)),
            "{kernels:?}"
        );
        println!("{kernel} {parameters}: {kernels:?}");
    }
}

#[test]
fn elements_that_are_not_written_are_noticed_in_every_call() {
    let Some((faults, _)) = timed("forgets_the_last", &Parameters::new(), &[0, 0, 1]) else {
        return;
    };
    assert!(faults.iter().all(Option::is_some));
}

#[test]
fn a_wrong_list_of_arguments_is_refused_before_the_launch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scale.cu");
    std::fs::write(
        &path,
        "__global__ void scale(const float* x, float* y, int rows) { y[0] = x[0]; }",
    )
    .unwrap();
    let table = "[scale]\narguments = [\"x\", \"y\"]\ngrid = 1\nblock = 32";
    std::fs::write(path.with_extension("toml"), table).unwrap();
    let Ok(host) = NvrtcHost::new(KernelFile::open(&path, "scale").unwrap(), 0) else {
        println!("skipped: there is no GPU");
        return;
    };
    let failure = HostService::new(host)
        .build(&CaseRequest::of(&sizes()), &Parameters::new())
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(
        failure.message.contains("the kernel has 3 parameters"),
        "{}",
        failure.message
    );
}
