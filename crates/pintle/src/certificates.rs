//! Generates the server's own certificate authority, its serving certificate and the administrator's client
//! certificate; and the authority of front proxies, with the certificate that the aggregator presents.
//!
//! They are generated on the first start and kept; the serving certificate is renewed when it lacks a required name or
//! address. Private keys are readable by their owner only.

use crate::Options;
use pintle_feature_gates::Gate;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// The reason why certificates cannot be loaded or generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// A file holds no usable certificate or key.
    #[error("{path}: {why}")]
    Pem {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// Generating a certificate failed.
    #[error("making a certificate failed: {0}")]
    Generate(#[from] rcgen::Error),
    /// One of the two files of a pair was given without the other.
    #[error("missing filename for serving cert")]
    HalfAPair,
}

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
                    let (certificate, key) = ca.serving(&dir, options, service_ip)?;
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

/// The file with the names for which the serving certificate was generated.
const NAMES_FILE: &str = "apiserver.names";

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

/// A generated certificate authority.
struct Authority {
    name: &'static AuthorityName,
    cert_pem: String,
    key: KeyPair,
}

/// The file name of an authority without its extension, and its common name.
struct AuthorityName {
    file: &'static str,
    common_name: &'static str,
}

/// The authority of the server and of its clients.
static CLIENTS: AuthorityName = AuthorityName { file: "ca", common_name: "pintle-ca" };
/// The authority of front proxies. A separate one: its clients name any user.
static FRONT_PROXIES: AuthorityName =
    AuthorityName { file: "front-proxy-ca", common_name: "pintle-front-proxy-ca" };

impl Authority {
    fn load_or_make(dir: &Path, name: &'static AuthorityName) -> Result<Authority, CertificateError> {
        let path = |end: &str| dir.join(format!("{}.{end}", name.file));
        let (cert_path, key_path) = (path("crt"), path("key"));
        if cert_path.exists() && key_path.exists() {
            let key = KeyPair::from_pem(&read(&key_path)?).map_err(|error| CertificateError::Pem {
                path: key_path.display().to_string(),
                why: error.to_string(),
            })?;
            return Ok(Authority { name, cert_pem: read(&cert_path)?, key });
        }
        let key = KeyPair::generate()?;
        let cert_pem = name.params().self_signed(&key)?.pem();
        write_private(&key_path, &key.serialize_pem())?;
        write_public(&cert_path, &cert_pem)?;
        Ok(Authority { name, cert_pem, key })
    }

    /// Issues a certificate. This needs the authority's name and key only.
    fn sign(&self, params: CertificateParams) -> Result<(String, String), CertificateError> {
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(self.name.params(), &self.key);
        Ok((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
    }

    /// The client certificate in the files of this name, for a user and a group.
    fn client(
        &self,
        dir: &Path,
        file: &str,
        (user, group): (&str, &str),
    ) -> Result<(String, String), CertificateError> {
        let (cert_path, key_path) = (dir.join(format!("{file}.crt")), dir.join(format!("{file}.key")));
        if cert_path.exists() && key_path.exists() {
            return Ok((read(&cert_path)?, read(&key_path)?));
        }
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if !group.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (cert, key) = self.sign(params)?;
        write_private(&key_path, &key)?;
        write_public(&cert_path, &cert)?;
        Ok((cert, key))
    }

    fn serving(
        &self,
        dir: &Path,
        options: &Options,
        service_ip: Option<IpAddr>,
    ) -> Result<(String, String), CertificateError> {
        let (cert_path, key_path) = (dir.join("apiserver.crt"), dir.join("apiserver.key"));
        let names_path = dir.join(NAMES_FILE);
        let names = serving_names(options, service_ip);
        let listed = names.join("\n");
        let made_for_them = fs::read_to_string(&names_path).is_ok_and(|made_for| made_for == listed);
        if made_for_them && cert_path.exists() && key_path.exists() {
            return Ok((read(&cert_path)?, read(&key_path)?));
        }
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in &names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        let (cert, key) = self.sign(params)?;
        write_private(&key_path, &key)?;
        write_public(&cert_path, &cert)?;
        write_public(&names_path, &listed)?;
        Ok((cert, key))
    }
}

impl AuthorityName {
    fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, self.common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params
    }
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

fn read(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path).map_err(|source| file_error(path, source))
}

fn file_error(path: &Path, source: io::Error) -> CertificateError {
    CertificateError::File { path: path.display().to_string(), source }
}

fn write_public(path: &Path, text: &str) -> Result<(), CertificateError> {
    fs::write(path, text).map_err(|source| file_error(path, source))
}

/// Writes a file that is readable by its owner only, from its creation on. One that has this text is left as it is: a
/// server starts on a full disk, too.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), CertificateError> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    if fs::read(path).is_ok_and(|written| written == text.as_bytes()) {
        return Ok(());
    }
    let mut file = PathBuf::from(path);
    file.set_extension("new");
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&file, path));
    written.map_err(|source| file_error(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_written_only_if_its_text_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write_private(&path, "one").unwrap();
        let first = fs::metadata(&path).unwrap();
        assert_eq!(first.mode() & 0o777, 0o600);
        write_private(&path, "one").unwrap();
        let same = fs::metadata(&path).unwrap();
        assert_eq!((same.ino(), same.mtime_nsec()), (first.ino(), first.mtime_nsec()));
        write_private(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }
}
