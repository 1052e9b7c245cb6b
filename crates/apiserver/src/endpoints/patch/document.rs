//! A patch document and its format.

use super::super::{body_kind::BodyKind, request_scope::RequestScope};
use crate::base::negotiation::{
    MediaType, apply_type, body_media_type, content_type_of, unsupported_media_type,
};
use bytes::Bytes;
use pintle_machinery::{
    FieldError, FieldPath, GroupKind, Status, StatusReason, Value,
    codec::json,
    options::FieldValidation,
    patch::{Scope, json_patch, merge_patch, patched_text, strategic},
    restore,
    text::go_format,
};
use pintle_registry::{ObjectForm, PatchType, Routing};
use pintle_schema::{Schema, SchemaBuilder, SchemaRef, Structural, Type};
use std::sync::LazyLock;

/// A patch and its format.
#[derive(Debug, Clone)]
pub(in super::super) struct Patch {
    format: Format,
    patch: Value,
    /// The patch as the client wrote it.
    body: Bytes,
    /// Problems of the patch itself that only strict validation rejects.
    problems: Vec<String>,
}

/// The format of a patch.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Format {
    /// JSON patch.
    Json,
    /// JSON merge patch.
    Merge,
    /// Strategic merge patch.
    Strategic,
}

impl Patch {
    /// Parses a patch.
    ///
    /// # Errors
    /// 400 for a body that is not JSON.
    pub(in super::super) fn parse(format: Format, body: &Bytes) -> Result<Patch, Status> {
        let decoded = json::decode_body(body, ANYTHING.root()).map_err(|error| {
            Status::bad_request(match format {
                Format::Json => {
                    // Numbers are converted where the operation has its value.
                    let member = "Go struct field jsonPatchOp.value of type float64";
                    let error = error.to_string().replace("Go value of type float64", member);
                    format!("error decoding patch: {error}")
                }
                Format::Merge => format!("error decoding patch: {error}"),
                Format::Strategic => error.to_string(),
            })
        })?;
        let patch = decoded.value;
        let twice = decoded.problems.iter().map(ToString::to_string);
        let problems = match format {
            Format::Json => {
                let twice = twice.filter(|problem| is_in_operation(problem));
                let mut problems: Vec<String> = twice.chain(unknown_members(&patch)).collect();
                problems.sort_by_key(|problem| operation_of(problem));
                problems.into_iter().map(|problem| format!("json patch {problem}")).collect()
            }
            Format::Merge | Format::Strategic => twice.collect(),
        };
        Ok(Patch { format, patch, body: body.clone(), problems })
    }

    /// Problems of the patch itself that only strict validation rejects.
    pub(in super::super) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The part of the object that the patch applies to.
    pub(in super::super) fn scope(&self) -> Scope {
        let scope = match self.format {
            Format::Json => Scope::of_json_patch(&self.patch),
            Format::Merge => Scope::of_merge_patch(&self.patch),
            Format::Strategic => return Scope::of_strategic_merge_patch(&self.patch),
        };
        // Another kind changes how all of the object is decoded.
        match scope.names("kind") || scope.names("apiVersion") {
            true => Scope::Whole,
            false => scope,
        }
    }

    /// Whether the patched object is decoded from its text, with the kind that it names there. A strategic merge patch
    /// changes an object of the path's kind.
    pub(super) fn is_of_text(&self) -> bool {
        !matches!(self.format, Format::Strategic)
    }

    /// The patched object, not yet decoded by its schema.
    ///
    /// # Errors
    /// 422 when the patch cannot be applied to the object, 400 when it is malformed.
    pub(in super::super) fn apply(
        &self,
        mut object: Value,
        schema: SchemaRef<'_>,
        validation: FieldValidation,
    ) -> Result<Value, Status> {
        let patched = match self.format {
            // These two apply to the object's JSON, with the empty members that the tree omits.
            Format::Json => json_patch::apply(json::to_value(&object, schema), &self.patch, validation),
            Format::Merge => {
                merge_patch::apply(json::to_value(&object, schema), self.patch.clone(), validation)
            }
            Format::Strategic => {
                object.get_mut("metadata").map(json::open_managed_fields);
                strategic::apply(object, self.patch.clone(), schema).map(|mut merged| {
                    if restore::has_wide_numbers(&self.patch) {
                        restore::convert_numbers(&mut merged, schema);
                    }
                    merged
                })
            }
        };
        patched.map_err(Status::from)
    }

