//! The JSON of an event: `Event` of `audit.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Event>).

use crate::{Event, ObjectReference, ResponseStatus};
use pintle_machinery::{StatusCause, StatusDetails, UserInfo};
use serde::{Serialize, Serializer};
use std::{borrow::Cow, collections::BTreeMap, net::IpAddr};

/// The first fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: &'static str,
}

/// The fields that are the same at all stages of a request, unless its user impersonates another one in between.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: User<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<User<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<AuthenticationMetadata<'a>>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty", serialize_with = "canonical")]
    source_ips: &'a [IpAddr],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
}

/// The fields between those and the request and response objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<Reference<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<Status<'a>>,
}

/// The fields after the request and response objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tail<'a> {
    pub(super) request_received_timestamp: String,
    pub(super) stage_timestamp: String,
    #[serde(skip_serializing_if = "is_empty")]
    pub(super) annotations: Cow<'a, Annotations>,
}

pub(super) type Annotations = BTreeMap<Cow<'static, str>, Cow<'static, str>>;

#[derive(Serialize, Default)]
struct User<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, Vec<String>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthenticationMetadata<'a> {
    impersonation_constraint: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
}

#[derive(Serialize)]
struct Status<'a> {
    metadata: Empty,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    code: u32,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    retry_after_seconds: i32,
}

#[derive(Serialize)]
struct Cause<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    field: &'a str,
}

impl<'a> Head<'a> {
    pub(super) fn of(event: &'a Event) -> Head<'a> {
        Head {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: event.level.as_str(),
            audit_id: &event.audit_id,
            stage: event.stage.as_str(),
        }
    }
}

impl<'a> Request<'a> {
    pub(super) fn of(event: &'a Event) -> Request<'a> {
        let constraint = &*event.impersonation_constraint;
        Request {
            request_uri: &event.request_uri,
            verb: &event.verb,
            user: event.user.as_deref().map(User::of).unwrap_or_default(),
            impersonated_user: event.impersonated_user.as_deref().map(User::of),
            authentication_metadata: (!constraint.is_empty())
                .then_some(AuthenticationMetadata { impersonation_constraint: constraint }),
            source_ips: &event.source_ips,
            user_agent: &event.user_agent,
        }
    }
}

impl<'a> Outcome<'a> {
    pub(super) fn of(event: &'a Event) -> Outcome<'a> {
        Outcome {
            object_ref: event.object_ref.as_ref().map(Reference::of),
            response_status: event.response_status.as_ref().map(Status::of),
        }
    }
}

impl<'a> User<'a> {
    fn of(user: &'a UserInfo) -> User<'a> {
        let extra = Some(&user.extra).filter(|extra| !extra.is_empty());
        User { username: &user.name, uid: &user.uid, groups: &user.groups, extra }
    }
}

impl<'a> Reference<'a> {
    fn of(reference: &'a ObjectReference) -> Reference<'a> {
        Reference {
            resource: &reference.resource,
            namespace: &reference.namespace,
            name: &reference.name,
            uid: &reference.uid,
            api_group: &reference.api_group,
            api_version: &reference.api_version,
            resource_version: &reference.resource_version,
            subresource: &reference.subresource,
        }
    }
}

impl<'a> Status<'a> {
    fn of(status: &'a ResponseStatus) -> Status<'a> {
        Status {
            metadata: Empty {},
            status: &status.status,
            message: &status.message,
            reason: &status.reason,
            details: status.details.as_ref().map(Details::of),
            code: status.code.into(),
        }
    }
}

impl<'a> Details<'a> {
    fn of(details: &'a StatusDetails) -> Details<'a> {
        let causes = details.causes.iter().map(|StatusCause { reason, message, field }| Cause {
            reason,
            message,
            field,
        });
        Details {
            name: &details.name,
            group: &details.group,
            kind: &details.kind,
            uid: &details.uid,
            causes: causes.collect(),
            retry_after_seconds: details.retry_after_seconds,
        }
    }
}

/// IPv4 addresses in their own form, also those that a socket reports as IPv6.
fn canonical<S: Serializer>(addresses: &[IpAddr], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(addresses.iter().map(IpAddr::to_canonical))
}

fn is_empty(annotations: &Annotations) -> bool {
    annotations.is_empty()
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
