//! Tests versions of custom resources that a webhook converts, and webhooks that convert wrongly.

use crate::{
    audit::{audited, events_of},
    harness::{PATIENCE, Server},
    peers::Https,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming};
use pintle_machinery::{Value, json};
use pintle_storage::Key;
use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::sync::watch;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/lamps";
const V2: &str = "/apis/example.com/v2/namespaces/default/lamps";
const MERGE: &str = "Content-Type: application/merge-patch+json";
const APPLY: &str = "Content-Type: application/apply-patch+yaml";

/// Changes the webhook's correct response; with `None` it does not respond while there is a [`Webhook`].
type Lie = fn(Value) -> Option<Value>;

/// A webhook in this process. In `v1` a lamp has `spec.watts`, in `v2` the same value as text in `spec.power`.
struct Webhook {
    port: u16,
    ca: String,
    /// The number of objects in each review.
    asked: Arc<Mutex<Vec<usize>>>,
    lie: Arc<Mutex<Lie>>,
    /// Ends with the webhook.
    _life: watch::Sender<()>,
}

impl Webhook {
    async fn start() -> Webhook {
        let (asked, lie) = (Arc::<Mutex<Vec<usize>>>::default(), Arc::new(Mutex::new(Some as Lie)));
        let life = watch::Sender::new(());
        let own = (asked.clone(), lie.clone(), life.subscribe());
        let names = ["127.0.0.1", "lamps.default.svc"];
        let answer = move |request| answer(request, own.0.clone(), own.1.clone(), own.2.clone());
        let Https { url, ca } = Https::serve(&names, answer).await;
        let port = url.rsplit(':').next().unwrap().parse().unwrap();
        Webhook { port, ca: STANDARD.encode(ca), asked, lie, _life: life }
    }

    fn definition(&self) -> Value {
        let version = |name: &str, storage: bool, field: &str, ty: &str| {
            json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {field: {"type": ty}}}},
            }}})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "lamps.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "lamps", "kind": "Lamp"},
                "versions": [version("v1", true, "watts", "integer"), version("v2", false, "power", "string")],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "clientConfig": {"url": format!("https://127.0.0.1:{}/convert", self.port), "caBundle": self.ca},
                    "conversionReviewVersions": ["v1"],
                }},
            },
        })
    }

    fn lies(&self, lie: Lie) {
        *self.lie.lock().unwrap() = lie;
    }

    fn take_asked(&self) -> Vec<usize> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: Arc<Mutex<Vec<usize>>>,
    lie: Arc<Mutex<Lie>>,
    mut life: watch::Receiver<()>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let version = review["request"]["desiredAPIVersion"].clone();
    let objects = review["request"]["objects"].as_array().unwrap();
    asked.lock().unwrap().push(objects.len());
    let convert = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = version.clone();
        let spec = &object["spec"];
        object["spec"] = match version.as_str().unwrap() {
            "example.com/v2" => json!({"power": spec["watts"].as_i64().map(|watts| format!("{watts} W"))}),
            _ => {
                json!({"watts": spec["power"].as_str().and_then(|power| power.strip_suffix(" W")?.parse::<i64>().ok())})
            }
        };
        object
    };
    let right = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": review["request"]["uid"],
        "convertedObjects": objects.iter().map(convert).collect::<Vec<_>>(),
        "result": {"status": "Success"},
    }});
    let lie = *lie.lock().unwrap();
    let body = match lie(right) {
        Some(answer) => answer.to_string().into(),
        None => {
            let _ended = life.changed().await;
            Bytes::new()
        }
    };
    Ok(Response::new(Full::new(body)))
}

