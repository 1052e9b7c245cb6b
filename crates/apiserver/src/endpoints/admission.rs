//! Runs the admission chain for a verb.

use super::{
    request_scope::RequestScope,
    write::{DedupTime, dedup_owner_references},
};
use crate::registry::Validation;
use pintle_admission::{AdmissionRequest, ManagedFieldsBefore, Operation, Reinvocation, RequestOptions};
use pintle_audit::{Layer, Level};
use pintle_machinery::{GroupVersionKind, Status, Value, meta::ObjectMeta};
use pintle_registry::{BoxFuture, DeleteOptions, RequestContext};
use std::{borrow::Cow, sync::atomic::Ordering, time::Duration};

use super::object_versions::ObjectVersions;

/// The admission of one request: what its plugins need beside the objects.
#[derive(Clone, Copy)]
pub(super) struct Admission<'a> {
    pub(super) scope: &'a RequestScope<'a>,
    pub(super) operation: Operation,
    /// The name of the path, or else the one that a new object has before admission; "" if it is to be generated.
    pub(super) name: &'a str,
    /// The kind of the object: that of the resource, or that of the subresource's body.
    pub(super) kind: &'a GroupVersionKind,
    pub(super) context: &'a RequestContext<'a>,
    pub(super) options: RequestOptions<'a>,
}

impl<'a> Admission<'a> {
    /// The admission of an update: of a create, if there is no old object.
    pub(super) fn of_update(self, old: Option<&Value>) -> Admission<'a> {
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        Admission { operation, ..self }
    }

    /// The name of the request, or else the generated one of the object. A delete of a collection has none.
    fn name_of<'b>(&'b self, object: &'b Value) -> &'b str {
        match self.name {
            "" if self.operation != Operation::Delete => object.name(),
            name => name,
        }
    }

    /// Runs mutating admission and returns the admitted object.
    ///
    /// # Errors
    /// The `Status` of the plugin that rejects the request.
    pub(super) async fn admit(&self, object: Value, old_object: Option<&Value>) -> Result<Value, Status> {
        let name = self.name_of(&object).to_owned();
        let versions = ObjectVersions::new(self.scope, self.kind);
        let mut request = self.request(&versions, &name, Cow::Owned(object), old_object);
        let admitted = self.scope.server.admission.admit(&mut request).await;
        self.note(&mut request, Layer::MutatingWebhook);
        admitted?;
        let mut object = request.object.into_owned();
        if self.operation != Operation::Delete {
            dedup_owner_references(self.scope, &mut object, DedupTime::AfterAdmission);
        }
        Ok(object)
    }

    /// Runs validating admission.
    ///
    /// # Errors
    /// The `Status` of the plugin that rejects the request.
    pub(super) async fn validate(&self, object: &Value, old_object: Option<&Value>) -> Result<(), Status> {
        let name = self.name_of(object);
        let versions = ObjectVersions::new(self.scope, self.kind);
        let mut request = self.request(&versions, name, Cow::Borrowed(object), old_object);
        let admitted = self.scope.server.admission.validate(&mut request).await;
        self.note(&mut request, Layer::ValidatingWebhook);
        admitted
    }

    fn request<'b>(
        &'b self,
        versions: &'b ObjectVersions<'b>,
        name: &'b str,
        object: Cow<'b, Value>,
        old_object: Option<&'b Value>,
    ) -> AdmissionRequest<'b> {
        AdmissionRequest {
            operation: self.operation,
            resource: &self.scope.resource.resource.resource,
            subresource: &self.scope.info.subresource,
            kind: self.kind,
            namespace: self.scope.info.namespace_of(self.name),
            name,
            object,
            old_object,
            options: self.options,
            versions,
            reinvocation: Reinvocation::default(),
            is_replaced: false,
            managed_fields: ManagedFieldsBefore::default(),
            deadline: self.scope.deadline.map(|deadline| deadline.of_write().into_std()),
            context: self.context,
            lister: &*self.scope.server.stores,
            warnings: Vec::new(),
            audit_annotations: Vec::new(),
            detailed_audit_annotations: Vec::new(),
            webhook_time: Duration::ZERO,
        }
    }

    /// Adds the warnings and audit annotations of the plugins to the response and the audit event.
    fn note(&self, request: &mut AdmissionRequest<'_>, webhooks: Layer) {
        self.scope.warnings.extend(std::mem::take(&mut request.warnings));
        let webhook_time = std::mem::take(&mut request.webhook_time);
        let nanoseconds = u64::try_from(webhook_time.as_nanos());
        self.scope.webhook_time.fetch_add(nanoseconds.unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Some(audit) = &self.scope.audit {
            audit.note_latency(webhooks, webhook_time);
            for (key, value) in std::mem::take(&mut request.audit_annotations) {
                audit.annotate(key, value);
            }
            if audit.level() >= Level::Request {
                for (key, value) in std::mem::take(&mut request.detailed_audit_annotations) {
                    audit.annotate(key, value);
                }
            }
        }
    }
}

/// Validating admission for the store. A delete has no object that plugins could change, but those that change objects
/// are asked too.
impl Validation for Admission<'_> {
    /// A delete of one object shows the grace period of the deletion, and a delete of a collection the client's options.
    fn validate_delete<'a>(
        &'a self,
        old: &'a Value,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let options = match self.scope.info.name.is_empty() {
            true => self.options,
            false => RequestOptions::Delete(options),
        };
        Box::pin(async move {
            let admission = Admission { options, ..*self };
            Validation::validate(&admission, &Value::Null, Some(old)).await
        })
    }

    fn validate<'a>(
        &'a self,
        object: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if self.operation == Operation::Delete {
                self.admit(Value::Null, old).await?;
            }
            Admission::validate(self, object, old).await
        })
    }
}
