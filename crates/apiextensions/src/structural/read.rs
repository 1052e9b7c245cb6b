//! Parses the JSON tree of `openAPIV3Schema` into the arena.
//!
//! Only facts about objects are kept: descriptions, titles, examples and external documents stay in the definition. The
//! recursion is bounded by [`MAX_DEPTH`].

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use pintle_machinery::{Map, Value, ValueExt};

use super::arena::Arena;
use super::enumeration::Enumeration;
use super::formats;
use super::node::{Additional, Constraint, Flags, JsonType, ListType, Node, NodeId, Property, Rule};
use super::pattern::Pattern;
use super::prune;
use super::run::{Name, Run};

/// The maximum nesting depth of schemas.
pub(crate) const MAX_DEPTH: usize = 256;

/// Members that structural schemas must not have
/// (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>).
const UNSUPPORTED: [&str; 7] =
    ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];

/// Parses a schema.
///
/// # Errors
/// The reason why the schema is not structural.
pub(super) fn read(tree: &Value) -> Result<Arena, String> {
    let mut reader = Reader::default();
    let root = reader.node(tree, Place::Structure, 0)?;
    let mut schema = Arena {
        text: reader.text.into_boxed_str(),
        nodes: reader.nodes.into_boxed_slice(),
        properties: reader.properties.into_boxed_slice(),
        constraints: reader.constraints.into_boxed_slice(),
        names: reader.names.into_boxed_slice(),
        values: reader.values.into_boxed_slice(),
        defaults: reader.defaults.into_boxed_slice(),
        alternatives: reader.alternatives.into_boxed_slice(),
        rules: reader.rules.into_boxed_slice(),
        root,
        default_weights: OnceLock::new(),
    };
    prune::prune_defaults(&mut schema);
    Ok(schema)
}

/// Whether a schema specifies structure, or only restricts values inside `allOf` and similar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Structure,
    Values,
}

#[derive(Default)]
struct Reader {
    text: String,
    interned: HashMap<String, Name>,
    patterns: HashMap<String, Arc<Pattern>>,
    nodes: Vec<Node>,
    properties: Vec<Property>,
    constraints: Vec<Constraint>,
    names: Vec<Name>,
    values: Vec<Value>,
    defaults: Vec<Value>,
    alternatives: Vec<NodeId>,
    rules: Vec<Rule>,
}

