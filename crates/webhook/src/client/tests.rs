//! Tests with a server in this process, without TLS.

use super::*;
use crate::{AttemptResult, Backoff, Credentials};
use pintle_dialer::ServiceResolver;
use pintle_offload::{LIGHT, is_on_worker, scope};
use pintle_registry::BoxFuture;
use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A server that sends these responses, one per connection; an empty one closes the connection. Returns its URL and the
/// requests.
async fn server(responses: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/review", listener.local_addr().unwrap());
    let requests = tokio::spawn(async move {
        let mut requests = Vec::new();
        for response in responses {
            let (mut stream, _) = listener.accept().await.unwrap();
            requests.push(request(&mut stream).await);
            // A client that has enough of a response closes the connection.
            let _ = stream.write_all(response.as_bytes()).await;
        }
        requests
    });
    (url, requests)
}

/// Reads a request up to the end of its body.
async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the request ends early: {text}");
    }
}

fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn client_of(server: &str, credentials: Credentials) -> WebhookClient {
    let config = Kubeconfig {
        server: server.to_owned(),
        ca: Vec::new(),
        insecure_skip_tls_verify: false,
        tls_server_name: None,
        client_certificate: None,
        credentials,
    };
    WebhookClient::of_kubeconfig(&config, &Dialer::default()).unwrap()
}

const TIMEOUT: Duration = Duration::from_secs(20);
const QUESTION: Bytes = Bytes::from_static(b"{\"q\":1}");

#[tokio::test]
async fn requests_have_the_headers_of_kubernetes_client() {
    let (url, requests) = server(vec![response("201 Created", "{\"a\":1}")]).await;
    let client = client_of(&url, Credentials::Token("secret".to_owned()));
    let answer = client.post(QUESTION, TIMEOUT).await.unwrap();
    assert_eq!(
        (answer.status, &*answer.content_type, &*answer.body),
        (201, "application/json", &b"{\"a\":1}"[..])
    );
    assert!(answer.retry_after.is_none());
    let requests = requests.await.unwrap();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /review?timeout=20s HTTP/1.1"));
    let lines: Vec<&str> = lines.collect();
    for header in [
        "content-type: application/json",
        "accept: application/json, */*",
        "accept-encoding: gzip",
        "user-agent: Go-http-client/1.1",
    ] {
        assert!(lines.contains(&header), "{header} is not in {lines:?}");
    }
    // Credentials are not sent in plain text.
    assert!(!lines.iter().any(|line| line.starts_with("authorization")), "{lines:?}");
    assert_eq!(body.as_bytes(), QUESTION);
    assert!(!format!("{client:?}").contains("secret"));
}

