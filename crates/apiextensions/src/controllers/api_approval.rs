//! Sets the condition for the approval of definitions in groups of the Kubernetes community
//! (<https://github.com/kubernetes/enhancements/pull/1111>).

use super::{Context, Controller, condition};
use crate::{
    definition::api_approval::{ANNOTATION, ApprovalState, approval, is_protected_group},
    definition_view::Definition,
    informer::Change,
};
use pintle_machinery::Status;
use pintle_registry::BoxFuture;

const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";

pub(crate) struct ApiApproval(pub(crate) Context);

/// The content of the condition, if the definition needs one.
fn verdict(definition: &Definition) -> Option<(&'static str, &'static str, String)> {
    if !is_protected_group(&definition.spec.group) {
        return None;
    }
    let annotation = definition.metadata.annotations.get(ANNOTATION).map_or("", String::as_str);
    let (state, message) = approval(annotation);
    let (status, reason) = match state {
        ApprovalState::Missing => ("False", "MissingAnnotation"),
        ApprovalState::Bypassed => ("False", "UnapprovedAnnotation"),
        ApprovalState::Approved => ("True", "ApprovedAnnotation"),
        ApprovalState::Invalid => ("False", "InvalidAnnotation"),
    };
    Some((status, reason, message))
}

impl ApiApproval {
    fn is_due(definition: &Definition) -> bool {
        verdict(definition).is_some_and(|(status, reason, message)| {
            definition
                .condition(CONDITION)
                .is_none_or(|old| old.status != status || old.reason != reason || old.message != message)
        })
    }
}

impl Controller for ApiApproval {
    fn name(&self) -> &'static str {
        "api-approval"
    }

    fn queue_name(&self) -> &'static str {
        "kubernetes_api_approval_conformant_condition_controller"
    }

    fn wants(&self, change: &Change) -> Vec<String> {
        let is_due = change.now.as_ref().is_some_and(|now| ApiApproval::is_due(now));
        is_due.then(|| change.name().to_owned()).into_iter().collect()
    }

    fn sync<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(definition) = self.0.definitions.get(name) else { return Ok(()) };
            let Some((status, reason, message)) = verdict(&definition) else { return Ok(()) };
            let changed = self.0.update_status(name, |mut definition| {
                let says = condition::Says { condition_type: CONDITION, status, reason, message: &message };
                condition::set(&mut definition, says);
                Ok(definition)
            });
            changed.await
        })
    }
}
