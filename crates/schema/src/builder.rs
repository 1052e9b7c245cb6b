//! Builds schemas: nodes are reserved, then filled in, so that types may refer to each other.

use std::borrow::Cow;
use std::collections::HashMap;

use pintle_tree::Value;

use crate::cursor::{PROBES, SchemaRef};
use crate::field::{Field, Omit, PatchStrategy, ProtoMember, name_hash};
use crate::node::{ListType, MapType, Name, Node, NodeId, Run, Shape, Structural, Type, Union};
use crate::schema::{Package, Schema};

/// Collects nodes for a [`Schema`].
#[derive(Debug, Default)]
pub struct SchemaBuilder {
    text: Cow<'static, str>,
    interned: HashMap<String, Name>,
    nodes: Vec<Node>,
    fields: Vec<Field>,
    by_name: Vec<u16>,
    slots: Vec<u16>,
    members: Vec<ProtoMember>,
    names: Vec<Name>,
    packages: Vec<Package>,
    defaults: Vec<Value>,
    types: Vec<NodeId>,
    kinds: Vec<NodeId>,
    base: Option<&'static Schema>,
}

/// A field to be added to a struct.
#[derive(Clone, Debug, Default)]
pub struct FieldSpec<'a> {
    /// JSON name.
    pub name: &'a str,
    /// Protobuf number; zero for none.
    pub number: u32,
    /// Whether absent and zero differ.
    pub pointer: bool,
    /// When an encoder leaves it out.
    pub omit: Omit,
    /// Marked required.
    pub required: bool,
    /// Marked optional.
    pub optional: bool,
    /// Whether the field declares its list or map type for server-side apply, even if it declares the default.
    pub topology_marked: bool,
    /// The default of an absent field.
    pub default: Option<Value>,
    /// How a strategic merge patch treats the field.
    pub patch_strategy: PatchStrategy,
    /// The field that identifies list items in a strategic merge patch; empty for none.
    pub patch_merge_key: &'a str,
}

/// A struct to be filled in.
#[derive(Clone, Debug, Default)]
pub struct StructSpec<'a> {
    /// Fields with their types, in the order of declaration.
    pub fields: Vec<(FieldSpec<'a>, NodeId)>,
    /// Embedded structs. Each has a position in `fields` before which its fields come, a protobuf number (zero for
    /// none), and the struct, which must already be filled in.
    pub embedded: Vec<(usize, u32, NodeId)>,
    /// Whether the struct is declared in Go, see [`SchemaRef::is_declared`].
    pub declared: bool,
}

