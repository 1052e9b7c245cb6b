//! Parses YAML into nodes that keep aliases, and converts the nodes to values.

use std::collections::{HashMap, HashSet};

use pintle_tree::{Map, Number, Value};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use super::flow::FlowFinder;
use super::resolve::{Resolved, resolve};
use crate::codec::error::{DecodeError, Fallible};
use crate::codec::weight::{ITEM, MEMBER, NODE, OBJECT, TEXT, TOKENS, Weight};
use crate::codec::{MAX_DEPTH, json, number};
use pintle_go_forms::base64;
use pintle_go_forms::quote;

/// The numbers of nodes between which the allowed share of aliased nodes decreases.
const ALIAS_RATIO_FROM: u32 = 400_000;
const ALIAS_RATIO_TO: u32 = 4_000_000;

pub(super) struct Parsed {
    pub(super) value: Value,
    /// One line for each duplicate key.
    pub(super) duplicates: Vec<String>,
}

pub(super) fn parse(text: &[u8], weight: Weight) -> Result<Parsed, DecodeError> {
    read(text, weight).map_err(|error| *error)
}

fn error(message: impl std::fmt::Display) -> Box<DecodeError> {
    Box::new(DecodeError::Yaml(format!("yaml: {message}")))
}

fn read(text: &[u8], weight: Weight) -> Fallible<Parsed> {
    let text = characters(text).map_err(error)?;
    if let Some(value) = plain_json(text, weight) {
        return Ok(Parsed { value, duplicates: Vec::new() });
    }
    check_directives(text)?;
    let mut document = Document {
        events: Parser::new_from_str(text),
        nodes: Vec::new(),
        anchors: HashMap::new(),
        open_end: open_end(text),
        weight,
        flows: FlowFinder::new(text),
        position: 0,
        tokens: 0,
    };
    let Some(root) = document.root()? else {
        return Ok(Parsed { value: Value::Null, duplicates: Vec::new() });
    };
    let mut reader = Reader {
        nodes: &document.nodes,
        open: HashSet::new(),
        alias_depth: 0,
        read: 0,
        read_by_alias: 0,
        duplicates: Vec::new(),
        weight: document.weight,
    };
    let value = reader.value(root, 0)?;
    Ok(Parsed { value, duplicates: reader.duplicates })
}

/// The characters of a document, of which the scanner accepts more than YAML allows.
///
/// # Errors
/// The error message about the first character that is malformed or not allowed.
fn characters(text: &[u8]) -> Result<&str, &'static str> {
    let (valid, malformed) = match std::str::from_utf8(text) {
        Ok(text) => (text, None),
        Err(error) => {
            let (valid, rest) = text.split_at(error.valid_up_to());
            (std::str::from_utf8(valid).unwrap_or_default(), Some(malformed(rest)))
        }
    };
    let valid = valid.strip_prefix('\u{feff}').unwrap_or(valid);
    let is_forbidden = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}'))
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    match malformed {
        _ if valid.chars().any(is_forbidden) => Err("control characters are not allowed"),
        Some(malformed) => Err(malformed),
        None => Ok(valid),
    }
}

/// The error message for a sequence of bytes that begins with no character.
fn malformed(bytes: &[u8]) -> &'static str {
    let leading = bytes.first().copied().unwrap_or_default();
    let (width, smallest) = match leading {
        0xc0..=0xdf => (2, 0x80),
        0xe0..=0xef => (3, 0x800),
        0xf0..=0xf7 => (4, 0x1_0000),
        _ => return "invalid leading UTF-8 octet",
    };
    let Some(trailing) = bytes.get(1..width) else { return "incomplete UTF-8 octet sequence" };
    if trailing.iter().any(|byte| byte & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    let first = u32::from(leading) & (0x7f >> width);
    let value = trailing.iter().fold(first, |value, byte| (value << 6) | u32::from(byte & 0x3f));
    match value < smallest {
        true => "invalid length of a UTF-8 sequence",
        false => "invalid Unicode character",
    }
}

