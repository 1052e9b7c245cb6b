//! The files and the etcd that a kube-apiserver needs to start, beside a server of ours.

use crate::{Error, Etcd};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::Path,
};

/// The flags of a kube-apiserver. Its files are below the directory.
pub(crate) fn flags(directory: &Path, etcd: &Etcd) -> Result<Vec<String>, Error> {
    let certs = directory.join("data/certs");
    fs::create_dir_all(&certs)?;
    let write = |name: &str, text: String| -> Result<String, Error> {
        let path = certs.join(name);
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let signer = KeyPair::generate()?;
    let tokens = write("service-account.pub", signer.public_key_pem())?;
    let signer = write("service-account.key", signer.serialize_pem())?;
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "front-proxy-ca");
    let ca = write("front-proxy-ca.crt", authority.self_signed(&authority_key)?.pem())?;
    let key = KeyPair::generate()?;
    let mut client = CertificateParams::default();
    client.distinguished_name.push(DnType::CommonName, "front-proxy-client");
    let certificate = client.signed_by(&key, &Issuer::new(authority, authority_key))?;
    let certificate = write("front-proxy-client.crt", certificate.pem())?;
    let key = write("front-proxy-client.key", key.serialize_pem())?;
    // The server cannot choose a port: another process may take this one before it listens.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    Ok(vec![
        format!("--etcd-servers={}", etcd.urls()),
        format!("--cert-dir={}", certs.display()),
        format!("--secure-port={port}"),
        "--advertise-address=10.20.30.40".to_owned(),
        format!("--service-account-key-file={tokens}"),
        format!("--service-account-signing-key-file={signer}"),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--requestheader-client-ca-file={ca}"),
        format!("--proxy-client-cert-file={certificate}"),
        format!("--proxy-client-key-file={key}"),
    ])
}
