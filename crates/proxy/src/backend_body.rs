//! The body of a backend's response, unpacked where the proxy itself asked for a packed one.

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{HeaderMap, HeaderValue, Method, header};
use http_body::{Body, Frame, SizeHint};
use pintle_dialer::{IncomingBody, IncomingBodyError};
use std::{
    io::Write,
    pin::Pin,
    task::{Context, Poll},
};

/// How many packed bytes are unpacked at once: a byte becomes at most 1032 ones, so that a frame has at most 132 kB.
const STEP_BYTES: usize = 128;

/// Why the body of a backend ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum BackendBodyError {
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] IncomingBodyError),
    /// The packed bytes are malformed.
    #[error("the packed response is malformed: {0}")]
    Packed(std::io::Error),
}

/// The body of a backend's response.
#[derive(Debug)]
pub struct BackendBody {
    incoming: IncomingBody,
    unpacking: Option<Box<Unpacking>>,
}

/// A body that is being unpacked.
#[derive(Debug)]
struct Unpacking {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Packed bytes that have arrived.
    packed: Bytes,
    /// Whether there was a packed byte. Without any, the body is empty and not malformed.
    has_begun: bool,
    is_over: bool,
}

/// Asks for a packed response where the client has no wish of its own: the rule of Go's HTTP client. Returns whether the
/// response has to be unpacked.
pub(crate) fn ask_for_gzip(method: &Method, headers: &mut HeaderMap) -> bool {
    let is_given = |name| headers.get(name).is_some_and(|value: &HeaderValue| !value.is_empty());
    if is_given(header::ACCEPT_ENCODING) || is_given(header::RANGE) || *method == Method::HEAD {
        return false;
    }
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    true
}

impl BackendBody {
    /// The body of a response with these headers, which then tell of the unpacked body.
    pub(crate) fn new(incoming: IncomingBody, headers: &mut HeaderMap, unpacks: bool) -> BackendBody {
        let is_packed = unpacks
            && !incoming.is_end_stream()
            && headers
                .get(header::CONTENT_ENCODING)
                .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"gzip"));
        if !is_packed {
            return BackendBody { incoming, unpacking: None };
        }
        headers.remove(header::CONTENT_ENCODING);
        headers.remove(header::CONTENT_LENGTH);
        let unpacking = Unpacking::new(Bytes::new());
        BackendBody { incoming, unpacking: Some(Box::new(unpacking)) }
    }
}

impl Unpacking {
    fn new(packed: Bytes) -> Unpacking {
        Unpacking { decoder: MultiGzDecoder::new(Vec::new()), packed, has_begun: false, is_over: false }
    }

    /// The next unpacked bytes; `None` when more packed ones are needed.
    fn step(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        while !self.packed.is_empty() {
            self.has_begun = true;
            let step = self.packed.split_to(STEP_BYTES.min(self.packed.len()));
            self.decoder.write_all(&step)?;
            // The decoder keeps what it unpacked until more comes, while a client may wait for an event of a watch.
            self.decoder.flush()?;
            if let Some(bytes) = self.taken() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The last unpacked bytes.
    fn end(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        self.is_over = true;
        if self.has_begun {
            self.decoder.try_finish().map_err(|_| std::io::Error::from(std::io::ErrorKind::UnexpectedEof))?;
        }
        Ok(self.taken())
    }

    fn taken(&mut self) -> Option<Bytes> {
        let bytes = std::mem::take(self.decoder.get_mut());
        (!bytes.is_empty()).then(|| bytes.into())
    }
}

impl Body for BackendBody {
    type Data = Bytes;
    type Error = BackendBodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BackendBodyError>>> {
        let this = self.get_mut();
        let Some(unpacking) = &mut this.unpacking else {
            return Pin::new(&mut this.incoming)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(Into::into)));
        };
        loop {
            if unpacking.is_over {
                return Poll::Ready(None);
            }
            match unpacking.step() {
                Ok(None) => {}
                Ok(Some(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(error) => {
                    unpacking.is_over = true;
                    return Poll::Ready(Some(Err(BackendBodyError::Packed(error))));
                }
            }
            match std::task::ready!(Pin::new(&mut this.incoming).poll_frame(context)) {
                None => {
                    let last = unpacking.end().map_err(BackendBodyError::Packed).transpose();
                    return Poll::Ready(last.map(|last| last.map(Frame::data)));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => unpacking.packed = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.unpacking {
            None => self.incoming.is_end_stream(),
            Some(unpacking) => unpacking.is_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.unpacking {
            None => self.incoming.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    #[test]
    fn packed_responses_are_asked_for_where_the_client_has_no_wish() {
        let check = |method: Method, name: &'static str, value: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(ask_for_gzip(&method, &mut headers), expected, "{method} {name}: {value}");
            assert_eq!(headers.get("accept-encoding").is_some_and(|value| value == "gzip"), expected);
        };
        check(Method::GET, "x-other", "1", true);
        check(Method::POST, "accept-encoding", "", true);
        check(Method::GET, "accept-encoding", "identity", false);
        check(Method::GET, "range", "bytes=0-1", false);
        check(Method::HEAD, "x-other", "1", false);
    }

    #[test]
    fn bytes_are_unpacked_in_small_pieces() {
        let packed = |bytes: &[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let mut unpacking = Unpacking::new(packed(&vec![b' '; 10 << 20]).into());
        let mut length = 0;
        while let Some(bytes) = unpacking.step().unwrap() {
            assert!(bytes.len() <= 256 << 10, "{}", bytes.len());
            length += bytes.len();
        }
        length += unpacking.end().unwrap().map_or(0, |bytes| bytes.len());
        assert_eq!(length, 10 << 20);
        let mut malformed = Unpacking::new(Bytes::from_static(b"not packed at all"));
        assert!(malformed.step().is_err());
        let mut empty = Unpacking::new(Bytes::new());
        assert_eq!((empty.step().unwrap(), empty.end().unwrap()), (None, None));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(b"an event").unwrap();
        encoder.flush().unwrap();
        let mut begun = Unpacking::new(encoder.get_ref().clone().into());
        assert_eq!(begun.step().unwrap().unwrap(), "an event");
        assert_eq!(begun.step().unwrap(), None);
        assert_eq!(begun.end().unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
        let mut twice = Unpacking::new([encoder.finish().unwrap(), packed(b"and one")].concat().into());
        assert_eq!(twice.step().unwrap().unwrap(), "an eventand one");
        let mut short = Unpacking::new(Bytes::from_static(&[0x1f, 0x8b, 8]));
        assert_eq!(short.step().unwrap(), None);
        assert!(short.end().is_err());
    }
}
