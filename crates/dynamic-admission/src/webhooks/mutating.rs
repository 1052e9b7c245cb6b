//! The plugin `MutatingAdmissionWebhook`.

use super::{
    call::{CallFailure, Notes, check_end},
    clients::WebhookClients,
    conditions::WebhookConditions,
    configurations::{Configurations, PresentWebhooks},
    manifests::MUTATING,
    metrics::{Step, WebhookMetrics},
    patch::{self, Patched},
    reinvocation::Reinvoked,
    review::Objects,
    webhook::Webhook,
};
use crate::{conditions::ConditionOwner, matching::Targets, static_manifests::ManifestLoader};
use pintle_admission::{AdmissionPlugin, AdmissionRequest, Endpoint, PluginError, Steps};
use pintle_auth::authz::Authorizer;
use pintle_machinery::{GroupVersionKind, Status, Value, ValueExt, json};
use pintle_registry::BoxFuture;
use std::{borrow::Cow, path::Path, sync::Arc, time::Instant};

const PLUGIN: &str = "MutatingAdmissionWebhook";

/// Lets webhooks change objects, one after the other.
pub struct MutatingAdmissionWebhook {
    configurations: Configurations,
    authorizer: Arc<dyn Authorizer>,
    metrics: WebhookMetrics,
}

impl MutatingAdmissionWebhook {
    /// The plugin. `authorizer` answers the match conditions that ask for permissions.
    pub fn new(
        clients: Arc<WebhookClients>,
        authorizer: Arc<dyn Authorizer>,
        metrics: WebhookMetrics,
    ) -> MutatingAdmissionWebhook {
        let configurations = Configurations::new("mutatingwebhookconfigurations", clients);
        MutatingAdmissionWebhook { configurations, authorizer, metrics }
    }

    /// Adds the webhooks of the static manifests in a directory.
    ///
    /// # Errors
    /// When a manifest cannot be used.
    pub fn with_manifests(
        self,
        directory: Option<&Path>,
        loader: &ManifestLoader,
    ) -> Result<MutatingAdmissionWebhook, PluginError> {
        let configurations = self.configurations.with_manifests(PLUGIN, directory, &MUTATING, loader)?;
        Ok(MutatingAdmissionWebhook { configurations, ..self })
    }

    async fn call_all(
        &self,
        request: &mut AdmissionRequest<'_>,
        webhooks: &PresentWebhooks,
        reinvoked: &mut Reinvoked,
    ) -> Result<(), Status> {
        let versions = request.versions;
        let requested = requested(request);
        let find_equivalents = || versions.equivalents();
        let targets = Targets::new(&requested, &find_equivalents);
        let mut conditions = WebhookConditions::new(
            &self.authorizer,
            ConditionOwner::MutatingWebhook,
            &self.metrics.conditions,
        );
        let mut seen: Option<Seen> = None;
        for (place, webhook) in webhooks.iter().enumerate() {
            let Some(matched) = webhook.matcher.matches(request, &targets).await? else { continue };
            let has_conditions = !webhook.conditions.is_empty();
            if let Some(seen) = seen.as_mut().filter(|seen| has_conditions && seen.kind != matched.kind) {
                seen.convert(request, &matched.kind).await?;
            }
            if !conditions.hold(webhook, request, &targets, matched).await? {
                continue;
            }
            let is_second_round = request.reinvocation.is_second_round();
            if is_second_round && !reinvoked.is_due(&webhook.id) {
                continue;
            }
            let annotations = Annotations { webhook, round: u8::from(is_second_round), place };
            let call = Call { webhook, targets: &targets, matched, annotations: &annotations };
            match seen.as_mut() {
                Some(seen) if seen.kind == matched.kind => {}
                Some(seen) => seen.convert(request, &matched.kind).await?,
                None => seen = Some(Seen::new(request, &matched.kind).await?),
            }
            let Some(seen) = seen.as_mut() else { continue };
            let patched = self.call_one(request, call, &seen.objects).await;
            if matches!(&patched, Ok(Some(patched)) if patched.is_changed) {
                reinvoked.changed();
                request.reinvocation.request();
            }
            if webhook.is_reinvoked {
                reinvoked.called(&webhook.id);
            }
            match patched {
                Ok(Some(patched)) => seen.replace(request, patched, &mut conditions),
                Ok(None) => {}
                Err(failure) => {
                    let fails_open =
                        webhook.ignores_failures && matches!(failure, CallFailure::Calling { .. });
                    if fails_open {
                        annotations.failed_open(request);
                    }
                    check_end(request)?;
                    if !fails_open {
                        return Err(failure.into_status(webhook));
                    }
                }
            }
        }
        seen.and_then(|seen| seen.refusal).map_or(Ok(()), Err)
    }

