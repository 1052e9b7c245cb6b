//! A generated certificate authority, and the certificates that it issues.

use super::error::{CertificateError, file_error, read};
use pintle_durable_file::{Readers, replace};
use pintle_x509::{TrustAnchors, Usage};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};
use std::{
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
};

/// The file with the names for which the serving certificate was generated.
pub(super) const NAMES_FILE: &str = "apiserver.names";

/// A generated certificate authority.
pub(super) struct Authority {
    name: &'static AuthorityName,
    files: Pair,
    pub(super) cert_pem: String,
    key: KeyPair,
    anchors: TrustAnchors,
}

/// The file name of an authority without its extension, and its common name.
pub(super) struct AuthorityName {
    file: &'static str,
    common_name: &'static str,
}

/// The authority of the server and of its clients.
pub(super) static CLIENTS: AuthorityName = AuthorityName { file: "ca", common_name: "pintle-ca" };
/// The authority of front proxies. A separate one: its clients name any user.
pub(super) static FRONT_PROXIES: AuthorityName =
    AuthorityName { file: "front-proxy-ca", common_name: "pintle-front-proxy-ca" };

/// The files of a certificate and its key.
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Authority {
    /// Loads the authority, or generates it on the first start. A certificate that is missing is made again from the key;
    /// a key that is missing is an error, since clients trust the certificate.
    pub(super) fn load_or_make(
        dir: &Path,
        name: &'static AuthorityName,
    ) -> Result<Authority, CertificateError> {
        let files = Pair::new(dir, name.file);
        let key = match (files.certificate.exists(), files.key.exists()) {
            (_, true) => {
                KeyPair::from_pem(&read(&files.key)?).map_err(|error| pem_error(&files.key, &error))?
            }
            (true, false) => {
                let [certificate, key] = files.names();
                return Err(CertificateError::KeyIsMissing { key, certificate });
            }
            (false, false) => {
                let key = KeyPair::generate()?;
                write(&files.key, &key.serialize_pem(), Readers::Owner)?;
                key
            }
        };
        let cert_pem = match files.certificate.exists() {
            true => read(&files.certificate)?,
            false => {
                let pem = name.params().self_signed(&key)?.pem();
                write(&files.certificate, &pem, Readers::Everybody)?;
                pem
            }
        };
        let mut anchors = TrustAnchors::default();
        let certificate = CertificateDer::from_pem_slice(cert_pem.as_bytes());
        let certificate = certificate.map_err(|error| pem_error(&files.certificate, &error))?;
        anchors.add(certificate).map_err(|error| pem_error(&files.certificate, &error))?;
        Ok(Authority { name, files, cert_pem, key, anchors })
    }

    /// The client certificate in the files of this name and its key, for a user and a group.
    pub(super) fn client(
        &self,
        dir: &Path,
        file: &str,
        (user, group): (&str, &str),
    ) -> Result<(String, String), CertificateError> {
        let files = Pair::new(dir, file);
        if let Some(present) = self.issued(&files, Usage::Client)? {
            return Ok(present);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if !group.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&files, params, Usage::Client)
    }

    /// The generated serving certificate and its key, for these names and addresses.
    pub(super) fn serving(&self, dir: &Path, names: &[String]) -> Result<(String, String), CertificateError> {
        let files = Pair::new(dir, "apiserver");
        let names_path = dir.join(NAMES_FILE);
        let listed = names.join("\n");
        if fs::read_to_string(&names_path).is_ok_and(|present| present == listed)
            && let Some(present) = self.issued(&files, Usage::Server)?
        {
            return Ok(present);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        // Without the old certificate the new names are never taken for its own, whenever the server is stopped.
        remove(&files.certificate)?;
        write(&names_path, &listed, Readers::Everybody)?;
        self.issue(&files, params, Usage::Server)
    }

    /// The certificate and the key in these files; `None` if one is missing, or this authority has not issued the certificate.
    fn issued(&self, files: &Pair, usage: Usage) -> Result<Option<(String, String)>, CertificateError> {
        if !files.certificate.exists() || !files.key.exists() {
            return Ok(None);
        }
        let certificate = read(&files.certificate)?;
        match self.verifies(&certificate, usage) {
            true => Ok(Some((certificate, read(&files.key)?))),
            false => {
                let (file, authority) = (files.certificate.display(), self.files.certificate.display());
                tracing::warn!(%file, %authority, "issuing a certificate anew: the authority has not issued the present one");
                Ok(None)
            }
        }
    }

    fn verifies(&self, certificate: &str, usage: Usage) -> bool {
        let Ok(certificate) = CertificateDer::from_pem_slice(certificate.as_bytes()) else { return false };
        self.anchors.verify(&[certificate], None, usage, UnixTime::now()).is_ok()
    }

    /// Issues a certificate. This needs the authority's name and key only.
    fn issue(
        &self,
        files: &Pair,
        params: CertificateParams,
        usage: Usage,
    ) -> Result<(String, String), CertificateError> {
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(self.name.params(), &self.key);
        let (certificate, key) = (params.signed_by(&key, &issuer)?.pem(), key.serialize_pem());
        if !self.verifies(&certificate, usage) {
            let [certificate, key] = self.files.names();
            return Err(CertificateError::OtherAuthority { certificate, key });
        }
        write(&files.key, &key, Readers::Owner)?;
        write(&files.certificate, &certificate, Readers::Everybody)?;
        Ok((certificate, key))
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

impl Pair {
    fn new(dir: &Path, file: &str) -> Pair {
        Pair { certificate: dir.join(format!("{file}.crt")), key: dir.join(format!("{file}.key")) }
    }

    /// The certificate and the key, as errors name them.
    fn names(&self) -> [String; 2] {
        [&self.certificate, &self.key].map(|path| path.display().to_string())
    }
}

fn write(path: &Path, text: &str, readers: Readers) -> Result<(), CertificateError> {
    replace(path, text.as_bytes(), readers).map_err(|source| file_error(path, source))
}

fn remove(path: &Path) -> Result<(), CertificateError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error(path, error)),
        _ => Ok(()),
    }
}

