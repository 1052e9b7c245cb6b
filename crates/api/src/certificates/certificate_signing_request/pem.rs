//! Validates the PEM blocks of requests and of issued certificates. A request must be signed by its own key; the issuer
//! of a certificate is not checked here.

use crate::certificates::request_signature::check_signature;
use pintle_go_forms::{PemBlocks, quote};
use std::time::Duration;
use x509_parser::{
    certification_request::X509CertificationRequest, prelude::FromDer, prelude::X509Certificate,
};

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

/// Requires that the first block is a signed certificate request.
pub(in crate::certificates) fn check_request(data: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(data);
    let first = PemBlocks::of(&text).next().filter(|block| block.label == REQUEST);
    let Some(block) = first else {
        return Err(format!("PEM block type must be {REQUEST}"));
    };
    match X509CertificationRequest::from_der(&block.contents) {
        Ok(([], request)) => check_signature(&request).map_err(|error| error.to_string()),
        Ok(_) => Err("asn1: syntax error: trailing data".to_owned()),
        Err(_) => Err("x509: malformed certificate request".to_owned()),
    }
}

/// Requires that all blocks are certificates, and that there is at least one; empty data is valid too.
pub(super) fn check_certificates(data: &[u8]) -> Result<(), String> {
    if data.is_empty() {
        return Ok(());
    }
    let mut blocks = 0;
    for block in PemBlocks::of(&String::from_utf8_lossy(data)) {
        if block.label != CERTIFICATE {
            return Err(format!("only {CERTIFICATE} PEM blocks are allowed, found {}", quote(block.label)));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".to_owned());
        }
        blocks += 1;
        check_block(&block.contents)?;
    }
    if blocks == 0 {
        return Err(format!("must contain at least one {CERTIFICATE} PEM block"));
    }
    Ok(())
}

/// A block may hold several certificates, one after the other.
fn check_block(contents: &[u8]) -> Result<(), String> {
    let mut rest = contents;
    if rest.is_empty() {
        return Err(format!("found {CERTIFICATE} PEM block containing 0 certificates"));
    }
    while !rest.is_empty() {
        rest = X509Certificate::from_der(rest).map_err(|_| "x509: malformed certificate")?.0;
    }
    Ok(())
}

/// The duration for which the first certificate is valid.
pub(super) fn first_validity(data: &[u8]) -> Option<Duration> {
    let text = String::from_utf8_lossy(data);
    let block = PemBlocks::of(&text).next()?;
    let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
    let (begin, end) =
        (certificate.validity.not_before.timestamp(), certificate.validity.not_after.timestamp());
    u64::try_from(end.checked_sub(begin)?).ok().map(Duration::from_secs)
}
