//! Serves documents with conditional requests and byte ranges, as Go's `http.ServeContent` does (RFC 9110, sections 13
//! and 14).
//!
//! A request for several ranges gets the whole document, as the RFC allows.

use crate::base::{
    body::Body,
    response::{Response, text},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::{
    ops::Range,
    time::{SystemTime, UNIX_EPOCH},
};

/// Documents up to this length, in bytes, are sent in one piece.
const SENT_WHOLE: usize = 64 * 1024;

/// The content of a document, in pieces that are made as they are sent.
pub struct Content {
    /// The length of all pieces together.
    pub length: usize,
    /// The pieces.
    pub pieces: Box<dyn Iterator<Item = Bytes> + Send>,
}

impl Default for Content {
    fn default() -> Content {
        Content { length: 0, pieces: Box::new(std::iter::empty()) }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Content {
        Content { length: bytes.len(), pieces: Box::new(std::iter::once(bytes)) }
    }
}

impl Content {
    fn slice(self, range: Range<usize>) -> Content {
        let length = range.len();
        let mut at = 0;
        let pieces = self.pieces.filter_map(move |piece| {
            let within = |place: usize| place.saturating_sub(at).min(piece.len());
            let part = within(range.start)..within(range.end);
            at += piece.len();
            (!part.is_empty()).then(|| piece.slice(part))
        });
        Content { length, pieces: Box::new(pieces) }
    }
}

/// Answers a request of any method with a document that was last modified at `made`.
///
/// Only a GET or a HEAD is told that the document was not modified; other methods fail where an entity tag is known, and
/// ignore `If-Modified-Since` and `If-Range`. `response` has the headers of the answer. Conditions are compared with its `ETag`. A response with a
/// `Content-Encoding` is encoded already and is served whole. `content` is called only if the document is sent.
pub fn serve_content(
    method: &Method,
    request: &HeaderMap,
    mut response: Response,
    made: SystemTime,
    content: impl FnOnce() -> Content,
) -> Response {
    let made = truncated(made);
    insert(response.headers_mut(), header::LAST_MODIFIED, &httpdate::fmt_http_date(made));
    let etag = response.headers().get(header::ETAG).cloned();
    let reads = [Method::GET, Method::HEAD].contains(method);
    let conditions = Conditions { reads, request, etag, made };
    match conditions.outcome() {
        Outcome::Send => {}
        Outcome::NotModified => {
            let headers = response.headers_mut();
            headers.remove(header::CONTENT_TYPE);
            headers.remove(header::CONTENT_ENCODING);
            if headers.contains_key(header::ETAG) {
                headers.remove(header::LAST_MODIFIED);
            }
            return with(response, StatusCode::NOT_MODIFIED, Content::default());
        }
        Outcome::Failed => return with(response, StatusCode::PRECONDITION_FAILED, Content::default()),
    }
    let content = content();
    let is_encoded = response.headers().contains_key(header::CONTENT_ENCODING);
    let range = match is_encoded {
        true => Ok(None),
        false => range_of(conditions.range(), content.length),
    };
    response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    match range {
        Ok(None) => with(response, StatusCode::OK, content),
        Ok(Some(range)) => {
            let last = range.end.saturating_sub(1);
            let text = format!("bytes {}-{last}/{}", range.start, content.length);
            insert(response.headers_mut(), header::CONTENT_RANGE, &text);
            with(response, StatusCode::PARTIAL_CONTENT, content.slice(range))
        }
        Err(error) => error.response(content.length),
    }
}

/// Truncates a time to whole seconds, and to 1970 at the earliest, as HTTP dates require.
fn truncated(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + std::time::Duration::from_secs(since.as_secs())
}

fn with(mut response: Response, code: StatusCode, content: Content) -> Response {
    *response.status_mut() = code;
    let Content { length, pieces } = content;
    *response.body_mut() = match length <= SENT_WHOLE {
        true => Body::from(Bytes::from(pieces.collect::<Vec<_>>().concat())),
        false => {
            insert(response.headers_mut(), header::CONTENT_LENGTH, &length.to_string());
            Body::stream(futures_util::stream::iter(pieces))
        }
    };
    response
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// The result of a request's conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Send,
    NotModified,
    Failed,
}

/// The conditional headers of a request, and the values that they are compared with.
struct Conditions<'a> {
    /// Whether the method is GET or HEAD.
    reads: bool,
    request: &'a HeaderMap,
    etag: Option<HeaderValue>,
    made: SystemTime,
}

impl Conditions<'_> {
    fn outcome(&self) -> Outcome {
        let holds = match self.text(header::IF_MATCH) {
            Some(tags) => self.names_etag(tags, is_strong_match),
            None => self.date(header::IF_UNMODIFIED_SINCE).is_none_or(|date| self.made <= date),
        };
        let is_known = match self.text(header::IF_NONE_MATCH) {
            Some(tags) => self.names_etag(tags, is_weak_match),
            None => self.reads && self.date(header::IF_MODIFIED_SINCE).is_some_and(|date| self.made <= date),
        };
        match (holds, is_known) {
            (false, _) => Outcome::Failed,
            (true, true) if self.reads => Outcome::NotModified,
            (true, true) => Outcome::Failed,
            (true, false) => Outcome::Send,
        }
    }

    /// The requested range, unless `If-Range` names another state of the document.
    fn range(&self) -> Option<&str> {
        let is_current = match self.text(header::IF_RANGE).filter(|_| self.reads) {
            None => true,
            Some(text) => match next_etag(text) {
                Some((tag, _)) => is_strong_match(tag, self.etag()),
                None => self.date(header::IF_RANGE) == Some(self.made),
            },
        };
        self.text(header::RANGE).filter(|_| is_current)
    }

    fn text(&self, name: HeaderName) -> Option<&str> {
        self.request.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty())
    }

    fn date(&self, name: HeaderName) -> Option<SystemTime> {
        self.text(name).and_then(|text| httpdate::parse_http_date(text).ok())
    }

    fn etag(&self) -> &str {
        self.etag.as_ref().and_then(|etag| etag.to_str().ok()).unwrap_or_default()
    }

    /// Whether a list of entity tags has the document's tag, or is `*`. Parsing stops at a malformed tag.
    fn names_etag(&self, tags: &str, is_match: fn(&str, &str) -> bool) -> bool {
        let mut rest = tags;
        loop {
            rest = rest.trim_start_matches([',', ' ', '\t']);
            if rest.starts_with('*') {
                return true;
            }
            match next_etag(rest) {
                Some((tag, _)) if is_match(tag, self.etag()) => return true,
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
}

/// Splits the entity tag off the start of a text.
fn next_etag(text: &str) -> Option<(&str, &str)> {
    let start = if text.starts_with("W/") { 2 } else { 0 };
    let opaque = text.get(start..)?.strip_prefix('"')?;
    let length =
        opaque.find(|character: char| character == '"' || character <= ' ' || character == '\x7f')?;
    opaque.get(length..)?.starts_with('"').then_some(())?;
    text.split_at_checked(start + 1 + length + 1)
}

fn is_strong_match(tag: &str, own: &str) -> bool {
    tag == own && tag.starts_with('"')
}

fn is_weak_match(tag: &str, own: &str) -> bool {
    let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    opaque(tag) == opaque(own)
}

/// The reason why a range cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeError {
    Malformed,
    NoOverlap,
}

impl RangeError {
    fn response(self, size: usize) -> Response {
        let message = match self {
            RangeError::Malformed => "invalid range\n",
            RangeError::NoOverlap => "invalid range: failed to overlap\n",
        };
        let mut response = text(416, message);
        let headers = response.headers_mut();
        headers.remove(header::CACHE_CONTROL);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if self == RangeError::NoOverlap {
            insert(headers, header::CONTENT_RANGE, &format!("bytes */{size}"));
        }
        response
    }
}

/// The single range that a `Range` header requests, in bytes; `None` for no range and for several.
fn range_of(header: Option<&str>, size: usize) -> Result<Option<Range<usize>>, RangeError> {
    let Some(header) = header else { return Ok(None) };
    let list = header.strip_prefix("bytes=").ok_or(RangeError::Malformed)?;
    let (mut ranges, mut has_missed) = (Vec::new(), false);
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').ok_or(RangeError::Malformed)?;
        match one_range(first.trim(), last.trim(), size)? {
            Some(range) => ranges.push(range),
            None => has_missed = true,
        }
    }
    match (ranges.len(), has_missed) {
        (0, true) if size > 0 => Err(RangeError::NoOverlap),
        (1, _) => Ok(ranges.pop()),
        _ => Ok(None),
    }
}

