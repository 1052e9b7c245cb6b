//! `ImagePolicyWebhook`: asks a webhook whether the images of a pod are allowed
//! (<https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#imagepolicywebhook>).
//!
//! Answers are cached, except for very large requests and answers.

mod answers;
mod configuration;
mod review;

use answers::Answers;
use bytes::Bytes;
use configuration::Configuration;
use parking_lot::Mutex;
use pintle_admission::{AdmissionPlugin, AdmissionRequest, Operation, PluginError, PluginSettings, Steps};
use pintle_dialer::Dialer;
use pintle_machinery::Status;
use pintle_registry::BoxFuture;
use pintle_webhook::{Backoff, Kubeconfig, WebhookClient};
use review::ReviewStatus;
use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

/// The time limit of an attempt.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The size limit of cached requests and of cached answers, in bytes: clients and the webhook choose their size.
const MAX_CACHED: usize = 10_000;

/// The plugin.
pub struct ImagePolicyWebhook {
    configuration: Configuration,
    client: WebhookClient,
    backoff: Backoff,
    answers: Mutex<Answers>,
}

impl ImagePolicyWebhook {
    /// Creates the plugin.
    ///
    /// # Errors
    /// When the configuration is absent or malformed, or its kubeconfig file cannot be used.
    pub fn new(settings: &PluginSettings<'_>) -> Result<ImagePolicyWebhook, PluginError> {
        let configuration =
            configuration::read(settings.configuration).map_err(PluginError::Configuration)?;
        let path = &configuration.kube_config_file;
        if !path.exists() {
            let why = format!("stat {}: no such file or directory", path.display());
            return Err(PluginError::Configuration(why));
        }
        let kubeconfig = Kubeconfig::read(path).map_err(PluginError::configuration)?;
        let client = WebhookClient::of_kubeconfig(&kubeconfig, &Dialer::default());
        let client = client
            .map_err(|error| PluginError::Configuration(format!("kubeconfig file {path:?}: {error}")))?;
        let backoff = Backoff { initial: configuration.retry_backoff, ..Backoff::default() };
        Ok(ImagePolicyWebhook { configuration, client, backoff, answers: Mutex::default() })
    }

    /// The answer to the review with this `spec`: a cached one, or that of the webhook.
    async fn answer(&self, spec: &str) -> Result<ReviewStatus, String> {
        if let Some(status) = self.answers.lock().get(spec, Instant::now()) {
            return Ok(status);
        }
        let question = Bytes::from(review::question(spec));
        let asked = self.client.post_until_answered(&question, TIMEOUT, &self.backoff, |_, _| {});
        let status = ReviewStatus::of(&asked.await?)?;
        let ttl = match status.allowed {
            true => self.configuration.allow_ttl,
            false => self.configuration.deny_ttl,
        };
        if spec.len() <= MAX_CACHED && status.size() <= MAX_CACHED {
            self.answers.lock().set(spec, status.clone(), Instant::now(), ttl);
        }
        Ok(status)
    }

    async fn judge(&self, request: &mut AdmissionRequest<'_>) -> Result<(), Status> {
        let spec = review::spec(request);
        let status = match self.answer(&spec).await {
            Ok(status) => status,
            Err(error) if self.configuration.default_allow => {
                tracing::warn!(error, "the image policy webhook failed; the pod is admitted");
                annotate(request, "failed-open", "true".to_owned());
                return Ok(());
            }
            Err(error) => return Err(request.forbidden(error)),
        };
        for (key, value) in status.audit_annotations {
            annotate(request, &key, value);
        }
        match (status.allowed, status.reason.as_str()) {
            (true, _) => Ok(()),
            (false, "") => Err(request.forbidden("one or more images rejected by webhook backend")),
            (false, reason) => Err(request
                .forbidden(format!("image policy webhook backend denied one or more images: {reason}"))),
        }
    }
}

impl AdmissionPlugin for ImagePolicyWebhook {
    fn name(&self) -> &'static str {
        "ImagePolicyWebhook"
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        matches!(request.operation, Operation::Create | Operation::Update)
            && request.is_of("", "pods")
            && matches!(request.subresource, "" | "ephemeralcontainers")
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.judge(request))
    }
}

fn annotate(request: &mut AdmissionRequest<'_>, key: &str, value: String) {
    let key = Cow::Owned(format!("imagepolicywebhook.image-policy.k8s.io/{key}"));
    request.audit_annotations.push((key, value));
}

#[cfg(test)]
mod tests;
