//! Parses one request's head: the request line and the headers.

use crate::Refusal;
use bytes::{BufMut, BytesMut};
use memchr::memchr;

/// The size limit of headers, in bytes: Kubernetes' own. Larger headers get 431.
pub const MAX_HEADER_BYTES: usize = 1 << 20;
/// The size limit of a head, in bytes: Kubernetes' limit plus the 4096 that Go's server adds for its buffer.
pub const MAX_HEAD_BYTES: usize = MAX_HEADER_BYTES + 4096;
/// The limit on the number of headers. Go bounds only their bytes; hyper allocates a table of this size.
pub const MAX_HEADERS: usize = 512;
/// The length limit of path and query, in bytes: the capacity of `http::Uri`.
const MAX_TARGET_BYTES: usize = u16::MAX as usize - 1;

/// The properties of a head that decide how the following bytes are read.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// The framing of the bytes after the head.
    pub framing: Framing,
    /// Whether the request asks for another protocol after its body.
    pub is_upgrade: bool,
    /// Whether the method is `POST`.
    pub is_post: bool,
    /// The head in a form that hyper accepts, when it does not accept the original.
    pub rewritten: Option<BytesMut>,
}

/// The framing of the bytes after a head.
#[derive(Debug, PartialEq, Eq)]
pub enum Framing {
    /// A body of this many bytes, then the next head.
    Length(u64),
    /// A chunked body, then the next head.
    Chunked,
}

/// The end of the head that the bytes begin with: after the first empty line. `searched` bytes are known not to contain
/// it.
pub fn end(bytes: &[u8], searched: usize) -> Option<usize> {
    // An empty line alone.
    match bytes {
        [b'\n', ..] => return Some(1),
        [b'\r', b'\n', ..] => return Some(2),
        _ => {}
    }
    let mut at = searched.saturating_sub(3);
    loop {
        let newline = at + memchr(b'\n', bytes.get(at..)?)?;
        match bytes.get(newline + 1..)? {
            [b'\n', ..] => return Some(newline + 2),
            [b'\r', b'\n', ..] => return Some(newline + 3),
            _ => at = newline + 1,
        }
    }
}

/// Checks the request line of an incomplete head, if the line is complete.
///
/// # Errors
/// When the head is refused, whatever its other lines.
pub fn check_beginning(bytes: &[u8]) -> Result<(), Refusal> {
    match memchr(b'\n', bytes) {
        Some(newline) => RequestLine::read(trim_line(bytes.get(..newline).unwrap_or_default())).map(drop),
        None => Ok(()),
    }
}

/// Parses a whole head, including the empty line at its end.
///
/// # Errors
/// When Go's server refuses it; the order of the checks is Go's, too.
pub fn read(bytes: &[u8]) -> Result<Head, Refusal> {
    let mut lines = Lines(bytes);
    let line = RequestLine::read(lines.next().unwrap_or_default())?;
    if matches!(lines.0, [b' ' | b'\t', ..]) {
        return Err(Refusal::Malformed);
    }
    let headers = lines.0;
    let mut seen = Seen { is_plain: line.is_plain(), ..Seen::default() };
    while let Some(line) = lines.next().filter(|line| !line.is_empty()) {
        seen.header(line, &mut lines)?;
    }
    let framing = seen.framing(&line)?;
    if line.major != 1 {
        return Err(Refusal::Version);
    }
    let is_from_1_1 = line.minor >= 1;
    if is_from_1_1 && seen.host.is_none() && line.method != b"CONNECT" {
        return Err(Refusal::BadRequest("missing required Host header"));
    }
    if seen.host.is_some_and(|host| !host.iter().all(|byte| is_of(HOST, *byte))) {
        return Err(Refusal::BadRequest("malformed Host header"));
    }
    if seen.has_space_in_name {
        return Err(Refusal::BadRequest("invalid header name"));
    }
    if seen.count > MAX_HEADERS || line.target.len() > MAX_TARGET_BYTES {
        return Err(Refusal::HeadersTooLarge);
    }
    if let Some(expect) = seen.expect.filter(|expect| !expect.is_empty()) {
        if !has_token(expect, CONTINUE) {
            return Err(Refusal::Expectation);
        }
        seen.is_plain &= expect.eq_ignore_ascii_case(CONTINUE);
    }
    let is_upgrade = seen.is_upgrade && seen.wants_upgrade;
    let is_post = line.method == b"POST";
    let rewritten = match seen.is_plain {
        true => None,
        false => Some(rewrite(&line, headers)?),
    };
    Ok(Head { framing, is_upgrade, is_post, rewritten })
}

