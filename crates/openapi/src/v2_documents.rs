//! Builds and caches the OpenAPI 2 document in both encodings.
//!
//! The part for built-in resources is built once. The part for a custom resource definition is built on request and
//! cached until the definition changes, so that a change of one definition rebuilds only its part.

use crate::{
    custom_definition::{CustomResource, PublishedDefinition},
    custom_documents::{CustomDocuments, Form},
    custom_paths, custom_schema,
    definitions::Dialect,
    descriptions::Descriptions,
    document::{Document, Part, hash_of, hexadecimal},
    json::Members,
    operation::Paths,
    v2, v2_protobuf,
};
use parking_lot::Mutex;
use pintle_machinery::Value;
use sha2::{Digest as _, Sha512};
use std::{
    collections::BTreeMap,
    io::Write as _,
    sync::{Arc, OnceLock},
};

/// Passes the inputs for built-in resources to a function.
type WithSource<'a> = dyn Fn(&mut dyn FnMut(&v2::Source<'_>)) + 'a;

/// The cached parts of the document.
#[derive(Default)]
pub(crate) struct V2Documents {
    json: OnceLock<BuiltinJson>,
    protobuf: OnceLock<Arc<Part>>,
    custom: Mutex<BTreeMap<(Arc<str>, Form), CustomParts>>,
    /// Held while parts are built: the tree of a definition takes a multiple of its text.
    making: Mutex<()>,
}

/// The parts for built-in resources; those of custom resources are inserted between them.
struct BuiltinJson {
    paths: Arc<Part>,
    definitions: Arc<Part>,
    hash: String,
}

/// The parts of one definition.
#[derive(Clone)]
struct CustomParts {
    state: Arc<str>,
    /// Its paths and its definitions in JSON; in protobuf, both in `paths` and the other empty.
    paths: Arc<Part>,
    definitions: Arc<Part>,
}

impl V2Documents {
    /// Assembles the document. `with_source` is called when the part for built-in resources is built.
    pub(crate) fn document(
        &self,
        form: Form,
        custom: Option<&CustomDocuments>,
        with_source: &WithSource<'_>,
    ) -> Document {
        let builtin = self.json.get_or_init(|| {
            let mut made = None;
            with_source(&mut |source| {
                let mut digest = Sha512::new();
                made = Some(BuiltinJson {
                    paths: Part::hashed_by(&mut digest, |out| source.write_paths(out)),
                    definitions: Part::hashed_by(&mut digest, |out| source.write_definitions(out)),
                    hash: hexadecimal(digest),
                });
            });
            made.unwrap_or_else(|| unreachable!("there is a source"))
        });
        let custom = custom.map(|custom| self.custom_parts(form, custom)).unwrap_or_default();
        let states = custom.iter().flat_map(|(name, parts)| [&**name, &*parts.state]);
        let hash = match custom.is_empty() {
            true => builtin.hash.clone(),
            false => hash_of(std::iter::once(builtin.hash.as_str()).chain(states)),
        };
        let parts = match form {
            Form::Json => {
                let mut parts = vec![builtin.paths.clone()];
                parts.extend(custom.iter().map(|(_, own)| own.paths.clone()));
                parts.push(builtin.definitions.clone());
                parts.extend(custom.iter().map(|(_, own)| own.definitions.clone()));
                parts.push(Part::of(v2::END));
                parts
            }
            Form::Protobuf => {
                let builtin = self.protobuf.get_or_init(|| {
                    let mut bytes = Vec::new();
                    with_source(&mut |source| bytes = v2_protobuf::encode(source));
                    Part::of(&bytes)
                });
                let own = custom.iter().map(|(_, own)| own.paths.clone());
                std::iter::once(builtin.clone()).chain(own).collect()
            }
        };
        Document::of(parts, hash)
    }

    /// The parts of each published definition, by its name.
    fn custom_parts(&self, form: Form, custom: &CustomDocuments) -> Vec<(Arc<str>, CustomParts)> {
        let published = custom.definitions().published();
        let is_published = |name: &Arc<str>| published.binary_search_by(|own| own.name.cmp(name)).is_ok();
        self.custom.lock().retain(|(name, _), _| is_published(name));
        let mut descriptions = None;
        let mut all = Vec::with_capacity(published.len());
        for own in &published {
            let key = (own.name.clone(), form);
            let kept = || self.custom.lock().get(&key).filter(|parts| parts.state == own.state).cloned();
            let parts = kept().or_else(|| {
                let _making = self.making.lock();
                if let Some(parts) = kept() {
                    return Some(parts);
                }
                let definition = custom.definitions().definition(&own.name)?;
                let descriptions = descriptions.get_or_insert_with(Descriptions::load);
                let parts = make(custom, &definition, form, descriptions);
                self.custom.lock().insert(key.clone(), parts.clone());
                Some(parts)
            });
            all.extend(parts.map(|parts| (own.name.clone(), parts)));
        }
        all
    }
}

fn make(
    custom: &CustomDocuments,
    definition: &Value,
    form: Form,
    descriptions: &Descriptions,
) -> CustomParts {
    let mut paths = Paths::new();
    let mut definitions = BTreeMap::new();
    for resource in CustomResource::all(definition).filter(|resource| custom.is_about(resource)) {
        custom_paths::add(&mut paths, &resource);
        definitions.extend(custom_schema::definitions(&resource, Dialect::V2, descriptions));
    }
    let mut items = paths.iter().map(|(path, operations)| (path.as_str(), v2::path_item(operations)));
    let state = PublishedDefinition::of(definition).state;
    match form {
        Form::Json => CustomParts {
            state,
            paths: Part::written_by(|out| {
                let mut members = Members::resume(out);
                items.try_for_each(|(path, item)| members.member(path, &item))
            }),
            definitions: Part::written_by(|out| {
                let mut members = Members::resume(out);
                definitions.iter().try_for_each(|(name, definition)| members.member(name, definition))
            }),
        },
        Form::Protobuf => CustomParts {
            state,
            paths: Part::written_by(|out| {
                out.write_all(&v2_protobuf::encode_more(items, definitions.iter()))
            }),
            definitions: Part::of(b""),
        },
    }
}
