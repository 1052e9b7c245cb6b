//! Checks that field paths in the code of the built-in kinds are paths of the schema.
//!
//! Two kinds of literals are checked:
//!
//! - `"spec.…"`, `"status.…"` and `"metadata.…"`, wherever they are: a kind has this path. In the file or the folder of a kind,
//!   such as `apps/deployment`, it is this kind in one of its versions, or one of [`OTHER_KINDS`]; elsewhere in a group's
//!   folder, a kind of the group; outside the groups, any kind.
//! - A path that a method reads from a value (`.at("…")`, `.str_at("…")`): a type has this path.
//!
//! Paths do not lead into the items of lists. Paths that are assembled at run time are not checked.

use super::files_below;
use super::source::{Kind, Token, tokens_of, without_tests};
use pintle_schema::{Schema, SchemaRef, Type};
use std::collections::{BTreeSet, HashSet};

/// Files of a kind whose code reads objects of other kinds, too.
const OTHER_KINDS: &[(&str, &[(&str, &str)])] = &[
    // A pod template has the paths of a pod.
    ("apps/stateful_set/strategy", &[("", "PersistentVolumeClaim"), ("", "Pod")]),
    ("batch/job/strategy", &[("", "Pod")]),
    ("core/pod/eviction", &[("policy", "PodDisruptionBudget")]),
    ("core/service/proxy", &[("", "Pod")]),
    ("core/service/cluster_ip", &[("networking.k8s.io", "IPAddress"), ("networking.k8s.io", "ServiceCIDR")]),
    ("core/service_account/token", &[("", "Pod"), ("authentication.k8s.io", "TokenRequest")]),
];

/// Literals that are in no schema and that kube-apiserver uses as well.
const NO_FIELDS: &[(&str, &str)] = &[
    ("metadata.taints", "the path in kube-apiserver's messages about taints of nodes"),
    ("metadata.nodeSwapStatus.capacity", "the path in kube-apiserver's message about the swap of nodes"),
    ("spec.backend", "a field of ingresses in versions before v1"),
    ("spec.host", "the old name of the field selector `spec.nodeName`"),
    ("spec.persistentvolumesource", "the path in kube-apiserver's messages about changed sources of volumes"),
    ("spec.rollbackTo", "a field of deployments in versions before v1"),
    ("spec.templateGeneration", "a field of daemon sets in versions before v1"),
    ("status.successful", "a field selector of jobs, not a field"),
];

#[test]
fn field_paths_are_in_the_schema() {
    let kinds = kinds();
    let types = types(&kinds);
    let mut wrong = Vec::new();
    let mut seen = 0;
    let mut unused: BTreeSet<&str> = NO_FIELDS.iter().map(|(path, _)| *path).collect();
    for file in files_below("crates/api/src", ".rs") {
        if file.split(['/', '.']).any(|part| part == "tests") {
            continue;
        }
        let roots = kinds_of(&file, &kinds);
        let tokens = without_tests(&tokens_of(&file));
        for (at, token) in tokens.iter().enumerate() {
            if token.kind != Kind::Literal || !is_field_path(&token.text) {
                continue;
            }
            let path: Vec<&str> = token.text.split('.').collect();
            let is_known = if path.len() > 1 && ["metadata", "spec", "status"].contains(&path[0]) {
                roots.iter().any(|kind| has(kind.schema, &path))
            } else if is_read(&tokens[..at]) {
                types.iter().any(|of| has(*of, &path))
            } else {
                continue;
            };
            seen += 1;
            if !is_known && NO_FIELDS.iter().any(|(path, _)| *path == token.text) {
                unused.remove(token.text.as_str());
            } else if !is_known {
                wrong.push(format!("{file}:{}: {}", token.line, token.text));
            }
        }
    }
    assert!(wrong.is_empty(), "the schema does not have these paths: {wrong:#?}");
    assert!(unused.is_empty(), "NO_FIELDS lists paths that are not in the code: {unused:?}");
    assert!(seen > 1000, "the paths are no longer found: {seen}");
}

struct BuiltinKind {
    group: String,
    kind: String,
    schema: SchemaRef<'static>,
}

/// Every built-in kind in every version.
fn kinds() -> Vec<BuiltinKind> {
    let mut resources = pintle_api::resources(&pintle_api::Config::default());
    resources.extend(pintle_api::resources_off_by_default());
    let kinds = resources.iter().map(|resource| resource.group_version_kind());
    let kinds = kinds.map(|kind| (kind.group.to_string(), kind.version.to_string(), kind.kind.to_string()));
    // A kind that only a subresource has.
    let token_request = ["authentication.k8s.io", "v1", "TokenRequest"].map(str::to_owned).into();
    let kinds = kinds.chain([token_request]).filter_map(|(group, version, kind)| {
        let schema = Schema::builtin().by_kind(&group, &version, &kind)?;
        Some(BuiltinKind { group, kind, schema })
    });
    kinds.collect()
}

/// The kinds that the literals of a file may belong to.
fn kinds_of<'a>(file: &str, kinds: &'a [BuiltinKind]) -> Vec<&'a BuiltinKind> {
    let path = file.trim_start_matches("crates/api/src/").trim_end_matches(".rs");
    let (folder, rest) = path.split_once('/').unwrap_or((path, ""));
    let name = rest.split('/').next().unwrap().replace('_', "");
    let label = if folder == "core" { "" } else { folder };
    let of_group: Vec<&BuiltinKind> =
        kinds.iter().filter(|kind| kind.group.split('.').next() == Some(label)).collect();
    let mut of_kind: Vec<&BuiltinKind> =
        of_group.iter().copied().filter(|kind| kind.kind.to_lowercase() == name).collect();
    let others = OTHER_KINDS.iter().filter(|(file, _)| *file == path).flat_map(|(_, kinds)| *kinds);
    for (group, name) in others {
        of_kind.extend(kinds.iter().filter(|kind| kind.group == *group && kind.kind == *name));
    }
    [of_kind, of_group, kinds.iter().collect()].into_iter().find(|kinds| !kinds.is_empty()).unwrap()
}

/// All types that the kinds contain.
fn types(kinds: &[BuiltinKind]) -> Vec<SchemaRef<'static>> {
    let mut types: Vec<SchemaRef<'static>> = Vec::new();
    let mut ids = HashSet::new();
    let mut pending: Vec<SchemaRef<'static>> = kinds.iter().map(|kind| kind.schema).collect();
    while let Some(next) = pending.pop() {
        if ids.insert(next.id()) {
            types.push(next);
            pending.extend(next.fields().map(|field| field.ty()));
            pending.extend([next.item(), next.value()]);
        }
    }
    types
}

fn has(of: SchemaRef<'_>, path: &[&str]) -> bool {
    let [first, rest @ ..] = path else { return true };
    match of.ty() {
        Type::Struct => of.field(first).is_some_and(|field| has(field.ty(), rest)),
        Type::Map => has(of.value(), rest),
        Type::RawExtension | Type::Json | Type::Any => true,
        _ => false,
    }
}

/// Whether a literal has the form of a path of fields.
fn is_field_path(literal: &str) -> bool {
    literal.split('.').all(|name| {
        name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

/// Whether the tokens before a literal call a method that reads the path from a value.
fn is_read(before: &[Token]) -> bool {
    match before {
        [.., dot, method, open] => {
            dot.is(".") && open.is("(") && (method.text == "at" || method.text.ends_with("_at"))
        }
        _ => false,
    }
}
