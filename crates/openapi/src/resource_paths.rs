//! Builds the operations of a resource.

use crate::{
    names::{capitalized, definition_of, group_in_id, group_in_tag, meta},
    operation::{
        ANY_MEDIA, Body, LIST_MEDIA, LOG_MEDIA, OBJECT_MEDIA, Operation, PATCH_MEDIA, Paths, Payload,
    },
    parameters::{
        DELETE, DELETE_COLLECTION, LIST, NAME, NAMESPACE, PATCH, PRETTY, PROXIED_PATH, Parameter, WRITE,
        option,
    },
};
use pintle_machinery::GroupVersionKind;
use pintle_registry::{ConnectOptions, Resource, Scope, Subresource, SubresourceKind, Verb};
use pintle_schema::{Schema, SchemaRef, Type};

/// Adds the paths of a resource.
pub(crate) fn add(paths: &mut Paths, resource: &Resource) {
    let root = crate::names::root(&resource.resource.group_version());
    let plural = &resource.resource.resource;
    let writer = Writer { resource, object: definition_of(&resource.type_name) };
    let has = |verb: Verb| resource.verbs.contains(&verb);
    let namespaced = resource.scope == Scope::Namespaced;
    let scoped = |prefix: &str| match namespaced {
        true => format!("{prefix}/namespaces/{{namespace}}/{plural}"),
        false => format!("{prefix}/{plural}"),
    };
    let (collection, watch_root) = (scoped(&root), format!("{root}/watch"));
    let item = format!("{collection}/{{name}}");

    let mut put = |path: &str, method: &'static str, operation: Operation| {
        paths.entry(path.to_owned()).or_default().insert(method, operation);
    };
    if has(Verb::List) {
        put(&collection, "get", writer.list(false));
        if namespaced {
            put(&format!("{root}/{plural}"), "get", writer.list(true));
        }
    }
    if has(Verb::Create) {
        put(&collection, "post", writer.create());
    }
    if has(Verb::DeleteCollection) {
        put(&collection, "delete", writer.delete_collection());
    }
    if has(Verb::Get) {
        put(&item, "get", writer.read(None));
    }
    if has(Verb::Update) {
        put(&item, "put", writer.replace(None));
    }
    if has(Verb::Patch) {
        put(&item, "patch", writer.patch(None));
    }
    if has(Verb::Delete) {
        put(&item, "delete", writer.delete());
    }
    if has(Verb::Watch) {
        put(&scoped(&watch_root), "get", writer.watch_list(false));
        put(&format!("{}/{{name}}", scoped(&watch_root)), "get", writer.watch());
        if namespaced {
            put(&format!("{watch_root}/{plural}"), "get", writer.watch_list(true));
        }
    }
    for subresource in &resource.subresources {
        add_subresource(&mut put, &writer, &item, subresource);
    }
}

