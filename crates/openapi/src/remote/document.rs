//! A document of another server.

use super::{
    references::{Used, used},
    shape::{PARAMETER, PATH_ITEM, SCHEMA, Shape, conform},
};
use crate::document::Document;
use pintle_machinery::{Value, codec::json};
use std::collections::BTreeMap;

/// The maximum number of paths, of definitions and of parameters of a document.
const MOST: usize = 20_000;

/// The parts of a document that are merged: those that paths and definitions consist of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteDocument {
    pub(crate) paths: BTreeMap<String, Value>,
    pub(crate) definitions: BTreeMap<String, Value>,
    pub(crate) parameters: BTreeMap<String, Value>,
}

/// A compressed [`RemoteDocument`].
#[derive(Debug)]
pub struct PackedDocument(Document);

impl RemoteDocument {
    /// Reads the JSON of an OpenAPI 2 document.
    ///
    /// # Errors
    /// The reason why the document is unusable: it is no JSON, is nested too deeply, has a value of a wrong type, or has too
    /// many paths or definitions.
    pub fn parse(json: &[u8]) -> Result<RemoteDocument, String> {
        let mut document = json::decode_any_body(json).map_err(|error| error.to_string())?;
        if !document.is_object() {
            return Err("the document is no object".to_owned());
        }
        let mut section = |name: &str, shape: &Shape| {
            let members = match document.get_mut(name).map(Value::take) {
                Some(Value::Object(members)) => members,
                None | Some(Value::Null) => return Ok(BTreeMap::new()),
                Some(_) => return Err(format!("{name} has a wrong type")),
            };
            if members.len() > MOST {
                return Err(format!("the document has more than {MOST} {name}"));
            }
            let mut section = BTreeMap::new();
            for (key, mut value) in members {
                // Other members of the paths are extensions.
                if (name == "paths" && !key.starts_with('/')) || value.is_null() {
                    continue;
                }
                conform(&mut value, shape).map_err(|error| format!("{name}: {error}"))?;
                section.insert(key.into(), value);
            }
            Ok(section)
        };
        Ok(RemoteDocument {
            paths: section("paths", &PATH_ITEM)?,
            definitions: section("definitions", &SCHEMA)?,
            parameters: section("parameters", &PARAMETER)?,
        })
    }

    /// Splits the document by prefixes of paths: each part has the paths below its prefix, and not the definitions that only
    /// other paths use. A part without paths is empty.
    pub fn split<'a, Prefix: AsRef<str> + 'a>(
        &'a self,
        prefixes: impl IntoIterator<Item = Prefix> + 'a,
    ) -> impl Iterator<Item = RemoteDocument> + 'a {
        let before = self.used();
        let part = move |prefix: Prefix| self.part(&before, |path| path.starts_with(prefix.as_ref()));
        prefixes.into_iter().map(part)
    }

    /// Keeps some paths, and removes definitions that only other paths use.
    pub(super) fn with_paths(&self, keep: impl Fn(&str) -> bool) -> RemoteDocument {
        self.part(&self.used(), keep)
    }

    fn used(&self) -> Used<'_> {
        used(self.paths.values(), &self.definitions, &self.parameters)
    }

    /// Keeps some paths; `before` is everything that all paths use.
    fn part(&self, before: &Used<'_>, keep: impl Fn(&str) -> bool) -> RemoteDocument {
        let kept: BTreeMap<String, Value> = self
            .paths
            .iter()
            .filter(|(path, _)| keep(path))
            .map(|(path, item)| (path.clone(), item.clone()))
            .collect();
        if kept.is_empty() {
            return RemoteDocument::default();
        }
        let after = used(kept.values(), &self.definitions, &self.parameters);
        let definitions = self
            .definitions
            .iter()
            .filter(|(name, _)| {
                let name = name.as_str();
                after.definitions.contains(name) || !before.definitions.contains(name)
            })
            .map(|(name, definition)| (name.clone(), definition.clone()))
            .collect();
        RemoteDocument { definitions, parameters: self.parameters.clone(), paths: kept }
    }

    /// Compresses the document.
    pub fn pack(&self) -> PackedDocument {
        PackedDocument(Document::written_by(|out| {
            Ok(serde_json::to_writer(out, &(&self.paths, &self.definitions, &self.parameters))?)
        }))
    }
}

