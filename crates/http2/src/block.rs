//! Judges and rewrites the header blocks of a connection.

use crate::{instructions::Instructions, refusal::Refusal, table::ENTRY_BYTES};
use std::ops::Range;

/// The size limit of the headers of a request, in bytes, with 32 for each: Kubernetes' own.
const MAX_HEADER_BYTES: usize = 1 << 20;
/// The length limit of path and query, in bytes: the capacity of `http::Uri`.
const MAX_TARGET_BYTES: usize = u16::MAX as usize - 1;
/// The length limit of the name of a header, in bytes, and of a method: the capacity of `http::HeaderName`.
const MAX_NAME_BYTES: usize = u16::MAX as usize;
/// The text that is kept for the next block, in bytes.
const KEPT_TEXT_BYTES: usize = 16 << 10;
/// A block that no library decodes: it names an entry of index 0.
const UNDECODABLE: &[u8] = &[0x80];

/// Decodes the header blocks of one connection, in order.
///
/// Blocks pass unchanged until one has to be rewritten. From then on the library's table is not the client's, and all
/// blocks are written without references to it.
#[derive(Default)]
pub struct HeaderBlocks {
    instructions: Instructions,
    is_rewriting: bool,
    headers: Headers,
}

/// The meaning of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// The head of a request. Whether the request ends with it.
    Request {
        /// Whether the request has no body.
        is_whole: bool,
    },
    /// The headers behind a body.
    Trailers,
}

/// How a block passes.
#[derive(Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The block passes unchanged.
    Plain,
    /// This block passes instead.
    Rewritten(Vec<u8>),
}

impl HeaderBlocks {
    /// Judges a whole block. Call it for each block of the connection, in order.
    pub fn judge(&mut self, block: &[u8], kind: BlockKind) -> Judgement {
        let HeaderBlocks { instructions, is_rewriting, headers } = self;
        headers.clear();
        let is_decoded = instructions
            .decode(block, |name, value, is_checked| headers.add(name, value, is_checked, kind))
            .is_some();
        if !is_decoded {
            return Judgement::Rewritten(UNDECODABLE.to_vec());
        }
        let target = match kind {
            _ if headers.is_malformed => None,
            BlockKind::Trailers => headers.method.is_none().then_some(Target::default()),
            BlockKind::Request { .. } => headers.target(),
        };
        *is_rewriting |= target.as_ref().is_none_or(|target| target.is_rewritten)
            || headers.is_rewritten
            || headers.refusal.is_some();
        if !*is_rewriting {
            return Judgement::Plain;
        }
        Judgement::Rewritten(match target {
            None if kind == BlockKind::Trailers => malformed_trailers(),
            None => headers.refused(Refusal::Malformed),
            Some(target) => match headers.refusal.into_iter().chain(target.refusal).reduce(Refusal::before) {
                Some(refusal) => headers.refused(refusal),
                None if headers.is_too_large => headers.refused(Refusal::TooLarge),
                None => headers.block(target),
            },
        })
    }
}

/// The headers of a block.
#[derive(Default)]
struct Headers {
    /// The text of the pseudo-headers.
    text: Vec<u8>,
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    path: Option<Range<usize>>,
    /// The other headers, as a block without references.
    others: Vec<u8>,
    size: usize,
    has_others: bool,
    has_te: bool,
    has_length: bool,
    /// Whether the first `Host` names a user; `None` without one.
    is_host_of_user: Option<bool>,
    /// Whether headers were left out or changed.
    is_rewritten: bool,
    is_malformed: bool,
    is_too_large: bool,
    refusal: Option<Refusal>,
}

/// The parts of a request that the library reads as a URI.
#[derive(Default)]
struct Target {
    path: Option<Vec<u8>>,
    authority: Option<Range<usize>>,
    host: Option<Range<usize>>,
    has_scheme: bool,
    is_rewritten: bool,
    refusal: Option<Refusal>,
}

impl Headers {
    fn clear(&mut self) {
        let (mut text, mut others) = (std::mem::take(&mut self.text), std::mem::take(&mut self.others));
        text.clear();
        others.clear();
        text.shrink_to(KEPT_TEXT_BYTES);
        others.shrink_to(KEPT_TEXT_BYTES);
        *self = Headers { text, others, ..Headers::default() };
    }

    /// Adds a header, and returns whether it is known to be well-formed. Headers after a malformed one, or beyond the
    /// limit of their size, are not read.
    fn add(&mut self, name: &[u8], value: &[u8], is_checked: bool, kind: BlockKind) -> bool {
        if self.is_malformed || self.is_too_large {
            return is_checked;
        }
        let is_pseudo = name.first() == Some(&b':');
        let is_well_formed = is_checked || (is_value(value) && (is_pseudo || is_name(name)));
        self.is_malformed = !is_well_formed || (is_pseudo && self.has_others);
        self.has_others |= !is_pseudo;
        self.size += name.len() + value.len() + ENTRY_BYTES;
        self.is_too_large = self.size > MAX_HEADER_BYTES;
        if self.is_malformed || self.is_too_large {
            return is_well_formed;
        }
        match kind {
            BlockKind::Trailers => self.add_trailer(name, value, is_pseudo),
            BlockKind::Request { .. } if is_pseudo => self.add_pseudo(name, value),
            BlockKind::Request { is_whole } => self.add_other(name, value, is_whole),
        }
        is_well_formed
    }

