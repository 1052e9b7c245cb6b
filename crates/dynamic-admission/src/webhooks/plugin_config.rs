//! The configuration of the two plugins
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers>).

use crate::static_manifests::configured_directory;
use pintle_admission::PluginError;
use pintle_machinery::{
    ValueExt,
    config_file::{ConfigFile, ConfigKind},
};
use pintle_webhook::{ClientUser, Endpoint, WebhookUsers};
use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

const KIND: ConfigKind =
    ConfigKind { kind: "WebhookAdmissionConfiguration", group: "apiserver.config.k8s.io", versions: &["v1"] };

static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let text = types.text();
        types.root(&[("kubeConfigFile", text), ("staticManifestsDir", text)], &[])
    });
    file.of_scheme("pkg/admission/plugin/webhook/config/kubeconfig.go:34")
});

/// The configuration of one of the two plugins.
#[derive(Debug, Default)]
pub struct WebhookPluginConfig {
    /// The users as which this server calls webhooks.
    pub users: ConfiguredUsers,
    /// The directory of static manifests.
    pub manifests: Option<PathBuf>,
}

impl WebhookPluginConfig {
    /// Reads a configuration, and the kubeconfig file that it names.
    ///
    /// # Errors
    /// When the text is no `WebhookAdmissionConfiguration`, a path is relative, the file is no kubeconfig, or the directory
    /// is none or not allowed by the feature gate `ManifestBasedAdmissionControlConfig`.
    pub fn read(configuration: Option<&[u8]>) -> Result<WebhookPluginConfig, PluginError> {
        let Some(text) = configuration else { return Ok(WebhookPluginConfig::default()) };
        let configuration = FILE.decode_strict(text).map_err(PluginError::configuration)?;
        let file = configuration.str_at("kubeConfigFile");
        let path = Path::new(file);
        if !file.is_empty() && !path.is_absolute() {
            let file = pintle_go_forms::quote(file);
            let why = format!("kubeConfigFile: Invalid value: {file}: must be an absolute file path");
            return Err(PluginError::Configuration(why));
        }
        let manifests = configured_directory(&configuration)?;
        if file.is_empty() {
            return Ok(WebhookPluginConfig { manifests, ..WebhookPluginConfig::default() });
        }
        if !path.exists() {
            return Err(PluginError::Configuration(format!("stat {file}: no such file or directory")));
        }
        let users = WebhookUsers::read(path).map(ConfiguredUsers).map_err(PluginError::configuration)?;
        Ok(WebhookPluginConfig { users, manifests })
    }
}

/// The users as which this server calls webhooks.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredUsers(WebhookUsers);

impl ConfiguredUsers {
    pub(super) fn of_webhook(&self, endpoint: &Endpoint) -> &ClientUser {
        /// The port of a URL without one.
        const HTTPS: u16 = 443;
        match endpoint {
            Endpoint::Service(service) => {
                self.0.of_host(&format!("{}.{}.svc", service.name, service.namespace), service.port)
            }
            Endpoint::Url(url) => {
                let url = pintle_go_forms::Url::parse(url).ok();
                let host = url.as_ref().map(|url| url.hostname()).unwrap_or_default();
                let port = url.and_then(|url| url.port().parse().ok()).unwrap_or(HTTPS);
                self.0.of_host(&host, port)
            }
        }
    }
}
