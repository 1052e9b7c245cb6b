//! Negotiates content: the media type of a request body, and the form of the response
//! (<https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources>).

use crate::base::request::header_text;
use http::{HeaderMap, HeaderValue, header};
use pintle_go_forms::{media_type, parse_bool};
use pintle_machinery::Status;
use pintle_registry::PatchType;

/// The encodings of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaType {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
    /// `application/cbor`, where [`MediaTypes`] has it.
    Cbor,
}

/// The encodings that an endpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaTypes {
    protobuf: bool,
    cbor: bool,
}

impl MediaTypes {
    /// The encodings of most endpoints.
    pub const COMMON: MediaTypes = MediaTypes { protobuf: true, cbor: false };

    /// The encodings of resources: also CBOR, if its feature gate is open.
    pub fn of_resources(cbor: bool) -> MediaTypes {
        MediaTypes { protobuf: true, cbor }
    }

    /// The encodings of pages about the server, such as `/statusz`: no protobuf, and CBOR as resources have it.
    pub fn of_pages(cbor: bool) -> MediaTypes {
        MediaTypes { protobuf: false, cbor }
    }

    /// Whether CBOR is among them.
    pub fn has_cbor(self) -> bool {
        self.cbor
    }

    /// The encodings, in the server's order of preference.
    fn iter(self) -> impl Iterator<Item = MediaType> {
        let all = [MediaType::Json, MediaType::Yaml, MediaType::Protobuf, MediaType::Cbor];
        all.into_iter().filter(move |media_type| match media_type {
            MediaType::Protobuf => self.protobuf,
            MediaType::Cbor => self.cbor,
            MediaType::Json | MediaType::Yaml => true,
        })
    }

    /// The names of the encodings.
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(MediaType::as_str).collect()
    }

    /// The format of applied configurations that a resource with these formats of patches has besides.
    pub(crate) fn apply_in_cbor(self, patch_types: &[PatchType]) -> Option<PatchType> {
        (self.cbor && patch_types.contains(&PatchType::Apply)).then_some(PatchType::ApplyCbor)
    }

    /// Parses a body's media type, ignoring case.
    fn parse(self, name: &str) -> Option<MediaType> {
        self.iter().find(|media_type| media_type.as_str().eq_ignore_ascii_case(name))
    }

    /// The media types that a clause of `Accept` matches, in the server's order of preference.
    fn matching(self, clause: &AcceptClause<'_>) -> impl Iterator<Item = MediaType> {
        let (kind, subtype) = (clause.kind, clause.subtype);
        let is_any = matches!((kind, subtype), ("*" | "application", "*"));
        self.iter()
            .filter(move |media_type| is_any || media_type.as_str().split_once('/') == Some((kind, subtype)))
    }
}

impl MediaType {
    /// The media type's name.
    pub fn as_str(self) -> &'static str {
        match self {
            MediaType::Json => "application/json",
            MediaType::Yaml => "application/yaml",
            MediaType::Protobuf => "application/vnd.kubernetes.protobuf",
            MediaType::Cbor => "application/cbor",
        }
    }
}

/// A transformation of the response that a client requests with `as=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// `Table`.
    Table,
    /// `PartialObjectMetadata`, and for lists `PartialObjectMetadataList`.
    PartialObjectMetadata,
}

/// The negotiated form of a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The encoding.
    pub media_type: MediaType,
    /// The transformation, and its `meta.k8s.io` version.
    pub transform: Option<(Transform, String)>,
    /// Indented JSON.
    pub pretty: bool,
    /// The error of a response with an object or a list, which do not exist in this form. It is known only when there is
    /// one: errors of the request itself, and a response with a `Status`, come first.
    pub refusal: Option<Box<Status>>,
}

impl Accepted {
    /// Plain JSON.
    pub const JSON: Accepted =
        Accepted { media_type: MediaType::Json, transform: None, pretty: false, refusal: None };
}

