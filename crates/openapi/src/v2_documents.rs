//! Builds and caches the OpenAPI 2 document in both encodings.
//!
//! The part for built-in resources is built once. The part for a custom resource definition is built on request and
//! cached until the definition changes, so that a change of one definition rebuilds only its part. The documents of other
//! servers are merged when the document is requested after a change.

use crate::{
    custom_definition::{CustomResource, PublishedDefinition},
    custom_documents::{CustomDocuments, Form},
    custom_paths, custom_schema,
    definitions::Dialect,
    descriptions::Descriptions,
    document::{Document, hash_of, hashed_part, hexadecimal, part_of, written_part},
    json::Members,
    operation::Paths,
    remote::{
        Fingerprint, LocalNames, Merge, PackedDocument, RemoteDocument, fingerprint, fingerprint_of_name,
    },
    v2, v2_protobuf,
};
use parking_lot::Mutex;
use pintle_gzip::Part;
use pintle_machinery::Value;
use sha2::{Digest as _, Sha512};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    io::Write as _,
    sync::{Arc, OnceLock},
};

/// The start of the names of all built-in definitions.
const BUILTIN: &str = "io.k8s.";

/// Passes the inputs for built-in resources to a function, with group-version-kinds that are added to definitions.
type WithSource<'a> = dyn Fn(&Kinds, &mut dyn FnMut(&v2::Source<'_>)) + 'a;

type Kinds = BTreeMap<String, Vec<Value>>;

/// The cached parts of the document.
#[derive(Default)]
pub(crate) struct V2Documents {
    json: OnceLock<BuiltinJson>,
    protobuf: OnceLock<Arc<Part>>,
    names: OnceLock<LocalNames>,
    merged: Mutex<Option<Arc<Merged>>>,
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
    names: Arc<CustomNames>,
}

/// The names of the paths and of the definitions of a custom resource definition, as hashes.
struct CustomNames {
    paths: Box<[Fingerprint]>,
    definitions: Box<[(Fingerprint, Fingerprint)]>,
}

/// The parts of the documents of other servers.
struct Merged {
    /// The hash of the documents and of the definitions that they are merged with.
    hash: String,
    merge: Merge,
    json: OnceLock<MergedJson>,
    protobuf: OnceLock<[Arc<Part>; 2]>,
}

struct MergedJson {
    paths: Arc<Part>,
    /// The definitions of built-in resources, with the group-version-kinds of other servers.
    builtin_definitions: Arc<Part>,
    definitions: Arc<Part>,
    end: Arc<Part>,
}

impl V2Documents {
    /// Assembles the document. `with_source` is called when the part for built-in resources is built.
    pub(crate) fn document(
        &self,
        form: Form,
        custom: Option<&CustomDocuments>,
        remote: &[Arc<PackedDocument>],
        with_source: &WithSource<'_>,
    ) -> Document {
        let builtin = self.json.get_or_init(|| {
            let mut made = None;
            with_source(&Kinds::new(), &mut |source| {
                let mut digest = Sha512::new();
                made = Some(BuiltinJson {
                    paths: hashed_part(&mut digest, |out| source.write_paths(out)),
                    definitions: hashed_part(&mut digest, |out| source.write_definitions(out)),
                    hash: hexadecimal(digest),
                });
            });
            made.unwrap_or_else(|| unreachable!("there is a source"))
        });
        let custom = custom.map(|custom| self.custom_parts(form, custom, with_source)).unwrap_or_default();
        let states = custom.iter().flat_map(|(name, parts)| [&**name, &*parts.state]);
        let hash = match custom.is_empty() {
            true => builtin.hash.clone(),
            false => hash_of(std::iter::once(builtin.hash.as_str()).chain(states)),
        };
        if !remote.is_empty() {
            let merged = self.merged(hash, &custom, remote, with_source);
            let parts = self.merged_parts(form, &merged, builtin, &custom, with_source);
            return Document::of(parts, merged.hash.clone());
        }
        let parts = match form {
            Form::Json => {
                let mut parts = vec![builtin.paths.clone()];
                parts.extend(custom.iter().map(|(_, own)| own.paths.clone()));
                parts.push(builtin.definitions.clone());
                parts.extend(custom.iter().map(|(_, own)| own.definitions.clone()));
                parts.push(part_of(v2::END));
                parts
            }
            Form::Protobuf => {
                let builtin = self.protobuf.get_or_init(|| builtin_protobuf(&Kinds::new(), with_source));
                let own = custom.iter().map(|(_, own)| own.paths.clone());
                std::iter::once(builtin.clone()).chain(own).collect()
            }
        };
        Document::of(parts, hash)
    }

    /// The names of the document for built-in resources.
    fn builtin_names(&self, with_source: &WithSource<'_>) -> &LocalNames {
        self.names.get_or_init(|| {
            let mut names = LocalNames::default();
            with_source(&Kinds::new(), &mut |source| {
                source.paths().for_each(|(path, _)| names.add_path(path));
                let Ok(()) = source.visit_definitions(|name, definition| {
                    names.add_definition(name, definition);
                    Ok::<(), Infallible>(())
                });
            });
            names
        })
    }

    /// The names of the documents of other servers, merged with those of this server, whose hash is `local`.
    fn merged(
        &self,
        local: String,
        custom: &[(Arc<str>, CustomParts)],
        remote: &[Arc<PackedDocument>],
        with_source: &WithSource<'_>,
    ) -> Arc<Merged> {
        let hashes = remote.iter().map(|document| document.hash());
        let hash = hash_of(std::iter::once(local.as_str()).chain(hashes));
        // Held while the names are decided, which takes one tree at a time.
        let mut merged = self.merged.lock();
        if let Some(merged) = merged.as_ref().filter(|merged| merged.hash == hash) {
            return merged.clone();
        }
        let mut names = self.builtin_names(with_source).clone();
        for (_, parts) in custom {
            names.add_fixed(&parts.names.paths, &parts.names.definitions);
        }
        let merge = Merge::new(names, remote);
        let made = Arc::new(Merged { hash, merge, json: OnceLock::new(), protobuf: OnceLock::new() });
        *merged = Some(made.clone());
        made
    }