/// Reads a document that is JSON and means the same in YAML, as most generated documents do, without building nodes.
/// `None` for all other documents and for invalid ones.
fn plain_json(text: &str, mut weight: Weight) -> Option<Value> {
    // YAML has no surrogate pairs.
    let has_surrogates = text.contains(r"\ud") || text.contains(r"\uD");
    if has_surrogates || !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    json::decode_plain(text.as_bytes(), &mut weight).ok()
}

type NodeIndex = usize;

struct Node {
    line: usize,
    content: Content,
}

enum Content {
    Scalar { text: String, plain: bool, tag: Option<String> },
    Sequence(Vec<NodeIndex>),
    Mapping(Vec<(NodeIndex, NodeIndex)>),
    Alias(NodeIndex),
}

struct Document<'t> {
    events: Parser<'t, saphyr_parser::StrInput<'t>>,
    nodes: Vec<Node>,
    anchors: HashMap<usize, NodeIndex>,
    /// The length of the text, in characters, if its last line does not end.
    open_end: Option<usize>,
    weight: Weight,
    flows: FlowFinder<'t>,
    /// The parser's position, in characters.
    position: usize,
    /// The memory of the tokens of the largest flow collection so far, in bytes.
    tokens: usize,
}

impl<'t> Document<'t> {
    fn next(&mut self) -> Fallible<(Event<'t>, Span)> {
        // The scanner keeps the capacity that the largest collection needed.
        let tokens = self.flows.ahead(self.position).saturating_mul(TOKENS);
        self.weight.add(tokens.saturating_sub(self.tokens))?;
        self.tokens = self.tokens.max(tokens);
        match self.events.next_event() {
            Some(Ok(event)) => {
                self.position = self.position.max(event.1.end.index());
                Ok(event)
            }
            Some(Err(problem)) => Err(error(format!("line {}: {}", problem.marker().line(), problem.info()))),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// The root of the first document.
    fn root(&mut self) -> Fallible<Option<NodeIndex>> {
        loop {
            match self.next()? {
                (Event::DocumentStart(_), _) => {
                    let event = self.next()?;
                    let root = self.node(event, 0)?;
                    // The text after the document is not read, but the end marker is.
                    self.next()?;
                    return Ok(root);
                }
                (Event::StreamEnd, _) => return Ok(None),
                _ => {}
            }
        }
    }

    fn node(&mut self, (event, span): (Event<'t>, Span), depth: usize) -> Fallible<Option<NodeIndex>> {
        if depth > MAX_DEPTH {
            return Err(error("exceeded max depth"));
        }
        self.weight.add(NODE)?;
        // The anchor is registered before its content is read, since the content may hold an alias of it.
        let index = self.nodes.len();
        self.nodes.push(Node { line: span.start.line(), content: Content::Sequence(Vec::new()) });
        let content = match event {
            Event::Alias(anchor) => {
                let target = self.anchors.get(&anchor).copied();
                Content::Alias(target.ok_or_else(|| error("unknown anchor referenced"))?)
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.anchors.insert(anchor, index);
                self.weight.add(text.len())?;
                let plain = matches!(style, ScalarStyle::Plain);
                let mut text = text.into_owned();
                // The scanner ends the last line of a block scalar where the text does not.
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if is_block && self.open_end == Some(span.end.index()) && text.ends_with('\n') {
                    text.pop();
                }
                Content::Scalar { text, plain, tag: tag.map(|tag| short(&tag)) }
            }
            Event::SequenceStart(anchor, _) => {
                self.anchors.insert(anchor, index);
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        event => items.extend(self.node(event, depth + 1)?),
                    }
                }
                Content::Sequence(items)
            }
            Event::MappingStart(anchor, _) => {
                self.anchors.insert(anchor, index);
                let mut entries = Vec::new();
                loop {
                    let event = self.next()?;
                    if matches!(event.0, Event::MappingEnd) {
                        break;
                    }
                    let key = self.node(event, depth + 1)?;
                    let event = self.next()?;
                    let value = self.node(event, depth + 1)?;
                    entries.extend(key.zip(value));
                }
                Content::Mapping(entries)
            }
            Event::StreamEnd => return Err(error("unexpected end of stream")),
            _ => return Ok(None),
        };
        if let Some(node) = self.nodes.get_mut(index) {
            node.content = content;
        }
        Ok(Some(index))
    }
}

/// The length of a text whose last line has content and does not end, in characters.
fn open_end(text: &str) -> Option<usize> {
    let last = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    (!last.trim_ascii().is_empty()).then(|| text.chars().count())
}

/// A tag as it is usually written, such as `!!str`.
fn short(tag: &Tag) -> String {
    if tag.is_yaml_core_schema() {
        format!("!!{}", tag.suffix)
    } else {
        format!("{}{}", tag.handle, tag.suffix)
    }
}

/// Turns nodes into values.
struct Reader<'n> {
    nodes: &'n [Node],
    /// The aliases that are being resolved.
    open: HashSet<NodeIndex>,
    alias_depth: u32,
    read: u32,
    read_by_alias: u32,
    duplicates: Vec<String>,
    /// Values that aliases repeat count each time.
    weight: Weight,
}