#[tokio::test]
async fn the_paths_of_requests_are_clean() {
    let (url, requests) = server(vec![response("200 OK", "{}")]).await;
    let url = url.replace("/review", "//a/../b%20c/");
    client_of(&url, Credentials::None).post(QUESTION, TIMEOUT).await.unwrap();
    let requests = requests.await.unwrap();
    assert!(requests[0].starts_with("POST /b%20c?timeout=20s HTTP/1.1\r\n"), "{requests:?}");
    let rows = [
        ("https://h", "/"),
        ("https://h:1//x", "/x"),
        ("https://h/x/", "/x"),
        ("https://h/a%2Fb?q=1", "/a/b"),
    ];
    for (url, path) in rows {
        assert_eq!(path_of(url).unwrap(), path, "{url}");
    }
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again_when_it_says() {
    let later = |status: &str, seconds: &str| {
        response(status, "{}").replacen("\r\n", &format!("\r\nretry-after: {seconds}\r\n"), 1)
    };
    let check = async |responses: Vec<String>, expected: u16| {
        let (url, requests) = server(responses).await;
        let answer = client_of(&url, Credentials::None).post(QUESTION, TIMEOUT).await.unwrap();
        assert_eq!(answer.status, expected);
        requests.await.unwrap().len()
    };
    let (overloaded, failed) = (later("429 Too Many Requests", "0"), later("503 Service Unavailable", "0"));
    assert_eq!(check(vec![overloaded.clone(), failed, response("200 OK", "{}")], 200).await, 3);
    assert_eq!(check(vec![overloaded; MAX_RETRIES + 1], 429).await, 11);
    // These say nothing about a time, or are permanent.
    assert_eq!(check(vec![later("503 Service Unavailable", "soon")], 503).await, 1);
    assert_eq!(check(vec![response("429 Too Many Requests", "{}")], 429).await, 1);
    assert_eq!(check(vec![later("404 Not Found", "0")], 404).await, 1);

    let (url, _requests) = server(vec![later("503 Service Unavailable", "60")]).await;
    let short = Duration::from_millis(200);
    assert!(client_of(&url, Credentials::None).post(QUESTION, short).await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn a_server_without_a_scheme_speaks_tls_if_its_authority_is_configured() {
    let url = |insecure_skip_tls_verify| {
        let config = Kubeconfig {
            server: "example.com:1".to_owned(),
            ca: Vec::new(),
            insecure_skip_tls_verify,
            tls_server_name: None,
            client_certificate: None,
            credentials: Credentials::None,
        };
        WebhookClient::of_kubeconfig(&config, &Dialer::default()).unwrap().url
    };
    assert_eq!(url(false), "http://example.com:1/");
    assert_eq!(url(true), "https://example.com:1/");
}

#[tokio::test]
async fn failed_calls_have_the_texts_of_gos_client() {
    let limit = ANSWER_SIZE + ANSWER_FACTOR * QUESTION.len();
    let rows = [
        // The connection is closed without a response.
        (String::new(), "EOF".to_owned()),
        (response("200 OK", &"x".repeat(limit + 1)), format!("the answer has more than {limit} bytes")),
    ];
    for (response, expected) in rows {
        let (url, _requests) = server(vec![response]).await;
        let error = client_of(&url, Credentials::None).post(QUESTION, TIMEOUT).await.unwrap_err();
        assert_eq!(error.to_string(), format!("Post \"{url}?timeout=20s\": {expected}"));
        assert!(!error.is_timeout() && !error.is_transient());
    }
    // Nobody listens at the port of a closed listener.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = client_of(&address.to_string(), Credentials::None);
    let error = client.post(QUESTION, TIMEOUT).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!("Post \"http://{address}/?timeout=20s\": dial tcp {address}: connect: connection refused")
    );
}

#[tokio::test]
async fn a_call_ends_at_its_time_out() {
    // The connection is made, and no response is sent.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client_of(&listener.local_addr().unwrap().to_string(), Credentials::None);
    let error = client.post(QUESTION, Duration::from_millis(10)).await.unwrap_err();
    assert!(error.is_timeout() && !error.is_transient());
    assert!(error.to_string().ends_with("?timeout=10ms\": context deadline exceeded"), "{error}");

    // The response has begun.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client_of(&listener.local_addr().unwrap().to_string(), Credentials::None);
    let answered = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{").await.unwrap();
        stream
    };
    let short = Duration::from_millis(200);
    let (answer, _stream) = tokio::join!(client.post(QUESTION, short), answered);
    let error = answer.unwrap_err();
    assert!(error.is_timeout() && !error.is_transient());
    assert_eq!(
        error.to_string(),
        "unexpected error when reading response body. Please retry. Original error: context deadline exceeded"
    );
}

#[tokio::test]
async fn transient_errors_are_retried_and_others_are_not() {
    let backoff = Backoff { initial: Duration::from_millis(1), factor: 1.0, jitter: 0.0, steps: 3 };
    let check =
        async |responses: &[(&str, &str)], expected: Result<&str, &str>, results: &[AttemptResult]| {
            let responses: Vec<_> = responses.iter().map(|(status, body)| response(status, body)).collect();
            let count = responses.len();
            let (url, requests) = server(responses).await;
            let mut attempts = Vec::new();
            let answer = client_of(&url, Credentials::None)
                .post_until_answered(&QUESTION, TIMEOUT, &backoff, |result, _| attempts.push(result))
                .await;
            let answer = answer.map(|value| value.to_string());
            assert_eq!(answer.as_deref().map_err(String::as_str), expected);
            assert_eq!(attempts, results);
            assert_eq!(requests.await.unwrap().len(), count);
        };
    use AttemptResult::{Error, Success, Timeout};
    let internal = ("500 Internal Server Error", "");
    let unknown = "an error on the server (\"unknown\") has prevented the request from succeeding";
    check(&[internal, ("429 Too Many Requests", ""), ("200 OK", "{}")], Ok("{}"), &[Error, Error, Success])
        .await;
    check(&[internal, internal, internal], Err(unknown), &[Error, Error, Error]).await;
    check(&[("504 Gateway Timeout", ""), ("200 OK", "{}")], Ok("{}"), &[Timeout, Success]).await;
    check(&[("403 Forbidden", "")], Err("unknown"), &[Error]).await;
}

struct NoServices;

impl ServiceResolver for NoServices {
    fn resolve<'a>(&'a self, _: &'a str, name: &'a str, _: u16) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { Err(format!("service \"{name}\" not found")) })
    }
}

