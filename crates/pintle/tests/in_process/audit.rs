//! Tests audit events: the events of requests, failing backends, and the webhook backend.

mod webhook;

use crate::harness::{Identity, PATIENCE, Server, plain_user};
use pintle::Options;
use pintle_jwt::SigningKey;
use pintle_machinery::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
use tokio::{
    io::AsyncWriteExt,
    time::{Instant, sleep, timeout},
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Options with this policy, and a log in the data directory.
pub(crate) fn audited(rules: &str) -> impl FnOnce(&mut Options) {
    let policy = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    move |options| {
        plain_user(options);
        let path = options.data_dir.join("policy.yaml");
        fs::write(&path, policy).unwrap();
        options.audit.policy_file = Some(path);
        options.audit.log.path = Some(options.data_dir.join("audit.log"));
    }
}

fn events(options: &Path) -> Vec<Value> {
    let text = fs::read_to_string(options.join("audit.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events of a request, once there are `count` of them.
pub(crate) async fn events_of(dir: &Path, id: &str, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found: Vec<_> = events(dir).into_iter().filter(|event| event["auditID"] == id).collect();
        if found.len() >= count || Instant::now() > deadline {
            assert_eq!(found.len(), count, "{found:?}");
            return found;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

fn stages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["stage"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_more_than_half_a_second_have_the_times_of_their_layers() {
    let server = Server::start_with(audited("rules:\n- level: Metadata")).await;
    let dir = server.dir().to_owned();
    let times = |event: &Value| {
        let annotations = event["annotations"].as_object().unwrap().clone();
        let times = annotations.into_iter().filter_map(|(key, time)| {
            Some((key.strip_prefix("apiserver.latency.k8s.io/")?.to_owned(), time.as_str()?.to_owned()))
        });
        times.collect::<BTreeMap<String, String>>()
    };
    server.send(&format!("GET {MAPS}?limit=1\nAudit-ID: fast")).await;
    assert_eq!(times(&events_of(&dir, "fast", 2).await[1]), BTreeMap::new());
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=1");
    server
        .send(&format!(
            "GET {watch}\nAudit-ID: slow\nImpersonate-User: jane\nImpersonate-Group: system:masters"
        ))
        .await;
    let slow = times(&events_of(&dir, "slow", 3).await[2]);
    let layers: Vec<&str> = slow.keys().map(String::as_str).collect();
    assert_eq!(layers, ["authentication", "authorization", "impersonation", "total"]);
    assert!(slow["total"].starts_with("1.") && slow["total"].ends_with('s'), "{slow:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_level_tells_what_it_should() {
    let server = Server::start_with(audited(
        "omitManagedFields: true\nrules:\n- {level: None, nonResourceURLs: ['/healthz*']}\n- {level: RequestResponse, \
         resources: [{group: '', resources: [configmaps, serviceaccounts/token]}]}\n- {level: Metadata, omitStages: [RequestReceived]}",
    ))
    .await;
    let dir = server.dir().to_owned();
    let body = "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"<v>\"}}";
    let answer = server.send(&format!("POST {MAPS}\nAudit-ID: create\n\n{body}")).await;
    assert_eq!((answer.status, answer.header("audit-id")), (201, "create"));
    let events = events_of(&dir, "create", 2).await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseComplete"]);
    let event = &events[1];
    assert_eq!(event["requestObject"]["data"], json!({"k": "<v>"}));
    assert_eq!(event["responseObject"]["metadata"]["name"], "a");
    assert!(event["responseObject"]["metadata"].get("managedFields").is_none(), "{event}");
    assert_eq!(event["objectRef"]["name"], "a");
    assert_eq!(event["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(event["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "allow");

    // The patch of an apply is as it was sent.
    let apply = "Content-Type: application/apply-patch+yaml";
    let path = format!("{MAPS}/b?fieldManager=m");
    let patch = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"},"data":{"z":"1","a":"2"}}"#;
    let yaml = "{kind: ConfigMap, apiVersion: v1, data: {z: '1'}}";
    let sorted = r#"{"apiVersion":"v1","data":{"z":"1"},"kind":"ConfigMap"}"#;
    for (id, body, noted) in [("json", patch, patch), ("yaml", yaml, sorted)] {
        server.send(&format!("PATCH {path}\nAudit-ID: {id}\n{apply}\n\n{body}")).await;
        events_of(&dir, id, 2).await;
        let text = fs::read_to_string(dir.join("audit.log")).unwrap();
        assert!(text.contains(&format!("\"requestObject\":{noted}")), "{noted} is not in {text}");
    }

    // The same object in an encoding other than JSON.
    let protobuf = "Accept: application/vnd.kubernetes.protobuf";
    for (path, id) in [(format!("{MAPS}/a"), "get"), (MAPS.to_owned(), "list")] {
        server.send(&format!("GET {path}\nAudit-ID: {id}\n{protobuf}")).await;
        let events = events_of(&dir, id, 2).await;
        let object = &events[1]["responseObject"];
        let object = if id == "list" { &object["items"][0] } else { object };
        assert_eq!(object["data"], json!({"k": "<v>"}), "{:?}", events[1]);
        assert!(object["metadata"].get("managedFields").is_none());
    }

    // A body of another kind than the resource's has its defaults.
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    server.send(&format!("POST {accounts}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}")).await;
    let answer = server.send(&format!("POST {accounts}/a/token\nAudit-ID: token\n\n{{}}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let events = events_of(&dir, "token", 2).await;
    assert_eq!(events[1]["requestObject"]["spec"]["expirationSeconds"], 3600, "{:?}", events[1]);

    // At the metadata level, events have no objects.
    server
        .send("POST /api/v1/namespaces/default/secrets\nAudit-ID: secret\n\n{\"metadata\":{\"name\":\"s\"}}")
        .await;
    let events = events_of(&dir, "secret", 1).await;
    assert_eq!(stages(&events), ["ResponseComplete"]);
    assert!(events[0].get("requestObject").is_none() && events[0].get("responseObject").is_none());

    server.send("GET /healthz/ping\nAudit-ID: health").await;
    let answer = server.send(&format!("GET {MAPS}/none\nAudit-ID: none")).await;
    assert_eq!(answer.status, 404);
    let events = events_of(&dir, "none", 2).await;
    assert_eq!(events[1]["responseStatus"]["reason"], "NotFound");
    assert_eq!(events_of(&dir, "health", 0).await, Vec::<Value>::new());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_in_a_form_that_was_not_negotiated_are_not_recorded() {
    let server = Server::start_with(audited("rules: [{level: RequestResponse}]")).await;
    let dir = server.dir().to_owned();
    let check = async |id: &str, request: &str, code: u16, reason: Option<&str>| {
        let answer = server.send(&request.replacen('\n', &format!("\nAudit-ID: {id}\n"), 1)).await;
        assert_eq!(answer.status, code, "{}", answer.text());
        let event = events_of(&dir, id, 2).await.remove(1);
        let found = event["responseStatus"].get("reason").and_then(Value::as_str);
        assert_eq!((found, event.get("responseObject").is_some()), (reason, reason.is_some()), "{event}");
    };
    check("json", &format!("GET {MAPS}/none\n"), 404, Some("NotFound")).await;
    check("html", &format!("GET {MAPS}/none\nAccept: text/html"), 406, None).await;
    let table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io";
    check("table", &format!("GET {MAPS}/none\n{table}"), 404, None).await;
    check("refused", "POST /openid/v1/jwks\nAccept: text/html", 405, None).await;

    let nobody = server.client(Identity::Nobody).await;
    let uri = format!("{MAPS}?access_token=x");
    let wrong = "Authorization: Bearer wrong";
    let answer = nobody.send(&format!("GET {uri}\nAudit-ID: wrong\nAccept: text/html\n{wrong}")).await;
    assert_eq!(answer.status, 401);
    let event = events_of(&dir, "wrong", 1).await.remove(0);
    let message = "Authentication failed, attempted: bearer, access_token";
    assert_eq!(event["responseStatus"], json!({"metadata": {}, "message": message, "code": 401}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_ends_early_is_recorded_as_go_reads_it() {
    let server = Server::start_with(audited("rules: [{level: Metadata}]")).await;
    let dir = server.dir().to_owned();
    let mut stream = server.raw(Identity::Admin).await;
    let request =
        format!("POST {MAPS} HTTP/1.1\r\nHost: x\r\nAudit-ID: short\r\nContent-Length: 100\r\n\r\n{{");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    events_of(&dir, "short", 1).await;
    drop(stream);
    let event = events_of(&dir, "short", 2).await.remove(1);
    let status = &event["responseStatus"];
    assert_eq!((&status["code"], &status["message"]), (&json!(500), &json!("unexpected EOF")), "{event}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deprecation_of_a_version_is_noted_when_its_request_ends() {
    let server = Server::start_with(audited("rules: [{level: Metadata}]")).await;
    let dir = server.dir().to_owned();
    let endpoints = "/api/v1/namespaces/default/endpoints";
    server.send(&format!("GET {endpoints}?watch=1&timeoutSeconds=1\nAudit-ID: watch")).await;
    let events = events_of(&dir, "watch", 3).await;
    let noted = |event: &Value| event["annotations"].get("k8s.io/deprecated").is_some();
    assert_eq!(events.iter().map(noted).collect::<Vec<_>>(), [false, false, true], "{events:?}");
    server.send(&format!("GET {endpoints}\nAudit-ID: refused\nAccept: text/html")).await;
    assert!(!events_of(&dir, "refused", 2).await.iter().any(noted));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_are_told_of_three_times_and_refusals_too() {
    let server = Server::start_with(audited("rules: [{level: Metadata}]")).await;
    let dir = server.dir().to_owned();
    let watch = server.watch(&format!("{MAPS}?watch=1"), &[("audit-id", "watch")]).await;
    assert_eq!(stages(&events_of(&dir, "watch", 2).await), ["RequestReceived", "ResponseStarted"]);
    drop(watch);
    let events = events_of(&dir, "watch", 3).await;
    assert_eq!(stages(&events), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    assert_eq!(events[2]["responseStatus"]["code"], 200);

    let nobody = server.client(Identity::Nobody).await;
    let answer = nobody.send(&format!("GET {MAPS}\nAudit-ID: wrong\nAuthorization: Bearer wrong")).await;
    assert_eq!(answer.status, 401);
    let events = events_of(&dir, "wrong", 1).await;
    assert_eq!((stages(&events), &events[0]["user"]), (vec!["ResponseStarted"], &json!({})));
    assert_eq!(events[0]["responseStatus"]["reason"], "Unauthorized");
    assert!(!fs::read_to_string(dir.join("audit.log")).unwrap().contains("Bearer"));

    let answer = nobody.send(&format!("GET {MAPS}\nAudit-ID: plain\nAuthorization: Bearer plain")).await;
    assert_eq!(answer.status, 403);
    let events = events_of(&dir, "plain", 2).await;
    assert_eq!(events[1]["user"]["username"], "jane");
    assert_eq!(events[1]["annotations"]["authorization.k8s.io/decision"], "forbid");
    let answer = nobody.send("GET /metrics\nAudit-ID: path\nAuthorization: Bearer plain").await;
    assert_eq!(answer.status, 403);
    let events = events_of(&dir, "path", 2).await;
    assert_eq!(events[1]["responseStatus"]["reason"], "Forbidden");
    // A refusal in a form that the client does not accept is not recorded.
    let answer =
        nobody.send("GET /metrics\nAudit-ID: form\nAccept: text/x\nAuthorization: Bearer plain").await;
    assert_eq!(answer.status, 403);
    let events = events_of(&dir, "form", 2).await;
    assert_eq!(events[1]["responseStatus"], json!({"metadata": {}, "code": 403}));

    server.send(&format!("GET {MAPS}\nAudit-ID: as\nImpersonate-User: joe")).await;
    let events = events_of(&dir, "as", 2).await;
    assert_eq!(events[1]["impersonatedUser"], json!({"username": "joe", "groups": ["system:authenticated"]}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strict_log_that_fails_stops_requests_and_another_does_not() {
    for (mode, expected) in [("blocking-strict", 500), ("blocking", 200)] {
        let server = Server::start_with(|options| {
            audited("rules: [{level: Metadata}]")(options);
            // Every write to the log fails.
            options.audit.log.path = Some("/dev/full".into());
            options.audit.log.max_size = 0;
            options.audit.log.delivery.mode = mode.to_owned();
        })
        .await;
        let answer = server.send(&format!("GET {MAPS}")).await;
        assert_eq!(answer.status, expected, "{}", answer.text());
        if mode == "blocking-strict" {
            let text = "Internal Server Error: \"/api/v1/namespaces/default/configmaps\": failed to store audit event\n";
            assert_eq!(answer.text(), text);
        } else {
            let metrics = server.send("GET /metrics").await.text().to_owned();
            assert!(metrics.contains("apiserver_audit_error_total{plugin=\"log\"} "), "{metrics}");
            assert!(metrics.contains("apiserver_audit_requests_rejected_total 0"));
            assert!(metrics.contains("apiserver_audit_level_total{level=\"Metadata\"} "));
        }
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_events_are_sent_before_the_server_ends() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let server = Server::start_with(|options| {
        audited("rules: [{level: Metadata}]")(options);
        options.audit.log.path = Some(log.clone());
        options.audit.log.delivery.mode = "batch".to_owned();
        options.audit.log.delivery.batch_max_size = 1000;
        options.audit.log.delivery.batch_max_wait = Duration::from_secs(3600);
    })
    .await;
    server.send(&format!("GET {MAPS}\nAudit-ID: late")).await;
    assert_eq!(fs::read_to_string(&log).unwrap(), "");
    timeout(PATIENCE, server.stop()).await.unwrap();
    assert_eq!(events_of(dir.path(), "late", 2).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_annotated() {
    let server = Server::start_with(audited("rules:\n- {level: Metadata}")).await;
    let dir = server.dir().to_owned();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"metadata": {"name": "bot"}, "secrets": [{"name": "made"}]});
    let account = server.send(&format!("POST {accounts}\n\n{account}")).await;
    let uid = account.str_at("/metadata/uid");

    let issued = server.send(&format!("POST {accounts}/bot/token\nAudit-ID: issue\n\n{{}}")).await;
    assert_eq!(issued.status, 201, "{}", issued.text());
    let event = events_of(&dir, "issue", 2).await.remove(1);
    let id = event["annotations"]["authentication.kubernetes.io/issued-credential-id"].as_str().unwrap();
    assert!(id.starts_with("JTI="), "{event}");
    let nobody = server.client(Identity::Nobody).await;
    let version = async |audit_id: &str, token: &str| {
        nobody.send(&format!("GET /version\nAudit-ID: {audit_id}\nAuthorization: Bearer {token}")).await
    };
    version("use", &issued.str_at("/status/token")).await;
    let event = events_of(&dir, "use", 2).await.remove(1);
    assert_eq!(event["user"]["extra"]["authentication.kubernetes.io/credential-id"], json!([id]));

    // Tokens of secrets, with and without a reference from the account.
    let key = SigningKey::from_pem(&fs::read(dir.join("certs/service-account.key")).unwrap()).unwrap();
    let warning = "299 - \"Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
                   auto-generated secret-based tokens.\"";
    let store = async |secret: &str, labels: Value| {
        let prefix = "kubernetes.io/serviceaccount";
        let claims = json!({
            "iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:bot",
            (format!("{prefix}/namespace")): "default", (format!("{prefix}/secret.name")): secret,
            (format!("{prefix}/service-account.name")): "bot", (format!("{prefix}/service-account.uid")): uid,
        });
        let token = key.sign_token(claims.to_string().as_bytes()).unwrap();
        let annotations = json!({"kubernetes.io/service-account.name": "bot"});
        let object = json!({
            "metadata": {"name": secret, "annotations": annotations, "labels": labels},
            "type": "kubernetes.io/service-account-token", "stringData": {"token": token},
        });
        let stored = server.send(&format!("POST /api/v1/namespaces/default/secrets\n\n{object}")).await;
        assert_eq!(stored.status, 201, "{}", stored.text());
        token
    };
    for (secret, how, expected) in [("made", "autogenerated", warning), ("own", "manual", "")] {
        let token = store(secret, json!({})).await;
        // The second request is answered from the cache of tokens.
        for round in ["first", "second"] {
            let audit_id = format!("{secret}-{round}");
            let answer = version(&audit_id, &token).await;
            assert_eq!((answer.status, answer.header("warning")), (200, expected));
            for event in events_of(&dir, &audit_id, 2).await {
                let annotations = &event["annotations"];
                assert_eq!(
                    annotations["authentication.k8s.io/legacy-token"],
                    "system:serviceaccount:default:bot"
                );
                assert_eq!(annotations[format!("authentication.k8s.io/legacy-token-{how}-secret")], secret);
            }
        }
        let labelled = server.send(&format!("GET /api/v1/namespaces/default/secrets/{secret}")).await;
        assert!(labelled.text().contains("kubernetes.io/legacy-token-last-used"), "{}", labelled.text());
    }
    let token = store("off", json!({"kubernetes.io/legacy-token-invalid-since": "2020-01-01"})).await;
    assert_eq!(version("off", &token).await.status, 401);
    let event = events_of(&dir, "off", 1).await.remove(0);
    assert_eq!(event["annotations"]["authentication.k8s.io/legacy-token-invalidated"], "off/default");
    server.stop().await;
}