/// A mapping's key, which becomes text in JSON.
enum Key {
    /// A key that JSON cannot have: its type and the key, as the error shows them.
    Unsupported(String),
    Text(String),
    Other(String),
}

impl<'n> Reader<'n> {
    fn count(&mut self) -> Fallible<()> {
        self.read += 1;
        if self.alias_depth > 0 {
            self.read_by_alias += 1;
        }
        let ratio = f64::from(self.read_by_alias) / f64::from(self.read);
        if self.read_by_alias > 100 && self.read > 1000 && ratio > allowed_alias_ratio(self.read) {
            return Err(error("document contains excessive aliasing"));
        }
        Ok(())
    }

    fn node(&self, index: NodeIndex) -> Fallible<&'n Node> {
        self.nodes.get(index).ok_or_else(|| error("unknown anchor referenced"))
    }

    fn value(&mut self, index: NodeIndex, depth: usize) -> Fallible<Value> {
        self.count()?;
        if depth > MAX_DEPTH {
            return Err(error("exceeded max depth"));
        }
        match &self.node(index)?.content {
            Content::Scalar { text, plain, tag } => {
                self.weight.add(text.len() + TEXT)?;
                scalar(text, *plain, tag.as_deref())
            }
            Content::Alias(target) => self.follow(index, |reader| reader.value(*target, depth + 1)),
            Content::Sequence(items) => {
                self.weight.add(items.len() * ITEM)?;
                let mut values = Vec::with_capacity(items.len());
                for &item in items {
                    values.push(self.value(item, depth + 1)?);
                }
                Ok(Value::Array(values))
            }
            Content::Mapping(entries) => {
                if entries.is_empty() {
                    self.weight.add(OBJECT)?;
                }
                let mut object = Map::new();
                self.mapping(index, &mut object, depth)?;
                Ok(Value::Object(object))
            }
        }
    }

    fn follow<T>(&mut self, alias: NodeIndex, then: impl FnOnce(&mut Self) -> Fallible<T>) -> Fallible<T> {
        if !self.open.insert(alias) {
            return Err(error("anchor value contains itself"));
        }
        self.alias_depth += 1;
        let result = then(self);
        self.alias_depth -= 1;
        self.open.remove(&alias);
        result
    }

    fn mapping(&mut self, index: NodeIndex, object: &mut Map, depth: usize) -> Fallible<()> {
        let Content::Mapping(entries) = &self.node(index)?.content else { return Ok(()) };
        for &(key, value) in entries {
            if self.is_merge(key)? {
                self.merge(value, object, depth + 1)?;
                continue;
            }
            self.weight.add(if object.is_empty() { OBJECT } else { MEMBER })?;
            let line = self.node(value)?.line;
            let key = self.key(key, depth + 1)?;
            let value = self.value(value, depth + 1)?;
            let (name, shown) = match key {
                Key::Unsupported(key) => {
                    let shown = go_syntax(&value, &mut self.weight)?;
                    let message = format!("unsupported map key of type: {key}, value: {shown}");
                    return Err(Box::new(DecodeError::Yaml(message)));
                }
                Key::Text(name) => {
                    let shown = quote(&name);
                    (name, shown)
                }
                Key::Other(name) => (name.clone(), name),
            };
            if object.insert(name, value).is_some() {
                self.weight.add(shown.len() + NODE)?;
                self.duplicates.push(format!("line {line}: key {shown} already set in map"));
            }
        }
        Ok(())
    }

    fn is_merge(&self, index: NodeIndex) -> Fallible<bool> {
        Ok(match &self.node(index)?.content {
            Content::Scalar { text, plain, tag } => {
                text == "<<" && (*plain && tag.is_none() || tag.as_deref() == Some("!!merge"))
            }
            _ => false,
        })
    }

    fn merge(&mut self, index: NodeIndex, object: &mut Map, depth: usize) -> Fallible<()> {
        let wants_map = || error("map merge requires map or sequence of maps as the value");
        self.count()?;
        if depth > MAX_DEPTH {
            return Err(error("exceeded max depth"));
        }
        match &self.node(index)?.content {
            Content::Mapping(_) => self.mapping(index, object, depth),
            Content::Alias(target) => {
                if !matches!(self.node(*target)?.content, Content::Mapping(_)) {
                    return Err(wants_map());
                }
                self.follow(index, |reader| {
                    reader.count()?;
                    reader.mapping(*target, object, depth + 1)
                })
            }
            Content::Sequence(items) => {
                // Earlier mappings take precedence, so they are merged last.
                for &item in items.iter().rev() {
                    match self.node(item)?.content {
                        Content::Mapping(_) | Content::Alias(_) => self.merge(item, object, depth + 1)?,
                        Content::Scalar { .. } | Content::Sequence(_) => return Err(wants_map()),
                    }
                }
                Ok(())
            }
            Content::Scalar { .. } => Err(wants_map()),
        }
    }

    fn key(&mut self, index: NodeIndex, depth: usize) -> Fallible<Key> {
        if let Some(name) = self.infinite_key(index)? {
            return Ok(Key::Other(name.to_owned()));
        }
        Ok(match self.value(index, depth)? {
            Value::String(text) => Key::Text(text.into()),
            Value::Bool(value) => Key::Other(value.to_string()),
            Value::Number(value) => match (value.as_i64(), value.as_u64()) {
                (Some(integer), _) => Key::Other(integer.to_string()),
                (None, Some(integer)) => Key::Unsupported(format!("uint64, key: {integer:#x}")),
                (None, None) => Key::Other(number::format_g32(value.as_f64().unwrap_or_default())),
            },
            Value::Null => Key::Unsupported("%!s(<nil>), key: <nil>".to_owned()),
            Value::Array(_) | Value::Object(_) => return Err(error("invalid map key")),
        })
    }

    /// The name of a key that is a number without a JSON form.
    fn infinite_key(&self, index: NodeIndex) -> Fallible<Option<&'static str>> {
        let Content::Scalar { text, plain, tag } = &self.node(index)?.content else { return Ok(None) };
        let is_resolved = *plain && tag.is_none() || tag.as_deref() == Some("!!float");
        Ok(match resolve(text) {
            Resolved::Float(f64::INFINITY) if is_resolved => Some(".inf"),
            Resolved::Float(f64::NEG_INFINITY) if is_resolved => Some("-.inf"),
            Resolved::Float(value) if is_resolved && value.is_nan() => Some(".nan"),
            _ => None,
        })
    }
}

