//! Decodes the objects of manifests, and checks what is required of them.

use super::directory::Directory;
use pintle_go_forms::quote;
use pintle_machinery::{
    ErrorList, Value, ValueExt,
    codec::json::{self, encode_any},
    config_file::{as_json, check_strict, type_meta},
    meta::{ObjectMeta, STATIC_MANIFEST_SUFFIX},
    scheme::{OF_EACH_VERSION, UNVERSIONED, not_registered},
    status::aggregate,
};
use pintle_schema::{Schema, SchemaRef};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

const GROUP: &str = "admissionregistration.k8s.io";

/// The kinds of the manifests of a plugin.
pub(crate) struct ManifestKinds<const N: usize> {
    /// The name of the directory's manifests in messages: "webhook", "policy".
    pub(crate) subject: &'static str,
    pub(crate) kinds: [ManifestKind; N],
    /// Checks all objects of a directory together.
    pub(crate) check_all: fn(&Objects<N>) -> Result<(), String>,
    /// The source line of the reference's scheme, which messages name.
    pub(crate) scheme: &'static str,
}

/// A kind of manifest.
pub(crate) struct ManifestKind {
    pub(crate) name: &'static str,
    /// Checks what is required of objects in manifests only. The file is named in messages.
    pub(crate) check: fn(&Value, &Path) -> Result<(), String>,
}

/// Defaults an object of a kind of `admissionregistration.k8s.io/v1`, and validates it as one that a client creates.
pub type DefaultAndValidate = fn(kind: &str, object: &mut Value) -> ErrorList;

/// The objects of each kind, by name.
pub(crate) type Objects<const N: usize> = [Vec<Arc<Value>>; N];

/// The objects of a directory.
///
/// # Errors
/// For a document that is no object of the kinds, is invalid, or is named otherwise than manifests are or as another one.
pub(super) fn read_objects<const N: usize>(
    directory: &Directory,
    kinds: &ManifestKinds<N>,
    default_and_validate: DefaultAndValidate,
) -> Result<Objects<N>, String> {
    let mut reader = Reader {
        kinds,
        default_and_validate,
        objects: [const { Vec::new() }; N],
        files: std::array::from_fn(|_| HashMap::new()),
    };
    for document in &directory.documents {
        let failed = |error: String| format!("error loading {}: {error}", document.file.display());
        reader.add_document(document.text.clone(), &document.file).map_err(failed)?;
    }
    let mut objects = reader.objects;
    (kinds.check_all)(&objects)?;
    for objects in &mut objects {
        objects.sort_by(|one, other| one.name().cmp(other.name()));
    }
    Ok(objects)
}

struct Reader<'a, const N: usize> {
    kinds: &'a ManifestKinds<N>,
    default_and_validate: DefaultAndValidate,
    objects: Objects<N>,
    /// The files of the objects of each kind by name.
    files: [HashMap<String, PathBuf>; N],
}

impl<const N: usize> Reader<'_, N> {
    /// Adds the objects of a document, and those of lists in it.
    fn add_document(&mut self, text: Vec<u8>, file: &Path) -> Result<(), String> {
        let mut open = vec![(text, false)];
        while let Some((text, is_item)) = open.pop() {
            let decoded = decode(&text, self.kinds.scheme);
            let (ty, value) = match is_item {
                true => decoded.map_err(|error| format!("failed to decode list item: {error}"))?,
                false => decoded?,
            };
            if ty.name() == "List" {
                let items = value.items_at("items").iter().rev();
                open.extend(items.map(|item| (encode_any(item), true)));
            } else {
                self.add(ty, value, file)?;
            }
        }
        Ok(())
    }

    /// Adds an object, or the objects of a list of a kind.
    fn add(&mut self, ty: SchemaRef<'_>, mut value: Value, file: &Path) -> Result<(), String> {
        let package = ty.package().rsplit('/').next().unwrap_or_default();
        let single = ty.name().strip_suffix("List").unwrap_or(ty.name());
        let place = self.kinds.kinds.iter().position(|kind| kind.name == single);
        let Some((place, kind)) =
            place.filter(|_| package == "v1").and_then(|place| Some((place, self.kinds.kinds.get(place)?)))
        else {
            return Err(format!("unsupported resource type *{package}.{}", ty.name()));
        };
        let mut objects = match single == ty.name() {
            true => vec![value],
            false => value.items_at_mut("items").iter_mut().map(Value::take).collect(),
        };
        for object in &mut objects {
            object.set("apiVersion", format!("{GROUP}/v1"));
            object.set("kind", kind.name);
            let errors = (self.default_and_validate)(kind.name, object);
            if !errors.is_empty() {
                let errors = aggregate(errors.iter().map(ToString::to_string));
                return Err(format!("{} {}: {errors}", kind.name, quote(object.name())));
            }
        }
        for object in objects {
            if let Some(files) = self.files.get_mut(place) {
                check_name(object.name(), file, files)?;
            }
            (kind.check)(&object, file)?;
            if let Some(objects) = self.objects.get_mut(place) {
                objects.push(Arc::new(object));
            }
        }
        Ok(())
    }
}

