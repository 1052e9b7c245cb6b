//! The operations of a custom resource: those of built-in resources without the legacy watch paths and without media
//! types that only built-in kinds support (protobuf, strategic merge patches).

use crate::{
    custom_definition::CustomResource,
    names::{capitalized, group_in_id, group_in_tag, meta, valid_id},
    operation::{Body, Operation, Paths, Payload},
    parameters::{DELETE, LIST, NAME, NAMESPACE, PATCH, PRETTY, Parameter, RESOURCE_VERSION, WRITE},
};

/// The media types of custom resources.
const MEDIA: &[&str] = &["application/json", "application/yaml"];

/// The media types of patches of custom resources.
const PATCH_MEDIA: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// The name of the definition of `Scale`.
pub(crate) const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// Adds the paths of a custom resource.
pub(crate) fn add(paths: &mut Paths, resource: &CustomResource<'_>) {
    let version = pintle_machinery::GroupVersion::new(&resource.kind.group, &resource.kind.version);
    let root = crate::names::root(&version);
    let writer = Writer { resource, object: resource.model_name(&resource.kind.kind) };
    let mut put = |path: &str, method: &'static str, operation: Operation| {
        paths.entry(path.to_owned()).or_default().insert(method, operation);
    };
    let mut collection = format!("{root}/{}", resource.plural);
    if resource.is_namespaced {
        put(&collection, "get", writer.list(true));
        collection = format!("{root}/namespaces/{{namespace}}/{}", resource.plural);
    }
    put(&collection, "get", writer.list(false));
    put(&collection, "post", writer.create());
    put(&collection, "delete", writer.delete_collection());
    let item = format!("{collection}/{{name}}");
    put(&item, "get", writer.read(""));
    put(&item, "put", writer.replace(""));
    put(&item, "patch", writer.patch(""));
    put(&item, "delete", writer.delete());
    for (has, part) in [(resource.has_status, "status"), (resource.has_scale, "scale")] {
        if has {
            let path = format!("{item}/{part}");
            put(&path, "get", writer.read(part));
            put(&path, "put", writer.replace(part));
            put(&path, "patch", writer.patch(part));
        }
    }
}

/// Builds the operations of one resource. `part` is `status`, `scale` or "" for the whole object.
struct Writer<'a> {
    resource: &'a CustomResource<'a>,
    /// The name of the objects' definition.
    object: String,
}

impl Writer<'_> {
    fn list(&self, all_namespaces: bool) -> Operation {
        let operation = match all_namespaces {
            true => format!("{}ForAllNamespaces", self.kind()),
            false => self.scoped(""),
        };
        Operation {
            id: self.id("list", &operation),
            description: format!("list objects of kind {}", self.kind()),
            action: Some("list"),
            parameters: self.parameters(false, !all_namespaces, &LIST),
            answer: Payload::Definition(self.resource.model_name(self.resource.list_kind)),
            ..self.operation("")
        }
    }

    fn create(&self) -> Operation {
        Operation {
            id: self.id("create", &self.scoped("")),
            description: format!("create{}{}", article(self.kind()), self.kind()),
            action: Some("post"),
            parameters: self.parameters(false, true, &WRITE),
            body: self.body(""),
            codes: &[200, 201, 202],
            ..self.operation("")
        }
    }

    fn delete_collection(&self) -> Operation {
        Operation {
            id: self.id("delete", &format!("Collection{}", self.scoped(""))),
            description: format!("delete collection of {}", self.kind()),
            action: Some("deletecollection"),
            parameters: self.parameters(false, true, &LIST),
            answer: Payload::Definition(meta("Status")),
            ..self.operation("")
        }
    }

    fn delete(&self) -> Operation {
        Operation {
            id: self.id("delete", &self.scoped("")),
            description: format!("delete{}{}", article(self.kind()), self.kind()),
            action: Some("delete"),
            parameters: self.parameters(true, true, &DELETE),
            body: Some(Body { definition: meta("DeleteOptions"), required: false, media: MEDIA }),
            codes: &[200, 202],
            answer: Payload::Definition(meta("Status")),
            ..self.operation("")
        }
    }

    fn read(&self, part: &str) -> Operation {
        Operation {
            id: self.id("read", &self.scoped(part)),
            description: format!("read{} the specified {}", of(part), self.kind()),
            action: Some("get"),
            parameters: self.parameters(true, true, &[RESOURCE_VERSION]),
            ..self.operation(part)
        }
    }

    fn replace(&self, part: &str) -> Operation {
        Operation {
            id: self.id("replace", &self.scoped(part)),
            description: format!("replace{} the specified {}", of(part), self.kind()),
            action: Some("put"),
            parameters: self.parameters(true, true, &WRITE),
            body: self.body(part),
            codes: &[200, 201],
            ..self.operation(part)
        }
    }

    fn patch(&self, part: &str) -> Operation {
        Operation {
            id: self.id("patch", &self.scoped(part)),
            description: format!("partially update{} the specified {}", of(part), self.kind()),
            action: Some("patch"),
            parameters: self.parameters(true, true, &PATCH),
            body: Some(Body { definition: meta("Patch"), required: true, media: PATCH_MEDIA }),
            consumes: PATCH_MEDIA,
            ..self.operation(part)
        }
    }

    /// The common fields of all operations on a part.
    fn operation(&self, part: &str) -> Operation {
        let kind = &self.resource.kind;
        Operation {
            id: String::new(),
            description: String::new(),
            tag: format!("{}_{}", group_in_tag(&kind.group), valid_id(&kind.version, false)),
            action: None,
            kind: Some(kind.clone()),
            parameters: Vec::new(),
            body: None,
            codes: &[200],
            answer: Payload::Definition(self.definition(part)),
            consumes: MEDIA,
            media: MEDIA,
        }
    }

    fn body(&self, part: &str) -> Option<Body> {
        Some(Body { definition: self.definition(part), required: true, media: MEDIA })
    }

    fn definition(&self, part: &str) -> String {
        if part == "scale" { SCALE.to_owned() } else { self.object.clone() }
    }

    fn kind(&self) -> &str {
        &self.resource.kind.kind
    }

    fn scoped(&self, part: &str) -> String {
        let namespaced = if self.resource.is_namespaced { "Namespaced" } else { "" };
        format!("{namespaced}{}{}", self.kind(), capitalized(part))
    }

    fn id(&self, verb: &str, operation: &str) -> String {
        let kind = &self.resource.kind;
        let (group, version) = (group_in_id(&kind.group), valid_id(&kind.version, true));
        format!("{verb}{group}{version}{}", valid_id(operation, true))
    }

    fn parameters(&self, with_name: bool, with_namespace: bool, own: &[Parameter]) -> Vec<Parameter> {
        let mut parameters = own.to_vec();
        parameters.push(PRETTY);
        parameters.extend(with_name.then_some(NAME));
        parameters.extend((with_namespace && self.resource.is_namespaced).then_some(NAMESPACE));
        parameters
    }
}

fn of(part: &str) -> String {
    if part.is_empty() { String::new() } else { format!(" {part} of") }
}

/// The article before a kind, with spaces around it; none before an apparent plural.
fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return " ";
    }
    let first = kind.chars().next().map(|c| c.to_ascii_lowercase());
    if matches!(first, Some('a' | 'e' | 'i' | 'o' | 'u')) { " an " } else { " a " }
}
