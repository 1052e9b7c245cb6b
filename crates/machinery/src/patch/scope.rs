//! Determines the parts of an object that a patch reads or changes.
//!
//! A patch works on the JSON form of an object, so the object is converted to it and back by its schema. Most patches
//! name few members of a large object, and only these are converted. A canonical tree survives the conversion
//! unchanged, so the other members stay as they are.
//!
//! Only structs that the schema declares are split. Lists and maps are converted as a whole: a JSON patch addresses
//! items by position, and an empty map may be omitted although a patch can test for it.

use crate::{Map, Text, Value};
use pintle_schema::{Omit, SchemaRef, Type};
use std::collections::BTreeMap;

/// The members of an object that a patch names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The value with all its content.
    Whole,
    /// Only these members of the value. (A patch may also depend on the value being an object.)
    Members(BTreeMap<String, Scope>),
}

/// The maximum number of path parts that are evaluated.
const MAX_PATH: usize = 16;

impl Scope {
    /// The members that a merge patch names.
    pub fn of_merge_patch(patch: &Value) -> Scope {
        match patch {
            Value::Object(members) => {
                let scope = |(name, value): (&Text, &Value)| (name.to_string(), Scope::of_merge_patch(value));
                Scope::Members(members.iter().map(scope).collect())
            }
            _ => Scope::Whole,
        }
    }

    /// The members that a strategic merge patch names: directives concern their own object, or the list beside them.
    pub fn of_strategic_merge_patch(patch: &Value) -> Scope {
        let Value::Object(members) = patch else { return Scope::Whole };
        let mut scope = Scope::Members(BTreeMap::new());
        for (name, value) in members {
            match (name.strip_prefix('$'), name.split_once('/')) {
                (None, _) => scope.add(name, Scope::of_strategic_merge_patch(value)),
                (Some(_), Some((_, list))) => scope.add(list, Scope::Whole),
                (Some(_), None) => return Scope::Whole,
            }
        }
        scope
    }

    /// The members that the operations of a JSON patch name.
    pub fn of_json_patch(patch: &Value) -> Scope {
        let mut scope = Scope::Members(BTreeMap::new());
        for operation in patch.as_array().map(Vec::as_slice).unwrap_or_default() {
            for pointer in ["path", "from"].into_iter().filter_map(|name| operation.get(name)) {
                // A malformed operation fails when it is applied; one on the document itself needs all of it.
                let Some((_, path)) = pointer.as_str().and_then(|pointer| pointer.split_once('/')) else {
                    return Scope::Whole;
                };
                // Deeper parts count as a whole, so that a long path does not make a deep scope.
                scope.add_path(path.split('/').take(MAX_PATH));
            }
        }
        scope
    }

    /// Whether the patch names this member of the value.
    pub fn names(&self, member: &str) -> bool {
        match self {
            Scope::Whole => true,
            Scope::Members(members) => members.contains_key(member),
        }
    }

    fn add_path<'a>(&mut self, mut keys: impl Iterator<Item = &'a str>) {
        let Scope::Members(members) = self else { return };
        match keys.next() {
            None => *self = Scope::Whole,
            Some(key) => members
                .entry(super::json_patch::decode_key(key))
                .or_insert_with(|| Scope::Members(BTreeMap::new()))
                .add_path(keys),
        }
    }

    fn add(&mut self, name: &str, scope: Scope) {
        let Scope::Members(members) = self else { return };
        let wider = match (members.remove(name), scope) {
            (None, scope) => scope,
            (Some(Scope::Members(mut members)), Scope::Members(others)) => {
                members.extend(others);
                Scope::Members(members)
            }
            (Some(_), _) => Scope::Whole,
        };
        members.insert(name.to_owned(), wider);
    }

    /// Removes from the object the part that the patch is applied to, and returns it.
    pub fn take(&self, object: &mut Value, schema: SchemaRef<'_>) -> Value {
        match (self, object) {
            (Scope::Members(members), Value::Object(object)) if schema.ty() == Type::Struct => {
                Value::Object(take(object, members, schema))
            }
            (_, object) => object.take(),
        }
    }

    /// Merges the patched part, decoded by the schema, back into the object.
    pub fn put_back(&self, rest: Value, part: Value) -> Value {
        match (self, rest, part) {
            (Scope::Members(members), Value::Object(mut rest), Value::Object(part)) => {
                put_back(&mut rest, part, members);
                Value::Object(rest)
            }
            (_, _, part) => part,
        }
    }
}

