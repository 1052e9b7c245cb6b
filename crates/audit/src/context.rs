//! The audit context of one request.

use crate::{
    Event, Level, ObjectReference, RequestAuditConfig, ResponseStatus, Stage,
    backends::{Backends, Unconfirmed},
    encode::{Encoded, describe},
    json::{checked, without_managed_fields},
    latencies::{Latencies, Layer},
};
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_machinery::{Status, UserInfo, Value, ValueExt, codec::json::compact};
use std::{borrow::Cow, collections::BTreeMap, mem, net::IpAddr, sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// The attributes of a request before it is executed.
#[derive(Debug, Clone)]
pub struct RequestMetadata {
    /// The request's audit id, which is unique.
    pub audit_id: String,
    /// The path and query, as the client sent them.
    pub request_uri: String,
    /// The verb, or the method in lower case.
    pub verb: String,
    /// The requesting user; `None` when authentication failed.
    pub user: Option<Arc<UserInfo>>,
    /// The addresses that the request came from.
    pub source_ips: Vec<IpAddr>,
    /// The client's user agent.
    pub user_agent: String,
    /// The object of the request, if it is a resource request.
    pub object_ref: Option<ObjectReference>,
    /// The time at which the request was received.
    pub received: Timestamp,
}

/// The length up to which a user agent is recorded completely.
const MAX_USER_AGENT: usize = 1024;

/// The event of a request in progress. Filters and handlers add their data to it.
pub struct AuditContext {
    backends: Arc<Backends>,
    config: RequestAuditConfig,
    event: Mutex<Event>,
    /// The part that all events share, from the first one on.
    described: Mutex<Option<Bytes>>,
    latencies: Mutex<Latencies>,
    /// The first event, where a backend writes it while the request is executed.
    unconfirmed: Mutex<Unconfirmed>,
}

impl AuditContext {
    pub(crate) fn new(
        backends: Arc<Backends>,
        config: RequestAuditConfig,
        metadata: RequestMetadata,
    ) -> AuditContext {
        let RequestMetadata { audit_id, request_uri, verb, user, source_ips, object_ref, received, .. } =
            metadata;
        let mut user_agent = metadata.user_agent;
        if user_agent.len() > MAX_USER_AGENT {
            let fits = |end: &usize| user_agent.is_char_boundary(*end);
            user_agent.truncate((0..=MAX_USER_AGENT).rev().find(fits).unwrap_or_default());
            user_agent.push_str("...TRUNCATED");
        }
        let event = Event {
            level: config.level,
            audit_id,
            stage: Stage::RequestReceived,
            request_uri,
            verb,
            user,
            impersonated_user: None,
            impersonation_constraint: String::new(),
            source_ips,
            user_agent,
            object_ref,
            response_status: None,
            request_object: None,
            response_object: None,
            request_received: received,
            stage_time: received,
            annotations: BTreeMap::new(),
        };
        AuditContext {
            backends,
            config,
            event: Mutex::new(event),
            described: Mutex::default(),
            latencies: Mutex::default(),
            unconfirmed: Mutex::default(),
        }
    }

    /// The audit level of the request. Data above the level need not be computed.
    pub fn level(&self) -> Level {
        self.config.level
    }

    /// Adds an annotation; its key names the component that adds it. The first value of a key is kept.
    pub fn annotate(&self, key: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) {
        let (key, value) = (key.into(), value.into());
        let mut event = self.event.lock();
        match event.annotations.get(&key) {
            None => _ = event.annotations.insert(key, value),
            Some(noted) if *noted != value => {
                tracing::warn!(%key, audit_id = event.audit_id, "an audit annotation was noted before with another value");
            }
            Some(_) => {}
        }
    }

    /// Notes the time that a layer took. The last event of a slow request has the times in annotations.
    pub fn note_latency(&self, layer: Layer, took: Duration) {
        self.latencies.lock().add(layer, took);
    }

    /// Records the impersonated user, and the verb that allowed it with constrained impersonation, or "".
    pub fn set_impersonated_user(&self, user: Arc<UserInfo>, constraint: &str) {
        let mut event = self.event.lock();
        event.impersonated_user = Some(user);
        event.impersonation_constraint = constraint.to_owned();
        *self.described.lock() = None;
    }

    /// Records the request object: its metadata, and, at the level `Request`, the JSON that `encode` returns.
    pub fn set_request_object(&self, object: &Value, encode: impl FnOnce() -> Option<Vec<u8>>) {
        let json = if self.config.level >= Level::Request { encode() } else { None };
        let json = json.map(|json| self.fit(compact(&json).into()));
        let mut event = self.event.lock();
        if let Some(reference) = &mut event.object_ref {
            let from = [
                (&mut reference.namespace, "metadata.namespace"),
                (&mut reference.name, "metadata.name"),
                (&mut reference.uid, "metadata.uid"),
                (&mut reference.resource_version, "metadata.resourceVersion"),
            ];
            for (known, path) in from {
                if known.is_empty() {
                    known.push_str(object.str_at(path));
                }
            }
        }
        event.request_object = json;
    }

    /// Records a patch, at the level `Request`: as it is, if it is JSON, or else as the JSON that `convert` returns.
    /// Invalid JSON is omitted.
    pub fn set_request_patch(&self, patch: &[u8], convert: impl FnOnce() -> Option<Vec<u8>>) {
        if self.config.level >= Level::Request {
            let json = checked(patch).or_else(|| checked(&convert()?));
            self.event.lock().request_object = json;
        }
    }

    /// Records the `Status` that is the response.
    pub fn set_response_status(&self, status: &Status) {
        self.event.lock().response_status = Some(status.into());
    }

    /// Records the outcome of a request whose response is not a `Status`.
    pub fn set_outcome(&self, status: ResponseStatus) {
        self.event.lock().response_status = Some(status);
    }

    /// Records the HTTP status of the response, in addition to a `Status`.
    pub fn set_response_code(&self, code: u16) {
        self.event.lock().response_status.get_or_insert_default().code = code;
    }

    /// Whether an outcome has been recorded.
    pub fn has_response_status(&self) -> bool {
        self.event.lock().response_status.is_some()
    }

    /// Records the JSON of the response object, at the level `RequestResponse`. Invalid JSON is omitted.
    pub fn set_response_object(&self, json: &[u8]) {
        if self.config.level >= Level::RequestResponse {
            self.event.lock().response_object = checked(json).map(|json| self.fit(json));
        }
    }

    fn fit(&self, json: Bytes) -> Bytes {
        match self.config.omit_managed_fields {
            true => without_managed_fields(&json),
            false => json,
        }
    }

    /// Sends the event of the stage `RequestReceived` to the backends, unless the policy omits the stage. Returns false
    /// when a strict backend failed: the request must not be executed.
    ///
    /// A log that is not strict may write the event later, but before [`AuditContext::process`] returns.
    pub async fn begin(&self) -> bool {
        let Some(encoded) = self.encode(Stage::RequestReceived) else { return true };
        let Some(unconfirmed) = self.backends.send_ahead(&encoded).await else { return false };
        *self.unconfirmed.lock() = unconfirmed;
        true
    }

    /// Sends the event of a later stage to the backends, unless the policy omits the stage.
    ///
    /// A dropped future may have sent the event to some of the backends only.
    pub async fn process(&self, stage: Stage) {
        self.send(self.encode(stage)).await;
    }

    async fn send(&self, encoded: Option<Encoded>) {
        if let Some(encoded) = encoded {
            self.backends.send(&encoded).await;
        }
        let unconfirmed = mem::take(&mut *self.unconfirmed.lock());
        self.backends.confirm(unconfirmed).await;
    }

    /// As [`AuditContext::process`], but all backends get the event even if the future is dropped.
    pub async fn process_to_end(self: &Arc<Self>, stage: Stage) {
        // Without a wait the future cannot be dropped in the middle, and needs no task.
        if !self.backends.waits() {
            self.process(stage).await;
        } else if let Err(error) = self.process_detached(stage).await {
            tracing::error!(%error, "telling of a request ended unexpectedly");
        }
    }

    /// As [`AuditContext::process`], for callers that cannot wait: a separate task sends the event. Must be called on
    /// the runtime.
    pub fn process_detached(self: &Arc<Self>, stage: Stage) -> JoinHandle<()> {
        let (context, encoded) = (self.clone(), self.encode(stage));
        tokio::spawn(async move { context.send(encoded).await })
    }

    fn encode(&self, stage: Stage) -> Option<Encoded> {
        if self.config.omit_stages.contains(stage) {
            return None;
        }
        let mut event = self.event.lock();
        event.stage = stage;
        event.stage_time = match stage {
            Stage::RequestReceived => event.request_received,
            Stage::ResponseStarted | Stage::ResponseComplete | Stage::Panic => Timestamp::now(),
        };
        if stage == Stage::ResponseComplete {
            let slow = self.latencies.lock().annotations(event.request_received, event.stage_time);
            event.annotations.extend(slow.into_iter().map(|(key, value)| (key.into(), value.into())));
        }
        let described = self.described.lock().get_or_insert_with(|| describe(&event).into()).clone();
        Some(self.backends.encode(&event, &described))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AuditMetrics, StageSet};

    #[test]
    fn events_after_an_impersonation_have_its_user() {
        let backends = Arc::new(Backends::new(Vec::new(), AuditMetrics::new().unwrap()));
        let config = RequestAuditConfig {
            level: Level::Metadata,
            omit_stages: StageSet::default(),
            omit_managed_fields: false,
        };
        let user = |name: &str| Arc::new(UserInfo { name: name.to_owned(), ..UserInfo::default() });
        let metadata = RequestMetadata {
            audit_id: "1".to_owned(),
            request_uri: "/api".to_owned(),
            verb: "get".to_owned(),
            user: Some(user("jane")),
            source_ips: Vec::new(),
            user_agent: String::new(),
            object_ref: None,
            received: Timestamp::UNIX_EPOCH,
        };
        let context = AuditContext::new(backends, config, metadata);
        let request_at = |stage| {
            let json = String::from_utf8(context.encode(stage).unwrap().json.to_vec()).unwrap();
            let (_, request) = json.split_once("\"requestURI\":").unwrap();
            request.split(",\"requestReceivedTimestamp\"").next().unwrap().to_owned()
        };
        let before = r#""/api","verb":"get","user":{"username":"jane"}"#;
        assert_eq!(request_at(Stage::RequestReceived), before);
        context.set_impersonated_user(user("bob"), "");
        let after = format!(r#"{before},"impersonatedUser":{{"username":"bob"}}"#);
        assert_eq!(request_at(Stage::ResponseStarted), after);
        assert_eq!(request_at(Stage::ResponseComplete), after);
    }
}
