//! Loads the built-in v1.36 schema from a committed table of facts.
//!
//! The table has one fact per line, as words separated by single spaces:
//!
//! ```text
//! p <package path> <group> <version>      package; `-` for no group (or the core group), no version
//! a <Name> <type> [wrapped] [enum=…]      named type; wrapped: protobuf message of its own; `enum=` takes the rest of the
//!                                         line, values separated by `|`
//! u <Name> array|bool|strings <t> <t>     union of a schema and another shape
//! s <Name> [object] [atomic]              struct; object: TypeMeta embedded first; atomic: map type
//! i <number> <type>                       embedded struct, at this place among the fields
//! f <name> <number> <type> [fact…]        field; `*` is a pointer, `default=` takes the rest of the line
//! ```
//!
//! Types are words (`int32`, `quantity`, …), `[]item`, `[key]value`, `.Name` in the same package, or
//! `core/v1.Name` with the last two parts of the package path.
//!
//! The table is committed and a test checks it. The loader therefore ignores unknown words instead of failing at run
//! time.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::builder::{FieldSpec, SchemaBuilder, StructSpec};
use crate::field::Omit;
use crate::node::{ListType, MapType, NodeId, Type, Union};
use crate::schema::Schema;

const TABLE: &str = include_str!("builtin/v1_36.table");
const META: &str = "meta/v1";

impl Schema {
    /// The v1.36 types. Parsed from the table in this crate on first use, then shared.
    pub fn builtin() -> &'static Schema {
        static BUILTIN: LazyLock<Schema> = LazyLock::new(|| Loader::new(TABLE).load());
        &BUILTIN
    }
}

struct Loader {
    builder: SchemaBuilder,
    /// By short package and name.
    names: HashMap<(&'static str, &'static str), usize>,
    types: Vec<NamedType>,
    /// List and map types that single fields override, applied when all types are filled in.
    overrides: Vec<Override>,
    scalars: HashMap<&'static str, NodeId>,
}

struct NamedType {
    package: &'static str,
    id: NodeId,
    declaration: &'static str,
    /// The table lines of a struct's fields.
    body: Vec<&'static str>,
    filled: bool,
}

struct Override {
    id: NodeId,
    target: NodeId,
    usage: Usage,
}

#[derive(Clone, Copy, Default)]
struct Usage {
    list_type: ListType,
    keys: Option<&'static str>,
    map_type: Option<MapType>,
    wrapped: bool,
}

impl Loader {
    fn new(table: &'static str) -> Self {
        let mut builder = SchemaBuilder::over(table);
        let scalars = [
            ("string", Type::String),
            ("bool", Type::Bool),
            ("int32", Type::Int32),
            ("int64", Type::Int64),
            ("float64", Type::Float64),
            ("bytes", Type::Bytes),
            ("time", Type::Time),
            ("microtime", Type::MicroTime),
            ("duration", Type::Duration),
            ("quantity", Type::Quantity),
            ("intorstring", Type::IntOrString),
            ("raw", Type::RawExtension),
            ("fieldsv1", Type::FieldsV1),
            ("json", Type::Json),
            ("any", Type::Any),
        ]
        .map(|(word, ty)| (word, builder.scalar(ty)));
        let mut loader = Self {
            builder,
            names: HashMap::new(),
            types: Vec::new(),
            overrides: Vec::new(),
            scalars: scalars.into(),
        };
        loader.declare(table);
        loader
    }

