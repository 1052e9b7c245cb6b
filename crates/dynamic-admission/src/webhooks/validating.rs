//! The plugin `ValidatingAdmissionWebhook`.

use super::{
    call::{CallFailure, Notes, call, check_end},
    clients::WebhookClients,
    conditions::WebhookConditions,
    configurations::{Configurations, PresentWebhooks},
    manifests::VALIDATING,
    metrics::{Step, WebhookMetrics},
    mutating::{objects_of, requested},
    review::Objects,
    webhook::Webhook,
};
use crate::{conditions::ConditionOwner, matching::Targets, static_manifests::ManifestLoader};
use futures_util::{StreamExt, stream::FuturesUnordered};
use pintle_admission::{AdmissionPlugin, AdmissionRequest, Endpoint, PluginError, Steps};
use pintle_auth::authz::Authorizer;
use pintle_machinery::{GroupVersionKind, Status};
use pintle_registry::BoxFuture;
use std::{path::Path, sync::Arc, time::Instant};

const PLUGIN: &str = "ValidatingAdmissionWebhook";

/// Lets webhooks refuse objects, side by side.
pub struct ValidatingAdmissionWebhook {
    configurations: Configurations,
    authorizer: Arc<dyn Authorizer>,
    metrics: WebhookMetrics,
}

impl ValidatingAdmissionWebhook {
    /// The plugin. `authorizer` answers the match conditions that ask for permissions.
    pub fn new(
        clients: Arc<WebhookClients>,
        authorizer: Arc<dyn Authorizer>,
        metrics: WebhookMetrics,
    ) -> ValidatingAdmissionWebhook {
        let configurations = Configurations::new("validatingwebhookconfigurations", clients);
        ValidatingAdmissionWebhook { configurations, authorizer, metrics }
    }

    /// Adds the webhooks of the static manifests in a directory.
    ///
    /// # Errors
    /// When a manifest cannot be used.
    pub fn with_manifests(
        self,
        directory: Option<&Path>,
        loader: &ManifestLoader,
    ) -> Result<ValidatingAdmissionWebhook, PluginError> {
        let configurations = self.configurations.with_manifests(PLUGIN, directory, &VALIDATING, loader)?;
        Ok(ValidatingAdmissionWebhook { configurations, ..self })
    }

    async fn call_all(
        &self,
        request: &mut AdmissionRequest<'_>,
        webhooks: &PresentWebhooks,
    ) -> Result<(), Status> {
        let versions = request.versions;
        let requested = requested(request);
        let find_equivalents = || versions.equivalents();
        let targets = Targets::new(&requested, &find_equivalents);
        let mut conditions = WebhookConditions::new(
            &self.authorizer,
            ConditionOwner::ValidatingWebhook,
            &self.metrics.conditions,
        );
        let mut due: Vec<(&Webhook, &Endpoint)> = Vec::new();
        for webhook in webhooks.iter() {
            let Some(matched) = webhook.matcher.matches(request, &targets).await? else { continue };
            if conditions.hold(webhook, request, &targets, matched).await? {
                due.push((webhook, matched));
            }
        }
        let mut encoded: Vec<(&GroupVersionKind, Objects)> = Vec::new();
        for (_, matched) in &due {
            if encoded.iter().all(|(kind, _)| **kind != matched.kind) {
                encoded.push((&matched.kind, objects_of(request, &matched.kind).await?));
            }
        }
        if !due.is_empty() {
            check_end(request)?;
        }
        let started = Instant::now();
        let shared: &AdmissionRequest<'_> = request;
        let calls: FuturesUnordered<_> = due
            .iter()
            .enumerate()
            .filter_map(|(place, (webhook, matched))| {
                let (_, objects) = encoded.iter().find(|(kind, _)| **kind == matched.kind)?;
                Some(self.call_one(shared, webhook, place, &targets, matched, objects))
            })
            .collect();
        // All answers are awaited: each may have warnings. The refusal that came first is the client's.
        let answers: Vec<Called<'_>> = calls.collect().await;
        request.webhook_time += started.elapsed();
        let mut refusal = None;
        for Called { webhook, place, failure, notes } in answers {
            notes.add_to(request);
            match failure {
                Some(CallFailure::Calling { .. }) if webhook.ignores_failures => {
                    let key =
                        format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{place}");
                    request.audit_annotations.push((key.into(), webhook.name.clone()));
                }
                Some(failure) if refusal.is_none() => refusal = Some(failure.into_status(webhook)),
                Some(_) | None => {}
            }
        }
        check_end(request)?;
        refusal.map_or(Ok(()), Err)
    }

    async fn call_one<'w>(
        &self,
        request: &AdmissionRequest<'_>,
        webhook: &'w Webhook,
        place: usize,
        targets: &Targets<'_>,
        matched: &Endpoint,
        objects: &Objects,
    ) -> Called<'w> {
        let started = Instant::now();
        let mut notes = Notes::default();
        let answer = call(webhook, request, targets, matched, objects, false, &mut notes).await;
        let failure = answer.err();
        self.metrics.called(
            &webhook.name,
            Step::Validating,
            request.operation,
            started.elapsed(),
            failure.as_ref(),
            webhook.ignores_failures,
        );
        Called { webhook, place, failure, notes }
    }
}

/// A finished call.
struct Called<'w> {
    webhook: &'w Webhook,
    /// The place among the called webhooks.
    place: usize,
    failure: Option<CallFailure>,
    notes: Notes,
}

impl AdmissionPlugin for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        PLUGIN
    }

    fn steps(&self) -> Steps {
        Steps::Validate
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        self.configurations.handle(request)
    }

    fn validate<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let webhooks = self.configurations.present(request).await?;
            if webhooks.is_empty() {
                return Ok(());
            }
            // Most requests have no webhook, and this future is large.
            Box::pin(self.call_all(request, &webhooks)).await
        })
    }
}
