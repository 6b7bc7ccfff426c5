//! The Python interpreter of these tests.

use std::process::Command;
use std::sync::OnceLock;

/// The Python interpreter, if it has numpy. A `python3` may be a script that looks for the interpreter, which takes longer than
/// starting it.
pub fn interpreter() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let ask = || {
        let python = gauntlet_host_python::interpreter();
        let script = "import sys, numpy; print(sys.executable)";
        let asked = Command::new(python).args(["-c", script]).output().ok()?;
        let path = String::from_utf8(asked.stdout).unwrap();
        asked.status.success().then(|| path.trim().to_owned())
    };
    FOUND.get_or_init(ask).as_deref()
}

/// Whether the Python interpreter has numpy, which it must have where numpy is required.
pub fn has_numpy() -> bool {
    let found = interpreter().is_some();
    if !found {
        let missing = "not tried: the Python interpreter has no numpy; install it with `pip install numpy`";
        assert!(std::env::var_os("GAUNTLET_REQUIRE_NUMPY").is_none(), "{missing}");
        eprintln!("{missing}");
    }
    found
}
