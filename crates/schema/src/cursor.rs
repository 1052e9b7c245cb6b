//! Reads a schema with two cursors: one on a node, one on a field.

use pintle_tree::Value;

use crate::field::{Field, Omit, PatchStrategy, ProtoMember, name_hash};
use crate::node::{ListType, MapType, Node, NodeId, Run, Shape, Structural, Type, Union};
use crate::schema::Schema;

/// The places of a hash table where a field may be, from that of its hash on.
pub(crate) const PROBES: usize = 8;

/// A cursor on a node of a schema. It is `Copy`; walking never allocates.
#[derive(Clone, Copy)]
pub struct SchemaRef<'a> {
    schema: &'a Schema,
    id: NodeId,
}

impl std::fmt::Debug for SchemaRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SchemaRef({} {})", self.id.0, self.go_type())
    }
}

impl PartialEq for SchemaRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.schema, other.schema) && self.id == other.id
    }
}

impl Eq for SchemaRef<'_> {}

impl<'a> SchemaRef<'a> {
    /// References to built-in nodes are resolved here, so that no reader meets them.
    pub(crate) fn new(schema: &'a Schema, id: NodeId) -> Self {
        match (schema.get(id).shape, schema.base) {
            (Shape::Builtin(id), Some(base)) => Self { schema: base, id },
            _ => Self { schema, id },
        }
    }

