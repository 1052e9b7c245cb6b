//! The configuration of the two plugins
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers>).

use crate::static_manifests;
use pintle_admission::PluginError;
use pintle_machinery::{
    ValueExt,
    config_file::{ConfigFile, ConfigKind},
};
use pintle_webhook::{ClientUser, Endpoint, WebhookUsers};
use std::{path::Path, sync::LazyLock};

const KIND: ConfigKind =
    ConfigKind { kind: "WebhookAdmissionConfiguration", group: "apiserver.config.k8s.io", versions: &["v1"] };

static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let text = types.text();
        types.root(&[("kubeConfigFile", text), ("staticManifestsDir", text)], &[])
    });
    file.of_scheme("pkg/admission/plugin/webhook/config/kubeconfig.go:34")
});

/// The users as which this server calls webhooks.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredUsers(WebhookUsers);

impl ConfiguredUsers {
    /// Reads the configuration of a plugin, and the kubeconfig file that it names. Without them there are no users.
    ///
    /// # Errors
    /// When the text is no `WebhookAdmissionConfiguration`, the path is relative, or the file is no kubeconfig.
    pub fn of_configuration(configuration: Option<&[u8]>) -> Result<ConfiguredUsers, PluginError> {
        let Some(text) = configuration else { return Ok(ConfiguredUsers::default()) };
        let configuration = FILE.decode_strict(text).map_err(PluginError::configuration)?;
        let file = configuration.str_at("kubeConfigFile");
        let path = Path::new(file);
        if !file.is_empty() && !path.is_absolute() {
            let file = pintle_go_forms::quote(file);
            let why = format!("kubeConfigFile: Invalid value: {file}: must be an absolute file path");
            return Err(PluginError::Configuration(why));
        }
        static_manifests::refuse(&configuration)?;
        if file.is_empty() {
            return Ok(ConfiguredUsers::default());
        }
        if !path.exists() {
            return Err(PluginError::Configuration(format!("stat {file}: no such file or directory")));
        }
        WebhookUsers::read(path).map(ConfiguredUsers).map_err(PluginError::configuration)
    }

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
