//! An audit event, as `audit.k8s.io/v1` has it
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Event>).

use bytes::Bytes;
use jiff::Timestamp;
use pintle_machinery::{Status, StatusDetails, UserInfo};
use std::{borrow::Cow, collections::BTreeMap, net::IpAddr, sync::Arc};

/// How much is told of a request. Each level tells all that those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    None,
    /// Who asked for what, and what came of it.
    Metadata,
    /// The object of the request.
    Request,
    /// The object of the response.
    RequestResponse,
}

impl Level {
    /// All, least first.
    pub const ALL: [Level; 4] = [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];

    /// The level as policies and events name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// Where on its way a request is when it is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It came in, and nobody has answered it yet.
    RequestReceived,
    /// The head of the answer is known, and the body is going to take long. Of watches and streams only.
    ResponseStarted,
    /// It is answered.
    ResponseComplete,
    /// Its handler panicked.
    Panic,
}

impl Stage {
    /// All, in the order of their names in messages.
    pub const ALL: [Stage; 4] =
        [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete, Stage::Panic];

    /// The stage as policies and events name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

/// Some of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StageSet(u8);

impl StageSet {
    /// Whether a stage is among them.
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Adds a stage.
    pub fn insert(&mut self, stage: Stage) {
        self.0 |= 1 << stage as u8;
    }

    /// These and those.
    pub fn union(self, other: StageSet) -> StageSet {
        StageSet(self.0 | other.0)
    }
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectReference {
    /// The resource.
    pub resource: String,
    /// The namespace, or "".
    pub namespace: String,
    /// The name, or "".
    pub name: String,
    /// The identity, when the request names it.
    pub uid: String,
    /// The group, "" for the core group.
    pub api_group: String,
    /// The version.
    pub api_version: String,
    /// The version of the object, when the request names it.
    pub resource_version: String,
    /// The subresource, or "".
    pub subresource: String,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseStatus {
    /// `Success`, `Failure`, or "" when the answer was no `Status`.
    pub status: &'static str,
    /// Why, for people.
    pub message: Cow<'static, str>,
    /// Why, for programs.
    pub reason: &'static str,
    /// What it is about.
    pub details: Option<StatusDetails>,
    /// The HTTP status; 0 when there was none.
    pub code: u16,
}

impl From<&Status> for ResponseStatus {
    fn from(status: &Status) -> ResponseStatus {
        ResponseStatus {
            status: if status.code < 300 { "Success" } else { "Failure" },
            message: status.message.clone().into(),
            reason: status.reason.as_str(),
            details: status.details.clone(),
            code: status.code,
        }
    }
}

/// What is told of a request at one stage.
#[derive(Debug, Clone)]
pub struct Event {
    /// How much is told.
    pub level: Level,
    /// Tells the request from all others; the same at all stages.
    pub audit_id: String,
    /// Where the request is.
    pub stage: Stage,
    /// Path and query, as the client sent them.
    pub request_uri: String,
    /// The verb, or the method in lower case.
    pub verb: String,
    /// Who asked; `None` when authentication failed.
    pub user: Option<Arc<UserInfo>>,
    /// As whom they act.
    pub impersonated_user: Option<Arc<UserInfo>>,
    /// The verb that let them, with constrained impersonation; or "".
    pub impersonation_constraint: String,
    /// Where the request came from. All but the last is the client's word.
    pub source_ips: Vec<IpAddr>,
    /// What the client says that it is.
    pub user_agent: String,
    /// What the request is about.
    pub object_ref: Option<ObjectReference>,
    /// What came of it.
    pub response_status: Option<ResponseStatus>,
    /// The object of the request, as compact JSON.
    pub request_object: Option<Bytes>,
    /// The object of the response, as compact JSON.
    pub response_object: Option<Bytes>,
    /// When the request came in.
    pub request_received: Timestamp,
    /// When it came to this stage.
    pub stage_time: Timestamp,
    /// What parts of the server note of the request.
    pub annotations: BTreeMap<Cow<'static, str>, Cow<'static, str>>,
}
