//! Which Python runs kernels.

use std::env;
use std::path::{Path, PathBuf};

/// The variable that names the interpreter.
pub const VARIABLE: &str = "GAUNTLET_PYTHON";

/// The interpreter: the one that `GAUNTLET_PYTHON` names, else the one of the active virtual environment, else
/// `python3`.
pub fn interpreter() -> PathBuf {
    chosen(
        env::var_os(VARIABLE).map(PathBuf::from),
        env::var_os("VIRTUAL_ENV").as_deref().map(Path::new),
    )
}

fn chosen(named: Option<PathBuf>, environment: Option<&Path>) -> PathBuf {
    let of_environment = || {
        environment
            .map(|folder| folder.join("bin/python"))
            .filter(|path| path.exists())
    };
    named
        .filter(|path| !path.as_os_str().is_empty())
        .or_else(of_environment)
        .unwrap_or_else(|| "python3".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_one_comes_first_and_then_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Some(folder.path());
        assert_eq!(chosen(Some("mine".into()), environment), Path::new("mine"));
        assert_eq!(chosen(Some("".into()), None), Path::new("python3"));
        assert_eq!(
            chosen(None, environment),
            Path::new("python3"),
            "it has no interpreter"
        );
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        let python = folder.path().join("bin/python");
        std::fs::write(&python, "").unwrap();
        assert_eq!(chosen(None, environment), python);
    }
}
