//! Enforces the layers of this crate: no module imports a later one.

use std::path::{Path, PathBuf};

/// The layers, each of which may import those before it. The crate documentation describes each.
const LAYERS: [&str; 7] = [
    "evidence",
    "observer",
    "runner",
    "comparison",
    "gates",
    "session",
    "record",
];

/// Every Rust file under a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .flatten()
        .map(|entry| entry.path())
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The modules of this crate that a text mentions, each as `crate::MODULE`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    text.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// The position of a layer in the order; none for names that are no layer, such as a type that the crate exports.
fn place(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|known| *known == layer)
}

#[test]
fn every_module_imports_only_those_before_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults = Vec::new();
    let mut imports = 0;
    for path in sources(&root) {
        let inside = path.strip_prefix(&root).unwrap_or(&path);
        let first = inside
            .components()
            .next()
            .map(|part| part.as_os_str().to_string_lossy());
        let layer = first
            .as_deref()
            .unwrap_or_default()
            .trim_end_matches(".rs")
            .to_owned();
        let Some(own) = place(&layer) else {
            assert!(
                ["lib", "layers"].contains(&layer.as_str()),
                "{layer} is in no layer"
            );
            continue;
        };
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Links in the documentation may point anywhere.
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for module in named(line) {
                imports += 1;
                match place(module) {
                    Some(other) if other <= own => {}
                    _ => faults.push(format!("{}: {}", inside.display(), line.trim())),
                }
            }
        }
    }
    assert!(imports > 50, "only {imports} imports were found");
    assert!(
        faults.is_empty(),
        "imports against the order of layers:\n{}",
        faults.join("\n")
    );
}
