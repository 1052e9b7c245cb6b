//! Defines [`Webhook`], a webhook in the form in which it is matched and called.

use super::{clients::WebhookClients, review::ReviewVersion};
use crate::{fields::read_fields, matching::Matcher};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_admission_cel::{Compiler, MatchConditions, OptionalVariables};
use pintle_machinery::{Value, ValueExt};
use pintle_webhook::{ClientConfig, Endpoint, ServiceReference, WebhookClient};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// One webhook of a configuration.
pub(super) struct Webhook {
    /// The name of the configuration.
    pub(super) configuration: String,
    /// The name of the webhook.
    pub(super) name: String,
    /// Names the webhook among all configurations. A configuration of an old version may have names twice.
    pub(super) id: String,
    pub(super) matcher: Matcher,
    pub(super) conditions: MatchConditions,
    /// Whether the conditions read the fields of managers.
    pub(super) reads_fields: bool,
    /// `failurePolicy: Ignore`.
    pub(super) ignores_failures: bool,
    /// Bounds one call.
    pub(super) timeout: Duration,
    /// Whether requests that store nothing may be sent.
    pub(super) takes_dry_run: bool,
    /// The version of `AdmissionReview` to send; `None` if the webhook understands none of this server's.
    pub(super) review_version: Option<ReviewVersion>,
    /// `reinvocationPolicy: IfNeeded`.
    pub(super) is_reinvoked: bool,
    client_config: Result<ClientConfig, String>,
    clients: Arc<WebhookClients>,
    /// Built for the first call.
    client: OnceLock<Result<Arc<WebhookClient>, String>>,
}

/// The time limit of a call when the webhook declares none, in seconds. Stored webhooks always declare one.
const DEFAULT_TIMEOUT: u64 = 10;
const DEFAULT_PORT: u16 = 443;

impl Webhook {
    /// Reads a webhook of a configuration.
    pub(super) fn new(
        id: String,
        configuration: &str,
        webhook: &Value,
        compiler: &Compiler,
        clients: &Arc<WebhookClients>,
    ) -> Webhook {
        let name = webhook.str_at("name");
        let versions = webhook.items_at("admissionReviewVersions").iter().filter_map(Value::as_str);
        let timeout = webhook.i64_at("timeoutSeconds").and_then(|seconds| u64::try_from(seconds).ok());
        let variables = OptionalVariables { params: false, authorizer: true };
        Webhook {
            configuration: configuration.to_owned(),
            name: name.to_owned(),
            id,
            matcher: Matcher::of_webhook(webhook),
            reads_fields: webhook.at("matchConditions").is_some_and(read_fields),
            conditions: MatchConditions::compile(compiler, webhook.items_at("matchConditions"), variables),
            ignores_failures: webhook.str_at("failurePolicy") == "Ignore",
            timeout: Duration::from_secs(timeout.unwrap_or(DEFAULT_TIMEOUT)),
            takes_dry_run: matches!(webhook.str_at("sideEffects"), "None" | "NoneOnDryRun"),
            review_version: ReviewVersion::choose(versions),
            is_reinvoked: webhook.str_at("reinvocationPolicy") == "IfNeeded",
            client_config: client_config(webhook.at("clientConfig").unwrap_or(&Value::Null)),
            clients: clients.clone(),
            client: OnceLock::new(),
        }
    }

    /// The client of the webhook.
    ///
    /// # Errors
    /// The reason why there is none: it may be a broken CA bundle.
    pub(super) fn client(&self) -> Result<&WebhookClient, String> {
        let client = self.client.get_or_init(|| {
            let config = self.client_config.as_ref().map_err(Clone::clone)?;
            self.clients.client(config)
        });
        client.as_deref().map_err(Clone::clone)
    }
}

fn client_config(client: &Value) -> Result<ClientConfig, String> {
    let endpoint = match (client.at("url").and_then(Value::as_str), client.at("service")) {
        (_, Some(service)) => {
            let port = service.i64_at("port").and_then(|port| u16::try_from(port).ok());
            Endpoint::Service(ServiceReference {
                namespace: service.str_at("namespace").to_owned(),
                name: service.str_at("name").to_owned(),
                port: port.unwrap_or(DEFAULT_PORT),
                path: service.str_at("path").to_owned(),
            })
        }
        (Some(url), None) => Endpoint::Url(url.to_owned()),
        (None, None) => return Err("webhook configuration must have either service or URL".to_owned()),
    };
    let ca_bundle = STANDARD.decode(client.str_at("caBundle")).map_err(|error| error.to_string())?;
    Ok(ClientConfig { endpoint, ca_bundle })
}
