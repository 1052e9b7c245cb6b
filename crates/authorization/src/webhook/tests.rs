//! Tests with a webhook over real TLS, called through a kubeconfig file.

use super::*;
use crate::match_conditions::MatchConditions;
use crate::{config::WebhookConfiguration, review::ReviewVersion};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use pintle_machinery::{FieldPath, Value, json};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{RootCertStore, ServerConfig, server::WebPkiClientVerifier};
use std::{collections::VecDeque, convert::Infallible, fs, time::Duration};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The webhook's response: a review status, a status code and a body, or none at all.
#[derive(Clone)]
enum Answer {
    Status(Value),
    Raw(u16, &'static str),
    Never,
}

/// A webhook that requires a client certificate of its own authority and a token.
struct Webhook {
    dir: TempDir,
    /// The next responses; the last one is repeated.
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// The header and body of received requests.
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Webhook {
    async fn start() -> Webhook {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(params, &ca_key);
        let leaf = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let certificate =
                CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
            (certificate, key)
        };
        let (certificate, key) = leaf("127.0.0.1");
        let (client, client_key) = leaf("client");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(ca.der().clone()).unwrap();
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: String| fs::write(dir.path().join(name), text).unwrap();
        file("ca.pem", ca.pem());
        file("client.pem", client.pem());
        file("client.key", client_key.serialize_pem());
        file(
            "kubeconfig",
            format!(
                "current-context: c
contexts: [{{name: c, context: {{cluster: webhook, user: server}}}}]
clusters: [{{name: webhook, cluster: {{server: 'https://127.0.0.1:{port}/authorize', certificate-authority: ca.pem}}}}]
users: [{{name: server, user: {{client-certificate: client.pem, client-key: client.key, token: sesame}}}}]
"
            ),
        );
        let webhook = Webhook { dir, answers: Arc::default(), asked: Arc::default() };
        let (answers, asked) = (webhook.answers.clone(), webhook.asked.clone());
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (acceptor, answers, asked) = (acceptor.clone(), answers.clone(), asked.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, answers.clone(), asked.clone()));
                    let connection = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    connection.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        webhook
    }

    fn answers(&self, answers: &[Answer]) {
        *self.answers.lock() = answers.iter().cloned().collect();
    }

    fn configuration(&self) -> WebhookConfiguration {
        WebhookConfiguration {
            kube_config_file: self.dir.path().join("kubeconfig"),
            timeout: Duration::from_secs(10),
            subject_access_review_version: ReviewVersion::V1,
            authorized_ttl: Duration::from_secs(300),
            unauthorized_ttl: Duration::ZERO,
            failure_policy: FailurePolicy::NoOpinion,
            match_conditions: MatchConditions::default(),
        }
    }

    fn questions(&self) -> usize {
        self.asked.lock().len()
    }
}

async fn answer(
    request: Request<Incoming>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    let token = head.headers.get("authorization").map_or("", |value| value.to_str().unwrap());
    let version = body["apiVersion"].clone();
    asked.lock().push((format!("{} {} {token}", head.method, head.uri.path_and_query().unwrap()), body));
    let next = {
        let mut answers = answers.lock();
        match answers.len() {
            1 => answers.front().cloned(),
            _ => answers.pop_front(),
        }
    };
    let (code, body) = match next.unwrap_or(Answer::Never) {
        Answer::Status(status) => {
            (200, json!({"kind": "SubjectAccessReview", "apiVersion": version, "status": status}).to_string())
        }
        Answer::Raw(code, body) => (code, body.to_owned()),
        Answer::Never => std::future::pending().await,
    };
    Ok(Response::builder().status(code).body(Full::from(body)).unwrap())
}

fn authorizer(configuration: WebhookConfiguration) -> WebhookAuthorizer {
    let metrics = Arc::new(AuthorizationMetrics::new("me").unwrap());
    let mut authorizer =
        WebhookAuthorizer::new("w".to_owned(), configuration, metrics, &Dialer::default()).unwrap();
    authorizer.backoff.initial = Duration::from_millis(1);
    authorizer
}

