//! Merges documents of other servers into the document of this server.
//!
//! Paths and definitions that are there already win: a path of the same name is left out, and a definition of the same name but
//! other content is renamed `NAME_v2`, with all references to it. As in kube-apiserver, contents are compared before references
//! are renamed. Definitions of the same content are there once, with the
//! group-version-kinds of all documents.
//!
//! A merge has two passes, so that only one document at a time is in memory as a tree: the first one decides the names, the
//! second one writes.

use super::{
    PackedDocument, RemoteDocument,
    references::{DEFINITION, PARAMETERS},
    shape::{PARAMETER, PATH_ITEM, SCHEMA, replace_references},
};
use pintle_machinery::{Text, Value, ValueExt};
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// The hash of a name or of a definition.
pub(crate) type Fingerprint = [u8; 16];

/// The maximum length of all merged documents, in bytes of uncompressed text. Documents beyond it are left out.
const MOST: usize = 96 << 20;

const KINDS: &str = "x-kubernetes-group-version-kind";

/// The paths and definitions of this server.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalNames {
    paths: HashSet<Fingerprint>,
    definitions: HashMap<Fingerprint, Known>,
}

/// A definition whose name is taken.
#[derive(Debug, Clone)]
struct Known {
    content: Fingerprint,
    kinds: BTreeSet<String>,
    /// Whether more group-version-kinds can be added.
    is_open: bool,
}

impl LocalNames {
    pub(crate) fn add_path(&mut self, path: &str) {
        self.paths.insert(fingerprint_of_name(path));
    }

    /// Adds a definition whose group-version-kinds a merge may extend.
    pub(crate) fn add_definition(&mut self, name: &str, definition: &Value) {
        let kinds = kinds_of(definition).map(gvk_key).collect();
        let known = Known { content: fingerprint(definition), kinds, is_open: true };
        self.definitions.insert(fingerprint_of_name(name), known);
    }

    /// Whether a definition has the name.
    pub(crate) fn has_definition(&self, name: &str) -> bool {
        self.definitions.contains_key(&fingerprint_of_name(name))
    }

    /// Adds paths and definitions, with their contents, that a merge leaves as they are.
    pub(crate) fn add_fixed(&mut self, paths: &[Fingerprint], definitions: &[(Fingerprint, Fingerprint)]) {
        self.paths.extend(paths);
        for (name, content) in definitions {
            let known = Known { content: *content, kinds: BTreeSet::new(), is_open: false };
            self.definitions.insert(*name, known);
        }
    }
}

/// The names that the merged documents get.
#[derive(Debug, Default)]
pub(crate) struct Merge {
    plans: Vec<Plan>,
    /// The group-version-kinds that are added to definitions, by the name of the definition.
    kinds: BTreeMap<String, Vec<Value>>,
}

/// The parts of one document that a merge takes.
#[derive(Debug)]
struct Plan {
    document: Arc<PackedDocument>,
    paths: BTreeSet<String>,
    renames: Renames,
    /// The definitions and parameters that are taken, by their new names.
    definitions: BTreeSet<String>,
    parameters: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Renames {
    definitions: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
}

impl Merge {
    /// Decides the names.
    pub(crate) fn new(local: LocalNames, documents: &[Arc<PackedDocument>]) -> Merge {
        let mut merge = Merge::default();
        let LocalNames { mut paths, mut definitions } = local;
        let mut parameters: BTreeMap<String, Fingerprint> = BTreeMap::new();
        let mut length = 0;
        for packed in documents {
            length += packed.length();
            if length > MOST {
                break;
            }
            let document = packed.unpack();
            let is_new = |path: &str| !paths.contains(&fingerprint_of_name(path));
            let document = match document.paths.keys().all(|path| is_new(path)) {
                true => document,
                false => document.with_paths(is_new),
            };
            // Nothing uses the definitions of a document without paths.
            if document.paths.is_empty() {
                continue;
            }
            let known = |name: &str| definitions.get(&fingerprint_of_name(name)).map(|known| known.content);
            let renames = Renames {
                definitions: renames(&document.definitions, &known),
                parameters: renames(&document.parameters, &|name| parameters.get(name).copied()),
            };
            let document = renamed(document, &renames);
            let mut plan = Plan {
                document: packed.clone(),
                paths: BTreeSet::new(),
                renames,
                definitions: BTreeSet::new(),
                parameters: BTreeSet::new(),
            };
            for path in document.paths.into_keys() {
                paths.insert(fingerprint_of_name(&path));
                plan.paths.insert(path);
            }
            for (name, definition) in document.definitions {
                match definitions.get_mut(&fingerprint_of_name(&name)) {
                    Some(known) => {
                        for kind in kinds_of(&definition) {
                            if known.is_open && known.kinds.insert(gvk_key(kind)) {
                                merge.kinds.entry(name.clone()).or_default().push(kind.clone());
                            }
                        }
                    }
                    None => {
                        let kinds = kinds_of(&definition).map(gvk_key).collect();
                        let known = Known { content: fingerprint(&definition), kinds, is_open: true };
                        definitions.insert(fingerprint_of_name(&name), known);
                        plan.definitions.insert(name);
                    }
                }
            }
            for (name, parameter) in document.parameters {
                parameters.entry(name.clone()).or_insert_with(|| {
                    plan.parameters.insert(name);
                    fingerprint(&parameter)
                });
            }
            merge.plans.push(plan);
        }
        merge
    }