impl Reader {
    fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.interned.get(text) {
            return *name;
        }
        let name = Name { start: self.text.len() as u32, len: text.len() as u32 };
        self.text.push_str(text);
        self.interned.insert(text.to_owned(), name);
        name
    }

    fn names<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Run {
        let start = self.names.len();
        for text in texts {
            let name = self.intern(text);
            self.names.push(name);
        }
        run(start, &self.names)
    }

    fn node(&mut self, tree: &Value, place: Place, depth: usize) -> Result<NodeId, String> {
        if depth > MAX_DEPTH {
            return Err(format!("OpenAPIV3Schema is more than {MAX_DEPTH} schemas deep"));
        }
        let Value::Object(tree) = tree else {
            return Err("OpenAPIV3Schema must be an object".to_owned());
        };
        if let Some(name) = UNSUPPORTED.iter().find(|name| says_something(tree.get(name))) {
            return Err(format!("OpenAPIV3Schema '{}' is not supported", name.trim_start_matches('$')));
        }
        let mut node = Node { ty: self.ty(tree), ..Node::default() };
        self.extensions(tree, &mut node, place)?;
        node.properties = self.properties(tree, &mut node.flags, place, depth)?;
        match tree.get("items") {
            None | Some(Value::Null) => {}
            Some(Value::Array(_)) => {
                return Err("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
            }
            Some(items) => node.items = Some(self.below(items, &mut node.flags, place, depth)?),
        }
        node.additional = match tree.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Absent,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(Value::Bool(true)) => Additional::Anything,
            Some(schema) => Additional::Schema(self.below(schema, &mut node.flags, place, depth)?),
        };
        if place == Place::Structure
            && let Some(default) = tree.get("default").filter(|default| !default.is_null())
        {
            self.defaults.push(default.clone());
            node.default = self.defaults.len() as u32;
            node.flags.set(Flags::BELOW_DEFAULTS);
        }
        node.constraints = self.constraints(tree, &node, depth)?;
        node.rules = self.rules(tree);
        node.flags.set_if(node.rules.len > 0 && place == Place::Structure, Flags::BELOW_RULES);
        self.nodes.push(node);
        Ok(NodeId::new(self.nodes.len() - 1))
    }

    fn below(
        &mut self,
        tree: &Value,
        flags: &mut Flags,
        place: Place,
        depth: usize,
    ) -> Result<NodeId, String> {
        let id = self.node(tree, place, depth + 1)?;
        if let Some(node) = self.nodes.get(id.index()) {
            flags.inherit(node.flags);
        }
        Ok(id)
    }

    fn ty(&mut self, tree: &Map) -> Option<JsonType> {
        match tree.get("type").and_then(Value::as_str).unwrap_or_default() {
            "" => None,
            name => JsonType::parse(name).or_else(|| Some(JsonType::Unknown(self.intern(name)))),
        }
    }

    fn extensions(&mut self, tree: &Map, node: &mut Node, place: Place) -> Result<(), String> {
        let is = |name: &str| tree.get(name) == Some(&Value::Bool(true));
        let text = |name: &str| tree.get(name).and_then(Value::as_str);
        if tree.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            return Err(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned()
            );
        }
        let flags = &mut node.flags;
        flags.set_if(is("nullable"), Flags::NULLABLE);
        let format = tree.get("format").and_then(Value::as_str).unwrap_or_default();
        flags.set_if(!matches!(format, "" | "byte"), Flags::FORMATTED);
        flags.set_if(is("x-kubernetes-int-or-string"), Flags::INT_OR_STRING);
        flags.set_if(is("uniqueItems"), Flags::UNIQUE_ITEMS);
        if place == Place::Values {
            return Ok(());
        }
        flags.set_if(is("x-kubernetes-preserve-unknown-fields"), Flags::PRESERVE_UNKNOWN);
        if is("x-kubernetes-embedded-resource") {
            flags.set(Flags::EMBEDDED_RESOURCE);
            flags.set(Flags::BELOW_EMBEDDED);
        }
        if let Some(map_type) = text("x-kubernetes-map-type") {
            flags.set(Flags::MAP_TYPE_DECLARED);
            flags.set_if(map_type == "atomic", Flags::ATOMIC_MAP);
        }
        if let Some(list_type) = text("x-kubernetes-list-type") {
            flags.set(Flags::LIST_TYPE_DECLARED);
            node.list_type = match list_type {
                "set" => ListType::Set,
                "map" => ListType::Map,
                _ => ListType::Atomic,
            };
            flags.set_if(node.list_type != ListType::Atomic, Flags::BELOW_LIST_TYPES);
        }
        if let Some(Value::Array(keys)) = tree.get("x-kubernetes-list-map-keys") {
            node.list_map_keys = self.names(keys.iter().filter_map(Value::as_str));
        }
        Ok(())
    }

    /// Parses properties. The tree's members are sorted by name, and so are the properties.
    fn properties(
        &mut self,
        tree: &Map,
        flags: &mut Flags,
        place: Place,
        depth: usize,
    ) -> Result<Run, String> {
        let Some(Value::Object(members)) = tree.get("properties") else { return Ok(Run::default()) };
        let mut properties = Vec::with_capacity(members.len());
        for (name, schema) in members {
            let node = self.below(schema, flags, place, depth)?;
            properties.push(Property { name: self.intern(name), node });
        }
        let start = self.properties.len();
        self.properties.append(&mut properties);
        Ok(run(start, &self.properties))
    }

    /// Parses constraints. Alternatives are parsed before they are added to their table, since a run has no gaps.
    fn constraints(&mut self, tree: &Map, node: &Node, depth: usize) -> Result<Run, String> {
        let mut found = Vec::new();
        self.junctors(tree, depth, &mut found)?;
        let float = |name: &str| tree.get(name).and_then(Value::as_f64);
        let integer = |name: &str| tree.get(name).and_then(Value::as_i64);
        let is = |name: &str| tree.get(name) == Some(&Value::Bool(true));
        if let Some(format) = tree.get("format").and_then(Value::as_str).filter(|format| !format.is_empty()) {
            let name = self.intern(format);
            found.push(match formats::is_supported(node, format) {
                true => Constraint::Format(name),
                false => Constraint::UnsupportedFormat(name),
            });
        }
        if let Some(limit) = float("maximum") {
            found.push(Constraint::Maximum { limit, exclusive: is("exclusiveMaximum") });
        }
        if let Some(limit) = float("minimum") {
            found.push(Constraint::Minimum { limit, exclusive: is("exclusiveMinimum") });
        }
        found.extend(float("multipleOf").map(Constraint::MultipleOf));
        found.extend(integer("maxLength").map(Constraint::MaxLength));
        found.extend(integer("minLength").map(Constraint::MinLength));
        found.extend(integer("maxItems").map(Constraint::MaxItems));
        found.extend(integer("minItems").map(Constraint::MinItems));
        found.extend(integer("maxProperties").map(Constraint::MaxProperties));
        found.extend(integer("minProperties").map(Constraint::MinProperties));
        if let Some(pattern) = tree.get("pattern").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            let shared = self.patterns.entry(pattern.to_owned());
            let shared = shared.or_insert_with(|| Arc::new(Pattern::new(pattern)));
            found.push(Constraint::Pattern(Arc::clone(shared)));
        }
        if let Some(Value::Array(values)) = tree.get("enum")
            && !values.is_empty()
        {
            let start = self.values.len();
            self.values.extend(values.iter().cloned());
            found.push(Constraint::Enum(Enumeration::new(run(start, &self.values))));
        }
        if let Some(Value::Array(names)) = tree.get("required")
            && !names.is_empty()
        {
            found.push(Constraint::Required(self.names(names.iter().filter_map(Value::as_str))));
        }
        let start = self.constraints.len();
        self.constraints.append(&mut found);
        Ok(run(start, &self.constraints))
    }

    fn junctors(&mut self, tree: &Map, depth: usize, found: &mut Vec<Constraint>) -> Result<(), String> {
        type Junctor = (&'static str, fn(Run) -> Constraint);
        const JUNCTORS: [Junctor; 3] =
            [("allOf", Constraint::AllOf), ("anyOf", Constraint::AnyOf), ("oneOf", Constraint::OneOf)];
        for (name, constraint) in JUNCTORS {
            let Some(Value::Array(schemas)) = tree.get(name) else { continue };
            let mut alternatives = Vec::with_capacity(schemas.len());
            for schema in schemas {
                alternatives.push(self.node(schema, Place::Values, depth + 1)?);
            }
            if !alternatives.is_empty() {
                let start = self.alternatives.len();
                self.alternatives.append(&mut alternatives);
                found.push(constraint(run(start, &self.alternatives)));
            }
        }
        if let Some(schema) = tree.get("not").filter(|schema| !schema.is_null()) {
            found.push(Constraint::Not(self.node(schema, Place::Values, depth + 1)?));
        }
        Ok(())
    }

    fn rules(&mut self, tree: &Map) -> Run {
        let start = self.rules.len();
        if let Some(Value::Array(rules)) = tree.get("x-kubernetes-validations") {
            self.rules.extend(rules.iter().map(|rule| Rule {
                rule: rule.str_at("rule").into(),
                message: rule.str_at("message").into(),
                message_expression: rule.str_at("messageExpression").into(),
                reason: rule.at("reason").and_then(Value::as_str).map(Into::into),
                field_path: rule.str_at("fieldPath").into(),
                optional_old_self: rule.at("optionalOldSelf").and_then(Value::as_bool),
            }));
        }
        run(start, &self.rules)
    }
}

fn run<T>(start: usize, table: &[T]) -> Run {
    Run { start: start as u32, len: (table.len() - start) as u32 }
}

fn says_something(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    }
}
