//! Managed fields and applied configurations out of bodies.

use pintle_machinery::Value;
use pintle_machinery::managed_fields::{FieldManager, FieldSet, OneVersion};
use pintle_schema::Schema;

/// A set of fields is read or refused; what is read is written as it will be read again.
pub(crate) fn fields_v1(data: &[u8]) {
    let Ok(fields) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(set) = FieldSet::from_fields_v1(&fields) else { return };
    let paths = set.paths();
    assert_eq!(paths.is_empty(), set.is_empty());
    let written = set.clone().into_fields_v1();
    let read = FieldSet::from_fields_v1(&written).expect("what was written can be read");
    assert_eq!(read, set);
    let mut none = set.clone();
    none.difference(&read);
    assert!(none.is_empty(), "a set without itself is empty");
    assert_eq!(set.intersection(&read), set);
}

/// An apply says what is wrong or makes an object; applied once more, it changes nothing. The data is two documents: what
/// one manager applies, and then another by force.
pub(crate) fn apply(data: &[u8]) {
    let mut documents = serde_json::Deserializer::from_slice(data).into_iter::<Value>();
    let (Some(Ok(mut first)), Some(Ok(mut second))) = (documents.next(), documents.next()) else { return };
    for (group_version, group, kind) in
        [("v1", "", "ConfigMap"), ("v1", "", "Pod"), ("v1", "", "Service"), ("apps/v1", "apps", "Deployment")]
    {
        let Some(schema) = Schema::builtin().by_kind(group, "v1", kind) else { continue };
        for document in [&mut first, &mut second] {
            let Some(members) = document.as_object_mut() else { return };
            members.insert("apiVersion".to_owned(), group_version.into());
            members.insert("kind".to_owned(), kind.into());
        }
        let manager = |name| FieldManager {
            manager: name,
            kind,
            api_version: group_version,
            subresource: "",
            now: jiff::Timestamp::UNIX_EPOCH,
            schema,
            reset_fields: &["status"],
            versions: &OneVersion,
        };
        let one = manager("one").apply(None, &first, false);
        let _ = manager("two").apply(one.as_ref().ok(), &second, false);
        let Ok(two) = manager("two").apply(one.as_ref().ok(), &second, true) else { continue };
        // Values that Kubernetes writes in another way count as changes each time; who owns what does not change.
        let again = manager("two").apply(Some(&two), &second, true).expect("it could be applied before");
        assert_eq!(entries(&again), entries(&two));
    }
}

/// Who owns what, without when.
fn entries(object: &Value) -> Vec<Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned();
    let mut entries = entries.unwrap_or_default();
    for entry in &mut entries {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
    }
    entries.sort_by_key(Value::to_string);
    entries
}
