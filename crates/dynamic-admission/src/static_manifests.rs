//! Directories with manifests of policies and webhooks. This server reads none, since the feature gate
//! `ManifestBasedAdmissionControlConfig` is closed.

use pintle_admission::PluginError;
use pintle_machinery::{Value, ValueExt};

/// Refuses the configuration of a plugin that names such a directory.
pub(crate) fn refuse(configuration: &Value) -> Result<(), PluginError> {
    match configuration.str_at("staticManifestsDir") {
        "" => Ok(()),
        _ => Err(PluginError::Configuration(
            "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to \
             be enabled"
                .to_owned(),
        )),
    }
}