async fn ask(authorizer: &WebhookAuthorizer, name: &str) -> (Decision, String, String) {
    let user = UserInfo { name: "jane".to_owned(), ..UserInfo::default() };
    let attributes = Attributes { resource: "pods", name, ..Attributes::of(&user, "get") };
    let Verdict { decision, reason, error } = authorizer.authorize(&attributes).await;
    (decision, reason.into_owned(), error.into_owned())
}

#[tokio::test]
async fn a_webhook_decides() {
    let webhook = Webhook::start().await;
    let authorizer = authorizer(webhook.configuration());
    let check = async |name: &str, status: Value, expected: (Decision, &str, &str)| {
        webhook.answers(&[Answer::Status(status)]);
        let (decision, reason, error) = ask(&authorizer, name).await;
        assert_eq!((decision, reason.as_str(), error.as_str()), expected, "{name}");
    };
    check("a", json!({"allowed": true, "reason": "so"}), (Decision::Allow, "so", "")).await;
    check("b", json!({"allowed": false, "reason": "no"}), (Decision::NoOpinion, "no", "")).await;
    check("c", json!({"allowed": false, "denied": true}), (Decision::Deny, "", "")).await;
    let both = "webhook subject access review returned both allow and deny response";
    check("d", json!({"allowed": true, "denied": true}), (Decision::Deny, "", both)).await;
    let (request, body) = webhook.asked.lock()[0].clone();
    assert_eq!(request, "POST /authorize?timeout=10s Bearer sesame");
    assert_eq!(body["spec"]["user"], "jane");
    // Allowed decisions are cached, others are not, and d was allowed.
    check("a", json!({"denied": true}), (Decision::Allow, "so", "")).await;
    assert_eq!(webhook.questions(), 4);
    check("b", json!({"denied": true}), (Decision::Deny, "", "")).await;
    // Very large requests are not cached.
    let large = "x".repeat(MAX_REMEMBERED);
    check(&large, json!({"allowed": true}), (Decision::Allow, "", "")).await;
    check(&large, json!({"denied": true}), (Decision::Deny, "", "")).await;
    // Clients choose their selectors, too.
    let user = UserInfo::default();
    let values: Vec<_> = (0..MAX_REMEMBERED).map(|value| value.to_string()).collect();
    for selectors in [
        Selectors::parse(&format!("metadata.name={large}"), ""),
        Selectors::parse("", &format!("a in ({})", values.join(","))),
    ] {
        let attributes = Attributes { selectors: Some(&selectors), ..Attributes::of(&user, "list") };
        for (answer, expected) in [("allowed", Decision::Allow), ("denied", Decision::Deny)] {
            webhook.answers(&[Answer::Status(json!({answer: true}))]);
            assert_eq!(authorizer.authorize(&attributes).await.decision, expected);
        }
    }
}

#[tokio::test]
async fn reviews_have_the_version_that_is_wanted() {
    let webhook = Webhook::start().await;
    webhook.answers(&[Answer::Status(json!({"allowed": true}))]);
    let version = ReviewVersion::V1beta1;
    let authorizer = authorizer(WebhookConfiguration {
        subject_access_review_version: version,
        ..webhook.configuration()
    });
    assert_eq!(ask(&authorizer, "a").await.0, Decision::Allow);
    assert_eq!(webhook.asked.lock()[0].1["apiVersion"], "authorization.k8s.io/v1beta1");
}

