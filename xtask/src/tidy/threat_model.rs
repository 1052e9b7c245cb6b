//! Checks that each bound of the threat model has a test, and that the tests exist.
//!
//! The last cell of a row names tests behind their file, such as: `folder/file.rs`: `first_test`, `second_test`. A path is
//! relative to the repository's root or to `crates`; it may be a folder, or the name of a file alone.

use super::{files_below, read};

#[test]
fn the_threat_model_names_existing_tests() {
    let model = read("docs/threat-model.md");
    let sources = files_below(".", ".rs");
    let (mut missing, mut untested) = (Vec::new(), Vec::new());
    let mut seen = 0;
    let bounds = model.split(" | bound | test |\n|---|---|---|\n").skip(1);
    for row in bounds.flat_map(|table| table.lines().take_while(|line| line.starts_with('|'))) {
        let tests = tests_of(row);
        if tests.is_empty() && !row.contains("fuzz target") {
            untested.push(row);
        }
        for (path, test) in tests {
            seen += 1;
            let function = format!("fn {test}(");
            let mut named = sources.iter().filter(|file| is_named(file, path));
            if !named.any(|file| read(file).contains(&function)) {
                missing.push(format!("{path}: {test}"));
            }
        }
    }
    assert!(missing.is_empty(), "these do not exist: {missing:#?}");
    assert!(untested.is_empty(), "these name no test: {untested:#?}");
    assert!(seen > 100, "the tests are no longer found: {seen}");
}

/// The tests in the last cell of a row, each with its path.
fn tests_of(row: &str) -> Vec<(&str, &str)> {
    let cell = row.trim_end().trim_end_matches('|').rsplit(" | ").next().unwrap();
    let parts: Vec<&str> = cell.split('`').collect();
    let mut tests = Vec::new();
    // The path to which the next test belongs, and the text that stands before such a test.
    let (mut path, mut separator) = (None, ": ");
    for pair in parts.chunks_exact(2) {
        let (before, quoted) = (pair[0], pair[1]);
        if quoted.contains(['/', '.']) {
            (path, separator) = (Some(quoted), ": ");
        } else if let Some(path) = path.filter(|_| before == separator) {
            tests.push((path, quoted));
            separator = ", ";
        } else {
            path = None;
        }
    }
    tests
}

/// Whether a path of the threat model names a file of the repository.
fn is_named(file: &str, path: &str) -> bool {
    let below_crates = file.strip_prefix("crates/").unwrap_or(file);
    let is_whole = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let is_file_name = !path.contains('/') && file.ends_with(&format!("/{path}"));
    is_file_name || below_crates.strip_prefix(path).is_some_and(is_whole)
}

#[test]
fn tests_are_named_behind_their_files() {
    let row = "| `a/b.rs`: `c` | 1 | `d/e.rs`: `f`, `g`, `h.rs`: `i`; fuzz targets `j`, `k`, `l.rs`, `m` |";
    assert_eq!(tests_of(row), [("d/e.rs", "f"), ("d/e.rs", "g"), ("h.rs", "i")]);
    for (file, path, expected) in [
        ("crates/a/src/b.rs", "a/src/b.rs", true),
        ("crates/a/src/b/c.rs", "a/src/b", true),
        ("crates/a/src/b/c.rs", "c.rs", true),
        ("tests/a/src/b.rs", "tests/a/src/b.rs", true),
        ("crates/a/src/b.rs", "a/src/b", false),
        ("crates/a/src/bc.rs", "c.rs", false),
        ("tests/a/src/b.rs", "a/src/b.rs", false),
    ] {
        assert_eq!(is_named(file, path), expected, "{file} {path}");
    }
}
