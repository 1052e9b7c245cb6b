//! The PEM blocks that requests and their answers are made of. Requests are signed by the key that they are for; whose the
//! certificates of answers are, nobody asks here.

use super::signature;
use pintle_machinery::error_list::quote;
use x509_parser::{
    certification_request::X509CertificationRequest, pem::Pem, prelude::FromDer, prelude::X509Certificate,
};

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

/// Whether the first block is a request for a certificate, and signed.
pub(super) fn check_request(data: &[u8]) -> Result<(), String> {
    let first = Pem::iter_from_buffer(data).find_map(Result::ok).filter(|block| block.label == REQUEST);
    let Some(block) = first else {
        return Err(format!("PEM block type must be {REQUEST}"));
    };
    match X509CertificationRequest::from_der(&block.contents) {
        Ok(([], request)) => signature::check(&request),
        Ok(_) => Err("asn1: syntax error: trailing data".to_owned()),
        Err(_) => Err("x509: malformed certificate request".to_owned()),
    }
}

/// Whether all blocks are certificates, of which there is one at least; nothing at all is right too.
pub(super) fn check_certificates(data: &[u8]) -> Result<(), String> {
    if data.is_empty() {
        return Ok(());
    }
    let mut blocks = 0;
    for block in Pem::iter_from_buffer(data).filter_map(Result::ok) {
        if block.label != CERTIFICATE {
            return Err(format!("only {CERTIFICATE} PEM blocks are allowed, found {}", quote(&block.label)));
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