    /// The group-version-kinds that are added to definitions, by the name of the definition.
    pub(crate) fn kinds(&self) -> &BTreeMap<String, Vec<Value>> {
        &self.kinds
    }

    /// Whether there is a parameter.
    pub(crate) fn has_parameters(&self) -> bool {
        self.plans.iter().any(|plan| !plan.parameters.is_empty())
    }

    /// The documents as they are merged, one at a time.
    pub(crate) fn documents(&self) -> impl Iterator<Item = RemoteDocument> {
        self.plans.iter().map(|plan| {
            let mut document = plan.document.unpack();
            document.paths.retain(|path, _| plan.paths.contains(path));
            let mut document = renamed(document, &plan.renames);
            document.definitions.retain(|name, _| plan.definitions.contains(name));
            document.parameters.retain(|name, _| plan.parameters.contains(name));
            for (name, definition) in &mut document.definitions {
                if let Some(kinds) = self.kinds.get(name) {
                    with_kinds(definition, kinds);
                }
            }
            document
        })
    }
}

/// The new names of members whose name is taken by other content.
fn renames(
    members: &BTreeMap<String, Value>,
    known: &dyn Fn(&str) -> Option<Fingerprint>,
) -> BTreeMap<String, String> {
    let mut renames = BTreeMap::new();
    let mut given: HashSet<String> = HashSet::new();
    for (name, member) in members {
        let content = fingerprint(member);
        if known(name).is_none_or(|taken| taken == content) {
            continue;
        }
        let mut number = 2;
        let new = loop {
            let new = format!("{name}_v{number}");
            match known(&new) {
                Some(taken) if taken == content => break new,
                Some(_) => {}
                None if given.contains(&new) || members.contains_key(&new) => {}
                None => {
                    given.insert(new.clone());
                    break new;
                }
            }
            number += 1;
        };
        renames.insert(name.clone(), new);
    }
    renames
}

/// Renames definitions and parameters, and the references to them.
fn renamed(mut document: RemoteDocument, renames: &Renames) -> RemoteDocument {
    if renames.definitions.is_empty() && renames.parameters.is_empty() {
        return document;
    }
    let replace = |reference: &str| {
        let within = |prefix: &str, renames: &BTreeMap<String, String>| {
            let new = renames.get(reference.strip_prefix(prefix)?)?;
            Some(format!("{prefix}{new}"))
        };
        within(DEFINITION, &renames.definitions).or_else(|| within(PARAMETERS, &renames.parameters))
    };
    let sections = [
        (&mut document.paths, &PATH_ITEM),
        (&mut document.definitions, &SCHEMA),
        (&mut document.parameters, &PARAMETER),
    ];
    for (members, shape) in sections {
        members.values_mut().for_each(|member| replace_references(member, shape, &replace));
    }
    let rename = |members: BTreeMap<String, Value>, renames: &BTreeMap<String, String>| {
        let new = |name: String| renames.get(&name).cloned().unwrap_or(name);
        members.into_iter().map(|(name, member)| (new(name), member)).collect()
    };
    RemoteDocument {
        paths: document.paths,
        definitions: rename(document.definitions, &renames.definitions),
        parameters: rename(document.parameters, &renames.parameters),
    }
}

/// The group-version-kinds of a definition.
pub(crate) fn kinds_of(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.field(KINDS).and_then(Value::as_array).into_iter().flatten()
}

/// Adds group-version-kinds to a definition. The list is sorted then.
pub(crate) fn with_kinds(definition: &mut Value, kinds: &[Value]) {
    let mut all: Vec<Value> = kinds_of(definition).cloned().collect();
    all.extend(kinds.iter().cloned());
    all.sort_by_cached_key(gvk_key);
    if let Value::Object(members) = definition {
        members.insert(KINDS, all.into());
    }
}

/// The sort key of a group-version-kind.
pub(crate) fn gvk_key(kind: &Value) -> String {
    format!("{}/{}.{}", kind.str_at("group"), kind.str_at("version"), kind.str_at("kind"))
}

/// The hash of a name.
pub(crate) fn fingerprint_of_name(name: &str) -> Fingerprint {
    shortened(Sha256::new().chain_update(name))
}

/// The hash of a definition, whatever its group-version-kinds.
pub(crate) fn fingerprint(definition: &Value) -> Fingerprint {
    let mut digest = Sha256::new();
    match definition {
        Value::Object(members) => {
            hash_members(members.iter().filter(|(name, _)| *name != KINDS), &mut digest)
        }
        other => hash(other, &mut digest),
    }
    shortened(digest)
}

/// Adds a value to a hash; the order of members does not matter.
fn hash(value: &Value, digest: &mut Sha256) {
    let mut text = |kind: &[u8], text: &str| {
        digest.update(kind);
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    };
    match value {
        Value::Null => digest.update(b"n"),
        Value::Bool(true) => digest.update(b"t"),
        Value::Bool(false) => digest.update(b"f"),
        Value::Number(number) => text(b"#", &number.to_string()),
        Value::String(string) => text(b"s", string),
        Value::Array(items) => {
            digest.update(b"[");
            items.iter().for_each(|item| hash(item, digest));
            digest.update(b"]");
        }
        Value::Object(members) => hash_members(members.iter(), digest),
    }
}

fn hash_members<'a>(members: impl Iterator<Item = (&'a Text, &'a Value)>, digest: &mut Sha256) {
    let mut members: Vec<_> = members.collect();
    members.sort_by_key(|(name, _)| *name);
    digest.update(b"{");
    for (name, value) in members {
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
        hash(value, digest);
    }
    digest.update(b"}");
}

