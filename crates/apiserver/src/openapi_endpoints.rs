//! Serves OpenAPI documents: `/openapi/v2`, `/openapi/v3` and the documents below it.

use crate::{
    base::{
        body::Body,
        content::{Content, serve_content},
        negotiation::accept_clauses,
        query::Query,
        request::{Request, path_of},
        response::{Response, empty, with_content_type},
    },
    server::PlainEndpoints,
};
use http::{HeaderMap, HeaderValue, Method, header};
use jiff::{SignedDuration, Timestamp};
use pintle_offload::aside;
use pintle_openapi::{Document, OpenApi};
use std::{thread::available_parallelism, time::SystemTime};
use tokio::sync::Semaphore;

const JSON: &str = "application/json";
const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
/// How long clients may cache a document that was requested by its hash.
const A_YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

/// Serves the documents of an [`OpenApi`].
pub struct OpenApiEndpoints {
    documents: OpenApi,
    /// A document is built once, by the first request for it; the others for it block their thread meanwhile.
    turns: Semaphore,
}

impl OpenApiEndpoints {
    /// Answers as many requests at a time as there are processors.
    pub fn new(documents: OpenApi) -> OpenApiEndpoints {
        let turns = Semaphore::new(available_parallelism().map_or(2, usize::from).max(2));
        OpenApiEndpoints { documents, turns }
    }
}

/// The encodings of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf,
}

impl PlainEndpoints for OpenApiEndpoints {
    fn turns(&self, request: &Request) -> Option<&Semaphore> {
        path_of(request.uri()).starts_with("/openapi/").then_some(&self.turns)
    }

    fn serve(&self, request: &Request) -> Option<Response> {
        let path = path_of(request.uri());
        let path = path.strip_prefix("/openapi/")?;
        // The documents are served for every method.
        let (method, headers) = (request.method(), request.headers());
        match path {
            "v2" => Some(aside(|| self.v2(method, headers))),
            // Kube-apiserver sends the index as plain text.
            "v3" => {
                let response = with_content_type(200, "text/plain; charset=utf-8", Body::empty());
                // The index may change twice within a second, which dates cannot express.
                let mut headers = headers.clone();
                headers.remove(header::IF_MODIFIED_SINCE);
                Some(serve_content(method, &headers, response, SystemTime::now(), || {
                    aside(|| self.documents.v3_index()).into()
                }))
            }
            _ => {
                let key = path.strip_prefix("v3/")?;
                let query = Query::parse(request.uri().query().unwrap_or_default());
                let hash = query.first("hash").filter(|hash| !hash.is_empty());
                Some(aside(|| self.v3(key, hash, method, headers)))
            }
        }
    }

    fn paths(&self) -> Vec<String> {
        ["/openapi/v2", "/openapi/v3", "/openapi/v3/"].map(str::to_owned).into()
    }
}

impl OpenApiEndpoints {
    fn v2(&self, method: &Method, headers: &HeaderMap) -> Response {
        match wanted_form(headers, "v2") {
            Ok(Form::Json) => document(&self.documents.v2(), JSON, method, headers),
            Ok(Form::Protobuf) => document(&self.documents.v2_protobuf(), V2_PROTOBUF, method, headers),
            Err(_) => {
                let mut response = empty(406);
                response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
                response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
                response
            }
        }
    }

