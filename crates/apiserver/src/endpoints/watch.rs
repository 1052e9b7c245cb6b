//! Serves watches: streams shared frames until the client or the timeout ends the watch.
//!
//! This module reads the request and opens the watch of the cache; [`stream`] makes frames of its items, and [`event`] the
//! bytes of an event.

mod event;
mod stream;

use super::{request_scope::RequestScope, selection::Selection};
use crate::{
    base::{
        body::Body,
        deadline::SendDeadline,
        negotiation::{Accepted, MediaType, Offers, only},
        response::{Response, SharedFrames, with_content_type},
        websocket,
    },
    errors,
    registry::Store,
};
use pintle_cacher::{CacherError, Freshness, Predicate, WatchOptions, WatchScope, WatchStart};
use pintle_machinery::{Status, options::ListOptions};
use pintle_storage::Revision;
use rand::Rng;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use stream::WatchStream;
use tokio::time::{Instant, timeout_at};

/// The maximum timeout of a watch: timers do not reach as far as a client's `timeoutSeconds`.
const MAX_WATCH_TIME: Duration = Duration::from_secs(365 * 24 * 3600);

/// How long a watch may take to send its end after its timeout.
const END_TIME: Duration = Duration::from_secs(10);

/// The cache waits three seconds for the revision of the initial events, also in a watch that is to end sooner.
const REVISION_TIME: Duration = Duration::from_secs(4);

/// The media type of a watch in CBOR, whose events are data items in a row
/// (<https://www.rfc-editor.org/rfc/rfc8742.html>).
const CBOR_SEQUENCE: &str = "application/cbor-seq";

/// Serves a watch of a collection (or of one object, as a collection of one).
///
/// # Errors
/// The `Status` for the client. A failure after the stream has started is sent as an ERROR event.
pub(super) async fn watch(scope: &RequestScope<'_>) -> Result<Response, Status> {
    let (mut accepted, mut include_object) = scope.form(Offers::Object)?;
    let has_list_form = accepted.refusal.is_some();
    if has_list_form {
        (accepted, include_object) = scope.form(Offers::List)?;
    }
    let options = scope.list_options()?;
    let store = scope.store()?.clone();
    let selection = Arc::new(Selection::parse_with_shards(scope, &options)?);
    let time = time(scope, &options);
    let deadline = Instant::now() + time;
    let watch_options = watch_options(scope, &options, &store, &selection, deadline)?;
    if let Some(refusal) = accepted.refusal {
        return Err(*refusal);
    }
    // Clients split events at newlines, so that `pretty` does not apply.
    let accepted = Accepted { pretty: false, ..accepted };
    let content_type = content_type(scope, accepted.media_type)?;
    let mut stream = WatchStream::new(scope, accepted, include_object, deadline);
    stream.has_list_form = has_list_form;
    stream.selection = selection.waits().then(|| selection.clone());
    if options.send_initial_events == Some(true) {
        stream.measure_initial_events(scope);
    }
    let limit = match watch_options.start {
        WatchStart::InitialEvents(Freshness::NotOlderThan(_)) => deadline.max(Instant::now() + REVISION_TIME),
        _ => deadline,
    };
    match timeout_at(limit, store.cacher().watch(watch_options)).await {
        // The store does not answer.
        Err(_) => stream.failed = Some(internal_error("context deadline exceeded".to_owned())),
        Ok(Ok(watcher)) => {
            if selection.shards().is_some() {
                stream.count_shards(store.cacher().metrics());
            }
            stream.watcher = (!time.is_zero()).then_some(watcher);
        }
        Ok(Err(CacherError::Stopped)) => {
            return Err(Status::service_unavailable("apiserver is shutting down"));
        }
        Ok(Err(CacherError::Expired { .. })) if !store.cacher().is_read_cached() => {
            let message = "The resourceVersion for the provided watch is too old.";
            stream.failed = Some(Status::expired(message));
        }
        Ok(Err(CacherError::Storage(error))) => stream.failed = Some(internal_error(error.to_string())),
        Ok(Err(error)) => stream.failed = Some(errors::cacher(error)),
    }
    stream.begin();
    let is_web_socket = stream.is_web_socket();
    let body = Body::stream(futures_util::stream::unfold(stream, WatchStream::next));
    let mut response = match is_web_socket {
        false => with_content_type(200, content_type, body),
        true => match websocket::accept(scope.headers, body) {
            Ok(response) => response,
            Err(refusal) => return Ok(*refusal),
        },
    };
    response.extensions_mut().insert(SharedFrames);
    // A client that still reads gets the end of the stream.
    response.extensions_mut().insert(SendDeadline(deadline.max(Instant::now()) + END_TIME));
    Ok(response)
}