fn add_subresource(
    put: &mut impl FnMut(&str, &'static str, Operation),
    writer: &Writer<'_>,
    item: &str,
    subresource: &Subresource,
) {
    let path = format!("{item}/{}", subresource.name);
    let own = writer.resource.group_version_kind();
    let (kind, verbs) = match &subresource.kind {
        SubresourceKind::Object { verbs, .. } => (own, verbs.clone()),
        SubresourceKind::Scale(_) => {
            let scale = GroupVersionKind::new("autoscaling", "v1", "Scale");
            (scale, vec![Verb::Get, Verb::Patch, Verb::Update])
        }
        SubresourceKind::Create { kind, .. } => (kind.clone(), vec![Verb::Create]),
        SubresourceKind::Connect { kind, options, verbs, .. } => {
            match schema_of(options).filter(|_| *kind == options.kind) {
                Some(schema) => return connect(put, writer, &path, subresource, kind, verbs, schema),
                None => (kind.clone(), verbs.clone()),
            }
        }
    };
    let object = match kind == writer.resource.group_version_kind() {
        true => writer.object.clone(),
        false => crate::definitions::name_of_kind(&kind),
    };
    let part = Part { name: &subresource.name, kind, object };
    let text = match &subresource.kind {
        SubresourceKind::Connect { options, .. } => schema_of(options),
        _ => None,
    };
    for verb in verbs {
        match verb {
            Verb::Get => match text {
                Some(options) => put(&path, "get", writer.read_text(&part, options)),
                None => put(&path, "get", writer.read(Some(&part))),
            },
            Verb::Update => put(&path, "put", writer.replace(Some(&part))),
            Verb::Patch => put(&path, "patch", writer.patch(Some(&part))),
            Verb::Create => put(&path, "post", writer.create_part(&part)),
            Verb::Delete | Verb::DeleteCollection | Verb::List | Verb::Watch => {}
        }
    }
}

/// Adds streams and proxied requests. Proxies accept any method, also on sub-paths.
fn connect(
    put: &mut impl FnMut(&str, &'static str, Operation),
    writer: &Writer<'_>,
    path: &str,
    subresource: &Subresource,
    kind: &GroupVersionKind,
    verbs: &[Verb],
    options: SchemaRef<'static>,
) {
    let is_proxy = options.field("path").is_some();
    let mut methods: Vec<&'static str> = verbs
        .iter()
        .filter_map(|verb| match verb {
            Verb::Create => Some("post"),
            Verb::Delete => Some("delete"),
            Verb::Get => Some("get"),
            Verb::Patch => Some("patch"),
            Verb::Update => Some("put"),
            Verb::DeleteCollection | Verb::List | Verb::Watch => None,
        })
        .collect();
    if is_proxy {
        methods.extend(["head", "options"]);
    }
    for method in methods {
        let operation = writer.connect(method, subresource, kind, options, false);
        put(path, method, operation);
        if is_proxy {
            let operation = writer.connect(method, subresource, kind, options, true);
            put(&format!("{path}/{{path}}"), method, operation);
        }
    }
}

/// A subresource and its kind.
struct Part<'a> {
    name: &'a str,
    kind: GroupVersionKind,
    object: String,
}

/// Builds the operations of one resource.
struct Writer<'a> {
    resource: &'a Resource,
    /// The name of the objects' definition.
    object: String,
}

