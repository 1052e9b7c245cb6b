//! Compresses the bodies of API objects.
//!
//! As in kube-apiserver: a client asks by the word `gzip` in its first `Accept-Encoding` header, and a body of more than
//! [`THRESHOLD`] bytes is compressed (<https://kep.k8s.io/156>).

use crate::base::{body::Body, response::Response};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, header};
use pintle_feature_gates::{Gate, enabled};
use pintle_gzip::{HEADER, Part, Trailer};
use pintle_offload::beside;

/// The size in bytes up to which bodies are sent as they are.
pub(crate) const THRESHOLD: usize = 128 * 1024;

/// Marks a response whose body is an API object, and may be compressed.
#[derive(Clone, Copy)]
pub(crate) struct Compressible;

/// Whether a client asks for compressed bodies, and the server has them.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    if !enabled(Gate::APIResponseCompression) {
        return false;
    }
    let words = headers.get(header::ACCEPT_ENCODING).map_or(&b""[..], HeaderValue::as_bytes);
    words.split(|byte| *byte == b',').any(|word| word.trim_ascii() == b"gzip")
}

/// Sets the headers of a response whose body is compressed.
pub(crate) fn declare(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Compresses the body of a response if it is large enough.
pub(crate) async fn compress(response: Response) -> Response {
    let (mut head, body) = response.into_parts();
    let body = match body {
        Body::Full(Some(bytes)) if bytes.len() > THRESHOLD => {
            declare(&mut head.headers);
            let part = beside(move || Part::fast(&[&bytes])).await;
            let mut trailer = Trailer::default();
            trailer.add(&part);
            Body::from(Bytes::from([&HEADER[..], part.deflated(), &trailer.finish()].concat()))
        }
        Body::Stream(frames) => {
            let mut frames = frames.fuse();
            let (mut begun, mut length) = (Vec::new(), 0);
            while length <= THRESHOLD
                && let Some(frame) = frames.next().await
            {
                length += frame.len();
                begun.push(frame);
            }
            let all = futures_util::stream::iter(begun).chain(frames);
            match length > THRESHOLD {
                true => {
                    declare(&mut head.headers);
                    compressed(all)
                }
                false => Body::stream(all),
            }
        }
        other => other,
    };
    Response::from_parts(head, body)
}

/// Compresses frames one by one, each as a part of its own: a client that reads slowly holds no compressor.
fn compressed(frames: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    enum State<S> {
        Begins(S),
        GoesOn(S, Trailer),
    }
    Body::stream(futures_util::stream::unfold(
        Some(State::Begins(Box::pin(frames))),
        async |state: Option<State<_>>| {
            let (mut out, mut frames, mut trailer) = match state? {
                State::Begins(frames) => (BytesMut::from(&HEADER[..]), frames, Trailer::default()),
                State::GoesOn(frames, trailer) => (BytesMut::new(), frames, trailer),
            };
            let Some(frame) = frames.next().await else {
                out.put_slice(&trailer.finish());
                return Some((out.freeze(), None));
            };
            let part = beside(move || Part::fast(&[&frame])).await;
            trailer.add(&part);
            out.put_slice(part.deflated());
            Some((out.freeze(), Some(State::GoesOn(frames, trailer))))
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use http_body_util::BodyExt as _;
    use std::io::Read as _;

    #[test]
    fn only_the_word_in_the_first_header_counts() {
        let accepts = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            accepts_gzip(&headers)
        };
        for accepted in ["gzip", "gzip, deflate, br", "identity, gzip", "gzip,"] {
            assert!(accepts(&[accepted]), "{accepted}");
        }
        for refused in ["", "GZIP", "gzip;q=1.0", "gzip;q=0", "*", "x-gzip", "deflate"] {
            assert!(!accepts(&[refused]), "{refused}");
        }
        assert!(!accepts(&[]));
        assert!(!accepts(&["identity", "gzip"]));
    }

    /// The content of a compressed response, and whether it is compressed.
    async fn answer(body: Body) -> (Vec<u8>, bool) {
        let response = compress(Response::new(body)).await;
        let is_compressed = response.headers().contains_key(header::CONTENT_ENCODING);
        assert_eq!(response.headers().contains_key(header::VARY), is_compressed);
        let sent = response.into_body().collect().await.ok().unwrap().to_bytes();
        if !is_compressed {
            return (sent.to_vec(), false);
        }
        let mut content = Vec::new();
        GzDecoder::new(&sent[..]).read_to_end(&mut content).unwrap();
        (content, true)
    }

    #[tokio::test]
    async fn only_large_bodies_are_compressed() {
        let frames = |count: usize| {
            // A stream that must not be polled after its end.
            Body::stream(futures_util::stream::unfold(count, async |count| {
                (count > 0).then(|| (Bytes::from(vec![7; 1024]), count - 1))
            }))
        };
        for (length, expected) in [(THRESHOLD, false), (THRESHOLD + 1024, true), (THRESHOLD * 5, true)] {
            let content = vec![7; length];
            assert!(answer(Body::from(Bytes::from(content.clone()))).await == (content.clone(), expected));
            assert!(answer(frames(length / 1024)).await == (content, expected));
        }
        assert!(answer(Body::empty()).await == (Vec::new(), false));
    }
}