async fn define(server: &Server, definition: &Value) {
    let answer = server.send(&format!("POST {DEFINITIONS}\n\n{definition}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let deadline = Instant::now() + PATIENCE;
    while server.send(&format!("GET {V1}")).await.status != 200 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn lamp(version: &str, name: &str, spec: Value) -> String {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Lamp", "metadata": {"name": name}, "spec": spec,
    })
    .to_string()
}

/// Sends a request and returns the `spec` of the response.
async fn spec(server: &Server, request: &str) -> Value {
    let answer = server.send(request).await;
    assert!(answer.status < 300, "{request}: {}", answer.text());
    answer.json()["spec"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_read_and_written_in_every_version() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &webhook.definition()).await;
    let mut watch = server.watch(&format!("{V2}?watch=1"), &[]).await;
    let post = |path: &str, body: String| format!("POST {path}\n\n{body}");
    assert_eq!(spec(&server, &post(V1, lamp("v1", "a", json!({"watts": 5})))).await, json!({"watts": 5}));
    assert!(webhook.take_asked().iter().sum::<usize>() <= 1, "only the watcher wants another version");
    assert_eq!(
        spec(&server, &post(V2, lamp("v2", "b", json!({"power": "7 W"})))).await,
        json!({"power": "7 W"})
    );
    assert_eq!(spec(&server, &format!("GET {V1}/b")).await, json!({"watts": 7}));
    assert_eq!(spec(&server, &format!("GET {V2}/a")).await, json!({"power": "5 W"}));
    for (name, power) in [("a", "5 W"), ("b", "7 W")] {
        let event: Value = serde_json::from_str(&watch.next().await.unwrap()).unwrap();
        assert_eq!(event["object"]["apiVersion"], "example.com/v2");
        assert_eq!(
            (&event["object"]["metadata"]["name"], &event["object"]["spec"]["power"]),
            (&json!(name), &json!(power))
        );
    }
    let patch = format!("PATCH {V2}/a\n{MERGE}\n\n{{\"spec\":{{\"power\":\"9 W\"}}}}");
    assert_eq!(spec(&server, &patch).await, json!({"power": "9 W"}));
    assert_eq!(spec(&server, &format!("GET {V1}/a")).await, json!({"watts": 9}));
    let applied = lamp("v2", "a", json!({"power": "11 W"}));
    let apply = format!("PATCH {V2}/a?fieldManager=m&force=true\n{APPLY}\n\n{applied}");
    assert_eq!(spec(&server, &apply).await, json!({"power": "11 W"}));
    let mut object = server.send(&format!("GET {V2}/b")).await.json();
    object["spec"]["power"] = json!("8 W");
    assert_eq!(spec(&server, &format!("PUT {V2}/b\n\n{object}")).await, json!({"power": "8 W"}));
    let list = server.send(&format!("GET {V1}")).await.json();
    let watts: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| &item["spec"]["watts"]).collect();
    assert_eq!(watts, [&json!(11), &json!(8)]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_list_are_converted_in_one_review() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &webhook.definition()).await;
    for index in 0..20 {
        let body = lamp("v1", &format!("l{index}"), json!({"watts": index}));
        assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    }
    webhook.take_asked();
    // Stored objects have no revision of their own.
    webhook.lies(|answer| {
        let objects = answer["response"]["convertedObjects"].as_array()?;
        let is_stored = |object: &Value| object["metadata"]["resourceVersion"].is_null();
        objects.iter().all(is_stored).then_some(answer.clone())
    });
    let list = server.send(&format!("GET {V2}")).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 20);
    assert!(
        list["items"].as_array().unwrap().iter().all(|item| item["metadata"]["resourceVersion"].is_string())
    );
    assert_eq!(webhook.take_asked(), [20]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_storage_version_is_that_of_what_is_written_from_then_on() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    let mut definition = webhook.definition();
    define(&server, &definition).await;
    for name in ["old", "rewritten"] {
        let body = lamp("v1", name, json!({"watts": 5}));
        assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    }
    let stored = |name: &'static str| {
        let storage = server.storage();
        async move {
            let key = Key::new(format!("/registry/example.com/lamps/default/{name}"));
            let kv = storage.get(&key).await.unwrap().kv.unwrap();
            let object: Value = serde_json::from_slice(&kv.value).unwrap();
            (object["apiVersion"].clone(), object["spec"].clone())
        }
    };
    for (index, version) in definition["spec"]["versions"].as_array_mut().unwrap().iter_mut().enumerate() {
        version["storage"] = json!(index == 1);
    }
    let patch = json!({"spec": {"versions": definition["spec"]["versions"]}});
    let answer = server.send(&format!("PATCH {DEFINITIONS}/lamps.example.com\n{MERGE}\n\n{patch}")).await;
    assert_eq!(answer.json()["status"]["storedVersions"], json!(["v1", "v2"]));
    let deadline = Instant::now() + PATIENCE;
    loop {
        // The changed definition is served a moment later.
        let label =
            format!("{{\"metadata\":{{\"labels\":{{\"at\":\"t{}\"}}}}}}", deadline.elapsed().as_nanos());
        let answer = server.send(&format!("PATCH {V1}/rewritten\n{MERGE}\n\n{label}")).await;
        assert_eq!(answer.json()["spec"], json!({"watts": 5}), "{}", answer.text());
        if stored("rewritten").await == (json!("example.com/v2"), json!({"power": "5 W"})) {
            break;
        }
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(stored("old").await, (json!("example.com/v1"), json!({"watts": 5})));
    assert_eq!(spec(&server, &format!("GET {V1}/old")).await, json!({"watts": 5}));
    assert_eq!(spec(&server, &format!("GET {V2}/old")).await, json!({"power": "5 W"}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_that_lie_end_their_requests_alone() {
    const FOR: &str = "conversion webhook for example.com/v1, Kind=Lamp";
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &webhook.definition()).await;
    let body = lamp("v1", "a", json!({"watts": 5}));
    assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    let lies: [(Lie, &str); 5] = [
        (
            |_| Some(json!("no")),
            "failed: couldn't get version/kind; json parse error: json: cannot unmarshal string",
        ),
        (
            |mut answer| {
                answer["response"]["result"] = json!({"status": "Failed", "message": "the bulb is broken"});
                Some(answer)
            },
            "failed: the bulb is broken",
        ),
        (
            |mut answer| {
                answer["response"]["convertedObjects"][0]["metadata"]["name"] = json!("b");
                Some(answer)
            },
            "returned invalid object: must have the same name: a != b",
        ),
        (
            |mut answer| {
                answer["response"]["convertedObjects"][0]["apiVersion"] = json!("example.com/v3");
                Some(answer)
            },
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
        ),
        (
            |mut answer| {
                answer["response"]["convertedObjects"] = json!([]);
                Some(answer)
            },
            "returned 0 objects, expected 1",
        ),
    ];
    for (lie, expected) in lies {
        webhook.lies(lie);
        let answer = server.send(&format!("GET {V2}/a")).await;
        assert_eq!(answer.status, 500);
        let message = answer.str_at("/message");
        assert!(message.starts_with(&format!("{FOR} {expected}")), "{message}");
        let patch = format!("PATCH {V2}/a\n{MERGE}\n\n{{\"spec\":{{\"power\":\"1 W\"}}}}");
        assert_eq!(server.send(&patch).await.status, 500);
    }
    webhook.lies(Some);
    assert_eq!(spec(&server, &format!("GET {V2}/a")).await, json!({"power": "5 W"}));
    let metrics = server.send("GET /metrics").await;
    let counted = "apiserver_conversion_webhook_request_total{failure_type=\"conversion_webhook_partial_response_failure\",result=\"failure\"}";
    assert!(metrics.text().contains(counted));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_holds_up_nobody_else() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &webhook.definition()).await;
    let body = lamp("v1", "a", json!({"watts": 5}));
    assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    webhook.lies(|_| None);
    let client = server.client(crate::harness::Identity::Admin).await;
    let hanging: Vec<_> = (0..50)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(&format!("GET {V2}/a")).await })
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    while webhook.asked.lock().unwrap().len() < 50 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(spec(&server, &format!("GET {V1}/a")).await, json!({"watts": 5}));
    server.assert_lives().await;
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
    drop(webhook);
    server.stop().await;
}