impl PackedDocument {
    /// The hash of the content.
    pub fn hash(&self) -> &str {
        self.0.hash()
    }

    /// The length of the uncompressed text, in bytes.
    pub fn length(&self) -> usize {
        self.0.length()
    }

    /// Restores the document.
    pub(super) fn unpack(&self) -> RemoteDocument {
        // It was packed here.
        match json::decode_any(&self.0.content()) {
            Ok(Value::Array(sections)) => {
                let mut sections = sections.into_iter().map(|section| match section {
                    Value::Object(members) => {
                        members.into_iter().map(|(name, value)| (name.into(), value)).collect()
                    }
                    _ => BTreeMap::new(),
                });
                RemoteDocument {
                    paths: sections.next().unwrap_or_default(),
                    definitions: sections.next().unwrap_or_default(),
                    parameters: sections.next().unwrap_or_default(),
                }
            }
            _ => RemoteDocument::default(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use pintle_machinery::json;

    /// A path whose GET answers with these definitions.
    pub(in crate::remote) fn path(definitions: &[&str]) -> Value {
        let responses: pintle_machinery::Map = (200..)
            .zip(definitions)
            .map(|(code, name)| {
                let code: i32 = code;
                (code.to_string(), json!({"schema": {"$ref": format!("#/definitions/{name}")}}))
            })
            .collect();
        json!({"get": {"responses": responses}})
    }

    pub(in crate::remote) fn document(paths: Value, definitions: Value) -> RemoteDocument {
        let document = json!({"swagger": "2.0", "paths": paths, "definitions": definitions});
        RemoteDocument::parse(document.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn definitions_that_only_removed_paths_used_are_removed() {
        let definitions = json!({
            "A": {"properties": {"c": {"$ref": "#/definitions/C"}}}, "B": {"$ref": "#/definitions/D"}, "C": {}, "D": {},
            "never": {},
        });
        let document = document(
            json!({"/apis/a/v1/x": path(&["A"]), "/apis/b/v1/x": path(&["B"]), "/apis/": {}}),
            definitions,
        );
        let mut parts = document.split(["/apis/a/v1/", "/apis/c/v1/"]);
        let kept = parts.next().unwrap();
        assert_eq!(parts.next(), Some(RemoteDocument::default()));
        assert_eq!(kept.paths.keys().collect::<Vec<_>>(), ["/apis/a/v1/x"]);
        assert_eq!(kept.definitions.keys().collect::<Vec<_>>(), ["A", "C", "never"]);
        let packed = kept.pack();
        assert_eq!(packed.unpack(), kept);
        assert_eq!(packed.hash(), kept.pack().hash());
        assert_ne!(packed.hash(), document.pack().hash());
    }

    #[test]
    fn unusable_documents_are_refused() {
        let many = |section: &str| {
            let members: pintle_machinery::Map =
                (0..=MOST).map(|number| (format!("/{number}"), json!({}))).collect();
            json!({section: members}).to_string()
        };
        let deep = |open: &str, close: &str| {
            format!(r#"{{"definitions":{{"A":{}{}}}}}"#, open.repeat(200_000), close.repeat(200_000))
        };
        let rows = [
            String::new(),
            "null".to_owned(),
            "[]".to_owned(),
            "<html>".to_owned(),
            r#"{"paths":[]}"#.to_owned(),
            r#"{"paths":{"/a":7}}"#.to_owned(),
            r#"{"definitions":{"A":{"properties":[]}}}"#.to_owned(),
            many("paths"),
            many("definitions"),
            deep(r#"{"not":"#, "}"),
            deep(r#"{"not":{},"x-a":["#, "]}"),
        ];
        for row in rows {
            let start: String = row.chars().take(80).collect();
            assert!(RemoteDocument::parse(row.as_bytes()).is_err(), "{start}");
        }
        for row in ["{}", r#"{"paths":null,"definitions":{"A":null},"info":7}"#] {
            assert_eq!(RemoteDocument::parse(row.as_bytes()), Ok(RemoteDocument::default()), "{row}");
        }
    }
}
