//! Tests validating admission policies: they are in force as soon as they are written, with parameters of any kind.

use crate::harness::{PATIENCE, Server};
use pintle_machinery::{Value, json};
use pintle_storage::Key;
use std::time::Instant;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn policy(name: &str, spec: Value) -> Value {
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [rule]}},
    });
    for (field, value) in spec.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    policy
}

fn binding(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": spec,
    })
}

async fn create(server: &Server, path: &str, object: &Value) {
    let answer = server.send(&format!("POST {path}\n\n{object}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// The status and message of the creation of a config map, which is not stored.
async fn try_create(server: &Server, data: Value) -> (u16, String) {
    let object = json!({"metadata": {"name": "c"}, "data": data});
    let answer = server.send(&format!("POST {CONFIG_MAPS}?dryRun=All\n\n{object}")).await;
    let message = if answer.status == 201 { String::new() } else { answer.str_at("/message") };
    (answer.status, message)
}

/// Repeats the creation until it has this status: the caches follow the store.
async fn until(server: &Server, data: Value, status: u16) -> String {
    let start = Instant::now();
    loop {
        let (found, message) = try_create(server, data.clone()).await;
        if found == status {
            return message;
        }
        assert!(start.elapsed() < PATIENCE, "{found}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_in_force_while_they_exist() {
    let server = Server::start().await;
    let validation = json!({"expression": "object.data.a == 'x'", "message": "a must be x"});
    create(&server, POLICIES, &policy("p", json!({"validations": [validation]}))).await;
    let (status, message) = try_create(&server, json!({"a": "y"})).await;
    assert_eq!(status, 201, "a policy without bindings is not in force: {message}");

    create(&server, BINDINGS, &binding("b", json!({"policyName": "p", "validationActions": ["Deny"]}))).await;
    let message = until(&server, json!({"a": "y"}), 422).await;
    assert_eq!(
        message,
        "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: a must be x"
    );
    assert_eq!(try_create(&server, json!({"a": "x"})).await.0, 201);

    let change =
        json!([{"op": "replace", "path": "/spec/validations/0/expression", "value": "object.data.a == 'y'"}]);
    let patch = format!("PATCH {POLICIES}/p\nContent-Type: application/json-patch+json\n\n{change}");
    assert_eq!(server.send(&patch).await.status, 200);
    until(&server, json!({"a": "y"}), 201).await;
    until(&server, json!({"a": "x"}), 422).await;

    assert_eq!(server.send(&format!("DELETE {POLICIES}/p")).await.status, 200);
    until(&server, json!({"a": "x"}), 201).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deletion_of_a_namespace_means_the_namespace_that_is_there() {
    let server = Server::start().await;
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["namespaces"]});
    let expression = "request.options.preconditions.uid != oldObject.metadata.uid";
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "it is this one"}],
    });
    create(&server, POLICIES, &policy("p", spec)).await;
    create(&server, BINDINGS, &binding("b", json!({"policyName": "p", "validationActions": ["Deny"]}))).await;
    create(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    let start = Instant::now();
    let message = loop {
        let answer = server.send("DELETE /api/v1/namespaces/n?dryRun=All").await;
        if answer.status != 200 {
            break answer.str_at("/message");
        }
        assert!(start.elapsed() < PATIENCE, "the policy is in force");
    };
    assert!(message.ends_with("denied request: it is this one"), "{message}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_custom_resources() {
    let server = Server::start().await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": schema});
    let definition = json!({
        "metadata": {"name": "limits.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "limits", "kind": "Limit"},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    create(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    let path = "/apis/example.com/v1/namespaces/default/limits";
    let start = Instant::now();
    while server.send(&format!("GET {path}")).await.status != 200 {
        assert!(start.elapsed() < PATIENCE, "the resource is served");
    }
    let uses = json!({
        "paramKind": {"apiVersion": "example.com/v2", "kind": "Limit"},
        "validations": [{
            "expression": "size(object.data) <= params.max",
            "messageExpression": "params.apiVersion + ' ' + params.kind + ' ' + params.metadata.name",
        }],
    });
    create(&server, POLICIES, &policy("p", uses)).await;
    let reference = json!({"name": "small", "parameterNotFoundAction": "Deny"});
    let spec = json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": reference});
    create(&server, BINDINGS, &binding("b", spec)).await;
    let message = until(&server, json!({}), 422).await;
    assert!(
        message.ends_with("no params found for policy binding with `Deny` parameterNotFoundAction"),
        "{message}"
    );

    let limit =
        json!({"apiVersion": "example.com/v1", "kind": "Limit", "metadata": {"name": "small"}, "max": 1});
    create(&server, path, &limit).await;
    until(&server, json!({"a": "1"}), 201).await;
    let message = until(&server, json!({"a": "1", "b": "2"}), 422).await;
    assert!(message.ends_with("denied request: example.com/v2 Limit small"), "{message}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_parameters_are_evaluated_one_after_the_other() {
    let server = Server::start().await;
    let parameter = |name: &str, label: &str, forbidden: &str| json!({"metadata": {"name": name, "labels": {"is": label}}, "data": {"forbidden": forbidden}});
    for (name, label, forbidden) in
        [("one", "param", "x"), ("two", "param", "y"), ("other", "nothing", "z"), ("three", "param", "x")]
    {
        create(&server, CONFIG_MAPS, &parameter(name, label, forbidden)).await;
    }
    let uses = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{
            "expression": "object == null || !('a' in object.data) || object.data.a != params.data.forbidden",
            "messageExpression": "'by ' + params.metadata.name",
        }],
    });
    create(&server, POLICIES, &policy("p", uses)).await;
    let selector = json!({"matchLabels": {"is": "param"}});
    let reference = json!({"selector": selector, "parameterNotFoundAction": "Deny"});
    let spec = json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": reference});
    create(&server, BINDINGS, &binding("b", spec)).await;
    for (value, name) in [("x", "one"), ("y", "two")] {
        let message = until(&server, json!({"a": value}), 422).await;
        assert!(message.ends_with(&format!("denied request: by {name}")), "{message}");
    }
    assert_eq!(try_create(&server, json!({"a": "z"})).await.0, 201);

    for name in ["one", "two", "three"] {
        assert_eq!(server.send(&format!("DELETE {CONFIG_MAPS}/{name}")).await.status, 200);
    }
    let message = until(&server, json!({"a": "z"}), 422).await;
    assert!(
        message.ends_with("no params found for policy binding with `Deny` parameterNotFoundAction"),
        "{message}"
    );
    server.stop().await;
}

/// An object of which only the name is known may be the one that forbids a request.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_allows_nothing() {
    let server = Server::start().await;
    let storage = server.storage();
    let allows = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "true"}],
    });
    create(&server, POLICIES, &policy("p", allows)).await;
    let selector = json!({"matchLabels": {"is": "param"}});
    let reference = json!({"selector": selector, "parameterNotFoundAction": "Allow"});
    let spec = json!({"policyName": "p", "validationActions": ["Deny"], "paramRef": reference});
    create(&server, BINDINGS, &binding("b", spec)).await;
    assert_eq!(try_create(&server, json!({})).await.0, 201);

    let param = Key::new("/registry/configmaps/default/bad");
    storage.create(&param, "bad".into(), None).await.unwrap();
    let message = until(&server, json!({}), 422).await;
    assert!(message.contains("with binding 'b' denied request: failed to configure binding: "), "{message}");
    let revision = storage.get(&param).await.unwrap().kv.unwrap().mod_revision;
    storage.delete(&param, revision).await.unwrap();
    until(&server, json!({}), 201).await;

    // A policy that was readable is in force as it was.
    let forbids = json!({"validations": [{"expression": "object.data.a == 'x'", "message": "a must be x"}]});
    create(&server, POLICIES, &policy("lost", forbids)).await;
    create(&server, BINDINGS, &binding("lost", json!({"policyName": "lost", "validationActions": ["Deny"]})))
        .await;
    until(&server, json!({"a": "y"}), 422).await;
    let lost = Key::new("/registry/validatingadmissionpolicies/lost");
    let revision = storage.get(&lost).await.unwrap().kv.unwrap().mod_revision;
    storage.update(&lost, "bad".into(), revision, None).await.unwrap();
    let start = Instant::now();
    while server.send(&format!("GET {POLICIES}/lost")).await.status != 500 {
        assert!(start.elapsed() < PATIENCE, "the policy cannot be read");
    }
    assert_eq!(try_create(&server, json!({"a": "x"})).await.0, 201);
    assert_eq!(try_create(&server, json!({"a": "y"})).await.0, 422);

    let bad = Key::new("/registry/validatingadmissionpolicies/bad");
    storage.create(&bad, "bad".into(), None).await.unwrap();
    until(&server, json!({"a": "x"}), 500).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_see_the_fields_that_types_always_have() {
    let server = Server::start().await;
    let of = |resource: &str| {
        json!({"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource],
        }]})
    };
    let rules = [
        ("podtemplates", "!has(object.template.spec.containers[0].resources)"),
        (
            "events",
            "!has(object.firstTimestamp) || object.eventTime != null || object.reportingComponent != ''",
        ),
        // A name that is generated is no namespace yet.
        ("namespaces", "has(request.namespace) || !has(request.name)"),
    ];
    for (resource, expression) in rules {
        let spec = json!({"matchConstraints": of(resource), "validations": [{"expression": expression}]});
        create(&server, POLICIES, &policy(resource, spec)).await;
        let spec = json!({"policyName": resource, "validationActions": ["Deny"]});
        create(&server, BINDINGS, &binding(resource, spec)).await;
    }
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "p"}, "template": {"spec": spec}});
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}});
    let namespace = json!({"metadata": {"generateName": "n-"}});
    for (path, object) in [
        ("/api/v1/namespaces/default/podtemplates", pod),
        ("/api/v1/namespaces/default/events", event),
        ("/api/v1/namespaces", namespace),
    ] {
        let answer = server.send(&format!("POST {path}?dryRun=All\n\n{object}")).await;
        assert!(answer.text().contains("failed expression"), "{path}: {}", answer.text());
    }
    server.stop().await;
}
