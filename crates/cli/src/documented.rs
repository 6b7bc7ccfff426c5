//! Every command line that README.md, docs/ and examples/ show must be accepted by the parser of arguments, so that a
//! renamed or removed option cannot stay in a page.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::arguments::Arguments;

const BEGINNINGS: [&str; 3] = ["gauntlet ", "$ gauntlet ", "cargo run --release -- "];

/// The Markdown files below a folder.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "examples"] {
        pages(&root.join(folder), &mut all);
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
