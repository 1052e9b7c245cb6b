//! The JSON of an event: `Event` of `audit.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Event>).

use crate::{Event, ObjectReference, ResponseStatus};
use pintle_machinery::{
    StatusCause, StatusDetails, UserInfo,
    codec::json::{ObjectWriter, write_list, write_object, write_string},
};

/// Writes what was requested by whom: the same at all stages of a request, unless its user impersonates another one in
/// between.
pub(super) fn write_request(out: &mut ObjectWriter<'_>, event: &Event) {
    out.text("requestURI", &event.request_uri);
    out.text("verb", &event.verb);
    let no_user = UserInfo::default();
    out.object("user", |out| write_user(out, event.user.as_deref().unwrap_or(&no_user)));
    if let Some(user) = &event.impersonated_user {
        out.object("impersonatedUser", |out| write_user(out, user));
    }
    if !event.impersonation_constraint.is_empty() {
        out.object("authenticationMetadata", |out| {
            out.text("impersonationConstraint", &event.impersonation_constraint);
        });
    }
    // IPv4 addresses have their own form, also those that a socket reports as IPv6.
    out.list_if_any("sourceIPs", &event.source_ips, |out, ip| {
        write_string(out, &ip.to_canonical().to_string());
    });
    out.text_if_any("userAgent", &event.user_agent);
}

fn write_user(out: &mut ObjectWriter<'_>, user: &UserInfo) {
    out.text_if_any("username", &user.name);
    out.text_if_any("uid", &user.uid);
    out.list_if_any("groups", &user.groups, |out, group| write_string(out, group));
    if !user.extra.is_empty() {
        out.object("extra", |out| {
            for (key, values) in &user.extra {
                out.entry(key, |out| write_list(out, values, |out, value| write_string(out, value)));
            }
        });
    }
}

pub(super) fn write_reference(out: &mut ObjectWriter<'_>, reference: &ObjectReference) {
    out.text_if_any("resource", &reference.resource);
    out.text_if_any("namespace", &reference.namespace);
    out.text_if_any("name", &reference.name);
    out.text_if_any("uid", &reference.uid);
    out.text_if_any("apiGroup", &reference.api_group);
    out.text_if_any("apiVersion", &reference.api_version);
    out.text_if_any("resourceVersion", &reference.resource_version);
    out.text_if_any("subresource", &reference.subresource);
}

pub(super) fn write_status(out: &mut ObjectWriter<'_>, status: &ResponseStatus) {
    out.object("metadata", |_| {});
    out.text_if_any("status", &status.status);
    out.text_if_any("message", &status.message);
    out.text_if_any("reason", &status.reason);
    if let Some(details) = &status.details {
        out.object("details", |out| write_details(out, details));
    }
    out.number_if_any("code", status.code.into());
}

fn write_details(out: &mut ObjectWriter<'_>, details: &StatusDetails) {
    out.text_if_any("name", &details.name);
    out.text_if_any("group", &details.group);
    out.text_if_any("kind", &details.kind);
    out.text_if_any("uid", &details.uid);
    out.list_if_any("causes", &details.causes, |out, StatusCause { reason, message, field }| {
        write_object(out, |out| {
            out.text_if_any("reason", reason);
            out.text_if_any("message", message);
            out.text_if_any("field", field);
        });
    });
    out.number_if_any("retryAfterSeconds", details.retry_after_seconds.into());
}
