//! Writes `admin.kubeconfig`, the administrator's credentials for kubectl.

use base64::{Engine, engine::general_purpose::STANDARD};

/// The text of a kubeconfig with a client certificate. It holds a private key: files with it must be readable by their
/// owner only.
pub(crate) fn kubeconfig(server: &str, ca_pem: &str, cert_pem: &str, key_pem: &str) -> String {
    let [ca, cert, key] = [ca_pem, cert_pem, key_pem].map(|pem| STANDARD.encode(pem));
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: pintle
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: admin
  user:
    client-certificate-data: {cert}
    client-key-data: {key}
contexts:
- name: pintle
  context:
    cluster: pintle
    user: admin
current-context: pintle
"
    )
}
