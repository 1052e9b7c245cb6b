//! Counts servers whose certificates are refused for something that was accepted in the past, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>). The counters belong to the process.

use crate::{cause::tls_text, insecure_signature::InsecureSignature};
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
        if is_signed_with_sha1(error) {
            counters.insecure_sha1.inc();
        } else if tls_text(error).contains(LEGACY_NAME) {
            counters.missing_san.inc();
        }
    }
}

/// Part of the error of a certificate that has a name only where clients do not look any more.
const LEGACY_NAME: &str = "certificate relies on legacy Common Name field";

fn is_signed_with_sha1(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(CertificateError::UnsupportedSignatureAlgorithmContext {
        signature_algorithm_id,
        ..
    })) = inner
    else {
        return false;
    };
    matches!(
        InsecureSignature::of(signature_algorithm_id),
        Some(InsecureSignature::Sha1Rsa | InsecureSignature::EcdsaSha1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let legacy = io::Error::other("certificate relies on legacy Common Name field, use SANs instead");
        let legacy = CertificateError::Other(OtherError(Arc::new(legacy)));
        let signed_with = |oid: &[u8]| CertificateError::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: [&[6, oid.len() as u8], oid, &[5, 0]].concat(),
            supported_algorithms: Vec::new(),
        };
        let peers = Peers::ApiServices;
        for failed in [
            error(legacy),
            error(signed_with(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05])),
            error(signed_with(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01])),
            // With MD5.
            error(signed_with(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04])),
            error(CertificateError::UnknownIssuer),
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