/// Stands for a value of several lines, which have a blank between them: it is none of the values that are compared here,
/// and no host.
const CONTINUED: &[u8] = b"several lines";
const CONTINUE: &[u8] = b"100-continue";

/// The headers that matter for framing.
#[derive(Default)]
struct Seen<'a> {
    host: Option<&'a [u8]>,
    expect: Option<&'a [u8]>,
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    trailers: Vec<&'a [u8]>,
    /// More than one `Transfer-Encoding`.
    has_encodings: bool,
    /// More than one `Content-Length`, with different values.
    has_different_lengths: bool,
    has_hosts: bool,
    has_space_in_name: bool,
    is_upgrade: bool,
    wants_upgrade: bool,
    count: usize,
    /// Whether hyper parses the head as Go does.
    is_plain: bool,
}

impl<'a> Seen<'a> {
    /// Parses a header line and its continuation lines.
    fn header(&mut self, line: &'a [u8], lines: &mut Lines<'a>) -> Result<(), Refusal> {
        let colon = match line.iter().position(|byte| !is_of(TOKEN, *byte)) {
            Some(colon) if line.get(colon) == Some(&b':') => colon,
            // The name has an invalid byte, or the line has no colon.
            _ => memchr(b':', line).ok_or(Refusal::Malformed)?,
        };
        let (name, value) =
            (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
        if name.is_empty() {
            return Err(Refusal::Malformed);
        }
        if !name.iter().all(|byte| is_of(TOKEN, *byte)) {
            if !name.iter().all(|byte| is_of(TOKEN, *byte) || *byte == b' ') {
                return Err(Refusal::Malformed);
            }
            self.has_space_in_name = true;
        }
        if !is_value(value) {
            return Err(Refusal::Malformed);
        }
        let mut value = trim(value);
        while matches!(lines.0, [b' ' | b'\t', ..]) {
            let more = trim(lines.next().unwrap_or_default());
            if !is_value(more) {
                return Err(Refusal::Malformed);
            }
            if !more.is_empty() {
                value = if value.is_empty() { more } else { CONTINUED };
            }
            self.is_plain = false;
        }
        self.count += 1;
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"Host") => {
                self.has_hosts |= self.host.replace(value).is_some();
            }
            6 if name.eq_ignore_ascii_case(b"Expect") => self.expect = self.expect.or(Some(value)),
            7 if name.eq_ignore_ascii_case(b"Upgrade") => self.is_upgrade = true,
            7 if name.eq_ignore_ascii_case(b"Trailer") => self.trailers.push(value),
            10 if name.eq_ignore_ascii_case(b"Connection") => {
                self.wants_upgrade |= has_token(value, b"upgrade")
            }
            14 if name.eq_ignore_ascii_case(b"Content-Length") => {
                if let Some(first) = self.content_length {
                    self.has_different_lengths |= first != value;
                    self.is_plain = false;
                }
                self.content_length = self.content_length.or(Some(value));
            }
            17 if name.eq_ignore_ascii_case(b"Transfer-Encoding") => {
                self.has_encodings |= self.transfer_encoding.replace(value).is_some();
            }
            _ => {}
        }
        Ok(())
    }

    /// The framing of the bytes after the head.
    fn framing(&mut self, line: &RequestLine<'_>) -> Result<Framing, Refusal> {
        if self.has_hosts {
            return Err(Refusal::Malformed);
        }
        let is_from_1_1 = line.major > 1 || (line.major == 1 && line.minor >= 1);
        let is_chunked = match self.transfer_encoding {
            None => false,
            Some(_) if !is_from_1_1 => {
                self.is_plain = false;
                false
            }
            Some(encoding) if self.has_encodings || !encoding.eq_ignore_ascii_case(b"chunked") => {
                return Err(Refusal::TransferEncoding);
            }
            Some(_) => true,
        };
        if self.has_different_lengths {
            return Err(Refusal::Malformed);
        }
        let length = match self.content_length {
            None => 0,
            Some(length) => parse_length(length).ok_or(Refusal::Malformed)?,
        };
        if is_chunked {
            self.is_plain &= self.content_length.is_none();
            let is_framing = |name: &[u8]| {
                [&b"Transfer-Encoding"[..], b"Trailer", b"Content-Length"]
                    .iter()
                    .any(|framing| trim(name).eq_ignore_ascii_case(framing))
            };
            if self.trailers.iter().flat_map(|trailer| trailer.split(|byte| *byte == b',')).any(is_framing) {
                return Err(Refusal::Malformed);
            }
        }
        Ok(match is_chunked {
            true => Framing::Chunked,
            false => Framing::Length(length),
        })
    }
}

