//! The match conditions of webhooks
//! (<https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions>).

use super::webhook::Webhook;
use crate::{
    conditions::{ConditionMetrics, ConditionOwner, OwnedConditions},
    matching::Targets,
};
use pintle_admission::{AdmissionRequest, Endpoint};
use pintle_admission_cel::{Input, MatchOutcome, RequestAttributes, VariableSet, request_resource};
use pintle_auth::authz::Authorizer;
use pintle_authorization::ExpressionAuthorizer;
use pintle_machinery::{
    GroupVersionKind, Status, Value,
    codec::json::{open_managed_fields, with_written_fields},
};
use pintle_offload::Pace;
use std::sync::{Arc, LazyLock};

/// Evaluates match conditions for one request. Objects are converted once for all webhooks that see them in one version,
/// and decisions about permissions are remembered.
pub(super) struct WebhookConditions<'a> {
    authorizer: &'a Arc<dyn Authorizer>,
    owner: ConditionOwner,
    metrics: &'a ConditionMetrics,
    authority: Option<Arc<ExpressionAuthorizer>>,
    object: Option<(GroupVersionKind, Value)>,
    old_object: Option<(GroupVersionKind, Value)>,
    options: Option<Value>,
    pace: Pace,
}

/// Match conditions have no variables of their own.
static NO_VARIABLES: LazyLock<VariableSet> = LazyLock::new(VariableSet::default);

impl<'a> WebhookConditions<'a> {
    pub(super) fn new(
        authorizer: &'a Arc<dyn Authorizer>,
        owner: ConditionOwner,
        metrics: &'a ConditionMetrics,
    ) -> WebhookConditions<'a> {
        WebhookConditions {
            authorizer,
            owner,
            metrics,
            authority: None,
            object: None,
            old_object: None,
            options: None,
            pace: Pace::new(),
        }
    }

    /// A webhook that asks for this kind has changed the object, which has the fields that its type always has.
    pub(super) fn replace_object(&mut self, kind: &GroupVersionKind, object: Value) {
        self.object = Some((kind.clone(), object));
    }

    /// Whether all match conditions of a webhook hold.
    ///
    /// # Errors
    /// 403 when a condition cannot be evaluated and the webhook's failure policy is `Fail`.
    pub(super) async fn hold(
        &mut self,
        webhook: &Webhook,
        request: &AdmissionRequest<'_>,
        targets: &Targets<'_>,
        matched: &Endpoint,
    ) -> Result<bool, Status> {
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let failed = |status: Status| match self.owner {
            // The reference wraps this failure twice.
            ConditionOwner::MutatingWebhook => Status::internal_error(status),
            _ => status,
        };
        let kind = &matched.kind;
        convert(&mut self.old_object, request.old_object, request, kind).await.map_err(failed)?;
        convert(&mut self.object, Some(&request.object), request, kind).await.map_err(failed)?;
        if webhook.reads_fields {
            for (_, object) in [&mut self.object, &mut self.old_object].into_iter().flatten() {
                object.get_mut("metadata").map(open_managed_fields);
            }
        }
        let options = self.options.get_or_insert_with(|| request.options.to_object(request.operation));
        let requested = targets.requested();
        let attributes = RequestAttributes {
            operation: request.operation.as_str(),
            kind: &matched.kind,
            // The resource of the request, and the kind that the rules match.
            resource: &requested.resource,
            request_kind: &requested.kind,
            request_resource: &requested.resource,
            subresource: request.subresource,
            namespace: request.namespace,
            name: request.name,
            user: request.context.user,
            dry_run: request.context.dry_run,
            options,
        };
        let value = attributes.to_value();
        let authority = self.authority.get_or_insert_with(|| {
            ExpressionAuthorizer::new(Arc::new(request.context.user.clone()), self.authorizer.clone())
        });
        let (object, old_object) = (present(&self.object), present(&self.old_object));
        let input = Input {
            object,
            old_object,
            request: Some(&value),
            authorizer: Some((authority.clone(), request_resource(&attributes))),
            ..Input::default()
        };
        let conditions = OwnedConditions {
            name: &webhook.name,
            owner: self.owner,
            conditions: &webhook.conditions,
            variables: &NO_VARIABLES,
        };
        let operation = request.operation;
        match conditions.evaluate(&input, authority, operation, self.metrics, &mut self.pace).await {
            MatchOutcome::Holds => Ok(true),
            MatchOutcome::Error { message, .. } if !webhook.ignores_failures => {
                Err(Status::forbidden(&request.resource.group_resource(), request.name, &message))
            }
            MatchOutcome::Fails { .. } | MatchOutcome::Error { .. } | MatchOutcome::Undecided => {
                conditions.count_exclusion(operation, self.metrics);
                Ok(false)
            }
        }
    }
}

fn present(converted: &Option<(GroupVersionKind, Value)>) -> Option<&Value> {
    converted.as_ref().map(|(_, object)| object)
}

async fn convert(
    slot: &mut Option<(GroupVersionKind, Value)>,
    object: Option<&Value>,
    request: &AdmissionRequest<'_>,
    kind: &GroupVersionKind,
) -> Result<(), Status> {
    let Some(object) = object.filter(|object| !object.is_null()) else { return Ok(()) };
    if slot.as_ref().is_none_or(|(own, _)| own != kind) {
        let object = request.versions.to_version(object, kind).await.map_err(Status::internal_error)?;
        let object = match request.versions.schema(kind) {
            Some(schema) => with_written_fields(&object, schema)?.into_owned(),
            None => object.into_owned(),
        };
        *slot = Some((kind.clone(), object));
    }
    Ok(())
}
