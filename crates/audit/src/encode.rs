//! Encodes events: as JSON, or as one line of the legacy format.

use crate::{Event, Level, ObjectReference, ResponseStatus};
use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use pintle_go_forms::quote;
use pintle_machinery::{StatusDetails, UserInfo, codec, codec::json::write_string};

/// The start of an event's JSON, which an item of an event list does not have.
const TYPE_META: &[u8] = br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#;

/// An event of a stage, in the formats that the backends need.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    /// The JSON and a line feed.
    pub(crate) json: Bytes,
    /// The same without the request and response objects, with the annotation that it was truncated; only when it has
    /// objects and exceeds the size limit of a backend.
    pub(crate) truncated: Option<Bytes>,
    /// The legacy line; empty unless a backend uses that format.
    pub(crate) legacy: Bytes,
}

impl Encoded {
    /// Encodes an event: also in the legacy format if `has_legacy` is set, and also truncated if it exceeds
    /// `max_event_size` bytes.
    pub(crate) fn new(event: &Event, has_legacy: bool, max_event_size: Option<usize>) -> Encoded {
        let json: Bytes = encode(event, Objects::With).into();
        let is_too_long = max_event_size.is_some_and(|max| json.len() > max) && event.level >= Level::Request;
        let truncated = is_too_long.then(|| encode(event, Objects::Truncated).into());
        let legacy = if has_legacy { legacy_line(event).into() } else { Bytes::new() };
        Encoded { json, truncated, legacy }
    }
}

/// Encodes a list of events, each in the JSON format of [`Encoded`].
pub(crate) fn event_list(events: &[Bytes]) -> Bytes {
    let size: usize = events.iter().map(Bytes::len).sum();
    let mut out = BytesMut::with_capacity(size + 80);
    out.put_slice(br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#);
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        out.put_u8(b'{');
        let fields = event.strip_prefix(TYPE_META).unwrap_or(event);
        out.put_slice(fields.strip_suffix(b"\n").unwrap_or(fields));
    }
    out.put_slice(b"]}\n");
    out.freeze()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Objects {
    With,
    Truncated,
}

fn encode(event: &Event, objects: Objects) -> Vec<u8> {
    let bytes = |object: &Option<Bytes>| object.as_ref().map_or(0, Bytes::len);
    let size = match objects {
        Objects::With => bytes(&event.request_object) + bytes(&event.response_object),
        Objects::Truncated => 0,
    };
    let mut out = Vec::with_capacity(size + 1024);
    out.extend_from_slice(TYPE_META);
    let mut fields = Fields { out: &mut out, is_first: true };
    fields.text("level", event.level.as_str());
    fields.text("auditID", &event.audit_id);
    fields.text("stage", event.stage.as_str());
    fields.text("requestURI", &event.request_uri);
    fields.text("verb", &event.verb);
    write_user(fields.key("user"), event.user.as_deref());
    if let Some(user) = &event.impersonated_user {
        write_user(fields.key("impersonatedUser"), Some(user));
    }
    if !event.impersonation_constraint.is_empty() {
        let out = fields.key("authenticationMetadata");
        object(out, |fields| fields.text("impersonationConstraint", &event.impersonation_constraint));
    }
    if !event.source_ips.is_empty() {
        let out = fields.key("sourceIPs");
        list(out, &event.source_ips, |out, ip| write_string(out, &ip.to_canonical().to_string()));
    }
    fields.text_unless_empty("userAgent", &event.user_agent);
    if let Some(reference) = &event.object_ref {
        write_reference(fields.key("objectRef"), reference);
    }
    if let Some(status) = &event.response_status {
        write_status(fields.key("responseStatus"), status);
    }
    if objects == Objects::With {
        for (name, json) in
            [("requestObject", &event.request_object), ("responseObject", &event.response_object)]
        {
            if let Some(json) = json {
                fields.key(name).extend_from_slice(json);
            }
        }
    }
    fields.text("requestReceivedTimestamp", &micro_time(event.request_received));
    fields.text("stageTimestamp", &micro_time(event.stage_time));
    const TRUNCATED: (&str, &str) = ("audit.k8s.io/truncated", "true");
    if !event.annotations.is_empty() || objects == Objects::Truncated {
        let own = event.annotations.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let added = (objects == Objects::Truncated).then_some(TRUNCATED);
        let mut all: Vec<(&str, &str)> = own.chain(added).collect();
        if objects == Objects::Truncated {
            all.sort_by_key(|(key, _)| *key);
        }
        object(fields.key("annotations"), |fields| {
            for (key, value) in all {
                fields.text(key, value);
            }
        });
    }
    out.extend_from_slice(b"}\n");
    out
}

/// The members of an object that is being written.
struct Fields<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Fields<'_> {
    /// Begins a member; its value has to follow.
    fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        write_string(self.out, name);
        self.out.push(b':');
        self.out
    }

    fn text(&mut self, name: &str, value: &str) {
        write_string(self.key(name), value);
    }

    fn text_unless_empty(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.text(name, value);
        }
    }

    fn number_unless_zero(&mut self, name: &str, value: u32) {
        if value != 0 {
            let mut digits = itoa::Buffer::new();
            self.key(name).extend_from_slice(digits.format(value).as_bytes());
        }
    }
}

