//! Tests the content and the cost of the documents of custom resources.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at anything unexpected")]

use pintle_machinery::{Value, json};
use pintle_openapi::{CustomDefinitions, OpenApi, PublishedDefinition};
use std::{
    collections::BTreeMap,
    io::Read as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Definitions that count their reads.
#[derive(Default)]
struct Definitions {
    by_name: Mutex<BTreeMap<String, Value>>,
    asked: AtomicUsize,
}

impl Definitions {
    fn with(definitions: impl IntoIterator<Item = Value>) -> Arc<Definitions> {
        let all = Arc::new(Definitions::default());
        definitions.into_iter().for_each(|definition| all.set(definition));
        all
    }

    fn set(&self, definition: Value) {
        let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
        self.by_name.lock().unwrap().insert(name, definition);
    }

    fn remove(&self, name: &str) {
        self.by_name.lock().unwrap().remove(name);
    }

    /// The number of definitions read since the last call.
    fn read(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

impl CustomDefinitions for Definitions {
    fn published(&self) -> Vec<PublishedDefinition> {
        self.by_name.lock().unwrap().values().map(PublishedDefinition::of).collect()
    }

    fn definition(&self, name: &str) -> Option<Value> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.by_name.lock().unwrap().get(name).cloned()
    }
}

fn open_api(definitions: &Arc<Definitions>) -> OpenApi {
    let resources = pintle_api::coordination::resources();
    OpenApi::new(resources.into_iter().map(Arc::new).collect(), "v1.36.2")
        .with_custom_definitions(definitions.clone())
}

fn definition(plural: &str, kind: &str, generation: i64, version: Value) -> Value {
    let group = "stable.example.com";
    let mut version = version;
    for (name, value) in [("name", json!("v1")), ("served", json!(true)), ("storage", json!(true))] {
        version[name] = value;
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "uid": format!("uid-{plural}"), "generation": generation},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "listKind": format!("{kind}List")},
            "versions": [version, {"name": "v0", "served": false, "storage": false}],
        },
    })
}

fn schema_of(spec: Value) -> Value {
    json!({"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
}

fn parse(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

const KEY: &str = "apis/stable.example.com/v1";
const MODEL: &str = "com.example.stable.v1.CronTab";

/// The schema of `spec` in both dialects; `None` where it is not published.
fn published(spec: &Value) -> [Option<Value>; 2] {
    let definitions = Definitions::with([definition("crontabs", "CronTab", 1, schema_of(spec.clone()))]);
    let open_api = open_api(&definitions);
    let v3 = parse(&open_api.v3_document(KEY).unwrap().content());
    let v2 = parse(&open_api.v2().content());
    [
        v3["components"]["schemas"][MODEL]["properties"].get("spec").cloned(),
        v2["definitions"][MODEL]["properties"].get("spec").cloned(),
    ]
}

#[test]
fn schemas_are_published_as_kubernetes_publishes_them() {
    let text = json!({"type": "string"});
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let same = |schema: Value| (schema.clone(), schema.clone(), schema);
    for (declared, v3, v2) in [
        same(json!({"type": "string", "title": "T", "description": "d", "format": "date", "minLength": 0,
            "maxLength": 3, "pattern": "^a", "enum": ["a", null], "example": false})),
        same(
            json!({"type": "integer", "minimum": 1, "maximum": 5, "exclusiveMaximum": true, "multipleOf": 2}),
        ),
        same(
            json!({"type": "object", "properties": {"a": text}, "required": ["a"], "x-kubernetes-map-type": "atomic",
            "x-kubernetes-validations": [{"rule": "true"}], "externalDocs": {"url": "https://a"}}),
        ),
        same(json!({"type": "object", "additionalProperties": {"type": "array", "items": text}})),
        same(json!({"type": "object", "additionalProperties": true})),
        same(json!({"type": "array", "items": text, "x-kubernetes-list-type": "set", "uniqueItems": true})),
        // Members without effect are left out.
        (
            json!({"type": "string", "nullable": false, "default": null, "uniqueItems": false}),
            text.clone(),
            text.clone(),
        ),
        (
            json!({"type": "array", "items": text, "default": [], "example": []}),
            json!({"type": "array", "items": text, "default": []}),
            json!({"type": "array", "items": text}),
        ),
        // OpenAPI 2 has no defaults, no alternatives and no null.
        (
            json!({"type": "boolean", "default": false}),
            json!({"type": "boolean", "default": false}),
            json!({"type": "boolean"}),
        ),
        (
            json!({"type": "object", "oneOf": [{"required": ["a"]}], "anyOf": [{"properties": {"a": {"minLength": 1}}}],
                "allOf": [{"not": {"required": ["b"]}}], "not": {"additionalProperties": text, "required": ["c"]}}),
            json!({"type": "object", "oneOf": [{"required": ["a"]}], "anyOf": [{"properties": {"a": {"minLength": 1}}}],
                "allOf": [{"not": {"required": ["b"]}}], "not": {"required": ["c"]}}),
            json!({"type": "object"}),
        ),
        (json!({"type": "string", "nullable": true}), json!({"type": "string", "nullable": true}), json!({})),
        (
            json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "nullable": true}, "b": text}}),
            json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "nullable": true}, "b": text}}),
            json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": text}}),
        ),
        (
            json!({"type": "array", "nullable": true, "items": text}),
            json!({"type": "array", "nullable": true, "items": text}),
            json!({}),
        ),
        // Clients of OpenAPI 2 reject unlisted fields.
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": text}}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": text}}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({"x-kubernetes-int-or-string": true, "anyOf": either}),
            json!({"x-kubernetes-int-or-string": true}),
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"minimum": 3}]}),
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"minimum": 3}], "allOf": [{"anyOf": either}]}),
            json!({"x-kubernetes-int-or-string": true}),
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": either}, {"pattern": "a"}]}),
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": either}, {"pattern": "a"}]}),
            json!({"x-kubernetes-int-or-string": true}),
        ),
    ] {
        let [published_v3, published_v2] = published(&declared);
        assert_eq!(published_v3, Some(v3), "OpenAPI 3 of {declared}");
        assert_eq!(published_v2, Some(v2), "OpenAPI 2 of {declared}");
    }
}

