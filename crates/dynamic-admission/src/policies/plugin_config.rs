//! The configurations of the two plugins, which can only name directories of manifests.

use crate::static_manifests;
use pintle_admission::PluginError;
use pintle_machinery::config_file::{ConfigFile, ConfigKind};
use std::sync::LazyLock;

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

/// Checks the configuration of `ValidatingAdmissionPolicy`.
///
/// # Errors
/// When it is no `ValidatingAdmissionPolicyConfiguration`, or names a directory.
pub fn check_validating(configuration: Option<&[u8]>) -> Result<(), PluginError> {
    check(&VALIDATING, configuration)
}

/// Checks the configuration of `MutatingAdmissionPolicy`.
///
/// # Errors
/// When it is no `MutatingAdmissionPolicyConfiguration`, or names a directory.
pub fn check_mutating(configuration: Option<&[u8]>) -> Result<(), PluginError> {
    check(&MUTATING, configuration)
}

fn check(file: &ConfigFile, configuration: Option<&[u8]>) -> Result<(), PluginError> {
    let Some(text) = configuration else { return Ok(()) };
    let configuration = file.decode_strict(text).map_err(PluginError::configuration)?;
    static_manifests::refuse(&configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_of_the_plugins_kind_and_names_no_directory() {
        let configuration = |kind: &str, fields: &str| {
            format!(
                "apiVersion: apiserver.config.k8s.io/v1\nkind: {kind}AdmissionPolicyConfiguration\n{fields}"
            )
        };
        let check = |kind: &str, fields: &str| {
            let found = check_validating(Some(configuration(kind, fields).as_bytes()));
            found.map_err(|error| match error {
                PluginError::Configuration(why) | PluginError::Initialization(why) => why,
            })
        };
        assert_eq!(check("Validating", ""), Ok(()));
        assert!(check_validating(None).is_ok());
        assert!(check_mutating(Some(configuration("Mutating", "").as_bytes())).is_ok());
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
        assert_eq!(check_validating(Some(b"{}")), Err(unnamed));
    }
}
