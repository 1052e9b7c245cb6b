//! The fields of a certificate that the verification of chains needs.

use crate::{VerifyError, name_constraints::NameConstraints, names::Names};
use rustls_pki_types::CertificateDer;
use std::collections::BTreeSet;
use x509_parser::{
    asn1_rs::Oid,
    extensions::{ParsedExtension, X509Extension},
    oid_registry::{
        OID_X509_EXT_BASIC_CONSTRAINTS, OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_EXT_KEY_USAGE,
        OID_X509_EXT_NAME_CONSTRAINTS, OID_X509_EXT_POLICY_CONSTRAINTS, OID_X509_EXT_SUBJECT_ALT_NAME,
    },
    prelude::{FromDer, X509Certificate},
    x509::X509Version,
};

/// A certificate that was read whole: the extensions that decide what it may do are well-formed, and none is there twice.
pub(crate) struct Certificate<'a> {
    pub(crate) der: &'a [u8],
    pub(crate) x509: X509Certificate<'a>,
    pub(crate) extensions: Extensions<'a>,
}

/// The parsed extensions of a certificate.
#[derive(Default)]
pub(crate) struct Extensions<'a> {
    /// The basic constraints: whether it is an authority, and the limit on the number of intermediates below it.
    pub(crate) basic: Option<(bool, Option<u32>)>,
    /// The key usage: whether the key may sign certificates.
    pub(crate) may_sign: Option<bool>,
    pub(crate) usages: Option<Usages>,
    /// The subject alternative names.
    pub(crate) names: Option<Names<'a>>,
    pub(crate) constraints: Option<NameConstraints<'a>>,
    pub(crate) subject_key: &'a [u8],
    pub(crate) authority_key: &'a [u8],
    /// A critical extension is not understood, so that the certificate must not be used.
    pub(crate) has_unknown_demands: bool,
}

/// The extended key usages of a certificate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usages {
    pub(crate) any: bool,
    pub(crate) server: bool,
    pub(crate) client: bool,
}

impl<'a> Certificate<'a> {
    /// Reads a certificate.
    ///
    /// # Errors
    /// [`VerifyError::Malformed`].
    pub(crate) fn read(der: &'a CertificateDer<'_>) -> Result<Certificate<'a>, VerifyError> {
        let der = der.as_ref();
        let (rest, x509) = X509Certificate::from_der(der).map_err(|_| VerifyError::Malformed)?;
        if !rest.is_empty() || x509.signature_algorithm != x509.tbs_certificate.signature {
            return Err(VerifyError::Malformed);
        }
        let extensions = Extensions::read(x509.extensions())?;
        Ok(Certificate { der, x509, extensions })
    }

    /// Whether it is of X.509 version 3, in which an authority must say that it is one.
    pub(crate) fn is_version_three(&self) -> bool {
        self.x509.version() == X509Version::V3
    }

    /// The bounds of the validity period, in seconds since 1970.
    pub(crate) fn validity(&self) -> (i64, i64) {
        let validity = self.x509.validity();
        (validity.not_before.timestamp(), validity.not_after.timestamp())
    }

    /// The name in errors: the common name, else the organization, else the serial number.
    pub(crate) fn title(&self) -> String {
        let subject = self.x509.subject();
        let common = subject.iter_common_name().last().and_then(|name| name.as_str().ok());
        let organization = || subject.iter_organization().next().and_then(|name| name.as_str().ok());
        match common.filter(|name| !name.is_empty()).or_else(organization) {
            Some(name) => name.to_owned(),
            None => format!("serial:{}", self.x509.tbs_certificate.serial),
        }
    }
}

/// The extensions that decide what a certificate may do. If one of them cannot be read, the certificate is malformed.
const DECIDING: [Oid<'static>; 6] = [
    OID_X509_EXT_BASIC_CONSTRAINTS,
    OID_X509_EXT_EXTENDED_KEY_USAGE,
    OID_X509_EXT_KEY_USAGE,
    OID_X509_EXT_NAME_CONSTRAINTS,
    OID_X509_EXT_POLICY_CONSTRAINTS,
    OID_X509_EXT_SUBJECT_ALT_NAME,
];

impl<'a> Extensions<'a> {
    fn read(all: &[X509Extension<'a>]) -> Result<Extensions<'a>, VerifyError> {
        let mut extensions = Extensions::default();
        let mut seen = BTreeSet::new();
        for extension in all {
            if !seen.insert(extension.oid.as_bytes()) {
                return Err(VerifyError::Malformed);
            }
            let is_known = extensions.add(extension)?;
            extensions.has_unknown_demands |= extension.critical && !is_known;
        }
        Ok(extensions)
    }

    /// Notes an extension; returns whether it is honored.
    fn add(&mut self, extension: &X509Extension<'a>) -> Result<bool, VerifyError> {
        match extension.parsed_extension() {
            ParsedExtension::ParseError { .. } if DECIDING.contains(&extension.oid) => {
                return Err(VerifyError::Malformed);
            }
            ParsedExtension::BasicConstraints(basic) => {
                self.basic = Some((basic.ca, basic.path_len_constraint));
            }
            ParsedExtension::KeyUsage(usage) if usage.flags != 0 => {
                self.may_sign = Some(usage.key_cert_sign());
            }
            ParsedExtension::ExtendedKeyUsage(usage) => {
                let others =
                    [usage.code_signing, usage.email_protection, usage.time_stamping, usage.ocsp_signing];
                let found = Usages { any: usage.any, server: usage.server_auth, client: usage.client_auth };
                // An empty list limits nothing.
                let is_empty = !(found.any || found.server || found.client || others.contains(&true))
                    && usage.other.is_empty();
                self.usages = (!is_empty).then_some(found);
            }
            ParsedExtension::SubjectAlternativeName(names) => {
                let names = Names::read(&names.general_names, extension.value)?;
                let is_known = names.has_any();
                self.names = Some(names);
                return Ok(is_known);
            }
            ParsedExtension::NameConstraints(constraints) => {
                let (constraints, is_known) = NameConstraints::read(constraints, extension.value)?;
                self.constraints = Some(constraints);
                return Ok(is_known);
            }
            ParsedExtension::SubjectKeyIdentifier(key) if !extension.critical => self.subject_key = key.0,
            ParsedExtension::AuthorityKeyIdentifier(key) if !extension.critical => {
                self.authority_key = key.key_identifier.as_ref().map_or(&[], |key| key.0);
            }
            // Conforming authorities must not mark these as critical (RFC 5280, sections 4.2.1.1, 4.2.1.2 and 4.2.2.1).
            ParsedExtension::SubjectKeyIdentifier(_) | ParsedExtension::AuthorityKeyIdentifier(_) => {
                return Err(VerifyError::Malformed);
            }
            ParsedExtension::AuthorityInfoAccess(_) if extension.critical => {
                return Err(VerifyError::Malformed);
            }
            // Without demands for an explicit policy, which are refused, these change nothing.
            ParsedExtension::KeyUsage(_)
            | ParsedExtension::AuthorityInfoAccess(_)
            | ParsedExtension::CertificatePolicies(_)
            | ParsedExtension::PolicyMappings(_)
            | ParsedExtension::InhibitAnyPolicy(_)
            | ParsedExtension::CRLDistributionPoints(_) => {}
            ParsedExtension::PolicyConstraints(_) => {
                self.has_unknown_demands = true;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
