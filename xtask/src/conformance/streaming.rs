//! The scenarios whose kubelet is a program that is built from Kubernetes' sources.

use std::env;
use std::fs;
use std::path::Path;

/// The environment variable with the path of the program.
const VARIABLE: &str = "FAKEKUBELET";

/// Whether the program is there.
pub(super) fn has_program() -> bool {
    env::var_os(VARIABLE).is_some_and(|program| Path::new(&program).is_file())
}

/// The names of the scenarios of a folder that need the program, such as `connections/streams`.
pub(super) fn scenarios(area: &str, folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)?.filter_map(Result::ok) {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(&path).map_err(failed)?;
            if text.lines().any(|line| line.trim() == "kind: streaming") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                names.push(format!("{area}/{name}"));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Removes those scenarios from a copy of the folder of an area.
pub(super) fn remove(area: &str, copy: &Path) -> Result<(), String> {
    for name in scenarios(area, copy)? {
        let file = name.rsplit('/').next().unwrap_or_default();
        let path = copy.join(format!("{file}.yaml"));
        fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The text that is printed when the scenarios are left out.
pub(super) fn left_out(names: &[String]) -> String {
    format!("NOT RUN, since {VARIABLE} names no program: {}", names.join(", "))
}
