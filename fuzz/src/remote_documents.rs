//! Fuzzes the documents that the servers behind API services send: discovery and OpenAPI.

use pintle_machinery::{Value, ValueExt, codec::json};
use pintle_openapi::{OpenApi, PackedDocument, RemoteDocument, RemoteDocuments};
use pintle_schema::Schema;
use std::{collections::BTreeMap, sync::Arc};

const TYPE: &str = "k8s.io/api/apidiscovery/v2.APIGroupDiscoveryList";

/// Asserts that the content of a discovery document survives encoding and decoding. Returns whether the document is
/// usable.
pub(crate) fn remote_discovery(data: &[u8]) -> bool {
    let mut versions = pintle_aggregator::aggregated(data).unwrap_or_default();
    let converted = pintle_aggregator::legacy(data, "v1");
    if let Ok(document) = &converted {
        versions.insert(pintle_machinery::GroupVersion::new("legacy", "v1"), document.clone());
    }
    let items: Vec<Value> = versions
        .iter()
        .map(|(own, document)| {
            pintle_machinery::json!({"metadata": {"name": own.group}, "versions": [Value::clone(document)]})
        })
        .collect();
    let list = pintle_machinery::json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items,
    });
    let Some(schema) = Schema::builtin().by_type_name(TYPE) else { return false };
    let text = json::encode(&list, schema);
    let again = pintle_aggregator::aggregated(&text);
    assert_eq!(again.map(|again| again.len()), Ok(versions.len()), "what is served can be read");
    !versions.is_empty()
}

/// An OpenAPI document of another server is merged into a document that is valid and has no dangling new names. Returns
/// whether it is usable.
pub(crate) fn remote_openapi(data: &[u8]) -> bool {
    let Ok(document) = RemoteDocument::parse(data) else { return false };
    let parts = document.split(["/apis/a/v1/", "/apis/b/v1/"]).collect::<Vec<_>>();
    let documents = parts.iter().chain([&document]).map(|part| Arc::new(part.pack())).collect();
    let open_api = OpenApi::new(Vec::new(), "v1").with_remote_documents(Arc::new(Documents(documents)));
    let merged = json::decode_any(&open_api.v2().content()).expect("the merged document is valid");
    assert!(merged.map_at("paths").keys().all(|path| path.starts_with('/')));
    assert!(!open_api.v2_protobuf().content().is_empty());
    assert_eq!(open_api.v2().hash(), open_api.v2_protobuf().hash());
    true
}

struct Documents(Vec<Arc<PackedDocument>>);

impl RemoteDocuments for Documents {
    fn current(&self) -> Vec<Arc<PackedDocument>> {
        self.0.clone()
    }

    fn index(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}
