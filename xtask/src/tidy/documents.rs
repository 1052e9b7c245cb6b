//! Checks that the files that documents name exist.
//!
//! A path between backticks is relative to the repository's root, to the document's folder or to `crates`. In the text of a link
//! it may be shorter, because the link itself is checked.

use super::{files_below, read, root};

/// Checks each link and each path between backticks.
#[test]
fn documents_name_existing_files() {
    let mut missing = Vec::new();
    let (mut links, mut paths) = (0, 0);
    for document in files_below(".", ".md") {
        let folder = root().join(&document).parent().unwrap().to_path_buf();
        let text = without_code_blocks(&read(&document));
        for link in links_of(&text) {
            links += 1;
            if !folder.join(link).exists() {
                missing.push(format!("{document}: ({link})"));
            }
        }
        for path in paths_of(&text) {
            paths += 1;
            if ![root(), folder.clone(), root().join("crates")]
                .iter()
                .any(|folder| folder.join(path).exists())
            {
                missing.push(format!("{document}: `{path}`"));
            }
        }
    }
    assert!(missing.is_empty(), "these do not exist: {missing:#?}");
    assert!(links > 100, "the links are no longer found: {links}");
    assert!(paths > 10, "the paths are no longer found: {paths}");
}

fn without_code_blocks(text: &str) -> String {
    text.split("\n```").step_by(2).collect()
}

/// The files that a document links to.
fn links_of(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let links = links.filter(|link| !link.starts_with("http") && !link.starts_with('#'));
    links.filter_map(|link| link.split('#').next())
}

/// The paths between backticks that are not the text of a link.
fn paths_of(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split('`').collect();
    // The text before a path, the path, and the text after it.
    let quoted = parts.windows(3).step_by(2).map(|parts| (parts[1], parts[2]));
    let paths = quoted.filter(|(quoted, after)| is_path(quoted) && !after.starts_with("]("));
    paths.map(|(path, _)| path).collect()
}

/// Whether the text between backticks is a path in the repository, not a pattern, a command or a file outside.
fn is_path(quoted: &str) -> bool {
    let is_plain = quoted.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let is_elsewhere = quoted.starts_with(['/', '.', '-']);
    let is_ours =
        ["crates/", "docs/", "fuzz/", "tests/", "xtask/"].iter().any(|folder| quoted.starts_with(folder));
    let is_file = [".json", ".md", ".rs", ".sh", ".toml"].iter().any(|ending| quoted.ends_with(ending));
    is_plain && !is_elsewhere && (is_ours || quoted.contains('/') && is_file)
}

#[test]
fn links_and_paths_are_told_from_other_text() {
    let text = "[a](b.md#c), [d](https://e/f.md), [g](#h)\n```console\n[i](j.md)\n```\n![k](l/m.svg)";
    assert_eq!(links_of(&without_code_blocks(text)).collect::<Vec<_>>(), ["b.md", "l/m.svg"]);
    assert_eq!(paths_of("`a/b.rs`, [`c/d.rs`](e/c/d.rs) and `f`, `g/h.md`"), ["a/b.rs", "g/h.md"]);
    for (quoted, expected) in [
        ("crates/cel/src", true),
        ("endpoints/list_body.rs", true),
        ("application/json", false),
        ("Cargo.toml", false),
        ("/etc/kubernetes/policy.json", false),
        ("../shared/reference/types.json", false),
        ("crates/*/Cargo.toml", false),
        ("cargo test tests/attacks", false),
    ] {
        assert_eq!(is_path(quoted), expected, "{quoted}");
    }
}
