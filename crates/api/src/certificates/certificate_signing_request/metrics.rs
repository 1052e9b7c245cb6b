//! Metrics of issued certificates, under Kubernetes' names
//! (<https://kubernetes.io/docs/reference/instrumentation/metrics/>). They belong to the process.

use super::pem::first_validity;
use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_machinery::{Value, ValueExt};
use prometheus::{IntCounterVec, Opts, core::Collector};
use std::{sync::LazyLock, time::Duration};

/// Counts the certificates that were issued for requests with `expirationSeconds`, by signer.
#[derive(Debug)]
pub struct IssuedCertificateMetrics {
    requested: IntCounterVec,
    honored: IntCounterVec,
}

static METRICS: LazyLock<Result<IssuedCertificateMetrics, prometheus::Error>> = LazyLock::new(|| {
    let counter = |name: &str, help: &str| {
        let name = format!("apiserver_certificates_registry_csr_{name}_duration_total");
        IntCounterVec::new(Opts::new(name, help), &["signerName"])
    };
    Ok(IssuedCertificateMetrics {
        requested: counter("requested", "Certificates that were issued for requests with a duration.")?,
        honored: counter("honored", "Certificates that were issued with the requested duration.")?,
    })
});

/// The tolerated difference between a certificate's duration and the requested one, beside a twentieth: signers date
/// short-lived certificates back.
const BACKDATED: Duration = Duration::from_secs(300);

impl IssuedCertificateMetrics {
    /// The metrics of the process; `None` if their names were invalid, which tests would reveal.
    pub fn of_process() -> Option<&'static IssuedCertificateMetrics> {
        METRICS.as_ref().ok()
    }

    /// The metrics, to be registered.
    pub fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(self.requested.clone()), Box::new(self.honored.clone())]
    }

    /// Counts an issued certificate.
    pub(super) fn issued(&self, issued: &Issued) {
        self.requested.with_label_values(&[&issued.signer]).inc();
        if issued.is_honored {
            self.honored.with_label_values(&[&issued.signer]).inc();
        }
    }
}

/// A certificate that an update issues for a request with a duration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Issued {
    /// The signer's name; `other` for those that are not Kubernetes' own.
    signer: String,
    is_honored: bool,
}

impl Issued {
    /// The certificate that `new` has and `old` has not; `None` if there is none, or no duration was requested.
    pub(super) fn by(new: &Value, old: &Value) -> Option<Issued> {
        let certificate = new.str_at("status.certificate");
        let seconds = old.i64_at("spec.expirationSeconds")?;
        if certificate.is_empty() || !old.str_at("status.certificate").is_empty() {
            return None;
        }
        let signer = old.str_at("spec.signerName");
        let signer = if signer.starts_with("kubernetes.io/") { signer } else { "other" };
        let requested = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let issued = STANDARD.decode(certificate).ok().and_then(|pem| first_validity(&pem));
        let is_honored = issued.is_some_and(|issued| issued.abs_diff(requested) < BACKDATED + requested / 20);
        Some(Issued { signer: signer.to_owned(), is_honored })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    #[test]
    fn a_duration_is_honored_within_a_twentieth_and_five_minutes() {
        let certificate = include_str!("testdata/jane.crt");
        let valid = first_validity(certificate.as_bytes()).unwrap().as_secs() as i64;
        let certificate = STANDARD.encode(certificate);
        let request = |signer: &str, certificate: &str, seconds: i64| {
            json!({
                "spec": {"signerName": signer, "expirationSeconds": seconds},
                "status": {"certificate": certificate},
            })
        };
        let check = |signer: &str, seconds: i64, expected: (&str, bool)| {
            let (new, old) = (request(signer, &certificate, seconds), request(signer, "", seconds));
            let found = Issued::by(&new, &old).unwrap();
            assert_eq!((found.signer.as_str(), found.is_honored), expected, "{seconds}");
        };
        let kubelet = "kubernetes.io/kubelet-serving";
        check(kubelet, valid, (kubelet, true));
        check(kubelet, valid + 299, (kubelet, true));
        check(kubelet, valid - 299, (kubelet, true));
        // A twentieth of what is requested.
        check(kubelet, (valid + 300) * 20 / 19 - 20, (kubelet, true));
        check(kubelet, (valid + 300) * 20 / 19 + 20, (kubelet, false));
        check("example.com/signer", 600, ("other", false));
        let (unissued, issued) = (request(kubelet, "", 600), request(kubelet, "x", 600));
        assert_eq!(Issued::by(&unissued, &unissued), None);
        assert_eq!(Issued::by(&issued, &issued), None);
        assert!(!Issued::by(&issued, &unissued).unwrap().is_honored);
    }
}
