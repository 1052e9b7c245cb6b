//! Decodes request bodies to trees.

use super::{
    body_kind::{BodyKind, is_of_kind},
    go_names::go_type_of_kind,
    request_scope::RequestScope,
};
use crate::base::negotiation::{MediaType, content_type};
use bytes::Bytes;
use pintle_go_forms::quote;
use pintle_machinery::{
    GroupVersion, GroupVersionKind, Status, Value, ValueExt,
    codec::{DecodeError, Decoded, StrictProblem, cbor, json, protobuf, yaml},
    options::FieldValidation,
    scheme::{OPTIONS, missing_version, not_registered, registered, scheme_of, unknown_conversion},
};
use pintle_schema::SchemaRef;
use std::{cell::OnceCell, fmt::Display};

/// Decodes a body as an object of the wanted kind; the tree is of that kind and version.
///
/// # Errors
/// 400 when the body is not such an object, 415 for an unsupported media type.
pub(super) fn decode(
    scope: &RequestScope<'_>,
    body: &Bytes,
    wanted: BodyKind<'_>,
    validation: FieldValidation,
) -> Result<Value, Status> {
    read(scope, body, wanted, validation, Versions::Own).map(|(object, _)| object)
}

/// As [`decode`], for kinds of `meta/v1` such as `DeleteOptions`, which exist in every group and version.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_meta_kind(
    scope: &RequestScope<'_>,
    body: &Bytes,
    wanted: BodyKind<'_>,
    validation: FieldValidation,
) -> Result<Value, Status> {
    read(scope, body, wanted, validation, Versions::Any).map(|(object, _)| object)
}

/// As [`decode`], for kinds with the same fields in other versions of the group. Returns the version of the body, too.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_with_versions(
    scope: &RequestScope<'_>,
    body: &Bytes,
    wanted: BodyKind<'_>,
    other_versions: &[String],
    validation: FieldValidation,
) -> Result<(Value, GroupVersion), Status> {
    read(scope, body, wanted, validation, Versions::Also(other_versions))
}

/// The accepted versions of a body; the decoded tree is of the wanted version in every case.
enum Versions<'a> {
    /// The version of the path.
    Own,
    /// The version of the path, and these versions of its group.
    Also(&'a [String]),
    /// Any version of any group.
    Any,
}

impl Versions<'_> {
    fn take(&self, api_version: &str, wanted: &GroupVersionKind) -> bool {
        match self {
            Versions::Own => false,
            Versions::Also(versions) => GroupVersion::parse(api_version)
                .is_some_and(|found| found.group == wanted.group && versions.contains(&found.version)),
            Versions::Any => GroupVersion::parse(api_version).is_some_and(|found| !found.version.is_empty()),
        }
    }
}

