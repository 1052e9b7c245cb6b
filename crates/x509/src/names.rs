//! The subject alternative names of certificates.

use crate::VerifyError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use x509_parser::extensions::GeneralName;

/// The subject alternative names of a certificate, by type.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    /// The extension itself.
    pub(crate) value: &'a [u8],
    pub(crate) dns: Vec<&'a str>,
    pub(crate) emails: Vec<&'a str>,
    pub(crate) uris: Vec<&'a str>,
    pub(crate) addresses: Vec<IpAddr>,
}

impl<'a> Names<'a> {
    /// Reads the names of an extension.
    ///
    /// # Errors
    /// [`VerifyError::Malformed`].
    pub(crate) fn read(names: &[GeneralName<'a>], value: &'a [u8]) -> Result<Names<'a>, VerifyError> {
        let mut found = Names { value, ..Names::default() };
        for name in names {
            match name {
                GeneralName::DNSName(name) if name.is_ascii() => found.dns.push(name),
                GeneralName::RFC822Name(name) if name.is_ascii() => found.emails.push(name),
                GeneralName::URI(name) if name.is_ascii() => found.uris.push(name),
                GeneralName::IPAddress(bytes) => {
                    found.addresses.push(address(bytes).ok_or(VerifyError::Malformed)?);
                }
                GeneralName::DNSName(_)
                | GeneralName::RFC822Name(_)
                | GeneralName::URI(_)
                | GeneralName::Invalid(..) => return Err(VerifyError::Malformed),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether there is a name of a type that counts.
    pub(crate) fn has_any(&self) -> bool {
        !(self.dns.is_empty() && self.emails.is_empty() && self.uris.is_empty() && self.addresses.is_empty())
    }
}

/// The address of 4 or 16 bytes.
pub(crate) fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)))).ok()
}
