//! The pages of docs/reference that are made from the code. A test fails if one of them is stale; with
//! `UPDATE_REFERENCE=1` the test rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory};
use gauntlet_families::TASKS;
use gauntlet_task::Task;
use serde_json::Value;

use crate::arguments::Arguments;
use crate::schemas::types::{OF_THE_SELFTEST, types};
use crate::schemas::{self, Medium, PUBLISHED};

/// Compares a page with the committed one, or writes it.
fn check(page: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs/reference")
        .join(page);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "docs/reference/{page} is stale: run `UPDATE_REFERENCE=1 cargo test -p kernel-gauntlet reference`"
    );
}

/// The help of a command and of the commands below it, each as its terminal shows it.
fn commands_below(command: &Command, above: &str, page: &mut String) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let name = format!("{above} {}", below.get_name());
        if below.get_name() == "help" {
            continue;
        }
        let help = below
            .clone()
            .bin_name(&name)
            .term_width(100)
            .render_long_help()
            .to_string();
        let lines: Vec<_> = help.lines().map(str::trim_end).collect();
        writeln!(page, "\n## {name}\n\n```text\n{}\n```", lines.join("\n").trim()).unwrap();
        commands_below(below, &name, page);
    }
}

#[test]
fn the_page_of_commands_is_what_help_prints() {
    let mut page = String::from(
        "# All commands with their options\n\nWhat `gauntlet COMMAND --help` prints. \
         [Commands and exit codes](commands.md) is shorter and explains exit codes.\n",
    );
    let mut command = Arguments::command();
    command.build();
    commands_below(&command, "gauntlet", &mut page);
    // The version holds the commit, which changes with every commit of the page.
    check("options.md", &page.replace(env!("GAUNTLET_VERSION"), "VERSION"));
}

/// Text in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn parameters_of(task: &dyn Task, page: &mut String) {
    writeln!(page, "\n## {}\n\n{}\n", task.name(), sentence(task.summary())).unwrap();
    let suites: Vec<_> = task
        .suites()
        .iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    writeln!(page, "Suites: {}.\n", suites.join(", ")).unwrap();
    page.push_str("| parameter | accepts | default | on a GPU | on a CPU |\n|---|---|---|---|---|\n");
    for parameter in task.parameters().parameters() {
        let on_cpu = parameter.on_cpu.as_deref().unwrap_or("the same");
        writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            parameter.name,
            cell(&parameter.domain.to_string()),
            cell(&parameter.default.to_string()),
            cell(&parameter.meaning),
            cell(on_cpu),
        )
        .unwrap();
    }
}

/// A summary as a sentence.
fn sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    let text = first.unwrap_or_default() + letters.as_str();
    format!("{}.", text.trim_end_matches('.'))
}

#[test]
fn the_page_of_parameters_is_what_the_families_declare() {
    let mut page = String::from(
        "# Parameters of the built-in kernels\n\nA candidate names them as `stages = 3` in a file or \
         `stages=3` on the command line; `gauntlet schedules` prints the same tables, and checks a choice against a device. \
         [Contributing](../../CONTRIBUTING.md#adding-a-parameter) says how to add one.\n",
    );
    for task in TASKS {
        parameters_of(*task, &mut page);
    }
    check("parameters.md", &page);
}

/// The folder of the committed schemas.
const SCHEMAS: &str = "schemas";

#[test]
fn the_schemas_are_what_the_types_generate() {
    let types = types();
    for published in PUBLISHED {
        let page = format!("{SCHEMAS}/{}.json", published.name);
        match types.iter().find(|(name, ..)| *name == published.name) {
            Some((_, version, form)) => {
                assert_eq!(published.version, *version, "{page}");
                check(&page, &schemas::text(published, form()));
            }
            None => assert!(OF_THE_SELFTEST.contains(&published.name), "{page}"),
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs/reference")
        .join(SCHEMAS);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy();
        let is_published = PUBLISHED.iter().any(|published| published.name == stem);
        assert!(
            is_published,
            "{} is the schema of nothing: delete it",
            path.display()
        );
    }
}

#[test]
fn every_field_of_a_schema_is_described() {
    let mut bare = Vec::new();
    for published in PUBLISHED {
        undescribed(
            published.name,
            &serde_json::from_str(published.text).unwrap(),
            &mut bare,
        );
    }
    assert!(
        bare.is_empty(),
        "add doc comments to the types:\n{}",
        bare.join("\n")
    );
}

/// The fields below a schema that have no description, neither of their own nor of their type.
fn undescribed(place: &str, schema: &Value, bare: &mut Vec<String>) {
    match schema {
        Value::Object(entries) => {
            for (key, below) in entries {
                let fields = below.as_object().filter(|_| key == "properties");
                // The description of a variant of an enum stands beside the only field, its name.
                let is_variant =
                    fields.is_some_and(|fields| fields.len() == 1) && entries.contains_key("description");
                for (name, field) in fields.into_iter().flatten().filter(|_| !is_variant) {
                    let is_tag = field.get("const").is_some();
                    if !is_tag && field.get("description").is_none() {
                        bare.push(format!("{place}/{name}"));
                    }
                }
                undescribed(&format!("{place}/{key}"), below, bare);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| undescribed(place, item, bare)),
        _ => {}
    }
}

#[test]
fn the_page_of_schemas_lists_all_of_them() {
    let mut page = String::from(
        "# JSON Schemas\n\nEverything that Gauntlet writes as JSON, and every file that it reads, has a \
         [JSON Schema](https://json-schema.org) (draft 2020-12). They are generated from the types that write and read the \
         data: `gauntlet schema` lists them, and `gauntlet schema NAME` prints one. An editor that knows JSON Schema checks and \
         completes files with them, TOML included. The version of a form is raised when a reader of the previous form could \
         misread it; fields may be added without that, so validate a document with the schemas of the program that wrote it.\n",
    );
    for (medium, title, text) in [
        (
            Medium::Document,
            "Documents",
            "JSON objects that `--json` writes. The field `schema` names the form, as in `\"schema\": \"gauntlet/comparison/2\"`; \
             [JSON results](json.md) explains units and changes.",
        ),
        (
            Medium::List,
            "Lists",
            "JSON lists that `--json` writes. They have no field `schema`.",
        ),
        (
            Medium::File,
            "Files",
            "Files that users write, or that a command writes and another one reads: TOML, where the table does not say JSON.",
        ),
        (
            Medium::Message,
            "Messages",
            "Lines of JSON between the coordinator and a [worker](protocol.md). The version is that of the protocol.",
        ),
    ] {
        writeln!(
            page,
            "\n## {title}\n\n{text}\n\n| schema | version | what it describes |\n|---|---|---|"
        )
        .unwrap();
        for published in PUBLISHED.iter().filter(|published| published.medium == medium) {
            let name = published.name;
            writeln!(
                page,
                "| [{name}]({SCHEMAS}/{name}.json) | {} | {} |",
                published.version,
                cell(published.summary)
            )
            .unwrap();
        }
    }
    check("schemas.md", &page);
}