/// They failed, whether their time was over or their client is gone.
#[tokio::test(flavor = "multi_thread")]
async fn reads_without_a_response_are_counted_and_audited() {
    let (server, webhook) =
        (Server::start_with(audited("rules: [{level: Metadata}]")).await, Webhook::start().await);
    define(&server, &webhook.definition()).await;
    let body = lamp("v1", "a", json!({"watts": 5}));
    assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    webhook.lies(|_| None);
    let late = server.send(&format!("GET {V2}/a?timeout=50ms\nAudit-ID: late")).await;
    assert_eq!(late.status, 504);
    let client = server.client(crate::harness::Identity::Admin).await;
    webhook.take_asked();
    let gone = tokio::spawn(async move { client.send(&format!("GET {V2}/a\nAudit-ID: gone")).await });
    let deadline = Instant::now() + PATIENCE;
    while webhook.asked.lock().unwrap().is_empty() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    gone.abort();
    for (id, why) in [("late", "context deadline exceeded"), ("gone", "context canceled")] {
        let events = events_of(server.dir(), id, 2).await;
        let status = json!({"metadata": {}, "status": "Failure", "message": why, "code": 500});
        assert_eq!(events[1]["responseStatus"], status);
    }
    let metrics = server.send("GET /metrics").await;
    let route = "component=\"apiserver\",dry_run=\"\",group=\"example.com\",resource=\"lamps\"";
    let rest = "scope=\"resource\",subresource=\"\",verb=\"GET\",version=\"v2\"} 2\n";
    for counted in [
        format!("apiserver_request_total{{code=\"500\",{route},{rest}"),
        format!("apiserver_request_terminations_total{{code=\"504\",{route},{rest}")
            .replace("dry_run=\"\",", ""),
        "apiserver_request_post_timeout_total{source=\"timeout-handler\",status=\"ok\"} 2\n".to_owned(),
    ] {
        assert!(metrics.text().contains(&counted), "{counted}");
    }
    drop(webhook);
    server.stop().await;
}

