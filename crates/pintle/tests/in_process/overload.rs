//! Tests requests above the limits: they get 429 at once, except administrators' requests and watches.

use crate::harness::{Identity, PATIENCE, Server, plain_user};
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use pintle_apiserver::{
    base::{
        body::RequestBody,
        handler::Handler,
        request::Request as ApiRequest,
        response::{Response, text},
    },
    filters::{ChainConfig, chain},
    metrics::Metrics,
};
use pintle_auth::{
    BoxFuture,
    authn::{Authenticated, Authentication, Authenticator, Credentials},
    authz::AlwaysAllow,
};
use pintle_machinery::UserInfo;
use std::{future::ready, sync::Arc, time::Duration};
use tokio::sync::Semaphore;

/// Authenticates a token as the user of that name; `root` is in `system:masters`.
pub(crate) struct ByName;

impl Authenticator for ByName {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, Authentication> {
        let name = credentials.bearer_token.unwrap_or("system:anonymous").to_owned();
        let group = if name == "root" { "system:masters" } else { "system:authenticated" };
        let groups = vec![group.to_owned()];
        let user = Arc::new(UserInfo { name, groups, ..UserInfo::default() });
        Box::pin(ready(Ok(Some(Authenticated { user, ..Authenticated::default() }))))
    }
}

/// A chain whose handler responds only when it gets a permit.
fn slow_chain(reads: usize, writes: usize) -> (Handler, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let inner = gate.clone();
    let handler = Handler::new(move |_: ApiRequest| {
        let gate = inner.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            text(200, "done")
        }
    });
    let metrics = Arc::new(Metrics::new().unwrap());
    let mut config = ChainConfig::new(metrics, Arc::new(ByName), Arc::new(AlwaysAllow));
    config.max_requests_in_flight = reads;
    config.max_mutating_requests_in_flight = writes;
    config.max_long_running = 1000;
    (chain(config, handler), gate)
}