#[test]
fn embedded_objects_have_type_and_metadata() {
    let [v3, v2] = published(
        &json!({"type": "object", "x-kubernetes-embedded-resource": true, "required": ["apiVersion"]}),
    );
    let (v3, v2) = (v3.unwrap(), v2.unwrap());
    assert_eq!(v3["required"], json!(["apiVersion", "kind"]));
    let reference = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(v3["properties"]["metadata"]["allOf"][0]["$ref"], format!("#/components/schemas/{reference}"));
    assert_eq!(v2["properties"]["metadata"]["$ref"], format!("#/definitions/{reference}"));
    assert_eq!(v2["properties"]["kind"]["type"], "string");
}

#[test]
fn kinds_without_a_schema_are_objects() {
    let open = json!({"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    for (version, has_properties) in [(json!({}), [false, false]), (open, [true, false])] {
        let definitions = Definitions::with([definition("crontabs", "CronTab", 1, version)]);
        let open_api = open_api(&definitions);
        let v3 = parse(&open_api.v3_document(KEY).unwrap().content());
        let v2 = parse(&open_api.v2().content());
        for (model, has_properties) in
            [&v3["components"]["schemas"][MODEL], &v2["definitions"][MODEL]].into_iter().zip(has_properties)
        {
            assert_eq!(model["type"], "object");
            assert_eq!(model.get("properties").is_some(), has_properties, "{model}");
            let kind = json!([{"group": "stable.example.com", "version": "v1", "kind": "CronTab"}]);
            assert_eq!(model["x-kubernetes-group-version-kind"], kind);
        }
    }
}

#[test]
fn paths_follow_scope_and_subresources() {
    let mut version = schema_of(json!({"type": "object"}));
    version["subresources"] = json!({"status": {}, "scale": {}});
    version["selectableFields"] = json!([{"jsonPath": ".spec.colour"}]);
    let mut cluster = definition("clusters", "Class", 1, schema_of(json!({"type": "object"})));
    cluster["spec"]["scope"] = json!("Cluster");
    let definitions = Definitions::with([definition("crontabs", "CronTab", 1, version), cluster]);
    let document = parse(&open_api(&definitions).v3_document(KEY).unwrap().content());
    let mut written = String::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if method != "parameters" {
                let text = |name: &str| operation[name].as_str().unwrap().to_owned();
                written += &format!("{method} {path}: {}; {}\n", text("operationId"), text("description"));
            }
        }
    }
    let expected = "\
delete /apis/stable.example.com/v1/clusters: deleteStableExampleComV1CollectionClass; delete collection of Class
get /apis/stable.example.com/v1/clusters: listStableExampleComV1Class; list objects of kind Class
post /apis/stable.example.com/v1/clusters: createStableExampleComV1Class; create a Class
delete /apis/stable.example.com/v1/clusters/{name}: deleteStableExampleComV1Class; delete a Class
get /apis/stable.example.com/v1/clusters/{name}: readStableExampleComV1Class; read the specified Class
patch /apis/stable.example.com/v1/clusters/{name}: patchStableExampleComV1Class; partially update the specified Class
put /apis/stable.example.com/v1/clusters/{name}: replaceStableExampleComV1Class; replace the specified Class
get /apis/stable.example.com/v1/crontabs: listStableExampleComV1CronTabForAllNamespaces; list objects of kind CronTab
delete /apis/stable.example.com/v1/namespaces/{namespace}/crontabs: deleteStableExampleComV1CollectionNamespacedCronTab; delete collection of CronTab
get /apis/stable.example.com/v1/namespaces/{namespace}/crontabs: listStableExampleComV1NamespacedCronTab; list objects of kind CronTab
post /apis/stable.example.com/v1/namespaces/{namespace}/crontabs: createStableExampleComV1NamespacedCronTab; create a CronTab
delete /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}: deleteStableExampleComV1NamespacedCronTab; delete a CronTab
get /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}: readStableExampleComV1NamespacedCronTab; read the specified CronTab
patch /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}: patchStableExampleComV1NamespacedCronTab; partially update the specified CronTab
put /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}: replaceStableExampleComV1NamespacedCronTab; replace the specified CronTab
get /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale: readStableExampleComV1NamespacedCronTabScale; read scale of the specified CronTab
patch /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale: patchStableExampleComV1NamespacedCronTabScale; partially update scale of the specified CronTab
put /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale: replaceStableExampleComV1NamespacedCronTabScale; replace scale of the specified CronTab
get /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/status: readStableExampleComV1NamespacedCronTabStatus; read status of the specified CronTab
patch /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/status: patchStableExampleComV1NamespacedCronTabStatus; partially update status of the specified CronTab
put /apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/status: replaceStableExampleComV1NamespacedCronTabStatus; replace status of the specified CronTab
";
    assert_eq!(written, expected);
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas[MODEL]["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.colour"}]));
    assert!(schemas["io.k8s.api.autoscaling.v1.ScaleSpec"].is_object());
    check_references(&document, &document);
}

