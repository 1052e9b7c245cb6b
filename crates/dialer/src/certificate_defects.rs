//! Counts servers whose certificates are refused for something that was accepted in the past, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>). The counters belong to the process.

use pintle_x509::VerifyError;
use prometheus::{IntCounter, core::Collector};
use rustls::CertificateError;
use std::{io, sync::LazyLock};

/// The servers whose certificates are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peers {
    /// Webhooks.
    Webhooks,
    /// The servers behind API services.
    ApiServices,
}

struct Counters {
    missing_san: IntCounter,
    insecure_sha1: IntCounter,
}

impl Counters {
    fn new(prefix: &str, peers: &str) -> Result<Counters, prometheus::Error> {
        let counter = |name: &str, why: &str| {
            IntCounter::new(
                format!("apiserver_{prefix}_x509_{name}_total"),
                format!("Connections to {peers} that failed because the certificate {why}."),
            )
        };
        Ok(Counters {
            missing_san: counter("missing_san", "has a common name in place of a subject alternative name")?,
            insecure_sha1: counter("insecure_sha1", "is signed with SHA-1")?,
        })
    }
}

static WEBHOOKS: LazyLock<Result<Counters, prometheus::Error>> =
    LazyLock::new(|| Counters::new("webhooks", "webhooks"));
static API_SERVICES: LazyLock<Result<Counters, prometheus::Error>> =
    LazyLock::new(|| Counters::new("kube_aggregator", "the servers of API services"));

impl Peers {
    fn counters(self) -> Option<&'static Counters> {
        match self {
            Peers::Webhooks => WEBHOOKS.as_ref().ok(),
            Peers::ApiServices => API_SERVICES.as_ref().ok(),
        }
    }

    /// The counters, to be registered.
    pub fn collectors(self) -> Vec<Box<dyn Collector>> {
        let counters = self
            .counters()
            .into_iter()
            .flat_map(|counters| [counters.missing_san.clone(), counters.insecure_sha1.clone()]);
        counters.map(|counter| Box::new(counter) as Box<dyn Collector>).collect()
    }

    /// Counts an error of a handshake, if it is about such a certificate.
    pub(crate) fn refused(self, error: &io::Error) {
        let Some(counters) = self.counters() else { return };
        match refusal(error) {
            Some(VerifyError::LegacyCommonName) => counters.missing_san.inc(),
            Some(why) if why.is_of_sha1() => counters.insecure_sha1.inc(),
            _ => {}
        }
    }
}

/// The reason why a server's certificate was refused.
pub(crate) fn refusal(error: &io::Error) -> Option<&VerifyError> {
    let inner = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>())?;
    match inner {
        rustls::Error::InvalidCertificate(CertificateError::Other(why)) => why.0.downcast_ref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_x509::SignatureError;
    use rustls::OtherError;
    use std::sync::Arc;

    fn counts(peers: Peers) -> Vec<(String, f64)> {
        let families = peers.collectors().into_iter().flat_map(|one| one.collect());
        families
            .map(|family| {
                let value =
                    family.get_metric().first().map_or(0.0, |metric| metric.get_counter().get_value());
                (family.name().to_owned(), value)
            })
            .collect()
    }

    #[test]
    fn defects_are_counted_by_kind() {
        let error = |error: CertificateError| io::Error::other(rustls::Error::InvalidCertificate(error));
        let refused = |why: VerifyError| error(CertificateError::Other(OtherError(Arc::new(why))));
        let signed_with = |name| {
            let why = Box::new(VerifyError::Signature(SignatureError::Insecure(name)));
            refused(VerifyError::UnknownAuthority(Some((why, "ca".to_owned()))))
        };
        let peers = Peers::ApiServices;
        for failed in [
            refused(VerifyError::LegacyCommonName),
            signed_with("SHA1-RSA"),
            signed_with("ECDSA-SHA1"),
            signed_with("MD5-RSA"),
            refused(VerifyError::UnknownAuthority(None)),
            error(CertificateError::BadEncoding),
            io::ErrorKind::ConnectionReset.into(),
        ] {
            peers.refused(&failed);
        }
        let expected = [("missing_san", 1.0), ("insecure_sha1", 2.0)]
            .map(|(name, count)| (format!("apiserver_kube_aggregator_x509_{name}_total"), count));
        assert_eq!(counts(peers), expected);
        assert!(counts(Peers::Webhooks).iter().all(|(_, count)| *count == 0.0));
    }
}
