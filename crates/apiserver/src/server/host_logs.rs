//! `/logs`: the files below a directory of the host, usually `/var/log`, as Go's file server sends them
//! (<https://pkg.go.dev/net/http#ServeFile>). Deprecated, and absent unless a flag asks for it.
//!
//! Deliberately absent: several ranges in one request, which get the whole file.

use crate::base::{
    body::Body,
    request::Request,
    response::{Response, empty, not_found, text, with_content_type},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use percent_encoding::percent_decode_str;
use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The most bytes of a file that are read at once.
const CHUNK: usize = 64 << 10;
/// The most entries of a directory that are listed.
const MAX_ENTRIES: usize = 10_000;
/// The bytes by which text is told from binary data, as in Go.
const SNIFFED: usize = 512;

/// The directory that is served.
#[derive(Debug, Clone)]
pub struct HostLogs {
    directory: PathBuf,
}

/// The directory or file at a path.
enum Found {
    Directory(String),
    File { file: File, name: String, begin: Vec<u8> },
}

impl HostLogs {
    /// Serves the files below `directory`. Symbolic links are followed, also out of it.
    pub fn new(directory: impl Into<PathBuf>) -> HostLogs {
        HostLogs { directory: directory.into() }
    }

    /// Answers a request; `None` for other paths.
    pub(super) async fn serve(&self, request: &Request) -> Option<Response> {
        let path = request.uri().path();
        let rest = match path.strip_prefix("/logs")? {
            "" => "",
            rest => rest.strip_prefix('/')?,
        };
        if *request.method() != Method::GET {
            return Some(text(405, "405: Method Not Allowed"));
        }
        let Ok(rest) = percent_decode_str(rest).decode_utf8() else { return Some(not_found()) };
        if rest.split(['/', '\\']).any(|part| part == "..") {
            return Some(text(400, "invalid URL path\n"));
        }
        if rest.contains('\0') {
            return Some(not_found());
        }
        let path = path.to_owned();
        let target = self.directory.join(rest.trim_start_matches('/'));
        let opened = tokio::task::spawn_blocking(move || open(&target)).await;
        Some(match opened.map_err(io::Error::other).and_then(|opened| opened) {
            Ok((metadata, found)) => respond(&path, request.headers(), &metadata, found),
            Err(error) => refuse(&error),
        })
    }
}

/// Opens a file or lists a directory. Other kinds of files, such as pipes, are not opened: that could block.
fn open(path: &Path) -> io::Result<(Metadata, Found)> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Ok((metadata, Found::Directory(listing(path)?)));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("no regular file"));
    }
    let mut file = File::open(path)?;
    let mut begin = Vec::new();
    Read::by_ref(&mut file).take(SNIFFED as u64).read_to_end(&mut begin)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((file.metadata()?, Found::File { file, name, begin }))
}

fn listing(path: &Path) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)?.take(MAX_ENTRIES) {
        let entry = entry?;
        let mut name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            name.push('/');
        }
        names.push(name);
    }
    names.sort();
    let mut page =
        "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n".to_owned();
    for name in names {
        let mut link = pintle_go_forms::escape_path(name.as_bytes());
        if link.split('/').next().is_some_and(|first| first.contains(':')) {
            link.insert_str(0, "./");
        }
        page.push_str(&format!("<a href=\"{link}\">{}</a>\n", escape_html(&name)));
    }
    page.push_str("</pre>\n");
    Ok(page)
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}

fn respond(path: &str, headers: &HeaderMap, metadata: &Metadata, found: Found) -> Response {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    if matches!(found, Found::Directory(_)) && !path.ends_with('/') {
        let base = path.rsplit('/').next().unwrap_or_default();
        let mut response = empty(301);
        if let Ok(location) = HeaderValue::from_str(&format!("{base}/")) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        return response;
    }
    let mut response = match found {
        _ if is_unmodified(headers, modified) => empty(304),
        Found::Directory(page) => with_content_type(200, "text/html; charset=utf-8", Body::from(page)),
        Found::File { file, name, begin } => contents(headers, metadata.len(), file, &name, &begin),
    };
    if let Ok(value) = HeaderValue::from_str(&httpdate::fmt_http_date(modified)) {
        response.headers_mut().insert(header::LAST_MODIFIED, value);
    }
    response
}

