//! Tests that the documents of the built-in resources are consistent.

use pintle_machinery::Value;
use pintle_openapi::OpenApi;
use std::{collections::BTreeSet, sync::Arc};

fn open_api() -> OpenApi {
    let resources = pintle_api::resources(&pintle_api::Config::default());
    OpenApi::new(resources.into_iter().map(Arc::new).collect(), "v1.36.2")
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("documents are JSON")
}

#[test]
fn the_index_names_every_document_by_its_hash() {
    let open_api = open_api();
    let index = json(&open_api.v3_index());
    let paths = index["paths"].as_object().expect("the index has paths");
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps") && paths.contains_key("version"));
    for (key, entry) in paths {
        let document = open_api.v3_document(key).expect("documents of the index exist");
        let url = format!("/openapi/v3/{key}?hash={}", document.hash());
        assert_eq!(entry["serverRelativeURL"], url);
    }
    assert!(open_api.v3_document("apis/none/v1").is_none());
}

#[test]
fn every_reference_leads_to_a_definition() {
    let open_api = open_api();
    for (key, document) in open_api.v3_documents() {
        let document = json(&document.content());
        check_references(key, &document, &document);
    }
    let document = json(&open_api.v2().content());
    check_references("v2", &document, &document);
}

fn check_references(key: &str, document: &Value, value: &Value) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let pointer = reference.trim_start_matches('#');
                assert!(document.pointer(pointer).is_some(), "{key}: {reference}");
            }
            members.values().for_each(|member| check_references(key, document, member));
        }
        Value::Array(items) => items.iter().for_each(|item| check_references(key, document, item)),
        _ => {}
    }
}

#[test]
fn operations_have_ids_of_their_own() {
    let document = json(&open_api().v2().content());
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("there are paths") {
        for (method, operation) in item.as_object().expect("items are objects") {
            if method != "parameters" {
                let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
                assert!(ids.insert(id.clone()), "{path} {method}: {id}");
            }
        }
    }
}

#[test]
fn kinds_and_their_fields_are_described() {
    let document = json(&open_api().v2().content());
    for (name, definition) in document["definitions"].as_object().expect("there are definitions") {
        if definition.get("x-kubernetes-group-version-kind").is_none() {
            continue;
        }
        assert!(definition["description"].is_string(), "{name}");
        for (field, schema) in definition["properties"].as_object().expect("kinds have fields") {
            // The reference does not describe this field either.
            let is_known = name.ends_with("CertificateSigningRequest") && field == "metadata";
            assert!(schema["description"].is_string() || is_known, "{name} {field}");
        }
    }
}

#[test]
fn patches_tell_clients_that_the_server_validates_fields() {
    // kubectl leaves validation to the server when it finds this parameter.
    let document = json(&open_api().v3_document("apis/apps/v1").expect("apps/v1 is served").content());
    let path = "/paths/~1apis~1apps~1v1~1namespaces~1{namespace}~1deployments~1{name}/patch/parameters";
    let parameters = document.pointer(path).and_then(Value::as_array).expect("patches have parameters");
    assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
}

#[test]
fn both_forms_of_a_document_are_the_same() {
    use std::io::Read as _;
    let document = open_api().v3_document("api/v1").expect("the core group is served");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&document.gzip()[..]).read_to_end(&mut unpacked).expect("it is gzip");
    assert_eq!(unpacked, document.content());
    assert_eq!(document.hash().len(), 128);
}

#[test]
fn documents_have_the_version_that_the_server_emulates() {
    let check = |open_api: OpenApi, expected: &str| {
        for document in [open_api.v2().content(), open_api.v3_document("api/v1").unwrap().content()] {
            let document = json(&document);
            assert_eq!(document["info"]["version"], expected);
        }
    };
    check(open_api(), "1.36");
    check(open_api().with_info_version("1.34"), "1.34");
}
