//! `Status`: the only form in which a client sees a failure.
//!
//! Reasons, codes and messages are those of
//! <https://pkg.go.dev/k8s.io/apimachinery/pkg/api/errors>; clients match on them.

use crate::error_list::{MAX_SHOWN_BYTES, MAX_SHOWN_ERRORS};
use crate::{ErrorList, GroupKind, GroupResource, StatusCause, Value, ValueExt};
use indexmap::IndexSet;
use pintle_go_forms::quote;
use pintle_tree::json;
use std::fmt;

/// The reason of a failure, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the API's own and say it")]
pub enum StatusReason {
    Unknown,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    ServerTimeout,
    StoreReadError,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    Expired,
    ServiceUnavailable,
}

impl StatusReason {
    /// The reason in its serialized form.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusReason::Unknown => "",
            StatusReason::Unauthorized => "Unauthorized",
            StatusReason::Forbidden => "Forbidden",
            StatusReason::NotFound => "NotFound",
            StatusReason::AlreadyExists => "AlreadyExists",
            StatusReason::Conflict => "Conflict",
            StatusReason::Gone => "Gone",
            StatusReason::Invalid => "Invalid",
            StatusReason::ServerTimeout => "ServerTimeout",
            StatusReason::StoreReadError => "StorageReadError",
            StatusReason::Timeout => "Timeout",
            StatusReason::TooManyRequests => "TooManyRequests",
            StatusReason::BadRequest => "BadRequest",
            StatusReason::MethodNotAllowed => "MethodNotAllowed",
            StatusReason::NotAcceptable => "NotAcceptable",
            StatusReason::RequestEntityTooLarge => "RequestEntityTooLarge",
            StatusReason::UnsupportedMediaType => "UnsupportedMediaType",
            StatusReason::InternalError => "InternalError",
            StatusReason::Expired => "Expired",
            StatusReason::ServiceUnavailable => "ServiceUnavailable",
        }
    }
}

/// Details of a failure: the object, and the causes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusDetails {
    /// The object's name.
    pub name: String,
    /// The group of `kind`.
    pub group: String,
    /// A resource (mostly) or a kind.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// The single causes, such as field errors.
    pub causes: Vec<StatusCause>,
    /// Seconds after which the client may retry; 0 means unspecified. Only other servers choose a negative number.
    pub retry_after_seconds: i32,
}

/// A failure in the form that clients see. A success is a `Status` too, see [`Status::success`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The reason, for programs.
    pub reason: StatusReason,
    /// The message, for people.
    pub message: String,
    /// The object and the causes.
    pub details: Option<StatusDetails>,
    /// A continue token with which the client can resume an expired list (`metadata.continue`).
    pub continue_token: Option<String>,
    /// The parts of a failure that another server has reported; its reason replaces [`Status::reason`].
    pub answered: Option<Box<AnsweredStatus>>,
}

/// The parts of a `Status` that another server chose, such as a webhook that refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredStatus {
    /// The reason, or "".
    pub reason: String,
    /// `status`, which is `Failure` in statuses of this server.
    pub status: String,
    /// `metadata`, an object.
    pub metadata: Value,
}

impl Status {
    /// A failure without details.
    pub fn failure(code: u16, reason: StatusReason, message: impl Into<String>) -> Status {
        Status { code, reason, message: message.into(), details: None, continue_token: None, answered: None }
    }

    /// A failure with reason and status of another server.
    pub fn answered(code: u16, answered: AnsweredStatus, message: impl Into<String>) -> Status {
        let mut status = Self::failure(code, StatusReason::Unknown, message);
        status.answered = Some(Box::new(answered));
        status
    }

    /// A success, with the details of the object.
    pub fn success(details: Option<StatusDetails>) -> Status {
        Status {
            code: 200,
            reason: StatusReason::Unknown,
            message: String::new(),
            details,
            continue_token: None,
            answered: None,
        }
    }

    fn about(mut self, resource: &GroupResource, name: &str) -> Status {
        self.details = Some(StatusDetails {
            name: name.to_owned(),
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            ..StatusDetails::default()
        });
        self
    }

    fn retry_after(mut self, seconds: u32) -> Status {
        self.details.get_or_insert_default().retry_after_seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
        self
    }

    /// 404: no such object.
    pub fn not_found(resource: &GroupResource, name: &str) -> Status {
        Self::failure(404, StatusReason::NotFound, format!("{resource} {} not found", quote(name)))
            .about(resource, name)
    }

    /// 404: nothing is served at this path.
    pub fn no_such_resource() -> Status {
        let message = "the server could not find the requested resource";
        let mut status = Self::failure(404, StatusReason::NotFound, message);
        status.details = Some(StatusDetails::default());
        status
    }