impl SchemaBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder whose names are slices of a static text, so that none is copied.
    pub(crate) fn over(text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), ..Self::default() }
    }

    pub(crate) fn intern(&mut self, s: &str) -> Name {
        let len = s.len() as u32;
        if len == 0 {
            return Name::default();
        }
        let base = self.text.as_ptr() as usize;
        let start = s.as_ptr() as usize;
        if start >= base && start + s.len() <= base + self.text.len() {
            return Name { start: (start - base) as u32, len };
        }
        if let Some(name) = self.interned.get(s) {
            return *name;
        }
        let text = self.text.to_mut();
        let name = Name { start: text.len() as u32, len };
        text.push_str(s);
        self.interned.insert(s.to_owned(), name);
        name
    }

    pub(crate) fn package(&mut self, path: &str, group: &str, version: &str) -> u16 {
        let package =
            Package { path: self.intern(path), group: self.intern(group), version: self.intern(version) };
        self.packages.push(package);
        (self.packages.len() - 1) as u16
    }

    fn push(&mut self, shape: Shape) -> NodeId {
        self.nodes.push(Node {
            shape,
            name: Name::default(),
            package: u16::MAX,
            map_type: MapType::Granular,
            has_defaults: false,
            values: Run::default(),
            structural: None,
        });
        NodeId((self.nodes.len() - 1) as u32)
    }

    fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0 as usize)
    }

    fn set(&mut self, id: NodeId, shape: Shape) {
        if let Some(node) = self.node_mut(id) {
            node.shape = shape;
        }
    }

    /// A node to be filled in later. Reads as [`Type::Any`] if it never is.
    pub fn reserve(&mut self) -> NodeId {
        self.push(Shape::Reserved)
    }

    /// Reserves a named type, to be filled in later.
    pub(crate) fn reserve_named(&mut self, package: u16, name: &str) -> NodeId {
        let name = self.intern(name);
        let id = self.push(Shape::Reserved);
        if let Some(node) = self.node_mut(id) {
            node.name = name;
            node.package = package;
        }
        self.types.push(id);
        id
    }

    pub(crate) fn mark_kind(&mut self, id: NodeId) {
        self.kinds.push(id);
    }

    /// Adds a type that is neither struct, list, map nor union; those read as [`Type::Any`].
    pub fn scalar(&mut self, ty: Type) -> NodeId {
        let id = self.reserve();
        self.set_scalar(id, ty);
        id
    }

    pub(crate) fn set_scalar(&mut self, id: NodeId, ty: Type) {
        let ty = match ty {
            Type::Struct | Type::List | Type::Map | Type::Union(_) => Type::Any,
            ty => ty,
        };
        self.set(id, Shape::Scalar(ty));
    }

    /// Adds a list.
    pub fn list(&mut self, item: NodeId, list_type: ListType, keys: &[&str]) -> NodeId {
        let id = self.reserve();
        self.set_list(id, item, list_type, keys, false);
        id
    }

    pub(crate) fn set_list(
        &mut self,
        id: NodeId,
        item: NodeId,
        list_type: ListType,
        keys: &[&str],
        wrapped: bool,
    ) {
        let keys = self.names(keys.iter().copied());
        self.set(id, Shape::List { item, list_type, keys, wrapped });
    }

    /// Overrides how server-side apply merges a list that is already filled in.
    pub(crate) fn set_list_type(&mut self, id: NodeId, list_type: ListType, keys: &[&str]) {
        let keys = self.names(keys.iter().copied());
        if let Some(Node { shape: Shape::List { list_type: old, keys: old_keys, .. }, .. }) =
            self.node_mut(id)
        {
            (*old, *old_keys) = (list_type, keys);
        }
    }

    /// Adds a map with string keys.
    pub fn map(&mut self, value: NodeId, map_type: MapType) -> NodeId {
        let key = self.scalar(Type::String);
        let id = self.reserve();
        self.set_map(id, key, value);
        self.set_map_type(id, map_type);
        id
    }

    pub(crate) fn set_map(&mut self, id: NodeId, key: NodeId, value: NodeId) {
        self.set(id, Shape::Map { key, value });
    }

    pub(crate) fn set_union(&mut self, id: NodeId, union: Union, schema: NodeId, other: NodeId) {
        self.set(id, Shape::Union { union, schema, other });
    }

    /// Sets how server-side apply merges a map or struct node.
    pub fn set_map_type(&mut self, id: NodeId, map_type: MapType) {
        if let Some(node) = self.node_mut(id) {
            node.map_type = map_type;
        }
    }

    /// Sets the facts that only structural schemas have.
    pub fn set_structural(&mut self, id: NodeId, structural: Structural) {
        if let Some(node) = self.node_mut(id) {
            node.structural = Some(Box::new(structural));
        }
    }

    /// Sets the values of an enum.
    pub fn set_enum<'s>(&mut self, id: NodeId, values: impl Iterator<Item = &'s str>) {
        let values = self.names(values);
        if let Some(node) = self.node_mut(id) {
            node.values = values;
        }
    }

    /// Adds a reference to a node of the built-in schema, such as `ObjectMeta` in a custom resource.
    pub fn builtin(&mut self, target: SchemaRef<'static>) -> NodeId {
        self.base = Some(target.schema());
        self.push(Shape::Builtin(target.id()))
    }

    /// Makes a node an alias of a node that has been filled in, with its own name.
    pub(crate) fn set_alias(&mut self, id: NodeId, target: NodeId) {
        let Some(target) = self.nodes.get(target.0 as usize).cloned() else { return };
        if let Some(node) = self.node_mut(id) {
            node.shape = target.shape;
            node.map_type = target.map_type;
            if node.values.len == 0 {
                node.values = target.values;
            }
        }
    }

    /// Makes a node a copy of another one, which a single field then overrides.
    pub(crate) fn set_copy(&mut self, id: NodeId, target: NodeId) {
        let Some(target) = self.nodes.get(target.0 as usize).cloned() else { return };
        if let Some(node) = self.node_mut(id) {
            *node = target;
        }
    }

    fn names<'s>(&mut self, names: impl Iterator<Item = &'s str>) -> Run {
        let start = self.names.len() as u32;
        for name in names {
            let name = self.intern(name);
            self.names.push(name);
        }
        Run { start, len: self.names.len() as u32 - start }
    }

    /// Fills in a struct.
    pub fn set_struct(&mut self, id: NodeId, spec: StructSpec<'_>) {
        let mut own = Vec::with_capacity(spec.fields.len());
        for (field, node) in spec.fields {
            own.push(self.field(field, node));
        }
        let mut members = Vec::new();
        let mut fields: Vec<Field> = Vec::with_capacity(own.len());
        let mut embedded = spec.embedded.into_iter().peekable();
        let mut own = own.into_iter().enumerate();
        loop {
            let next = own.next();
            let position = next.as_ref().map_or(usize::MAX, |(position, _)| *position);
            while let Some((_, number, node)) = embedded.next_if(|(before, ..)| *before <= position) {
                if number > 0 {
                    members.push(ProtoMember::Embedded { number, node });
                }
                if let Some(Shape::Struct { fields: run, .. }) =
                    self.nodes.get(node.0 as usize).map(|node| node.shape)
                {
                    let inner = run.of(&self.fields).iter().cloned();
                    fields.extend(inner.map(|field| Field { number: 0, embedded_in: Some(node), ..field }));
                }
            }
            let Some((_, field)) = next else { break };
            if field.number > 0 {
                members.push(ProtoMember::Field { number: field.number, offset: fields.len() as u32 });
            }
            fields.push(field);
        }
        members.sort_by_key(|member| member.number());

        let name = |field: &Field| {
            let start = field.name.start as usize;
            self.text.get(start..start + field.name.len as usize).unwrap_or_default()
        };
        let mut by_name: Vec<(&str, u16)> = fields.iter().map(name).zip(0..).collect();
        by_name.sort_unstable();
        let slots = slots(by_name.iter().map(|(name, offset)| (name_hash(name), *offset)));
        let by_name = by_name.into_iter().map(|(_, offset)| offset).collect();

        let shape = Shape::Struct {
            fields: append(&mut self.fields, fields),
            by_name: append(&mut self.by_name, by_name),
            slots: append(&mut self.slots, slots),
            // Filled in by `finish`, when the types of the fields are known.
            always: Run::default(),
            members: append(&mut self.members, members),
            declared: spec.declared,
        };
        self.set(id, shape);
    }

    fn field(&mut self, spec: FieldSpec<'_>, node: NodeId) -> Field {
        let default = spec.default.map_or(0, |default| {
            self.defaults.push(default);
            self.defaults.len() as u32
        });
        Field {
            name: self.intern(spec.name),
            node,
            number: spec.number,
            embedded_in: None,
            default,
            patch_merge_key: self.intern(spec.patch_merge_key),
            patch_strategy: spec.patch_strategy,
            omit: spec.omit,
            pointer: spec.pointer,
            required: spec.required,
            optional: spec.optional,
            topology_marked: spec.topology_marked,
        }
    }

    /// Builds a custom resource's schema with this root.
    pub fn finish(self, root: NodeId) -> Schema {
        self.build(root, true)
    }

    /// Builds the schema of Go types.
    pub(crate) fn finish_declared(self, root: NodeId) -> Schema {
        self.build(root, false)
    }

    fn build(self, root: NodeId, structural: bool) -> Schema {
        let mut schema = Schema {
            text: self.text,
            nodes: self.nodes.into_boxed_slice(),
            fields: self.fields.into_boxed_slice(),
            by_name: self.by_name.into_boxed_slice(),
            slots: self.slots.into_boxed_slice(),
            always: Box::default(),
            members: self.members.into_boxed_slice(),
            names: self.names.into_boxed_slice(),
            packages: self.packages.into_boxed_slice(),
            defaults: self.defaults.into_boxed_slice(),
            root,
            base: self.base,
            structural,
            types: Box::default(),
            kinds: Box::default(),
        };
        mark_always(&mut schema);
        mark_defaults(&mut schema);
        let mut types = self.types;
        types.sort_by_key(|&id| (schema.node(id).package(), schema.node(id).name()));
        let mut kinds = self.kinds;
        kinds.sort_by_key(|&id| (schema.node(id).group_version(), schema.node(id).name()));
        schema.types = types.into_boxed_slice();
        schema.kinds = kinds.into_boxed_slice();
        schema
    }
}

