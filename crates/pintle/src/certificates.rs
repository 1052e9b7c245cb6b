//! Generates the server's own certificate authority, its serving certificate and the administrator's client
//! certificate; and the authority of front proxies, with the certificate that the aggregator presents.
//!
//! They are generated on the first start and kept. The serving certificate is issued anew when it lacks a required name or
//! address; and each certificate, when the present authority has not issued it. Private keys are readable by their owner only.

mod authority;
mod error;

pub(crate) use error::CertificateError;

use crate::Options;
use authority::{Authority, CLIENTS, FRONT_PROXIES, NAMES_FILE};
use error::{file_error, read};
use pintle_feature_gates::Gate;
use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// The certificates that the server needs for TLS, and that its administrator needs to connect.
pub(crate) struct Certificates {
    /// The serving certificate and its key.
    pub(crate) pair: PairSource,
    /// The authority that clients verify the serving certificate with.
    pub(crate) ca_pem: String,
    /// The authority that issued the administrator's certificate.
    pub(crate) ca_cert_pem: String,
    pub(crate) admin_cert_pem: String,
    pub(crate) admin_key_pem: String,
}

/// The source of the serving certificate.
#[derive(Clone)]
pub(crate) enum PairSource {
    /// Configured files, which may change.
    Files(PathBuf, PathBuf),
    /// The generated certificate.
    Generated { certificate: String, key: String },
}

impl Certificates {
    /// Loads existing certificates and generates missing ones.
    pub(crate) fn load_or_make(
        options: &Options,
        service_ip: Option<IpAddr>,
    ) -> Result<Certificates, CertificateError> {
        let dir = options.certificates_dir();
        fs::create_dir_all(&dir).map_err(|source| file_error(&dir, source))?;
        let ca = Authority::load_or_make(&dir, &CLIENTS)?;
        let (admin_cert_pem, admin_key_pem) =
            ca.client(&dir, "admin", ("kubernetes-admin", "system:masters"))?;
        let (pair, ca_pem) = match (&options.tls_cert_file, &options.tls_private_key_file) {
            (Some(cert), Some(key)) => (PairSource::Files(cert.clone(), key.clone()), read(cert)?),
            (None, None) => match brought_along(&dir) {
                Some((cert, key)) => (PairSource::Files(cert.clone(), key), read(&cert)?),
                None => {
                    let (certificate, key) = ca.serving(&dir, &serving_names(options, service_ip))?;
                    (PairSource::Generated { certificate, key }, ca.cert_pem.clone())
                }
            },
            _ => return Err(CertificateError::HalfAPair),
        };
        Ok(Certificates { pair, ca_pem, ca_cert_pem: ca.cert_pem, admin_cert_pem, admin_key_pem })
    }
}

/// The pair in the directory of certificates that this server has not generated: as in kube-apiserver, it is used.
fn brought_along(dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let (cert, key) = (dir.join("apiserver.crt"), dir.join("apiserver.key"));
    let is_own = dir.join(NAMES_FILE).exists();
    (!is_own && cert.exists() && key.exists()).then_some((cert, key))
}

/// The common name of the aggregator's client certificate.
const AGGREGATOR: &str = "front-proxy-client";

/// Configures front proxies if the options do not: an authority of their own, and a client certificate of the aggregator,
/// by which extension API servers believe it the user. Both are generated on the first start.
pub(crate) fn configure_front_proxy(options: &mut Options) -> Result<(), CertificateError> {
    let has_uids = options.features.is_open(Gate::RemoteRequestHeaderUID);
    let (proxy, aggregation) = (&mut options.authentication.request_header, &mut options.aggregation);
    let given =
        [&proxy.client_ca_file, &aggregation.proxy_client_cert_file, &aggregation.proxy_client_key_file];
    if given.into_iter().any(Option::is_some) {
        return Ok(());
    }
    let list = |name: &str| vec![name.to_owned()];
    proxy.allowed_names = list(AGGREGATOR);
    proxy.username_headers = list("X-Remote-User");
    proxy.uid_headers = if has_uids { list("X-Remote-Uid") } else { Vec::new() };
    proxy.group_headers = list("X-Remote-Group");
    proxy.extra_headers_prefix = list("X-Remote-Extra-");
    let dir = options.certificates_dir();
    fs::create_dir_all(&dir).map_err(|source| file_error(&dir, source))?;
    let authority = Authority::load_or_make(&dir, &FRONT_PROXIES)?;
    authority.client(&dir, AGGREGATOR, (AGGREGATOR, ""))?;
    let file = |name: &str| Some(dir.join(name));
    options.authentication.request_header.client_ca_file = file("front-proxy-ca.crt");
    options.aggregation.proxy_client_cert_file = file("front-proxy-client.crt");
    options.aggregation.proxy_client_key_file = file("front-proxy-client.key");
    Ok(())
}

/// The common name of the server's client certificate for kubelets, and its group.
const KUBELET_CLIENT: (&str, &str) = ("kube-apiserver-kubelet-client", "system:masters");

/// Configures the client certificate for kubelets if the options do not: one of the authority of the server's clients,
/// which kubelets that trust it (`authentication.x509.clientCAFile`) believe to be an administrator. It is generated on
/// the first start. Without a configured authority kubelets are not verified, since their own certificates are
/// self-signed by default.
pub(crate) fn configure_kubelet_client(options: &mut Options) -> Result<(), CertificateError> {
    if options.kubelet.client_certificate.is_some() || options.kubelet.client_key.is_some() {
        return Ok(());
    }
    let dir = options.certificates_dir();
    fs::create_dir_all(&dir).map_err(|source| file_error(&dir, source))?;
    Authority::load_or_make(&dir, &CLIENTS)?.client(&dir, "kubelet-client", KUBELET_CLIENT)?;
    options.kubelet.client_certificate = Some(dir.join("kubelet-client.crt"));
    options.kubelet.client_key = Some(dir.join("kubelet-client.key"));
    Ok(())
}

/// All names and addresses that clients may use for the server.
fn serving_names(options: &Options, service_ip: Option<IpAddr>) -> Vec<String> {
    let mut names: Vec<String> = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
        "127.0.0.1",
        "::1",
    ]
    .map(str::to_owned)
    .to_vec();
    names.extend(
        [Some(options.advertised()), service_ip].into_iter().flatten().map(|address| address.to_string()),
    );
    if !options.bind_address.is_unspecified() {
        names.push(options.bind_address.to_string());
    }
    names.sort();
    names.dedup();
    names
}