fn shortened(digest: Sha256) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    fingerprint.iter_mut().zip(digest.finalize()).for_each(|(to, byte)| *to = byte);
    fingerprint
}

#[cfg(test)]
mod tests {
    use super::{
        super::document::tests::{document, path},
        *,
    };
    use pintle_machinery::json;

    fn local() -> LocalNames {
        let mut local = LocalNames::default();
        local.add_path("/apis/local/v1/x");
        local.add_definition("Shared", &json!({"description": "local"}));
        local.add_definition(
            "Options",
            &json!({"type": "object", KINDS: [{"group": "", "version": "v1", "kind": "Options"}]}),
        );
        local.add_fixed(
            &[fingerprint_of_name("/apis/custom/v1/x")],
            &[(fingerprint_of_name("Custom"), fingerprint(&json!({"type": "object"})))],
        );
        local
    }

    /// Merges, and returns all paths and definitions.
    fn merged(documents: &[RemoteDocument]) -> (Merge, RemoteDocument) {
        let packed: Vec<_> = documents.iter().map(|document| Arc::new(document.pack())).collect();
        let merge = Merge::new(local(), &packed);
        let mut all = RemoteDocument::default();
        for document in merge.documents() {
            for (path, item) in document.paths {
                assert!(all.paths.insert(path, item).is_none());
            }
            for (name, definition) in document.definitions {
                assert!(all.definitions.insert(name, definition).is_none());
            }
            all.parameters.extend(document.parameters);
        }
        (merge, all)
    }

    #[test]
    fn definitions_of_other_content_are_renamed_with_their_references() {
        let of = |group: &str, description: &str| {
            document(
                json!({(format!("/apis/{group}/v1/x")): path(&["Shared", "Own"])}),
                json!({"Shared": {"description": description}, "Own": {"items": {"$ref": "#/definitions/Shared"}}}),
            )
        };
        let (_, all) = merged(&[of("a", "of a"), of("b", "local"), of("c", "of a"), of("d", "of d")]);
        let names: Vec<&String> = all.definitions.keys().collect();
        // The `Own` of `c` and `d` has the text of that of `b`: definitions are compared before references are renamed.
        assert_eq!(names, ["Own", "Own_v2", "Shared_v2", "Shared_v3"]);
        let references = |path: &str| {
            let responses = &all.paths[path]["get"]["responses"];
            [200, 201].map(|code| {
                let reference = responses[code.to_string()].str_at("schema.$ref").to_owned();
                reference.trim_start_matches(DEFINITION).to_owned()
            })
        };
        assert_eq!(references("/apis/a/v1/x"), ["Shared_v2", "Own"]);
        assert_eq!(references("/apis/b/v1/x"), ["Shared", "Own_v2"]);
        assert_eq!(all.definitions["Own"], json!({"items": {"$ref": "#/definitions/Shared_v2"}}));
        assert_eq!(all.definitions["Own_v2"], json!({"items": {"$ref": "#/definitions/Shared"}}));
        assert_eq!(references("/apis/c/v1/x"), ["Shared_v2", "Own_v2"]);
        assert_eq!(references("/apis/d/v1/x")[0], "Shared_v3");
    }