fn pem_error(path: &Path, why: &dyn std::fmt::Display) -> CertificateError {
    CertificateError::Pem { path: path.display().to_string(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(dir: &Path) -> Result<(String, String), CertificateError> {
        Authority::load_or_make(dir, &CLIENTS)?.client(dir, "admin", ("admin", "system:masters"))
    }

    fn serving(dir: &Path) -> Result<(String, String), CertificateError> {
        Authority::load_or_make(dir, &CLIENTS)?.serving(dir, &["localhost".to_owned()])
    }

    #[test]
    fn certificates_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let first = (client(dir.path()).unwrap(), serving(dir.path()).unwrap());
        assert_eq!((client(dir.path()).unwrap(), serving(dir.path()).unwrap()), first);
    }

    #[test]
    fn a_new_authority_issues_its_certificates_anew() {
        let dir = tempfile::tempdir().unwrap();
        let first = (client(dir.path()).unwrap(), serving(dir.path()).unwrap());
        for file in ["ca.crt", "ca.key"] {
            fs::remove_file(dir.path().join(file)).unwrap();
        }
        let second = (client(dir.path()).unwrap(), serving(dir.path()).unwrap());
        assert!(second.0.0 != first.0.0 && second.1.0 != first.1.0);
        assert_eq!((client(dir.path()).unwrap(), serving(dir.path()).unwrap()), second);
    }

    #[test]
    fn a_missing_certificate_of_an_authority_is_made_from_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let first = client(dir.path()).unwrap();
        fs::remove_file(dir.path().join("ca.crt")).unwrap();
        assert_eq!(client(dir.path()).unwrap(), first, "the new one verifies the old certificates");
    }

    #[test]
    fn what_clients_trust_is_not_replaced_when_its_key_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        client(dir.path()).unwrap();
        let trusted = fs::read(dir.path().join("ca.crt")).unwrap();
        fs::remove_file(dir.path().join("ca.key")).unwrap();
        let error = client(dir.path()).unwrap_err().to_string();
        assert!(error.contains("ca.key: the key of ") && error.contains("ca.crt is missing"), "{error}");
        assert_eq!(fs::read(dir.path().join("ca.crt")).unwrap(), trusted);
    }

    #[test]
    fn an_authority_of_two_others_is_refused() {
        let [dir, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        client(dir.path()).unwrap();
        client(other.path()).unwrap();
        fs::copy(other.path().join("ca.key"), dir.path().join("ca.key")).unwrap();
        fs::remove_file(dir.path().join("admin.crt")).unwrap();
        let error = client(dir.path()).unwrap_err().to_string();
        assert!(error.contains("ca.crt: is not the certificate of"), "{error}");
    }

    #[test]
    fn a_damaged_file_is_named() {
        for file in ["ca.crt", "ca.key"] {
            let dir = tempfile::tempdir().unwrap();
            client(dir.path()).unwrap();
            fs::write(dir.path().join(file), "").unwrap();
            let error = client(dir.path()).unwrap_err().to_string();
            assert!(error.contains(file), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let first = client(dir.path()).unwrap();
        fs::write(dir.path().join("admin.crt"), "").unwrap();
        assert_ne!(client(dir.path()).unwrap(), first);
    }
}
