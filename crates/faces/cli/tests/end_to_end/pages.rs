//! `gauntlet pages`.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use crate::common::{NORM_SUITE, Place, names};

#[test]
fn what_the_ledger_holds_becomes_pages_that_link_to_each_other() {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--ledger", "ledger.sqlite"]).collect();
        place.run(&words)
    };
    names(&run("pages --out site").expect(2), &["ledger.sqlite"]);
    run("compare builtin builtin --task suite.toml --pairs 6 --quick");
    run("compare builtin rows-per-task=8 --task suite.toml --pairs 6 --quick");
    // The older verdict is not on the first page, but on its task's.
    let ran = run("pages --out site --newest 1").expect(0);
    assert!(ran.out.contains("10 pages in site"), "{}", ran.out);

    let read = |name: &str| std::fs::read_to_string(place.path(&format!("site/{name}"))).unwrap();
    let index = read("index.html");
    let verdict = index
        .split('"')
        .find(|text| text.starts_with("verdicts/2"))
        .unwrap();
    let page = read(verdict);
    assert!(
        page.contains("<h2>Once more</h2>") && page.contains("gauntlet ledger repeat"),
        "{page}"
    );
    assert!(
        page.contains("../tasks/suite.html"),
        "links lead up from a folder"
    );
    assert!(read("tasks/suite.html").contains("Comparisons of kernels: 2"));
    assert!(read("ledger.html").contains("all as they were written"));
    for folder in ["", "tasks", "verdicts"] {
        for entry in std::fs::read_dir(place.path("site").join(folder)).unwrap() {
            let name = Path::new(folder).join(entry.unwrap().file_name());
            if name.extension().is_some() {
                every_link_leads_somewhere(&place.path("site").join(name));
            }
        }
    }
}

#[track_caller]
fn every_link_leads_somewhere(page: &Path) {
    let text = std::fs::read_to_string(page).unwrap();
    let links = text.split(r#"href=""#).skip(1);
    for link in links.filter_map(|rest| rest.split('"').next()) {
        let target = page.parent().unwrap().join(link);
        assert!(target.exists(), "{} links to {link}", page.display());
    }
}