/// Checks a name, and adds it to those of the kind.
fn check_name(name: &str, file: &Path, files: &mut HashMap<String, PathBuf>) -> Result<(), String> {
    let shown = |file: &Path| quote(&file.to_string_lossy());
    if name.is_empty() {
        return Err(format!("resource in file {} must have a name", shown(file)));
    }
    if !name.ends_with(STATIC_MANIFEST_SUFFIX) {
        let suffix = quote(STATIC_MANIFEST_SUFFIX);
        return Err(format!("{} in file {} must have a name ending with {suffix}", quote(name), shown(file)));
    }
    match files.insert(name.to_owned(), file.to_owned()) {
        None => Ok(()),
        Some(before) => Err(format!(
            "duplicate name {} found in file {} (previously seen in {})",
            quote(name),
            shown(file),
            shown(&before)
        )),
    }
}

/// Decodes an object of the group, or a list of anything. Unknown and duplicate fields are errors.
fn decode(text: &[u8], scheme: &str) -> Result<(SchemaRef<'static>, Value), String> {
    let (json, problems) = as_json(text).map_err(|error| error.to_string())?;
    let meta = type_meta(&json, Some(text))?;
    let ty = type_of(&meta.api_version, &meta.kind)
        .ok_or_else(|| not_registered(&meta.kind, &meta.api_version, scheme))?;
    let decoded = json::decode(&json, ty).map_err(|error| error.to_string())?;
    check_strict(problems.into_iter().chain(decoded.problems))?;
    Ok((ty, decoded.value))
}