/// The first line of a head.
struct RequestLine<'a> {
    method: &'a [u8],
    target: &'a [u8],
    major: u8,
    minor: u8,
}

impl<'a> RequestLine<'a> {
    fn read(line: &'a [u8]) -> Result<RequestLine<'a>, Refusal> {
        let method_end = memchr(b' ', line).ok_or(Refusal::Malformed)?;
        let (method, rest) = (line.get(..method_end), line.get(method_end + 1..));
        let (method, rest) = (method.unwrap_or_default(), rest.unwrap_or_default());
        let target_end = memchr(b' ', rest).ok_or(Refusal::Malformed)?;
        let (target, version) = (rest.get(..target_end), rest.get(target_end + 1..));
        let (target, version) = (target.unwrap_or_default(), version.unwrap_or_default());
        if method.is_empty() || !method.iter().all(|byte| is_of(TOKEN, *byte)) {
            return Err(Refusal::Malformed);
        }
        let [b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9'] = version else {
            return Err(Refusal::Malformed);
        };
        let line = RequestLine { method, target, major: major - b'0', minor: minor - b'0' };
        match line.is_target() {
            true => Ok(line),
            false => Err(Refusal::Malformed),
        }
    }

    /// Whether Go accepts the target as a request URI.
    fn is_target(&self) -> bool {
        if self.target.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
            return false;
        }
        match self.target {
            [b'/', ..] => has_valid_escapes(self.target),
            b"*" => true,
            // An authority, or an absolute URI.
            _ => {
                let uri =
                    std::str::from_utf8(self.target).ok().and_then(|text| text.parse::<http::Uri>().ok());
                uri.is_some_and(|uri| match self.method {
                    b"CONNECT" => uri.authority().is_some(),
                    _ => uri.scheme().is_some() && has_valid_escapes(uri.path().as_bytes()),
                })
            }
        }
    }

    /// Whether hyper parses the line as Go does.
    fn is_plain(&self) -> bool {
        self.major == 1 && self.minor <= 1 && self.target.iter().all(|byte| is_of(PLAIN_TARGET, *byte))
    }
}