    #[test]
    fn new_names_avoid_those_of_the_document_itself() {
        let (_, all) = merged(&[document(
            json!({"/apis/a/v1/x": path(&["Shared", "Shared_v2"])}),
            json!({"Shared": {"type": "object"}, "Shared_v2": {"type": "string"}}),
        )]);
        assert_eq!(all.definitions.keys().collect::<Vec<_>>(), ["Shared_v2", "Shared_v3"]);
        assert_eq!(all.definitions["Shared_v3"], json!({"type": "object"}));
    }

    #[test]
    fn present_paths_win_and_take_their_definitions_along() {
        let (_, all) = merged(&[
            document(
                json!({"/apis/local/v1/x": path(&["A"]), "/apis/custom/v1/x": {}, "/apis/a/v1/x": path(&["B"])}),
                json!({"A": {}, "B": {}}),
            ),
            document(json!({"/apis/a/v1/x": path(&["C"])}), json!({"C": {}})),
            document(json!({}), json!({"D": {}})),
        ]);
        assert_eq!(all.paths.keys().collect::<Vec<_>>(), ["/apis/a/v1/x"]);
        assert_eq!(all.definitions.keys().collect::<Vec<_>>(), ["B"]);
    }

    #[test]
    fn kinds_are_united() {
        let kind = |group: &str| json!({"group": group, "version": "v1", "kind": "Options"});
        let of = |group: &str| {
            document(
                json!({(format!("/apis/{group}/v1/x")): path(&["Options", "Mine", "Custom"])}),
                json!({"Options": {"type": "object", KINDS: [kind(group), kind("")]}, "Mine": {KINDS: [kind(group)]},
                    "Custom": {"type": "object", KINDS: [kind(group)]}}),
            )
        };
        let (merge, all) = merged(&[of("z"), of("a")]);
        assert_eq!(all.definitions.keys().collect::<Vec<_>>(), ["Mine"]);
        assert_eq!(all.definitions["Mine"], json!({KINDS: [kind("a"), kind("z")]}));
        let mut options = json!({KINDS: [kind("")]});
        with_kinds(&mut options, &merge.kinds()["Options"]);
        assert_eq!(options, json!({KINDS: [kind(""), kind("a"), kind("z")]}));
        assert!(!merge.kinds().contains_key("Custom"));
    }

    #[test]
    fn malformed_kinds_are_no_kinds() {
        let (_, all) = merged(&[
            document(json!({"/apis/a/v1/x": path(&["A"])}), json!({"A": {KINDS: {"group": 7}}})),
            document(json!({"/apis/b/v1/x": path(&["A"])}), json!({"A": {KINDS: [7, [], {"group": 1}]}})),
        ]);
        assert_eq!(all.definitions.len(), 1);
    }

    #[test]
    fn parameters_are_renamed_too() {
        let of = |group: &str, format: &str| {
            let parameters = json!({"p": {"name": "p", "in": "query", "format": format}});
            let item = json!({"parameters": [{"$ref": "#/parameters/p"}]});
            let document =
                json!({"paths": {(format!("/apis/{group}/v1/x")): item}, "parameters": parameters})
                    .to_string();
            RemoteDocument::parse(document.as_bytes()).unwrap()
        };
        let (merge, all) = merged(&[of("a", "int"), of("b", "text"), of("c", "int")]);
        assert!(merge.has_parameters());
        assert_eq!(all.parameters.keys().collect::<Vec<_>>(), ["p", "p_v2"]);
        let reference =
            |group: &str| all.paths[&format!("/apis/{group}/v1/x")]["parameters"][0]["$ref"].clone();
        assert_eq!(
            ["a", "b", "c"].map(reference),
            ["p", "p_v2", "p"].map(|name| json!(format!("#/parameters/{name}")))
        );
    }

    #[test]
    fn cyclic_definitions_are_merged() {
        let cyclic = |group: &str, kind: &str| {
            document(
                json!({(format!("/apis/{group}/v1/x")): path(&["A"])}),
                json!({"A": {"items": {"$ref": "#/definitions/B"}},
                    "B": {"properties": {"a": {"$ref": "#/definitions/A"}}, "type": kind}}),
            )
        };
        let (_, all) = merged(&[cyclic("a", "object"), cyclic("b", "array")]);
        assert_eq!(all.definitions.keys().collect::<Vec<_>>(), ["A", "B", "B_v2"]);
    }
}
