//! OpenAPI documents, built from the declarations of resources and the schema of their types.
//!
//! `/openapi/v3` is an index of documents: one for each API version, one for each group and a few more; `/openapi/v2`
//! is one document with everything. Documents are built on first request and cached compressed, so an idle server holds
//! none. Their form is that of the reference, which clients rely on to explain, validate and merge objects
//! (<https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-interface-definition>).

mod custom_definition;
mod custom_documents;
mod custom_paths;
mod custom_schema;
mod definitions;
mod descriptions;
mod document;
mod json;
mod names;
mod operation;
mod parameters;
mod paths;
mod protobuf;
mod remote;
mod resource_paths;
mod security;
mod v2;
mod v2_documents;
mod v2_protobuf;
mod v3;
mod v3_protobuf;

pub use custom_definition::{CustomDefinitions, PublishedDefinition};
pub use descriptions::field_description;
pub use document::Document;
pub use remote::{PackedDocument, RemoteDocument, RemoteDocuments};

use bytes::Bytes;
use custom_documents::{CustomDocuments, Form};
use descriptions::Descriptions;
use parking_lot::Mutex;
use pintle_machinery::{GroupVersion, Map, json};
use pintle_registry::Resource;
use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::{Arc, OnceLock},
};
use v2_documents::V2Documents;

/// The documents of a set of resources.
pub struct OpenApi {
    resources: Vec<Arc<Resource>>,
    server_version: String,
    /// The version in the documents: that of the API, without the patch.
    info_version: String,
    documents: OnceLock<BTreeMap<String, Arc<Document>>>,
    v3_protobuf: Mutex<BTreeMap<String, Arc<Document>>>,
    v2: V2Documents,
    custom: Option<CustomDocuments>,
    remote: Option<Arc<dyn RemoteDocuments>>,
}

impl OpenApi {
    /// Creates the documents of these resources. `server_version` is the server's version, such as `v1.36.2`.
    pub fn new(resources: Vec<Arc<Resource>>, server_version: impl Into<String>) -> OpenApi {
        let server_version = server_version.into();
        let parts: Vec<&str> = server_version.trim_start_matches('v').split('.').take(2).collect();
        OpenApi {
            resources,
            info_version: parts.join("."),
            server_version,
            documents: OnceLock::new(),
            v3_protobuf: Mutex::new(BTreeMap::new()),
            v2: V2Documents::default(),
            custom: None,
            remote: None,
        }
    }

    /// Sets the version of the API in the documents, such as `1.35`: the one that the server emulates.
    #[must_use]
    pub fn with_info_version(self, info_version: impl Into<String>) -> OpenApi {
        OpenApi { info_version: info_version.into(), ..self }
    }

    /// Adds the custom resources of these definitions.
    #[must_use]
    pub fn with_custom_definitions(self, definitions: Arc<dyn CustomDefinitions>) -> OpenApi {
        let custom = CustomDocuments::new(definitions, &self.server_version, self.versions());
        OpenApi { custom: Some(custom), ..self }
    }

    /// Adds the documents of other servers to that of OpenAPI 2.
    #[must_use]
    pub fn with_remote_documents(self, remote: Arc<dyn RemoteDocuments>) -> OpenApi {
        OpenApi { remote: Some(remote), ..self }
    }

    /// The response to `/openapi/v3`: the URL of each document, with its hash.
    pub fn v3_index(&self) -> Bytes {
        let of_url = |url: String| json!({"serverRelativeURL": url});
        let entry = |key: String, hash: &str| {
            let url = format!("/openapi/v3/{key}?hash={hash}");
            (key, of_url(url))
        };
        let mut paths: Map = self
            .custom
            .iter()
            .flat_map(|custom| custom.hashes())
            .map(|(version, hash)| entry(key_of(&version), &hash))
            .collect();
        // A custom resource never replaces one of the server's own versions.
        paths.extend(self.v3_documents().iter().map(|(key, document)| entry(key.clone(), document.hash())));
        // Another server replaces them.
        let remote = self.remote.as_ref().map(|remote| remote.index()).unwrap_or_default();
        paths.extend(remote.into_iter().map(|(key, url)| (key, of_url(url))));
        json!({"paths": paths}).to_string().into()
    }