/// Rewrites a head for hyper: each header on one line, one statement of the body's length, no expectations beside
/// `100-continue`, other characters of the target percent-encoded.
fn rewrite(line: &RequestLine<'_>, headers: &[u8]) -> Result<BytesMut, Refusal> {
    let mut out = BytesMut::with_capacity(headers.len() + line.target.len() + 64);
    out.put_slice(line.method);
    out.put_u8(b' ');
    for byte in line.target {
        match is_of(PLAIN_TARGET, *byte) {
            true => out.put_u8(*byte),
            false => out.put_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    if out.len() > MAX_TARGET_BYTES {
        return Err(Refusal::HeadersTooLarge);
    }
    out.put_slice(if line.minor == 0 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    let mut has_length = false;
    let is_chunked = |name: &[u8]| name.eq_ignore_ascii_case(b"Transfer-Encoding");
    let has_chunks = line.minor >= 1 && Lines(headers).any(|line| is_chunked(name_of(line)));
    let mut lines = Lines(headers);
    while let Some(header) = lines.next().filter(|header| !header.is_empty()) {
        let is_length = name_of(header).eq_ignore_ascii_case(b"Content-Length");
        let is_dropped = (is_length && (has_chunks || std::mem::replace(&mut has_length, true)))
            || (is_chunked(name_of(header)) && line.minor == 0);
        let is_expected =
            name_of(header).eq_ignore_ascii_case(b"Expect") && has_token(value_of(header), CONTINUE);
        if is_expected {
            out.put_slice(b"Expect: 100-continue");
        } else if !is_dropped {
            out.put_slice(header);
        }
        let is_dropped_on = is_dropped || is_expected;
        while matches!(lines.0, [b' ' | b'\t', ..]) {
            let more = trim(lines.next().unwrap_or_default());
            if !is_dropped_on {
                out.put_u8(b' ');
                out.put_slice(more);
            }
        }
        if !is_dropped {
            out.put_slice(b"\r\n");
        }
    }
    out.put_slice(b"\r\n");
    match out.len() > 2 * MAX_HEAD_BYTES {
        true => Err(Refusal::HeadersTooLarge),
        false => Ok(out),
    }
}

fn name_of(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b':').next().unwrap_or_default()
}

fn value_of(line: &[u8]) -> &[u8] {
    let colon = memchr(b':', line).unwrap_or(line.len());
    line.get(colon + 1..).unwrap_or_default()
}

/// The lines of a head, without their line ends.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let newline = memchr(b'\n', self.0)?;
        let (line, rest) = self.0.split_at_checked(newline + 1)?;
        self.0 = rest;
        Some(trim_line(line.strip_suffix(b"\n").unwrap_or(line)))
    }
}

fn trim_line(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Trims blanks.
fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

fn parse_length(text: &[u8]) -> Option<u64> {
    // Rust accepts a leading sign, Go does not.
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let length = is_number.then(|| std::str::from_utf8(text).ok()?.parse::<u64>().ok()).flatten()?;
    i64::try_from(length).is_ok().then_some(length)
}

/// Whether a comma-separated list has this token.
fn has_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|word| trim(word).eq_ignore_ascii_case(token))
}

/// Whether each percent sign of the path (not of the query) is followed by two hexadecimal digits.
fn has_valid_escapes(target: &[u8]) -> bool {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let mut rest = path;
    while let Some(percent) = memchr(b'%', rest) {
        match rest.get(percent + 1..percent + 3) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => {}
            _ => return false,
        }
        rest = rest.get(percent + 3..).unwrap_or_default();
    }
    true
}

fn is_value(value: &[u8]) -> bool {
    // Branch-free, so that the compiler vectorizes it.
    !value
        .iter()
        .fold(false, |is_wrong, byte| is_wrong | ((*byte < b' ') & (*byte != b'\t')) | (*byte == 0x7f))
}

/// Character classes, one bit each.
const TOKEN: u8 = 1;
const HOST: u8 = 2;
const PLAIN_TARGET: u8 = 4;

/// The classes of all bytes. A table, since every byte of request lines and header names is looked up.
#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled, where a wrong index is an error")]
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        let mut class = 0;
        if character.is_ascii_alphanumeric() {
            class = TOKEN | HOST;
        }
        if matches!(
            character,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        ) {
            class |= TOKEN;
        }
        if matches!(
            character,
            b'!' | b'$'
                | b'%'
                | b'&'
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b'-'
                | b'.'
                | b':'
                | b';'
                | b'='
                | b'['
                | b'\''
                | b']'
                | b'_'
                | b'~'
        ) {
            class |= HOST;
        }
        if character.is_ascii_graphic()
            && !matches!(character, b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
        {
            class |= PLAIN_TARGET;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
};

fn is_of(class: u8, byte: u8) -> bool {
    CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & class != 0)
}
