//! The flags of the server that an area is replayed against, and the files that they name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file of a folder of scenarios with the flags of its server, one in a line.
pub(super) const FILE: &str = "server-flags";
/// Stands for the absolute path of the folder, in the flags and in the files that they name.
const FOLDER: &str = "@DIR@";
/// The placeholder of paths beside the folder, which are not copied.
const OUTSIDE: &str = "@DIR@/../";

/// The flags of an area, and the folder that is replayed. With flags of its own, that is a copy of the area's folder in
/// `copies`, in which the placeholder is replaced: the server writes there. The recorded server did not have the plugin
/// NodeRestriction where the flags say nothing of plugins.
pub(super) fn of(area: &str, folder: &Path, copies: &Path) -> Result<(Vec<String>, PathBuf), String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    let file = folder.join(FILE);
    let (mut flags, mut replayed) = (Vec::new(), folder.to_owned());
    if file.is_file() {
        let copy = copies.join(area);
        // A log of an earlier run would be read.
        match fs::remove_dir_all(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&copy)(error)),
            _ => {}
        }
        copy_folder(folder, &copy)?;
        let text = fs::read_to_string(&file).map_err(failed(&file))?;
        let text = placed(&text, folder, &copy);
        replayed.clone_from(&copy);
        flags.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
    }
    if !flags.iter().any(|flag| flag.contains("able-admission-plugins=")) {
        flags.push("--disable-admission-plugins=NodeRestriction".to_owned());
    }
    Ok((flags, replayed))
}

/// The text of a file with the placeholder replaced.
fn placed(text: &str, folder: &Path, copy: &Path) -> String {
    let text = text.replace(OUTSIDE, &format!("{}/../", folder.display()));
    text.replace(FOLDER, &copy.display().to_string())
}

/// Copies the files of a folder, with the placeholder replaced.
fn copy_folder(folder: &Path, copy: &Path) -> Result<(), String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(copy).map_err(|error| failed(copy, error))?;
    for entry in fs::read_dir(folder).map_err(|error| failed(folder, error))?.filter_map(Result::ok) {
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        if from.is_file() {
            let text = fs::read_to_string(&from).map_err(|error| failed(&from, error))?;
            fs::write(&to, placed(&text, folder, copy)).map_err(|error| failed(&to, error))?;
        }
    }
    Ok(())
}