/// Whether the client has a copy that is not older. Times have whole seconds in HTTP.
fn is_unmodified(headers: &HeaderMap, modified: SystemTime) -> bool {
    let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|value| value.to_str().ok());
    let since = since.and_then(|since| httpdate::parse_http_date(since).ok());
    since.is_some_and(|since| modified < since + Duration::from_secs(1))
}

fn contents(headers: &HeaderMap, size: u64, file: File, name: &str, begin: &[u8]) -> Response {
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (code, range) = match range.map(|range| parse_range(range, size)) {
        None | Some(Range::Whole) => (200, 0..size),
        Some(Range::Part(part)) => (206, part),
        Some(Range::Unsatisfiable) => {
            let mut response = text(416, "invalid range: failed to overlap\n");
            if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
                response.headers_mut().insert(header::CONTENT_RANGE, value);
            }
            return response;
        }
    };
    let length = range.end - range.start;
    let mut response = with_content_type(code, content_type(name, begin), body(file, range.clone()));
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if code == 206
        && let Ok(value) =
            HeaderValue::from_str(&format!("bytes {}-{}/{size}", range.start, range.end.saturating_sub(1)))
    {
        headers.insert(header::CONTENT_RANGE, value);
    }
    response
}

/// The bytes of a range, read piece by piece as the client takes them. A file that became shorter is filled with zero
/// bytes, since its length was announced.
fn body(file: File, range: std::ops::Range<u64>) -> Body {
    let frames = futures_util::stream::unfold((file, range), |(mut file, range)| async move {
        let length = usize::try_from(range.end - range.start).unwrap_or(CHUNK).min(CHUNK);
        if length == 0 {
            return None;
        }
        let start = range.start;
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; length];
            let mut filled = 0;
            if file.seek(SeekFrom::Start(start)).is_ok() {
                while let Some(rest) = chunk.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                    match file.read(rest) {
                        Ok(0) | Err(_) => break,
                        Ok(count) => filled += count,
                    }
                }
            }
            (file, chunk)
        });
        let (file, chunk) = read.await.ok()?;
        Some((Bytes::from(chunk), (file, start + length as u64..range.end)))
    });
    Body::Stream(Box::pin(frames))
}

#[derive(Debug, PartialEq, Eq)]
enum Range {
    Whole,
    Part(std::ops::Range<u64>),
    Unsatisfiable,
}

fn parse_range(text: &str, size: u64) -> Range {
    let Some(spec) = text.strip_prefix("bytes=") else { return Range::Unsatisfiable };
    if spec.contains(',') {
        return Range::Whole;
    }
    let Some((first, last)) = spec.trim().split_once('-') else { return Range::Unsatisfiable };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let part = match (first.trim(), last.trim()) {
        ("", suffix) => number(suffix).map(|suffix| size - suffix.min(size)..size),
        (first, "") => number(first).map(|first| first..size),
        (first, last) => number(first)
            .zip(number(last))
            .and_then(|(first, last)| (first <= last).then(|| first..last.saturating_add(1).min(size))),
    };
    match part {
        Some(_) if size == 0 => Range::Whole,
        Some(part) if part.start < part.end => Range::Part(part),
        _ => Range::Unsatisfiable,
    }
}

/// By the extension, as Go without tables of the system knows it, or else by the first bytes.
fn content_type(name: &str, begin: &[u8]) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("json") => "application/json",
        Some("xml") => "text/xml; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("gz") => "application/x-gzip",
        _ => {
            let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
            match begin {
                [0x1f, 0x8b, 0x08, ..] => "application/x-gzip",
                begin if begin.iter().any(is_binary) => "application/octet-stream",
                _ => "text/plain; charset=utf-8",
            }
        }
    }
}