    /// Calls a webhook and applies its patch; `None` if there was none.
    async fn call_one(
        &self,
        request: &mut AdmissionRequest<'_>,
        call: Call<'_>,
        objects: &Objects,
    ) -> Result<Option<Patched>, CallFailure> {
        let Call { webhook, targets, matched, annotations } = call;
        let started = Instant::now();
        let mut notes = Notes::default();
        let answer = super::call::call(webhook, request, targets, matched, objects, true, &mut notes).await;
        let patched = match &answer {
            Ok(answer) => patch::apply(webhook, answer, request, matched, objects.object.as_deref()).await,
            Err(_) => Ok(None),
        };
        let result = match (answer, patched) {
            (Err(failure), _) | (Ok(_), Err(failure)) => Err(failure),
            (Ok(_), Ok(patched)) => Ok(patched),
        };
        self.metrics.called(
            &webhook.name,
            Step::Mutating,
            request.operation,
            started.elapsed(),
            result.as_ref().err(),
            webhook.ignores_failures,
        );
        notes.add_to(request);
        request.webhook_time += started.elapsed();
        let is_changed =
            result.as_ref().is_ok_and(|patched| patched.as_ref().is_some_and(|patched| patched.is_changed));
        annotations.mutated(request, is_changed);
        let Some(patched) = result? else { return Ok(None) };
        annotations.patched(request, &patched.patch);
        Ok(Some(patched))
    }
}

/// The objects of a request as the webhooks see them that ask for one version. A patch is accepted, by its conversion to
/// the form of the request's object, when all webhooks were called, or when one of them asks for another version: until
/// then other patches may mend it.
struct Seen {
    /// The kind that the webhooks ask for. A patch may have given the object another one.
    kind: GroupVersionKind,
    objects: Objects,
    /// The reason why the object cannot be accepted.
    refusal: Option<Status>,
}

impl Seen {
    async fn new(request: &AdmissionRequest<'_>, kind: &GroupVersionKind) -> Result<Seen, Status> {
        // The reference wraps the failure of a conversion twice here.
        let objects = objects_of(request, kind).await.map_err(Status::internal_error)?;
        Ok(Seen { kind: kind.clone(), objects, refusal: None })
    }

    /// Converts the objects for a webhook that asks for another version.
    ///
    /// # Errors
    /// 500 when a patch has left an object that is none of the resource, and when the conversion fails.
    async fn convert(
        &mut self,
        request: &AdmissionRequest<'_>,
        kind: &GroupVersionKind,
    ) -> Result<(), Status> {
        if let Some(status) = self.refusal.take() {
            return Err(Status::internal_error(Status::internal_error(status)));
        }
        *self = Seen::new(request, kind).await?;
        Ok(())
    }

    /// Replaces the object by a patched one.
    fn replace(
        &mut self,
        request: &mut AdmissionRequest<'_>,
        patched: Patched,
        conditions: &mut WebhookConditions<'_>,
    ) {
        let Patched { object, seen, json, .. } = patched;
        self.objects.object = Some(json);
        self.refusal = object.as_ref().err().cloned();
        let object = object.unwrap_or_else(|_| {
            // Selectors read the labels that the patch has left.
            let mut object = request.object.clone().into_owned();
            object.set("metadata", seen.at("metadata").cloned().unwrap_or_default());
            object
        });
        request.replace_object(object);
        conditions.replace_object(&self.kind, seen);
    }
}

/// One call of a webhook.
#[derive(Clone, Copy)]
struct Call<'a> {
    webhook: &'a Webhook,
    targets: &'a Targets<'a>,
    /// The endpoint that the rules of the webhook name.
    matched: &'a Endpoint,
    annotations: &'a Annotations<'a>,
}

/// The endpoint of a request.
pub(super) fn requested(request: &AdmissionRequest<'_>) -> Endpoint {
    Endpoint {
        resource: request.resource.clone(),
        subresource: request.subresource.to_owned(),
        kind: request.kind.clone(),
    }
}

