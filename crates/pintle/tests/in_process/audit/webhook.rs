//! Events that go to a webhook over TLS, and a webhook that refuses them at first.

use crate::harness::{PATIENCE, Server};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use serde_json::Value;
use std::{convert::Infallible, fs, path::Path, sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};
use tokio_rustls::TlsAcceptor;

/// What one request of the server was.
struct Received {
    authorization: String,
    list: Value,
}

/// A webhook in this process, which answers the first requests with 500.
struct Webhook {
    kubeconfig: String,
    received: mpsc::UnboundedReceiver<Received>,
}

impl Webhook {
    async fn start(failures: usize) -> Webhook {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(params, &ca_key);
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let ca = STANDARD.encode(ca.pem());
        let (sender, received) = mpsc::unbounded_channel();
        let failures = Arc::new(std::sync::Mutex::new(failures));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, sender, failures) = (acceptor.clone(), sender.clone(), failures.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request: Request<Incoming>| {
                        let (sender, failures) = (sender.clone(), failures.clone());
                        async move {
                            let header = |name: &str| {
                                request
                                    .headers()
                                    .get(name)
                                    .map_or(String::new(), |value| value.to_str().unwrap().to_owned())
                            };
                            let authorization = header("authorization");
                            let body = request.into_body().collect().await.unwrap().to_bytes();
                            let is_failure = {
                                let mut left = failures.lock().unwrap();
                                let is_failure = *left > 0;
                                *left = left.saturating_sub(1);
                                is_failure
                            };
                            if !is_failure {
                                let list = serde_json::from_slice(&body).unwrap();
                                sender.send(Received { authorization, list }).ok();
                            }
                            let status = if is_failure { 500 } else { 200 };
                            let answer = Response::builder().status(status).body(Full::new(Bytes::new()));
                            Ok::<_, Infallible>(answer.unwrap())
                        }
                    });
                    let connection = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    connection.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:{port}/audit', certificate-authority-data: \
             {ca}}}}}]\nusers: [{{name: a, user: {{token: hook}}}}]\n"
        );
        Webhook { kubeconfig, received }
    }

    async fn next(&mut self) -> Received {
        timeout(PATIENCE, self.received.recv()).await.unwrap().unwrap()
    }
}

async fn server(kubeconfig: &str, dir: &Path, mode: &str) -> Server {
    let (policy, config) = (dir.join("policy.yaml"), dir.join("webhook.kubeconfig"));
    fs::write(&policy, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request}]\n").unwrap();
    fs::write(&config, kubeconfig).unwrap();
    Server::start_with(|options| {
        options.audit.policy_file = Some(policy);
        options.audit.webhook.config_file = Some(config);
        options.audit.webhook.initial_backoff = Duration::from_millis(1);
        options.audit.webhook.delivery.mode = mode.to_owned();
        options.audit.webhook.delivery.batch_max_size = 2;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_posted_in_lists_until_they_are_taken() {
    for mode in ["batch", "blocking"] {
        let mut webhook = Webhook::start(2).await;
        let dir = tempfile::tempdir().unwrap();
        let server = server(&webhook.kubeconfig, dir.path(), mode).await;
        let maps = "/api/v1/namespaces/default/configmaps";
        server.send(&format!("POST {maps}\nAudit-ID: posted\n\n{{\"metadata\":{{\"name\":\"a\"}}}}")).await;
        let mut events = Vec::new();
        while events.len() < 2 {
            let received = webhook.next().await;
            assert_eq!(received.authorization, "Bearer hook");
            assert_eq!(received.list["kind"], "EventList");
            events.extend(received.list["items"].as_array().unwrap().clone());
        }
        let stages: Vec<_> = events.iter().map(|event| event["stage"].as_str().unwrap()).collect();
        assert_eq!(stages, ["RequestReceived", "ResponseComplete"], "{mode}");
        assert!(events.iter().all(|event| event["auditID"] == "posted" && event.get("kind").is_none()));
        assert_eq!(events[1]["requestObject"]["metadata"]["name"], "a");
        server.stop().await;
    }
}
