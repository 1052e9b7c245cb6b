//! What is noted of one request on its way.

use crate::{
    Auditor, Event, Level, ObjectReference, RequestAuditConfig, ResponseStatus, Stage,
    encode::Encoded,
    json::{checked, compact, without_managed_fields},
};
use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_machinery::{Status, UserInfo, Value, ValueExt};
use std::{borrow::Cow, collections::BTreeMap, net::IpAddr, sync::Arc};
use tokio::task::JoinHandle;

/// What is known of a request before anybody serves it.
#[derive(Debug, Clone)]
pub struct RequestMetadata {
    /// Tells the request from all others.
    pub audit_id: String,
    /// Path and query, as the client sent them.
    pub request_uri: String,
    /// The verb, or the method in lower case.
    pub verb: String,
    /// Who asks; `None` when authentication failed.
    pub user: Option<Arc<UserInfo>>,
    /// Where the request came from.
    pub source_ips: Vec<IpAddr>,
    /// What the client says that it is.
    pub user_agent: String,
    /// What the request is about, if it is for a resource.
    pub object_ref: Option<ObjectReference>,
    /// When the request came in.
    pub received: Timestamp,
}

/// The longest user agent that is told whole.
const MAX_USER_AGENT: usize = 1024;

/// The event of a request while that is under way. Filters and handlers note in it what they know.
pub struct AuditContext {
    auditor: Arc<Auditor>,
    config: RequestAuditConfig,
    event: Mutex<Event>,
}

impl AuditContext {
    pub(crate) fn new(
        auditor: Arc<Auditor>,
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
        AuditContext { auditor, config, event: Mutex::new(event) }
    }

    /// How much is told of the request. Nobody need make what is not told.
    pub fn level(&self) -> Level {
        self.config.level
    }

    /// Notes something under a key that names who notes it. The first value of a key stays.
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

    /// Notes as whom the user acts, and the verb that let them with constrained impersonation, or "".
    pub fn set_impersonated_user(&self, user: Arc<UserInfo>, constraint: &str) {
        let mut event = self.event.lock();
        event.impersonated_user = Some(user);
        event.impersonation_constraint = constraint.to_owned();
    }

    /// Notes the object of the request: what its metadata say of it, and, at the level `Request`, the JSON that `encode`
    /// makes.
    pub fn set_request_object(&self, object: &Value, encode: impl FnOnce() -> Option<Vec<u8>>) {
        let json = if self.config.level >= Level::Request { encode() } else { None };
        let json = json.map(|json| self.fit(compact(&json)));
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

    /// Notes the JSON of a patch, at the level `Request`. What is no JSON is left out.
    pub fn set_request_patch(&self, json: &[u8]) {
        if self.config.level >= Level::Request {
            self.event.lock().request_object = checked(json);
        }
    }

    /// Notes the `Status` that is the answer.
    pub fn set_response_status(&self, status: &Status) {
        self.event.lock().response_status = Some(status.into());
    }

    /// Notes what came of the request where there is no `Status` to tell it.
    pub fn set_outcome(&self, status: ResponseStatus) {
        self.event.lock().response_status = Some(status);
    }

    /// Notes the HTTP status of the answer, which stands beside what a `Status` said.
    pub fn set_response_code(&self, code: u16) {
        self.event.lock().response_status.get_or_insert_default().code = code;
    }

    /// Whether anybody has noted what came of the request.
    pub fn has_response_status(&self) -> bool {
        self.event.lock().response_status.is_some()
    }

    /// Notes the JSON of the object that is the answer, at the level `RequestResponse`. What is no JSON is left out.
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

    /// Tells of the request at this stage, unless the policy leaves the stage out. False when a backend failed that must not.
    ///
    /// A future that is dropped may have told some backends and not others.
    pub async fn process(&self, stage: Stage) -> bool {
        match self.encode(stage) {
            Some(encoded) => self.auditor.send(&encoded).await,
            None => true,
        }
    }

    /// As [`AuditContext::process`], for a request that is served: all backends are told, also when the future is dropped.
    pub async fn process_to_end(self: &Arc<Self>, stage: Stage) {
        // What does not wait is not dropped on its way, and needs no task.
        if !self.auditor.waits() {
            self.process(stage).await;
        } else if let Some(telling) = self.process_detached(stage)
            && let Err(error) = telling.await
        {
            tracing::error!(%error, "telling of a request ended unexpectedly");
        }
    }

    /// As [`AuditContext::process`], for who cannot wait: the backends are told by a task of its own. To be called on the
    /// runtime.
    pub fn process_detached(self: &Arc<Self>, stage: Stage) -> Option<JoinHandle<bool>> {
        let encoded = self.encode(stage)?;
        let context = self.clone();
        Some(tokio::spawn(async move { context.auditor.send(&encoded).await }))
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
        Some(self.auditor.encode(&event))
    }
}
