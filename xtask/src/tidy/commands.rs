//! Checks that `CONTRIBUTING.md` has the tasks of the help.

use super::read;
use crate::HELP;
use std::collections::BTreeSet;

#[test]
fn the_table_of_commands_has_every_task() {
    let tasks: BTreeSet<String> = HELP.lines().filter_map(task_of_help).collect();
    let contributing = read("CONTRIBUTING.md");
    let rows: BTreeSet<String> = contributing.lines().filter_map(task_of_row).collect();
    assert!(tasks.len() > 15, "the tasks are no longer found: {tasks:?}");
    assert_eq!(rows, tasks, "the table in CONTRIBUTING.md and the help have the same tasks");
}

/// The task that begins at a line of the help.
fn task_of_help(line: &str) -> Option<String> {
    let line = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
    // The description stands behind two spaces or more.
    task_of_usage(line.split("  ").next()?)
}

/// The task of a row of the table.
fn task_of_row(row: &str) -> Option<String> {
    let usage = row.strip_prefix("| `cargo xtask ")?;
    task_of_usage(usage.split('`').next()?)
}

/// The words before the arguments.
fn task_of_usage(usage: &str) -> Option<String> {
    let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let words: Vec<&str> = usage.split(' ').take_while(is_word).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[test]
fn tasks_are_the_words_before_the_arguments() {
    for (line, expected) in [
        ("  test [unit] [doc]", Some("test")),
        ("  sweep               every attack", Some("sweep")),
        ("  bench cluster [--sizes=N,...]", Some("bench cluster")),
        ("  openapi --check     compare the documents", Some("openapi")),
        ("                      run all tests", None),
        ("Tasks:", None),
    ] {
        assert_eq!(task_of_help(line).as_deref(), expected, "{line}");
    }
    assert_eq!(task_of_row("| `cargo xtask codegen [--check]` | generates |").as_deref(), Some("codegen"));
    assert_eq!(task_of_row("| `cargo test` | runs |"), None);
}
