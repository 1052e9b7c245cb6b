//! Unpacks the body of a response.

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, header};
use pintle_dialer::Cause;
use pintle_offload::leave_worker;
use std::io::{ErrorKind, Read};

/// The body of a response with these headers, without the compression that requests ask for. It has at most `limit`
/// bytes.
///
/// # Errors
/// When the unpacked body is larger, and for a malformed one, with the texts of Go.
pub(crate) async fn unpacked(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, Cause> {
    let coding = headers.get(header::CONTENT_ENCODING);
    let is_packed = coding.is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"gzip"));
    if !is_packed || body.is_empty() {
        return Ok(body);
    }
    // Few bytes may become many.
    leave_worker().await;
    let mut unpacked = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match MultiGzDecoder::new(&*body).take(most).read_to_end(&mut unpacked) {
        Ok(_) if unpacked.len() > limit => Err(Cause::TooLarge(limit)),
        Ok(_) => Ok(unpacked.into()),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(Cause::BrokenBody),
        Err(error) => Err(Cause::MalformedBody(reason(&error.to_string()))),
    }
}

fn reason(error: &str) -> &'static str {
    match error {
        header if header.contains("header") => "gzip: invalid header",
        checksum if checksum.contains("checksum") => "gzip: invalid checksum",
        _ => "flate: corrupt input",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use http::HeaderValue;
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    async fn check(coding: &'static str, body: Vec<u8>, expected: Result<&[u8], &str>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        let found = unpacked(&headers, body.into(), 100).await.map_err(|cause| cause.to_string());
        assert_eq!(found.as_deref(), expected.map_err(str::to_owned).as_deref());
    }

    #[tokio::test]
    async fn packed_bodies_are_unpacked_within_the_limit() {
        check("gzip", packed(b"{}"), Ok(b"{}")).await;
        check("GZIP", [packed(b"{"), packed(b"}")].concat(), Ok(b"{}")).await;
        check("gzip", Vec::new(), Ok(b"")).await;
        check("identity", b"{}".to_vec(), Ok(b"{}")).await;
        check("gzip", packed(&[b'a'; 100]), Ok(&[b'a'; 100])).await;
        check("gzip", packed(&[b'a'; 1_000_000]), Err("the answer has more than 100 bytes")).await;
        const BROKEN: &str = "unexpected error when reading response body. Please retry. Original error: ";
        check("gzip", b"{\"no\": \"gzip at all\"}".to_vec(), Err(&format!("{BROKEN}gzip: invalid header")))
            .await;
        let mut short = packed(b"text");
        short.truncate(15);
        check("gzip", short, Err(&format!("{BROKEN}unexpected EOF"))).await;
        let mut forged = packed(b"text");
        let checksum = forged.len() - 8;
        forged[checksum] ^= 1;
        check("gzip", forged, Err(&format!("{BROKEN}gzip: invalid checksum"))).await;
    }
}