/// A value as Go's `%#v` writes it, for an error.
fn go_syntax(value: &Value, weight: &mut Weight) -> Fallible<String> {
    let shown = match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (None, Some(integer)) => format!("{integer:#x}"),
            _ => number.to_string(),
        },
        Value::Bool(value) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| go_syntax(item, weight)).collect::<Result<_, _>>()?;
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| Ok(format!("{}:{}", quote(key), go_syntax(value, weight)?)))
                .collect::<Fallible<_>>()?;
            format!("map[interface {{}}]interface {{}}{{{}}}", members.join(", "))
        }
    };
    weight.add(shown.len())?;
    Ok(shown)
}

/// Checks the directives before the document: the reference reads YAML 1.1 only, and knows no others than `%YAML` and
/// `%TAG`.
fn check_directives(text: &str) -> Fallible<()> {
    let mut versions = 0;
    for (index, line) in text.split('\n').enumerate() {
        let line = line.trim_end();
        let Some(directive) = line.strip_prefix('%') else {
            match line.trim_start() {
                rest if rest.is_empty() || rest.starts_with('#') => continue,
                _ => break,
            }
        };
        let mut words = directive.split([' ', '\t']).filter(|word| !word.is_empty());
        // The library counts the lines of scanner and parser differently.
        let at = |line: usize| if index == 0 { String::new() } else { format!("line {line}: ") };
        match words.next() {
            Some("YAML") => {
                versions += 1;
                if versions > 1 {
                    return Err(error(format!("{}found duplicate %YAML directive", at(index))));
                }
                if words.next() != Some("1.1") {
                    return Err(error(format!("{}found incompatible YAML document", at(index))));
                }
            }
            Some("TAG") => {}
            _ => return Err(error(format!("{}found unknown directive name", at(index + 1)))),
        }
    }
    Ok(())
}

