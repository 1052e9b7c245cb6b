//! Rewrites the links of HTML pages, so that they lead through the proxy.

use crate::{
    backend_body::{BackendBody, BackendBodyError},
    body::Relayed,
    html::{Tag, Token, tokens},
};
use bytes::{Bytes, BytesMut};
use flate2::{
    Compression,
    read::{DeflateDecoder, GzDecoder},
    write::{DeflateEncoder, GzEncoder},
};
use http::{HeaderMap, header};
use http_body::Body;
use http_body_util::BodyExt;
use pintle_go_forms::{Url, clean_path};
use std::{
    borrow::Cow,
    io::{self, Read, Write},
    str,
};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The size of the largest page that is rewritten, packed or not, in bytes. A larger one passes unchanged.
const MAX_PAGE_BYTES: usize = 2 << 20;
/// A page of up to this many bytes needs no permit.
const SMALL_PAGE_BYTES: usize = 64 << 10;
/// How many larger pages are rewritten at once; further ones pass unchanged.
static LARGE_PAGES: Semaphore = Semaphore::const_new(16);

/// The address that rewritten links lead to.
pub(crate) struct Links<'a> {
    /// The scheme; "" for links without scheme and host.
    pub(crate) scheme: &'a str,
    /// Host and port.
    pub(crate) host: &'a str,
    /// Host and port of the page itself.
    pub(crate) page_host: &'a str,
    /// Host and port of which the page was requested.
    pub(crate) requested_host: &'a str,
    /// The part of the client's path that the backend does not see.
    pub(crate) prefix: &'a str,
}

impl Links<'_> {
    /// The rewritten form of a link. Links to other hosts and relative ones lead where they did.
    pub(crate) fn rewrite(&self, mut url: Url) -> String {
        let host = url.host();
        let is_elsewhere = !host.is_empty() && host != self.page_host && host != self.requested_host;
        if is_elsewhere || !url.path().starts_with(b"/") {
            return url.to_string();
        }
        // A link to the host that the client asked leads there already.
        if host != self.requested_host || !self.host.is_empty() {
            url.set_origin(self.scheme, self.host);
        }
        if !url.path().starts_with(self.prefix.as_bytes()) {
            let path = String::from_utf8_lossy(url.path()).into_owned();
            let mut joined = clean_path(&format!("{}/{path}", self.prefix));
            if path.ends_with('/') {
                joined.push('/');
            }
            url.set_path(joined.into_bytes());
        }
        url.to_string()
    }
}

/// Whether a response is a page.
pub(crate) fn is_page(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    let media_type = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii() == b"text/html"
}

/// A page that was read.
pub(crate) enum Page {
    Rewritten(Bytes),
    /// It is too large, or encoded in an unknown way.
    Unchanged(Relayed),
}

/// Reads a page and rewrites its links.
///
/// # Errors
/// When the page does not arrive, or cannot be unpacked.
pub(crate) async fn rewrite_page(
    headers: &HeaderMap,
    mut body: BackendBody,
    links: &Links<'_>,
) -> Result<Page, String> {
    let packing = match headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"") => Packing::None,
        Some(b"gzip") => Packing::Gzip,
        Some(b"deflate") => Packing::Deflate,
        Some(_) => return Ok(Page::Unchanged(Relayed::new(Bytes::new(), body, None))),
    };
    let mut page = BytesMut::new();
    let mut permit: Option<SemaphorePermit<'_>> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken_off(&error))?.into_data() else { continue };
        page.extend_from_slice(&data);
        if page.len() > SMALL_PAGE_BYTES && permit.is_none() {
            permit = LARGE_PAGES.try_acquire().ok();
        }
        let has_room = page.len() <= SMALL_PAGE_BYTES || permit.is_some();
        if !has_room || page.len() > MAX_PAGE_BYTES || body.size_hint().lower() > MAX_PAGE_BYTES as u64 {
            return Ok(Page::Unchanged(Relayed::new(page.freeze(), body, None)));
        }
    }
    let page = page.freeze();
    let limit = if permit.is_some() { MAX_PAGE_BYTES } else { SMALL_PAGE_BYTES.max(8 * page.len()) };
    Ok(match packing.unpack(&page, limit)? {
        Some(text) => Page::Rewritten(packing.pack(&rewrite(&text, links))),
        None => Page::Unchanged(Relayed::new(page, body, None)),
    })
}

/// Why a page did not arrive, in the words of Go's readers.
fn broken_off(error: &BackendBodyError) -> String {
    match error {
        BackendBodyError::Packed(error) => malformed(error),
        BackendBodyError::Connection(_) => "unexpected EOF".to_owned(),
    }
}

/// The error of malformed compressed bytes, in the words of Go's readers.
fn malformed(error: &io::Error) -> String {
    let text = error.to_string();
    match text.as_str() {
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "unexpected EOF".to_owned(),
        "invalid gzip header" => "gzip: invalid header".to_owned(),
        _ if text.contains("checksum") => "gzip: invalid checksum".to_owned(),
        _ => text,
    }
}