/// One clause of an `Accept` header.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptClause<'a> {
    /// The media type's part before the slash, such as `application`, or `*`.
    pub kind: &'a str,
    /// The media type's part after the slash, such as `json`, or `*`.
    pub subtype: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    /// The quality value, `q`.
    quality: f32,
}

impl<'a> AcceptClause<'a> {
    /// The clause of this text; `None` for a text that is no media range.
    fn parse(text: &'a str) -> Option<AcceptClause<'a>> {
        let mut parts = text.split(';');
        let range = parts.next()?.trim_matches(' ');
        let (kind, subtype) = match range.split_once('/') {
            None => (range == "*").then_some(("*", "*"))?,
            Some((_, subtype)) if subtype.is_empty() || subtype.contains('/') => return None,
            Some((kind, subtype)) => (kind.trim_matches(' '), subtype.trim_matches(' ')),
        };
        let mut clause = AcceptClause { kind, subtype, parameters: Vec::new(), quality: 1.0 };
        // Parts that are no parameters are ignored.
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let is_empty = value.is_empty();
            let value = value.strip_suffix('=').unwrap_or(value);
            match key.trim_matches(' ') {
                _ if is_empty || value.contains('=') => {}
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                key => clause.parameters.push((key, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    /// The value of a parameter other than `q`. Of several with one name the last one counts.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    /// Whether the clause goes before another one. This is no order: a clause without a wildcard goes before one with a
    /// wildcard, whatever their qualities.
    fn goes_before(&self, other: &AcceptClause<'_>) -> bool {
        self.quality > other.quality
            || (self.kind != "*" && other.kind == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The clauses of an `Accept` header in the order in which the server tries them: by quality, and those with wildcards
/// last. As in the reference, a clause passes those before it while it goes before its neighbor; the result of a
/// comparison that is no order follows from these steps. More than twelve clauses are sorted by quality, where the
/// steps of the reference are others.
pub fn accept_clauses(header: &str) -> Vec<AcceptClause<'_>> {
    const MAX_PASSES: usize = 12;
    let mut clauses: Vec<AcceptClause<'_>> = header.split(',').filter_map(AcceptClause::parse).collect();
    if clauses.len() > MAX_PASSES {
        let has_wildcard = |clause: &AcceptClause<'_>| clause.kind == "*" || clause.subtype == "*";
        clauses.sort_by(|a, b| {
            b.quality.total_cmp(&a.quality).then_with(|| has_wildcard(a).cmp(&has_wildcard(b)))
        });
        return clauses;
    }
    for end in 1..clauses.len() {
        let passes = |clauses: &[AcceptClause<'_>], at: usize| match clauses.get(at.wrapping_sub(1)..=at) {
            Some([before, clause]) => clause.goes_before(before),
            _ => false,
        };
        let mut at = end;
        while passes(&clauses, at) {
            clauses.swap(at, at - 1);
            at -= 1;
        }
    }
    clauses
}

/// The transformations that an endpoint offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offers {
    /// Only the object itself.
    Plain,
    /// The object that a binding, a token request, a review or the like is answered with, and partial metadata of it.
    Answer,
    /// An object, and tables and partial metadata of it.
    Object,
    /// A scale, and tables and partial metadata of it.
    Scale,
    /// A list, and tables and partial metadata of it.
    List,
}

/// Negotiates the form of a response.
///
/// # Errors
/// 406 when the server offers nothing that the client accepts.
pub fn accepted(
    headers: &HeaderMap,
    pretty: Option<&str>,
    offers: Offers,
    media_types: MediaTypes,
) -> Result<Accepted, Status> {
    let negotiated = negotiate(headers, pretty, offers, true, media_types).map(|(accepted, _)| accepted);
    negotiated.ok_or_else(|| not_acceptable_of(&media_types.names()))
}

/// The media types that a route produces besides the common ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Nothing.
    Plain,
    /// Streams of events: the route of lists is that of watches.
    WithStreams,
    /// Text.
    WithText,
}

impl Route {
    /// All media types of the route, as errors list them.
    fn names(self, media_types: MediaTypes) -> Vec<&'static str> {
        let mut names = media_types.names();
        match self {
            Route::Plain => {}
            Route::WithText => names.insert(0, TEXT),
            Route::WithStreams => {
                names.extend([
                    "application/json;stream=watch",
                    "application/vnd.kubernetes.protobuf;stream=watch",
                ]);
                names.extend(media_types.has_cbor().then_some(CBOR_SEQUENCE));
            }
        }
        names
    }
}

/// The media type of text.
const TEXT: &str = "text/plain";
/// The media type of streams in CBOR.
const CBOR_SEQUENCE: &str = "application/cbor-seq";

/// The forms in which a resource's responses exist.
#[derive(Clone, Copy)]
pub struct Answers<'a> {
    /// The transformations.
    pub offers: Offers,
    /// Whether the path is a route, which checks `Accept` before the verb does, and its media types.
    pub route: Option<Route>,
    /// Whether objects have a protobuf form; partial metadata has one in any case.
    pub has_protobuf: bool,
    /// The encodings of the endpoint.
    pub media_types: MediaTypes,
    /// The name of the Go type, for one message to clients.
    pub go_type: &'a dyn Fn() -> String,
}

/// The Go type of objects that are maps of values.
pub(crate) const UNSTRUCTURED: &str = "unstructured.Unstructured";

/// Negotiates the form of a resource's response.
///
/// # Errors
/// 406 when the server offers nothing that the client accepts. A client that requests a list for an object, or an object
/// for a list, gets the [refusal](Accepted::refusal) instead of either.
pub fn accepted_of(
    headers: &HeaderMap,
    pretty: Option<&str>,
    answers: Answers<'_>,
) -> Result<Accepted, Status> {
    if let Some(route) = answers.route {
        routed(headers, route, answers.media_types)?;
    }
    let media_types = answers.media_types;
    let Some((mut accepted, is_of_list)) =
        negotiate(headers, pretty, answers.offers, answers.has_protobuf, media_types)
    else {
        return Err(only(&media_types.names()));
    };
    let is_partial = matches!(accepted.transform, Some((Transform::PartialObjectMetadata, _)));
    let (asked, is) = match answers.offers {
        Offers::List if is_partial && !is_of_list => ("PartialObjectMetadata", "is"),
        Offers::Object | Offers::Scale | Offers::Answer if is_partial && is_of_list => {
            ("PartialObjectMetadataList", "is not")
        }
        _ => return Ok(accepted),
    };
    let go_type = (answers.go_type)();
    accepted.refusal = Some(Box::new(match (is_of_list, go_type.as_str()) {
        // A map of values is taken for a list until its items are asked for.
        (true, UNSTRUCTURED) => Status::unknown("content is not a list"),
        _ => Status::not_acceptable(format!(
            "you requested {asked}, but the requested object {is} a list (*{go_type})"
        )),
    }));
    Ok(accepted)
}

/// Checks `Accept` as a route does: it compares the names of media types, and knows neither
/// parameters nor `application/*`.
///
/// # Errors
/// 406 when no clause matches.
pub(crate) fn routed(headers: &HeaderMap, route: Route, media_types: MediaTypes) -> Result<(), Status> {
    let header = header_of(headers);
    let names = route.names(media_types);
    let is_named = |clause: &str| {
        let name = clause.split(';').next().unwrap_or_default().trim();
        name == "*/*" || names.contains(&name)
    };
    match header.is_empty() || header.split(',').any(is_named) {
        true => Ok(()),
        false => Err(not_acceptable_of(&names)),
    }
}

fn header_of(headers: &HeaderMap) -> &str {
    header_text(headers, header::ACCEPT).trim()
}

/// The first offered form in the client's order, and whether it is a list form.
fn negotiate(
    headers: &HeaderMap,
    pretty: Option<&str>,
    offers: Offers,
    has_protobuf: bool,
    media_types: MediaTypes,
) -> Option<(Accepted, bool)> {
    let header = header_of(headers);
    let pretty = is_pretty(headers, pretty);
    if header.is_empty() {
        return Some((Accepted { pretty, ..Accepted::JSON }, false));
    }
    accept_clauses(header).iter().find_map(|clause| {
        let parameter = |name| clause.parameter(name);
        media_types.matching(clause).find_map(|media_type| {
            let stream = parameter("stream").filter(|stream| !stream.is_empty());
            if stream.is_some_and(|stream| stream != "watch" || media_type == MediaType::Yaml) {
                return None;
            }
            let (transform, is_of_list) = match (parameter("as"), parameter("g"), parameter("v")) {
                (None | Some(""), None | Some(""), None | Some("")) => (None, false),
                asked => {
                    let (transform, version, is_of_list) = transform(asked, media_type, offers)?;
                    (Some((transform, version)), is_of_list)
                }
            };
            if transform.is_none() && media_type == MediaType::Protobuf && !has_protobuf {
                return None;
            }
            let pretty = pretty || parameter("pretty").is_some_and(|value| value == "1" || value == "true");
            Some((Accepted { media_type, transform, pretty, refusal: None }, is_of_list))
        })
    })
}

/// The transformation that `as`, `g` and `v` name, if the endpoint offers it in the media type, and whether it is a
/// list.
fn transform(
    (kind, group, version): (Option<&str>, Option<&str>, Option<&str>),
    media_type: MediaType,
    offers: Offers,
) -> Option<(Transform, String, bool)> {
    let version = version.filter(|version| matches!(*version, "v1" | "v1beta1"))?;
    if group != Some("meta.k8s.io") || offers == Offers::Plain {
        return None;
    }
    let (transform, is_of_list) = match kind? {
        "Table" if matches!(media_type, MediaType::Json | MediaType::Yaml) && offers != Offers::Answer => {
            (Transform::Table, false)
        }
        "PartialObjectMetadata" => (Transform::PartialObjectMetadata, false),
        "PartialObjectMetadataList" => (Transform::PartialObjectMetadata, true),
        _ => return None,
    };
    Some((transform, version.to_owned(), is_of_list))
}

/// The 406 of an endpoint that offers only these media types.
pub fn only(available: &[&str]) -> Status {
    Status::not_acceptable(format!("only the following media types are accepted: {}", available.join(", ")))
}

/// The 406 with the available media types.
pub fn not_acceptable_of(available: &[&str]) -> Status {
    let mut status = Status::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {}",
        available.join(", ")
    ));
    status.details = Some(Default::default());
    status
}

/// Whether JSON is indented, by the parameter `pretty` or for its client.
pub(crate) fn is_pretty(headers: &HeaderMap, pretty: Option<&str>) -> bool {
    match pretty {
        None | Some("") => is_tool_for_people(headers),
        Some(value) => parse_bool(value).unwrap_or_default(),
    }
}

/// Whether the client is a browser, curl or wget: these get indented JSON by default.
fn is_tool_for_people(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix.as_bytes()))
}

