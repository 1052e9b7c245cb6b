//! Checks the rules of the repository.

mod admission_steps;
mod attributes;
mod circles;
mod commands;
mod crates;
mod documents;
mod examples;
mod field_paths;
mod fuzz;
mod modules;
mod source;
mod threat_model;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names in a folder, sorted.
fn files(directory: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join(directory))
        .unwrap_or_else(|error| panic!("{directory}: {error}"))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The sorted paths of the files below a folder whose names end in `ending`, without those in hidden folders and build
/// directories.
fn files_below(directory: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in files(directory) {
        let path = if directory == "." { name.clone() } else { format!("{directory}/{name}") };
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if root().join(&path).is_dir() {
            found.extend(files_below(&path, ending));
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found
}