fn read(
    scope: &RequestScope<'_>,
    body: &Bytes,
    wanted: BodyKind<'_>,
    validation: FieldValidation,
    versions: Versions<'_>,
) -> Result<(Value, GroupVersion), Status> {
    let media_type = content_type(scope.headers, scope.server.media_types)?;
    let BodyKind { kind, schema, model, .. } = wanted;
    let other = OnceCell::new();
    let is_of_any_version = matches!(versions, Versions::Any);
    // 400 for a body whose kind cannot be read; for options the message is the bare reason.
    let unrecognized = |why: &dyn Display| match is_of_any_version {
        true => Status::bad_request(why.to_string()),
        false => unrecognized(kind, &why.to_string(), body),
    };
    let mut claim: Option<Claim> = None;
    let of_claim = |claim: &Option<Claim>| match claim {
        Some(claim) => wanted.of_claim(scope, &claim.api_version, &claim.kind, &other),
        None => wanted,
    };
    let mut own_version = kind.group_version();
    let is_lenient = validation == FieldValidation::Ignore
        && model.keeps_claimed_kind()
        && matches!(media_type, MediaType::Json | MediaType::Yaml);
    let mut check_type_meta = |(found, of_map): (json::TypeMeta, Option<json::MapTypeMeta>),
                               wanted: &GroupVersionKind| {
        let shown = || match media_type {
            MediaType::Cbor => cbor::diagnose(body),
            MediaType::Protobuf => {
                format!(
                    "runtime.TypeMeta{{APIVersion:{}, Kind:{}}}",
                    quote(&found.api_version),
                    quote(&found.kind)
                )
            }
            MediaType::Yaml if is_lenient => converted_text(body),
            MediaType::Json | MediaType::Yaml => String::from_utf8_lossy(body).into_owned(),
        };
        if model.keeps_claimed_kind() {
            claim = Some(Claim::of(&found, of_map, wanted, is_lenient, body, &shown)?);
            return Ok(());
        }
        let (api_version, found) = (&found.api_version, found.kind.clone());
        // Options without a kind are of the wanted kind in the version that they name.
        let is_of_kind = found == wanted.kind || is_of_any_version && found.is_empty();
        let is_taken = is_of_kind && versions.take(api_version, wanted);
        if let Some(version) = GroupVersion::parse(api_version).filter(|_| is_taken) {
            own_version = version;
        }
        // Options without a version are of the group of metadata.
        let default = match is_of_any_version {
            true => GroupVersion::new("meta.k8s.io", "v1"),
            false => wanted.group_version(),
        };
        let version = match GroupVersion::parse(api_version) {
            _ if is_taken => wanted.group_version(),
            Some(version) if !version.version.is_empty() => version,
            Some(version) if version.group.is_empty() || version.group == default.group => default,
            Some(version) => {
                let why = missing_version(&shown());
                let kind = if found.is_empty() { &wanted.kind } else { &found };
                let found = GroupVersionKind::new(version.group, "", kind.clone());
                return Err(match is_of_any_version {
                    true => Status::bad_request(why),
                    false => cannot_be_handled(&found, wanted, &why),
                });
            }
            // In a protobuf envelope and in CBOR a malformed version counts as absent.
            None if matches!(media_type, MediaType::Protobuf | MediaType::Cbor) => default,
            None => return Err(unrecognized(&format!("unexpected GroupVersion string: {api_version}"))),
        };
        let decode_as = |schema: SchemaRef<'_>| match media_type {
            MediaType::Json => json::decode_body(body, schema),
            MediaType::Yaml => yaml::decode(body, schema),
            MediaType::Protobuf => protobuf::decode_body(body, schema),
            MediaType::Cbor => cbor::decode_body(body, schema),
        };
        let problems = |found: &GroupVersionKind, problems: &[StrictProblem]| {
            report(scope, validation, (found, kind), problems)
        };
        if !is_of_any_version {
            return check_type_meta((version, found), wanted, &decode_as, problems);
        }
        if found.is_empty() || found == wanted.kind {
            return Ok(());
        }
        let found = version.with_kind(found);
        Err(Status::bad_request(match registered(&found, OPTIONS) {
            None => not_registered(&found.kind, &found.group_version().to_string(), OPTIONS),
            Some(other) => match decode_as(other) {
                Ok(_) => unknown_conversion(other, &format!("v1.{}", wanted.kind)),
                Err(error) => error.to_string(),
            },
        }))
    };
    let decoded = match media_type {
        MediaType::Json => {
            // Decoding shows that most bodies are of the wanted kind. Of the others, that is told before what decoding found.
            let decoded = (!model.keeps_claimed_kind()).then(|| json::decode_body(body, schema));
            if !matches!(&decoded, Some(Ok(decoded)) if is_plainly_of(decoded, kind)) {
                let (found, of_map) = json::type_metas(body).map_err(|error| {
                    unrecognized(&format!("couldn't get version/kind; json parse error: {error}"))
                })?;
                check_type_meta((found, Some(of_map)), kind)?;
            }
            decoded.unwrap_or_else(|| json::decode_body(body, of_claim(&claim).schema))
        }
        MediaType::Yaml => {
            let converted = yaml::to_json(body).map_err(|error| unrecognized(&error))?;
            let (found, of_map) = json::type_metas(&converted.json).map_err(|error| {
                unrecognized(&format!("couldn't get version/kind; json parse error: {error}"))
            })?;
            check_type_meta((found, Some(of_map)), kind)?;
            yaml::decode_converted(converted, of_claim(&claim).schema)
        }
        MediaType::Protobuf if !model.protobuf => return Err(no_protobuf(body, kind)),
        MediaType::Protobuf => {
            let message = protobuf::open(body).map_err(|error| unrecognized(&error))?;
            check_type_meta(
                (json::TypeMeta { api_version: message.api_version, kind: message.kind }, None),
                kind,
            )?;
            protobuf::decode_body(body, schema)
        }
        MediaType::Cbor => {
            let read = || {
                cbor::type_meta(body).map_err(|error| {
                    unrecognized(&format!("unable to determine group/version/kind: {error}"))
                })
            };
            let found = match model.keeps_claimed_kind() {
                true => type_meta_of_map(body, kind, read)?,
                false => read()?,
            };
            check_type_meta((found, None), kind)?;
            match &claim {
                Some(claim) if !is_of_kind(&claim.api_version, &claim.kind, kind) => {
                    cbor::decode_any_body(body).map(|value| Decoded { value, ..Decoded::default() })
                }
                _ => cbor::decode_body(body, of_claim(&claim).schema),
            }
        }
    };
    // An object that keeps its kind has been read when its fields are: it has the version that it names.
    let claimed = claim.as_ref().map(Claim::as_named);
    let own_kind = match is_of_any_version {
        true => kind.clone(),
        false => own_version.clone().with_kind(kind.kind.clone()),
    };
    let found = claimed.as_ref().unwrap_or(&own_kind);
    let Decoded { mut value, mut problems, empty_fields } =
        decoded.map_err(|error| match is_of_any_version {
            true => Status::bad_request(error.to_string()),
            false => cannot_be_handled(found, kind, &error),
        })?;
    let unknown = of_claim(&claim)
        .coerce(&mut value)
        .map_err(|status| cannot_be_handled(found, kind, &status.message))?;
    // The reference reports the unknown fields of custom resources in JSON only.
    let unknown = unknown.into_iter().filter(|_| media_type != MediaType::Cbor);
    problems.extend(unknown.map(StrictProblem::UnknownField));
    match &claim {
        None => report(scope, validation, (&own_kind, kind), &problems)?,
        Some(claim) => claim.report(scope, kind, validation, &problems)?,
    }
    scope.empty_fields.set(empty_fields);
    if !value.is_object() {
        value = Value::Object(Default::default());
    }
    value.set("kind", claim.map_or_else(|| kind.kind.clone(), |claim| claim.kind));
    value.set("apiVersion", kind.group_version().to_string());
    Ok((value, own_version))
}