/// The objects of the request as clients get them in this kind.
pub(super) async fn objects_of(
    request: &AdmissionRequest<'_>,
    kind: &GroupVersionKind,
) -> Result<Objects, Status> {
    let encode = async |object: Option<&Value>| match object.filter(|object| !object.is_null()) {
        None => Ok(None),
        Some(object) => {
            let mut object =
                request.versions.to_version(object, kind).await.map_err(Status::internal_error)?;
            // A patch may have given a custom resource another kind, which a conversion does not keep.
            if object.str_at("kind") != kind.kind {
                object.to_mut().set("kind", kind.kind.as_str());
            }
            request.versions.encode(&object, kind).map(Some)
        }
    };
    Ok(Objects {
        object: encode(Some(&request.object)).await?,
        old_object: encode(request.old_object).await?,
    })
}

impl AdmissionPlugin for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        PLUGIN
    }

    fn steps(&self) -> Steps {
        Steps::Admit
    }

    fn handles(&self, request: &AdmissionRequest<'_>) -> bool {
        self.configurations.handle(request)
    }

    fn admit<'a>(&'a self, request: &'a mut AdmissionRequest<'_>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let webhooks = self.configurations.present(request).await?;
            if webhooks.is_empty() {
                return Ok(());
            }
            let mut reinvoked: Reinvoked = request.reinvocation.take();
            if request.reinvocation.is_second_round() {
                reinvoked.begin_second_round(&request.object);
            }
            // Most requests have no webhook, and this future is large.
            Box::pin(self.call_all(request, &webhooks, &mut reinvoked)).await?;
            reinvoked.end_round(&request.object);
            request.reinvocation.keep(reinvoked);
            Ok(())
        })
    }
}

/// The audit annotations about one call
/// (<https://kubernetes.io/docs/reference/labels-annotations-taints/audit-annotations/>).
struct Annotations<'a> {
    webhook: &'a Webhook,
    round: u8,
    /// The place among all webhooks.
    place: usize,
}

impl Annotations<'_> {
    fn key(&self, prefix: &str) -> Cow<'static, str> {
        format!("{prefix}/round_{}_index_{}", self.round, self.place).into()
    }

    fn mutated(&self, request: &mut AdmissionRequest<'_>, mutated: bool) {
        let Webhook { configuration, name, .. } = self.webhook;
        // The order of the members is the reference's.
        let value = format!(
            r#"{{"configuration":{},"webhook":{},"mutated":{mutated}}}"#,
            json!(configuration),
            json!(name)
        );
        request.audit_annotations.push((self.key("mutation.webhook.admission.k8s.io"), value));
    }

    fn patched(&self, request: &mut AdmissionRequest<'_>, patch: &[u8]) {
        let Webhook { configuration, name, .. } = self.webhook;
        let patch = String::from_utf8_lossy(patch);
        let value = format!(
            r#"{{"configuration":{},"webhook":{},"patch":{patch},"patchType":"JSONPatch"}}"#,
            json!(configuration),
            json!(name)
        );
        request.detailed_audit_annotations.push((self.key("patch.webhook.admission.k8s.io"), value));
    }

    fn failed_open(&self, request: &mut AdmissionRequest<'_>) {
        let key = self.key("failed-open.mutation.webhook.admission.k8s.io");
        request.audit_annotations.push((key, self.webhook.name.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::clients::WebhookClients;
    use pintle_admission::{Operation, testing::Request};
    use pintle_admission_cel::Compiler;

    #[test]
    fn patches_are_annotated_with_their_webhook() {
        let webhook = Webhook::new(
            "c/w/0".to_owned(),
            "c",
            &json!({"name": "w"}),
            &Compiler::new(),
            &WebhookClients::unused(),
        );
        let annotations = Annotations { webhook: &webhook, round: 0, place: 2 };
        let request = Request::new(Operation::Create, "", "v1", "things", "ns");
        let (key, value) = request.with(async |request| {
            annotations.patched(request, br#"[{"op":"add","path":"/a","value":"\u003c1\u003e"}]"#);
            request.detailed_audit_annotations.remove(0)
        });
        assert_eq!(key, "patch.webhook.admission.k8s.io/round_0_index_2");
        let patch = r#"[{"op":"add","path":"/a","value":"\u003c1\u003e"}]"#;
        let expected =
            format!(r#"{{"configuration":"c","webhook":"w","patch":{patch},"patchType":"JSONPatch"}}"#);
        assert_eq!(value, expected);
    }
}
