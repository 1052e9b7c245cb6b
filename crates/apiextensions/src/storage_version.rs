//! Encodes definitions for storage: JSON of `apiextensions.k8s.io/v1beta1`, a version that is no longer served.
//!
//! kube-apiserver stores only this version, because it holds values common to all versions of a custom resource once. A
//! large schema repeated for each version would not fit into an etcd value.

use pintle_machinery::{
    GroupVersionKind, Map, Value, ValueExt,
    codec::json::{self, ObjectWriter, write_object},
    json,
};
use pintle_registry::{Resource, StorageEncoding, StoredVersion};
use pintle_schema::{Schema, SchemaRef};

const API_VERSION: &str = "apiextensions.k8s.io/v1beta1";
const OBJECT_META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta";
const PACKAGE: &str = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1";

/// The values that may be stored once for all versions: the common name, and the name in a version.
const SHARED: [(&str, &str); 4] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Sets the storage version of the resource, which is declared in `v1`.
pub(crate) fn apply(resource: &mut Resource) {
    let kind = GroupVersionKind::new("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition");
    resource.storage.kind = kind.clone();
    resource.storage.encoding = StorageEncoding::JsonBy(encode);
    resource.stored_versions = vec![StoredVersion { kind, type_name: String::new(), to_storage: to_v1 }];
}

/// Writes a value of a type that both versions share, if present.
fn write_shared(object: &mut ObjectWriter<'_>, name: &str, value: Option<&Value>, type_name: &str) {
    if let (Some(value), Some(schema)) = (value, of_type(type_name)) {
        object.member(name, |out| json::encode_to(out, value, schema));
    }
}

fn of_type(name: &str) -> Option<SchemaRef<'static>> {
    Schema::builtin().by_type_name(&format!("{PACKAGE}.{name}"))
}

/// Encodes a definition for storage.
fn encode(definition: &Value) -> Vec<u8> {
    let empty = json!({});
    let member = |name| definition.at(name).unwrap_or(&empty);
    let mut out = Vec::with_capacity(4096);
    write_object(&mut out, |object| {
        object.text("kind", "CustomResourceDefinition");
        object.text("apiVersion", API_VERSION);
        if let Some(meta) = Schema::builtin().by_type_name(OBJECT_META) {
            object.member("metadata", |out| json::encode_to(out, member("metadata"), meta));
        }
        object.object("spec", |spec| write_spec(spec, member("spec")));
        write_shared(object, "status", Some(member("status")), "CustomResourceDefinitionStatus");
    });
    out
}