/// The content encodings that are understood.
#[derive(Clone, Copy)]
enum Packing {
    None,
    Gzip,
    Deflate,
}

impl Packing {
    /// The text of a page; `None` when it has more than `limit` bytes.
    fn unpack(self, page: &[u8], limit: usize) -> Result<Option<Vec<u8>>, String> {
        let mut text = Vec::new();
        let limit = limit.min(MAX_PAGE_BYTES);
        let most = limit as u64 + 1;
        let read = match self {
            Packing::None => page.take(most).read_to_end(&mut text),
            Packing::Gzip if !page.starts_with(&[0x1f, 0x8b]) => {
                return Err("errorf making gzip reader: gzip: invalid header".to_owned());
            }
            Packing::Gzip => GzDecoder::new(page).take(most).read_to_end(&mut text),
            Packing::Deflate => DeflateDecoder::new(page).take(most).read_to_end(&mut text),
        };
        match read {
            Ok(_) => Ok((text.len() <= limit).then_some(text)),
            Err(error) => Err(malformed(&error)),
        }
    }

    fn pack(self, text: &[u8]) -> Bytes {
        // Writing to memory does not fail.
        let packed = match self {
            Packing::None => Ok(text.to_vec()),
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).and_then(|()| encoder.finish())
            }
            Packing::Deflate => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(text).and_then(|()| encoder.finish())
            }
        };
        packed.unwrap_or_default().into()
    }
}

/// Rewrites the links of a page. Every tag with attributes is written anew; all else stays as it was.
fn rewrite(page: &[u8], links: &Links<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.len() + page.len() / 8);
    for token in tokens(page) {
        match token {
            Token::Other(bytes) => out.extend_from_slice(bytes),
            Token::Tag(Tag { name, attributes, is_closed }) => {
                out.push(b'<');
                out.extend_from_slice(&name);
                for (key, value) in attributes {
                    let has_link = link_attributes(&name).contains(&key.as_slice());
                    // Texts that are no URL stay.
                    let link = has_link.then(|| link_text(&value)).flatten();
                    let link = link.and_then(|link| Url::parse(&link).ok()).map(|url| links.rewrite(url));
                    out.push(b' ');
                    out.extend_from_slice(&key);
                    out.extend_from_slice(b"=\"");
                    escape(link.map_or(value, String::into_bytes), &mut out);
                    out.push(b'"');
                }
                out.extend_from_slice(if is_closed { b"/>" } else { b">" });
            }
        }
    }
    out
}

/// A link of a page in another character set than UTF-8, such as Latin-1: outside of the query, URLs escape its bytes.
/// `None` for a query that is no text.
fn link_text(link: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = str::from_utf8(link) {
        return Some(Cow::Borrowed(text));
    }
    let (rest, fragment) = split(link, b'#');
    let (path, query) = split(rest, b'?');
    let query = str::from_utf8(query).ok()?;
    Some(Cow::Owned([&escaped(path), query, &escaped(fragment)].concat()))
}

/// The bytes in front of a mark, and the mark with those behind it.
fn split(text: &[u8], mark: u8) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| *byte == mark).unwrap_or(text.len()))
}

