//! Certificate authorities and certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls_pki_types::CertificateDer;
use std::time::{Duration, SystemTime};

/// A certificate authority, or a leaf that signs as if it were one.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

/// The parameters of a certificate.
pub(crate) struct Leaf(CertificateParams);

impl Leaf {
    pub(crate) fn client(name: impl Into<DnValue>) -> Leaf {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Leaf(params).days(-1, 1)
    }

    pub(crate) fn name(mut self, what: DnType, value: impl Into<DnValue>) -> Leaf {
        self.0.distinguished_name.push(what, value);
        self
    }

    pub(crate) fn usage(mut self, usage: ExtendedKeyUsagePurpose) -> Leaf {
        self.0.extended_key_usages = vec![usage];
        self
    }

    /// Sets the validity period, in days from now.
    pub(crate) fn days(mut self, from: i64, to: i64) -> Leaf {
        (self.0.not_before, self.0.not_after) = (day(from).into(), day(to).into());
        self
    }

    fn authority(mut self) -> CertificateParams {
        self.0.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        self.0.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        self.0.extended_key_usages = Vec::new();
        self.0
    }
}

fn day(days: i64) -> SystemTime {
    let length = Duration::from_secs(days.unsigned_abs() * 86_400);
    if days < 0 { SystemTime::now() - length } else { SystemTime::now() + length }
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        Authority::with_days(name, -1, 1)
    }

    pub(crate) fn with_days(name: &str, from: i64, to: i64) -> Authority {
        let params = Leaf::client(name).days(from, to).authority();
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    pub(crate) fn intermediate(&self, name: &str) -> Authority {
        self.sub(Leaf::client(name).authority())
    }

    /// Issues a certificate without the CA flag, whose holder signs all the same.
    pub(crate) fn sign_as_authority(&self, leaf: &Leaf) -> Authority {
        self.sub(leaf.0.clone())
    }

    fn sub(&self, params: CertificateParams) -> Authority {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    pub(crate) fn sign(&self, leaf: &Leaf) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        leaf.0.signed_by(&key, &self.issuer).unwrap().der().clone()
    }
}
