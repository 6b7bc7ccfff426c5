//! Every command line that README.md, docs/ and examples/ show must be accepted by the parser of arguments, and what messages
//! advise must exist, so that a renamed or removed option cannot stay in a page or a message.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser};

use crate::arguments::Arguments;

const BEGINNINGS: [&str; 3] = ["gauntlet ", "$ gauntlet ", "cargo run --release -- "];

/// The files below a folder whose names end so.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The commands in fenced or indented code of a page with the number of the line they begin on, as words. A command
/// ends at a pipe, a redirection, `&&` or a comment.
fn commands(page: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut fenced = false;
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let code = fenced || line.starts_with("    ");
        let text = line.trim_start();
        let Some(rest) = BEGINNINGS
            .iter()
            .find_map(|beginning| text.strip_prefix(beginning))
        else {
            continue;
        };
        if !code {
            continue;
        }
        let mut whole = rest.to_owned();
        while let Some(open) = whole.strip_suffix('\\') {
            let (_, next) = lines.next().unwrap();
            whole = format!("{open} {}", next.trim());
        }
        let words = shlex::split(&whole).unwrap_or_default();
        let ends = |word: &String| ["|", ">", "<", "&&", "2>", ">>"].contains(&word.as_str());
        let own: Vec<_> = words.iter().take_while(|word| !ends(word)).cloned().collect();
        found.push((number + 1, own));
    }
    found
}

#[test]
fn commands_shown_in_the_pages_are_accepted() {
    let root = root();
    let mut all = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "examples"] {
        files(&root.join(folder), "md", &mut all);
    }
    // A synopsis with placeholders, which `options.md` shows in the parser's own form.
    all.retain(|path| !path.ends_with("reference/commands.md") && !path.ends_with("reference/options.md"));
    let mut read = 0;
    let mut wrong = Vec::new();
    for path in &all {
        for (line, words) in commands(&std::fs::read_to_string(path).unwrap()) {
            read += 1;
            let whole = std::iter::once("gauntlet").chain(words.iter().map(String::as_str));
            if let Err(error) = Arguments::try_parse_from(whole) {
                let shown = path.strip_prefix(&root).unwrap().display().to_string();
                wrong.push(format!("{shown}:{line}: {words:?}: {}", error.to_string().trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read > 40, "only {read} commands were found");
}

/// Options of other programs, and of those that Gauntlet starts itself, by the places that name them.
const OTHERS: [(&str, &[&str]); 16] = [
    // Of Slurm's commands.
    ("crates/service/farm/src/slurm.rs", &["--"]),
    // Of git.
    ("crates/service/history/src/", &["--"]),
    ("crates/faces/cli/src/arguments/", &["--gres"]),
    (
        "crates/judge/foreign-measurements/",
        &["--export-json", "--jsonbin", "--message-format"],
    ),
    ("crates/judge/foreign-measurements/", &["--benchmark"]),
    ("crates/judge/judge/src/runner/instruments/", &["--"]),
    ("crates/ground/cuda/src/compiler", &["--"]),
    ("crates/kernels/cuda/src/compiler/", &["--"]),
    (
        "crates/judge/hosts/nvrtc/src/",
        &["--define-macro", "--std", "--include-path"],
    ),
    (
        "crates/faces/cli/src/commands/",
        &["--compile-for", "--processors", "--tensors", "--gpgpu"],
    ),
    ("crates/lab/entrants/src/kernel.rs", &["--tensors"]),
    // The headers of patches.
    ("crates/arena/tournament/src/source/", &["--git"]),
    ("crates/faces/cli/src/commands/selftest.rs", &["--program"]),
    // Of cargo and of vLLM.
    ("crates/faces/cli/src/installation.rs", &["--release"]),
    (
        "python/gauntlet/engines/",
        &["--attention-backend", "--quantization"],
    ),
    (
        "crates/trials/selftest/src/",
        &["--program", "--slowed-by", "--threads"],
    ),
];

/// All long options of a command and of those below it, without the command `worker`, which programs start and not people.
fn options(command: &Command, found: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        let names = argument
            .get_long()
            .into_iter()
            .chain(argument.get_all_aliases().into_iter().flatten());
        found.extend(names.map(|name| format!("--{name}")));
    }
    let below = command
        .get_subcommands()
        .filter(|below| below.get_name() != "worker");
    below.for_each(|below| options(below, found));
}

/// The texts that begin so in the lines of a file that are neither comments nor tests, with the numbers of their lines.
fn named(text: &str, beginning: &str, letters: &str) -> Vec<(usize, String)> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_own = |letter: char| letter.is_ascii_alphanumeric() || letters.contains(letter);
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        if ["//", "#"]
            .iter()
            .any(|comment| line.trim_start().starts_with(comment))
        {
            continue;
        }
        for (at, _) in line.match_indices(beginning) {
            let end = line[at..]
                .find(|letter| !is_own(letter))
                .map_or(line.len(), |end| at + end);
            let name = line[at..end].trim_end_matches(['.', '/', '-']);
            if name.len() > beginning.len() && !line[..at].ends_with(|letter| is_own(letter) || letter == '/')
            {
                found.push((number + 1, name.to_owned()));
            }
        }
    }
    found
}

/// The sources whose messages people read.
fn sources() -> Vec<(String, String)> {
    let root = root();
    let mut all = Vec::new();
    files(&root.join("crates"), "rs", &mut all);
    all.retain(|path| path.components().any(|part| part.as_os_str() == "src"));
    files(&root.join("python/gauntlet"), "py", &mut all);
    all.sort();
    let shown = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    all.iter()
        .map(|path| (shown(path), std::fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn options_that_messages_name_exist() {
    let mut known = BTreeSet::new();
    options(&Arguments::command(), &mut known);
    // Those that clap adds, and those of the pytest plugin.
    known.extend(["--help", "--version", "--gauntlet-budget", "--gauntlet-skip"].map(str::to_owned));
    let (mut read, mut wrong) = (0, Vec::new());
    for (path, text) in sources() {
        if path == "crates/faces/cli/src/documented.rs"
            || path.starts_with("crates/faces/cli/src/commands/worker")
        {
            continue;
        }
        for (line, option) in named(&text, "--", "-_") {
            read += 1;
            let is_of_another = OTHERS.iter().any(|(place, options)| {
                path.starts_with(place) && options.iter().any(|other| option.starts_with(other))
            });
            if !known.contains(&option) && !is_of_another {
                wrong.push(format!("{path}:{line}: {option}"));
            }
        }
    }
    assert!(wrong.is_empty(), "no command has\n{}", wrong.join("\n"));
    assert!(read > 100, "only {read} options were found");
}

#[test]
fn files_that_messages_name_exist() {
    let root = root();
    let (mut read, mut wrong) = (0, Vec::new());
    for (path, text) in sources() {
        if path == "crates/faces/cli/src/documented.rs" {
            continue;
        }
        for folder in ["docs/", "scripts/", "examples/"] {
            for (line, file) in named(&text, folder, "-_./") {
                read += 1;
                if !root.join(&file).exists() {
                    wrong.push(format!("{path}:{line}: {file}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "there is no\n{}", wrong.join("\n"));
    assert!(read > 10, "only {read} files were found");
}