fn refuse(error: &io::Error) -> Response {
    // A name that is too long is no file either.
    const NAME_TOO_LONG: i32 = 36;
    match error.kind() {
        _ if error.raw_os_error() == Some(NAME_TOO_LONG) => text(404, "file not found\n"),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_found(),
        io::ErrorKind::PermissionDenied => text(403, "403 Forbidden\n"),
        _ => text(500, "500 Internal Server Error\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::body::RequestBody;
    use http_body_util::BodyExt;

    async fn get(logs: &HostLogs, path: &str, headers: &[(&'static str, &str)]) -> (u16, HeaderMap, String) {
        let mut request = http::Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = logs.serve(&request.body(RequestBody::Bytes(Bytes::new())).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        (head.status.as_u16(), head.headers, String::from_utf8_lossy(&bytes).into_owned())
    }

    #[tokio::test]
    async fn files_and_directories_are_served_as_by_go() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("pods")).unwrap();
        std::fs::write(directory.path().join("a <b>.log"), "0123456789").unwrap();
        std::fs::write(directory.path().join("pods/big"), vec![b'x'; 3 * CHUNK + 1]).unwrap();
        let logs = HostLogs::new(directory.path());
        let (code, headers, _) = get(&logs, "/logs", &[]).await;
        assert_eq!((code, headers[header::LOCATION].to_str().unwrap()), (301, "logs/"));
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache, private");
        let (code, headers, page) = get(&logs, "/logs/", &[]).await;
        assert_eq!(
            (code, headers[header::CONTENT_TYPE].to_str().unwrap()),
            (200, "text/html; charset=utf-8")
        );
        let rows = "<a href=\"a%20%3Cb%3E.log\">a &lt;b&gt;.log</a>\n<a href=\"pods/\">pods/</a>\n";
        assert!(page.contains(rows), "{page}");
        let (code, headers, body) = get(&logs, "/logs/a%20%3Cb%3E.log", &[]).await;
        assert_eq!((code, body.as_str()), (200, "0123456789"));
        assert_eq!(headers[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        let modified = headers[header::LAST_MODIFIED].to_str().unwrap().to_owned();
        let since = [("if-modified-since", modified.as_str())];
        assert_eq!(get(&logs, "/logs/a%20%3Cb%3E.log", &since).await.0, 304);
        let (code, headers, body) = get(&logs, "/logs/a%20%3Cb%3E.log", &[("range", "bytes=-3")]).await;
        assert_eq!((code, body.as_str()), (206, "789"));
        assert_eq!(headers[header::CONTENT_RANGE], "bytes 7-9/10");
        assert_eq!(get(&logs, "/logs/a%20%3Cb%3E.log", &[("range", "bytes=10-")]).await.0, 416);
        assert_eq!(get(&logs, "/logs/pods/big", &[]).await.2.len(), 3 * CHUNK + 1);
        assert_eq!(get(&logs, "/logs/none", &[]).await.0, 404);
        assert_eq!(get(&logs, &format!("/logs/{}", "n".repeat(300)), &[]).await.2, "file not found\n");
        assert_eq!(get(&logs, "/logs/%2e%2e/passwd", &[]).await.0, 400);
        assert!(
            logs.serve(&http::Request::get("/logsx").body(RequestBody::Bytes(Bytes::new())).unwrap())
                .await
                .is_none()
        );
    }

    #[test]
    fn ranges_are_read() {
        for (text, size, expected) in [
            ("bytes=0-", 10, Range::Part(0..10)),
            ("bytes=2-3", 10, Range::Part(2..4)),
            ("bytes=2-99", 10, Range::Part(2..10)),
            ("bytes=-99", 10, Range::Part(0..10)),
            ("bytes=0-1,3-4", 10, Range::Whole),
            ("bytes=3-2", 10, Range::Unsatisfiable),
            ("bytes=10-", 10, Range::Unsatisfiable),
            ("bytes=-5", 0, Range::Whole),
            ("lines=1-2", 10, Range::Unsatisfiable),
        ] {
            assert_eq!(parse_range(text, size), expected, "{text}");
        }
    }
}
