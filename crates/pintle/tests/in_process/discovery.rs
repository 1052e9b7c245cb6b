//! Tests discovery, and the endpoints beside the API.

use crate::harness::{Server, Transcript, assert_transcript};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test(flavor = "multi_thread")]
async fn legacy_documents() {
    let server = Server::start().await;
    server.until_ready().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            "GET /api",
            "GET /apis",
            "GET /api/v1",
            "GET /apis/apps",
            "GET /apis/apps/v1",
            "GET /apis/apps/v1/",
            "GET /apis/autoscaling",
            "GET /apis/autoscaling/v1\nAccept: application/yaml",
            "GET /apis/policy\nAccept: application/vnd.kubernetes.protobuf",
            "GET /apis/apps/v1\nAccept: text/html",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

/// The aggregator answers every method with the document of a group, except with that of its own.
#[tokio::test(flavor = "multi_thread")]
async fn methods_of_group_documents() {
    let server = Server::start().await;
    server.until_ready().await;
    for path in ["/apis/apps", "/apis/apps/", "/apis", "/apis/apiextensions.k8s.io"] {
        assert_eq!(server.send(&format!("POST {path}")).await.status, 200, "{path}");
    }
    for path in ["/apis/apiregistration.k8s.io", "/apis/apiregistration.k8s.io/", "/apis/apps/v1"] {
        assert_eq!(server.send(&format!("GET {path}")).await.status, 200, "{path}");
        assert_eq!(server.send(&format!("POST {path}")).await.status, 405, "{path}");
    }
    let refused = server.send("GET /apis/apiregistration.k8s.io\nAccept: text/html").await;
    assert!(refused.str_at("/message").starts_with("406: Not Acceptable"), "{}", refused.text());
    server.stop().await;
}

/// `pretty` is a boolean as Go reads it.
#[tokio::test(flavor = "multi_thread")]
async fn indented_documents() {
    let server = Server::start().await;
    for path in ["/apis/apps", "/api/v1", "/api/v1/namespaces/default", "/api/v1/nodes/none"] {
        for (value, is_indented) in [("true", true), ("T", true), ("xx", false), ("", false), ("f", false)] {
            let answer = server.send(&format!("GET {path}?pretty={value}")).await;
            assert_eq!(answer.text().contains("\n  "), is_indented, "{path} {value}");
        }
    }
    server.stop().await;
}

/// Refusals of paths that are no requests of the API obey `pretty` as all others do.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_indented_on_demand() {
    let server = Server::start().await;
    server.until_ready().await;
    for request in [
        "GET /api/v1/foos",
        "GET /apis/apps/v9/foos",
        "POST /apis/apps/v1",
        "POST /version",
        "GET /api/v1/watch/foos",
    ] {
        let lines = async |request: String| server.send(&request).await.text().trim_end().lines().count();
        assert_eq!(lines(request.to_owned()).await, 1, "{request}");
        assert_eq!(lines(format!("{request}?pretty=1")).await, 10, "{request}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregated_documents() {
    let server = Server::start().await;
    server.until_ready().await;
    let mut transcript = Transcript::new(&server);
    let core = transcript.run(&format!("GET /api\nAccept: {AGGREGATED},application/json")).await;
    transcript.run(&format!("GET /apis\nAccept: {AGGREGATED},application/json;q=0.9")).await;
    let etag = core.header("etag").to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 64, "{etag}");
    let again = server.send(&format!("GET /api\nAccept: {AGGREGATED}\nIf-None-Match: {etag}")).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(
        (again.header("etag"), again.header("vary"), again.header("cache-control")),
        (&*etag, "Accept", "public")
    );
    // It is served to clients that accept it, also if they prefer another form, but not at the path of all groups' routes.
    let preferred = server.send(&format!("GET /api\nAccept: application/json,*/*,{AGGREGATED};q=0.1")).await;
    assert_eq!((preferred.status, &preferred.body), (200, &core.body));
    assert_eq!(server.send(&format!("GET /apis/\nAccept: {AGGREGATED}")).await.status, 406);
    let other = server.send(&format!("GET /api\nAccept: {AGGREGATED}\nIf-None-Match: \"x\"")).await;
    assert_eq!((other.status, &other.body), (200, &core.body));
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_beside_the_api() {
    let server = Server::start().await;
    server.until_ready().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            "GET /",
            "GET /version",
            "GET /version/",
            "GET /healthz",
            "GET /healthz?verbose",
            "GET /livez?verbose",
            "GET /readyz?verbose",
            "GET /readyz?verbose&exclude=etcd",
            "GET /readyz/ping",
            "GET /readyz/none",
            "GET /livez/etcd",
            "POST /readyz/ping",
            "GET /metrics/",
            "DELETE /metrics",
            "DELETE /metrics/slis",
            "GET /metrics/slis",
            "HEAD /openapi/v3",
            "GET /api/v1/watch",
        ])
        .await;
    assert_transcript!(transcript);
    // Escaped paths are those that they stand for; documents do not depend on the method.
    for (request, same) in
        [("GET /api/%761", "GET /api/v1"), ("GET /apis/apps%2Fv1", "GET /apis/apps/v1"), ("POST /", "GET /")]
    {
        let (found, expected) = (server.send(request).await, server.send(same).await);
        assert_eq!((found.status, found.text()), (200, expected.text()), "{request}");
    }
    server.stop().await;
}
