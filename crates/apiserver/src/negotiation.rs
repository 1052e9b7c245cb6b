//! Which media type a body is in, and which the client wants back
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources>).

use crate::response::{Response, failure};
use http::{HeaderMap, header};
use pintle_machinery::{GroupVersionKind, Status};

/// The encodings of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaType {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl MediaType {
    /// The media type's name.
    pub fn as_str(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Yaml => "application/yaml",
            MediaType::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn parse(name: &str) -> Option<MediaType> {
        [MediaType::Json, MediaType::Yaml, MediaType::Protobuf]
            .into_iter()
            .find(|media_type| media_type.as_str().eq_ignore_ascii_case(name))
    }
}

/// Another shape of the answer that a client may ask for with `as=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// `Table`.
    Table,
    /// `PartialObjectMetadata`, and for lists `PartialObjectMetadataList`.
    PartialObjectMetadata,
}

/// What the answer will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The encoding.
    pub media_type: MediaType,
    /// The shape, and the `meta.k8s.io` version of it.
    pub transform: Option<(Transform, String)>,
    /// Indented JSON.
    pub pretty: bool,
}

impl Accepted {
    /// Plain JSON.
    pub const JSON: Accepted = Accepted { media_type: MediaType::Json, transform: None, pretty: false };
}

/// One clause of an `Accept` header.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptClause<'a> {
    /// The media type's name.
    pub name: &'a str,
    /// The parameters, without `q`.
    pub parameters: Vec<(&'a str, &'a str)>,
    /// How much the client likes it.
    pub quality: f32,
}

/// The clauses of an `Accept` header, the best liked first.
pub fn accept_clauses(header: &str) -> Vec<AcceptClause<'_>> {
    let mut clauses: Vec<AcceptClause<'_>> = header
        .split(',')
        .filter_map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let name = parts.next().filter(|name| !name.is_empty())?;
            let mut quality = 1.0;
            let mut parameters = Vec::new();
            for part in parts {
                let (key, value) = part.split_once('=')?;
                match key.trim() {
                    "q" => quality = value.trim().parse().unwrap_or(1.0),
                    key => parameters.push((key, value.trim().trim_matches('"'))),
                }
            }
            Some(AcceptClause { name, parameters, quality })
        })
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// What shapes an endpoint can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offers {
    /// Only the object itself.
    Plain,
    /// Only the object itself, where others of its kind come in other shapes: who wants one of those is told otherwise.
    Answer,
    /// An object, and tables and partial metadata of it.
    Object,
    /// A list, and tables and partial metadata of it.
    List,
}

/// Chooses the answer's form.
///
/// # Errors
/// 406 when nothing the client accepts can be made.
pub fn accepted(headers: &HeaderMap, pretty: Option<&str>, offers: Offers) -> Result<Accepted, Status> {
    accepted_of(headers, pretty, offers, true)
}

/// The same for objects that may have no protobuf form, as custom resources; partial metadata of theirs have one.
///
/// # Errors
/// 406 when nothing the client accepts can be made.
pub fn accepted_of(
    headers: &HeaderMap,
    pretty: Option<&str>,
    offers: Offers,
    has_protobuf: bool,
) -> Result<Accepted, Status> {
    let header = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let pretty = match pretty {
        Some(value) => !(value == "0" || value.eq_ignore_ascii_case("false")),
        None => is_tool_for_people(headers),
    };
    if header.trim().is_empty() {
        return Ok(Accepted { pretty, ..Accepted::JSON });
    }
    let mut transforms_refused = false;
    for clause in accept_clauses(header) {
        let media_type = match clause.name {
            "*/*" => MediaType::Json,
            name => match MediaType::parse(name) {
                Some(media_type) => media_type,
                None => continue,
            },
        };
        let parameter =
            |name: &str| clause.parameters.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
        let transform = match parameter("as") {
            None | Some("") if media_type == MediaType::Protobuf && !has_protobuf => continue,
            None | Some("") => None,
            Some(kind) => {
                transforms_refused = offers != Offers::Plain;
                let version = parameter("v").unwrap_or_default();
                if parameter("g") != Some("meta.k8s.io") || !matches!(version, "v1" | "v1beta1") {
                    continue;
                }
                let transform = match (kind, offers) {
                    ("Table", Offers::Object | Offers::List) if media_type != MediaType::Protobuf => {
                        Transform::Table
                    }
                    ("PartialObjectMetadata", Offers::Object)
                    | ("PartialObjectMetadataList", Offers::List) => Transform::PartialObjectMetadata,
                    _ => continue,
                };
                Some((transform, version.to_owned()))
            }
        };
        let pretty = pretty || parameter("pretty").is_some_and(|value| value == "1" || value == "true");
        return Ok(Accepted { media_type, transform, pretty });
    }
    let available = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    match transforms_refused {
        true => Err(Status::not_acceptable(format!(
            "only the following media types are accepted: {}",
            available.join(", ")
        ))),
        false => Err(not_acceptable_of(&available)),
    }
}