    /// The 422 for an object that does not decode after the patch, with the whole patched object. `old` is the object
    /// before the patch, `status` the error of [`read_patched`](super::read_patched).
    pub(in super::super) fn undecodable(
        &self,
        old: Value,
        wanted: BodyKind<'_>,
        validation: FieldValidation,
        status: &Status,
    ) -> Status {
        let BodyKind { schema, .. } = wanted;
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        let message = causes.first().map(|cause| cause.message.as_str()).unwrap_or_default();
        let why = message.strip_prefix("Invalid value: null: ").unwrap_or(message);
        let used = match self.format {
            Format::Strategic => strategic::used_patch(&self.patch, &old, schema),
            Format::Json | Format::Merge => Value::Null,
        };
        let written = self.written(&old, wanted);
        let patched = match self.apply(old, schema, validation) {
            Ok(patched) => patched,
            Err(status) => return status,
        };
        // The part that the patch changes was decoded: the whole has more to show of it.
        let coerced = json::from_value(&patched, schema).ok().map(|decoded| decoded.value);
        let coerced = coerced.and_then(|mut object| wanted.coerce(&mut object).err());
        let why = coerced.as_ref().map_or(why, |status| &status.message);
        let (text, why) = match written {
            None => (go_format(&used), restore::problem(&patched, schema).unwrap_or(why.to_owned())),
            Some(text) => {
                let why = reason_in(&text, &patched, schema, why);
                (text, why)
            }
        };
        let error = FieldError::invalid(&FieldPath::new("patch"), text, why);
        Status::invalid(&GroupKind::default(), "", &vec![error])
    }

    /// Whether the text of the patched object has members twice, of which the tree has only the last. A merge patch
    /// parses what it adds.
    pub(in super::super) fn repeats_members(&self) -> bool {
        matches!(self.format, Format::Json)
            && self.problems.iter().any(|problem| problem.starts_with("json patch duplicate field"))
    }

    /// Whether the text of the patched object tells more than the tree: members twice, or the digits of numbers, which
    /// count where a number stands for a text (`pods: 1e3`). Kinds that are maps keep the numbers themselves.
    pub(super) fn needs_text(&self, wanted: BodyKind<'_>) -> bool {
        let has_digits =
            || matches!(wanted.model.form, ObjectForm::Struct) && restore::has_floats(&self.patch);
        self.repeats_members() || self.is_of_text() && has_digits()
    }

    /// The text of the patched object; a strategic merge patch applies to a tree and has none.
    pub(in super::super) fn written(&self, old: &Value, wanted: BodyKind<'_>) -> Option<String> {
        let document = match wanted.model.form {
            ObjectForm::Map => json::encode_any(&json::to_value(old, wanted.schema)),
            ObjectForm::Struct => json::encode(old, wanted.schema),
        };
        let (document, patch) = (String::from_utf8_lossy(&document), String::from_utf8_lossy(&self.body));
        let text = match self.format {
            Format::Json => patched_text::by_json_patch(&document, &patch),
            Format::Merge => patched_text::by_merge_patch(&document, &patch),
            Format::Strategic => None,
        };
        text.map(|text| String::from_utf8_lossy(&text).into_owned())
    }
}

/// The reason why the text of a patched object does not decode. The decoder of its tree gave `why`, without the digits
/// of numbers that no tree holds.
fn reason_in(text: &str, patched: &Value, schema: SchemaRef<'_>, why: &str) -> String {
    let reason = |text: &str| json::decode(text.as_bytes(), schema).err().map(|error| error.to_string());
    match reason(&patched.to_string()) {
        Some(of_tree) if of_tree == why => reason(text).unwrap_or(of_tree),
        _ => why.to_owned(),
    }
}

/// The body of a PATCH.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum PatchBody {
    /// An applied configuration in this media type.
    Configuration(MediaType),
    /// A patch document.
    Document(Format),
}

impl PatchBody {
    /// The body that the content type of a request names.
    ///
    /// # Errors
    /// 415 for an unsupported format.
    pub(in super::super) fn of(scope: &RequestScope<'_>) -> Result<PatchBody, Status> {
        match apply_type(scope.headers, scope.server.media_types) {
            Some(media_type) => Ok(PatchBody::Configuration(media_type)),
            None => Format::of(scope).map(PatchBody::Document),
        }
    }
}