    /// 409: the object exists.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Status {
        let message = format!("{resource} {} already exists", quote(name));
        Self::failure(409, StatusReason::AlreadyExists, message).about(resource, name)
    }

    /// 409: no free generated name was found.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str) -> Status {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            quote(name)
        );
        Self::failure(409, StatusReason::AlreadyExists, message).about(resource, name).retry_after(1)
    }

    /// 401: the request is not authenticated.
    pub fn unauthorized() -> Status {
        Self::failure(401, StatusReason::Unauthorized, "Unauthorized")
    }

    /// 403: the request is authenticated but not allowed.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Status {
        let message = match (*resource == GroupResource::default(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {} is forbidden: {why}", quote(name)),
        };
        Self::failure(403, StatusReason::Forbidden, message).about(resource, name)
    }

    /// 409: the object differs from the state that the client expects.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Status {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", quote(name));
        Self::failure(409, StatusReason::Conflict, message).about(resource, name)
    }

    /// 410: the requested resourceVersion is compacted.
    pub fn expired(message: impl Into<String>) -> Status {
        Self::failure(410, StatusReason::Expired, message)
    }

    /// 422: the object does not pass validation. Of very many or very long errors only the first are shown.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &ErrorList) -> Status {
        let mut message = format!("{kind} {} is invalid", quote(name));
        let (mut texts, mut causes) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for error in errors.iter().take(MAX_SHOWN_ERRORS) {
            let cause = error.cause();
            let text = format!("{}: {}", cause.field, cause.message);
            bytes += text.len();
            texts.push(text);
            causes.push(cause);
            if bytes > MAX_SHOWN_BYTES {
                break;
            }
        }
        if errors.len() > causes.len() {
            texts.push("and more errors".to_owned());
        }
        if !texts.is_empty() {
            message.push_str(": ");
            message.push_str(&aggregate(texts.into_iter()));
        }
        let mut status = Self::failure(422, StatusReason::Invalid, message);
        status.details = Some(StatusDetails {
            name: name.to_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            causes,
            ..StatusDetails::default()
        });
        status
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Self::failure(400, StatusReason::BadRequest, message)
    }

    /// 405: the resource does not support the verb.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Status {
        let message =
            format!("{action} is not supported on resources of kind {}", quote(&resource.to_string()));
        let mut status = Self::failure(405, StatusReason::MethodNotAllowed, message);
        status.details = Some(StatusDetails {
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            ..StatusDetails::default()
        });
        status
    }

    /// 406: the server supports none of the media types that the client accepts.
    pub fn not_acceptable(message: impl Into<String>) -> Status {
        Self::failure(406, StatusReason::NotAcceptable, message)
    }

    /// 413: the body is too large.
    pub fn request_entity_too_large(message: &str) -> Status {
        Self::failure(
            413,
            StatusReason::RequestEntityTooLarge,
            format!("Request entity too large: {message}"),
        )
    }

    /// 415: the server does not support the media type of the body.
    pub fn unsupported_media_type(message: impl Into<String>) -> Status {
        Self::failure(415, StatusReason::UnsupportedMediaType, message)
    }

    /// 429: the server is overloaded; the client may retry later.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Status {
        Self::failure(429, StatusReason::TooManyRequests, message).retry_after(retry_after_seconds)
    }

    /// 500: the server failed.
    pub fn internal_error(why: impl fmt::Display) -> Status {
        let why = why.to_string();
        let mut status =
            Self::failure(500, StatusReason::InternalError, format!("Internal error occurred: {why}"));
        status.details = Some(StatusDetails {
            causes: vec![StatusCause { message: why, ..StatusCause::default() }],
            ..StatusDetails::default()
        });
        status
    }

    /// 500 for an error without a status of its own: code 500, the bare message, no reason.
    pub fn unknown(message: impl Into<String>) -> Status {
        Self::failure(500, StatusReason::Unknown, message)
    }

    /// 503: the server or the resource is temporarily unavailable.
    pub fn service_unavailable(message: impl Into<String>) -> Status {
        Self::failure(503, StatusReason::ServiceUnavailable, message)
    }

    /// 504: the time limit of the request has passed; the client may retry.
    pub fn timeout(message: &str, retry_after_seconds: u32) -> Status {
        Self::failure(504, StatusReason::Timeout, format!("Timeout: {message}"))
            .retry_after(retry_after_seconds)
    }

    /// 504: the time limit of the request has passed without a response to send.
    pub fn allotted_timeout() -> Status {
        Self::timeout("request did not complete within the allotted timeout", 0)
    }

    /// 504: the deadline of the request has passed while it was handled.
    pub fn deadline_exceeded() -> Status {
        Self::timeout("request did not complete within requested timeout - context deadline exceeded", 0)
    }

    /// 504: the client is gone. It does not see the status; logs, metrics and audit events do.
    pub fn canceled() -> Status {
        Self::timeout("request did not complete within requested timeout - context canceled", 0)
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Status {
        self.details.get_or_insert_default().causes.push(StatusCause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    /// Converts the status to an object (`v1`, kind `Status`).
    pub fn to_value(&self) -> Value {
        let mut object = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": if self.code < 300 { "Success" } else { "Failure" },
        });
        if let Some(token) = &self.continue_token {
            object.set("metadata.continue", token.clone());
        }
        if let Some(map) = object.as_object_mut() {
            if !self.message.is_empty() {
                map.insert("message", self.message.clone().into());
            }
            let reason = match &self.answered {
                None => self.reason.as_str(),
                Some(answered) => {
                    map.insert("status", answered.status.as_str().into());
                    map.insert("metadata", answered.metadata.clone());
                    &answered.reason
                }
            };
            if !reason.is_empty() {
                map.insert("reason", reason.into());
            }
            if let Some(details) = &self.details {
                map.insert("details", details.to_value());
            }
            if self.code >= 300 {
                map.insert("code", self.code.into());
            }
        }
        object
    }
}

impl StatusDetails {
    fn to_value(&self) -> Value {
        let mut object = pintle_tree::Map::new();
        let mut put = |name: &str, text: &str| {
            if !text.is_empty() {
                object.insert(name, text.into());
            }
        };
        put("name", &self.name);
        put("group", &self.group);
        put("kind", &self.kind);
        put("uid", &self.uid);
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(StatusCause::to_value).collect();
            object.insert("causes", Value::Array(causes));
        }
        if self.retry_after_seconds != 0 {
            object.insert("retryAfterSeconds", self.retry_after_seconds.into());
        }
        Value::Object(object)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// Joins messages without duplicates: a single one unchanged, several in brackets.
pub fn aggregate(messages: impl Iterator<Item = String>) -> String {
    // A client's object can have very many errors.
    let seen: IndexSet<String> = messages.collect();
    match seen.into_iter().collect::<Vec<_>>().as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