    fn node(self) -> &'a Node {
        self.schema.get(self.id)
    }

    fn at(self, id: NodeId) -> SchemaRef<'a> {
        SchemaRef::new(self.schema, id)
    }

    /// The schema that holds this node; for a reference to a built-in type, the built-in schema.
    pub fn schema(self) -> &'a Schema {
        self.schema
    }

    /// Identifies the node in [`SchemaRef::schema`].
    pub fn id(self) -> NodeId {
        self.id
    }

    /// The JSON type of a value.
    pub fn ty(self) -> Type {
        match self.node().shape {
            Shape::Scalar(ty) => ty,
            Shape::Struct { .. } => Type::Struct,
            Shape::List { .. } => Type::List,
            Shape::Map { .. } => Type::Map,
            Shape::Union { union, .. } => Type::Union(union),
            Shape::Builtin(_) | Shape::Reserved => Type::Any,
        }
    }

    /// The Go name without package, such as `PodSpec`; empty for unnamed types.
    pub fn name(self) -> &'a str {
        self.schema.str(self.node().name)
    }

    /// The Go package path, such as `k8s.io/api/core/v1`; empty for unnamed types.
    pub fn package(self) -> &'a str {
        let package = self.schema.packages.get(usize::from(self.node().package));
        package.map_or("", |package| self.schema.str(package.path))
    }

    /// API group and version of the package; empty for types outside served groups.
    pub fn group_version(self) -> (&'a str, &'a str) {
        let package = self.schema.packages.get(usize::from(self.node().package));
        package.map_or(("", ""), |package| (self.schema.str(package.group), self.schema.str(package.version)))
    }

    /// The type as Go's reflection prints it, such as `v1.PodSpec`, `[]string` or `map[string]string`.
    pub fn go_type(self) -> String {
        let node = self.node();
        if node.name.len > 0 {
            let package = self.package();
            let package = package.rsplit_once('/').map_or(package, |(_, last)| last);
            return match package {
                "" => self.name().to_owned(),
                package => format!("{package}.{}", self.name()),
            };
        }
        match node.shape {
            Shape::Scalar(ty) => match ty {
                Type::Bool => "bool",
                Type::Int32 => "int32",
                Type::Int64 => "int64",
                Type::Float64 => "float64",
                Type::String => "string",
                Type::Bytes => "[]uint8",
                Type::Time => "v1.Time",
                Type::MicroTime => "v1.MicroTime",
                Type::Duration => "v1.Duration",
                Type::Quantity => "resource.Quantity",
                Type::IntOrString => "intstr.IntOrString",
                Type::RawExtension => "runtime.RawExtension",
                Type::FieldsV1 => "v1.FieldsV1",
                Type::Json => "v1.JSON",
                Type::Any | Type::Struct | Type::List | Type::Map | Type::Union(_) => "interface {}",
            }
            .to_owned(),
            Shape::List { item, .. } => format!("[]{}", self.at(item).go_type()),
            Shape::Map { key, value } => {
                format!("map[{}]{}", self.at(key).go_type(), self.at(value).go_type())
            }
            Shape::Struct { .. } => "struct {}".to_owned(),
            Shape::Union { .. } | Shape::Builtin(_) | Shape::Reserved => "interface {}".to_owned(),
        }
    }

    /// Whether the struct is declared in Go: it is written in declaration order, with absent fields materialized.
    /// Custom resources are written sorted by key and without additions.
    pub fn is_declared(self) -> bool {
        matches!(self.node().shape, Shape::Struct { declared: true, .. })
    }

    /// Whether the node is in a custom resource's schema. Go holds such values as maps, and validation reports values
    /// of a wrong type.
    pub fn is_structural(self) -> bool {
        self.schema.structural
    }

    /// Whether this is a struct with an embedded `TypeMeta`.
    pub fn is_object(self) -> bool {
        self.field("kind").is_some() && self.field("apiVersion").is_some() && self.has_type_meta()
    }

    /// `ObjectReference` and similar types have kind and apiVersion as ordinary fields. Those of an embedded `TypeMeta`
    /// come first and have no protobuf number.
    fn has_type_meta(self) -> bool {
        let mut fields = self.fields();
        let first = fields.next().is_some_and(|field| field.name() == "kind" && field.number() == 0);
        first && fields.next().is_some_and(|field| field.name() == "apiVersion" && field.number() == 0)
    }

    /// The fields of a struct, in declaration order; none for other types.
    pub fn fields(self) -> Fields<'a> {
        let fields = match self.node().shape {
            Shape::Struct { fields, .. } => fields.of(&self.schema.fields),
            _ => &[],
        };
        Fields { schema: self.schema, fields: fields.iter() }
    }

    /// A field of a struct by JSON name. Names are case-sensitive, as in the reference's decoder.
    pub fn field(self, name: &str) -> Option<FieldRef<'a>> {
        self.field_index(name).and_then(|index| self.field_at(index))
    }

    /// Position of a field in [`SchemaRef::fields`] by JSON name.
    ///
    /// A struct has a hash table with open addressing. It is searched in a few places only, so that names which somebody
    /// chose to have one hash cost no more than a binary search.
    pub fn field_index(self, name: &str) -> Option<usize> {
        let Shape::Struct { fields, by_name, slots, .. } = self.node().shape else { return None };
        let fields = fields.of(&self.schema.fields);
        let is_at = |offset: u16| {
            fields.get(usize::from(offset)).is_some_and(|field| self.schema.is_str(field.name, name))
        };
        let slots = slots.of(&self.schema.slots);
        let mut hash = name_hash(name);
        for _ in 0..PROBES {
            let Some(slot) = slots.get(hash & slots.len().wrapping_sub(1)) else { break };
            let offset = slot.checked_sub(1)?;
            if is_at(offset) {
                return Some(usize::from(offset));
            }
            hash = hash.wrapping_add(1);
        }
        let by_name = by_name.of(&self.schema.by_name);
        let name_at = |offset: u16| fields.get(usize::from(offset)).map(|field| self.schema.str(field.name));
        let at = by_name.binary_search_by(|offset| name_at(*offset).cmp(&Some(name))).ok()?;
        by_name.get(at).map(|offset| usize::from(*offset))
    }

    /// The field at a position of [`SchemaRef::fields`].
    pub fn field_at(self, index: usize) -> Option<FieldRef<'a>> {
        let Shape::Struct { fields, .. } = self.node().shape else { return None };
        let field = fields.of(&self.schema.fields).get(index)?;
        Some(FieldRef { schema: self.schema, field })
    }

    /// Positions of the fields that Go's encoder writes even when they are absent, in order.
    pub fn always_written(self) -> impl ExactSizeIterator<Item = usize> + Clone {
        let always = match self.node().shape {
            Shape::Struct { always, .. } => always,
            _ => Run::default(),
        };
        always.of(&self.schema.always).iter().map(|&offset| usize::from(offset))
    }

    /// The members of a struct's protobuf message, by number.
    pub fn members(self) -> impl DoubleEndedIterator<Item = (u32, Member<'a>)> {
        let (fields, members) = match self.node().shape {
            Shape::Struct { fields, members, .. } => (fields, members.of(&self.schema.members)),
            _ => (Run::default(), &[][..]),
        };
        members.iter().filter_map(move |member| Some((member.number(), self.member(fields, *member)?)))
    }

    /// The member of a struct's protobuf message with this number.
    pub fn member_by_number(self, number: u32) -> Option<Member<'a>> {
        let Shape::Struct { fields, members, .. } = self.node().shape else { return None };
        let members = members.of(&self.schema.members);
        let at = members.binary_search_by_key(&number, |member| member.number()).ok()?;
        self.member(fields, *members.get(at)?)
    }

    fn member(self, fields: Run, member: ProtoMember) -> Option<Member<'a>> {
        match member {
            ProtoMember::Field { offset, .. } => {
                let field = fields.of(&self.schema.fields).get(offset as usize)?;
                Some(Member::Field(FieldRef { schema: self.schema, field }))
            }
            ProtoMember::Embedded { node, .. } => Some(Member::Embedded(self.at(node))),
        }
    }

    /// The item type of a list; for other types, the node itself.
    pub fn item(self) -> SchemaRef<'a> {
        match self.node().shape {
            Shape::List { item, .. } => self.at(item),
            _ => self,
        }
    }

    /// The value type of a map; for other types, the node itself.
    pub fn value(self) -> SchemaRef<'a> {
        match self.node().shape {
            Shape::Map { value, .. } => self.at(value),
            _ => self,
        }
    }

    /// The schema and the other shape of a union; `None` for other types.
    pub fn union(self) -> Option<(Union, SchemaRef<'a>, SchemaRef<'a>)> {
        match self.node().shape {
            Shape::Union { union, schema, other } => Some((union, self.at(schema), self.at(other))),
            _ => None,
        }
    }

    /// How server-side apply merges a list.
    pub fn list_type(self) -> ListType {
        match self.node().shape {
            Shape::List { list_type, .. } => list_type,
            _ => ListType::Atomic,
        }
    }

    /// The key fields of a list of type map, in declared order.
    pub fn list_map_keys(self) -> impl ExactSizeIterator<Item = &'a str> + Clone {
        let keys = match self.node().shape {
            Shape::List { keys, .. } => keys,
            _ => Run::default(),
        };
        let schema = self.schema;
        keys.of(&schema.names).iter().map(move |&name| schema.str(name))
    }

    /// Whether a list has a protobuf message of its own around its items.
    pub fn is_wrapped(self) -> bool {
        matches!(self.node().shape, Shape::List { wrapped: true, .. })
    }

    /// How server-side apply merges a map or a struct.
    pub fn map_type(self) -> MapType {
        self.node().map_type
    }

    /// The values of an enum; none where any text is allowed.
    pub fn enum_values(self) -> impl ExactSizeIterator<Item = &'a str> + Clone {
        let schema = self.schema;
        self.node().values.of(&schema.names).iter().map(move |&name| schema.str(name))
    }

    /// The facts that only structural schemas have.
    pub fn structural(self) -> Option<&'a Structural> {
        self.node().structural.as_deref()
    }

    /// Whether something at or below this node has a default.
    pub fn has_defaults(self) -> bool {
        self.node().has_defaults
    }
}