impl Writer<'_> {
    fn list(&self, all_namespaces: bool) -> Operation {
        let suffix = if all_namespaces { "ForAllNamespaces" } else { "" };
        Operation {
            id: self.id("list", "", !all_namespaces, suffix),
            description: format!("list objects of kind {}, or watch them", self.resource.kind),
            action: Some("list"),
            parameters: self.parameters(false, !all_namespaces, &LIST),
            answer: Payload::Definition(self.list_definition()),
            media: LIST_MEDIA,
            ..self.operation()
        }
    }

    fn create(&self) -> Operation {
        Operation {
            id: self.id("create", "", true, ""),
            description: format!("create an object of kind {}", self.resource.kind),
            action: Some("post"),
            parameters: self.parameters(false, true, &WRITE),
            body: body(&self.object),
            codes: &[200, 201, 202],
            ..self.operation()
        }
    }

    fn delete_collection(&self) -> Operation {
        let choices: Vec<Parameter> = DELETE_COLLECTION.into_iter().chain(DELETE).collect();
        Operation {
            id: self.id("delete", "Collection", true, ""),
            description: format!("delete objects of kind {}", self.resource.kind),
            action: Some("deletecollection"),
            parameters: self.parameters(false, true, &choices),
            body: delete_options(),
            answer: Payload::Definition(meta("Status")),
            ..self.operation()
        }
    }

    fn delete(&self) -> Operation {
        let answer = match self.resource.strategy.documents_deleted_object() {
            true => self.object.clone(),
            false => meta("Status"),
        };
        Operation {
            id: self.id("delete", "", true, ""),
            description: format!("delete an object of kind {}", self.resource.kind),
            action: Some("delete"),
            parameters: self.parameters(true, true, &DELETE),
            body: delete_options(),
            codes: &[200, 202],
            answer: Payload::Definition(answer),
            ..self.operation()
        }
    }

    fn watch_list(&self, all_namespaces: bool) -> Operation {
        let suffix = if all_namespaces { "ListForAllNamespaces" } else { "List" };
        Operation {
            id: self.id("watch", "", !all_namespaces, suffix),
            description: format!("watch objects of kind {}; deprecated: list with watch", self.resource.kind),
            action: Some("watchlist"),
            parameters: self.parameters(false, !all_namespaces, &LIST),
            answer: Payload::Definition(meta("WatchEvent")),
            media: LIST_MEDIA,
            ..self.operation()
        }
    }

    fn watch(&self) -> Operation {
        Operation {
            id: self.id("watch", "", true, ""),
            description: format!(
                "watch one object of kind {}; deprecated: list with watch and a field selector",
                self.resource.kind
            ),
            action: Some("watch"),
            parameters: self.parameters(true, true, &LIST),
            answer: Payload::Definition(meta("WatchEvent")),
            media: LIST_MEDIA,
            ..self.operation()
        }
    }

    fn read(&self, part: Option<&Part<'_>>) -> Operation {
        Operation {
            id: self.id("read", "", true, &suffix(part)),
            description: format!("read {}", self.what(part)),
            action: Some("get"),
            parameters: self.parameters(true, true, &[]),
            ..self.part_operation(part)
        }
    }

    fn replace(&self, part: Option<&Part<'_>>) -> Operation {
        Operation {
            id: self.id("replace", "", true, &suffix(part)),
            description: format!("replace {}", self.what(part)),
            action: Some("put"),
            parameters: self.parameters(true, true, &WRITE),
            body: body(part.map_or(&self.object, |part| &part.object)),
            codes: &[200, 201],
            ..self.part_operation(part)
        }
    }

    fn patch(&self, part: Option<&Part<'_>>) -> Operation {
        Operation {
            id: self.id("patch", "", true, &suffix(part)),
            description: format!("change {}", self.what(part)),
            action: Some("patch"),
            parameters: self.parameters(true, true, &PATCH),
            body: Some(Body { definition: meta("Patch"), required: true, media: PATCH_MEDIA }),
            codes: &[200, 201],
            consumes: PATCH_MEDIA,
            ..self.part_operation(part)
        }
    }

    fn create_part(&self, part: &Part<'_>) -> Operation {
        Operation {
            id: self.id("create", "", true, &capitalized(part.name)),
            description: format!("create {} of an object of kind {}", part.name, self.resource.kind),
            action: Some("post"),
            parameters: self.parameters(true, true, &WRITE),
            body: body(&part.object),
            codes: &[200, 201, 202],
            ..self.part_operation(Some(part))
        }
    }

    /// The operation that returns text instead of an object.
    fn read_text(&self, part: &Part<'_>, options: SchemaRef<'static>) -> Operation {
        let options: Vec<Parameter> = option_parameters(options).collect();
        Operation {
            parameters: self.parameters(true, true, &options),
            answer: Payload::Text,
            media: LOG_MEDIA,
            ..self.read(Some(part))
        }
    }

    fn connect(
        &self,
        method: &str,
        subresource: &Subresource,
        kind: &GroupVersionKind,
        options: SchemaRef<'static>,
        with_path: bool,
    ) -> Operation {
        let with = if with_path { "WithPath" } else { "" };
        let mut parameters = self.parameters(true, true, &option_parameters(options).collect::<Vec<_>>());
        parameters.retain(|parameter| *parameter != PRETTY);
        parameters.extend(with_path.then_some(PROXIED_PATH));
        let suffix = format!("{}{with}", capitalized(&subresource.name));
        Operation {
            id: self.id("connect", &capitalized(method), true, &suffix),
            description: format!(
                "{} requests to {} of an object of kind {}",
                method.to_uppercase(),
                subresource.name,
                self.resource.kind
            ),
            action: Some("connect"),
            kind: Some(kind.clone()),
            parameters,
            answer: Payload::Text,
            media: ANY_MEDIA,
            ..self.operation()
        }
    }

    /// The common fields of all operations of the resource.
    fn operation(&self) -> Operation {
        let version = &self.resource.resource;
        Operation {
            id: String::new(),
            description: String::new(),
            tag: format!("{}_{}", group_in_tag(&version.group), version.version),
            action: None,
            kind: Some(self.resource.group_version_kind()),
            parameters: Vec::new(),
            body: None,
            codes: &[200],
            answer: Payload::Definition(self.object.clone()),
            consumes: ANY_MEDIA,
            media: OBJECT_MEDIA,
        }
    }

    fn part_operation(&self, part: Option<&Part<'_>>) -> Operation {
        let operation = self.operation();
        match part {
            None => operation,
            Some(part) => Operation {
                kind: Some(part.kind.clone()),
                answer: Payload::Definition(part.object.clone()),
                ..operation
            },
        }
    }

    /// `<verb><Group><Version><infix>[Namespaced]<Kind><suffix>`.
    fn id(&self, verb: &str, infix: &str, in_namespace: bool, suffix: &str) -> String {
        let version = &self.resource.resource;
        let namespaced = match in_namespace && self.resource.is_namespaced() {
            true => "Namespaced",
            false => "",
        };
        let group = group_in_id(&version.group);
        let version = capitalized(&version.version);
        format!("{verb}{group}{version}{infix}{namespaced}{}{suffix}", self.resource.kind)
    }

    fn what(&self, part: Option<&Part<'_>>) -> String {
        match part {
            None => format!("the object of kind {} with this name", self.resource.kind),
            Some(part) => {
                format!("{} of the object of kind {} with this name", part.name, self.resource.kind)
            }
        }
    }

    /// The parameters of a request, including those of the path.
    fn parameters(&self, with_name: bool, with_namespace: bool, own: &[Parameter]) -> Vec<Parameter> {
        let mut parameters = own.to_vec();
        parameters.push(PRETTY);
        parameters.extend(with_name.then_some(NAME));
        parameters.extend((with_namespace && self.resource.is_namespaced()).then_some(NAMESPACE));
        parameters
    }

    fn list_definition(&self) -> String {
        let prefix = self.object.strip_suffix(&self.resource.kind).unwrap_or_default();
        format!("{prefix}{}", self.resource.list_kind)
    }
}

fn suffix(part: Option<&Part<'_>>) -> String {
    part.map(|part| capitalized(part.name)).unwrap_or_default()
}

fn body(definition: &str) -> Option<Body> {
    Some(Body { definition: definition.to_owned(), required: true, media: ANY_MEDIA })
}

fn delete_options() -> Option<Body> {
    Some(Body { definition: meta("DeleteOptions"), required: false, media: ANY_MEDIA })
}

/// The fields of a kind of options as query parameters; a list is a repeatable parameter. Fields without a plain query
/// form are left out.
fn schema_of(options: &ConnectOptions) -> Option<SchemaRef<'static>> {
    let kind = &options.kind;
    Schema::builtin().by_kind(&kind.group, &kind.version, &kind.kind)
}

fn option_parameters(options: SchemaRef<'static>) -> impl Iterator<Item = Parameter> {
    options.fields().filter(|field| !matches!(field.name(), "kind" | "apiVersion")).filter_map(|field| {
        let json_type = match field.ty().item().ty() {
            Type::Bool => "boolean",
            Type::Int32 | Type::Int64 => "integer",
            Type::String => "string",
            _ => return None,
        };
        Some(option(field.name(), json_type))
    })
}