/// Starts a request, and lets other tasks run.
async fn begin(handler: &Handler, user: &str, request: &str) -> tokio::task::JoinHandle<Response> {
    let (method, path) = request.split_once(' ').unwrap();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Authorization", format!("Bearer {user}"))
        .body(RequestBody::Bytes(Bytes::new()))
        .unwrap();
    let handler = handler.clone();
    let task = tokio::spawn(async move { handler.call(request).await });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn requests_over_the_limit_are_told_to_come_again() {
    let (handler, gate) = slow_chain(2, 1);
    let pods = "GET /api/v1/pods";
    // Discovery counts as a read.
    let first = begin(&handler, "jane", "GET /apis").await;
    let second = begin(&handler, "jane", pods).await;
    for request in ["GET /api", "GET /openapi/v2", pods, "GET /version"] {
        let refused = begin(&handler, "jane", request).await;
        assert!(refused.is_finished(), "{request}");
        let response = refused.await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()),
            (429, "1")
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        insta::assert_snapshot!("refusal", std::str::from_utf8(&body).unwrap());
    }
    // Writes have a separate limit.
    let write = begin(&handler, "jane", "POST /api/v1/namespaces/a/pods").await;
    assert!(!write.is_finished());
    for request in ["POST /api/v1/namespaces/a/pods", "DELETE /api/v1/namespaces/a/pods/b", "POST /anything"]
    {
        assert_eq!(begin(&handler, "jane", request).await.await.unwrap().status(), 429, "{request}");
    }
    // Administrators' requests and watches are not limited.
    let root = begin(&handler, "root", pods).await;
    let watch = begin(&handler, "jane", "GET /api/v1/pods?watch=1").await;
    assert!(!root.is_finished() && !watch.is_finished());
    gate.add_permits(5);
    for task in [first, second, write, root, watch] {
        assert_eq!(task.await.unwrap().status(), 200);
    }
    // A finished request frees its place.
    gate.add_permits(1);
    assert_eq!(begin(&handler, "jane", pods).await.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_client_that_goes_away_makes_place() {
    let (handler, gate) = slow_chain(1, 1);
    let gone = begin(&handler, "jane", "GET /api").await;
    gone.abort();
    assert!(gone.await.is_err_and(|error| error.is_cancelled()));
    gate.add_permits(1);
    assert_eq!(begin(&handler, "jane", "GET /api").await.await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_limit_of_zero_is_none() {
    let (handler, gate) = slow_chain(0, 0);
    let mut tasks = Vec::new();
    for _ in 0..100 {
        tasks.push(begin(&handler, "jane", "GET /api").await);
        tasks.push(begin(&handler, "jane", "POST /api/v1/namespaces/a/pods").await);
    }
    gate.add_permits(200);
    for task in tasks {
        assert_eq!(task.await.unwrap().status(), 200);
    }
}

/// Requests for invented names create no metrics.
#[tokio::test(flavor = "multi_thread")]
async fn made_up_names_leave_no_metrics_behind() {
    let server = Server::start().await;
    let nobody = server.client(Identity::Nobody).await;
    let mut wrong = Vec::new();
    for index in 0..5 {
        for path in [
            format!("/apis/fake{index}.example.com/v1/things"),
            format!("/apis/fake{index}.example.com/v1/things?watch=1"),
            format!("/apis/fake{index}.example.com"),
            format!("/apis/fake{index}.example.com/v1"),
            format!("/api/v1/fake{index}"),
            format!("/api/v1/fake{index}?watch=1"),
            format!("/api/fake{index}/pods"),
            format!("/api/v1/namespaces/default/pods/a/fake{index}"),
            format!("/fake{index}"),
        ] {
            let answers = [
                nobody.send(&format!("GET {path}")).await.status,
                server.send(&format!("GET {path}")).await.status,
                server.send(&format!("FAKE{index} {path}")).await.status,
            ];
            if answers != [403, 404, 404] {
                wrong.push(format!("{path}: {answers:?}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!(server.send("GET /api/v1/namespaces/default/configmaps").await.status, 200);
    let watch = server.watch("/api/v1/namespaces/default/configmaps?watch=1", &[]).await;
    let metrics = server.send("GET /metrics").await;
    let text = metrics.text();
    let fake: Vec<_> = text.lines().filter(|line| line.to_ascii_lowercase().contains("fake")).collect();
    assert!(fake.is_empty(), "{fake:?}");
    let has = |name: &str, labels: &[&str]| {
        text.lines().any(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)))
    };
    assert!(has("apiserver_request_total", &["resource=\"configmaps\"", "verb=\"LIST\"", "code=\"200\""]));
    assert!(has("apiserver_longrunning_requests", &["resource=\"configmaps\"", "verb=\"WATCH\"", "} 1"]));
    drop(watch);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_of_requests_are_reset_on_demand() {
    let server = Server::start().await;
    let lists = async || {
        let metrics = server.send("GET /metrics").await;
        let is_list =
            |line: &&str| line.starts_with("apiserver_request_total") && line.contains("verb=\"LIST\"");
        metrics.text().lines().filter(is_list).count()
    };
    assert_eq!(server.send("GET /api/v1/namespaces/default/configmaps").await.status, 200);
    assert_eq!(lists().await, 1);
    let reset = server.send("DELETE /metrics").await;
    assert_eq!((reset.status, reset.text()), (200, "metrics reset\n"));
    assert_eq!(lists().await, 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_have_a_limit_of_which_a_user_may_have_half() {
    let server = Server::start_with(|options| {
        plain_user(options);
        options.max_long_running = Some(6);
    })
    .await;
    let binding = "POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings\n\n\
                   {\"metadata\":{\"name\":\"jane\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"jane\"}],\
                   \"roleRef\":{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"cluster-admin\"}}";
    assert_eq!(server.send(binding).await.status, 201);
    let path = "/api/v1/namespaces/default/configmaps?watch=1";
    let jane = server.client(Identity::Nobody).await;
    let token = [("Authorization", "Bearer plain")];
    let watches =
        [jane.watch(path, &token).await, jane.watch(path, &token).await, jane.watch(path, &token).await];
    let answer = jane.exchange("GET", path, &token, "").await;
    assert_eq!((answer.status, answer.headers["retry-after"].to_str().unwrap()), (429, "1"));
    // Other requests, and those of administrators, are served.
    assert_eq!(jane.exchange("GET", "/api/v1/namespaces/default/configmaps", &token, "").await.status, 200);
    let mut of_admin = Vec::new();
    for _ in 0..10 {
        of_admin.push(server.watch(path, &[]).await);
    }
    // A watch that has ended frees its place.
    drop(watches);
    let again = async {
        while jane.exchange("GET", &format!("{path}&timeoutSeconds=1"), &token, "").await.status == 429 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
    drop((jane, of_admin));
    server.stop().await;
}
