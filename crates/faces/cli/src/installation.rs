//! The other programs of the same installation.

use std::path::{Path, PathBuf};

use gauntlet_worker::Program;
use nix::unistd::{AccessFlags, access};

use crate::commands::run::this_program;
use crate::error::CliError;

/// The executable file of another program of this installation, which `package` builds: beside this program, or else in PATH.
///
/// # Errors
/// If it is in neither of them.
pub fn of_the_installation(name: &str, package: &str) -> Result<PathBuf, CliError> {
    let this = this_program()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside(&this)
        .map(Path::to_owned)
        .chain(std::env::split_paths(&path));
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.is_file() && access(file, AccessFlags::X_OK).is_ok()).ok_or_else(|| {
        CliError::broken(format!(
            "{name} is a program of its own, and is neither beside {} nor in PATH",
            this.file.display()
        ))
        .with_remedy(format!(
            "put it there from the same release, or build it in the same checkout: `cargo build --release -p {package}`"
        ))
    })
}

/// The folders of a program's files: of its executable, and of the script that an interpreter is given.
fn beside(program: &Program) -> impl Iterator<Item = &Path> {
    let script = program.arguments.last().map(Path::new);
    let files = std::iter::once(program.file.as_path()).chain(script);
    files
        .filter_map(Path::parent)
        .filter(|folder| folder.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_lie_beside_the_executable_and_beside_its_script() {
        let program = Program {
            file: "/opt/bin/python3".into(),
            arguments: vec!["-I".into(), "/opt/lib/gauntlet/_start.py".into()],
        };
        let folders: Vec<_> = beside(&program).collect();
        assert_eq!(folders, [Path::new("/opt/bin"), Path::new("/opt/lib/gauntlet")]);
        assert_eq!(
            beside(&Program::new("gauntlet")).count(),
            0,
            "no folder is the current one"
        );
    }
}
