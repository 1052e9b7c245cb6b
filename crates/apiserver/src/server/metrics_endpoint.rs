//! `/metrics` and `/metrics/slis`.

use super::Front;
use crate::{
    base::{
        body::Body,
        request::{Request, path_of},
        response::{Response, json_failure, text, with_content_type},
    },
    metrics::Format,
};
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Method, header};
use pintle_machinery::Status;
use pintle_offload::beside;
use std::io::Write;

/// Answers a request for metrics; `None` for other paths.
pub(super) async fn serve(front: &Front, request: &Request) -> Option<Response> {
    let is_slis = match &*path_of(request.uri()) {
        "/metrics" => false,
        "/metrics/slis" => true,
        _ => return None,
    };
    if *request.method() == Method::DELETE {
        match is_slis {
            true => front.health.reset_metrics(),
            false => front.metrics.reset(),
        }
        return Some(text(200, "metrics reset\n"));
    }
    let headers = request.headers();
    let accept = joined(headers, header::ACCEPT);
    let format = Format::negotiate(&accept);
    let is_compressed = accepts_gzip(&joined(headers, header::ACCEPT_ENCODING));
    // Thousands of series take milliseconds.
    let (health, metrics, stores) = (front.health.clone(), front.metrics.clone(), front.stores.clone());
    let (storage_sizes, count_objects) = (front.storage_sizes.clone(), front.count_objects);
    let encoded = beside(move || {
        let bytes = match is_slis {
            true => health.encode_metrics(format),
            false => metrics.encode(format, &stores, &storage_sizes, count_objects),
        };
        match is_compressed {
            true => compressed(&bytes).map_err(|error| error.to_string()),
            false => Ok(bytes),
        }
    })
    .await;
    Some(match encoded {
        Ok(bytes) => {
            let mut response =
                with_content_type(200, &format.content_type(), Body::from(bytes::Bytes::from(bytes)));
            let headers = response.headers_mut();
            headers.insert("process-start-time-unix", front.metrics.start_time().into());
            if is_compressed {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            response
        }
        Err(error) => json_failure(&Status::internal_error(error)),
    })
}

fn joined(headers: &HeaderMap, name: header::HeaderName) -> String {
    let values: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

fn compressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Whether `Accept-Encoding` prefers gzip. The first of equally good encodings is `identity`.
fn accepts_gzip(header: &str) -> bool {
    let (mut best, mut is_gzip) = (-1.0, false);
    for offer in ["identity", "gzip"] {
        for clause in header.split(',') {
            let (name, parameters) = clause.split_once(';').unwrap_or((clause, ""));
            let quality = parameters.trim().strip_prefix("q=").map_or(1.0, |q| q.parse().unwrap_or(0.0));
            if quality > best && [offer, "*"].contains(&name.trim()) {
                (best, is_gzip) = (quality, offer == "gzip");
            }
        }
    }
    is_gzip && best > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_negotiated() {
        for (header, expected) in [
            ("", false),
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("identity, gzip", false),
            ("identity;q=0.5, gzip", true),
            ("*", false),
            ("br", false),
        ] {
            assert_eq!(accepts_gzip(header), expected, "{header}");
        }
    }
}