/// How long the watch lasts, at most.
fn time(scope: &RequestScope<'_>, options: &ListOptions) -> Duration {
    let time = match options.timeout_seconds.filter(|seconds| *seconds != 0) {
        // A negative time is over at once.
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
        // Up to twice as long, so that not all clients reconnect at once.
        None => scope.server.min_request_timeout.mul_f64(rand::rng().random_range(1.0..2.0)),
    };
    time.min(MAX_WATCH_TIME)
}

/// The options of the cache's watch.
fn watch_options(
    scope: &RequestScope<'_>,
    options: &ListOptions,
    store: &Store,
    selection: &Arc<Selection>,
    deadline: Instant,
) -> Result<WatchOptions, Status> {
    let watch_scope = match selection.namespace_within(&scope.info.namespace, store.resource()) {
        namespace if namespace.is_empty() || !store.resource().is_namespaced() => WatchScope::All,
        namespace => WatchScope::Namespace(namespace.into()),
    };
    Ok(WatchOptions {
        start: start(options)?,
        scope: watch_scope,
        trigger: selection.trigger(),
        predicate: (!selection.is_everything()).then(|| predicate(selection, store)),
        has_slow_predicate: selection.is_long(),
        bookmarks: options.allow_watch_bookmarks,
        deadline: Some(deadline),
    })
}

