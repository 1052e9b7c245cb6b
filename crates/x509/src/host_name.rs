//! Whether a server's certificate is for the name by which it was called.

use crate::{VerifyError, certificate::Certificate};
use rustls_pki_types::ServerName;
use std::net::IpAddr;

/// The number of names from which on an error no longer lists them.
const MAX_LISTED: usize = 100;

/// Checks that a certificate is for a name.
///
/// # Errors
/// [`VerifyError::HostName`], with the names that it is for.
pub(crate) fn check_host_name(
    certificate: &Certificate<'_>,
    name: &ServerName<'_>,
) -> Result<(), VerifyError> {
    let (dns, addresses) = match &certificate.extensions.names {
        Some(names) => (names.dns.as_slice(), names.addresses.as_slice()),
        None => (&[][..], &[][..]),
    };
    let wanted = name.to_str();
    let fits = match name {
        ServerName::IpAddress(address) => {
            let address = IpAddr::from(*address).to_canonical();
            addresses.iter().any(|own| own.to_canonical() == address)
        }
        _ => dns.iter().any(|pattern| is_name_of(pattern, &wanted)),
    };
    match fits {
        true => Ok(()),
        false if certificate.extensions.names.is_none() && has_common_name(certificate, &wanted) => {
            Err(VerifyError::LegacyCommonName)
        }
        false => Err(VerifyError::HostName(why(name, &wanted, dns, addresses))),
    }
}

fn has_common_name(certificate: &Certificate<'_>, wanted: &str) -> bool {
    let common_name = certificate.x509.subject().iter_common_name().last();
    common_name.and_then(|name| name.as_str().ok()).is_some_and(|pattern| matches_labels(pattern, wanted))
}

fn why(name: &ServerName<'_>, wanted: &str, dns: &[&str], addresses: &[IpAddr]) -> String {
    let (listed, what) = match name {
        ServerName::IpAddress(_) if addresses.is_empty() => {
            return format!(
                "cannot validate certificate for {wanted} because it doesn't contain any IP SANs"
            );
        }
        ServerName::IpAddress(_) => {
            let texts = addresses.iter().map(|address| address.to_canonical().to_string());
            (texts.collect::<Vec<_>>(), "IP SANs")
        }
        _ => (dns.iter().map(|name| (*name).to_owned()).collect(), "names"),
    };
    if listed.len() >= MAX_LISTED {
        return format!("certificate is valid for {} {what}, but none matched {wanted}", listed.len());
    }
    match listed.join(", ") {
        listed if listed.is_empty() => {
            format!("certificate is not valid for any names, but wanted to match {wanted}")
        }
        listed => format!("certificate is valid for {listed}, not {wanted}"),
    }
}

/// Whether a pattern, whose first label may be a wildcard, has a name. Texts that are no host names have to be equal.
fn is_name_of(pattern: &str, name: &str) -> bool {
    match is_host_name(name.strip_suffix('.').unwrap_or(name), false) && is_host_name(pattern, true) {
        true => matches_labels(pattern, name),
        false => !matches!(name, "" | ".") && pattern.eq_ignore_ascii_case(name),
    }
}

fn is_host_name(name: &str, is_pattern: bool) -> bool {
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !label.is_empty() && !label.starts_with('-') && label.bytes().all(is_allowed)
    };
    let mut labels = name.split('.').enumerate();
    name != "*" && labels.all(|(index, label)| is_pattern && index == 0 && label == "*" || is_label(label))
}

fn matches_labels(pattern: &str, name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let (patterns, labels): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), name.split('.').collect());
    let fits = |(index, (pattern, label)): (usize, (&&str, &&str))| {
        index == 0 && *pattern == "*" || pattern.eq_ignore_ascii_case(label)
    };
    !pattern.is_empty()
        && patterns.len() == labels.len()
        && patterns.iter().zip(&labels).enumerate().all(fits)
}
