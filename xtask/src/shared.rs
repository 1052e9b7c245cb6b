//! Finds the facts about the reference server and its recordings, which are not in the repository.

use std::path::{Path, PathBuf};

/// The folder that `PINTLE_SHARED` names, or `../shared` from the project's root.
pub(crate) fn directory(root: &Path) -> PathBuf {
    std::env::var_os("PINTLE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from)
}

/// The text of a file in the folder.
pub(crate) fn read(root: &Path, file: &str) -> Result<String, String> {
    let path = directory(root).join(file);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}