fn take(object: &mut Map, scopes: &BTreeMap<String, Scope>, schema: SchemaRef<'_>) -> Map {
    let mut part = Map::new();
    for (name, scope) in scopes {
        let inner = schema.field(name).filter(|field| {
            // Only a struct is split that is still encoded without its other members, and that no patch strategy
            // replaces.
            let stays = !schema.is_declared() || field.is_pointer() || field.omit() != Omit::Zero;
            stays && field.ty().ty() == Type::Struct && !field.patch_strategy().replace
        });
        match (scope, object.get_mut(name), inner) {
            (Scope::Members(scopes), Some(Value::Object(members)), Some(field)) => {
                part.insert(name.as_str(), Value::Object(take(members, scopes, field.ty())));
            }
            (_, Some(value), _) if !value.is_null() || !schema.is_declared() => {
                part.insert(name.as_str(), value.take());
                object.remove(name);
            }
            (_, Some(_) | None, _) => {}
        }
    }
    part
}

fn put_back(rest: &mut Map, mut part: Map, scopes: &BTreeMap<String, Scope>) {
    for (name, scope) in scopes {
        match (scope, rest.get_mut(name), part.remove(name)) {
            (Scope::Members(scopes), Some(Value::Object(members)), Some(Value::Object(part))) => {
                put_back(members, part, scopes);
            }
            // Decoders omit a part that has only its zero value. The member is removed when it has no other members
            // either.
            (Scope::Members(scopes), Some(Value::Object(members)), None) => {
                put_back(members, Map::new(), scopes);
                if members.is_empty() {
                    rest.remove(name);
                }
            }
            (_, Some(_), None) => drop(rest.remove(name)),
            (_, _, Some(value)) => drop(rest.insert(name.as_str(), value)),
            (_, None, None) => {}
        }
    }
    for (name, value) in part {
        rest.entry(name).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::{json, random_tests::Random},
        options::FieldValidation,
        patch::{PatchError, json_patch, merge_patch, strategic},
    };
    use pintle_schema::Schema;
    use pintle_tree::json;
    use proptest::prelude::*;

    fn members<const N: usize>(members: [(&str, Scope); N]) -> Scope {
        Scope::Members(members.into_iter().map(|(name, scope)| (name.to_owned(), scope)).collect())
    }

    #[test]
    fn patches_name_members() {
        use Scope::Whole;
        let merge = json!({"metadata": {"labels": {"a": null}}, "spec": [1]});
        let expected =
            members([("metadata", members([("labels", members([("a", Whole)]))])), ("spec", Whole)]);
        assert_eq!(Scope::of_merge_patch(&merge), expected);
        assert_eq!(Scope::of_merge_patch(&json!([])), Whole);

        let rows = [
            (
                json!({"spec": {"$setElementOrder/containers": []}}),
                members([("spec", members([("containers", Whole)]))]),
            ),
            (json!({"spec": {"$retainKeys": ["a"], "a": 1}}), members([("spec", Whole)])),
            (json!({"spec": {"$patch": "delete"}}), members([("spec", Whole)])),
            (
                json!({"$deleteFromPrimitiveList/finalizers": [], "finalizers": {"a": 1}}),
                members([("finalizers", Whole)]),
            ),
        ];
        for (patch, expected) in rows {
            assert_eq!(Scope::of_strategic_merge_patch(&patch), expected, "{patch}");
        }

        let rows = [
            (
                json!([{"path": "/a/b"}, {"path": "/a/c", "from": "/d~1e"}]),
                members([("a", members([("b", Whole), ("c", Whole)])), ("d/e", Whole)]),
            ),
            (json!([{"path": "/a/b"}, {"path": "/a"}]), members([("a", Whole)])),
            (json!([{"path": "/a"}, {"path": "/a/b"}]), members([("a", Whole)])),
            (json!([{"path": ""}]), Whole),
            (json!([{"path": 1}]), Whole),
            (json!([null, {"op": "test"}]), members([])),
        ];
        for (patch, expected) in rows {
            assert_eq!(Scope::of_json_patch(&patch), expected, "{patch}");
        }
    }

    /// A patch of some of the tree's members and of some absent ones.
    fn merge_patch_of(random: &mut Random, tree: &Value, depth: u32) -> Value {
        let Value::Object(tree) = tree else { return random.raw(5) };
        let mut patch = Map::new();
        for (name, value) in tree {
            let value = match random.below(8) {
                0 => Value::Null,
                1 => random.raw(4),
                2 => json!({}),
                3 | 4 if depth < 5 => merge_patch_of(random, value, depth + 1),
                _ => continue,
            };
            patch.insert(name.as_str(), value);
        }
        if random.below(3) == 0 {
            patch.insert(
                random.pick(&["status", "spec", "metadata", "unknown", "template"]).to_owned(),
                json!({"x": 1}),
            );
        }
        Value::Object(patch)
    }

    fn json_patch_of(random: &mut Random, tree: &Value) -> Value {
        let mut operations = Vec::new();
        for _ in 0..=random.below(4) {
            let mut pointer = || {
                let (mut pointer, mut value) = (String::new(), tree);
                while let Value::Object(members) = value {
                    let at = random.below(members.len() as u64 + 1) as usize;
                    let Some((name, member)) = members.iter().nth(at) else {
                        pointer.push_str(["/status", "/spec", "/x", "/metadata"][random.below(4) as usize]);
                        break;
                    };
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    value = member;
                    if random.below(3) == 0 {
                        break;
                    }
                }
                (pointer, value.clone())
            };
            let ((path, value), (from, _)) = (pointer(), pointer());
            let op = random.pick(&["add", "remove", "replace", "move", "copy", "test"]);
            let value = if random.below(2) == 0 { value } else { random.raw(4) };
            operations.push(json!({"op": op, "path": path, "from": from, "value": value}));
        }
        Value::Array(operations)
    }

    type Outcome = Result<(Value, Vec<String>), String>;

    /// The patched tree, with and without a scope.
    fn both_ways(
        tree: &Value,
        schema: SchemaRef<'_>,
        scope: &Scope,
        patch: impl Fn(Value) -> Result<Value, PatchError>,
    ) -> (Outcome, Outcome) {
        let patched = |tree| -> Outcome {
            let patched = patch(tree).map_err(|error| format!("{error:?}"))?;
            let decoded = json::from_value(&patched, schema).map_err(|error| error.to_string())?;
            Ok((decoded.value, decoded.problems.iter().map(ToString::to_string).collect()))
        };
        let mut rest = tree.clone();
        let part = scope.take(&mut rest, schema);
        let short = patched(part).map(|(part, problems)| (scope.put_back(rest, part), problems));
        (patched(tree.clone()), short)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn the_short_way_leads_to_the_same_object(seed in 1u64..) {
            let mut random = Random::new(seed);
            let (kind, tree) = random.kind();
            let schema = Schema::builtin().by_kind(kind.0, kind.1, kind.2).unwrap();
            let seen = json::to_value(&tree, schema);

            let patch = merge_patch_of(&mut random, &seen, 0);
            let (long, short) = both_ways(&tree, schema, &Scope::of_merge_patch(&patch), |tree| {
                merge_patch::apply(json::to_value(&tree, schema), patch.clone(), FieldValidation::Strict)
            });
            prop_assert_eq!(long, short, "merge patch {} of {} {}", patch, kind.2, tree);

            let (long, short) = both_ways(&tree, schema, &Scope::of_strategic_merge_patch(&patch), |tree| {
                strategic::apply(tree, patch.clone(), schema)
            });
            prop_assert_eq!(long, short, "strategic merge patch {} of {} {}", patch, kind.2, tree);

            let patch = json_patch_of(&mut random, &seen);
            let (long, short) = both_ways(&tree, schema, &Scope::of_json_patch(&patch), |tree| {
                json_patch::apply(json::to_value(&tree, schema), &patch, FieldValidation::Strict)
            });
            prop_assert_eq!(long, short, "JSON patch {} of {} {}", patch, kind.2, tree);
        }
    }
}
