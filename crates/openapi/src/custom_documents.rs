//! The OpenAPI 3 documents of custom resources: one for each group and version, from all definitions in it.
//!
//! A document is built on request and cached within a memory bound. Most of its text describes types that all custom
//! resources use (metadata, options, `Status`); all documents share that part, which is built once.

use crate::{
    custom_definition::{CustomDefinitions, CustomResource, PublishedDefinition},
    custom_paths, custom_schema,
    definitions::{Definitions, Dialect},
    descriptions::Descriptions,
    document::{Document, hash_of, part_of, written_part},
    json::Members,
    names::meta,
    operation::Paths,
    v3, v3_protobuf,
};
use hashlink::LruCache;
use parking_lot::Mutex;
use pintle_gzip::Part;
use pintle_machinery::{GroupVersion, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    sync::{Arc, OnceLock},
};

/// The maximum size of the cached documents, in bytes.
const KEPT: usize = 8 << 20;

/// The encoding of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    Json,
    Protobuf,
}

/// Builds and caches the documents of custom resources.
pub(crate) struct CustomDocuments {
    definitions: Arc<dyn CustomDefinitions>,
    server_version: String,
    /// The versions of built-in resources.
    versions: Vec<GroupVersion>,
    common: [OnceLock<Common>; 2],
    kept: Mutex<Kept>,
    /// Held while a document is built.
    making: Mutex<()>,
}

/// Writes some definitions.
type WriteDefinitions<'w> = dyn FnMut(&[(String, Value)]) -> io::Result<()> + 'w;

/// The parts that all documents of one encoding share.
struct Common {
    /// The types of every custom resource.
    always: Arc<Part>,
    /// The types for the scale subresource.
    scale: Arc<Part>,
    end: Arc<Part>,
}

struct Kept(LruCache<(String, Form), Arc<Document>>);

impl CustomDocuments {
    pub(crate) fn new(
        definitions: Arc<dyn CustomDefinitions>,
        server_version: &str,
        versions: Vec<GroupVersion>,
    ) -> CustomDocuments {
        CustomDocuments {
            definitions,
            server_version: server_version.to_owned(),
            versions,
            common: [OnceLock::new(), OnceLock::new()],
            kept: Mutex::new(Kept(LruCache::new_unbounded())),
            making: Mutex::default(),
        }
    }

    /// The definitions that the documents are built from.
    pub(crate) fn definitions(&self) -> &dyn CustomDefinitions {
        &*self.definitions
    }

    /// Whether a resource is included in the documents. Custom resources are not served in a group and version that has
    /// built-in resources.
    pub(crate) fn is_about(&self, resource: &CustomResource<'_>) -> bool {
        !self.versions.contains(&resource.kind.group_version())
    }

    /// The hash of each document, by group and version. Builds no document.
    pub(crate) fn hashes(&self) -> BTreeMap<GroupVersion, String> {
        let published = self.definitions.published();
        let mut by_version: BTreeMap<GroupVersion, Vec<&PublishedDefinition>> = BTreeMap::new();
        for definition in &published {
            for version in &*definition.versions {
                let version = GroupVersion::new(&*definition.group, &**version);
                by_version.entry(version).or_default().push(definition);
            }
        }
        by_version
            .into_iter()
            .map(|(version, definitions)| (version, self.hash(definitions.into_iter())))
            .collect()
    }