/// Whether a decoded body names the kind. Its type metadata may be read in another way where it has strict problems: Go
/// takes names of any case, and the last of several.
fn is_plainly_of(decoded: &Decoded, kind: &GroupVersionKind) -> bool {
    decoded.problems.is_empty()
        && decoded.value.str_at("kind") == kind.kind
        && decoded.value.str_at("apiVersion") == kind.group_version().to_string()
}

/// The type metadata of a CBOR body that keeps its kind: the reference reads it from the decoded map, where anything but
/// a text counts as absent, and with `read` only if there is no such map.
fn type_meta_of_map(
    body: &[u8],
    wanted: &GroupVersionKind,
    read: impl Fn() -> Result<json::TypeMeta, Status>,
) -> Result<json::TypeMeta, Status> {
    let object = match cbor::decode_any_body(body) {
        Ok(object) => object,
        Err(error) => {
            read()?;
            return Err(cannot_be_handled(wanted, wanted, &error));
        }
    };
    let (api_version, kind) = (object.str_at("apiVersion").to_owned(), object.str_at("kind").to_owned());
    if api_version.is_empty() && !kind.is_empty() {
        let found = GroupVersionKind::new("", "", &*kind);
        return Err(cannot_be_handled(&found, wanted, &missing_version(&cbor::diagnose(body))));
    }
    Ok(json::TypeMeta { api_version, kind })
}