fn allowed_alias_ratio(read: u32) -> f64 {
    if read <= ALIAS_RATIO_FROM {
        return 0.99;
    }
    let beyond = f64::from(read.min(ALIAS_RATIO_TO) - ALIAS_RATIO_FROM);
    0.99 - 0.89 * beyond / f64::from(ALIAS_RATIO_TO - ALIAS_RATIO_FROM)
}

fn scalar(text: &str, plain: bool, tag: Option<&str>) -> Fallible<Value> {
    let resolved = match tag {
        None if !plain => Resolved::Text,
        None => resolve(text),
        Some("!!binary") => {
            let bytes =
                base64::decode(text).map_err(|_| error("!!binary value contains invalid base64 data"))?;
            return Ok(Value::from(String::from_utf8_lossy(&bytes)));
        }
        Some(tag @ ("!!bool" | "!!int" | "!!float" | "!!null" | "!!timestamp")) => {
            let resolved = resolve(text);
            let resolved = match (tag, resolved) {
                ("!!float", Resolved::Int(value)) => Resolved::Float(value as f64),
                _ => resolved,
            };
            if name(resolved) != tag {
                return Err(error(format!("cannot decode {} `{text}` as a {tag}", name(resolved))));
            }
            resolved
        }
        // `!!str`, and unknown tags.
        Some(_) => Resolved::Text,
    };
    Ok(match resolved {
        Resolved::Text | Resolved::Timestamp | Resolved::Merge => Value::from(text),
        Resolved::Null => Value::Null,
        Resolved::Bool(value) => Value::Bool(value),
        Resolved::Int(value) => Value::Number(value.into()),
        Resolved::Uint(value) => Value::Number(value.into()),
        Resolved::Float(value) => match Number::from_f64(value) {
            Some(number) => Value::Number(number),
            None => {
                let shown = match value {
                    f64::INFINITY => "+Inf",
                    f64::NEG_INFINITY => "-Inf",
                    _ => "NaN",
                };
                return Err(Box::new(DecodeError::Yaml(format!("json: unsupported value: {shown}"))));
            }
        },
    })
}

fn name(resolved: Resolved) -> &'static str {
    match resolved {
        Resolved::Text => "!!str",
        Resolved::Null => "!!null",
        Resolved::Bool(_) => "!!bool",
        Resolved::Int(_) | Resolved::Uint(_) => "!!int",
        Resolved::Float(_) => "!!float",
        Resolved::Timestamp => "!!timestamp",
        Resolved::Merge => "!!merge",
    }
}