#[tokio::test]
async fn webhooks_are_reached_over_tls_only() {
    let outbound = Outbound::direct(Arc::new(NoServices));
    let client = |endpoint: Endpoint, ca_bundle: &str| {
        let config = ClientConfig { endpoint, ca_bundle: ca_bundle.as_bytes().to_vec() };
        WebhookClient::new(&config, &outbound).map_err(|error| error.to_string())
    };
    let https = "the URL cannot be used: it must begin with https:// and a host";
    for url in ["http://example.com/x", "/x", "example.com"] {
        assert_eq!(client(Endpoint::Url(url.to_owned()), "").unwrap_err(), https, "{url}");
    }
    let error = client(Endpoint::Url("https://example.com".to_owned()), "no certificate").unwrap_err();
    assert!(error.starts_with("unable to load root certificates: "), "{error}");

    let authority = rcgen::generate_simple_self_signed(["s.n.svc".to_owned()]).unwrap().cert.pem();
    let service = ServiceReference {
        namespace: "n".to_owned(),
        name: "s".to_owned(),
        port: 443,
        path: "/x".to_owned(),
    };
    let client = client(Endpoint::Service(service), &authority).unwrap();
    assert_eq!(
        client.post(QUESTION, TIMEOUT).await.unwrap_err().to_string(),
        "Post \"https://s.n.svc:443/x?timeout=20s\": service \"s\" not found"
    );
}

#[tokio::test]
async fn calls_are_counted_by_host_and_code() {
    let (url, _requests) = server(vec![response("200 OK", "{}"), response("418 Teapot", "no")]).await;
    let client = client_of(&url, Credentials::default());
    for _ in 0..3 {
        // The third is refused, since the server accepts two connections.
        let _ = client.post(Bytes::from_static(b"{}"), Duration::from_secs(20)).await;
    }
    let host = url.trim_start_matches("http://").split('/').next().unwrap();
    let metrics = pintle_dialer::RestClientMetrics::of_process().unwrap();
    let mut found = Vec::new();
    for family in metrics.collectors().iter().flat_map(|collector| collector.collect()) {
        for metric in family.get_metric() {
            let value = |name: &str| metric.get_label().iter().find(|label| label.name() == name);
            if value("host").is_some_and(|label| label.value() == host) {
                let code = value("code").map(|label| format!(" {}", label.value())).unwrap_or_default();
                let count = match metric.get_histogram().get_sample_count() {
                    0 => metric.get_counter().get_value() as u64,
                    count => count,
                };
                found.push(format!("{}{code} {count}", family.name()));
            }
        }
    }
    found.sort();
    let expected = [
        "rest_client_request_duration_seconds 3",
        "rest_client_request_size_bytes 3",
        "rest_client_requests_total 200 1",
        "rest_client_requests_total 418 1",
        "rest_client_requests_total <error> 1",
        "rest_client_response_size_bytes 1",
    ];
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_is_decoded_off_the_workers() {
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(2 * LIGHT));
    let (url, requests) = server(vec![response("200 OK", "{}"), response("200 OK", &large)]).await;
    let client = client_of(&url, Credentials::None);
    let places = scope(async move {
        let mut places = Vec::new();
        for _ in 0..2 {
            client.post(QUESTION, TIMEOUT).await.unwrap();
            places.push(is_on_worker());
        }
        places
    });
    assert_eq!(places.await, [true, false]);
    requests.await.unwrap();
}