    fn hash<'a>(&self, definitions: impl Iterator<Item = &'a PublishedDefinition>) -> String {
        let states = definitions.flat_map(|definition| [&*definition.name, &*definition.state]);
        hash_of(std::iter::once(self.server_version.as_str()).chain(states))
    }

    /// The document of a group and version; `None` without custom resources in it.
    pub(crate) fn document(&self, version: &GroupVersion, form: Form) -> Option<Arc<Document>> {
        let mut published = self.definitions.published();
        published.retain(|definition| {
            *definition.group == *version.group
                && definition.versions.iter().any(|served| **served == *version.version)
        });
        if published.is_empty() {
            return None;
        }
        let key = (version.to_string(), form);
        let hash = self.hash(published.iter());
        if let Some(document) = self.kept.lock().get(&key, &hash) {
            return Some(document);
        }
        // One at a time: the trees of definitions take a multiple of their text.
        let _making = self.making.lock();
        if let Some(document) = self.kept.lock().get(&key, &hash) {
            return Some(document);
        }
        let names: Vec<&str> = published.iter().map(|definition| &*definition.name).collect();
        let document = Arc::new(self.make(&names, version, form)?);
        self.kept.lock().insert(key, document.clone());
        Some(document)
    }

    /// Builds the document of a version from the definitions with these names. The hash covers the definitions that
    /// were read, which may be newer than the request.
    fn make(&self, names: &[&str], version: &GroupVersion, form: Form) -> Option<Document> {
        let is_about = |resource: &CustomResource<'_>| resource.kind.group_version() == *version;
        let mut paths = Paths::new();
        let mut states = Vec::new();
        let (mut count, mut has_scale) = (0, false);
        for definition in names.iter().filter_map(|name| self.definitions.definition(name)) {
            states.push(PublishedDefinition::of(&definition));
            for resource in CustomResource::all(&definition).filter(is_about) {
                custom_paths::add(&mut paths, &resource);
                count += 1;
                has_scale |= resource.has_scale;
            }
        }
        if count == 0 {
            return None;
        }
        let hash = self.hash(states.iter());
        let descriptions = Descriptions::load();
        let items = paths.iter().map(|(path, operations)| (path.as_str(), v3::path_item(operations)));
        let info = v3::info("Kubernetes CRD Swagger", "v0.1.0");
        let with_each = |write: &mut WriteDefinitions<'_>| {
            for definition in names.iter().filter_map(|name| self.definitions.definition(name)) {
                for resource in CustomResource::all(&definition).filter(is_about) {
                    let made = custom_schema::definitions(&resource, Dialect::V3, &descriptions);
                    write(&made.into_iter().collect::<Vec<_>>())?;
                }
            }
            Ok(())
        };
        let own = written_part(|out| match form {
            Form::Json => write_json(out, &info, items, with_each),
            Form::Protobuf => {
                out.write_all(&v3_protobuf::head(&info, items).0)?;
                with_each(&mut |definitions| {
                    let mut message = Default::default();
                    v3_protobuf::some_definitions(&mut message, definitions);
                    out.write_all(&message.0)
                })
            }
        });
        let [json, protobuf] = &self.common;
        let common = match form {
            Form::Json => json.get_or_init(|| self.common(form, &descriptions)),
            Form::Protobuf => protobuf.get_or_init(|| self.common(form, &descriptions)),
        };
        let mut parts = vec![own, common.always.clone()];
        if has_scale {
            parts.push(common.scale.clone());
        }
        parts.push(common.end.clone());
        Some(Document::of(parts, hash))
    }

    fn common(&self, form: Form, descriptions: &Descriptions) -> Common {
        let definitions = Definitions { dialect: Dialect::V3, descriptions, versions: &self.versions };
        let [list_meta, object_meta] = custom_schema::references();
        let always = [list_meta, object_meta, meta("DeleteOptions"), meta("Patch"), meta("Status")];
        let always = all(&definitions, always.iter().map(String::as_str));
        let names: BTreeSet<&str> = always.iter().map(|(name, _)| name.as_str()).collect();
        let mut scale = all(&definitions, std::iter::once(custom_paths::SCALE));
        scale.retain(|(name, _)| !names.contains(name.as_str()));
        let part = |some: &[(String, Value)]| {
            written_part(|out| match form {
                Form::Json => write_definitions(&mut Members::resume(out), some),
                Form::Protobuf => {
                    let mut message = Default::default();
                    v3_protobuf::some_definitions(&mut message, some);
                    out.write_all(&message.0)
                }
            })
        };
        let end = match form {
            Form::Json => part_of(b"}}}"),
            Form::Protobuf => part_of(b""),
        };
        Common { always: part(&always), scale: part(&scale), end }
    }
}

/// The named definitions and all definitions that they refer to.
fn all<'n>(definitions: &Definitions<'_>, names: impl Iterator<Item = &'n str>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let Ok(()) = definitions.visit(names, |name, definition| {
        found.push((name.to_owned(), definition.clone()));
        Ok::<(), std::convert::Infallible>(())
    });
    found
}

/// Writes the document up to its own definitions; the shared ones follow.
fn write_json<'a>(
    out: &mut impl Write,
    info: &Value,
    items: impl Iterator<Item = (&'a str, Value)>,
    with_each: impl FnOnce(&mut WriteDefinitions<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut document = Members::start(out)?;
    document.member("openapi", &v3::VERSION.into())?;
    document.member("info", info)?;
    let mut paths = document.object("paths")?;
    for (path, item) in items {
        paths.member(path, &item)?;
    }
    paths.end()?;
    let mut components = document.object("components")?;
    let mut schemas = components.object("schemas")?;
    with_each(&mut |definitions| write_definitions(&mut schemas, definitions))
}

fn write_definitions<W: Write>(
    members: &mut Members<'_, W>,
    definitions: &[(String, Value)],
) -> io::Result<()> {
    definitions.iter().try_for_each(|(name, definition)| members.member(name, definition))
}

impl Kept {
    fn get(&mut self, key: &(String, Form), hash: &str) -> Option<Arc<Document>> {
        self.0.get(key).filter(|document| document.hash() == hash).cloned()
    }

    /// Inserts a document, and evicts the least recently used ones above the size bound.
    fn insert(&mut self, key: (String, Form), document: Arc<Document>) {
        self.0.insert(key, document);
        let mut size: usize = self.0.iter().map(|(_, document)| document.own_size()).sum();
        while size > KEPT && self.0.len() > 1 {
            let Some((_, document)) = self.0.remove_lru() else { return };
            size -= document.own_size().min(size);
        }
    }
}
