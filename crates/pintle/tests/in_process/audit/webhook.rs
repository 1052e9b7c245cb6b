//! Tests the webhook backend over TLS, with a webhook that fails at first.

use crate::{
    harness::{PATIENCE, Server},
    peers::Https,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming};
use pintle_machinery::Value;
use std::{
    convert::Infallible,
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::mpsc, time::timeout};

/// One received request.
struct Received {
    authorization: String,
    list: Value,
}

/// A webhook in this process that answers the first requests with 500.
struct Webhook {
    kubeconfig: String,
    received: mpsc::UnboundedReceiver<Received>,
}

impl Webhook {
    async fn start(failures: usize) -> Webhook {
        let (sender, received) = mpsc::unbounded_channel();
        let failures = Arc::new(Mutex::new(failures));
        let answer = move |request| answer(request, sender.clone(), failures.clone());
        let Https { url, ca } = Https::serve(&["127.0.0.1"], answer).await;
        let ca = STANDARD.encode(ca);
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: '{url}/audit', certificate-authority-data: \
             {ca}}}}}]\nusers: [{{name: a, user: {{token: hook}}}}]\n"
        );
        Webhook { kubeconfig, received }
    }

    async fn next(&mut self) -> Received {
        timeout(PATIENCE, self.received.recv()).await.unwrap().unwrap()
    }
}

async fn answer(
    request: Request<Incoming>,
    sender: mpsc::UnboundedSender<Received>,
    failures: Arc<Mutex<usize>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let authorization = request.headers().get("authorization");
    let authorization = authorization.map_or(String::new(), |value| value.to_str().unwrap().to_owned());
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
    Ok(Response::builder().status(status).body(Full::default()).unwrap())
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