/// The media type of the stream.
///
/// # Errors
/// The refusal of YAML, which has no streams.
fn content_type(scope: &RequestScope<'_>, media_type: MediaType) -> Result<&'static str, Status> {
    Ok(match media_type {
        MediaType::Json => "application/json",
        MediaType::Yaml => {
            let mut streams =
                vec!["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
            streams.extend(scope.server.media_types.has_cbor().then_some(CBOR_SEQUENCE));
            return Err(only(&streams));
        }
        MediaType::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        MediaType::Cbor => CBOR_SEQUENCE,
    })
}

/// The failure of a store, as the reference's cache tells it to a watch.
fn internal_error(message: String) -> Status {
    Status { message, details: None, ..Status::internal_error("") }
}

/// The test of an object by a watch.
fn predicate(selection: &Arc<Selection>, store: &Store) -> Predicate {
    let selection = selection.clone();
    let metrics = store.cacher().metrics().clone();
    Arc::new(move |object| {
        if selection.shards().is_some_and(|shards| !shards.matches(object)) {
            metrics.shard_filtered_events.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        selection.may_match_terms(object)
    })
}

/// Where the cache begins the watch.
fn start(options: &ListOptions) -> Result<WatchStart, Status> {
    let version = options.watch_revision()?.map(Revision);
    let freshness = match version {
        None => Freshness::Consistent,
        Some(Revision(0)) => Freshness::Any,
        Some(revision) => Freshness::NotOlderThan(revision),
    };
    Ok(match (options.send_initial_events, version) {
        (Some(true), _) => WatchStart::InitialEvents(freshness),
        (Some(false), None | Some(Revision(0))) => WatchStart::Now(freshness),
        (None, None | Some(Revision(0))) => WatchStart::State,
        (_, Some(revision)) => WatchStart::After(revision),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BALLOONS, CONFIG_MAPS, INFLATED, INFLATED_BALLOONS, TestServer};
    use crate::base::body::Body;
    use futures_util::StreamExt as _;
    use pintle_cacher::ByteBudget;
    use pintle_machinery::json;

    #[tokio::test]
    async fn a_watch_begins_with_the_state_or_after_a_revision() {
        let server = TestServer::start().await;
        let first = server.create_config_map("a", "x").await;
        let second = server.create_config_map("b", "x").await;
        let check = async |query: &str, objects: &[&pintle_machinery::Value]| {
            let frame = server.first_frame(&format!("{CONFIG_MAPS}?watch=true&{query}")).await;
            let events: Vec<pintle_machinery::Value> =
                serde_json::Deserializer::from_slice(&frame).into_iter().map(Result::unwrap).collect();
            let expected: Vec<_> =
                objects.iter().map(|object| json!({"type": "ADDED", "object": object})).collect();
            assert_eq!(events, expected, "{query}");
        };
        check("", &[&first, &second]).await;
        let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
        check(&format!("resourceVersion={revision}"), &[&second]).await;
        check("fieldSelector=metadata.name%3Da", &[&first]).await;
    }

    #[tokio::test]
    async fn a_watch_sends_the_changes_of_its_selection() {
        let server = TestServer::start().await;
        let first = server.create_config_map("a", "x").await;
        let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
        let uri = format!("{CONFIG_MAPS}?watch=true&labelSelector=app%3Dx&resourceVersion={revision}");
        let mut frames = server.frames(&uri).await;
        let mut next = async |expected: (&str, &str)| {
            let frame = frames.next().await.unwrap();
            let event: pintle_machinery::Value = serde_json::from_slice(&frame).unwrap();
            let name = event["object"]["metadata"]["name"].as_str().unwrap();
            assert_eq!((event["type"].as_str().unwrap(), name), expected);
        };
        let merge = async |name: &str, patch: pintle_machinery::Value| {
            let uri = format!("{CONFIG_MAPS}/{name}");
            let (code, _) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
            assert_eq!(code, 200);
        };
        merge("a", json!({"data": {"a": "2"}})).await;
        next(("MODIFIED", "a")).await;
        // An object that leaves the selection is deleted for the watcher, and added when it comes back.
        merge("a", json!({"metadata": {"labels": {"app": "y"}}})).await;
        next(("DELETED", "a")).await;
        server.create_config_map("b", "y").await;
        merge("a", json!({"metadata": {"labels": {"app": "x"}}})).await;
        next(("ADDED", "a")).await;
        assert_eq!(server.send("DELETE", &format!("{CONFIG_MAPS}/a"), json!(null)).await.0, 200);
        next(("DELETED", "a")).await;
    }

    /// A watch converts the objects of the changes that it reads from the event log for itself: their small originals
    /// say nothing of its memory.
    #[tokio::test]
    async fn slow_watches_in_another_version_do_not_keep_all_that_is_converted() {
        const BUDGET: usize = 32 << 20;
        const CHANGES: usize = 250;
        const WATCHES: usize = 12;
        let budget = ByteBudget::new(BUDGET, 0);
        let server = TestServer::start_with(|storage| storage.held_states(budget.clone())).await;
        let body = json!({"kind": "Balloon", "apiVersion": "example.com/v1", "metadata": {"name": "a"}});
        let (code, first) = server.send("POST", BALLOONS, body).await;
        assert_eq!(code, 201, "{first}");
        let revision = first["metadata"]["resourceVersion"].as_str().unwrap();
        for number in 0..CHANGES {
            let patch = json!({"spec": {"number": number}});
            let uri = format!("{BALLOONS}/a");
            let (code, object) = server.send_as("PATCH", &uri, "application/merge-patch+json", patch).await;
            assert_eq!(code, 200, "{object}");
        }
        let uri = format!("{INFLATED_BALLOONS}?watch=true&resourceVersion={revision}");
        let mut watches = Vec::new();
        for _ in 0..WATCHES {
            let mut frames = server.frames(&uri).await;
            let first = frames.next().await.unwrap();
            assert!(first.len() > INFLATED && !first.windows(5).any(|part| part == b"ERROR"));
            watches.push((first, frames));
            assert!(budget.used() <= BUDGET);
        }
        assert!(budget.used() > BUDGET / 2);
        let mut whole = 0;
        for (first, mut frames) in watches {
            let mut events = first.iter().filter(|byte| **byte == b'\n').count();
            while events < CHANGES
                && let Some(frame) = frames.next().await
            {
                events += frame.iter().filter(|byte| **byte == b'\n').count();
            }
            whole += usize::from(events == CHANGES);
        }
        assert!((1..=BUDGET / (CHANGES * INFLATED)).contains(&whole), "{whole}");
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn watches_of_metadata_share_their_frames() {
        let server = TestServer::start().await;
        let uri = format!("{CONFIG_MAPS}?watch=true");
        let accept = [(http::header::ACCEPT, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")];
        let watch = async || match server.respond_with("GET", &uri, &accept, "").await.into_body() {
            Body::Stream(frames) => frames,
            _ => panic!("not a stream"),
        };
        let (mut first, mut second) = (watch().await, watch().await);
        // Both have read the state when the object is created.
        let (frame, other, created) =
            tokio::join!(first.next(), second.next(), server.create_config_map("a", "x"));
        let (frame, other) = (frame.unwrap(), other.unwrap());
        assert_eq!(frame.as_ptr(), other.as_ptr());
        let event: pintle_machinery::Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(event["object"]["metadata"], created["metadata"]);
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(event["object"]["data"], json!(null));
    }

    #[tokio::test]
    async fn watches_of_tables_share_the_rows_of_a_second() {
        let server = TestServer::start().await;
        let first = server.create_config_map("a", "x").await;
        let watch = async |part: &str| {
            let uri = format!("{CONFIG_MAPS}?watch=true&includeObject={part}");
            let accept = [(http::header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")];
            match server.respond_with("GET", &uri, &accept, "").await.into_body() {
                Body::Stream(frames) => frames,
                _ => panic!("not a stream"),
            }
        };
        let (mut first_watch, mut second_watch) = (watch("Metadata").await, watch("Metadata").await);
        let mut whole = watch("Object").await;
        for frames in [&mut first_watch, &mut second_watch, &mut whole] {
            let columns = frames.next().await.unwrap();
            let event: pintle_machinery::Value = serde_json::from_slice(&columns).unwrap();
            assert_eq!(event["object"]["columnDefinitions"][0]["name"], json!("Name"));
            assert_eq!(event["object"]["rows"][0]["cells"][0], first["metadata"]["name"]);
        }
        // Events of the end of a second may be encoded in the next one.
        let mut shared = false;
        for name in ["b", "c", "d"] {
            let (frame, other, whole, created) = tokio::join!(
                first_watch.next(),
                second_watch.next(),
                whole.next(),
                server.create_config_map(name, "x")
            );
            let (frame, other, whole) = (frame.unwrap(), other.unwrap(), whole.unwrap());
            shared |= frame.as_ptr() == other.as_ptr();
            for (frame, kind, data) in [
                (&frame, "PartialObjectMetadata", &json!(null)),
                (&other, "PartialObjectMetadata", &json!(null)),
                (&whole, "ConfigMap", &created["data"]),
            ] {
                let event: pintle_machinery::Value = serde_json::from_slice(frame).unwrap();
                let row = &event["object"]["rows"][0];
                assert_eq!(event["object"]["columnDefinitions"], json!(null));
                assert_eq!(row["cells"][0], created["metadata"]["name"]);
                assert_eq!(row["object"]["metadata"], created["metadata"]);
                assert_eq!((&row["object"]["kind"], &row["object"]["data"]), (&json!(kind), data));
            }
        }
        assert!(shared);
    }

    #[tokio::test]
    async fn watches_end_at_once_after_a_negative_time_and_at_an_event_in_a_form_of_lists() {
        let server = TestServer::start().await;
        server.create_config_map("a", "x").await;
        for (query, accept) in [
            ("&timeoutSeconds=-1", "application/json"),
            ("", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        ] {
            let uri = format!("{CONFIG_MAPS}?watch=true{query}");
            let accept = [(http::header::ACCEPT, accept)];
            let response = server.respond_with("GET", &uri, &accept, "").await;
            assert_eq!(response.status(), 200);
            match response.into_body() {
                Body::Stream(mut frames) => assert!(frames.next().await.is_none(), "{query}"),
                _ => panic!("not a stream"),
            }
        }
    }

    #[tokio::test]
    async fn a_revision_that_is_no_number_is_rejected() {
        let server = TestServer::start().await;
        let (code, status) =
            server.send("GET", &format!("{CONFIG_MAPS}?watch=true&resourceVersion=x"), json!(null)).await;
        let message =
            "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax";
        assert_eq!((code, &status["message"]), (500, &json!(message)));
    }
}