    fn add_pseudo(&mut self, name: &[u8], value: &[u8]) {
        let field = match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            // This includes `:protocol`: extended CONNECT is not offered.
            _ => {
                self.is_malformed = true;
                return;
            }
        };
        let begin = self.text.len();
        self.is_malformed |= field.replace(begin..begin + value.len()).is_some();
        self.text.extend_from_slice(value);
    }

    fn add_trailer(&mut self, name: &[u8], value: &[u8], is_pseudo: bool) {
        self.is_malformed |= is_pseudo;
        match Refusal::of_header(name).is_some() || name == b"te" {
            true => self.is_rewritten = true,
            false => literal(&mut self.others, name, value),
        }
    }

    fn add_other(&mut self, name: &[u8], value: &[u8], is_whole: bool) {
        match name {
            b"te" => {
                let is_first = !std::mem::replace(&mut self.has_te, true);
                if !is_first || !matches!(value, b"" | b"trailers") {
                    self.refuse(Refusal::Te);
                }
                if value.is_empty() {
                    self.is_rewritten = true;
                    return;
                }
            }
            b"content-length" => {
                let length = length(value);
                // The first one counts, and only in front of a body. One that is no number is zero.
                if std::mem::replace(&mut self.has_length, true) || (is_whole && length != Some(0)) {
                    self.is_rewritten = true;
                    return;
                }
                if length.is_none() {
                    self.is_rewritten = true;
                    literal(&mut self.others, name, b"0");
                    return;
                }
            }
            b"host" => {
                self.is_host_of_user.get_or_insert_with(|| value.contains(&b'@'));
            }
            _ => {
                if let Some(refusal) = Refusal::of_header(name) {
                    self.refuse(refusal);
                    return;
                }
            }
        }
        literal(&mut self.others, name, value);
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refusal = Some(self.refusal.map_or(refusal, |first| first.before(refusal)));
    }

    fn text(&self, range: &Option<Range<usize>>) -> &[u8] {
        range.clone().and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    /// The target of a request; `None` if Go's server resets the stream, and for methods that the library does not accept.
    fn target(&self) -> Option<Target> {
        let method = self.text(&self.method);
        let (scheme, authority) = (self.text(&self.scheme), self.text(&self.authority));
        let path = self.text(&self.path);
        if self.is_too_large && self.path.is_none() {
            return Some(Target::default());
        }
        if !is_token(method) || method.len() > MAX_NAME_BYTES {
            return None;
        }
        let mut target = Target::default();
        if method == b"CONNECT" {
            if !path.is_empty() || !scheme.is_empty() || authority.is_empty() {
                return None;
            }
            target.is_rewritten = self.path.is_some() || self.scheme.is_some();
        } else {
            if !matches!(scheme, b"https" | b"http") || !is_path(path) {
                return None;
            }
            target.has_scheme = true;
            target.path = encoded(path);
            target.is_rewritten = target.path.is_some();
            let length = target.path.as_ref().map_or(path.len(), Vec::len);
            if length > MAX_TARGET_BYTES {
                target.is_rewritten = true;
                target.refusal = Some(Refusal::TooLarge);
            }
            let is_of_user = match authority {
                b"" => self.is_host_of_user == Some(true),
                _ => authority.contains(&b'@'),
            };
            if is_of_user {
                return None;
            }
        }
        if is_authority(authority) {
            target.authority = self.authority.clone();
        } else {
            // The library accepts any header `Host`.
            target.host = self.authority.clone().filter(|authority| !authority.is_empty());
            target.is_rewritten |= self.authority.is_some();
        }
        Some(target)
    }

    /// The headers as a block without references.
    fn block(&self, target: Target) -> Vec<u8> {
        let mut block = Vec::with_capacity(self.text.len() + self.others.len() + 64);
        if self.method.is_some() {
            literal(&mut block, b":method", self.text(&self.method));
        }
        if target.has_scheme {
            literal(&mut block, b":scheme", self.text(&self.scheme));
            literal(&mut block, b":path", target.path.as_deref().unwrap_or(self.text(&self.path)));
        }
        if target.authority.is_some() {
            literal(&mut block, b":authority", self.text(&target.authority));
        }
        if target.host.is_some() {
            literal(&mut block, b"host", self.text(&target.host));
        }
        block.extend_from_slice(&self.others);
        block
    }

    /// The block of a request that is refused: the scheme tells the reason.
    fn refused(&self, refusal: Refusal) -> Vec<u8> {
        let method = self.text(&self.method);
        let mut block = Vec::new();
        // A response to HEAD has no body.
        literal(&mut block, b":method", if method == b"HEAD" { method } else { b"GET" });
        literal(&mut block, b":scheme", refusal.scheme().as_bytes());
        literal(&mut block, b":path", b"/");
        // Without an authority the library drops the scheme.
        literal(&mut block, b":authority", b"refused");
        block
    }
}

