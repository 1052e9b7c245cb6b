//! Authorizes by a webhook (<https://kubernetes.io/docs/reference/access-authn-authz/webhook/>).
//!
//! Calls are retried with back-off after transient failures. Decisions are cached, except for very large requests.

mod cache;
#[cfg(test)]
mod tests;

use crate::{
    config::{FailurePolicy, WebhookConfiguration},
    metrics::AuthorizationMetrics,
    review::{ReviewSpec, ReviewStatus},
};
use bytes::Bytes;
use cache::AnswerCache;
use parking_lot::Mutex;
use pintle_auth::{
    BoxFuture,
    authz::{Attributes, Authorizer, Decision, ResolvedRules, Selectors, Verdict},
};
use pintle_dialer::Dialer;
use pintle_machinery::UserInfo;
use pintle_webhook::{AttemptResult, Backoff, Kubeconfig, WebhookClient};
use std::{borrow::Cow, future::ready, sync::Arc, time::Instant};

/// Authorizes by a webhook.
pub struct WebhookAuthorizer {
    name: String,
    configuration: WebhookConfiguration,
    client: WebhookClient,
    backoff: Backoff,
    answers: Mutex<AnswerCache>,
    metrics: Arc<AuthorizationMetrics>,
}

/// The size limit of cached requests, in bytes: clients choose the size of their requests.
const MAX_REMEMBERED: usize = 10_000;

impl WebhookAuthorizer {
    /// A webhook authorizer, whose name metrics tell. With the URL of `subjectaccessreviews` in the kubeconfig file, it
    /// delegates authorization to that API server.
    ///
    /// # Errors
    /// When the kubeconfig file cannot be used.
    pub fn new(
        name: String,
        configuration: WebhookConfiguration,
        metrics: Arc<AuthorizationMetrics>,
        dialer: &Dialer,
    ) -> Result<WebhookAuthorizer, String> {
        let path = &configuration.kube_config_file;
        let kubeconfig = Kubeconfig::read(path).map_err(|error| error.to_string())?;
        let client = WebhookClient::of_kubeconfig(&kubeconfig, dialer);
        let client = client.map_err(|error| error.to_string())?;
        let (backoff, answers) = (Backoff::default(), Mutex::default());
        Ok(WebhookAuthorizer { name, configuration, client, backoff, answers, metrics })
    }

    async fn decide(&self, attributes: &Attributes<'_>) -> Verdict {
        let spec = ReviewSpec::of(attributes);
        match self.matches(&spec) {
            Ok(true) => {}
            Ok(false) => return Verdict::new(Decision::NoOpinion),
            Err(error) => return self.failed(error),
        }
        let version = self.configuration.subject_access_review_version;
        let question = match version.spec(&spec) {
            Ok(question) => question,
            Err(error) => return self.failed(error.to_string()),
        };
        let known = self.answers.lock().get(&question, Instant::now());
        let status = match known {
            Some(status) => status,
            None => match self.ask(&question).await {
                Ok(status) => {
                    self.remember(attributes, &question, &status);
                    status
                }
                Err(error) => return self.failed(error),
            },
        };
        let ReviewStatus { allowed, denied, reason } = status;
        let (decision, error) = match (denied, allowed) {
            (true, true) => {
                (Decision::Deny, "webhook subject access review returned both allow and deny response")
            }
            (true, false) => (Decision::Deny, ""),
            (false, true) => (Decision::Allow, ""),
            (false, false) => (Decision::NoOpinion, ""),
        };
        Verdict { decision, reason: Cow::Owned(reason.into()), error: error.into() }
    }

    fn matches(&self, spec: &ReviewSpec<'_>) -> Result<bool, String> {
        if self.configuration.match_conditions.is_empty() {
            return Ok(true);
        }
        let start = Instant::now();
        let outcome = self.configuration.match_conditions.hold(spec);
        let noted = outcome.as_ref().map_err(|_| ()).copied();
        self.metrics.matched(&self.name, noted, start.elapsed());
        outcome
    }

    async fn ask(&self, spec: &[u8]) -> Result<ReviewStatus, String> {
        let version = self.configuration.subject_access_review_version;
        let question = Bytes::from(version.question(spec));
        let mut last = AttemptResult::Error;
        let attempted = |result, duration| {
            last = result;
            self.metrics.webhook_called(&self.name, result, duration);
        };
        let timeout = self.configuration.timeout;
        let answer = self.client.post_until_answered(&question, timeout, &self.backoff, attempted).await;
        let status = answer.and_then(|answer| {
            last = AttemptResult::Error;
            version.status(&answer)
        });
        if let Err(error) = &status {
            tracing::error!(webhook = self.name, error, "an authorization webhook failed");
            if self.configuration.failure_policy == FailurePolicy::NoOpinion {
                self.metrics.webhook_failed_open(&self.name, last);
            }
        }
        status
    }

    fn remember(&self, attributes: &Attributes<'_>, question: &[u8], status: &ReviewStatus) {
        let Attributes { namespace, verb, group, version, resource, subresource, name, path, .. } =
            *attributes;
        let controlled = [namespace, verb, group, version, resource, subresource, name, path];
        let controlled = controlled.iter().map(|text| text.len()).sum::<usize>();
        if controlled + attributes.selectors.map_or(0, Selectors::size) >= MAX_REMEMBERED {
            return;
        }
        let ttl = match status.allowed {
            true => self.configuration.authorized_ttl,
            false => self.configuration.unauthorized_ttl,
        };
        self.answers.lock().set(question, status.clone(), Instant::now(), ttl);
    }

    fn failed(&self, error: String) -> Verdict {
        let decision = match self.configuration.failure_policy {
            FailurePolicy::NoOpinion => Decision::NoOpinion,
            FailurePolicy::Deny => Decision::Deny,
        };
        Verdict { error: error.into(), ..Verdict::new(decision) }
    }
}

impl Authorizer for WebhookAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.decide(attributes))
    }

    fn rules_for<'a>(&'a self, _: &'a UserInfo, _: &'a str) -> BoxFuture<'a, ResolvedRules> {
        Box::pin(ready(ResolvedRules {
            incomplete: true,
            errors: vec!["webhook authorizer does not support user rule resolution".to_owned()],
            ..ResolvedRules::default()
        }))
    }
}
