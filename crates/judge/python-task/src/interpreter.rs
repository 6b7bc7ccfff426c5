//! Which Python runs a task.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The Python interpreter: the one that `GAUNTLET_PYTHON` names, else that of the active virtual environment, else
/// `python3` of the search path.
pub(crate) fn interpreter() -> PathBuf {
    chosen(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

fn chosen(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    if let Some(named) = variable("GAUNTLET_PYTHON") {
        return named.into();
    }
    let active = variable("VIRTUAL_ENV").map(|folder| Path::new(&folder).join("bin/python"));
    active.unwrap_or_else(|| "python3".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_interpreter_comes_before_the_active_environment() {
        let all = |name: &str| match name {
            "GAUNTLET_PYTHON" => Some("/opt/python".into()),
            _ => Some("/home/me/venv".into()),
        };
        assert_eq!(chosen(all), Path::new("/opt/python"));
        let active = |name: &str| (name == "VIRTUAL_ENV").then(|| "/home/me/venv".into());
        assert_eq!(chosen(active), Path::new("/home/me/venv/bin/python"));
        assert_eq!(chosen(|_| None), Path::new("python3"));
    }
}
