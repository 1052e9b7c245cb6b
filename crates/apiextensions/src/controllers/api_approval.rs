//! Says whether a definition in a group of the Kubernetes community is approved
//! (<https://github.com/kubernetes/enhancements/pull/1111>).

use super::{Context, Controller, condition};
use crate::{definition_view::Definition, informer::Change};
use pintle_machinery::{Status, error_list::quote};
use pintle_registry::BoxFuture;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";

pub(crate) struct ApiApproval(pub(crate) Context);

/// What the condition has to say, if there is to be one.
fn verdict(definition: &Definition) -> Option<(&'static str, &'static str, String)> {
    let group = definition.spec.group.as_str();
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|own| match group.strip_suffix(own) {
        Some(rest) => rest.is_empty() || rest.ends_with('.'),
        None => false,
    });
    if !is_protected {
        return None;
    }
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    Some(match definition.metadata.annotations.get(ANNOTATION).map_or("", String::as_str) {
        "" => (
            "False",
            "MissingAnnotation",
            format!("protected groups must have approval annotation {}, {SEE}", quote(ANNOTATION)),
        ),
        text if text.starts_with("unapproved") => {
            ("False", "UnapprovedAnnotation", format!("not approved: {}", quote(text)))
        }
        text if is_url(text) => ("True", "ApprovedAnnotation", format!("approved in {text}")),
        _ => (
            "False",
            "InvalidAnnotation",
            format!(
                "protected groups must have approval annotation {} with either a URL or a reason starting with \
                 \"unapproved\", {SEE}",
                quote(ANNOTATION)
            ),
        ),
    })
}

/// Whether the text is a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    text.parse::<http::Uri>()
        .is_ok_and(|url| url.scheme().is_some() && url.host().is_some_and(|host| !host.is_empty()))
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
