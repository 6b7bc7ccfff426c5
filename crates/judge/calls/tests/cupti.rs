//! Tracing through a library in the place of CUPTI. Without a C compiler the test prints a note and passes, unless
//! `GAUNTLET_REQUIRE_CC` is set.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

use gauntlet_calls::Tracer;
use gauntlet_calls::activity::{Activity, TracedCall, Work};

/// Says in the environment that a process is the one that traces.
const INSIDE: &str = "GAUNTLET_TEST_TRACES";

/// The library is looked for once in a process and by an environment variable, so the test runs itself again with it.
#[test]
fn records_come_through_the_buffers_of_the_library() {
    if std::env::var_os(INSIDE).is_some() {
        return trace();
    }
    let folder = tempfile::tempdir().unwrap();
    // Where the packages of pip have it.
    let place = folder.path().join("nvidia/cuda_cupti/lib");
    std::fs::create_dir_all(&place).unwrap();
    let made = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(place.join("libcupti.so.12"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cupti.c"))
        .status();
    match made {
        Ok(status) => assert!(status.success(), "cupti.c does not compile"),
        Err(error) => {
            assert!(std::env::var_os("GAUNTLET_REQUIRE_CC").is_none(), "{error}");
            return eprintln!("skipped: there is no C compiler ({error})");
        }
    }
    let again = Command::new(std::env::current_exe().unwrap())
        .env("GAUNTLET_CUDA_LIBRARIES", folder.path())
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success() && said.contains("1 passed"), "{said}");
}

fn trace() {
    let tracer = Tracer::start().unwrap();
    // The library records the same call at each flush: what came before the call is forgotten.
    tracer.clear();
    let traced = tracer.call().unwrap();
    let activity = |work, start, end, stream, name: &str| Activity {
        work,
        start,
        end,
        stream,
        name: name.to_owned(),
    };
    let expected = TracedCall {
        window: 13_000,
        activities: vec![
            activity(Work::Kernel, 500, 10_500, 7, "_Z7softmaxPf"),
            activity(Work::Copy, 10_800, 11_800, 13, ""),
        ],
        left_out: 0,
    };
    assert_eq!(traced, expected);
    drop(tracer);
    // The library refuses to be turned on again.
    let refused = Tracer::start().err().unwrap();
    assert_eq!(
        refused,
        "CUPTI cannot trace: error 39 (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)"
    );
}