    fn v3(&self, key: &str, hash: Option<&str>, method: &Method, headers: &HeaderMap) -> Response {
        let form = match wanted_form(headers, "v3") {
            Ok(form) => form,
            Err(_) if self.documents.v3_document(key).is_none() => return empty(404),
            // Kube-apiserver then answers nothing at all.
            Err(Refusal::NoMediaRange) => return empty(200),
            Err(Refusal::NotAcceptable) => {
                let mut response = empty(406);
                response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
                return response;
            }
        };
        let (found, content_type) = match form {
            Form::Json => (self.documents.v3_document(key), JSON),
            Form::Protobuf => (self.documents.v3_document_protobuf(key), V3_PROTOBUF),
        };
        let Some(found) = found else { return empty(404) };
        match hash {
            None => document(&found, content_type, method, headers),
            Some(hash) if hash == found.hash() => {
                let mut response = document(&found, content_type, method, headers);
                let forever = HeaderValue::from_static("public, immutable");
                response.headers_mut().insert(header::CACHE_CONTROL, forever);
                insert(response.headers_mut(), header::EXPIRES, &expiry());
                response
            }
            // The document has changed since the client read the index.
            Some(_) => {
                let mut response = with_content_type(301, content_type, Body::empty());
                let own = response.headers_mut();
                insert(own, header::LOCATION, &format!("/openapi/v3/{key}?hash={}", found.hash()));
                insert(own, header::ETAG, &format!("\"{}\"", found.hash()));
                own.insert(header::VARY, HeaderValue::from_static("Accept"));
                response
            }
        }
    }
}

/// The accepted form with the highest quality. The protobuf media types have an older spelling with `@`.
fn wanted_form(headers: &HeaderMap, version: &str) -> Result<Form, Refusal> {
    let accept = headers.get(header::ACCEPT).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let accept = accept.unwrap_or_default();
    if accept.is_empty() {
        return Ok(Form::Json);
    }
    let protobuf =
        [".", "@"].map(|mark| format!("com.github.proto-openapi.spec.{version}{mark}v1.0+protobuf"));
    let clauses = accept_clauses(&accept);
    if clauses.is_empty() {
        return Err(Refusal::NoMediaRange);
    }
    let form = clauses.iter().find_map(|clause| match clause.subtype {
        _ if !matches!(clause.kind, "application" | "*") => None,
        "json" | "*" => Some(Form::Json),
        subtype => protobuf.iter().any(|protobuf| protobuf == subtype).then_some(Form::Protobuf),
    });
    form.ok_or(Refusal::NotAcceptable)
}

/// The reason why there is no accepted form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// `Accept` has no media range.
    NoMediaRange,
    /// The media ranges are those of other forms.
    NotAcceptable,
}

/// The response with a document, compressed for clients that accept gzip.
fn document(document: &Document, content_type: &str, method: &Method, headers: &HeaderMap) -> Response {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let gzip = text(header::ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "gzip");
    let mut response = with_content_type(200, content_type, Body::empty());
    let own = response.headers_mut();
    if gzip {
        own.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    insert(own, header::ETAG, &format!("\"{}\"", document.hash()));
    own.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    own.append(header::VARY, HeaderValue::from_static("Accept"));
    serve_content(method, headers, response, document.made(), || match gzip {
        true => {
            let pieces = document.gzip_pieces();
            Content {
                length: pieces.iter().map(|piece| piece.len()).sum(),
                pieces: Box::new(pieces.into_iter()),
            }
        }
        false => Content { length: document.length(), pieces: Box::new(document.pieces()) },
    })
}

/// The expiry date of a document that was requested by its hash.
fn expiry() -> String {
    let expiry = Timestamp::now().saturating_add(A_YEAR).unwrap_or(Timestamp::MAX);
    expiry.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn insert(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_media_range_of_a_form_decides() {
        let check = |accept: &str, expected: Result<Form, Refusal>| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())]);
            assert_eq!(wanted_form(&headers, "v3"), expected, "{accept}");
        };
        for accept in ["", "*", "*/*", "*/json", "application/*", "garbage, application/json;q=0"] {
            check(accept, Ok(Form::Json));
        }
        check("text/html,application/com.github.proto-openapi.spec.v3@v1.0+protobuf", Ok(Form::Protobuf));
        for accept in ["text/*", "application/yaml", "APPLICATION/JSON", "/json", "text/plain, garbage"] {
            check(accept, Err(Refusal::NotAcceptable));
        }
        for accept in ["garbage", ";", ",", "/", "a/b/c", "application/"] {
            check(accept, Err(Refusal::NoMediaRange));
        }
    }
}
