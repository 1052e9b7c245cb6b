//! Tests mutating admission policies on a whole server: changes of objects, and policies that loop, cost too much, or
//! break objects. A refused request leaves nothing behind.

use crate::harness::{Answer, Server};
use pintle_machinery::{Value, json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn create(server: &Server, path: &str, body: &Value) -> Answer {
    server.exchange("POST", path, &[JSON], body.to_string()).await
}

/// Puts a policy for config maps with the label `test: NAME` in force.
async fn enforce(server: &Server, name: &str, mutations: &[&str], more: Value) {
    let mutations: Vec<Value> = mutations
        .iter()
        .map(|expression| match expression.starts_with('[') {
            true => json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}),
            false => {
                json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
            }
        })
        .collect();
    let group = name.split('-').next().unwrap();
    let mut spec = json!({
        "matchConstraints": {
            "objectSelector": {"matchLabels": {"test": group}},
            "resourceRules": [{
                "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            }],
        },
        "mutations": mutations,
        "reinvocationPolicy": "IfNeeded",
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let answer = create(server, POLICIES, &policy).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    let answer = create(server, BINDINGS, &binding).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
}

/// Creates a config map to which the policies of a group apply.
async fn map(server: &Server, group: &str) -> Answer {
    let object = json!({"metadata": {"name": group, "labels": {"test": group}}, "data": {"a": "b"}});
    create(server, MAPS, &object).await
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_change_objects_one_after_the_other() {
    let server = Server::start().await;
    let mutations = [
        "Object{data: {'one': '1'}}",
        "[JSONPatch{op: 'copy', from: '/data/one', path: '/data/two'}]",
        "Object{data: {'three': object.data.two}}",
    ];
    enforce(&server, "mixed", &mutations, json!({})).await;
    let answer = map(&server, "mixed").await;
    assert_eq!(
        answer.json()["data"],
        json!({"a": "b", "one": "1", "two": "1", "three": "1"}),
        "{}",
        answer.text()
    );
    // The first policy sees the change of the second one when it is called again.
    enforce(&server, "again-a", &["Object{data: {'seen': string('b' in object.data)}}"], json!({})).await;
    enforce(&server, "again-b", &["Object{data: {'b': ''}}"], json!({"reinvocationPolicy": "Never"})).await;
    assert_eq!(map(&server, "again").await.json()["data"]["seen"], json!("true"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_that_undo_each_other_end() {
    let server = Server::start().await;
    let toggle = "Object{data: {'n': object.data.?n.orValue('') + 'x'}}";
    enforce(&server, "loop-a", &[toggle], json!({})).await;
    enforce(&server, "loop-b", &[toggle], json!({})).await;
    let answer = map(&server, "loop").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.json()["data"]["n"], json!("xxxx"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_leaves_nothing_behind() {
    let server = Server::start().await;
    let bomb = "[JSONPatch{op: 'add', path: '/data/x', value: [['0123456789012345678901234567890123456789']]"
        .to_owned()
        + &(0..20).map(|step| format!(".map(v{step}, [v{step}, v{step}])")).collect::<String>()
        + "}]";
    let costly =
        "Object{data: {'n': string(lists.range(100000).all(i, lists.range(100000).all(j, i + j >= 0)))}}";
    for (group, mutation, status, expected) in [
        ("unknown", "Object{bogus: 1}", 403, ".bogus: field not declared in schema"),
        (
            "broken",
            "[JSONPatch{op: 'replace', path: '', value: {'kind': 'Secret', 'x': 'y'}}]",
            500,
            "unknown field",
        ),
        ("mistyped", "[JSONPatch{op: 'add', path: '/data', value: 5}]", 500, "cannot unmarshal number"),
        ("bomb", &bomb, 403, "actual cost limit exceeded"),
        ("costly", costly, 403, "actual cost limit exceeded"),
        ("missing", "Object{data: {'x': object.data.none}}", 403, "no such key: none"),
    ] {
        enforce(&server, &format!("{group}-first"), &["Object{data: {'first': '1'}}"], json!({})).await;
        enforce(&server, &format!("{group}-second"), &[mutation], json!({})).await;
        let answer = map(&server, group).await;
        assert_eq!(answer.status, status, "{group}: {}", answer.text());
        assert!(answer.str_at("/message").contains(expected), "{group}: {}", answer.text());
        let stored = server.exchange("GET", &format!("{MAPS}/{group}"), &[], "").await;
        assert_eq!(stored.status, 404, "{group}: {}", stored.text());
        // The policy can be removed, whatever it does.
        let removed = server.exchange("DELETE", &format!("{POLICIES}/{group}-second"), &[], "").await;
        assert_eq!(removed.status, 200, "{group}: {}", removed.text());
        assert_eq!(map(&server, group).await.json()["data"], json!({"a": "b", "first": "1"}), "{group}");
    }
    enforce(
        &server,
        "ignored",
        &["Object{data: {'x': object.data.none}}"],
        json!({"failurePolicy": "Ignore"}),
    )
    .await;
    assert_eq!(map(&server, "ignored").await.json()["data"], json!({"a": "b"}));
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_metadata_of_custom_resources_is_not_stored() {
    const PATH: &str = "/apis/example.com/v1/namespaces/default/lamps";
    let server = Server::start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(create(&server, definitions, &definition).await.status, 201);
    let rule = json!({
        "operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["lamps"],
    });
    let constraints = json!({"matchConstraints": {"resourceRules": [rule]}});
    let annotations = "{'one': dyn('1'), 'two': dyn(2)}";
    let patch = format!(
        "[JSONPatch{{op: 'add', path: '/metadata/labels', value: 5}}, JSONPatch{{op: 'add', path: \
         '/metadata/annotations', value: {annotations}}}]"
    );
    enforce(&server, "lamps", &[&patch], constraints).await;
    let lamp = json!({"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "a"}});
    let start = std::time::Instant::now();
    let answer = loop {
        // The definition is served a moment later.
        let answer = create(&server, PATH, &lamp).await;
        if answer.status != 404 && answer.status != 503 || start.elapsed() > crate::harness::PATIENCE {
            break answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    };
    assert_eq!(answer.status, 201, "{}", answer.text());
    let metadata = answer.json()["metadata"].clone();
    assert!(metadata.get("labels").is_none(), "{metadata}");
    assert_eq!(metadata["annotations"], json!({"one": "1"}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_that_serve_no_policies_accept_writes() {
    let server =
        Server::start_with(|options| options.features.versions.emulated.push("1.35".to_owned())).await;
    assert_eq!(server.send(&format!("GET {POLICIES}")).await.status, 404);
    let map = json!({"metadata": {"name": "map"}});
    assert_eq!(create(&server, MAPS, &map).await.status, 201);
    server.stop().await;
}
