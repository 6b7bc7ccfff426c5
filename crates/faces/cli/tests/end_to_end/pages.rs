//! `gauntlet pages`.

use crate::common::{NORM_SUITE, Place, names};

#[test]
fn what_the_ledger_holds_becomes_pages_that_link_to_each_other() {
    let place = Place::new();
    place.write("suite.toml", NORM_SUITE);
    let ledger = ["--ledger", "ledger.sqlite"];
    names(
        &place
            .run(&[&["pages", "--out", "site"][..], &ledger].concat())
            .expect(2),
        &["ledger.sqlite"],
    );
    let compare = "compare builtin builtin --task suite.toml --pairs 6 --quick";
    let compare: Vec<&str> = compare.split(' ').chain(ledger).collect();
    place.run(&compare);
    let ran = place
        .run(&[&["pages", "--out", "site"][..], &ledger].concat())
        .expect(0);
    assert!(ran.out.contains("9 pages in site"), "{}", ran.out);

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
    assert!(read("tasks/suite.html").contains("1 comparisons of kernels"));
    assert!(read("ledger.html").contains("all as they were written"));
    // Every link of every page leads to a page.
    for name in [
        "index.html",
        "verdicts.html",
        "tasks.html",
        "rounds.html",
        "regressed.html",
        verdict,
    ] {
        let folder = std::path::Path::new(name).parent().unwrap();
        let page = read(name);
        for link in page
            .split(r#"href=""#)
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
        {
            let target = place.path("site").join(folder).join(link);
            assert!(target.exists(), "{name} links to {link}");
        }
    }
}
