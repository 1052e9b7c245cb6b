//! The spans of requests, as a collector gets them.

use crate::harness::{Identity, PATIENCE, Server, plain_user};
use pintle_telemetry::{Exporter, Sampler, SpanLayer};
use pintle_trace_collector::{Span, collect};
use tokio::time::timeout;
use tracing_subscriber::{Layer, layer::SubscriberExt};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}: {spans:#?}"))
}

fn text<'a>(span: &'a Span, key: &str) -> &'a str {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key).unwrap();
    &attribute.value.as_ref().unwrap().text
}

// One thread: the subscriber is that of the thread.
#[tokio::test]
async fn requests_have_spans_below_those_of_privileged_clients() {
    let (endpoint, mut exports) = collect().await.unwrap();
    let (layer, receiver) = SpanLayer::new(Sampler::per_million(0));
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(SpanLayer::filter()));
    let guard = tracing::subscriber::set_default(subscriber);
    let server = Server::start_with(|options| {
        plain_user(options);
        // The file is read by the binary.
        options.tracing.config_file = Some("traces.yaml".into());
    })
    .await;
    let traced = [("traceparent", PARENT), ("content-type", "application/json")];
    let body = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
    let created = server.exchange("POST", "/api/v1/namespaces/default/configmaps", &traced, body).await;
    assert_eq!(created.status, 201);
    // Without a parent, nothing is sampled at this rate; other users choose no parent.
    assert_eq!(server.send("GET /api/v1/nodes").await.status, 200);
    let nobody = server.client(Identity::Nobody).await;
    let jane = [("traceparent", PARENT), ("authorization", "Bearer plain")];
    assert_eq!(nobody.exchange("GET", "/api/v1/pods", &jane, "").await.status, 403);
    server.stop().await;
    drop(guard);
    Exporter::new(receiver, &endpoint, &[]).unwrap().run(std::future::pending()).await;
    let export = timeout(PATIENCE, exports.recv()).await.unwrap().unwrap();
    let spans = &export.resources[0].scopes[0].spans;
    let root = named(spans, "POST /api/v1/namespaces/{:namespace}/configmaps");
    assert_eq!(root.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
    assert_eq!(root.parent, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(text(root, "http.target"), "/api/v1/namespaces/default/configmaps");
    assert_eq!(text(root, "audit-id"), created.header("audit-id"));
    assert_eq!(text(root, "client.address"), "127.0.0.1");
    let verb = named(spans, "Create");
    for (key, value) in
        [("verb", "POST"), ("api-version", "v1"), ("namespace", "default"), ("client", "127.0.0.1")]
    {
        assert_eq!(text(verb, key), value);
    }
    let events: Vec<&str> = verb.events.iter().map(|event| event.name.as_str()).collect();
    let expected = [
        "limitedReadBody succeeded",
        "About to convert to expected version",
        "Conversion done",
        "About to store object in database",
        "Write to database call succeeded",
    ];
    assert_eq!(events, expected);
    for name in ["authorization", "constrainedimpersonation", "priorityandfairness", "Create"] {
        let span = named(spans, name);
        assert_eq!((&span.trace, &span.parent), (&root.trace, &root.id), "{name}");
        assert!(root.start <= span.start && span.end <= root.end, "{name}");
    }
    assert!(spans.iter().all(|span| span.trace == root.trace && !span.name.starts_with("GET")), "{spans:#?}");
}
