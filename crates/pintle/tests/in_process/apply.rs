//! Tests server-side apply and managed fields over the wire: from the first apply to the last owner, and refusals.

use crate::harness::{Answer, Server, Transcript, assert_transcript};
use pintle_machinery::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const APPLY: (&str, &str) = ("Content-Type", "application/apply-patch+yaml");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const YAML: (&str, &str) = ("Content-Type", "application/yaml");
const MERGE_PATCH: (&str, &str) = ("Content-Type", "application/merge-patch+json");

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn apply(server: &Server, path: &str, manager: &str, body: &Value) -> Answer {
    server.exchange("PATCH", &format!("{path}?fieldManager={manager}"), &[APPLY], body.to_string()).await
}

/// The managers of an object, each with its operation and its fields.
fn owners(answer: &Answer) -> Vec<(String, Value)> {
    let object = answer.json();
    let mut owners: Vec<_> = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            (format!("{} {}", text("manager"), text("operation")), entry["fieldsV1"].clone())
        })
        .collect();
    owners.sort_by(|a, b| a.0.cmp(&b.0));
    owners
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_from_apply_to_apply() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    let apply = |name: &str, query: &str, body: &str| {
        format!(
            "PATCH {DEPLOYMENTS}/{name}?fieldManager={query}\nContent-Type: application/apply-patch+yaml\n\n{body}"
        )
    };
    let web = |spec: &str| {
        format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{{spec}selector: {{matchLabels: {{app: web}}}}, \
             template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: c, image: i, ports: [{{containerPort: 443}}, \
             {{containerPort: 80}}]}}]}}}}}}}}"
        )
    };
    let scale = "{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web}, spec: {replicas: 5}}";
    let status = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {not: owned}}, spec: {replicas: 9}, \
                  status: {replicas: 1, conditions: [{type: Available, status: 'True'}]}}";
    transcript
        .run_all(&[
            &apply("web", "alice", &web("replicas: 2, ")),
            &apply("web", "alice", &web("replicas: 2, ")),
            &apply("web", "bob", &web("replicas: 3, paused: true, ")),
            &apply("web", "bob&dryRun=All&force=true", &web("replicas: 3, ")),
            &apply("web", "bob&force=true", &web("replicas: 3, ")),
            &apply("web/scale", "carol", scale),
            &apply("web/scale", "carol&force=true", scale),
            &apply("web/status", "dave", status),
            &apply("web", "bob", &web("")),
            &format!("GET {DEPLOYMENTS}/web"),
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_that_are_none_are_refused() {
    let server = Server::start().await;
    let create = |manager: &str| (format!("{MAPS}/a?fieldManager={manager}"), APPLY);
    let kind = |api_version: Value, kind: Value| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}).to_string()
    };
    let metadata =
        |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string();
    let fine = config_map("a", json!({"k": "v"})).to_string();
    let typed =
        |kind: &str, why: &str| format!("failed to create typed patch object (/a; /v1, Kind={kind}): {why}");
    let long = "m".repeat(129);
    // Path and media type, body, code, message.
    type Row<'a> = ((String, (&'a str, &'a str)), String, u16, String);
    let rows: Vec<Row<'_>> = vec![
        (
            (format!("{MAPS}/a"), APPLY),
            fine.clone(),
            422,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch".to_owned(),
        ),
        (
            create(&long),
            fine.clone(),
            422,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 bytes".to_owned(),
        ),
        (
            create("a%0Ab"),
            fine.clone(),
            422,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)"
                .to_owned(),
        ),
        (
            (format!("{MAPS}/a?fieldManager=m&force=true"), MERGE_PATCH),
            "{}".to_owned(),
            422,
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch".to_owned(),
        ),
        (create("m"), kind(json!("v1"), json!("Pod")), 400, "invalid object type: /v1, Kind=Pod".to_owned()),
        (create("m"), kind(json!("apps/v1"), json!("ConfigMap")), 400, "invalid object type: apps/v1, Kind=ConfigMap".to_owned()),
        (create("m"), kind(json!("a/b/c"), json!("ConfigMap")), 400, "invalid object type: /, Kind=".to_owned()),
        (create("m"), kind(json!(5), json!("ConfigMap")), 400, "invalid object type: /, Kind=ConfigMap".to_owned()),
        (create("m"), kind(json!("v1"), Value::Null), 400, "invalid object type: /v1, Kind=".to_owned()),
        (create("m"), String::new(), 400, "invalid object type: /, Kind=".to_owned()),
        (
            create("m"),
            "[]".to_owned(),
            400,
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type \
             map[string]interface {}"
                .to_owned(),
        ),
        (
            create("m&fieldValidation=Strict"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, k: w}\n".to_owned(),
            400,
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 4: key \"k\" already set in \
             map"
                .to_owned(),
        ),
        (create("m"), metadata(json!({"name": "a", "managedFields": []})), 400, "metadata.managedFields must be nil".to_owned()),
        (
            create("m"),
            metadata(json!({"name": "b"})),
            400,
            "the name of the object (b) does not match the name on the URL (a)".to_owned(),
        ),
        (
            create("m"),
            metadata(json!({"name": "a", "namespace": "other"})),
            400,
            "the namespace of the provided object does not match the namespace sent on the request".to_owned(),
        ),
        (
            create("m"),
            metadata(json!({"name": "a", "uid": "0"})),
            409,
            "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object specified uid 0, and no existing \
             object was found"
                .to_owned(),
        ),
        (create("m"), config_map("a", json!({"k": 1})).to_string(), 500, typed("ConfigMap", ".data.k: expected string, got &value.valueUnstructured{Value:1}")),
        (create("m"), config_map("a", json!(["k"])).to_string(), 500, typed("ConfigMap", ".data: expected map, got &{[k]}")),
        (
            create("m&fieldValidation=Ignore"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dta": {}}).to_string(),
            500,
            typed("ConfigMap", ".dta: field not declared in schema"),
        ),
        (
            create("m"),
            metadata(json!({"name": "a", "finalizers": ["a.b/c", "a.b/c"]})),
            500,
            typed("ConfigMap", ".metadata.finalizers: duplicate entries for key [=\"a.b/c\"]"),
        ),
        (
            create("m"),
            metadata(json!({"name": "a", "ownerReferences": [{"name": "x"}, "x"]})),
            500,
            typed("ConfigMap", ".metadata.ownerReferences: element 1: associative list with keys may not have non-map elements"),
        ),
        (
            create("m"),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "binaryData": {"k": "%"}}).to_string(),
            500,
            "failed to convert new object (/a; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured object to /v1, \
             Kind=ConfigMap: error decoding from json: illegal base64 data at input byte 0"
                .to_owned(),
        ),
        (
            (format!("{PODS}/a/status?fieldManager=m"), APPLY),
            kind(json!("v1"), json!("Pod")),
            404,
            "pods \"a\" not found".to_owned(),
        ),
        (
            ("/api/v1/namespaces/default/nothings/a?fieldManager=m".to_owned(), APPLY),
            fine.clone(),
            404,
            "the server could not find the requested resource".to_owned(),
        ),
        (
            ("/api/v1/namespaces/nowhere/configmaps/a?fieldManager=m".to_owned(), APPLY),
            fine.clone(),
            404,
            "namespaces \"nowhere\" not found".to_owned(),
        ),
    ];
    for ((path, content_type), body, code, message) in rows {
        let answer = server.exchange("PATCH", &path, &[content_type], body.clone()).await;
        let status = answer.json();
        assert_eq!((answer.status, status["message"].as_str()), (code, Some(&*message)), "{body}");
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{body}");
    }
    for list in [MAPS, PODS] {
        assert_eq!(server.send(&format!("GET {list}")).await.json()["items"], json!([]));
    }
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_managed_fields_count_for_nothing() {
    let server = Server::start().await;
    let path = format!("{MAPS}/a");
    let made = apply(&server, &path, "owner", &config_map("a", json!({"k": "v"}))).await;
    let own = owners(&made);
    let entry = |fields: Value| json!([{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    for managed_fields in [
        json!([{"manager": "m"}]),
        json!([{}, {}]),
        json!([{"manager": "m", "operation": "Steal", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]),
        json!([{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {}}]),
        json!([{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2", "fieldsV1": {}}]),
        entry(json!({"data": {}})),
        entry(json!({"f:data": {"k:{": {}}})),
        entry(json!({"f:data": 5})),
    ] {
        let mut body = config_map("a", json!({"k": "v"}));
        body["metadata"]["managedFields"] = managed_fields.clone();
        let answer =
            server.exchange("PUT", &format!("{path}?fieldManager=m"), &[JSON], body.to_string()).await;
        assert!(answer.status == 200 || answer.status == 422, "{managed_fields}: {}", answer.text());
        assert_eq!(owners(&server.send(&format!("GET {path}")).await), own, "{managed_fields}");
    }
    let too_long = json!([{"manager": "m".repeat(129), "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:k": {}}}}]);
    let mut body = config_map("a", json!({"k": "v"}));
    body["metadata"]["managedFields"] = too_long;
    let answer = server.exchange("PUT", &path, &[JSON], body.to_string()).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert_eq!(server.send(&format!("GET {path}")).await.resource_version(), made.resource_version());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_fields_are_reset_in_every_format() {
    let server = Server::start().await;
    let with = |managed_fields: Value, data: Value| {
        let mut body = config_map("a", data);
        body["metadata"]["managedFields"] = managed_fields;
        body.to_string()
    };
    let path = format!("{MAPS}/a");
    for (what, method, content_type, body) in [
        ("an empty list", "PUT", JSON, with(json!([]), json!({"k": "v"}))),
        ("an empty entry", "PUT", JSON, with(json!([{}]), json!({"k": "v"}))),
        (
            "an empty list in YAML",
            "PUT",
            YAML,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, managedFields: []}\n".to_owned(),
        ),
        (
            "an empty entry in YAML",
            "PUT",
            YAML,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, managedFields: [{}]}\n".to_owned(),
        ),
        ("a merge patch", "PATCH", MERGE_PATCH, json!({"metadata": {"managedFields": []}}).to_string()),
        (
            "a merge patch with an entry",
            "PATCH",
            MERGE_PATCH,
            json!({"metadata": {"managedFields": [{}]}}).to_string(),
        ),
    ] {
        let made = apply(&server, &path, "one&force=true", &config_map("a", json!({"k": "v"}))).await;
        assert!(!owners(&made).is_empty(), "{what}");
        let answer = server.exchange(method, &path, &[content_type], body).await;
        assert_eq!((answer.status, owners(&answer)), (200, vec![]), "{what}: {}", answer.text());
        // No manager is recorded before the first apply, which then records all earlier fields.
        let answer = server.exchange("PATCH", &path, &[MERGE_PATCH], r#"{"data":{"k":"w"}}"#).await;
        assert_eq!(owners(&answer), vec![], "{what}");
        let answer = apply(&server, &path, "two", &config_map("a", json!({"l": "x"}))).await;
        let names: Vec<_> = owners(&answer).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["before-first-apply Update", "two Apply"], "{what}");
        assert_eq!(server.send(&format!("DELETE {path}")).await.status, 200);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_change_nothing_are_none() {
    let server = Server::start().await;
    let path = format!("{MAPS}/a");
    let body = config_map("a", json!({"k": "v"}));
    apply(&server, &path, "one", &body).await;
    let made = apply(&server, &path, "two", &body).await;
    for (what, method, content_type, manager, body) in [
        ("the same apply", "PATCH", APPLY, "one", body.to_string()),
        ("the other's apply", "PATCH", APPLY, "two", body.to_string()),
        ("the same object", "PUT", JSON, "three", body.to_string()),
        ("an empty patch", "PATCH", MERGE_PATCH, "three", "{}".to_owned()),
        ("what is there", "PATCH", MERGE_PATCH, "three", r#"{"data":{"k":"v"}}"#.to_owned()),
        // The strategy reverts the change: a write would change the time alone.
        (
            "an immutable field",
            "PATCH",
            MERGE_PATCH,
            "three",
            r#"{"metadata":{"generation":null}}"#.to_owned(),
        ),
    ] {
        let answer =
            server.exchange(method, &format!("{path}?fieldManager={manager}"), &[content_type], body).await;
        assert_eq!((answer.status, answer.resource_version()), (200, made.resource_version()), "{what}");
        assert_eq!(
            answer.json()["metadata"]["managedFields"],
            made.json()["metadata"]["managedFields"],
            "{what}"
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_in_other_versions_are_understood() {
    let server = Server::start().await;
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/a");
    let scaler = |version: &str, spec: Value| {
        let mut spec = spec;
        spec["maxReplicas"] = json!(5);
        spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"}, "spec": spec})
    };
    let metrics = |utilization: i64| {
        json!({"metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": utilization}}}]})
    };
    let first = scaler("v1", json!({"targetCPUUtilizationPercentage": 50}));
    assert_eq!(apply(&server, &path("v1"), "one", &first).await.status, 201);
    // The first version's percentage is a metric in the second.
    let refused = apply(&server, &path("v2"), "two", &scaler("v2", metrics(60))).await;
    let text = "Apply failed with 1 conflict: conflict with \"one\": .spec.targetCPUUtilizationPercentage";
    assert_eq!((refused.status, refused.str_at("/message")), (409, text.to_owned()));
    assert_eq!(apply(&server, &path("v2"), "two", &scaler("v2", metrics(50))).await.status, 200);
    let forced = apply(&server, &path("v2"), "two&force=true", &scaler("v2", metrics(60))).await;
    assert_eq!(forced.status, 200, "{}", forced.text());
    let owners = owners(&forced);
    assert_eq!(owners[0].1["f:spec"], json!({"f:maxReplicas": {}, "f:scaleTargetRef": {}}), "{owners:?}");
    assert!(owners[1].1["f:spec"].get("f:metrics").is_some(), "{owners:?}");
    // A manager is the same in every version.
    let moved = apply(&server, &path("v2"), "one", &scaler("v2", metrics(60))).await;
    assert_eq!(moved.status, 200, "{}", moved.text());
    let versions: Vec<_> = moved.json()["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["manager"].clone(), entry["apiVersion"].clone()))
        .collect();
    assert_eq!(versions.len(), 2);
    assert!(versions.iter().all(|(_, version)| version == "autoscaling/v2"), "{versions:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_that_are_fields_elsewhere_are_converted() {
    let server = Server::start().await;
    let path = "/apis/apps/v1/namespaces/default/daemonsets";
    let set = |generation: &str| {
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "a", "annotations": {"deprecated.daemonset.template.generation": generation}},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }}})
    };
    let why = "strconv.ParseInt: parsing \"x\": invalid syntax";
    let unversioned = format!("failed to convert to unversioned (default/a; apps/v1, Kind=DaemonSet): {why}");
    let mut sent = set("x");
    sent["metadata"]["namespace"] = json!("default");
    let one = format!("{path}/a");
    let refused = apply(&server, &one, "m", &sent).await;
    assert_eq!((refused.status, refused.str_at("/message")), (500, unversioned.clone()));
    assert_eq!(apply(&server, &one, "m", &set("1")).await.status, 201);
    let refused = apply(&server, &one, "m", &sent).await;
    assert_eq!((refused.status, refused.str_at("/message")), (500, unversioned));
    let strategic = ("Content-Type", "application/strategic-merge-patch+json");
    let patch = json!({"metadata": sent["metadata"]}).to_string();
    let refused = server.exchange("PATCH", &one, &[strategic], patch.clone()).await;
    assert_eq!((refused.status, refused.str_at("/message")), (500, why.to_owned()));
    let refused = server.exchange("PATCH", &one, &[MERGE_PATCH], patch).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    server.stop().await;
}

/// The other version has the target of the processor apart, and puts it behind the other metrics on the way back.
#[tokio::test(flavor = "multi_thread")]
async fn an_apply_that_changes_nothing_keeps_the_stored_object_in_every_version() {
    let server = Server::start().await;
    let path =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/a");
    let scaler = |version: &str, more: Value| {
        let mut spec =
            json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}});
        for (name, value) in more.as_object().unwrap() {
            spec[name.as_str()] = value.clone();
        }
        let version = format!("autoscaling/{version}");
        json!({"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": spec})
    };
    let metric = |name: &str| json!({"type": "Resource", "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": 9}}});
    let metrics = json!([metric("cpu"), metric("memory")]);
    let both = scaler("v2", json!({"maxReplicas": 5, "metrics": metrics.clone()}));
    assert_eq!(apply(&server, &path("v2"), "one", &both).await.status, 201);
    assert_eq!(apply(&server, &path("v1"), "two", &scaler("v1", json!({}))).await.status, 200);
    let found = server.send(&format!("GET {}", path("v2"))).await;
    assert_eq!(found.json()["spec"]["metrics"], metrics, "{}", found.text());
    assert_eq!(owners(&found).len(), 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_owns_a_scale_to_zero() {
    let server = Server::start().await;
    let body = json!({"metadata": {"name": "web", "managedFields": []}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let made = server.exchange("POST", DEPLOYMENTS, &[JSON], body.to_string()).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let path = format!("{DEPLOYMENTS}/web");
    server.exchange("PATCH", &path, &[MERGE_PATCH], r#"{"metadata":{"managedFields":[]}}"#).await;
    let scale = |spec: Value| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": spec});
    let answer = apply(&server, &format!("{path}/scale"), "scaler", &scale(json!({}))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(owners(&server.send(&format!("GET {path}")).await), vec![]);
    let answer = apply(&server, &format!("{path}/scale"), "scaler", &scale(json!({"replicas": 2}))).await;
    assert_eq!(answer.json()["spec"], json!({"replicas": 2}));
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    assert_eq!(owners(&server.send(&format!("GET {path}")).await), [("scaler Apply".to_owned(), replicas)]);
    server.stop().await;
}

/// The trees of custom resources are decoded without their schema, and have the same sets of fields.
#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_keep_their_owners() {
    let server = Server::start().await;
    let definition = json!({
        "metadata": {"name": "wells.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "wells", "kind": "Well"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "depth": {"type": "integer"}, "water": {"type": "string"},
                }}},
            }}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = server.send(&format!("POST {definitions}\n\n{definition}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let wells = "/apis/example.com/v1/namespaces/default/wells";
    while server.send(&format!("GET {wells}")).await.status != 200 {
        tokio::task::yield_now().await;
    }
    let well = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Well", "metadata": {"name": "w"}, "spec": spec});
    let path = format!("{wells}/w");
    let created = apply(&server, &path, "alice", &well(json!({"depth": 9}))).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let shared = apply(&server, &path, "bob", &well(json!({"water": "clear"}))).await;
    let alice = ("alice Apply".to_owned(), json!({"f:spec": {"f:depth": {}}}));
    let bob = ("bob Apply".to_owned(), json!({"f:spec": {"f:water": {}}}));
    assert_eq!(owners(&shared), [alice.clone(), bob.clone()], "{}", shared.text());
    let again = apply(&server, &path, "bob", &well(json!({"water": "clear"}))).await;
    assert_eq!(again.json(), shared.json(), "an apply that changes nothing is no write");
    let conflict = apply(&server, &path, "bob", &well(json!({"depth": 8}))).await;
    assert_eq!(conflict.status, 409, "{}", conflict.text());
    let patch = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    let patched =
        server.exchange("PATCH", &format!("{path}?fieldManager=carol"), &[MERGE_PATCH], patch).await;
    let carol = ("carol Update".to_owned(), json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}));
    assert_eq!(owners(&patched), [alice.clone(), bob.clone(), carol.clone()]);
    let put = server.exchange("PUT", &path, &[JSON], patched.text().to_owned()).await;
    assert_eq!(put.json(), patched.json(), "what was read can be written back");
    server.stop().await;
}