/// The media type of a request's body.
///
/// # Errors
/// 415 when the server does not support it.
pub fn content_type(headers: &HeaderMap, media_types: MediaTypes) -> Result<MediaType, Status> {
    let text = content_type_of(headers);
    if text.is_empty() {
        return Ok(MediaType::Json);
    }
    let known = media_type(text).and_then(|name| media_types.parse(name));
    known.ok_or_else(|| unsupported_media_type(&media_types.names()))
}

/// The media type of a patch as `Content-Type` names it, without parameters, which are not read; empty without the
/// header.
pub(crate) fn body_media_type(headers: &HeaderMap) -> &str {
    content_type_of(headers).split(';').next().unwrap_or_default().trim()
}

/// The text of `Content-Type`; empty without the header.
pub(crate) fn content_type_of(headers: &HeaderMap) -> &str {
    header_text(headers, header::CONTENT_TYPE)
}

/// The media type of an applied configuration: YAML, and so also JSON.
const APPLY_PATCH: &str = PatchType::Apply.media_type();
/// The media type of an applied configuration in CBOR.
const APPLY_PATCH_CBOR: &str = PatchType::ApplyCbor.media_type();

/// The encoding of an applied configuration, if the request has one.
pub(crate) fn apply_type(headers: &HeaderMap, media_types: MediaTypes) -> Option<MediaType> {
    match body_media_type(headers) {
        APPLY_PATCH => Some(MediaType::Yaml),
        APPLY_PATCH_CBOR if media_types.cbor => Some(MediaType::Cbor),
        _ => None,
    }
}

