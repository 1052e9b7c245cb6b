//! The flags of the server that an area is replayed against.

use std::fs;
use std::path::{Path, PathBuf};

/// The file of a folder of scenarios with the flags of its server, one in a line.
pub(super) const FILE: &str = "server-flags";
/// Stands for the absolute path of the folder, in the flags and in the files that they name.
const FOLDER: &str = "@DIR@";

/// The flags of an area, and the folder that they refer to: a copy of the area's folder in `copies`, in which the
/// placeholder is replaced. The recorded server did not have the plugin NodeRestriction where the flags say nothing of
/// plugins.
pub(super) fn of(area: &str, folder: &Path, copies: &Path) -> Result<Vec<String>, String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    let file = folder.join(FILE);
    let mut flags = Vec::new();
    if file.is_file() {
        let copy = copies.join(area);
        copy_folder(folder, &copy)?;
        let text = fs::read_to_string(&file).map_err(failed(&file))?;
        let text = text.replace(FOLDER, &copy.display().to_string());
        flags.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
    }
    if !flags.iter().any(|flag| flag.contains("able-admission-plugins=")) {
        flags.push("--disable-admission-plugins=NodeRestriction".to_owned());
    }
    Ok(flags)
}

/// Copies the files of a folder, with the placeholder replaced by the path of the copy.
fn copy_folder(folder: &Path, copy: &PathBuf) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(copy).map_err(|error| failed(copy, error))?;
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))?.filter_map(Result::ok) {
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        // Scenarios and their answers are read where they are.
        let is_scenario =
            from.extension().is_some_and(|extension| extension == "yaml" || extension == "json");
        if is_scenario || !from.is_file() {
            continue;
        }
        let text = fs::read_to_string(&from).map_err(|error| failed(&from, error))?;
        let text = text.replace(FOLDER, &copy.display().to_string());
        fs::write(&to, text).map_err(|error| failed(&to, error))?;
    }
    Ok(())
}