#[tokio::test]
async fn conditions_say_when_it_is_asked() {
    let webhook = Webhook::start().await;
    webhook.answers(&[Answer::Status(json!({"allowed": true}))]);
    let with = |expression: &'static str, failure_policy| {
        let conditions = MatchConditions::compile([expression].into_iter(), &FieldPath::new("x")).unwrap();
        authorizer(WebhookConfiguration {
            match_conditions: conditions,
            failure_policy,
            ..webhook.configuration()
        })
    };
    let named = "request.resourceAttributes.name != 'a'";
    let authorizer = with(named, FailurePolicy::Deny);
    assert_eq!(ask(&authorizer, "a").await.0, Decision::NoOpinion);
    assert_eq!(webhook.questions(), 0);
    assert_eq!(ask(&authorizer, "b").await.0, Decision::Allow);
    for (policy, decision) in
        [(FailurePolicy::Deny, Decision::Deny), (FailurePolicy::NoOpinion, Decision::NoOpinion)]
    {
        let (decided, _, error) = ask(&with("request.extra['x'] == []", policy), "a").await;
        assert_eq!(decided, decision);
        let expected =
            "cel evaluation error: expression 'request.extra['x'] == []' resulted in error: no such key: x";
        assert_eq!(error, expected);
    }
    assert_eq!(webhook.questions(), 1);
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let webhook = Webhook::start().await;
    let authorizer = authorizer(webhook.configuration());
    let fails = Answer::Raw(500, "boom");
    webhook.answers(&[fails.clone(), Answer::Raw(429, ""), Answer::Status(json!({"allowed": true}))]);
    assert_eq!(ask(&authorizer, "a").await.0, Decision::Allow);
    assert_eq!(webhook.questions(), 3);
    webhook.answers(&[fails]);
    let (decision, _, error) = ask(&authorizer, "b").await;
    assert_eq!(decision, Decision::NoOpinion);
    assert_eq!(error, "an error on the server (\"boom\") has prevented the request from succeeding");
    assert_eq!(webhook.questions(), 3 + 5);
    // Failures that would repeat are not retried.
    for (code, body) in [(404, ""), (200, "nonsense"), (200, "{}")] {
        let before = webhook.questions();
        webhook.answers(&[Answer::Raw(code, body)]);
        assert_eq!(ask(&authorizer, "c").await.0, Decision::NoOpinion, "{code} {body}");
        assert_eq!(webhook.questions(), before + 1, "{code} {body}");
    }
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_fails_as_it_was_told() {
    let webhook = Webhook::start().await;
    webhook.answers(&[Answer::Never]);
    let timeout = Duration::from_millis(50);
    let configuration = WebhookConfiguration { timeout, ..webhook.configuration() };
    let open = authorizer(configuration.clone());
    let (decision, _, error) = ask(&open, "a").await;
    assert_eq!(decision, Decision::NoOpinion);
    assert!(error.ends_with("/authorize?timeout=50ms\": context deadline exceeded"), "{error}");
    let closed = authorizer(WebhookConfiguration { failure_policy: FailurePolicy::Deny, ..configuration });
    assert_eq!(ask(&closed, "a").await.0, Decision::Deny);
}

#[tokio::test]
async fn only_the_right_webhook_is_asked() {
    let (webhook, other) = (Webhook::start().await, Webhook::start().await);
    webhook.answers(&[Answer::Status(json!({"allowed": true}))]);
    fs::copy(other.dir.path().join("ca.pem"), webhook.dir.path().join("ca.pem")).unwrap();
    let (decision, _, error) = ask(&authorizer(webhook.configuration()), "a").await;
    assert_eq!(decision, Decision::NoOpinion);
    assert!(
        error.contains("tls: failed to verify certificate: x509: certificate signed by unknown authority"),
        "{error}"
    );
    assert_eq!(webhook.questions(), 0);
    // Unless the kubeconfig disables verification.
    let path = webhook.dir.path().join("kubeconfig");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("certificate-authority: ca.pem", "insecure-skip-tls-verify: true"))
        .unwrap();
    assert_eq!(ask(&authorizer(webhook.configuration()), "a").await.0, Decision::Allow);
}
