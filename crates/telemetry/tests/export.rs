//! Exports spans to a collector in this process.

#![expect(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use pintle_telemetry::{Exporter, Sampler, SpanLayer, TARGET, current, event, inject};
use pintle_trace_collector::{Span, collect, collect_on};
use std::{collections::BTreeMap, time::Duration};
use tokio::{net::UnixListener, time::timeout};
use tracing::Instrument;
use tracing_subscriber::{Layer, layer::SubscriberExt};

const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a body with a layer, and exports its spans to an endpoint.
async fn export<F: Future<Output = ()>>(endpoint: &str, sampler: Sampler, body: F) {
    let (layer, receiver) = SpanLayer::new(sampler);
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(SpanLayer::filter()));
    let guard = tracing::subscriber::set_default(subscriber);
    body.await;
    drop(guard);
    let resource = [("service.name", "apiserver".to_owned())];
    Exporter::new(receiver, endpoint, &resource).unwrap().run(std::future::pending()).await;
}

#[tokio::test]
async fn spans_arrive_at_a_collector_with_their_parents() {
    let (endpoint, mut exports) = collect().await.unwrap();
    let remote = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    export(&endpoint, Sampler::per_million(0), async {
        let root = tracing::info_span!(
            target: TARGET, "root", otel.name = "GET /x", otel.kind = "server", otel.parent = remote, code = tracing::field::Empty
        );
        async {
            let mut headers = http::HeaderMap::new();
            inject(&mut headers);
            let context = current().unwrap();
            assert_eq!(headers["traceparent"].to_str().unwrap(), context.to_string());
            assert!(headers["traceparent"].to_str().unwrap().starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
            event!("reached", "len" = 5_u64);
            tracing::info_span!(target: TARGET, "child", otel.error = "broken", otel.link = remote)
                .in_scope(|| tracing::info_span!("of another target").in_scope(|| {}));
        }
        .instrument(root.clone())
        .await;
        root.record("code", 200);
    })
    .await;
    let export = timeout(PATIENCE, exports.recv()).await.unwrap().unwrap();
    let resource = &export.resources[0];
    assert_eq!(resource.resource.as_ref().unwrap().attributes[0].value.as_ref().unwrap().text, "apiserver");
    let spans: BTreeMap<&str, &Span> =
        resource.scopes[0].spans.iter().map(|span| (span.name.as_str(), span)).collect();
    assert_eq!(spans.keys().copied().collect::<Vec<_>>(), ["GET /x", "child"]);
    let (root, child) = (spans["GET /x"], spans["child"]);
    assert_eq!(root.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
    assert_eq!(root.parent, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!((root.kind, child.kind), (2, 1));
    let (reached, size) = (&root.events[0], &root.events[0].attributes[0]);
    assert_eq!((reached.name.as_str(), size.key.as_str()), ("reached", "len"));
    assert_eq!(size.value.as_ref().unwrap().integer, 5);
    assert_eq!((&child.trace, &child.parent), (&root.trace, &root.id));
    assert_eq!(
        (root.attributes[0].key.as_str(), root.attributes[0].value.as_ref().unwrap().integer),
        ("code", 200)
    );
    assert_eq!(
        child.status.as_ref().map(|status| (status.message.as_str(), status.code)),
        Some(("broken", 2))
    );
    assert_eq!(child.links[0].trace, root.trace);
    assert!(root.start <= child.start && child.end <= root.end);
}

#[tokio::test]
async fn what_is_not_sampled_has_no_spans() {
    let directory = std::env::temp_dir().join(format!("pintle-telemetry-{}", std::process::id()));
    let _ = std::fs::remove_file(&directory);
    let mut exports = collect_on(UnixListener::bind(&directory).unwrap());
    let endpoint = format!("unix://{}", directory.display());
    let body = async {
        let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let span = tracing::info_span!(target: TARGET, "not", otel.parent = unsampled);
        span.in_scope(|| {
            assert_eq!(current(), None);
            tracing::info_span!(target: TARGET, "nor this one").in_scope(|| {});
        });
        tracing::info_span!(target: TARGET, "sampled by its rate").in_scope(|| {});
    };
    export(&endpoint, Sampler::per_million(1_000_000), body).await;
    let export = timeout(PATIENCE, exports.recv()).await.unwrap().unwrap();
    let names: Vec<_> = export.resources[0].scopes[0].spans.iter().map(|span| span.name.clone()).collect();
    assert_eq!(names, ["sampled by its rate"]);
    let _ = std::fs::remove_file(&directory);
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_nobody_waits_for_a_collector() {
    // Nobody listens there.
    export("127.0.0.1:1", Sampler::per_million(1_000_000), async {
        for _ in 0..5000 {
            tracing::info_span!(target: TARGET, "span").in_scope(|| {});
        }
    })
    .await;
    assert!(Exporter::new(SpanLayer::new(Sampler::per_million(0)).1, "a b", &[]).is_err());
}