fn object(out: &mut Vec<u8>, write: impl FnOnce(&mut Fields<'_>)) {
    out.push(b'{');
    write(&mut Fields { out, is_first: true });
    out.push(b'}');
}

fn list<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn texts(out: &mut Vec<u8>, items: &[String]) {
    list(out, items, |out, item| write_string(out, item));
}

fn write_user(out: &mut Vec<u8>, user: Option<&UserInfo>) {
    object(out, |fields| {
        let Some(user) = user else { return };
        fields.text_unless_empty("username", &user.name);
        fields.text_unless_empty("uid", &user.uid);
        if !user.groups.is_empty() {
            texts(fields.key("groups"), &user.groups);
        }
        if !user.extra.is_empty() {
            object(fields.key("extra"), |fields| {
                for (key, values) in &user.extra {
                    texts(fields.key(key), values);
                }
            });
        }
    });
}

fn write_reference(out: &mut Vec<u8>, reference: &ObjectReference) {
    object(out, |fields| {
        fields.text_unless_empty("resource", &reference.resource);
        fields.text_unless_empty("namespace", &reference.namespace);
        fields.text_unless_empty("name", &reference.name);
        fields.text_unless_empty("uid", &reference.uid);
        fields.text_unless_empty("apiGroup", &reference.api_group);
        fields.text_unless_empty("apiVersion", &reference.api_version);
        fields.text_unless_empty("resourceVersion", &reference.resource_version);
        fields.text_unless_empty("subresource", &reference.subresource);
    });
}

fn write_status(out: &mut Vec<u8>, status: &ResponseStatus) {
    object(out, |fields| {
        object(fields.key("metadata"), |_| {});
        fields.text_unless_empty("status", status.status);
        fields.text_unless_empty("message", &status.message);
        fields.text_unless_empty("reason", status.reason);
        if let Some(details) = &status.details {
            write_details(fields.key("details"), details);
        }
        fields.number_unless_zero("code", status.code.into());
    });
}

fn write_details(out: &mut Vec<u8>, details: &StatusDetails) {
    object(out, |fields| {
        fields.text_unless_empty("name", &details.name);
        fields.text_unless_empty("group", &details.group);
        fields.text_unless_empty("kind", &details.kind);
        fields.text_unless_empty("uid", &details.uid);
        if !details.causes.is_empty() {
            list(fields.key("causes"), &details.causes, |out, cause| {
                object(out, |fields| {
                    fields.text_unless_empty("reason", &cause.reason);
                    fields.text_unless_empty("message", &cause.message);
                    fields.text_unless_empty("field", &cause.field);
                });
            });
        }
        fields.number_unless_zero("retryAfterSeconds", details.retry_after_seconds);
    });
}

fn micro_time(time: Timestamp) -> String {
    time_of(time).to_micros()
}

fn time_of(time: Timestamp) -> codec::Timestamp {
    let nanos = time.as_nanosecond();
    let (seconds, nanos) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    codec::Timestamp { seconds: seconds as i64, nanos: nanos as u32 }
}

/// The line of the legacy format, with its line feed; it has less than the `Metadata` level.
fn legacy_line(event: &Event) -> String {
    let joined = |items: &[String]| items.iter().map(|item| quote(item)).collect::<Vec<_>>().join(",");
    let name = event.user.as_ref().map(|user| user.name.as_str()).unwrap_or_default();
    let groups = event.user.as_ref().filter(|user| !user.name.is_empty() && !user.groups.is_empty());
    let impersonated = event.impersonated_user.as_ref();
    let namespace = event.object_ref.as_ref().map(|reference| reference.namespace.as_str());
    let response = match &event.response_status {
        Some(status) => status.code.to_string(),
        None => "<deferred>".to_owned(),
    };
    format!(
        "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} uri={} \
         response=\"{response}\"\n",
        nano_time(event.request_received),
        quote(&event.audit_id),
        quote(event.stage.as_str()),
        quote(&event.source_ips.first().map_or("<unknown>".to_owned(), |ip| ip.to_canonical().to_string())),
        quote(&event.verb),
        quote(if name.is_empty() { "<none>" } else { name }),
        quote(&groups.map_or("<none>".to_owned(), |user| joined(&user.groups))),
        quote(impersonated.map_or("<self>", |user| &user.name)),
        quote(
            &impersonated
                .filter(|user| !user.groups.is_empty())
                .map_or("<lookup>".to_owned(), |user| joined(&user.groups))
        ),
        quote(&event.user_agent),
        quote(namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("<none>")),
        quote(&event.request_uri),
    )
}

/// Go's `RFC3339Nano`: a fraction of a second without trailing zeros.
fn nano_time(time: Timestamp) -> String {
    let time = time_of(time);
    let seconds = time.to_seconds();
    let fraction = format!("{:09}", time.nanos);
    match fraction.trim_end_matches('0') {
        "" => seconds,
        fraction => format!("{}.{fraction}Z", seconds.trim_end_matches('Z')),
    }
}

#[cfg(test)]
mod tests;
