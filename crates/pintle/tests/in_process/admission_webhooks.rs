//! Tests admission webhooks on a whole server: those that answer wrongly, too much, or never. Each ends its own requests
//! with an error, and leaves nothing behind.

use crate::{
    harness::{Answer, Identity, PATIENCE, Server, options, whole},
    peers::Https,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming};
use pintle::StorageBackend;
use pintle_machinery::{Value, json};
use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Makes the body of an answer from the correct answer, which admits the object; with `None` there is no answer.
type Lie = fn(Value) -> Option<Bytes>;

/// A webhook in this process.
struct Webhook {
    url: String,
    ca: String,
    calls: Arc<Mutex<usize>>,
    lie: Arc<Mutex<Lie>>,
}

impl Webhook {
    async fn start() -> Webhook {
        let honest: Lie = |answer| Some(answer.to_string().into());
        let (calls, lie) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(honest)));
        let own = (calls.clone(), lie.clone());
        let answer = move |request| answer(request, own.0.clone(), own.1.clone());
        let Https { url, ca } = Https::serve(&["127.0.0.1"], answer).await;
        Webhook { url, ca: STANDARD.encode(ca), calls, lie }
    }

    fn lies(&self, lie: Lie) {
        *self.lie.lock().unwrap() = lie;
    }

    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }

    /// Registers the webhook for objects with the label `hook: yes`, as often as there are names.
    async fn register(&self, server: &Server, names: &[&str]) {
        self.register_with(server, names, &json!({})).await;
    }

    /// As [`Webhook::register`], with further fields in each webhook.
    async fn register_with(&self, server: &Server, names: &[&str], fields: &Value) {
        let webhooks: Vec<Value> = names
            .iter()
            .map(|name| {
                let mut webhook = json!({
                    "name": format!("{name}.example.com"),
                    "clientConfig": {"url": self.url, "caBundle": self.ca},
                    "rules": [{
                        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
                    }],
                    "objectSelector": {"matchLabels": {"hook": "yes"}},
                    "reinvocationPolicy": "IfNeeded",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                });
                for (field, value) in fields.as_object().unwrap() {
                    webhook[field] = value.clone();
                }
                webhook
            })
            .collect();
        let body = json!({"metadata": {"name": "hostile"}, "webhooks": webhooks}).to_string();
        let answer = server.exchange("POST", WEBHOOKS, &[JSON], body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
}

async fn answer(
    request: Request<Incoming>,
    calls: Arc<Mutex<usize>>,
    lie: Arc<Mutex<Lie>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    *calls.lock().unwrap() += 1;
    let right = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    let lie = *lie.lock().unwrap();
    match lie(right) {
        Some(body) => Ok(Response::new(Full::new(body))),
        None => std::future::pending().await,
    }
}

fn patch(mut answer: Value, operations: &Value) -> Option<Bytes> {
    answer["response"]["patchType"] = json!("JSONPatch");
    answer["response"]["patch"] = json!(STANDARD.encode(operations.to_string()));
    Some(answer.to_string().into())
}

async fn create(server: &Server, name: &str, hook: &str) -> Answer {
    let object = json!({"metadata": {"name": name, "labels": {"hook": hook}}, "data": {"a": "b"}});
    server.exchange("POST", MAPS, &[JSON], object.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_lie_end_their_requests_alone() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    webhook.register(&server, &["one"]).await;
    let lies: [(Lie, &str); 7] = [
        (|_| Some("nonsense".into()), "failed calling webhook \"one.example.com\""),
        (
            |mut answer| {
                answer["response"]["uid"] = json!("another");
                Some(answer.to_string().into())
            },
            "expected response.uid=",
        ),
        (|_| Some(Bytes::from(vec![b' '; 100 << 20])), "failed calling webhook \"one.example.com\""),
        (|answer| patch(answer, &json!([{"op": "remove", "path": "/no/such/field"}])), "/no/such/field"),
        (
            |answer| patch(answer, &json!([{"op": "replace", "path": "/data", "value": {"a": {"b": 1}}}])),
            "Internal error occurred",
        ),
        (
            |answer| {
                // Each operation doubles the object.
                let double = |n: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/{n}")});
                patch(answer, &(0..60).map(double).collect::<Value>())
            },
            "Internal error occurred",
        ),
        (
            |answer| {
                // Deeper than any object may be.
                let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
                let operations = format!(r#"[{{"op":"add","path":"/data","value":{deep}}}]"#);
                let mut answer = answer;
                answer["response"]["patchType"] = json!("JSONPatch");
                answer["response"]["patch"] = json!(STANDARD.encode(operations));
                Some(answer.to_string().into())
            },
            "Internal error occurred",
        ),
    ];
    for (lie, expected) in lies {
        webhook.lies(lie);
        let answer = create(&server, "a", "yes").await;
        assert_eq!(answer.status, 500, "{expected}: {}", answer.text());
        assert!(answer.str_at("/message").contains(expected), "{expected}: {}", answer.text());
        assert_eq!(server.send(&format!("GET {MAPS}/a")).await.status, 404, "{expected}");
        assert_eq!(create(&server, "other", "no").await.status, 201, "{expected}");
        assert_eq!(server.send(&format!("DELETE {MAPS}/other")).await.status, 200, "{expected}");
    }
    webhook.lies(|answer| patch(answer, &json!([{"op": "add", "path": "/data/x", "value": "y"}])));
    let answer = create(&server, "a", "yes").await;
    assert_eq!((answer.status, answer.str_at("/data/x")), (201, "y".to_owned()));
    server.stop().await;
}

/// Two webhooks that change the object again and again are called twice each.
#[tokio::test(flavor = "multi_thread")]
async fn loops_of_mutation_end() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    webhook.register(&server, &["one", "two"]).await;
    webhook.lies(|answer| {
        let path = format!("/data/{}", answer["response"]["uid"].as_str().unwrap());
        patch(answer, &json!([{"op": "add", "path": path, "value": "again"}]))
    });
    let answer = create(&server, "a", "yes").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(webhook.calls(), 4);
    assert_eq!(answer.json()["data"].as_object().unwrap().len(), 5);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_that_hang_hold_no_worker() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    webhook.register(&server, &["one"]).await;
    webhook.lies(|_| None);
    let client = server.client(Identity::Admin).await;
    let hanging: Vec<_> = (0..50)
        .map(|number| {
            let client = client.clone();
            let object = json!({"metadata": {"name": format!("a{number}"), "labels": {"hook": "yes"}}});
            tokio::spawn(async move { client.send(&format!("POST {MAPS}\n\n{object}")).await })
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    while webhook.calls() < 50 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(create(&server, "other", "no").await.status, 201);
    server.assert_lives().await;
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
    server.stop().await;
}

/// A call ends with its request, and then nothing is stored, whatever the failure policy is.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_stored_for_a_client_that_left() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    webhook
        .register_with(&server, &["hangs"], &json!({"failurePolicy": "Ignore", "timeoutSeconds": 30}))
        .await;
    webhook.lies(|_| None);
    let client = server.client(Identity::Admin).await;
    let object = json!({"metadata": {"name": "left", "labels": {"hook": "yes"}}}).to_string();
    let begun = tokio::spawn(async move { client.begin("POST", MAPS, &[JSON], whole(object)).await.is_ok() });
    while webhook.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let finished = async || {
        let metrics = server.send("GET /metrics").await;
        let series = "apiserver_request_post_timeout_total{source=\"rest-handler\",status=\"error\"} 1";
        metrics.text().lines().any(|line| line == series)
    };
    begun.abort();
    tokio::time::timeout(PATIENCE, async {
        while !finished().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(server.send(&format!("GET {MAPS}/left")).await.status, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_is_measured_by_webhook_policy_plugin_and_step() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    let conditions = json!([
        {"name": "failing", "expression": "object.data.none == ''"},
        {"name": "deciding", "expression": "object.metadata.name != 'excluded'"},
    ]);
    let fields = json!({"matchConditions": conditions, "failurePolicy": "Ignore"});
    webhook.register_with(&server, &["one"], &fields).await;
    assert_eq!(create(&server, "excluded", "yes").await.status, 201);
    assert_eq!(webhook.calls(), 0);
    let removed = server.send(&format!("DELETE {WEBHOOKS}/hostile")).await;
    assert_eq!(removed.status, 200, "{}", removed.text());
    webhook.register(&server, &["one"]).await;
    assert_eq!(create(&server, "called", "yes").await.status, 201);
    webhook.lies(|mut answer| {
        answer["response"]["allowed"] = json!(false);
        Some(answer.to_string().into())
    });
    assert_eq!(create(&server, "refused", "yes").await.status, 400);

    let policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic";
    let spec = json!({
        "matchConstraints": {
            "objectSelector": {"matchLabels": {"hook": "no"}},
            "resourceRules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            }],
        },
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{data: {'b': 'c'}}"}}],
        "reinvocationPolicy": "Never",
    });
    for (kind, spec) in [("ies", spec), ("ybindings", json!({"policyName": "adding"}))] {
        let object = json!({"metadata": {"name": "adding"}, "spec": spec}).to_string();
        let answer = server.exchange("POST", &format!("{policies}{kind}"), &[JSON], object).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    assert_eq!(create(&server, "changed", "no").await.str_at("/data/b"), "c");

    let metrics = server.send("GET /metrics").await;
    let create = r#"operation="CREATE""#;
    let expected = [
        // Webhooks.
        format!(r#"webhook_request_total{{code="200",name="one.example.com",{create},rejected="false",type="admit"}} 1"#),
        format!(r#"webhook_request_total{{code="400",name="one.example.com",{create},rejected="true",type="admit"}} 1"#),
        format!(
            r#"webhook_rejection_count{{error_type="no_error",name="one.example.com",{create},rejection_code="400",type="admit"}} 1"#
        ),
        format!(
            r#"webhook_admission_duration_seconds_count{{name="one.example.com",{create},rejected="false",type="admit"}} 1"#
        ),
        format!(r#"match_condition_exclusions_total{{kind="webhook",name="one.example.com",{create},type="admit"}} 1"#),
        format!(
            r#"match_condition_evaluation_errors_total{{kind="webhook",name="one.example.com",{create},type="admit"}} 1"#
        ),
        format!(
            r#"match_condition_evaluation_seconds_count{{kind="webhook",name="one.example.com",{create},type="admit"}} 1"#
        ),
        // Plugins and steps.
        format!(
            r#"controller_admission_duration_seconds_count{{name="MutatingAdmissionWebhook",{create},rejected="true",type="admit"}} 1"#
        ),
        format!(r#"step_admission_duration_seconds_count{{{create},rejected="true",type="admit"}} 1"#),
        format!(r#"step_admission_duration_seconds_summary_count{{{create},rejected="true",type="admit"}} 1"#),
        format!(r#"step_admission_duration_seconds_summary{{{create},rejected="true",type="admit",quantile="0.99"}} 0."#),
    ]
    .map(|line| format!("\napiserver_admission_{line}"));
    let adding = r#"error_type="no_error",policy="adding",policy_binding="adding""#;
    let of_others = [
        format!("\napiserver_mutating_admission_policy_check_total{{{adding}}} 1\n"),
        format!("\napiserver_mutating_admission_policy_check_duration_seconds_count{{{adding}}} 1\n"),
        "\n# TYPE apiserver_cel_compilation_duration_seconds histogram\n".to_owned(),
        "\n# TYPE apiserver_cel_evaluation_duration_seconds histogram\n".to_owned(),
    ];
    for line in expected.iter().chain(&of_others) {
        assert!(metrics.text().contains(line), "{line} is missing in {}", metrics.text());
    }
    server.stop().await;
}

/// A webhook that cannot be called and matches everything stops neither the start of a server nor its own removal.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_with_a_broken_webhook_for_everything() {
    let dir = tempfile::tempdir().unwrap();
    let embedded = || {
        let mut options = options(dir.path());
        options.storage_backend = StorageBackend::Embedded;
        options
    };
    let server = Server::start_in(embedded()).await;
    let webhooks = json!([{
        "name": "broken.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    }]);
    for kind in ["mutating", "validating"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        let body = json!({"metadata": {"name": "broken"}, "webhooks": webhooks}).to_string();
        let answer = server.exchange("POST", &path, &[JSON], body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    assert_eq!(create(&server, "a", "no").await.status, 500);
    server.stop().await;

    let server = Server::start_in(embedded()).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ready = server.send("GET /readyz?verbose").await;
        if ready.status == 200 {
            break;
        }
        assert!(Instant::now() < deadline, "{}", ready.text());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(create(&server, "a", "no").await.status, 500, "the webhook is not in force");
    for kind in ["mutating", "validating"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/broken");
        assert_eq!(server.send(&format!("DELETE {path}")).await.status, 200);
    }
    let answer = create(&server, "a", "no").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    server.stop().await;
}