/// The error for an object that keeps its kind and whose `apiVersion` is `null`.
pub(super) const NULL_VERSION: &str =
    ".apiVersion accessor error: <nil> is of the type <nil>, expected string";

/// The JSON that a YAML body is converted to, sorted by key.
fn converted_text(body: &[u8]) -> String {
    let converted = yaml::to_json(body).and_then(|converted| json::decode_any(&converted.json));
    let shown = converted.map_or_else(|_| body.to_vec(), |tree| json::encode_any(&tree).to_vec());
    String::from_utf8_lossy(&shown).into_owned()
}

/// The type metadata of an object that keeps its kind.
struct Claim {
    api_version: String,
    kind: String,
}

impl Claim {
    /// The claim of a body, `shown` in messages: that of the map which a JSON body becomes, whose names match exactly. A
    /// lenient decoder takes the path's kind for a body without one, before it refuses the body.
    ///
    /// # Errors
    /// 400 when it names no kind, or a malformed version.
    fn of(
        found: &json::TypeMeta,
        of_map: Option<json::MapTypeMeta>,
        wanted: &GroupVersionKind,
        is_lenient: bool,
        body: &[u8],
        shown: &dyn Fn() -> String,
    ) -> Result<Claim, Status> {
        let json::TypeMeta { api_version, kind } = found;
        let Some(version) = GroupVersion::parse(api_version) else {
            let why = format!("unexpected GroupVersion string: {api_version}");
            return Err(unrecognized(wanted, &why, body));
        };
        let claimed = of_map.unwrap_or_else(|| json::MapTypeMeta {
            api_version: Some(api_version.clone()),
            kind: kind.clone(),
        });
        // The kind of a map with a malformed version counts as absent, too.
        let is_malformed =
            claimed.api_version.as_deref().is_some_and(|text| GroupVersion::parse(text).is_none());
        if claimed.kind.is_empty() || is_malformed {
            let why = format!("Object 'Kind' is missing in '{}'", shown());
            let version = if version.version.is_empty() { wanted.group_version() } else { version };
            let kind = if kind.is_empty() { &wanted.kind } else { kind };
            return Err(match is_lenient {
                true => cannot_be_handled(&version.with_kind(kind.clone()), wanted, &why),
                false => unrecognized(wanted, &why, body),
            });
        }
        match claimed.api_version {
            Some(api_version) => Ok(Claim { api_version, kind: claimed.kind }),
            None => Err(cannot_be_handled(
                &GroupVersion::default().with_kind(claimed.kind),
                wanted,
                &NULL_VERSION,
            )),
        }
    }

    /// The claimed kind in the claimed version, which may be missing.
    fn as_named(&self) -> GroupVersionKind {
        GroupVersion::parse(&self.api_version).unwrap_or_default().with_kind(self.kind.clone())
    }

    /// The claimed kind in the claimed version, by default the one of the path.
    fn group_version_kind(&self, wanted: &GroupVersionKind) -> GroupVersionKind {
        let version = GroupVersion::parse(&self.api_version).filter(|version| !version.version.is_empty());
        version.unwrap_or_else(|| wanted.group_version()).with_kind(self.kind.clone())
    }

    /// Reports the strict problems of the body, then another version than the path's. Validation rejects another kind.
    ///
    /// # Errors
    /// 400 for problems under strict validation, and for another version.
    fn report(
        &self,
        scope: &RequestScope<'_>,
        wanted: &GroupVersionKind,
        validation: FieldValidation,
        problems: &[StrictProblem],
    ) -> Result<(), Status> {
        let api_version = &self.api_version;
        let found = self.group_version_kind(wanted);
        report(scope, validation, (&found, &found), problems).map_err(|status| match GroupVersion::parse(
            api_version,
        )
        .is_none_or(|version| version.version.is_empty())
        {
            true => Status::bad_request("Object 'apiVersion' is missing in 'object has no apiVersion field'"),
            false => status,
        })?;
        let wanted_version = wanted.group_version().to_string();
        match *api_version == wanted_version {
            true => Ok(()),
            false => Err(Status::bad_request(format!(
                "the API version in the data ({}) does not match the expected API version ({wanted_version})",
                GroupVersion::parse(api_version).unwrap_or_default()
            ))),
        }
    }
}

