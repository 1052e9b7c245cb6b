//! Tests that the documents of other servers are merged into those of the built-in resources.

use pintle_machinery::{Value, json};
use pintle_openapi::{OpenApi, PackedDocument, RemoteDocument, RemoteDocuments};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

const KINDS: &str = "x-kubernetes-group-version-kind";
const OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Documents that a test changes.
#[derive(Default)]
struct Remote(Mutex<Vec<Arc<PackedDocument>>>);

impl Remote {
    fn set(&self, documents: &[Value]) {
        let pack = |document: &Value| {
            let parsed =
                RemoteDocument::parse(document.to_string().as_bytes()).expect("the document is usable");
            Arc::new(parsed.pack())
        };
        *self.0.lock().expect("no test panics") = documents.iter().map(pack).collect();
    }
}

impl RemoteDocuments for Remote {
    fn current(&self) -> Vec<Arc<PackedDocument>> {
        self.0.lock().expect("no test panics").clone()
    }

    fn index(&self) -> BTreeMap<String, String> {
        let url = |key: &str| (key.to_owned(), format!("/openapi/v3/{key}?hash=REMOTE"));
        BTreeMap::from([url("apis/remote/v1"), url("apis/apps/v1")])
    }
}

fn open_api() -> (Arc<Remote>, OpenApi) {
    let remote = Arc::new(Remote::default());
    let resources = pintle_api::resources(&pintle_api::Config::default());
    let open_api = OpenApi::new(resources.into_iter().map(Arc::new).collect(), "v1.36.2");
    (remote.clone(), open_api.with_remote_documents(remote))
}

fn v2(open_api: &OpenApi) -> Value {
    serde_json::from_slice(&open_api.v2().content()).expect("documents are JSON")
}

/// A document with a path that uses these definitions.
fn document(group: &str, definitions: &Value) -> Value {
    let references: Vec<Value> = definitions
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| json!({"in": "body", "name": name, "schema": {"$ref": format!("#/definitions/{name}")}}))
        .collect();
    let item = json!({"parameters": references, "get": {"responses": {"200": {"description": "OK"}}}});
    json!({"paths": {(format!("/apis/{group}/v1/x")): item}, "definitions": definitions})
}

#[test]
fn definitions_of_this_server_are_shared_and_get_more_kinds() {
    let (remote, open_api) = open_api();
    let local = v2(&open_api);
    let (hash, protobuf) = (open_api.v2().hash().to_owned(), open_api.v2_protobuf().content());
    let mut options = local["definitions"][OPTIONS].clone();
    let kind = json!({"group": "a.example.com", "version": "v1", "kind": "DeleteOptions"});
    options[KINDS] = json!([kind]);
    let mut meta = local["definitions"][META].clone();
    meta["description"] = json!("other");
    remote.set(&[document("remote", &json!({OPTIONS: options, META: meta}))]);
    let merged = v2(&open_api);
    assert_ne!(open_api.v2().hash(), hash);
    assert_eq!(open_api.v2().hash(), open_api.v2_protobuf().hash());
    assert!(open_api.v2_protobuf().length() > protobuf.len());
    let kinds = merged["definitions"][OPTIONS][KINDS].as_array().expect("there are kinds");
    let before = local["definitions"][OPTIONS][KINDS].as_array().expect("there are kinds");
    assert!(kinds.contains(&kind) && kinds.len() == before.len() + 1);
    assert_eq!(merged["definitions"][META], local["definitions"][META]);
    assert_eq!(merged["definitions"][format!("{META}_v2")]["description"], "other");
    let parameters = &merged["paths"]["/apis/remote/v1/x"]["parameters"];
    assert_eq!(parameters[0]["schema"]["$ref"], format!("#/definitions/{OPTIONS}"));
    assert_eq!(parameters[1]["schema"]["$ref"], format!("#/definitions/{META}_v2"));
    for (path, item) in local["paths"].as_object().expect("there are paths") {
        assert_eq!(merged["paths"][path], *item);
    }
    // Without the other server everything is as before.
    remote.set(&[]);
    assert_eq!(v2(&open_api), local);
    assert_eq!(open_api.v2().hash(), hash);
    assert_eq!(open_api.v2_protobuf().content(), protobuf);
}

#[test]
fn parameters_follow_the_definitions() {
    let (remote, open_api) = open_api();
    let mut document = document("remote", &json!({"A": {}}));
    document["parameters"] = json!({"p": {"in": "query", "name": "p", "type": "string"}});
    remote.set(&[document]);
    let merged = v2(&open_api);
    assert_eq!(merged["parameters"]["p"]["name"], "p");
    assert_eq!(merged["definitions"]["A"], json!({}));
    assert!(!open_api.v2_protobuf().content().is_empty());
}

#[test]
fn paths_of_this_server_win() {
    let (remote, open_api) = open_api();
    let local = v2(&open_api);
    let path = "/apis/apps/v1/deployments";
    let mut own = document("remote", &json!({"A": {}}));
    own["paths"][path] = json!({"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/B"}}}}});
    own["definitions"]["B"] = json!({});
    remote.set(&[own]);
    let merged = v2(&open_api);
    assert_eq!(merged["paths"][path], local["paths"][path]);
    assert!(merged["definitions"].get("A").is_some() && merged["definitions"].get("B").is_none());
}

#[test]
fn the_index_lists_the_documents_of_other_servers() {
    let (_, open_api) = open_api();
    let index: Value = serde_json::from_slice(&open_api.v3_index()).expect("the index is JSON");
    let url = |key: &str| index["paths"][key]["serverRelativeURL"].as_str().unwrap_or_default().to_owned();
    assert_eq!(url("apis/remote/v1"), "/openapi/v3/apis/remote/v1?hash=REMOTE");
    assert_eq!(url("apis/apps/v1"), "/openapi/v3/apis/apps/v1?hash=REMOTE");
    assert!(url("apis/batch/v1").starts_with("/openapi/v3/apis/batch/v1?hash="));
}
