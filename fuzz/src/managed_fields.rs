//! Fuzzes the managed fields and the applied configurations of bodies.

use pintle_machinery::codec::{MAX_DEPTH, json};
use pintle_machinery::managed_fields::{FieldManager, FieldSet, OneVersion};
use pintle_machinery::{Value, tree};
use pintle_schema::Schema;

/// A set of fields is parsed or refused; a parsed set survives encoding and decoding.
pub(crate) fn fields_v1(data: &[u8]) {
    let Ok(fields) = json::decode_any(data) else { return };
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
    let mut both = set.clone();
    both.union(&read);
    assert_eq!(both, set);
    // The lower half of the paths, and the rest of the set.
    let leaves = set.leaves();
    let mut rest = set.clone();
    rest.difference(&leaves);
    assert!(rest.intersection(&leaves).is_empty());
    rest.union(&leaves);
    assert_eq!(rest, set);
}

/// An apply fails, or its result does not change when it is repeated. The data is two documents with a line feed
/// between them: the configuration of one manager, and that of a second, which forces conflicts. A third manager then
/// updates the result without the second one's fields.
pub(crate) fn apply(data: &[u8]) {
    let Some(at) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (first, second) = data.split_at(at);
    let (Ok(mut first), Ok(mut second)) = (json::decode_any(first), json::decode_any(second)) else { return };
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
            empty_fields: &[],
            versions: &OneVersion,
        };
        let apply = |name, live: Option<&Value>, config: &Value, force| {
            manager(name).apply(live, config, force).map(|applied| applied.object)
        };
        let one = apply("one", None, &first, false);
        let _ = apply("two", one.as_ref().ok(), &second, false);
        let Ok(two) = apply("two", one.as_ref().ok(), &second, true) else { continue };
        // Values that Kubernetes writes in a different form count as changes each time; the owners do not change.
        // Fields without an owner, such as an empty list of a pod's containers, count as created before the first
        // apply.
        let again = apply("two", Some(&two), &second, true).expect("it could be applied before");
        if !entries(&two).is_empty() {
            assert_eq!(entries(&again), entries(&two));
        }
        assert!(tree::depth(&two) <= MAX_DEPTH);
        // The result is an object of its kind: it survives encoding and decoding.
        let text = json::encode(&two, schema);
        let read = json::decode(&text, schema).expect("what was applied can be stored");
        assert_eq!(read.value, two);

        let Ok(mut written) = one.clone().or_else(|_| Ok::<_, ()>(two.clone())) else { continue };
        manager("three").update(Some(&two), &mut written);
        let mut same = written.clone();
        manager("four").update(Some(&written), &mut same);
        assert_eq!(entries(&same), entries(&written), "who changes nothing owns nothing");
    }
}

/// The entries of managed fields, without their times.
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