/// A field of a struct.
#[derive(Clone, Copy)]
pub struct FieldRef<'a> {
    schema: &'a Schema,
    field: &'a Field,
}

impl std::fmt::Debug for FieldRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FieldRef({} {})", self.name(), self.ty().go_type())
    }
}

impl<'a> FieldRef<'a> {
    /// The JSON name.
    pub fn name(self) -> &'a str {
        self.schema.str(self.field.name)
    }

    /// The type of the value.
    pub fn ty(self) -> SchemaRef<'a> {
        SchemaRef::new(self.schema, self.field.node)
    }

    /// The protobuf number; zero for fields without one and for those of an embedded struct, whose
    /// numbers are in the embedded message.
    pub fn number(self) -> u32 {
        self.field.number
    }

    /// The embedded struct that the field came from, if it is not the struct's own.
    pub fn embedded_in(self) -> Option<SchemaRef<'a>> {
        self.field.embedded_in.map(|node| SchemaRef::new(self.schema, node))
    }

    /// Whether absent and zero differ.
    pub fn is_pointer(self) -> bool {
        self.field.pointer
    }

    /// Whether Go's encoder writes the field even when it is absent: it is never left out, or it is a
    /// struct (in Go's sense) without a pointer.
    pub fn is_always_written(self) -> bool {
        match (self.field.omit, self.ty().ty()) {
            (Omit::Never, _) => true,
            (Omit::Zero, _) => false,
            (Omit::Empty, ty) => !self.field.pointer && ty.is_go_struct(),
        }
    }

    /// When an encoder leaves the field out.
    pub fn omit(self) -> Omit {
        self.field.omit
    }

    /// Marked required.
    pub fn is_required(self) -> bool {
        self.field.required
    }

    /// Marked optional.
    pub fn is_optional(self) -> bool {
        self.field.optional
    }

    /// Whether the field declares its list or map type, even if it declares the default.
    pub fn is_topology_marked(self) -> bool {
        self.field.topology_marked
    }

    /// The default of the field when it is absent.
    pub fn default(self) -> Option<&'a Value> {
        let index = (self.field.default as usize).checked_sub(1)?;
        self.schema.defaults.get(index)
    }

    /// How a strategic merge patch treats the field.
    pub fn patch_strategy(self) -> PatchStrategy {
        self.field.patch_strategy
    }

    /// The field that identifies list items in a strategic merge patch.
    pub fn patch_merge_key(self) -> Option<&'a str> {
        Some(self.schema.str(self.field.patch_merge_key)).filter(|key| !key.is_empty())
    }
}

/// The fields of a struct, in declaration order.
#[derive(Clone)]
pub struct Fields<'a> {
    schema: &'a Schema,
    fields: std::slice::Iter<'a, Field>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = FieldRef<'a>;

    fn next(&mut self) -> Option<FieldRef<'a>> {
        self.fields.next().map(|field| FieldRef { schema: self.schema, field })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.fields.size_hint()
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// A member of a struct's protobuf message.
#[derive(Clone, Copy, Debug)]
pub enum Member<'a> {
    /// A field of the struct.
    Field(FieldRef<'a>),
    /// An embedded struct, whose fields are the struct's own in JSON.
    Embedded(SchemaRef<'a>),
}
