//! The crates' folders are the products, and each crate imports only from its own folder or from those that its product may
//! know; the judge's hosts, say, know no kernel of ours.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Each folder, and those that its crates may import from besides it.
const MAY_IMPORT: [(&str, &[&str]); 8] = [
    ("ground", &[]),
    ("judge", &["ground"]),
    ("kernels", &["ground"]),
    ("lab", &["ground", "judge", "kernels"]),
    ("arena", &["ground", "judge", "kernels", "lab"]),
    ("service", &["ground", "judge", "kernels", "lab", "arena"]),
    (
        "faces",
        &["ground", "judge", "kernels", "lab", "arena", "service"],
    ),
    (
        "trials",
        &["ground", "judge", "kernels", "lab", "arena", "service", "faces"],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn table(path: &Path) -> Table {
    fs::read_to_string(path).unwrap().parse().unwrap()
}

/// The workspace's manifests, by the folders of their crates under `crates/`.
fn manifests(folder: &Path, under: &str, found: &mut BTreeMap<String, Table>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{under}{}", path.file_name().unwrap().to_str().unwrap());
        if path.join("Cargo.toml").is_file() {
            found.insert(name, table(&path.join("Cargo.toml")));
        } else if path.is_dir() {
            manifests(&path, &format!("{name}/"), found);
        }
    }
}

/// The names of the tables that hold what a crate is built from, without what only its tests need.
fn dependencies(manifest: &Table) -> Vec<&String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(|targets| targets.values());
    let tables = targets.filter_map(toml::Value::as_table).chain([manifest]);
    let kinds = tables.flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")]);
    let kinds = kinds.flatten().filter_map(toml::Value::as_table);
    kinds.flat_map(Table::keys).collect()
}

#[test]
fn crates_import_only_from_products_that_theirs_may_know() {
    let mut crates = BTreeMap::new();
    manifests(&root().join("crates"), "", &mut crates);
    let name = |manifest: &Table| manifest["package"]["name"].as_str().unwrap().to_owned();
    let places: BTreeMap<_, _> = crates
        .iter()
        .map(|(place, manifest)| (name(manifest), place))
        .collect();
    let product = |place: &str| place.split('/').next().unwrap_or_default().to_owned();
    let mut wrong = Vec::new();
    for (place, manifest) in &crates {
        let own = product(place);
        let (_, known) = MAY_IMPORT.iter().find(|(folder, _)| *folder == own).unwrap();
        for imported in dependencies(manifest)
            .into_iter()
            .filter_map(|name| places.get(name))
        {
            let of = product(imported);
            if of != own && !known.contains(&of.as_str()) {
                wrong.push(format!("{place} -> {imported}"));
            }
        }
    }
    assert!(crates.len() > 30, "{crates:?}");
    assert_eq!(wrong, Vec::<String>::new());
}

/// All Rust sources under a folder, without those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Two crates that need the same code depend on a crate that has it.
#[test]
fn no_source_is_compiled_into_two_crates() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    assert!(files.len() > 500, "{}", files.len());
    files.retain(|path| fs::read_to_string(path).unwrap().contains("#[path"));
    assert_eq!(files, Vec::<PathBuf>::new());
}