/// The hash table of fields, given by hash and offset: one more than the offset of a field, or zero. A field that finds
/// no place near that of its hash is left out, and so are those of a struct with too many fields for a table.
fn slots(fields: impl ExactSizeIterator<Item = (usize, u16)>) -> Vec<u16> {
    if fields.len() == 0 || fields.len() >= usize::from(u16::MAX) {
        return Vec::new();
    }
    let mut slots = vec![0; (fields.len() * 2).next_power_of_two()];
    let mask = slots.len() - 1;
    for (hash, offset) in fields {
        let free =
            (0..PROBES).map(|probe| hash.wrapping_add(probe) & mask).find(|at| slots.get(*at) == Some(&0));
        if let Some(slot) = free.and_then(|at| slots.get_mut(at)) {
            *slot = offset + 1;
        }
    }
    slots
}

fn append<T>(table: &mut Vec<T>, entries: Vec<T>) -> Run {
    let run = Run { start: table.len() as u32, len: entries.len() as u32 };
    table.extend(entries);
    run
}

/// Collects the fields that are written even if absent. Copies of a struct share its list.
fn mark_always(schema: &mut Schema) {
    let mut lists = HashMap::new();
    let mut offsets = Vec::new();
    for index in 0..schema.nodes.len() {
        let node = schema.node(NodeId(index as u32));
        let Some(Shape::Struct { fields: run, declared: true, .. }) =
            schema.nodes.get(index).map(|node| node.shape)
        else {
            continue;
        };
        let list = *lists.entry((run.start, run.len)).or_insert_with(|| {
            let always = node.fields().enumerate().filter(|(_, field)| field.is_always_written());
            append(&mut offsets, always.map(|(offset, _)| offset as u16).collect())
        });
        if let Some(Node { shape: Shape::Struct { always, .. }, .. }) = schema.nodes.get_mut(index)
            && run.len > 0
        {
            *always = list;
        }
    }
    schema.always = offsets.into_boxed_slice();
}

