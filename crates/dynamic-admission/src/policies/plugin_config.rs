//! The configurations of the two plugins, which name directories of static manifests.

use crate::static_manifests::configured_directory;
use pintle_admission::PluginError;
use pintle_machinery::config_file::{ConfigFile, ConfigKind};
use std::{path::PathBuf, sync::LazyLock};

static VALIDATING: LazyLock<ConfigFile> = LazyLock::new(|| file("ValidatingAdmissionPolicyConfiguration"));
static MUTATING: LazyLock<ConfigFile> = LazyLock::new(|| file("MutatingAdmissionPolicyConfiguration"));

fn file(kind: &'static str) -> ConfigFile {
    let kind = ConfigKind { kind, group: "apiserver.config.k8s.io", versions: &["v1"] };
    let file = ConfigFile::new(kind, |types| {
        let text = types.text();
        types.root(&[("staticManifestsDir", text)], &[])
    });
    file.of_scheme("pkg/admission/plugin/policy/config/config.go:32")
}

/// The directory that the configuration of `ValidatingAdmissionPolicy` names.
///
/// # Errors
/// When it is no `ValidatingAdmissionPolicyConfiguration`, or the directory is none or not allowed by the feature gate
/// `ManifestBasedAdmissionControlConfig`.
pub fn validating_manifests(configuration: Option<&[u8]>) -> Result<Option<PathBuf>, PluginError> {
    manifests(&VALIDATING, configuration)
}

/// As [`validating_manifests`], of `MutatingAdmissionPolicy`.
///
/// # Errors
/// As [`validating_manifests`].
pub fn mutating_manifests(configuration: Option<&[u8]>) -> Result<Option<PathBuf>, PluginError> {
    manifests(&MUTATING, configuration)
}

fn manifests(file: &ConfigFile, configuration: Option<&[u8]>) -> Result<Option<PathBuf>, PluginError> {
    let Some(text) = configuration else { return Ok(None) };
    let configuration = file.decode_strict(text).map_err(PluginError::configuration)?;
    configured_directory(&configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_of_the_plugins_kind_and_may_name_a_directory() {
        let configuration = |kind: &str, fields: &str| {
            format!(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: {kind}AdmissionPolicyConfiguration\n{fields}"
            )
        };
        let check = |kind: &str, fields: &str| {
            let found = validating_manifests(Some(configuration(kind, fields).as_bytes()));
            found.map_err(|error| match error {
                PluginError::Configuration(why) | PluginError::Initialization(why) => why,
            })
        };
        assert_eq!(check("Validating", ""), Ok(None));
        assert!(validating_manifests(None).is_ok());
        assert!(mutating_manifests(Some(configuration("Mutating", "").as_bytes())).is_ok());
        assert!(
            check("Mutating", "")
                .unwrap_err()
                .starts_with("no kind \"MutatingAdmissionPolicyConfiguration\"")
        );
        assert_eq!(
            check("Validating", "foo: 1").unwrap_err(),
            "strict decoding error: unknown field \"foo\""
        );
        assert!(
            check("Validating", "staticManifestsDir: /x")
                .unwrap_err()
                .starts_with("staticManifestsDir: Forbidden: ")
        );
        let unnamed = PluginError::Configuration("Object 'Kind' is missing in '{}'".to_owned());
        assert_eq!(validating_manifests(Some(b"{}")), Err(unnamed));
    }
}
