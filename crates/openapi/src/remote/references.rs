//! Follows the references of a document.

use super::shape::{PARAMETER, PATH_ITEM, SCHEMA, visit_references};
use pintle_machinery::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The definitions and parameters that some paths use, directly or through other definitions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Used<'a> {
    pub(super) definitions: BTreeSet<&'a str>,
    pub(super) parameters: BTreeSet<&'a str>,
}

pub(super) const DEFINITION: &str = "#/definitions/";
pub(super) const PARAMETERS: &str = "#/parameters/";

/// Finds everything that the paths use. Each definition is visited once, so that cycles end.
pub(super) fn used<'a>(
    paths: impl Iterator<Item = &'a Value>,
    definitions: &'a BTreeMap<String, Value>,
    parameters: &'a BTreeMap<String, Value>,
) -> Used<'a> {
    let mut used = Used::default();
    let mut waiting: Vec<&'a str> = Vec::new();
    for path in paths {
        visit_references(path, &PATH_ITEM, &mut |reference| waiting.push(reference));
        while let Some(reference) = waiting.pop() {
            if let Some(name) = reference.strip_prefix(DEFINITION) {
                let is_new = used.definitions.insert(name);
                if let Some(definition) = definitions.get(name).filter(|_| is_new) {
                    visit_references(definition, &SCHEMA, &mut |reference| waiting.push(reference));
                }
            } else if let Some(name) = reference.strip_prefix(PARAMETERS) {
                let is_new = used.parameters.insert(name);
                if let Some(parameter) = parameters.get(name).filter(|_| is_new) {
                    visit_references(parameter, &PARAMETER, &mut |reference| waiting.push(reference));
                }
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn cycles_end() {
        let reference = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
        let definitions = BTreeMap::from([
            ("a".to_owned(), json!({"properties": {"b": reference("b"), "a": reference("a")}})),
            ("b".to_owned(), json!({"items": reference("a")})),
            ("missing".to_owned(), json!({})),
        ]);
        let parameters = BTreeMap::from([("p".to_owned(), json!({"schema": reference("gone")}))]);
        let path = json!({"parameters": [{"$ref": "#/parameters/p"}], "get": {"responses": {"200": {"schema": reference("a")}}}});
        let used = used(std::iter::once(&path), &definitions, &parameters);
        assert_eq!(used.definitions.into_iter().collect::<Vec<_>>(), ["a", "b", "gone"]);
        assert_eq!(used.parameters.into_iter().collect::<Vec<_>>(), ["p"]);
    }
}