fn check_references(document: &Value, value: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
            }
            members.values().for_each(|member| check_references(document, member));
        }
        Value::Array(items) => items.iter().for_each(|item| check_references(document, item)),
        _ => {}
    }
}

#[test]
fn a_definition_costs_nothing_until_its_document_is_asked_for() {
    let of = |name: &str, kind: &str, generation| {
        definition(name, kind, generation, schema_of(json!({"type": "object"})))
    };
    let definitions = Definitions::with([of("as", "A", 1), of("bs", "B", 1)]);
    let mut other = of("cs", "C", 1);
    other["spec"]["group"] = json!("other.example.com");
    definitions.set(other);
    let open_api = open_api(&definitions);
    let hash_in_index = |key: &str| {
        let index = parse(&open_api.v3_index());
        let url = index["paths"][key]["serverRelativeURL"].as_str()?.to_owned();
        Some(url.split_once("?hash=").unwrap().1.to_owned())
    };
    let (first, other) = (hash_in_index(KEY).unwrap(), hash_in_index("apis/other.example.com/v1").unwrap());
    assert_eq!(definitions.read(), 0, "the index is made without a definition");

    assert_eq!(open_api.v3_document(KEY).unwrap().hash(), first);
    assert_eq!(open_api.v3_document_protobuf(KEY).unwrap().hash(), first);
    assert_eq!(
        definitions.read(),
        8,
        "each form is made of the two definitions in it, first of paths and then of schemas"
    );
    assert_eq!(open_api.v3_document(KEY).unwrap().hash(), first);
    assert_eq!(definitions.read(), 0, "it is kept");

    definitions.set(of("as", "A", 2));
    let second = hash_in_index(KEY).unwrap();
    assert_ne!(second, first);
    assert_eq!(
        hash_in_index("apis/other.example.com/v1").unwrap(),
        other,
        "other documents stay as they are"
    );
    assert_eq!(open_api.v3_document(KEY).unwrap().hash(), second);
    definitions.remove("as.stable.example.com");
    definitions.remove("bs.stable.example.com");
    assert_eq!(hash_in_index(KEY), None);
    assert!(open_api.v3_document(KEY).is_none());
    assert!(open_api.v3_document("apis/stable.example.com/v0").is_none(), "it is not served");
}