/// The 415 with the supported media types.
pub fn unsupported_media_type(accepted: &[&str]) -> Status {
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiate(accept: &str) -> Result<Accepted, Status> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_bytes(accept.as_bytes()).unwrap());
        accepted(&headers, None, Offers::Object, MediaTypes::COMMON)
    }

    #[test]
    fn json_is_indented_for_tools_of_people() {
        for (agent, pretty) in
            [("curl/8", true), ("Mozilla/5.0 \u{e9}", true), ("kubectl/v1", false), ("a curl", false)]
        {
            let agent = HeaderValue::from_bytes(agent.as_bytes()).unwrap();
            let headers = HeaderMap::from_iter([(header::USER_AGENT, agent.clone())]);
            assert_eq!(is_pretty(&headers, None), pretty, "{agent:?}");
            assert!(!is_pretty(&headers, Some("0")), "{agent:?}");
        }
    }

    #[test]
    fn clauses_are_tried_in_the_order_of_quality() {
        let rows = [
            ("", Some(MediaType::Json)),
            ("*/*", Some(MediaType::Json)),
            ("application/*", Some(MediaType::Json)),
            ("application/JSON", None),
            ("application/yaml;stream=watch", None),
            ("application/json;stream=other", None),
            ("application/vnd.kubernetes.protobuf;stream=watch", Some(MediaType::Protobuf)),
            ("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", None),
            ("application/json;as=PartialObjectMetadata", None),
            ("application/json;", Some(MediaType::Json)),
            ("application/json;;pretty;as=;a=b=c", Some(MediaType::Json)),
            ("application/json;as=\"Table\";v=v1;g=meta.k8s.io", None),
            ("application/json;q=high,application/yaml;q=0.1", Some(MediaType::Yaml)),
            ("text/html", None),
            ("\u{e9}", None),
            ("\u{e9},application/yaml", Some(MediaType::Yaml)),
            ("text/html,*/*;q=0.8", Some(MediaType::Json)),
            ("application/json;q=0.1,application/yaml;q=0.9", Some(MediaType::Yaml)),
            ("application/vnd.kubernetes.protobuf,application/json", Some(MediaType::Protobuf)),
            ("application/json;as=Nonsense;g=meta.k8s.io;v=v1", None),
            // Clauses with wildcards are last, whatever their quality.
            ("*/*,application/yaml", Some(MediaType::Yaml)),
            ("application/*,application/yaml", Some(MediaType::Yaml)),
            ("*/*;q=0.9,application/yaml;q=0.1", Some(MediaType::Yaml)),
            ("*", Some(MediaType::Json)),
            ("application / yaml", Some(MediaType::Yaml)),
            ("application", None),
            ("application/yaml;q= 0.9,application/json;q=0.5", Some(MediaType::Json)),
            ("application/yaml;q==,application/json;q=0.5", Some(MediaType::Json)),
        ];
        for (header, want) in rows {
            assert_eq!(negotiate(header).ok().map(|accepted| accepted.media_type), want, "{header}");
        }
        let table = negotiate("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap();
        assert_eq!(table.transform, Some((Transform::Table, "v1".to_owned())));
        // The last of several parameters with one name counts.
        let table =
            negotiate("application/json;as=PartialObjectMetadata;as=Table;v=v1;g=meta.k8s.io").unwrap();
        assert_eq!(table.transform, Some((Transform::Table, "v1".to_owned())));
    }

    #[test]
    fn a_body_whose_media_type_has_malformed_parameters_is_refused() {
        for (text, expected) in [
            ("", Some(MediaType::Json)),
            ("application/yaml; charset=utf-8", Some(MediaType::Yaml)),
            ("application/json;", Some(MediaType::Json)),
            ("application/json;x", None),
            ("application/json;x=", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, text.parse().unwrap());
            assert_eq!(content_type(&headers, MediaTypes::COMMON).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_form_that_a_resource_does_not_have_is_named_in_the_refusal() {
        const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
        const ONLY: &str = "only the following media types are accepted: application/json, application/yaml, \
                            application/vnd.kubernetes.protobuf";
        const ROUTED: &str = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                              application/vnd.kubernetes.protobuf";
        let check = |accept: &str, offers: Offers, is_built_in: bool, expected: Result<MediaType, &str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            let answers = Answers {
                offers,
                route: is_built_in.then_some(Route::Plain),
                has_protobuf: is_built_in,
                media_types: MediaTypes::COMMON,
                go_type: &|| if is_built_in { "core.Thing" } else { UNSTRUCTURED }.to_owned(),
            };
            let got = accepted_of(&headers, None, answers);
            let refused = |accepted: Accepted| {
                accepted.refusal.map_or(Ok(accepted.media_type), |refusal| Err(*refusal))
            };
            let got = got.and_then(refused).map_err(|status| status.message);
            assert_eq!(got, expected.map_err(str::to_owned), "{accept} {offers:?} {is_built_in}");
        };
        let partial = |kind: &str| format!("{PROTOBUF};as={kind};v=v1;g=meta.k8s.io");
        let (one, list) = (partial("PartialObjectMetadata"), partial("PartialObjectMetadataList"));
        check(PROTOBUF, Offers::Object, true, Ok(MediaType::Protobuf));
        check(PROTOBUF, Offers::Object, false, Err(ONLY));
        check(&one, Offers::Object, false, Ok(MediaType::Protobuf));
        check(&list, Offers::List, true, Ok(MediaType::Protobuf));
        let is_list = "you requested PartialObjectMetadata, but the requested object is a list (*core.Thing)";
        check(&format!("{one},application/json"), Offers::List, true, Err(is_list));
        let is_no_list =
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Thing)";
        check(&list, Offers::Object, true, Err(is_no_list));
        check(&list, Offers::Object, false, Err("content is not a list"));
        check(&one, Offers::Answer, true, Ok(MediaType::Protobuf));
        check(&list, Offers::Answer, true, Err(is_no_list));
        check("application/json;as=Table;v=v1;g=meta.k8s.io", Offers::Answer, true, Err(ONLY));
        check(&partial("Table"), Offers::List, true, Err(ONLY));
        check("text/html", Offers::List, true, Err(ROUTED));
        check("text/html", Offers::List, false, Err(ONLY));
        check("application/*", Offers::List, true, Err(ROUTED));
        check("application/*", Offers::List, false, Ok(MediaType::Json));
    }

    #[test]
    fn the_route_of_lists_has_the_types_of_streams() {
        let check = |accept: &str, cbor: bool, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            let refused = routed(&headers, Route::WithStreams, MediaTypes::of_resources(cbor)).err();
            let end = refused.as_ref().map(|status| status.message.rsplit("protobuf, ").next().unwrap());
            assert_eq!(end, expected, "{accept} {cbor}");
        };
        let streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        check("text/html", false, Some(streams));
        check("text/html", true, Some(&format!("application/cbor, {streams}, application/cbor-seq")));
        check("application/json;stream=watch", false, None);
        check("application/cbor-seq", false, Some(streams));
        check("application/cbor-seq", true, None);
    }
}