/// The type of a kind that the scheme of manifests knows.
fn type_of(api_version: &str, kind: &str) -> Option<SchemaRef<'static>> {
    let schema = Schema::builtin();
    if kind == "List" || UNVERSIONED.contains(&kind) {
        return schema.meta_kind(kind);
    }
    let (group, version) = api_version.split_once('/')?;
    if group != GROUP {
        return None;
    }
    match OF_EACH_VERSION.contains(&kind) {
        true => schema.meta_kind(kind).filter(|_| schema.has_kinds_of(group, version)),
        false => schema.own_kind(group, version, kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_manifests::directory::Document;
    use pintle_machinery::{FieldError, FieldPath, json};

    static KINDS: ManifestKinds<2> = ManifestKinds {
        subject: "policy",
        kinds: [
            ManifestKind { name: "ValidatingAdmissionPolicyBinding", check: |_, _| Ok(()) },
            ManifestKind {
                name: "ValidatingAdmissionPolicy",
                check: |policy, _| match policy.str_at("metadata.labels.bad") {
                    "" => Ok(()),
                    why => Err(why.to_owned()),
                },
            },
        ],
        check_all: |[bindings, policies]| match bindings.len() > policies.len() {
            true => Err("too many bindings".to_owned()),
            false => Ok(()),
        },
        scheme: "scheme.go:1",
    };

    fn read(texts: &[&str]) -> Result<[Vec<String>; 2], String> {
        let document = |(index, text): (usize, &&str)| Document {
            file: format!("/m/{index}.yaml").into(),
            text: text.as_bytes().to_vec(),
        };
        let documents = texts.iter().enumerate().map(document).collect();
        let rules = |_: &str, object: &mut Value| {
            object.set_default("spec.failurePolicy", "Fail");
            match object.str_at("spec.failurePolicy") {
                "Fail" => Vec::new(),
                other => vec![FieldError::invalid(&FieldPath::new("spec"), other, "must be Fail")],
            }
        };
        let objects = read_objects(&Directory { documents, hash: String::new() }, &KINDS, rules)?;
        Ok(objects.map(|objects| {
            objects
                .iter()
                .map(|object| {
                    assert_eq!(object.str_at("apiVersion"), "admissionregistration.k8s.io/v1");
                    assert_eq!(object.str_at("spec.failurePolicy"), "Fail");
                    object.name().to_owned()
                })
                .collect()
        }))
    }

    fn policy(name: &str) -> String {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\n"
        )
    }

    #[test]
    fn objects_are_those_of_all_documents_and_lists_by_name() {
        let typed = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBindingList",
            "items": [{"metadata": {"name": "b.static.k8s.io"}}, {"metadata": {"name": "a.static.k8s.io"}}],
        });
        let list = format!(
            "apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: List, items: [{typed}]}}\n- {{apiVersion: \
             admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {{name: a.static.k8s.io}}}}\n"
        );
        assert_eq!(
            read(&[&policy("c.static.k8s.io"), &list]),
            Ok([
                vec!["a.static.k8s.io".to_owned(), "b.static.k8s.io".to_owned()],
                vec!["a.static.k8s.io".to_owned(), "c.static.k8s.io".to_owned()]
            ])
        );
        assert_eq!(read(&[]), Ok([Vec::new(), Vec::new()]));
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_file() {
        let check = |texts: &[&str], expected: &str| {
            assert_eq!(read(texts).unwrap_err(), expected, "{texts:?}");
        };
        let (good, api_version) =
            (policy("p.static.k8s.io"), "apiVersion: admissionregistration.k8s.io/v1\n");
        check(&["a: 1"], "error loading /m/0.yaml: Object 'Kind' is missing in 'a: 1'");
        check(&["kind: X"], "error loading /m/0.yaml: Object 'apiVersion' is missing in 'kind: X'");
        check(
            &[&good, "apiVersion: apps/v1\nkind: Deployment"],
            "error loading /m/1.yaml: no kind \"Deployment\" is registered for version \"apps/v1\" in scheme \"scheme.go:1\"",
        );
        check(
            &[&format!("{api_version}kind: ValidatingWebhookConfiguration")],
            "error loading /m/0.yaml: unsupported resource type *v1.ValidatingWebhookConfiguration",
        );
        check(
            &["apiVersion: admissionregistration.k8s.io/v1beta1\nkind: ValidatingAdmissionPolicy"],
            "error loading /m/0.yaml: unsupported resource type *v1beta1.ValidatingAdmissionPolicy",
        );
        check(
            &["apiVersion: v1\nkind: List\nitems:\n- {kind: X}"],
            "error loading /m/0.yaml: failed to decode list item: Object 'apiVersion' is missing in '{\"kind\":\"X\"}'",
        );
        check(
            &[&format!("{good}foo: 1\n")],
            "error loading /m/0.yaml: strict decoding error: unknown field \"foo\"",
        );
        check(
            &[&format!("{good}spec: {{failurePolicy: Never}}\n")],
            "error loading /m/0.yaml: ValidatingAdmissionPolicy \"p.static.k8s.io\": spec: Invalid value: \"Never\": must be Fail",
        );
        check(
            &[&format!("{api_version}kind: ValidatingAdmissionPolicy")],
            "error loading /m/0.yaml: resource in file \"/m/0.yaml\" must have a name",
        );
        check(
            &[&policy("p")],
            "error loading /m/0.yaml: \"p\" in file \"/m/0.yaml\" must have a name ending with \".static.k8s.io\"",
        );
        check(
            &[&good, &good],
            "error loading /m/1.yaml: duplicate name \"p.static.k8s.io\" found in file \"/m/1.yaml\" (previously seen in \
             \"/m/0.yaml\")",
        );
        check(&[&policy("p.static.k8s.io, labels: {bad: why}")], "error loading /m/0.yaml: why");
        check(&[&policy("b.static.k8s.io").replace("Policy", "PolicyBinding")], "too many bindings");
    }
}