/// Parses one range of a header; `None` when it begins beyond the end.
fn one_range(first: &str, last: &str, size: usize) -> Result<Option<Range<usize>>, RangeError> {
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u64>().map(|number| usize::try_from(number).unwrap_or(usize::MAX)).ok(),
        false => None,
    };
    let number = |text: &str| number(text).ok_or(RangeError::Malformed);
    if first.is_empty() {
        let length = number(last)?.min(size);
        return Ok(Some(size - length..size));
    }
    let first = number(first)?;
    if first >= size {
        return Ok(None);
    }
    if last.is_empty() {
        return Ok(Some(first..size));
    }
    let last = number(last)?;
    match first > last {
        true => Err(RangeError::Malformed),
        false => Ok(Some(first..last.saturating_add(1).min(size))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::response::with_content_type;

    const MADE: &str = "Fri, 02 Jan 2026 03:04:05 GMT";
    const EARLIER: &str = "Fri, 02 Jan 2026 03:04:04 GMT";

    /// The answer to a request for `0123456789` with the tag `"a"`: code, content range and content.
    fn ask(headers: &[(HeaderName, &str)]) -> (u16, String, String) {
        ask_by(&Method::GET, headers)
    }

    fn ask_by(method: &Method, headers: &[(HeaderName, &str)]) -> (u16, String, String) {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        let mut response = with_content_type(200, "text/plain", Bytes::new());
        response.headers_mut().insert(header::ETAG, HeaderValue::from_static("\"a\""));
        let made = httpdate::parse_http_date(MADE).unwrap() + std::time::Duration::from_millis(900);
        let response = serve_content(method, &headers, response, made, || {
            let pieces = ["012", "345", "6789"].map(|piece| Bytes::from_static(piece.as_bytes()));
            Content { length: 10, pieces: Box::new(pieces.into_iter()) }
        });
        let text = |name| {
            let value = response.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap());
            value.unwrap_or_default().to_owned()
        };
        let (code, range) = (response.status().as_u16(), text(header::CONTENT_RANGE));
        if code == 200 {
            assert_eq!(
                (text(header::LAST_MODIFIED).as_str(), text(header::ACCEPT_RANGES).as_str()),
                (MADE, "bytes")
            );
        }
        let Body::Full(body) = response.into_body() else { panic!("a whole body") };
        (code, range, String::from_utf8(body.unwrap_or_default().to_vec()).unwrap())
    }

    #[test]
    fn conditions_are_those_of_the_rfc() {
        let check = |headers: &[(HeaderName, &str)], code: u16| {
            assert_eq!(ask(headers).0, code, "{headers:?}");
        };
        check(&[], 200);
        check(&[(header::IF_NONE_MATCH, "\"a\"")], 304);
        check(&[(header::IF_NONE_MATCH, "\"b\", W/\"a\"")], 304);
        check(&[(header::IF_NONE_MATCH, "*")], 304);
        check(&[(header::IF_NONE_MATCH, "\"b\"")], 200);
        check(&[(header::IF_NONE_MATCH, "b, \"a\"")], 200);
        check(&[(header::IF_NONE_MATCH, "\"b\""), (header::IF_MODIFIED_SINCE, MADE)], 200);
        check(&[(header::IF_MODIFIED_SINCE, MADE)], 304);
        check(&[(header::IF_MODIFIED_SINCE, EARLIER)], 200);
        check(&[(header::IF_MODIFIED_SINCE, "yesterday")], 200);
        check(&[(header::IF_MATCH, "\"b\", \"a\"")], 200);
        check(&[(header::IF_MATCH, "W/\"a\"")], 412);
        check(&[(header::IF_UNMODIFIED_SINCE, EARLIER)], 412);
        check(&[(header::IF_UNMODIFIED_SINCE, MADE)], 200);
    }

    #[test]
    fn a_method_that_does_not_read_is_not_told_that_nothing_was_modified() {
        let check = |method: Method, header: HeaderName, value: &str, code: u16| {
            assert_eq!(ask_by(&method, &[(header.clone(), value)]).0, code, "{method} {header}: {value}");
        };
        check(Method::HEAD, header::IF_NONE_MATCH, "*", 304);
        check(Method::OPTIONS, header::IF_NONE_MATCH, "*", 412);
        check(Method::POST, header::IF_NONE_MATCH, "\"a\"", 412);
        check(Method::POST, header::IF_NONE_MATCH, "\"b\"", 200);
        check(Method::POST, header::IF_MODIFIED_SINCE, MADE, 200);
        let range = [(header::RANGE, "bytes=0-0"), (header::IF_RANGE, EARLIER)];
        assert_eq!(ask_by(&Method::POST, &range).0, 206);
    }

    #[test]
    fn one_range_is_served() {
        let check = |range: &str, code: u16, content_range: &str, content: &str| {
            let expected = (code, content_range.to_owned(), content.to_owned());
            assert_eq!(ask(&[(header::RANGE, range)]), expected, "{range}");
        };
        check("bytes=2-4", 206, "bytes 2-4/10", "234");
        check("bytes=8-", 206, "bytes 8-9/10", "89");
        check("bytes=-3", 206, "bytes 7-9/10", "789");
        check("bytes=5-99999999999999999999", 416, "", "invalid range\n");
        check("bytes=5-99", 206, "bytes 5-9/10", "56789");
        check("bytes= 1 - 1 ,", 206, "bytes 1-1/10", "1");
        check("bytes=0-1,4-5", 200, "", "0123456789");
        check("bytes=20-,0-0", 206, "bytes 0-0/10", "0");
        check("bytes=", 200, "", "0123456789");
        check("bytes=10-", 416, "bytes */10", "invalid range: failed to overlap\n");
        for malformed in ["lines=1-2", "bytes=1", "bytes=4-2", "bytes=-", "bytes=+1-2", "bytes=--1"] {
            check(malformed, 416, "", "invalid range\n");
        }
    }

    #[test]
    fn a_range_of_another_state_is_ignored() {
        let check = |if_range: &str, code: u16| {
            let headers = [(header::RANGE, "bytes=0-0"), (header::IF_RANGE, if_range)];
            assert_eq!(ask(&headers).0, code, "{if_range}");
        };
        check("\"a\"", 206);
        check("W/\"a\"", 200);
        check(MADE, 206);
        check(EARLIER, 200);
    }
}