    fn merged_parts(
        &self,
        form: Form,
        merged: &Merged,
        builtin: &BuiltinJson,
        custom: &[(Arc<str>, CustomParts)],
        with_source: &WithSource<'_>,
    ) -> Vec<Arc<Part>> {
        let kinds = merged.merge.kinds();
        let mut parts = Vec::new();
        match form {
            Form::Json => {
                let made = merged.json.get_or_init(|| {
                    let _making = self.making.lock();
                    merged_json(&merged.merge, builtin, with_source)
                });
                parts.push(builtin.paths.clone());
                parts.extend(custom.iter().map(|(_, own)| own.paths.clone()));
                parts.extend([made.paths.clone(), made.builtin_definitions.clone()]);
                parts.extend(custom.iter().map(|(_, own)| own.definitions.clone()));
                parts.extend([made.definitions.clone(), made.end.clone()]);
            }
            Form::Protobuf => {
                let [builtin, more] = merged.protobuf.get_or_init(|| {
                    let _making = self.making.lock();
                    let more = written_part(|out| {
                        merged
                            .merge
                            .documents()
                            .try_for_each(|document| out.write_all(&v2_protobuf::encode_remote(&document)))
                    });
                    let builtin = match kinds.is_empty() {
                        true => self.protobuf.get_or_init(|| builtin_protobuf(kinds, with_source)).clone(),
                        false => builtin_protobuf(kinds, with_source),
                    };
                    [builtin, more]
                });
                parts.push(builtin.clone());
                parts.extend(custom.iter().map(|(_, own)| own.paths.clone()));
                parts.push(more.clone());
            }
        }
        parts
    }

    /// The parts of each published definition, by its name.
    fn custom_parts(
        &self,
        form: Form,
        custom: &CustomDocuments,
        with_source: &WithSource<'_>,
    ) -> Vec<(Arc<str>, CustomParts)> {
        let is_taken =
            |name: &str| name.starts_with(BUILTIN) && self.builtin_names(with_source).has_definition(name);
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
                let parts = make(custom, &definition, form, descriptions, is_taken);
                self.custom.lock().insert(key.clone(), parts.clone());
                Some(parts)
            });
            all.extend(parts.map(|parts| (own.name.clone(), parts)));
        }
        all
    }
}

fn builtin_protobuf(kinds: &Kinds, with_source: &WithSource<'_>) -> Arc<Part> {
    let mut bytes = Vec::new();
    with_source(kinds, &mut |source| bytes = v2_protobuf::encode(source));
    part_of(&bytes)
}

fn merged_json(merge: &Merge, builtin: &BuiltinJson, with_source: &WithSource<'_>) -> MergedJson {
    let kinds = merge.kinds();
    let mut builtin_definitions = builtin.definitions.clone();
    if !kinds.is_empty() {
        with_source(kinds, &mut |source| {
            builtin_definitions = written_part(|out| source.write_definitions(out));
        });
    }
    let members = |of: fn(RemoteDocument) -> BTreeMap<String, Value>| {
        written_part(|out| {
            let mut members = Members::resume(out);
            merge.documents().flat_map(of).try_for_each(|(name, value)| members.member(&name, &value))
        })
    };
    let end = match merge.has_parameters() {
        false => part_of(v2::END),
        true => written_part(|out| {
            // Ends the definitions.
            out.write_all(b"}")?;
            let mut document = Members::resume(out);
            let mut parameters = document.object("parameters")?;
            for (name, parameter) in merge.documents().flat_map(|document| document.parameters) {
                parameters.member(&name, &parameter)?;
            }
            parameters.end()?;
            document.end()
        }),
    };
    MergedJson {
        paths: members(|document| document.paths),
        builtin_definitions,
        definitions: members(|document| document.definitions),
        end,
    }
}

fn make(
    custom: &CustomDocuments,
    definition: &Value,
    form: Form,
    descriptions: &Descriptions,
    is_taken: impl Fn(&str) -> bool,
) -> CustomParts {
    let mut paths = Paths::new();
    let mut definitions = BTreeMap::new();
    for mut resource in CustomResource::all(definition).filter(|resource| custom.is_about(resource)) {
        resource.rename_definitions(&is_taken);
        custom_paths::add(&mut paths, &resource);
        definitions.extend(custom_schema::definitions(&resource, Dialect::V2, descriptions));
    }
    let mut items = paths.iter().map(|(path, operations)| (path.as_str(), v2::path_item(operations)));
    let state = PublishedDefinition::of(definition).state;
    let names = Arc::new(CustomNames {
        paths: paths.keys().map(|path| fingerprint_of_name(path)).collect(),
        definitions: definitions
            .iter()
            .map(|(name, definition)| (fingerprint_of_name(name), fingerprint(definition)))
            .collect(),
    });
    match form {
        Form::Json => CustomParts {
            state,
            paths: written_part(|out| {
                let mut members = Members::resume(out);
                items.try_for_each(|(path, item)| members.member(path, &item))
            }),
            definitions: written_part(|out| {
                let mut members = Members::resume(out);
                definitions.iter().try_for_each(|(name, definition)| members.member(name, definition))
            }),
            names,
        },
        Form::Protobuf => CustomParts {
            state,
            paths: written_part(|out| out.write_all(&v2_protobuf::encode_more(items, definitions.iter()))),
            definitions: part_of(b""),
            names,
        },
    }
}
