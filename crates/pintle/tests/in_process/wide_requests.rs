//! Tests requests with very long heads: many parameters, segments, clauses, headers. Their cost is linear in their
//! size, not quadratic, and nothing of them is kept.

use crate::harness::{Answer, Identity, PATIENCE, Server, whole};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The time limit of each request: enough for a linear cost in an unoptimized build on a busy machine, too short for a
/// quadratic one.
const LIMIT: Duration = Duration::from_secs(5);

/// Repeats a text up to a length.
fn fill(part: &str, separator: &str, length: usize) -> String {
    let count = length / (part.len() + separator.len());
    vec![part; count].join(separator)
}

/// Path and headers.
type Head = (String, Vec<(&'static str, String)>);

#[tokio::test(flavor = "multi_thread")]
async fn wide_heads_cost_what_they_are_long() {
    let server = Server::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let configmaps = "/api/v1/namespaces/default/configmaps";
    // The limits of a URL and of a header.
    let (url, header) = (65_000, 900_000);
    let path = |text: String| -> Head { (text, Vec::new()) };
    let with =
        |path: &str, name: &'static str, value: String| -> Head { (path.to_owned(), vec![(name, value)]) };
    let numbered: Vec<String> = (0..5000).map(|number| format!("p{number}=1")).collect();
    let labels: Vec<String> = (0..4000).map(|number| format!("l{number}=v")).collect();
    let fields = fill("metadata.name!=a", ",", 40_000);
    let etags: Vec<String> = (0..60_000).map(|number| format!("\"{number:x}\"")).collect();
    let rows: Vec<(&str, Head)> = vec![
        ("parameters", path(format!("{pods}?{}", fill("a", "&", url)))),
        ("different parameters", path(format!("{pods}?{}", numbered.join("&")))),
        ("values of one parameter", path(format!("{pods}?{}", fill("labelSelector=a", "&", url)))),
        ("parameters of watches", path(format!("{pods}?{}", fill("resourceVersion=", "&", url)))),
        ("escapes", path(format!("{pods}?a={}", fill("%41", "", url)))),
        ("labels", path(format!("{pods}?labelSelector={}", labels.join(",")))),
        ("fields", path(format!("{pods}?fieldSelector={fields}"))),
        ("segments", path(format!("/{}", fill("a", "/", url)))),
        ("empty segments", path(fill("/", "", url))),
        ("segments of a resource", path(format!("{pods}/{}", fill("a", "/", url)))),
        ("dots", path(format!("/api/v1/{}", fill("..", "/", url)))),
        ("clauses", with(pods, "accept", fill("a/b", ",", header))),
        ("clauses that are liked less and less", with(pods, "accept", fill("a/b;q=0.5", ",", header))),
        (
            "clauses of tables",
            with(pods, "accept", fill("application/json;as=Table;v=v9;g=meta.k8s.io", ",", header)),
        ),
        (
            "parameters of a clause",
            with(pods, "accept", format!("application/json{}", fill(";a=b", "", header))),
        ),
        ("tags", with("/openapi/v2", "if-none-match", etags.join(", "))),
        ("encodings", with(pods, "accept-encoding", fill("br;q=0.1", ",", header))),
        ("user agent", with(configmaps, "user-agent", fill("x", "", header))),
        ("forwarded for", with(pods, "x-forwarded-for", fill("10.0.0.1", ",", header))),
        ("token", with(pods, "authorization", format!("Bearer {}", fill("x", "", header)))),
        ("dots of a token", with(pods, "authorization", format!("Bearer {}", fill(".", "", header)))),
        // It is returned, so that it has to fit this client's limit.
        ("audit id", with(pods, "audit-id", fill("x", "", 10_000))),
        ("range", with(pods, "range", format!("bytes={}", fill("0-1", ",", header)))),
        ("origin", with(pods, "origin", fill("x", "", header))),
        (
            "protocols",
            with(
                pods,
                "sec-websocket-protocol",
                fill("base64url.bearer.authorization.k8s.io.x", ",", header),
            ),
        ),
    ];
    for (what, (path, headers)) in rows {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = ask(&server, what, "GET", &path, &headers, "").await;
        assert!(answer.status < 500, "{what}: {}", answer.status);
    }
    let types = [("content-type", format!("application/json{}", fill(";a=b", "", header)))];
    let types: Vec<(&str, &str)> = types.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let body = "{\"metadata\":{\"name\":\"a\"}}";
    ask(&server, "parameters of a type", "POST", configmaps, &types, body).await;
    let agent = [("user-agent", "a".repeat(100_000))];
    let agent = [("content-type", "application/json"), (agent[0].0, agent[0].1.as_str())];
    let created = ask(
        &server,
        "manager",
        "POST",
        configmaps,
        &agent,
        "{\"metadata\":{\"name\":\"b\"},\"data\":{\"a\":\"b\"}}",
    )
    .await;
    let manager = created.str_at("/metadata/managedFields/0/manager");
    assert!(manager.len() <= 128, "{}", manager.len());
    // No metric has an invented name as a label.
    let metrics = server.send("GET /metrics").await;
    let longest = metrics.text().lines().filter(|line| !line.starts_with('#')).map(str::len).max();
    assert!(longest.is_some_and(|length| length < 1000), "{longest:?}");
    server.stop().await;
}

/// Impersonation headers, as many as fit.
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_headers_about_who_somebody_is_cost_what_they_are_many() {
    let server = Server::start().await;
    let name = |prefix: &str, number: usize| format!("{prefix}{number}");
    let user = ("impersonate-user".to_owned(), "jane".to_owned());
    type Headers = Vec<(String, String)>;
    let rows: Vec<(&str, Headers)> = vec![
        ("groups", (0..8000).map(|number| ("impersonate-group".to_owned(), name("g", number))).collect()),
        ("keys", (0..8000).map(|number| (name("impersonate-extra-k", number), "v".to_owned())).collect()),
        ("values", (0..8000).map(|number| ("impersonate-extra-k".to_owned(), name("v", number))).collect()),
        (
            "names in escapes",
            (0..2000).map(|number| (name("impersonate-extra-%41%2F", number), "v".to_owned())).collect(),
        ),
        (
            "headers of a proxy",
            (0..8000).map(|number| (name("x-remote-extra-", number), "v".to_owned())).collect(),
        ),
        ("users", (0..8000).map(|number| ("impersonate-user".to_owned(), name("u", number))).collect()),
    ];
    for (what, headers) in rows {
        let headers = std::iter::once(&user).chain(&headers);
        let headers: Vec<(&str, &str)> =
            headers.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let path = "/api/v1/namespaces/default/configmaps";
        let answer = ask(&server, what, "GET", path, &headers, "").await;
        // Jane has no permissions, whoever else is named.
        assert_eq!(answer.status, 403, "{what}: {}", answer.text());
        assert!(answer.body.len() < 1 << 20, "{what}: {}", answer.body.len());
        let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let body = "{\"kind\":\"SelfSubjectReview\",\"apiVersion\":\"authentication.k8s.io/v1\"}";
        let headers = [&[("content-type", "application/json")], headers.as_slice()].concat();
        ask(&server, what, "POST", review, &headers, body).await;
    }
    server.stop().await;
}

async fn ask(
    server: &Server,
    what: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    // One connection each: a response may close it.
    let client = server.client(Identity::Admin).await;
    let begun = Instant::now();
    let response = client.begin(method, path, headers, whole(body.to_owned())).await;
    let response = response.unwrap_or_else(|error| panic!("{what}: {error}"));
    let answer = timeout(PATIENCE, Answer::read(response)).await.unwrap();
    assert!(begun.elapsed() < LIMIT, "{what}: {:?}", begun.elapsed());
    answer
}
