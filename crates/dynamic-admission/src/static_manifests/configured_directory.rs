//! The directory that the configuration of a plugin names.

use pintle_admission::PluginError;
use pintle_feature_gates::{Gate, enabled};
use pintle_go_forms::{FileError, quote};
use pintle_machinery::{Value, ValueExt};
use std::{
    fs,
    path::{Path, PathBuf},
};

const FIELD: &str = "staticManifestsDir";

/// The directory that a plugin's configuration names.
///
/// # Errors
/// When the feature gate `ManifestBasedAdmissionControlConfig` is closed, and for a path that is relative or no directory.
pub(crate) fn configured_directory(configuration: &Value) -> Result<Option<PathBuf>, PluginError> {
    let name = configuration.str_at(FIELD);
    if name.is_empty() {
        return Ok(None);
    }
    if !enabled(Gate::ManifestBasedAdmissionControlConfig) {
        return Err(PluginError::Configuration(format!(
            "{FIELD}: Forbidden: {FIELD} requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"
        )));
    }
    let path = Path::new(name);
    let invalid =
        |why: &str| PluginError::Configuration(format!("{FIELD}: Invalid value: {}: {why}", quote(name)));
    if !path.is_absolute() {
        return Err(invalid("must be an absolute file path"));
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(Some(path.to_owned())),
        Ok(_) => Err(invalid("must be a directory")),
        Err(error) => Err(invalid(&format!("unable to read: {}", FileError::new("stat", path, error)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use pintle_machinery::json;

    #[test]
    fn a_directory_needs_the_gate_and_a_whole_path() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "").unwrap();
        let check = |path: &Path, expected: Result<Option<PathBuf>, &str>| {
            let found = configured_directory(&json!({FIELD: path.to_str().unwrap()}));
            let expected = expected.map_err(|why| PluginError::Configuration(format!("{FIELD}: {why}")));
            assert_eq!(found, expected, "{path:?}");
        };
        check(Path::new(""), Ok(None));
        check(
            dir.path(),
            Err(
                "Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled",
            ),
        );
        let _open =
            override_gates(&FeatureGates::default().with(Gate::ManifestBasedAdmissionControlConfig, true));
        check(dir.path(), Ok(Some(dir.path().to_owned())));
        check(Path::new("a/b"), Err("Invalid value: \"a/b\": must be an absolute file path"));
        let name = quote(file.to_str().unwrap());
        check(&file, Err(&format!("Invalid value: {name}: must be a directory")));
        check(
            Path::new("/nowhere"),
            Err("Invalid value: \"/nowhere\": unable to read: stat /nowhere: no such file or directory"),
        );
    }
}
