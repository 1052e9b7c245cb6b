//! Checks that the examples in the documentation are run.
//!
//! `rustdoc` takes a second for each crate whose examples it runs, also if there are none, so crates without examples say so
//! in their manifests.

use super::{files, files_below, read, root};

#[test]
fn crates_with_examples_run_them_and_no_others() {
    let mut wrong = Vec::new();
    let mut with_examples = 0;
    for folder in ["crates", "tests"] {
        for name in files(folder) {
            let crate_root = format!("{folder}/{name}/src/lib.rs");
            if !root().join(&crate_root).exists() {
                continue;
            }
            let sources = files_below(&format!("{folder}/{name}/src"), ".rs");
            let has_examples = sources.iter().any(|file| has_example(&read(file)));
            let runs_them = !read(&format!("{folder}/{name}/Cargo.toml")).contains("doctest = false");
            with_examples += usize::from(has_examples);
            match (has_examples, runs_them) {
                (true, false) => wrong.push(format!("{folder}/{name} has examples that are not run")),
                (false, true) => wrong.push(format!("{folder}/{name} has no example; `doctest = false`")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(with_examples > 2, "the examples are no longer found: {with_examples}");
}

/// Whether the documentation in a source has a block of Rust that `rustdoc` compiles.
fn has_example(source: &str) -> bool {
    let comments = source.lines().map(str::trim_start);
    let comments = comments.filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("///")));
    let fences = comments.filter_map(|comment| comment.trim_start().strip_prefix("```"));
    // Every other fence ends a block.
    fences.step_by(2).any(|language| {
        let compiled = ["", "rust", "no_run", "should_panic", "compile_fail"];
        compiled.contains(&language.split(',').next().unwrap().trim())
    })
}

#[test]
fn blocks_of_rust_are_examples() {
    for (example, source) in [
        (true, "/// A.\n///\n/// ```\n/// a();\n/// ```\nfn a() {}"),
        (true, "//! ```rust,no_run\n//! a();\n//! ```"),
        (false, "/// ```text\n/// a\n/// ```\nfn a() {}"),
        (false, "/// ```ignore\n/// a\n/// ```\nfn a() {}"),
        (false, "// ```\n// a\n// ```\nfn a() {}"),
    ] {
        assert_eq!(has_example(source), example, "{source}");
    }
}
