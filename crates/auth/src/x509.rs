//! Users from client certificates
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>).

use pintle_machinery::{UserInfo, user::AUTHENTICATED};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Reads users from certificates that the TLS layer has verified: the common name is the user, the organizations are
/// the groups.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientCertificates;

impl ClientCertificates {
    /// The user of a certificate in DER; `None` when it names none.
    pub(crate) fn user(self, der: &[u8]) -> Option<UserInfo> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let subject = certificate.subject();
        let text = |value: Result<&str, _>| value.ok().map(str::to_owned);
        let name = subject.iter_common_name().next().and_then(|name| text(name.as_str().map_err(drop)))?;
        let mut groups: Vec<String> =
            subject.iter_organization().filter_map(|name| text(name.as_str().map_err(drop))).collect();
        groups.push(AUTHENTICATED.to_owned());
        (!name.is_empty()).then(|| UserInfo { name, groups, ..UserInfo::default() })
    }
}
