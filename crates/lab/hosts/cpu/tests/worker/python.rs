//! The example worker in Python computes the same results as the reference of its task.

use std::path::{Path, PathBuf};
use std::process::Command;

use gauntlet_parameters::Parameters;
use gauntlet_rms_norm::RmsNorm;
use gauntlet_task::{Coverage, ErrorMeasures, InputKind, Output, Rules};
use gauntlet_tensors::DataType;
use gauntlet_worker::{Timeouts, WorkerCommand, WorkerProcess};

/// Set where numpy is required, such as in continuous integration.
const REQUIRE_NUMPY: &str = "GAUNTLET_REQUIRE_NUMPY";

/// The Python interpreter, if it has numpy.
fn python() -> Option<PathBuf> {
    let script = "import sys, numpy; print(sys.executable)";
    let asked = Command::new("python3").args(["-c", script]).output().ok()?;
    let path = String::from_utf8(asked.stdout).ok()?;
    asked.status.success().then(|| path.trim().into())
}

#[test]
fn the_example_in_python_is_right() {
    let Some(python) = python() else {
        let missing =
            "the example worker was not tried: python3 has no numpy; install it with `pip install numpy`";
        assert!(std::env::var_os(REQUIRE_NUMPY).is_none(), "{missing}");
        eprintln!("{missing}");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../examples/worker/rms_norm.py");
    let script = script.canonicalize().unwrap();
    let text = std::fs::read_to_string(&script).unwrap();
    assert!(text.lines().count() <= 60, "an example worker fits on a page");

    let sizes = RmsNorm {
        rows: 5,
        columns: 67,
        format: DataType::F32,
    };
    let sizes = sizes.checked().unwrap();
    let command = WorkerCommand::new(python, [script.into()]);
    let workers_folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (mut worker, description) =
        WorkerProcess::start(&command, workers_folder, Timeouts::default()).unwrap();
    assert_eq!(description.worker, "rms_norm.py");
    worker.build(&sizes, &Parameters::new()).unwrap();
    for kind in InputKind::ALL {
        let inputs = sizes.generate(kind, 7).unwrap();
        // A confined worker may read only a few folders, including its own.
        let file = worker.folder().join("inputs");
        inputs.save(&file).unwrap();
        worker.load(&[&file], 2).unwrap();
        worker.prepare().unwrap();
        worker.run(0).unwrap();
        worker.time(&[0, 1, 0], false).unwrap();
        let result = worker.folder().join("y");
        worker.output(&result, 2).unwrap();

        let expected = sizes.expected(&*inputs, Coverage::Full).unwrap();
        let output = Output::load(&result, &sizes.outputs()).unwrap();
        let rules = Rules::default().suited_to(&sizes.outputs());
        let errors = ErrorMeasures::between(&output, &expected, rules.tolerance);
        assert_eq!(rules.fault(&errors, sizes.rightness(Some(kind))), None, "{kind}");
    }
    worker.stop().unwrap();
}
