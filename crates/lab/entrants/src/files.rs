//! The files that a comparison depends on, as far as they can be told from its command line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use gauntlet_judge::KernelText;
use gauntlet_task::Suite;

/// Endings of sources and tables. Results end in `.json`, so such a file counts only where it is named.
const SOURCES: [&str; 12] = [
    "py", "toml", "yml", "yaml", "c", "cc", "cpp", "cxx", "cu", "cuh", "h", "hpp",
];

/// Files that make a folder a task, or belong to one.
const TASK_FILES: [&str; 6] = [
    "task.py",
    "task.toml",
    "task.yml",
    "reference.py",
    "definition.json",
    "workload.jsonl",
];

/// Digests of all files that are named for the task, the kernels and the device, and of the sources beside them that these
/// mention: imported modules, headers, tables.
pub fn digests(
    task: &str,
    suite: &Suite,
    kernels: &[KernelText],
    device: Option<&str>,
) -> BTreeMap<String, String> {
    let operands = suite.correctness.iter().chain(&suite.benchmark);
    let mut waiting: Vec<PathBuf> = operands.filter_map(|case| case.data.clone()).collect();
    waiting.extend(task_files(Path::new(task)));
    waiting.extend(kernels.iter().flat_map(KernelText::files));
    waiting.extend(device.map(PathBuf::from));
    digests_of(waiting)
}

/// Digests of these files, and of the sources beside them that they mention.
pub fn digests_of(mut waiting: Vec<PathBuf>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while let Some(path) = waiting.pop() {
        let name = path.display().to_string();
        if found.contains_key(&name) || !path.is_file() {
            continue;
        }
        // A file that cannot be read cannot be measured either.
        let Ok(digest) = digest(&path) else { continue };
        found.insert(name, digest);
        if is_source(&path) {
            let text = std::fs::read(&path).unwrap_or_default();
            waiting.extend(mentioned(&path, &String::from_utf8_lossy(&text)));
        } else {
            waiting.push(path.with_extension("toml"));
        }
    }
    found
}

/// The digest of this program; empty if it cannot be read.
pub fn digest_of_program() -> String {
    let digest = std::env::current_exe().and_then(|program| digest(&program));
    digest.unwrap_or_default()
}

/// The BLAKE3 digest of a file, which may be larger than memory.
fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// The files that make a path a task, whether they exist or not.
pub fn task_files(task: &Path) -> Vec<PathBuf> {
    let stands_for_its_folder = task
        .file_name()
        .is_some_and(|name| TASK_FILES.iter().any(|file| name == *file));
    let folder = match task.parent() {
        Some(parent) if stands_for_its_folder => parent,
        _ => task,
    };
    let beside = TASK_FILES.iter().map(|file| folder.join(file));
    beside.chain([task.to_owned()]).collect()
}

fn is_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| SOURCES.contains(&ending))
}

/// Whether a name stands in a text with no letter, digit or underscore right before or after it.
fn has_word(text: &str, name: &str) -> bool {
    let is_of_a_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name).any(|(begin, found)| {
        let (before, after) = (&text[..begin], &text[begin + found.len()..]);
        !before.ends_with(is_of_a_word) && !after.starts_with(is_of_a_word)
    })
}

/// The sources in the same folder whose stem, the name without its ending, stands in the file's text or is the file's own
/// stem, and all sources directly inside folders of which the same is true.
fn mentioned(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| path_in(folder, &entry.file_name())).collect()
    };
    let is_mentioned = |other: &PathBuf| {
        let stem = other.file_stem().and_then(|stem| stem.to_str());
        stem.is_some_and(|stem| has_word(text, stem)) || other.file_stem() == path.file_stem()
    };
    let (folders, files): (Vec<_>, Vec<_>) = entries(folder)
        .into_iter()
        .filter(is_mentioned)
        .partition(|other| other.is_dir());
    let within = folders.iter().flat_map(|folder| entries(folder));
    files
        .into_iter()
        .chain(within)
        .filter(|other| is_source(other))
        .collect()
}

/// A file in a folder, named as on the command line: without a leading `./`.
fn path_in(folder: &Path, name: &std::ffi::OsStr) -> PathBuf {
    if folder == Path::new(".") {
        PathBuf::from(name)
    } else {
        folder.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_whole_words_only() {
        for (text, name, is_there) in [
            ("#include \"gemm-tile.cuh\"", "gemm-tile", true),
            ("#include \"tile.v2.cuh\"", "tile.v2", true),
            ("import helpers2", "helpers", false),
            ("my_helpers = helpers_of(2)", "helpers", false),
        ] {
            assert_eq!(has_word(text, name), is_there, "{text}: {name}");
        }
    }

    #[test]
    fn files_are_followed_to_the_sources_that_they_mention() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "kernels/fast.py",
            "import tools.norms\nfrom helper import scale\n",
        );
        write("kernels/helper.py", "import deep");
        write("kernels/deep.py", "helper = 1  # a circle");
        write("kernels/fast.toml", "");
        write("kernels/tools/norms.py", "");
        write("kernels/slow.py", "no file mentions this one");
        write("kernels/helper.json", "{}");
        write("task/task.py", "from sizes import cases");
        write("task/task.toml", "");
        write("task/sizes.py", "");
        write("task/result.json", "{}");
        let suite = gauntlet_families::suite("rms-norm").unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let found = |kernel: &str| {
            let kernels = [path(kernel) + ":norm", "builtin".to_owned()].map(|text| text.parse().unwrap());
            digests(&path("task"), &suite, &kernels, Some("h100"))
        };
        let before = found("kernels/fast.py");
        let named = [
            "kernels/deep.py",
            "kernels/fast.py",
            "kernels/fast.toml",
            "kernels/helper.py",
            "kernels/tools/norms.py",
            "task/sizes.py",
            "task/task.py",
            "task/task.toml",
        ];
        assert_eq!(before.keys().cloned().collect::<Vec<_>>(), named.map(path));
        assert_eq!(found("kernels/fast.py"), before);
        write("kernels/deep.py", "helper = 2");
        let after = found("kernels/fast.py");
        let changed: Vec<&String> = before
            .keys()
            .filter(|file| before[*file] != after[*file])
            .collect();
        assert_eq!(changed, [&path("kernels/deep.py")]);
    }
}