/// The form of an answer that exists in one media type only, and that no transformation applies to. Any clause that
/// names it will do, wherever it stands and however well it is liked; a wildcard in the second half only is none.
///
/// # Errors
/// The 406 that says so, in the encoding that the client wants.
pub fn accept_only(headers: &HeaderMap, media_type: &str) -> Result<(), Box<Response>> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let names_it = |clause: &str| {
        let name = clause.split(';').next().unwrap_or_default().trim();
        name == media_type || name == "*/*"
    };
    if accept.is_empty() || accept.split(',').any(names_it) {
        return Ok(());
    }
    let form = accepted(headers, None, Offers::Plain).unwrap_or(Accepted::JSON);
    Err(Box::new(failure(&not_acceptable_of(&[media_type]), &form)))
}

/// 406 with the media types there are.
pub fn not_acceptable_of(available: &[&str]) -> Status {
    let mut status = Status::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {}",
        available.join(", ")
    ));
    status.details = Some(Default::default());
    status
}

/// Browsers, curl and wget get indented JSON unless they say otherwise.
fn is_tool_for_people(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

/// The media type of a request's body.
///
/// # Errors
/// 415 when the server does not read it.
pub fn content_type(headers: &HeaderMap) -> Result<MediaType, Status> {
    let header = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = header.split(';').next().unwrap_or_default().trim();
    if name.is_empty() {
        return Ok(MediaType::Json);
    }
    MediaType::parse(name).ok_or_else(|| {
        unsupported_media_type(&[
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ])
    })
}

/// 415 with the media types there are.
pub fn unsupported_media_type(accepted: &[&str]) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}

/// The kind of a transformed answer.
pub fn transform_kind(transform: Transform, version: &str, list: bool) -> GroupVersionKind {
    let kind = match (transform, list) {
        (Transform::Table, _) => "Table",
        (Transform::PartialObjectMetadata, false) => "PartialObjectMetadata",
        (Transform::PartialObjectMetadata, true) => "PartialObjectMetadataList",
    };
    GroupVersionKind::new("meta.k8s.io", version, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiate(accept: &str) -> Result<Accepted, Status> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        accepted(&headers, None, Offers::Object)
    }

    #[test]
    fn clauses_are_tried_in_the_order_of_quality() {
        let rows = [
            ("", Some(MediaType::Json)),
            ("*/*", Some(MediaType::Json)),
            ("application/*", None),
            ("text/html", None),
            ("text/html,*/*;q=0.8", Some(MediaType::Json)),
            ("application/json;q=0.1,application/yaml;q=0.9", Some(MediaType::Yaml)),
            ("application/vnd.kubernetes.protobuf,application/json", Some(MediaType::Protobuf)),
            ("application/json;as=Nonsense;g=meta.k8s.io;v=v1", None),
        ];
        for (header, want) in rows {
            assert_eq!(negotiate(header).ok().map(|accepted| accepted.media_type), want, "{header}");
        }
        let table = negotiate("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap();
        assert_eq!(table.transform, Some((Transform::Table, "v1".to_owned())));
    }

    #[test]
    fn the_only_form_there_is_answers_whoever_names_it() {
        let check = |accept: &str, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            let answer = accept_only(&headers, "application/json").err();
            let content_type =
                answer.as_ref().map(|answer| answer.headers()[header::CONTENT_TYPE].to_str().unwrap());
            assert_eq!(content_type, expected, "{accept}");
        };
        check("", None);
        check("*/*", None);
        check("application/json", None);
        check("application/json;q=0.1, text/html", None);
        check("application/vnd.kubernetes.protobuf, */*", None);
        check("application/vnd.kubernetes.protobuf,application/json", None);
        check("application/vnd.kubernetes.protobuf", Some("application/vnd.kubernetes.protobuf"));
        check("application/yaml", Some("application/yaml"));
        check("application/*", Some("application/json"));
        check("text/html", Some("application/json"));
    }
}