    /// First pass: reserves a node for every name.
    fn declare(&mut self, table: &'static str) {
        let mut package = 0;
        let mut short = "";
        let mut served = false;
        for line in table.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next()) {
                (Some("p"), Some(path)) => {
                    let group = words.next().filter(|word| *word != "-").unwrap_or_default();
                    let version = words.next().filter(|word| *word != "-").unwrap_or_default();
                    package = self.builder.package(path, group, version);
                    short = last_two(path);
                    served = !version.is_empty();
                }
                (Some("s" | "a" | "u"), Some(name)) => {
                    let id = self.builder.reserve_named(package, name);
                    if served && words.clone().any(|word| word == "object") && line.starts_with('s') {
                        self.builder.mark_kind(id);
                    }
                    self.names.insert((short, name), self.types.len());
                    self.types.push(NamedType {
                        package: short,
                        id,
                        declaration: line,
                        body: Vec::new(),
                        filled: false,
                    });
                }
                (Some("f" | "i"), Some(_)) => {
                    if let Some(named) = self.types.last_mut() {
                        named.body.push(line);
                    }
                }
                _ => {}
            }
        }
    }

    fn load(mut self) -> Schema {
        for index in 0..self.types.len() {
            self.fill(index);
        }
        for Override { id, target, usage } in std::mem::take(&mut self.overrides) {
            self.builder.set_copy(id, target);
            if let Some(map_type) = usage.map_type {
                self.builder.set_map_type(id, map_type);
            }
            if usage.list_type != ListType::Atomic {
                let keys: Vec<&str> = usage.keys.into_iter().flat_map(|keys| keys.split(',')).collect();
                self.builder.set_list_type(id, usage.list_type, &keys);
            }
        }
        let root = self.builder.scalar(Type::Any);
        self.builder.finish_declared(root)
    }

    /// Second pass: fills in one type. Embedded structs and alias targets are filled in first; they form no cycles.
    fn fill(&mut self, index: usize) {
        let Some(named) = self.types.get_mut(index) else { return };
        if std::mem::replace(&mut named.filled, true) {
            return;
        }
        let NamedType { package, id, declaration, .. } = *named;
        let body = std::mem::take(&mut named.body);
        let mut words = declaration.split(' ').skip(2);
        match declaration.get(..1) {
            Some("s") => {
                let mut object = false;
                for word in words {
                    match word {
                        "object" => object = true,
                        "atomic" => self.builder.set_map_type(id, MapType::Atomic),
                        _ => {}
                    }
                }
                self.fill_struct(package, id, object, &body);
            }
            Some("a") => {
                let target = words.next().unwrap_or_default();
                let wrapped = words.next() == Some("wrapped");
                if let Some((_, values)) = declaration.split_once(" enum=") {
                    self.builder.set_enum(id, values.split('|'));
                }
                self.fill_alias(package, id, target, wrapped);
            }
            Some("u") => {
                let union = match words.next() {
                    Some("array") => Union::SchemaOrArray,
                    Some("bool") => Union::SchemaOrBool,
                    _ => Union::SchemaOrStringArray,
                };
                let schema = self.ty(package, words.next().unwrap_or_default(), Usage::default());
                let other = self.ty(package, words.next().unwrap_or_default(), Usage::default());
                self.builder.set_union(id, union, schema, other);
            }
            _ => {}
        }
    }

    fn fill_alias(&mut self, package: &'static str, id: NodeId, target: &'static str, wrapped: bool) {
        if let Some(index) = self.named(package, target) {
            self.fill(index);
        }
        let target = self.ty(package, target, Usage { wrapped, ..Usage::default() });
        self.builder.set_alias(id, target);
    }

    fn fill_struct(&mut self, package: &'static str, id: NodeId, object: bool, body: &[&'static str]) {
        let mut spec = StructSpec { declared: true, ..StructSpec::default() };
        if object && let Some(&index) = self.names.get(&(META, "TypeMeta")) {
            self.fill(index);
            spec.embedded.extend(self.types.get(index).map(|named| (0, 0, named.id)));
        }
        for line in body {
            let mut words = line.splitn(3, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("i"), Some(number), Some(ty)) => {
                    if let Some(index) = self.named(package, ty) {
                        self.fill(index);
                    }
                    let node = self.ty(package, ty, Usage::default());
                    spec.embedded.push((spec.fields.len(), number.parse().unwrap_or(0), node));
                }
                (Some("f"), Some(name), Some(rest)) => {
                    let field = self.field(package, name, rest);
                    spec.fields.push(field);
                }
                _ => {}
            }
        }
        self.builder.set_struct(id, spec);
    }

    fn field(
        &mut self,
        package: &'static str,
        name: &'static str,
        rest: &'static str,
    ) -> (FieldSpec<'static>, NodeId) {
        let (rest, default) = match rest.split_once(" default=") {
            Some((rest, default)) => (rest, serde_json::from_str(default).ok()),
            None => (rest, None),
        };
        let mut words = rest.split(' ');
        let number = words.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let ty = words.next().unwrap_or_default();
        let mut spec = FieldSpec { name, number, default, ..FieldSpec::default() };
        let mut usage = Usage::default();
        for word in words {
            spec.topology_marked |= word.starts_with("list=") || word.starts_with("map=");
            match word.split_once('=') {
                None => match word {
                    "*" => spec.pointer = true,
                    "omit" => spec.omit = Omit::Empty,
                    "omitzero" => spec.omit = Omit::Zero,
                    "required" => spec.required = true,
                    "optional" => spec.optional = true,
                    _ => {}
                },
                Some(("list", "map")) => usage.list_type = ListType::Map,
                Some(("list", "set")) => usage.list_type = ListType::Set,
                Some(("map", "atomic")) => usage.map_type = Some(MapType::Atomic),
                Some(("map", "granular")) => usage.map_type = Some(MapType::Granular),
                Some(("keys", keys)) => usage.keys = Some(keys),
                Some(("key", key)) => spec.patch_merge_key = key,
                Some(("patch", strategies)) => {
                    for strategy in strategies.split(',') {
                        match strategy {
                            "merge" => spec.patch_strategy.merge = true,
                            "retainKeys" => spec.patch_strategy.retain_keys = true,
                            "replace" => spec.patch_strategy.replace = true,
                            _ => {}
                        }
                    }
                }
                Some(_) => {}
            }
        }
        let node = self.ty(package, ty, usage);
        (spec, node)
    }

    fn named(&self, package: &'static str, ty: &'static str) -> Option<usize> {
        let (owner, name) = ty.rsplit_once('.')?;
        self.names.get(&(if owner.is_empty() { package } else { owner }, name)).copied()
    }

    fn ty(&mut self, package: &'static str, ty: &'static str, usage: Usage) -> NodeId {
        if let Some(item) = ty.strip_prefix("[]") {
            let item = self.ty(package, item, Usage::default());
            let keys: Vec<&str> = usage.keys.into_iter().flat_map(|keys| keys.split(',')).collect();
            let id = self.builder.reserve();
            self.builder.set_list(id, item, usage.list_type, &keys, usage.wrapped);
            return id;
        }
        if let Some((key, value)) = ty.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let key = self.ty(package, key, Usage::default());
            let value = self.ty(package, value, Usage::default());
            let id = self.builder.reserve();
            self.builder.set_map(id, key, value);
            self.builder.set_map_type(id, usage.map_type.unwrap_or_default());
            return id;
        }
        if let Some(&scalar) = self.scalars.get(ty) {
            return scalar;
        }
        let Some(target) = self.named(package, ty).and_then(|index| self.types.get(index)) else {
            return self.builder.scalar(Type::Any);
        };
        let target = target.id;
        if usage.map_type.is_none() && usage.list_type == ListType::Atomic {
            return target;
        }
        let id = self.builder.reserve();
        self.overrides.push(Override { id, target, usage });
        id
    }
}

fn last_two(path: &str) -> &str {
    let version = path.rfind('/').unwrap_or(0);
    let start = path.get(..version).and_then(|head| head.rfind('/')).map_or(0, |slash| slash + 1);
    path.get(start..).unwrap_or(path)
}

#[cfg(test)]
mod tests;