/// Managed fields of another version are converted by the webhook without blocking a worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_hangs_holds_no_worker_for_the_owners_of_fields() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &webhook.definition()).await;
    let applied = lamp("v2", "a", json!({"power": "5 W"}));
    let apply = format!("PATCH {V2}/a?fieldManager=m\n{APPLY}\n\n{applied}");
    assert_eq!(spec(&server, &apply).await, json!({"power": "5 W"}));
    webhook.take_asked();
    webhook.lies(|_| None);
    let client = server.client(crate::harness::Identity::Admin).await;
    let hanging: Vec<_> = (0..20)
        .map(|watts| {
            let client = client.clone();
            let request = match watts % 2 {
                0 => format!("PATCH {V1}/a\n{MERGE}\n\n{}", json!({"spec": {"watts": watts}})),
                _ => {
                    let applied = lamp("v1", "a", json!({"watts": watts}));
                    format!("PATCH {V1}/a?fieldManager=other&force=true\n{APPLY}\n\n{applied}")
                }
            };
            tokio::spawn(async move { client.send(&request).await })
        })
        .collect();
    let deadline = Instant::now() + PATIENCE;
    while webhook.asked.lock().unwrap().len() < 20 {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    server.assert_lives().await;
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
    // The webhook's conversion then decides on the owners.
    webhook.lies(Some);
    let client = server.client(crate::harness::Identity::Admin).await;
    let applied = lamp("v1", "a", json!({"watts": 7}));
    let conflict = client.send(&format!("PATCH {V1}/a?fieldManager=other\n{APPLY}\n\n{applied}")).await;
    assert_eq!(conflict.status, 409, "{}", conflict.text());
    let forced =
        client.send(&format!("PATCH {V1}/a?fieldManager=other&force=true\n{APPLY}\n\n{applied}")).await;
    assert_eq!(forced.json()["spec"], json!({"watts": 7}), "{}", forced.text());
    let answer = client.send(&format!("GET {V1}/a")).await;
    let managers = answer.json()["metadata"]["managedFields"].clone();
    assert_eq!(managers.as_array().unwrap().len(), 1, "{managers}");
    // The writes that were started end before the server does.
    drop(webhook);
    server.stop().await;
}

