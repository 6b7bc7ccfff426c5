//! The pages of docs/reference that are made from the code. A test fails if one of them is stale; with
//! `UPDATE_REFERENCE=1` the test rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory};
use gauntlet_families::TASKS;
use gauntlet_task::Task;

use crate::arguments::Arguments;

/// Compares a page with the committed one, or writes it.
fn check(page: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
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
         `stages=3` on the command line; `gauntlet schedules` prints the same tables, and checks a choice against a device.\n",
    );
    for task in TASKS {
        parameters_of(*task, &mut page);
    }
    check("parameters.md", &page);
}
