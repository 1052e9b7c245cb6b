//! Tests authorization: nodes by their pods, a webhook in this process, and a reloaded configuration.

use crate::{
    harness::{Answer, PATIENCE, Server},
    peers::Https,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming};
use pintle_machinery::{Value, json};
use std::{
    convert::Infallible,
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

/// Repeats a request until the response has the status.
async fn until(status: u16, ask: impl AsyncFn() -> Answer) -> Answer {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = ask().await;
        if answer.status == status {
            return answer;
        }
        assert!(Instant::now() < end, "no {status} but {}: {}", answer.status, answer.text());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_node_reads_what_its_pods_refer_to_as_long_as_they_are_there() {
    let server = Server::start().await;
    let node = "Impersonate-User: system:node:n\nImpersonate-Group: system:nodes";
    let secret = "/api/v1/namespaces/default/secrets/s";
    let as_node = async || server.send(&format!("GET {secret}\n{node}")).await;
    server.send("POST /api/v1/namespaces/default/secrets\n\n{\"metadata\": {\"name\": \"s\"}}").await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    server.send(&format!("POST {accounts}\n\n{{\"metadata\": {{\"name\": \"default\"}}}}")).await;
    let refused = as_node().await;
    assert_eq!(refused.status, 403);
    let reason = "no relationship found between node 'n' and this object";
    assert!(refused.str_at("/message").ends_with(reason), "{}", refused.text());
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "n",
            "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "example.com/c"}],
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
        },
    });
    let pods = "/api/v1/namespaces/default/pods";
    let made = server.send(&format!("POST {pods}\n\n{pod}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    until(200, as_node).await;
    let own = server.send(&format!("GET {pods}?fieldSelector=spec.nodeName%3Dn\n{node}")).await;
    assert_eq!(own.json()["items"].as_array().unwrap().len(), 1);
    let all = server.send(&format!("GET {pods}\n{node}")).await;
    assert_eq!(all.status, 403);
    server.send(&format!("DELETE {pods}/p?gracePeriodSeconds=0")).await;
    until(403, as_node).await;
    server.stop().await;
}

/// A webhook in this process that lets `jane` list objects with the label `app=x`, and fails for `eve`.
struct Webhook {
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Webhook {
    /// Starts the webhook and writes its kubeconfig file into a directory.
    async fn start(dir: &Path) -> Webhook {
        let webhook = Webhook { asked: Arc::default() };
        let asked = webhook.asked.clone();
        let Https { url, ca } =
            Https::serve(&["127.0.0.1"], move |request| answer(request, asked.clone())).await;
        fs::write(dir.join("webhook-ca.pem"), ca).unwrap();
        let kubeconfig = format!(
            "current-context: c
contexts: [{{name: c, context: {{cluster: webhook}}}}]
clusters: [{{name: webhook, cluster: {{server: '{url}', certificate-authority: webhook-ca.pem}}}}]
"
        );
        fs::write(dir.join("webhook.kubeconfig"), kubeconfig).unwrap();
        webhook
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: Arc<Mutex<Vec<Value>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let spec = review["spec"].clone();
    asked.lock().unwrap().push(spec.clone());
    let selector = &spec["resourceAttributes"]["labelSelector"]["requirements"][0];
    let is_narrow = *selector == json!({"key": "app", "operator": "In", "values": ["x"]});
    let status = match (spec["user"].as_str().unwrap(), is_narrow) {
        ("jane", true) => json!({"allowed": true}),
        ("eve", _) => return Ok(Response::builder().status(404).body(Full::default()).unwrap()),
        _ => json!({"allowed": false, "reason": "only app=x"}),
    };
    let answer = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "status": status});
    Ok(Response::new(Full::from(answer.to_string())))
}

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";

#[tokio::test]
async fn a_webhook_is_asked_as_the_configuration_says_which_may_change() {
    let dir = tempfile::tempdir().unwrap();
    let webhook = Webhook::start(dir.path()).await;
    let path = dir.path().join("authorization.yaml");
    let kubeconfig = dir.path().join("webhook.kubeconfig");
    let asks = |unless: &str| {
        format!(
            "{HEAD}
- type: Webhook
  name: labels
  webhook:
    timeout: 10s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: request.user != '{unless}'
- {{type: RBAC, name: rbac}}
",
            kubeconfig.display()
        )
    };
    fs::write(&path, asks("root")).unwrap();
    let server = Server::start_with(|options| {
        options.authorization.config = Some(path.clone());
        options.authorization.config_poll_interval = Duration::from_millis(5);
    })
    .await;
    let list = async |user: &str, selector: &str| {
        let path = format!("/api/v1/namespaces/default/pods?labelSelector={selector}");
        server.send(&format!("GET {path}\nImpersonate-User: {user}")).await
    };
    assert_eq!(list("jane", "app%3Dx").await.status, 200);
    let refused = list("jane", "app%3Dy").await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.str_at("/message").ends_with(" in the namespace \"default\": only app=x"),
        "{}",
        refused.text()
    );
    // A failed webhook has no opinion, but a request that is not allowed gets 500 instead of 403.
    let broken = list("eve", "").await;
    assert_eq!(broken.status, 500);
    let expected = "Internal Server Error: \"/api/v1/namespaces/default/pods?labelSelector=\": the server could not find the \
                    requested resource\n";
    assert_eq!(broken.text(), expected);
    // RBAC decides on requests that the webhook is not called for.
    let path_of_all = "GET /version\nImpersonate-User: eve";
    assert_eq!(server.send(path_of_all).await.status, 200);
    let (first, all) = {
        let asked = webhook.asked.lock().unwrap();
        (asked[0]["user"].clone(), asked.iter().all(|spec| spec.get("resourceAttributes").is_some()))
    };
    assert!(first == "jane" && all, "{first}");
    fs::write(&path, asks("eve")).unwrap();
    until(403, async || list("eve", "").await).await;
    // An invalid configuration leaves the old one in force.
    fs::write(&path, format!("{HEAD}- {{type: AlwaysAllow}}\n")).unwrap();
    let failed = "apiserver_authorization_config_controller_automatic_reloads_total{apiserver_id_hash=\"";
    let end = Instant::now() + PATIENCE;
    loop {
        let metrics = server.send("GET /metrics").await;
        if metrics.text().lines().any(|line| line.starts_with(failed) && line.contains("status=\"failure\""))
        {
            break;
        }
        assert!(Instant::now() < end, "the failure is not counted");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(list("eve", "").await.status, 403);
    server.stop().await;
}