fn write_spec(object: &mut ObjectWriter<'_>, spec: &Value) {
    let versions = spec.items_at("versions");
    let first = versions.first();
    // Values common to all versions are written once.
    let common = SHARED.map(|(_, name)| {
        let value = first.and_then(|version| version.at(name));
        versions.iter().all(|version| version.at(name) == value).then_some(value)
    });
    let [validation, subresources, columns, fields] = common.map(Option::flatten);
    object.text("group", spec.str_at("group"));
    if let Some(first) = first {
        object.text("version", first.str_at("name"));
    }
    let names = spec.at("names").cloned().unwrap_or_default();
    write_shared(object, "names", Some(&names), "CustomResourceDefinitionNames");
    object.text("scope", spec.str_at("scope"));
    write_shared(object, "validation", validation, "CustomResourceValidation");
    write_shared(object, "subresources", subresources, "CustomResourceSubresources");
    object.list_if_any("versions", versions, |out, version| {
        write_object(out, |object| {
            object.text("name", version.str_at("name"));
            object.boolean("served", version.bool_at("served"));
            object.boolean("storage", version.bool_at("storage"));
            if version.bool_at("deprecated") {
                object.boolean("deprecated", true);
            }
            if let Some(Value::String(warning)) = version.at("deprecationWarning") {
                object.text("deprecationWarning", warning);
            }
            let [schema, subresources, columns, fields] = std::array::from_fn(|at| {
                let (_, name) = SHARED.get(at)?;
                // A common value is not repeated in the versions.
                common.get(at)?.is_none().then(|| version.at(name)).flatten()
            });
            write_shared(object, "schema", schema, "CustomResourceValidation");
            write_shared(object, "subresources", subresources, "CustomResourceSubresources");
            write_columns_and_fields(object, columns, fields);
        });
    });
    write_columns_and_fields(object, columns, fields);
    if let Some(conversion) = spec.at("conversion") {
        object.object("conversion", |object| {
            object.text("strategy", conversion.str_at("strategy"));
            let client = conversion.at("webhook.clientConfig");
            write_shared(object, "webhookClientConfig", client, "WebhookClientConfig");
            let versions = conversion.items_at("webhook.conversionReviewVersions");
            object.list_if_any("conversionReviewVersions", versions, |out, version| {
                json::write_string(out, version.as_str().unwrap_or_default());
            });
        });
    }
    object.boolean("preserveUnknownFields", spec.bool_at("preserveUnknownFields"));
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn write_columns_and_fields(object: &mut ObjectWriter<'_>, columns: Option<&Value>, fields: Option<&Value>) {
    object.list_if_any("additionalPrinterColumns", items(columns), write_column);
    object.list_if_any("selectableFields", items(fields), |out, field| {
        if let Some(schema) = of_type("SelectableField") {
            json::encode_to(out, field, schema);
        }
    });
}

fn write_column(out: &mut Vec<u8>, column: &Value) {
    write_object(out, |object| {
        object.text("name", column.str_at("name"));
        object.text("type", column.str_at("type"));
        for name in ["format", "description"] {
            object.text_if_any(name, column.str_at(name));
        }
        object.number_if_any("priority", column.i64_at("priority").unwrap_or_default());
        object.text("JSONPath", column.str_at("jsonPath"));
    });
}

/// Converts a stored definition to the served version.
fn to_v1(mut definition: Value) -> Value {
    let Some(spec) = definition.at_mut("spec") else { return definition };
    let version = spec.remove_at("version");
    let common = SHARED.map(|(name, own)| (own, spec.remove_at(name)));
    if spec.items_at("versions").is_empty()
        && let Some(name) = version.as_ref().filter(|name| name.as_str().is_some_and(|name| !name.is_empty()))
    {
        spec.set("versions", json!([{"name": name, "served": true, "storage": true}]));
    }
    for version in spec.items_at_mut("versions") {
        for (name, value) in &common {
            if let Some(value) = value {
                version.set(name, value.clone());
            }
        }
        for column in version.items_at_mut("additionalPrinterColumns") {
            if let Some(path) = column.remove_at("JSONPath") {
                column.set("jsonPath", path);
            }
        }
    }
    if spec.at("preserveUnknownFields").is_none() {
        // In this version the default is true.
        spec.set("preserveUnknownFields", true);
    }
    if let Some(conversion) = spec.at_mut("conversion") {
        let mut webhook = Map::new();
        for (name, own) in [
            ("webhookClientConfig", "clientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ] {
            webhook.extend(conversion.remove_at(name).map(|value| (own.to_owned(), value)));
        }
        if !webhook.is_empty() {
            conversion.set("webhook", Value::Object(webhook));
        }
    }
    definition
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::codec::json::decode;

    fn schema() -> SchemaRef<'static> {
        of_type("CustomResourceDefinition").unwrap()
    }

    fn check(definition: &str, stored: &str) {
        let definition = decode(definition.as_bytes(), schema()).unwrap().value;
        assert_eq!(String::from_utf8(encode(&definition)).unwrap(), stored);
        let back = to_v1(json::decode_any(stored.as_bytes()).unwrap());
        let mut back = json::from_value(&back, schema()).unwrap().value;
        back.set("apiVersion", "apiextensions.k8s.io/v1");
        assert_eq!(back, definition);
    }

    #[test]
    fn values_that_all_versions_share_are_stored_once() {
        check(
            r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",
                "metadata":{"name":"things.example.com","uid":"u","generation":1,"creationTimestamp":"2024-01-01T00:00:00Z"},
                "spec":{"group":"example.com","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
                    "scope":"Namespaced","versions":[
                        {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},
                         "additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a","priority":1}]},
                        {"name":"v2","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}},
                         "subresources":{"status":{}},
                         "additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a","priority":1}]}],
                    "conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://x"},"conversionReviewVersions":["v1"]}}},
                "status":{"conditions":[],"acceptedNames":{"plural":"things","kind":"Thing"},"storedVersions":["v1"]}}"#,
            concat!(
                r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","#,
                r#""metadata":{"name":"things.example.com","uid":"u","generation":1,"creationTimestamp":"2024-01-01T00:00:00Z"},"#,
                r#""spec":{"group":"example.com","version":"v1","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"#,
                r#""scope":"Namespaced","validation":{"openAPIV3Schema":{"type":"object"}},"#,
                r#""versions":[{"name":"v1","served":true,"storage":true},{"name":"v2","served":false,"storage":false,"subresources":{"status":{}}}],"#,
                r#""additionalPrinterColumns":[{"name":"A","type":"string","priority":1,"JSONPath":".a"}],"#,
                r#""conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://x"},"conversionReviewVersions":["v1"]},"#,
                r#""preserveUnknownFields":false},"#,
                r#""status":{"conditions":[],"acceptedNames":{"plural":"things","kind":"Thing"},"storedVersions":["v1"]}}"#,
            ),
        );
    }

    #[test]
    fn values_that_an_older_server_omitted_are_added() {
        let old = json!({"spec": {"group": "g", "version": "v1", "subresources": {"status": {}}}});
        assert_eq!(
            to_v1(old),
            json!({"spec": {
                "group": "g",
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}}],
                "preserveUnknownFields": true,
            }})
        );
    }
}