/// Propagates `has_defaults` from the fields with a default to every node above them.
fn mark_defaults(schema: &mut Schema) {
    loop {
        let found: Vec<usize> = schema
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| !node.has_defaults && has_defaults(schema, node))
            .map(|(index, _)| index)
            .collect();
        if found.is_empty() {
            return;
        }
        for index in found {
            if let Some(node) = schema.nodes.get_mut(index) {
                node.has_defaults = true;
            }
        }
    }
}

fn has_defaults(schema: &Schema, node: &Node) -> bool {
    let marked = |id: NodeId| match schema.get(id).shape {
        // A custom resource gets its defaults from its own schema only.
        Shape::Builtin(_) => false,
        _ => schema.get(id).has_defaults,
    };
    if node.structural.as_ref().is_some_and(|structural| structural.default.is_some()) {
        return true;
    }
    match node.shape {
        Shape::Struct { fields, .. } => {
            fields.of(&schema.fields).iter().any(|field| field.default > 0 || marked(field.node))
        }
        Shape::List { item, .. } => marked(item),
        Shape::Map { value, .. } => marked(value),
        // The types of a definition's own schema have no defaults.
        Shape::Union { .. } | Shape::Scalar(_) | Shape::Builtin(_) | Shape::Reserved => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema_of(names: &[String]) -> Schema {
        let mut builder = SchemaBuilder::new();
        let (root, text) = (builder.reserve(), builder.scalar(Type::String));
        let fields =
            names.iter().map(|name| (FieldSpec { name, ..FieldSpec::default() }, text)).collect::<Vec<_>>();
        builder.set_struct(root, StructSpec { fields, ..StructSpec::default() });
        builder.finish(root)
    }

    #[test]
    fn fields_are_found_whatever_their_hashes() {
        // The first and last bytes and the lengths are equal.
        let same: Vec<String> = (0..1000).map(|middle| format!("prefixes{middle:04}suffixes")).collect();
        let hash = name_hash(&same[0]);
        assert!(same.iter().all(|name| name_hash(name) == hash));
        let short = |count: usize| (0..count).map(|at| format!("{at:x}")).collect::<Vec<_>>();
        for names in [&same[..], &same[..1], &short(1), &short(2), &short(5000), &[String::new()], &[]] {
            let schema = schema_of(names);
            for (at, name) in names.iter().enumerate() {
                assert_eq!(schema.root().field_index(name), Some(at), "{name} of {}", names.len());
            }
            assert_eq!(schema.root().field_index("prefixes9999suffixes"), None);
            assert_eq!(schema.root().field_index("absent"), None);
        }
    }

    #[test]
    fn more_fields_than_a_table_has_are_found() {
        let names: Vec<String> = (0..u16::MAX).map(|at| format!("field{at}")).collect();
        let schema = schema_of(&names);
        assert_eq!(schema.root().field_index("field65534"), Some(65534));
        assert_eq!(schema.root().field_index("field65535"), None);
    }
}