/// The 400 for a protobuf body of a kind without that form.
fn no_protobuf(body: &[u8], wanted: &GroupVersionKind) -> Status {
    let message = match protobuf::open(body) {
        Ok(message) => message,
        Err(error) => return unrecognized(wanted, &error.to_string(), body),
    };
    let version = GroupVersion::parse(&message.api_version).unwrap_or_else(|| wanted.group_version());
    let kind = if message.kind.is_empty() { wanted.kind.clone() } else { message.kind };
    let why = "object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be \
               encoded to a protobuf message";
    cannot_be_handled(&version.with_kind(kind), wanted, &why)
}

/// The 400 for a body whose kind cannot be read, with the start of the body.
fn unrecognized(wanted: &GroupVersionKind, why: &str, body: &[u8]) -> Status {
    const SHOWN: usize = 30;
    let shown = body.get(..SHOWN).unwrap_or(body);
    let mut summary = match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN {
        summary.push_str(" ...");
    }
    let kind = &wanted.kind;
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
    ))
}

/// Reports the strict problems of a body as field validation demands. The kinds are that of the body, and the wanted
/// one.
///
/// # Errors
/// 400 for problems under strict validation.
fn report(
    scope: &RequestScope<'_>,
    validation: FieldValidation,
    (found, wanted): (&GroupVersionKind, &GroupVersionKind),
    problems: &[StrictProblem],
) -> Result<(), Status> {
    match validation {
        FieldValidation::Warn => scope.warnings.extend(problems.iter().flat_map(StrictProblem::warnings)),
        FieldValidation::Strict if !problems.is_empty() => {
            let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
            let why = format!("strict decoding error: {}", texts.join(", "));
            return Err(cannot_be_handled(found, wanted, &why));
        }
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(())
}

/// Rejects a body of another kind or version than the path's. Absent type metadata is taken from the path. A body of a
/// kind and version that the server knows is decoded as such first, for its own errors.
fn check_type_meta(
    (version, kind): (GroupVersion, String),
    wanted: &GroupVersionKind,
    decode_as: &dyn Fn(SchemaRef<'_>) -> Result<Decoded, DecodeError>,
    report: impl Fn(&GroupVersionKind, &[StrictProblem]) -> Result<(), Status>,
) -> Result<(), Status> {
    let wanted_version = wanted.group_version();
    let is_other_kind = !kind.is_empty() && kind != wanted.kind;
    if !is_other_kind && version == wanted_version {
        return Ok(());
    }
    let found = version.with_kind(if kind.is_empty() { wanted.kind.clone() } else { kind });
    let decoded = match registered(&found, scheme_of(&wanted.group)).map(decode_as) {
        Some(Ok(decoded)) if !is_other_kind => decoded,
        Some(Err(error)) => return Err(cannot_be_handled(&found, wanted, &error)),
        Some(Ok(_)) | None => return Err(cannot_be_handled(&found, wanted, &other_kind(&found, wanted))),
    };
    report(&found, &decoded.problems)?;
    Err(Status::bad_request(format!(
        "the API version in the data ({version}) does not match the expected API version ({wanted_version})"
    )))
}

/// The error message for an object of one kind where another is wanted.
pub(super) fn other_kind(found: &GroupVersionKind, wanted: &GroupVersionKind) -> String {
    let scheme = scheme_of(&wanted.group);
    match registered(found, scheme) {
        Some(found) => unknown_conversion(found, &go_type_of_kind(wanted)),
        None => not_registered(&found.kind, &found.group_version().to_string(), scheme),
    }
}

/// The 400 for a body that does not decode.
pub(super) fn cannot_be_handled(
    found: &GroupVersionKind,
    wanted: &GroupVersionKind,
    why: &dyn Display,
) -> Status {
    Status::bad_request(format!(
        "{} in version {} cannot be handled as a {}: {why}",
        found.kind,
        quote(&found.version),
        wanted.kind
    ))
}
