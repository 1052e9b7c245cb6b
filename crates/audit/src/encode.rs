//! Encodes events: as JSON, or as one line of the legacy format.

mod document;

use crate::{Event, Level};
use bytes::{BufMut, Bytes, BytesMut};
use document::{write_reference, write_request, write_status};
use jiff::Timestamp;
use pintle_go_forms::quote;
use pintle_machinery::codec::{
    self,
    json::{ObjectWriter, write_members, write_object, write_string},
};
use std::borrow::Cow;

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
    /// Encodes an event, whose request has been [described](describe): also in the legacy format if `has_legacy` is
    /// set, and also truncated if it exceeds `max_event_size` bytes.
    pub(crate) fn new(
        event: &Event,
        request: &[u8],
        has_legacy: bool,
        max_event_size: Option<usize>,
    ) -> Encoded {
        let json: Bytes = encode(event, request, Objects::With).into();
        let is_too_long = max_event_size.is_some_and(|max| json.len() > max) && event.level >= Level::Request;
        let truncated = is_too_long.then(|| encode(event, request, Objects::Truncated).into());
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

/// The members of an event's JSON that tell what was requested by whom, for all events of the request.
pub(crate) fn describe(event: &Event) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write_members(&mut out, |out| write_request(out, event));
    out
}

/// Encodes an event. The objects are JSON already and are copied between the fields before and after them.
fn encode(event: &Event, request: &[u8], objects: Objects) -> Vec<u8> {
    let of_event: [(&str, &Option<Bytes>); 2] =
        [("requestObject", &event.request_object), ("responseObject", &event.response_object)];
    let of_event = match objects {
        Objects::With => &of_event[..],
        Objects::Truncated => &[],
    };
    let size: usize = of_event.iter().map(|(_, json)| json.as_ref().map_or(0, Bytes::len)).sum();
    let mut out = Vec::with_capacity(size + request.len() + 768);
    write_object(&mut out, |out| {
        out.text("kind", "Event");
        out.text("apiVersion", "audit.k8s.io/v1");
        out.text("level", event.level.as_str());
        out.text("auditID", &event.audit_id);
        out.text("stage", event.stage.as_str());
        out.members(request);
        if let Some(reference) = &event.object_ref {
            out.object("objectRef", |out| write_reference(out, reference));
        }
        if let Some(status) = &event.response_status {
            out.object("responseStatus", |out| write_status(out, status));
        }
        for (name, json) in of_event {
            if let Some(json) = json {
                out.json(name, json);
            }
        }
        out.text("requestReceivedTimestamp", &micro_time(event.request_received));
        out.text("stageTimestamp", &micro_time(event.stage_time));
        if !event.annotations.is_empty() || objects == Objects::Truncated {
            out.object("annotations", |out| write_annotations(out, event, objects));
        }
    });
    out.push(b'\n');
    out
}

/// Writes the annotations, sorted by key.
fn write_annotations(out: &mut ObjectWriter<'_>, event: &Event, objects: Objects) {
    let mut annotations = Cow::Borrowed(&event.annotations);
    if objects == Objects::Truncated {
        annotations.to_mut().insert("audit.k8s.io/truncated".into(), "true".into());
    }
    for (key, value) in &*annotations {
        out.entry(key, |out| write_string(out, value));
    }
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