    /// The document at `/openapi/v3/<key>`: `apis/apps/v1`, `api/v1`, `apis/apps`, `version`, …
    pub fn v3_document(&self, key: &str) -> Option<Arc<Document>> {
        let built_in = self.v3_documents().get(key).cloned();
        built_in.or_else(|| self.custom_document(key, Form::Json))
    }

    fn custom_document(&self, key: &str, form: Form) -> Option<Arc<Document>> {
        let (group, version) = key.strip_prefix("apis/")?.split_once('/')?;
        self.custom.as_ref()?.document(&GroupVersion::new(group, version), form)
    }

    /// As [`OpenApi::v3_document`], in protobuf (`application/com.github.proto-openapi.spec.v3@v1.0+protobuf`), with
    /// the same hash.
    pub fn v3_document_protobuf(&self, key: &str) -> Option<Arc<Document>> {
        let Some(json) = self.v3_documents().get(key) else {
            return self.custom_document(key, Form::Protobuf);
        };
        let mut made = self.v3_protobuf.lock();
        if let Some(document) = made.get(key) {
            return Some(document.clone());
        }
        let (documents, versions) = (paths::documents(&self.resources), self.versions_by_key());
        let source = v3::Source {
            paths: documents.get(key)?,
            version: versions.get(key),
            server_version: &self.info_version,
            descriptions: &Descriptions::load(),
        };
        let bytes = v3_protobuf::encode(&source);
        let document = Document::written_by(|out| out.write_all(&bytes)).with_hash_of(json);
        let document = Arc::new(document);
        made.insert(key.to_owned(), document.clone());
        Some(document)
    }

    /// The `/openapi/v3` documents of built-in resources, by key. They are built together, because the index contains
    /// the hash of each.
    pub fn v3_documents(&self) -> &BTreeMap<String, Arc<Document>> {
        self.documents.get_or_init(|| {
            let descriptions = Descriptions::load();
            let versions = self.versions_by_key();
            paths::documents(&self.resources)
                .iter()
                .map(|(key, paths)| {
                    let source = v3::Source {
                        paths,
                        version: versions.get(key),
                        server_version: &self.info_version,
                        descriptions: &descriptions,
                    };
                    (key.clone(), Arc::new(Document::written_by(|out| source.write(out))))
                })
                .collect()
        })
    }

    /// The response to `/openapi/v2` in JSON.
    pub fn v2(&self) -> Document {
        self.v2_document(Form::Json)
    }

    /// The response to `/openapi/v2` in protobuf (`application/com.github.proto-openapi.spec.v2@v1.0+protobuf`), which
    /// Go clients request. It has the hash of the JSON form.
    pub fn v2_protobuf(&self) -> Document {
        self.v2_document(Form::Protobuf)
    }

    fn v2_document(&self, form: Form) -> Document {
        let versions = self.versions();
        let remote = self.remote.as_ref().map(|remote| remote.current()).unwrap_or_default();
        self.v2.document(form, self.custom.as_ref(), &remote, &|kinds, use_source| {
            let documents = paths::documents(&self.resources);
            use_source(&v2::Source {
                kinds,
                documents: &documents.values().collect::<Vec<_>>(),
                versions: &versions,
                server_version: &self.info_version,
                descriptions: &Descriptions::load(),
            });
        })
    }

    fn versions_by_key(&self) -> BTreeMap<String, GroupVersion> {
        self.versions().into_iter().map(|version| (key_of(&version), version)).collect()
    }

    fn versions(&self) -> Vec<GroupVersion> {
        let mut versions: Vec<GroupVersion> =
            self.resources.iter().map(|resource| resource.resource.group_version()).collect();
        versions.sort();
        versions.dedup();
        versions
    }
}

fn key_of(version: &GroupVersion) -> String {
    names::root(version).trim_start_matches('/').to_owned()
}
