//! Which Python runs kernels and tasks.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

/// The variable that names the interpreter.
pub const VARIABLE: &str = "GAUNTLET_PYTHON";

/// What an interpreter says of itself.
const ASKED: &str = "import json, os, sys; print(json.dumps({'executable': sys.executable, 'path': sys.path, 'environment': dict(os.environ)}))";

/// Variables that a launcher changes without a difference to what the interpreter runs.
const OF_LAUNCHERS: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

/// The interpreter: the one that `GAUNTLET_PYTHON` names, else the one of the active virtual environment, else
/// `python3`. If that is a launcher, such as pyenv's, it is the interpreter that the launcher starts: looking for that takes a launcher
/// 0.1 to 0.3 s at each start.
pub fn interpreter() -> PathBuf {
    static FOUND: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());
    let chosen = chosen(
        env::var_os(VARIABLE).map(PathBuf::from),
        env::var_os("VIRTUAL_ENV").as_deref().map(Path::new),
    );
    let found = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(behind) = found().get(&chosen) {
        return behind.clone();
    }
    let search = env::var_os("PATH").unwrap_or_default();
    let launcher = located(&chosen, env::split_paths(&search)).filter(|file| is_script(file));
    let behind = launcher
        .and_then(|launcher| behind(&launcher))
        .unwrap_or_else(|| chosen.clone());
    found().insert(chosen, behind.clone());
    behind
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

/// The file of a program: where it says, or in the first of these folders that has it.
fn located(program: &Path, mut folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(program.to_owned());
    }
    folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()))
}

fn is_script(file: &Path) -> bool {
    let mut begins = [0; 2];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut begins));
    read.is_ok() && begins == *b"#!"
}

#[derive(Deserialize, PartialEq)]
struct Said {
    executable: PathBuf,
    path: Vec<String>,
    environment: BTreeMap<String, String>,
}

impl Said {
    /// None if the program cannot be asked.
    fn by(program: &Path) -> Option<Self> {
        // Isolated, so that no module of the current folder is imported.
        let asked = Command::new(program).args(["-I", "-c", ASKED]).output().ok()?;
        let mut said: Self = serde_json::from_slice(&asked.stdout).ok()?;
        said.environment
            .retain(|name, _| !OF_LAUNCHERS.contains(&name.as_str()) && !name.contains("PYENV_"));
        // Programs that a launcher puts into reach may be needed, but for its own.
        if let Some(search) = said.environment.get_mut("PATH") {
            let kept: Vec<&str> = search
                .split(':')
                .filter(|folder| !folder.contains("pyenv"))
                .collect();
            *search = kept.join(":");
        }
        Some(said)
    }
}

/// The interpreter that a launcher starts, if it runs the same without the launcher: with the same modules in reach and the
/// same environment.
fn behind(launcher: &Path) -> Option<PathBuf> {
    let said = Said::by(launcher)?;
    let is_alike = Said::by(&said.executable)? == said;
    is_alike.then_some(said.executable)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

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
        fs::create_dir(folder.path().join("bin")).unwrap();
        let python = folder.path().join("bin/python");
        fs::write(&python, "").unwrap();
        assert_eq!(chosen(None, environment), python);
    }

    #[test]
    fn a_program_is_found_where_the_search_path_has_it_first() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let of = |folder: usize| folders[folder].path().join("python3");
        let find = || {
            let folders = folders.iter().map(|folder| folder.path().to_owned());
            located(Path::new("python3"), folders)
        };
        assert_eq!(find(), None);
        fs::write(of(1), "").unwrap();
        assert_eq!(find(), Some(of(1)));
        fs::write(of(0), "").unwrap();
        assert_eq!(find(), Some(of(0)));
        let named = Path::new("./python3");
        assert_eq!(located(named, std::iter::empty()), Some(named.to_owned()));
    }

    /// A launcher that changes its environment so, and the interpreter that it starts.
    fn launched(changes: &str) -> (Option<PathBuf>, PathBuf) {
        let said = Said::by(&interpreter()).expect("there is a Python").executable;
        let folder = tempfile::tempdir().unwrap();
        let launcher = folder.path().join("python3");
        let text = format!("#!/bin/sh\n{changes}\nexec '{}' \"$@\"\n", said.display());
        fs::write(&launcher, text).unwrap();
        fs::set_permissions(&launcher, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(is_script(&launcher) && !is_script(&said));
        (behind(&launcher), said)
    }

    #[test]
    fn a_launcher_is_left_out_if_it_makes_no_difference() {
        let (behind, interpreter) = launched("export PYENV_VERSION=3 PATH=/opt/pyenv/libexec:$PATH");
        assert_eq!(behind, Some(interpreter));
    }

    #[test]
    fn a_launcher_that_sets_something_stays() {
        let (behind, _) = launched("export LD_LIBRARY_PATH=/opt/lib");
        assert_eq!(behind, None);
        let (behind, _) = launched("export PATH=/opt/cuda/bin:$PATH");
        assert_eq!(behind, None);
        let (behind, _) = launched("export PYTHONPATH=/opt/modules");
        assert_eq!(behind, None);
    }
}