/// A block for which the library resets the stream, as Go's server does.
fn malformed_trailers() -> Vec<u8> {
    let mut block = Vec::new();
    literal(&mut block, b"connection", b"close");
    block
}

/// Appends a header without a reference, which no table keeps.
fn literal(block: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    block.push(0);
    for text in [name, value] {
        length_of(block, text.len());
        block.extend_from_slice(text);
    }
}

/// Appends the length of a text.
fn length_of(block: &mut Vec<u8>, length: usize) {
    const MOST: usize = 0x7f;
    let Some(mut rest) = length.checked_sub(MOST) else {
        block.push((length & MOST) as u8);
        return;
    };
    block.push(MOST as u8);
    while rest > MOST {
        block.push((rest & MOST) as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

/// The percent-encoded path and query, if the library does not accept them as they are.
fn encoded(target: &[u8]) -> Option<Vec<u8>> {
    if are_all(PLAIN_TARGET, target) {
        return None;
    }
    let is_utf8 = target.is_ascii() || std::str::from_utf8(target).is_ok();
    let query = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
    let (path, query) = target.split_at(query.min(target.len()));
    let is_of_either = |byte: &u8| match byte {
        b'#' | b'<' | b'>' => false,
        0x80.. => is_utf8,
        _ => byte.is_ascii_graphic(),
    };
    let is_of_query = |byte: &u8| is_of_either(byte) && *byte != b'"';
    let is_of_path = |byte: &u8| is_of_either(byte) && !matches!(byte, b'\\' | b'^' | b'`');
    if path.iter().all(is_of_path) && query.iter().all(is_of_query) {
        return None;
    }
    let mut encoded = Vec::with_capacity(target.len() + 16);
    let mut encode = |part: &[u8], is_accepted: &dyn Fn(&u8) -> bool| {
        for byte in part {
            match is_accepted(byte) {
                true => encoded.push(*byte),
                false => encoded.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            }
        }
    };
    encode(path, &is_of_path);
    encode(query, &is_of_query);
    Some(encoded)
}

/// Whether Go's server accepts this as a path: absolute, without control characters, each percent sign of the path (not of
/// the query) followed by two hexadecimal digits.
fn is_path(target: &[u8]) -> bool {
    if target == b"*" || (target.first() == Some(&b'/') && are_all(PLAIN_TARGET, target)) {
        return true;
    }
    if target.first() != Some(&b'/') || target.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
        return false;
    }
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    path.split(|byte| *byte == b'%')
        .skip(1)
        .all(|escape| escape.get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

/// Whether the library accepts this as an authority.
fn is_authority(authority: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let mut parts = authority.splitn(2, |byte| *byte == b':');
    let is_host = parts.next().is_some_and(|host| !host.is_empty() && host.iter().all(is_name));
    let is_port = parts.next().is_none_or(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit));
    (is_host && is_port) || http::uri::Authority::try_from(authority).is_ok()
}

/// Whether this is a name of a header in HTTP/2: a token without upper-case letters.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && are_all(NAME, name)
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && are_all(TOKEN, text)
}

/// Character classes, one bit each.
const TOKEN: u8 = 1;
/// A token without upper-case letters.
const NAME: u8 = 2;
/// Of a path or a query that is accepted by Go's server and by the library, without escapes.
const PLAIN_TARGET: u8 = 4;

/// The classes of all bytes. A table, since every byte of names and paths is looked up.
#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled, where a wrong index is an error")]
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        let mut class = 0;
        let is_sign = matches!(
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
        );
        if character.is_ascii_alphanumeric() || is_sign {
            class |= TOKEN;
            if !character.is_ascii_uppercase() {
                class |= NAME;
            }
        }
        let is_special = matches!(character, b'"' | b'#' | b'%' | b'<' | b'>' | b'\\' | b'^' | b'`');
        if character.is_ascii_graphic() && !is_special {
            class |= PLAIN_TARGET;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
};

/// Whether all bytes are of this class.
fn are_all(class: u8, text: &[u8]) -> bool {
    let common = text
        .iter()
        .fold(class, |common, byte| common & CLASSES.get(usize::from(*byte)).copied().unwrap_or_default());
    common != 0
}

fn is_value(value: &[u8]) -> bool {
    // Branch-free, so that the compiler vectorizes it.
    !value
        .iter()
        .fold(false, |is_wrong, byte| is_wrong | ((*byte < b' ') & (*byte != b'\t')) | (*byte == 0x7f))
}

fn length(text: &[u8]) -> Option<i64> {
    // Rust accepts a leading sign, Go does not.
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
