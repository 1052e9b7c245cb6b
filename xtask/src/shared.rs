//! Where the facts and recordings that the project is built against are.

use std::path::{Path, PathBuf};

/// `../shared` from the project's root, or what `PINTLE_SHARED` names.
pub(crate) fn directory(root: &Path) -> PathBuf {
    std::env::var_os("PINTLE_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from)
}

/// A file of it, as text.
pub(crate) fn read(root: &Path, file: &str) -> Result<String, String> {
    let path = directory(root).join(file);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}
