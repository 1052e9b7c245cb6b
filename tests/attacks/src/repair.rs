//! Changes an object until a server accepts it.

use crate::bodies::{Fill, entry};
use pintle_schema::{SchemaRef, Type};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Changes that make an object valid. They are found by a server's answers to a short object, and are made on a long one.
#[derive(Debug)]
pub struct Repair {
    schema: SchemaRef<'static>,
    changes: Vec<(Vec<Part>, Change)>,
    tried: HashMap<Vec<Part>, usize>,
}

/// A step of a path of fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Part {
    Field(String),
    /// Every item of a list, or every value of a map.
    Each,
}

#[derive(Debug, Clone)]
enum Change {
    Remove,
    Set(Value),
    /// A text with the entry's number in place of `#`.
    Text(&'static str),
    /// The entry's number.
    Number,
    /// A value with the required fields.
    Blank(SchemaRef<'static>),
    /// One more field, with a value.
    Add(&'static str, SchemaRef<'static>),
    /// A new key in a map, with the entry's number in place of `#`.
    Rename(&'static str),
}

/// Texts of the forms that fields demand.
const TEXTS: &[&str] = &[
    "a#",
    "/a#",
    "a.example.com/a#",
    "10.#",
    "10.#/32",
    "a#.example.com",
    "https://a#.example.com/",
    "A_#",
    "Aa#",
    "In",
    "Exists",
    "iqn.2001-04.com.example:a#",
    "true",
    "#",
    "*",
    "",
];
/// The only items of some lists.
const WORDS: &[&str] = &["v1", "CREATE", "*", "10.98.0.0/24"];
/// Paths in the messages of definitions, where the only version's fields are those of the spec.
const ALIASES: &[(&str, &str)] = &[
    ("spec.validation.", "spec.versions[0].schema."),
    ("spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"),
    ("spec.selectableFields", "spec.versions[0].selectableFields"),
];
/// Keys of the forms that maps demand.
const KEYS: &[&str] = &["example.com/a#", "hugepages-#Mi", "a#.txt", "requests.example.com/a#"];

impl Repair {
    /// No changes of an object of this schema.
    pub fn new(schema: SchemaRef<'static>) -> Repair {
        Repair { schema, changes: Vec::new(), tried: HashMap::new() }
    }

    /// Finds a change for each field that a `Status` complains of. False when there is none left to try.
    pub fn learn(&mut self, status: &Value) -> bool {
        let causes = status.pointer("/details/causes").and_then(Value::as_array);
        let mut seen = Vec::new();
        for cause in causes.into_iter().flatten() {
            let text = |name: &str| cause.get(name).and_then(Value::as_str).unwrap_or_default();
            let Some((path, schema)) = self.path(text("field")) else { continue };
            if seen.contains(&path) {
                continue;
            }
            let tried = self.tried.entry(path.clone()).or_default();
            let change = changes(schema, &path, text("reason"), text("message")).into_iter().nth(*tried);
            *tried += 1;
            if let Some(change) = change {
                self.changes.push((path.clone(), change));
                seen.push(path);
            }
        }
        !seen.is_empty()
    }

    /// Makes the changes.
    pub fn make(&self, object: &mut Value) {
        for (path, change) in &self.changes {
            make(object, self.schema, path, change, &mut 0);
        }
    }

    /// The parts of a path such as `spec.ports[0].name`, and the schema of its end.
    fn path(&self, field: &str) -> Option<(Vec<Part>, SchemaRef<'static>)> {
        let (mut parts, mut schema) = (Vec::new(), self.schema);
        let alias = ALIASES.iter().find_map(|(alias, path)| Some((field.strip_prefix(alias)?, path)));
        let field = alias.map_or_else(|| field.to_owned(), |(rest, path)| format!("{path}{rest}"));
        let mut rest = field.as_str();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                schema = match schema.ty() {
                    Type::List => schema.item(),
                    Type::Map => schema.value(),
                    _ => return None,
                };
                parts.push(Part::Each);
                rest = inner.split_once(']')?.1;
                continue;
            }
            rest = rest.trim_start_matches('.');
            // Some paths name a field of items without an index.
            if schema.ty() == Type::List {
                schema = schema.item();
                parts.push(Part::Each);
            }
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = rest.get(..end)?;
            schema = schema.field(name)?.ty();
            parts.push(Part::Field(name.to_owned()));
            rest = rest.get(end..)?;
        }
        (!parts.is_empty()).then_some((parts, schema))
    }
}

/// The changes to try for a field, in this order.
fn changes(schema: SchemaRef<'static>, path: &[Part], reason: &str, message: &str) -> Vec<Change> {
    if let Some((_, supported)) = message.split_once("supported values: ") {
        let values = supported.split('"').skip(1).step_by(2);
        let is_list = schema.ty() == Type::List;
        return values
            .map(|value| Change::Set(if is_list { json!([value]) } else { json!(value) }))
            .collect();
    }
    let adds = || schema.fields().map(|field| Change::Add(field.name(), field.ty()));
    let numbers = [1, 0, 80, 1000].map(|number| Change::Set(json!(number)));
    let mut all = match (schema.ty(), reason) {
        (_, "FieldValueForbidden") => vec![],
        (Type::String, _) => TEXTS.iter().map(|text| Change::Text(text)).collect(),
        (Type::Int32 | Type::Int64 | Type::IntOrString, _) => {
            [Change::Number].into_iter().chain(numbers).collect()
        }
        (Type::Bool, _) => vec![Change::Set(json!(false)), Change::Set(json!(true))],
        (Type::Struct, "FieldValueRequired") => [Change::Blank(schema)].into_iter().chain(adds()).collect(),
        (Type::List, _) => {
            let item = entry(schema.item(), 0, Fill::Distinct, &[], 0);
            let words = WORDS.iter().map(|word| json!([word])).filter(|_| item.is_string());
            [json!([item])].into_iter().chain(words).map(Change::Set).collect()
        }
        (_, "FieldValueRequired") => vec![Change::Blank(schema)],
        _ => vec![],
    };
    if path.last() == Some(&Part::Each) {
        all.extend(KEYS.iter().map(|key| Change::Rename(key)));
    } else if reason != "FieldValueRequired" {
        all.push(Change::Remove);
    }
    if schema.ty() == Type::Struct && reason != "FieldValueRequired" {
        all.extend(adds());
    }
    all
}

fn make(at: &mut Value, schema: SchemaRef<'static>, path: &[Part], change: &Change, number: &mut usize) {
    let Some((first, rest)) = path.split_first() else {
        set(at, change, *number);
        *number += 1;
        return;
    };
    match (first, at) {
        (Part::Each, Value::Array(items)) => {
            for item in items {
                make(item, schema.item(), rest, change, number);
            }
        }
        (Part::Each, Value::Object(members)) => {
            if let (Change::Rename(to), []) = (change, rest) {
                *members = std::mem::take(members)
                    .into_iter()
                    .enumerate()
                    .map(|(number, (_, value))| (numbered(to, number), value))
                    .collect();
                return;
            }
            for value in members.values_mut() {
                make(value, schema.value(), rest, change, number);
            }
        }
        (Part::Field(name), Value::Object(members)) => {
            if let (Change::Remove, []) = (change, rest) {
                members.remove(name);
                return;
            }
            let Some(field) = schema.field(name) else { return };
            let value = members
                .entry(name.clone())
                .or_insert_with(|| entry(field.ty(), *number, Fill::Distinct, &[], 0));
            make(value, field.ty(), rest, change, number);
        }
        _ => {}
    }
}

fn set(at: &mut Value, change: &Change, number: usize) {
    match change {
        Change::Set(value) => *at = value.clone(),
        Change::Text(text) => *at = json!(numbered(text, number)),
        Change::Number => *at = json!(number + 1),
        Change::Blank(schema) => *at = entry(*schema, number, Fill::Distinct, &[], 0),
        Change::Add(name, schema) => {
            if let Some(members) = at.as_object_mut() {
                members.insert((*name).to_owned(), entry(*schema, number, Fill::Distinct, &[], 0));
            }
        }
        Change::Remove | Change::Rename(_) => {}
    }
}

/// A text with a number in place of `#`: as the rest of an address behind `10.`, where that is asked for.
fn numbered(text: &str, number: usize) -> String {
    match text.split_once("10.#") {
        Some((_, rest)) => {
            format!("10.{}.{}.{}{rest}", number / 65_536 % 256, number / 256 % 256, number % 256)
        }
        None => text.replace('#', &number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_schema::Schema;

    fn status(reason: &str, message: &str, field: &str) -> Value {
        json!({"details": {"causes": [{"reason": reason, "message": message, "field": field}]}})
    }

    #[test]
    fn each_answer_leads_to_the_next_change() {
        let mut repair = Repair::new(Schema::builtin().by_kind("", "v1", "Service").expect("a kind"));
        let body = json!({"spec": {"ports": [{"port": 1}, {"port": 1}]}});
        let made = |repair: &Repair| {
            let mut body = body.clone();
            repair.make(&mut body);
            body
        };
        let required = status("FieldValueRequired", "Required value", "spec.ports[1].name");
        assert!(repair.learn(&required));
        assert_eq!(
            made(&repair),
            json!({"spec": {"ports": [{"port": 1, "name": "a0"}, {"port": 1, "name": "a1"}]}})
        );
        let supported = "Unsupported value: \"\": supported values: \"UDP\", \"TCP\"";
        assert!(repair.learn(&status("FieldValueNotSupported", supported, "spec.ports[0].protocol")));
        assert!(repair.learn(&status("FieldValueNotSupported", supported, "spec.ports[0].protocol")));
        assert!(repair.learn(&status("FieldValueForbidden", "Forbidden", "spec.ports[0].port")));
        let expected = [json!({"name": "a0", "protocol": "TCP"}), json!({"name": "a1", "protocol": "TCP"})];
        assert_eq!(made(&repair), json!({"spec": {"ports": expected}}));
        assert!(!repair.learn(&status("FieldValueForbidden", "Forbidden", "spec.ports[0].port")));
        assert!(!repair.learn(&status("FieldValueInvalid", "Invalid value", "spec.unknown")));
    }
}