/// The text with percent-encoding of all that is not ASCII.
fn escaped(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text {
        match byte.is_ascii() {
            true => escaped.push(char::from(*byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn escape(text: Vec<u8>, out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'\r' => out.extend_from_slice(b"&#13;"),
            byte => out.push(byte),
        }
    }
}

/// The attributes of an element that are links (<https://html.spec.whatwg.org/multipage/indices.html#attributes-3>).
fn link_attributes(element: &[u8]) -> &'static [&'static [u8]] {
    match element {
        b"a" | b"area" | b"base" | b"link" => &[b"href"],
        b"applet" => &[b"codebase"],
        b"audio" | b"embed" | b"script" | b"source" => &[b"src"],
        b"blockquote" | b"del" | b"ins" | b"q" => &[b"cite"],
        b"body" => &[b"background"],
        b"button" => &[b"formaction"],
        b"command" => &[b"icon"],
        b"form" => &[b"action"],
        b"frame" | b"iframe" => &[b"longdesc", b"src"],
        b"head" => &[b"profile"],
        b"html" => &[b"manifest"],
        b"img" => &[b"longdesc", b"src", b"usemap"],
        b"input" => &[b"src", b"usemap", b"formaction"],
        b"object" => &[b"classid", b"codebase", b"data", b"usemap"],
        b"video" => &[b"poster", b"src"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: Links<'_> = Links {
        scheme: "https",
        host: "10.0.0.1:443",
        page_host: "10.0.0.1:443",
        requested_host: "10.0.0.1:443",
        prefix: "",
    };

    #[test]
    fn links_to_the_backend_lead_through_the_proxy() {
        let check = |page: &str, expected: &str| {
            let rewritten = rewrite(page.as_bytes(), &LINKS);
            assert_eq!(String::from_utf8_lossy(&rewritten), expected);
        };
        check(r#"<a href="/a">x</a>"#, r#"<a href="https://10.0.0.1:443/a">x</a>"#);
        check("<A HREF=/a?b=1&amp;c=2#d>", r#"<a href="https://10.0.0.1:443/a?b=1&amp;c=2#d">"#);
        check(r#"<a href="relative">"#, r#"<a href="relative">"#);
        check(r#"<a href="//other/p">"#, r#"<a href="//other/p">"#);
        check(r#"<a href="http://10.0.0.1:443/p">"#, r#"<a href="https://10.0.0.1:443/p">"#);
        check(r#"<a href="http://other/p">"#, r#"<a href="http://other/p">"#);
        check(r#"<a href="mailto:a@b"><a href="">"#, r#"<a href="mailto:a@b"><a href="">"#);
        check(
            r#"<img src='/i' alt='it"s' disabled/>"#,
            "<img src=\"https://10.0.0.1:443/i\" alt=\"it&#34;s\" disabled=\"\"/>",
        );
        check(r#"<p href="/a" >"#, r#"<p href="/a">"#);
        check("<a href=\":bad\">", "<a href=\":bad\">");
        check("<!-- <a href='/a'> --><!DOCTYPE html>", "<!-- <a href='/a'> --><!DOCTYPE html>");
        check(
            r#"<script src="/s">"<a href='/a'>"</script><q cite="/c">"#,
            r#"<script src="https://10.0.0.1:443/s">"<a href='/a'>"</script><q cite="https://10.0.0.1:443/c">"#,
        );
        check("1 < 2 <", "1 < 2 <");
        check("<a href=\"/unfinished", "");
    }

    #[test]
    fn links_in_other_character_sets_are_escaped() {
        let check = |page: &[u8], expected: &[u8]| {
            let rewritten = rewrite(page, &LINKS);
            assert_eq!(rewritten, expected, "{}", rewritten.escape_ascii());
        };
        check(
            b"<a href='/caf\xe9/\xc3\xa9?a=b#\xff'>",
            b"<a href=\"https://10.0.0.1:443/caf%E9/%C3%A9?a=b#%FF\">",
        );
        check(b"<a href='/a?\xe9'>", b"<a href=\"/a?\xe9\">");
        check(b"<a alt='/\xe9' href='caf\xe9'>", b"<a alt=\"/\xe9\" href=\"caf%E9\">");
    }

    #[test]
    fn a_prefix_is_added_once() {
        let links = Links { prefix: "/proxy", ..LINKS };
        let check = |link: &str, expected: &str| {
            assert_eq!(links.rewrite(Url::parse(link).unwrap()), expected);
        };
        check("/a/", "https://10.0.0.1:443/proxy/a/");
        check("/proxy/a?b#c", "https://10.0.0.1:443/proxy/a?b#c");
        check("a", "a");
    }

    #[test]
    fn links_without_an_origin_lead_to_the_server_that_the_client_asked() {
        let links =
            Links { scheme: "", host: "", requested_host: "api.example.com", prefix: "/proxy", ..LINKS };
        let check = |link: &str, expected: &str| {
            assert_eq!(links.rewrite(Url::parse(link).unwrap()), expected);
        };
        check("/a/?b#c", "/proxy/a/?b#c");
        check("http://10.0.0.1:443/a", "/proxy/a");
        check("https://api.example.com/a", "https://api.example.com/proxy/a");
        check("https://api.example.com/proxy/a", "https://api.example.com/proxy/a");
        check("https://example.com/a", "https://example.com/a");
        check("a", "a");
    }

    #[test]
    fn pages_are_unpacked_within_bounds() {
        let page = b"<p>text</p>".repeat(1000);
        for packing in [Packing::None, Packing::Gzip, Packing::Deflate] {
            let packed = packing.pack(&page);
            assert_eq!(packing.unpack(&packed, MAX_PAGE_BYTES).unwrap().unwrap(), page);
            assert!(packing.unpack(&packed, 1000).unwrap().is_none());
        }
        let bomb = Packing::Gzip.pack(&vec![b' '; 100 << 20]);
        assert!(bomb.len() < MAX_PAGE_BYTES);
        assert!(Packing::Gzip.unpack(&bomb, usize::MAX >> 1).unwrap().is_none());
        let error = Packing::Gzip.unpack(b"<p>", MAX_PAGE_BYTES).unwrap_err();
        assert_eq!(error, "errorf making gzip reader: gzip: invalid header");
        let error = malformed(&GzDecoder::new(&b"not packed at all"[..]).read(&mut [0]).unwrap_err());
        assert_eq!(error, "gzip: invalid header");
        assert_eq!(Packing::Gzip.unpack(&bomb[..20], MAX_PAGE_BYTES).unwrap_err(), "unexpected EOF");
    }
}