#[test]
fn the_one_document_of_openapi_2_changes_by_definition() {
    let of = |name: &str, kind: &str, generation| {
        definition(name, kind, generation, schema_of(json!({"type": "object"})))
    };
    let definitions = Definitions::with([]);
    let open_api = open_api(&definitions);
    let without = open_api.v2();
    for name in ["as", "bs", "cs"] {
        definitions.set(of(name, &name.to_uppercase(), 1));
    }
    let (json, protobuf) = (open_api.v2(), open_api.v2_protobuf());
    assert_eq!(json.hash(), protobuf.hash());
    assert_ne!(json.hash(), without.hash());
    assert_eq!(definitions.read(), 6);
    definitions.set(of("bs", "BS", 2));
    let changed = open_api.v2();
    assert_eq!(definitions.read(), 1, "only what changed is made anew");
    assert_ne!(changed.hash(), json.hash());
    assert!(parse(&changed.content())["paths"]["/apis/stable.example.com/v1/bs"].is_object());
    // Separately compressed parts form one stream.
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&changed.gzip()[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, changed.content());
    for name in ["as", "bs", "cs"] {
        definitions.remove(&format!("{name}.stable.example.com"));
    }
    assert_eq!(open_api.v2().hash(), without.hash());
    assert_eq!(open_api.v2().content(), without.content());
}

#[test]
fn versions_of_the_servers_own_are_not_taken_over() {
    let mut lease = definition("leases", "Lease", 1, schema_of(json!({"type": "object"})));
    lease["spec"]["group"] = json!("coordination.k8s.io");
    let definitions = Definitions::with([]);
    let open_api = open_api(&definitions);
    let (v2, index) = (open_api.v2().content(), open_api.v3_index());
    definitions.set(lease);
    assert_eq!(open_api.v2().content(), v2);
    assert_eq!(open_api.v3_index(), index);
}

#[test]
fn definitions_with_the_name_of_a_built_in_one_are_renamed() {
    // In reverse, the group is `io.k8s.api.coordination`.
    let mut leases = definition("leases", "Lease", 1, schema_of(json!({"type": "string"})));
    leases["spec"]["group"] = json!("coordination.api.k8s.io");
    let open_api = open_api(&Definitions::with([leases]));
    let text = open_api.v2().content();
    let v2 = parse(&text);
    for (kind, path) in [("Lease", "/{name}"), ("LeaseList", "")] {
        let name = format!("io.k8s.api.coordination.v1.{kind}");
        let member = format!("\"{name}\":{{");
        let count = String::from_utf8_lossy(&text).matches(&member).count();
        assert_eq!(count, 1, "{name}");
        let reference = |group: &str| {
            let path = format!("/apis/{group}/v1/namespaces/{{namespace}}/leases{path}");
            v2["paths"][path.as_str()]["get"]["responses"]["200"]["schema"]["$ref"]
                .as_str()
                .map(str::to_owned)
        };
        assert_eq!(reference("coordination.k8s.io"), Some(format!("#/definitions/{name}")));
        assert_eq!(reference("coordination.api.k8s.io"), Some(format!("#/definitions/{name}_v2")));
    }
    let renamed = &v2["definitions"]["io.k8s.api.coordination.v1.Lease_v2"];
    assert_eq!(renamed["properties"]["spec"]["type"], "string");
    check_references(&v2, &v2);
    // Documents of OpenAPI 3 are about one version.
    let v3 = parse(&open_api.v3_document("apis/coordination.api.k8s.io/v1").unwrap().content());
    assert!(
        v3["components"]["schemas"].as_object().unwrap().contains_key("io.k8s.api.coordination.v1.Lease")
    );
}
