//! An audit event of `audit.k8s.io/v1`
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Event>).

use bytes::Bytes;
use jiff::Timestamp;
use pintle_machinery::{Status, StatusDetails, UserInfo};
use std::{borrow::Cow, collections::BTreeMap, net::IpAddr, sync::Arc};

/// The level of detail of an event. Each level includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No event.
    None,
    /// The metadata of request and response.
    Metadata,
    /// Also the request object.
    Request,
    /// Also the response object.
    RequestResponse,
}

impl Level {
    /// All levels, in ascending order.
    pub const ALL: [Level; 4] = [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];

    /// The level's name in policies and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// The stage of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The request was received, and is not answered yet.
    RequestReceived,
    /// The response headers are sent, and the body will take long. Only for watches and streams.
    ResponseStarted,
    /// The response is complete.
    ResponseComplete,
    /// The handler panicked.
    Panic,
}

impl Stage {
    /// All stages, in the order in which messages list them.
    pub const ALL: [Stage; 4] =
        [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete, Stage::Panic];

    /// The stage's name in policies and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageSet(u8);

impl StageSet {
    /// Whether the set contains a stage.
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Adds a stage.
    pub fn insert(&mut self, stage: Stage) {
        self.0 |= 1 << stage as u8;
    }

    /// The union of two sets.
    pub fn union(self, other: StageSet) -> StageSet {
        StageSet(self.0 | other.0)
    }
}

/// The object of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectReference {
    /// The resource.
    pub resource: String,
    /// The namespace, or "".
    pub namespace: String,
    /// The name, or "".
    pub name: String,
    /// The uid, when the request has it.
    pub uid: String,
    /// The API group, "" for the core group.
    pub api_group: String,
    /// The API version.
    pub api_version: String,
    /// The resourceVersion of the object, when the request has it.
    pub resource_version: String,
    /// The subresource, or "".
    pub subresource: String,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseStatus {
    /// `Success`, `Failure`, or "" when the response was not a `Status`.
    pub status: Cow<'static, str>,
    /// The message for people.
    pub message: Cow<'static, str>,
    /// The machine-readable reason.
    pub reason: Cow<'static, str>,
    /// The details of the `Status`.
    pub details: Option<StatusDetails>,
    /// The HTTP status code; 0 when there was none.
    pub code: u16,
}

impl From<&Status> for ResponseStatus {
    fn from(status: &Status) -> ResponseStatus {
        let (outcome, reason) = match &status.answered {
            Some(answered) => (answered.status.clone().into(), answered.reason.clone().into()),
            None => {
                let outcome = if status.code < 300 { "Success" } else { "Failure" };
                (outcome.into(), status.reason.as_str().into())
            }
        };
        ResponseStatus {
            status: outcome,
            message: status.message.clone().into(),
            reason,
            details: status.details.clone(),
            code: status.code,
        }
    }
}

/// The event of a request at one stage.
#[derive(Debug, Clone)]
pub struct Event {
    /// The level of detail.
    pub level: Level,
    /// The request's audit id, the same at all stages.
    pub audit_id: String,
    /// The stage of the request.
    pub stage: Stage,
    /// The path and query, as the client sent them.
    pub request_uri: String,
    /// The verb, or the method in lower case.
    pub verb: String,
    /// The requesting user; `None` when authentication failed.
    pub user: Option<Arc<UserInfo>>,
    /// The impersonated user.
    pub impersonated_user: Option<Arc<UserInfo>>,
    /// The verb that allowed the impersonation, if it was constrained; or "".
    pub impersonation_constraint: String,
    /// The addresses that the request came from. All but the last are claims of the client.
    pub source_ips: Vec<IpAddr>,
    /// The client's user agent.
    pub user_agent: String,
    /// The object of the request.
    pub object_ref: Option<ObjectReference>,
    /// The outcome.
    pub response_status: Option<ResponseStatus>,
    /// The request object, as compact JSON.
    pub request_object: Option<Bytes>,
    /// The response object, as compact JSON.
    pub response_object: Option<Bytes>,
    /// The time at which the request was received.
    pub request_received: Timestamp,
    /// The time at which the request reached this stage.
    pub stage_time: Timestamp,
    /// The annotations that components of the server added.
    pub annotations: BTreeMap<Cow<'static, str>, Cow<'static, str>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::{json, status::AnsweredStatus};

    #[test]
    fn the_outcome_of_an_answered_status_is_that_of_its_server() {
        let answered =
            AnsweredStatus { reason: "Odd".to_owned(), status: "Failure".to_owned(), metadata: json!({}) };
        let outcome = ResponseStatus::from(&Status::answered(400, answered, "no"));
        assert_eq!((&*outcome.status, &*outcome.reason, outcome.code), ("Failure", "Odd", 400));
        let own = ResponseStatus::from(&Status::bad_request("no"));
        assert_eq!((&*own.status, &*own.reason), ("Failure", "BadRequest"));
    }
}