impl Format {
    fn of(scope: &RequestScope<'_>) -> Result<Format, Status> {
        let model = &scope.resource.resource.model;
        let name = body_media_type(scope.headers);
        let accepted = model.patch_types.iter().find(|patch_type| patch_type.media_type() == name);
        match accepted {
            Some(PatchType::Json) => return Ok(Format::Json),
            Some(PatchType::Merge) => return Ok(Format::Merge),
            Some(PatchType::StrategicMerge) => return Ok(Format::Strategic),
            // An applied configuration is not a patch document.
            Some(PatchType::Apply | PatchType::ApplyCbor) | None => {}
        }
        match model.routing {
            // A route is found by any of several media types; its handler reads them as one.
            Routing::Routes if is_named_in_part(scope) => {
                let accepted: Vec<_> = model.patch_types.iter().map(|patch| patch.media_type()).collect();
                Err(unsupported_media_type(&accepted))
            }
            Routing::Verbs => {
                let cbor = scope.server.media_types.apply_in_cbor(model.patch_types);
                let accepted = model.patch_types.iter().copied().chain(cbor);
                Err(unsupported_media_type(&accepted.map(PatchType::media_type).collect::<Vec<_>>()))
            }
            Routing::Routes => {
                let mut status =
                    Status::failure(415, StatusReason::UnsupportedMediaType, "415: Unsupported Media Type");
                status.details = Some(Default::default());
                Err(status)
            }
        }
    }
}

/// Whether one of the media types that `Content-Type` lists, separated by commas, is that of an accepted patch.
fn is_named_in_part(scope: &RequestScope<'_>) -> bool {
    let types = content_type_of(scope.headers).split(',');
    let mut names = types.map(|media_type| media_type.split(';').next().unwrap_or_default().trim());
    names.any(|name| scope.resource.resource.model.patch_types.iter().any(|patch| patch.media_type() == name))
}

/// A schema that keeps all fields and reports duplicate keys.
pub(in super::super) static ANYTHING: LazyLock<Schema> = LazyLock::new(|| {
    let mut builder = SchemaBuilder::new();
    let root = builder.scalar(Type::Any);
    builder.set_structural(root, Structural { preserve_unknown_fields: true, ..Structural::default() });
    builder.finish(root)
});

/// The members of an operation of a JSON patch.
const MEMBERS: [&str; 4] = ["op", "path", "from", "value"];

/// The index of the operation that a problem of a JSON patch, `unknown field "[2].x"`, is in.
fn operation_of(problem: &str) -> usize {
    let index = problem.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    index.and_then(|(index, _)| index.parse().ok()).unwrap_or_default()
}

/// Whether a problem of a JSON patch, `duplicate field "[2].value.x"`, is in a member that operations have. The others
/// are skipped, and only told to be unknown.
fn is_in_operation(problem: &str) -> bool {
    let path = problem.split_once("].").map_or("", |(_, path)| path.trim_end_matches('"'));
    let member = path.split(['.', '[']).next().unwrap_or_default();
    MEMBERS.contains(&member)
}

/// Errors for unknown members in the operations of a JSON patch.
fn unknown_members(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().into_iter().flatten().enumerate();
    let members = operations.flat_map(|(index, operation)| {
        let names = operation.as_object().into_iter().flat_map(|members| members.keys());
        names.map(move |name| (index, name))
    });
    let unknown = members.filter(|(_, name)| !MEMBERS.contains(&name.as_str()));
    unknown.map(|(index, name)| format!("unknown field \"[{index}].{name}\"")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_told_with_the_member_that_has_it() {
        let error = |format, body| Patch::parse(format, &Bytes::from_static(body)).unwrap_err().message;
        assert_eq!(
            error(Format::Json, br#"[{"op":"add","path":"/a","value":1E400}]"#),
            "error decoding patch: json: cannot unmarshal number 1E400 into Go struct field jsonPatchOp.value of type \
             float64"
        );
        assert_eq!(
            error(Format::Merge, br#"{"a":1E400}"#),
            "error decoding patch: json: cannot unmarshal number 1E400 into Go value of type float64"
        );
    }

    #[test]
    fn problems_of_a_json_patch_are_in_the_order_of_its_operations() {
        let body = Bytes::from_static(
            br#"[{"op":"add","path":"/a","value":1,"foo":2},{"op":"add","path":"/b","path":"/c","value":1},{"bar":1}]"#,
        );
        let patch = Patch::parse(Format::Json, &body).unwrap();
        assert_eq!(
            patch.problems(),
            [
                "json patch unknown field \"[0].foo\"",
                "json patch duplicate field \"[1].path\"",
                "json patch unknown field \"[2].bar\""
            ]
        );
    }

    #[test]
    fn unknown_members_of_operations_are_only_told_to_be_unknown() {
        let body = Bytes::from_static(
            br#"[{"op":"add","path":"/a","value":{"b":1,"b":2},"i":{"k":1,"k":2},"i":[],"v":[{"a":1,"a":2}]}]"#,
        );
        assert_eq!(
            Patch::parse(Format::Json, &body).unwrap().problems(),
            [
                "json patch duplicate field \"[0].value.b\"",
                "json patch unknown field \"[0].i\"",
                "json patch unknown field \"[0].v\""
            ]
        );
    }
}