/// The definition of lamps with selectable fields: `spec.watts` in `v1`, `spec.power` in `v2`.
fn selectable(webhook: &Webhook) -> Value {
    let mut definition = webhook.definition();
    for (index, field) in [".spec.watts", ".spec.power"].into_iter().enumerate() {
        definition["spec"]["versions"][index]["selectableFields"] = json!([{"jsonPath": field}]);
    }
    definition
}

/// The names of the items in a list.
async fn names(server: &Server, request: &str) -> Vec<String> {
    let answer = server.send(request).await;
    assert_eq!(answer.status, 200, "{request}: {}", answer.text());
    let list = answer.json();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_match_objects_in_the_version_of_the_request() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &selectable(&webhook)).await;
    for (name, watts) in [("a", 5), ("b", 60), ("c", 5), ("d", 7), ("e", 5)] {
        let body = lamp("v1", name, json!({"watts": watts}));
        assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    }
    assert_eq!(names(&server, &format!("GET {V1}?fieldSelector=spec.watts%3D5")).await, ["a", "c", "e"]);
    for (selector, expected) in [
        ("fieldSelector=spec.power%3D5%20W", vec!["a", "c", "e"]),
        ("fieldSelector=spec.power!%3D5%20W", vec!["b", "d"]),
        ("fieldSelector=spec.power%3D5%20W,metadata.name%3Dc", vec!["c"]),
        ("fieldSelector=spec.power%3D5", vec![]),
    ] {
        for more in ["", "&resourceVersion=0"] {
            assert_eq!(names(&server, &format!("GET {V2}?{selector}{more}")).await, expected, "{selector}");
        }
    }
    let page = server.send(&format!("GET {V2}?fieldSelector=spec.power%3D5%20W&limit=2")).await.json();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let next = format!("GET {V2}?fieldSelector=spec.power%3D5%20W&limit=2&continue={token}");
    assert_eq!(names(&server, &next).await, ["e"]);
    let removed = names(&server, &format!("DELETE {V2}?fieldSelector=spec.power%3D5%20W")).await;
    assert_eq!(removed, ["a", "c", "e"]);
    assert_eq!(names(&server, &format!("GET {V1}")).await, ["b", "d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_those_that_the_webhook_has_left() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &webhook.definition()).await;
    let mut body: Value = serde_json::from_str(&lamp("v1", "a", json!({"watts": 5}))).unwrap();
    body["metadata"]["labels"] = json!({"form": "old", "same": "x"});
    assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    webhook.lies(|mut right| {
        for object in right["response"]["convertedObjects"].as_array_mut().unwrap() {
            object["metadata"]["labels"]["form"] = json!("new");
        }
        Some(right)
    });
    for (collection, selector, expected) in [
        (V1, "form%3Dold", vec!["a"]),
        (V1, "form%3Dnew", vec![]),
        (V2, "form%3Dold", vec![]),
        (V2, "form%3Dnew,same%3Dx", vec!["a"]),
        (V2, "form%20in%20(new,newer)", vec!["a"]),
    ] {
        let request = format!("GET {collection}?labelSelector={selector}");
        assert_eq!(names(&server, &request).await, expected, "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_see_the_changes_of_what_they_select_in_their_version() {
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &selectable(&webhook)).await;
    let write = async |request: String| {
        let answer = server.send(&request).await;
        assert!(answer.status < 300, "{request}: {}", answer.text());
    };
    let patch = |name: &str, spec: &str| format!("PATCH {V1}/{name}\n{MERGE}\n\n{{\"spec\":{spec}}}");
    write(format!("POST {V1}\n\n{}", lamp("v1", "a", json!({"watts": 5})))).await;
    write(format!("POST {V1}\n\n{}", lamp("v1", "b", json!({"watts": 60})))).await;
    let mut watch = server.watch(&format!("{V2}?watch=true&fieldSelector=spec.power%3D5%20W"), &[]).await;
    let mut events = VecDeque::new();
    write(patch("b", r#"{"watts":5}"#)).await;
    write(patch("b", r#"{"watts":5,"x":1}"#)).await;
    write(format!("PATCH {V1}/b\n{MERGE}\n\n{{\"metadata\":{{\"labels\":{{\"x\":\"y\"}}}}}}")).await;
    write(patch("a", r#"{"watts":7}"#)).await;
    write(patch("a", r#"{"watts":8}"#)).await;
    write(format!("DELETE {V1}/a")).await;
    write(format!("DELETE {V1}/b")).await;
    for (event_type, name, power) in [
        ("ADDED", "a", "5 W"),
        ("ADDED", "b", "5 W"),
        ("MODIFIED", "b", "5 W"),
        ("DELETED", "a", "5 W"),
        ("DELETED", "b", "5 W"),
    ] {
        while events.is_empty() {
            let frame = watch.next().await.unwrap();
            events.extend(frame.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
        let event = events.pop_front().unwrap();
        let found = (&event["type"], &event["object"]["metadata"]["name"], &event["object"]["spec"]["power"]);
        assert_eq!(found, (&json!(event_type), &json!(name), &json!(power)));
        assert_eq!(event["object"]["apiVersion"], "example.com/v2");
    }
}

/// The cache compresses what was replaced beyond 4 MB, and drops what was converted.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_cache_has_compressed_is_converted_again() {
    const WRITES: usize = 40;
    let (server, webhook) = (Server::start().await, Webhook::start().await);
    define(&server, &selectable(&webhook)).await;
    let note = "long ".repeat(40_000);
    let mut body: Value = serde_json::from_str(&lamp("v1", "a", json!({"watts": 0}))).unwrap();
    body["metadata"]["annotations"] = json!({"note": note});
    let created = server.send(&format!("POST {V1}\n\n{body}")).await.json();
    let first = created["metadata"]["resourceVersion"].as_str().unwrap();
    for watts in 1..=WRITES {
        let patch = format!("PATCH {V1}/a\n{MERGE}\n\n{{\"spec\":{{\"watts\":{watts}}}}}");
        assert_eq!(server.send(&patch).await.status, 200);
    }
    for selector in ["", "&fieldSelector=spec.power!%3D1%20W"] {
        let mut watch = server.watch(&format!("{V2}?watch=1&resourceVersion={first}{selector}"), &[]).await;
        // The selector's first event is the end of the first object, which it matched.
        let mut missing: VecDeque<_> = (1..=WRITES).map(|watts| json!(format!("{watts} W"))).collect();
        while !missing.is_empty() {
            for line in watch.next().await.expect("the watch goes on").lines() {
                let event: Value = serde_json::from_str(line).unwrap();
                let power = missing.pop_front().unwrap();
                match (event["type"].as_str().unwrap(), power == "1 W" && !selector.is_empty()) {
                    ("MODIFIED", false) => assert_eq!(event["object"]["spec"]["power"], power),
                    ("ADDED", false) => assert_eq!((&power, selector.is_empty()), (&json!("2 W"), false)),
                    ("DELETED", true) => assert_eq!(event["object"]["spec"]["power"], "0 W"),
                    (other, _) => panic!("{other} at {power}: {}", event["object"]["message"]),
                }
                assert_eq!(event["object"]["apiVersion"], "example.com/v2");
            }
        }
        let past = format!("GET {V2}?resourceVersion={first}&resourceVersionMatch=Exact{selector}");
        let list = server.send(&past).await;
        assert_eq!(list.status, 200, "{}", list.text());
        assert_eq!(list.json()["items"][0]["spec"]["power"], "0 W");
    }
    for name in 0..WRITES {
        body["metadata"]["name"] = json!(format!("l{name}"));
        assert_eq!(server.send(&format!("POST {V1}\n\n{body}")).await.status, 201);
    }
    assert_eq!(names(&server, &format!("DELETE {V2}")).await.len(), WRITES + 1);
    server.stop().await;
}
