//! Authenticates users by client certificates
//! (<https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates>).

use crate::{
    ca_bundle::CaBundle, certificate_verifier::CertificateVerifier, group::with_authenticated_group,
};
use pintle_auth::authn::{Authenticated, Authentication, InvalidCredentials};
use pintle_feature_gates::{Gate, enabled};
use pintle_machinery::{UserInfo, user::CREDENTIAL_ID};
use prometheus::Histogram;
use ring::digest;
use rustls_pki_types::CertificateDer;
use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt::Write,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use x509_parser::{
    der_parser::{Oid, asn1_rs::Tag, oid},
    prelude::X509Certificate,
    x509::{AttributeTypeAndValue, X509Name},
};

/// Authenticates users by certificates of the bundle's authorities: the common name is the user name, the organizations
/// are the groups.
pub struct ClientCertificates {
    verifier: CertificateVerifier<Leaf>,
    lifetimes: Option<Histogram>,
}

struct Leaf {
    /// `None` when the certificate has no common name.
    user: Option<Arc<UserInfo>>,
    not_after: i64,
}

/// The subject attribute with the user's UID
/// (<https://github.com/kubernetes/apimachinery/blob/v0.36.0/pkg/apis/asn1/oid.go>).
const UID: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);

impl ClientCertificates {
    /// Trusts the authorities of a bundle.
    pub fn new(bundle: Arc<CaBundle>) -> ClientCertificates {
        ClientCertificates { verifier: CertificateVerifier::new(bundle), lifetimes: None }
    }

    /// Records the remaining lifetime of certificates.
    #[must_use]
    pub fn with_lifetimes(self, lifetimes: Histogram) -> ClientCertificates {
        ClientCertificates { lifetimes: Some(lifetimes), ..self }
    }

    /// The user of a certificate chain; `None` without a certificate.
    pub(crate) fn authenticate(&self, certificates: &[CertificateDer<'static>]) -> Authentication {
        let leaf = certificates.first().map(|leaf| leaf.as_ref()).unwrap_or_default();
        let verified = self.verifier.verify(certificates, |certificate| {
            let user = user(certificate, leaf)?;
            Ok(Leaf { user, not_after: certificate.validity().not_after.timestamp() })
        })?;
        let Some(leaf) = verified else { return Ok(None) };
        if let Some(lifetimes) = &self.lifetimes {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            lifetimes.observe(leaf.not_after as f64 - now);
        }
        Ok(leaf.user.clone().map(|user| Authenticated { user, ..Authenticated::default() }))
    }
}

fn user(certificate: &X509Certificate<'_>, der: &[u8]) -> Result<Option<Arc<UserInfo>>, InvalidCredentials> {
    let subject = certificate.subject();
    let Some(name) = common_name(subject)?.filter(|name| !name.is_empty()) else { return Ok(None) };
    let groups = subject.iter_organization().map(|name| text(name).map(Cow::into_owned));
    let mut credential = "X509SHA256=".to_owned();
    for byte in digest::digest(&digest::SHA256, der).as_ref() {
        // Writing to a string never fails.
        let _ = write!(credential, "{byte:02x}");
    }
    let user = UserInfo {
        name: name.into_owned(),
        uid: uid(subject)?,
        groups: groups.collect::<Result<_, _>>()?,
        extra: BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![credential])]),
    };
    Ok(Some(with_authenticated_group(Arc::new(user))))
}

/// The last common name of a subject, as in Go.
pub(crate) fn common_name<'a>(subject: &'a X509Name<'_>) -> Result<Option<Cow<'a, str>>, InvalidCredentials> {
    subject.iter_common_name().last().map(text).transpose()
}

/// The text of an attribute, in each encoding that Go reads. A certificate with another one is refused: without that
/// attribute, it would name someone else.
fn text<'a>(attribute: &'a AttributeTypeAndValue<'_>) -> Result<Cow<'a, str>, InvalidCredentials> {
    let bytes = attribute.as_slice();
    let text = match attribute.attr_value().tag() {
        // As Latin-1, as in Go.
        Tag::T61String => Some(Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect())),
        Tag::BmpString => ucs2(bytes).map(Cow::Owned),
        _ => attribute.as_str().ok().map(Cow::Borrowed),
    };
    text.ok_or_else(|| InvalidCredentials::new("the client's certificate cannot be read".to_owned()))
}

/// The text of two bytes for each character, which may end with a null character.
fn ucs2(bytes: &[u8]) -> Option<String> {
    let (pairs, rest) = bytes.strip_suffix(&[0, 0]).unwrap_or(bytes).as_chunks();
    // Surrogates are no characters of their own.
    let characters = pairs.iter().map(|pair| char::from_u32(u16::from_be_bytes(*pair).into()));
    characters.collect::<Option<_>>().filter(|_| rest.is_empty())
}

fn uid(subject: &X509Name<'_>) -> Result<String, InvalidCredentials> {
    let wrong = |why: &str| InvalidCredentials::new(why.to_owned());
    if !enabled(Gate::AllowParsingUserUIDFromCertAuth) {
        return Ok(String::new());
    }
    let mut uids = subject.iter_by_oid(&UID);
    let Some(uid) = uids.next() else { return Ok(String::new()) };
    let uid = text(uid)?;
    if uids.next().is_some() {
        return Err(wrong("expected 1 UID, but found multiple"));
    }
    match uid.is_empty() {
        true => Err(wrong("UID cannot be an empty string")),
        false => Ok(uid.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Authority, Leaf as Wanted};
    use pintle_feature_gates::{FeatureGates, testing::override_gates};
    use rcgen::{DnType, DnValue, ExtendedKeyUsagePurpose};
    use rustls_pki_types::pem::PemObject;

    fn check(bundle: &[&Authority], shown: &[CertificateDer<'static>]) -> Result<Option<UserInfo>, String> {
        let pem: String = bundle.iter().map(|authority| authority.pem()).collect();
        let certificates = ClientCertificates::new(Arc::new(CaBundle::new("test", &pem).unwrap()));
        let once = certificates.authenticate(shown);
        // The cached result is the same.
        assert_eq!(certificates.authenticate(shown), once);
        once.map(|found| found.map(|found| (*found.user).clone())).map_err(|error| error.reason)
    }

    #[test]
    fn names_are_users_and_organizations_are_groups() {
        let authority = Authority::new("ca");
        let leaf = authority.sign(&Wanted::client("jane").name(DnType::OrganizationName, "developers"));
        let user =
            check(&[&Authority::new("other"), &authority], std::slice::from_ref(&leaf)).unwrap().unwrap();
        assert_eq!(user.name, "jane");
        assert_eq!(user.groups, ["developers", "system:authenticated"]);
        let credential = &user.extra["authentication.kubernetes.io/credential-id"][0];
        assert_eq!(credential.len(), "X509SHA256=".len() + 64, "{credential}");
        assert_eq!(check(&[&authority], &[]), Ok(None));
        assert_eq!(check(&[&authority], &[authority.sign(&Wanted::client(""))]), Ok(None));
    }

    #[test]
    fn a_certificate_for_any_usage_is_one_of_a_client() {
        let authority = Authority::new("ca");
        let leaf = authority.sign(&Wanted::client("jane").usage(ExtendedKeyUsagePurpose::Any));
        assert_eq!(check(&[&authority], &[leaf]).unwrap().unwrap().name, "jane");
    }

    #[test]
    fn an_authority_is_a_client_of_its_own_server() {
        let authority = Authority::new("ca");
        let own = authority.certificate();
        assert_eq!(check(&[&authority], std::slice::from_ref(&own)).unwrap().unwrap().name, "ca");
        assert!(check(&[&Authority::new("ca")], &[own]).is_err());
    }

    #[test]
    fn names_are_read_in_each_encoding() {
        let authority = Authority::new("ca");
        let wide = |text: &str| DnValue::BmpString(text.try_into().unwrap());
        let latin = |text: &str| DnValue::TeletexString(text.try_into().unwrap());
        let named = |name: DnValue, group: DnValue| {
            let leaf = Wanted::client(name).name(DnType::OrganizationName, group);
            check(&[&authority], &[authority.sign(&leaf)])
        };
        for (name, group) in [(wide("jané"), latin("developers")), (latin("jane"), wide("developers\0"))] {
            let user = named(name, group).unwrap().unwrap();
            assert!(["jané", "jane"].contains(&user.name.as_str()), "{}", user.name);
            assert_eq!(user.groups, ["developers", "system:authenticated"]);
        }
        // Without an attribute that cannot be read, a certificate would name someone else.
        let four = || DnValue::UniversalString("jane".try_into().unwrap());
        for (name, group) in [(four(), "developers".into()), ("jane".into(), four())] {
            assert_eq!(named(name, group).unwrap_err(), "the client's certificate cannot be read");
        }
    }

    #[test]
    fn uids_are_read_from_names() {
        let authority = Authority::new("ca");
        let with = |uid: &str| {
            let oid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
            check(&[&authority], &[authority.sign(&Wanted::client("jane").name(oid, uid))])
        };
        assert_eq!(with("1-2").unwrap().unwrap().uid, "1-2");
        assert_eq!(with("").unwrap_err(), "UID cannot be an empty string");
        let gates = FeatureGates::default().with(Gate::AllowParsingUserUIDFromCertAuth, false);
        let _gates = override_gates(&gates);
        assert_eq!(["1-2", ""].map(|uid| with(uid).unwrap().unwrap().uid), ["", ""]);
    }

    #[test]
    fn certificates_that_do_not_hold_are_refused() {
        let (authority, other) = (Authority::new("ca"), Authority::new("ca"));
        let rows = [
            // An authority with the same name and another key.
            (other.sign(&Wanted::client("a")), "x509: certificate signed by unknown authority"),
            (
                authority.sign(&Wanted::client("a").days(-3, -1)),
                "x509: certificate has expired or is not yet valid",
            ),
            (
                authority.sign(&Wanted::client("a").days(1, 3)),
                "x509: certificate has expired or is not yet valid",
            ),
            (
                authority.sign(&Wanted::client("a").usage(ExtendedKeyUsagePurpose::ServerAuth)),
                "x509: certificate specifies an incompatible key usage",
            ),
        ];
        for (leaf, expected) in rows {
            let error = check(&[&authority], &[leaf]).unwrap_err();
            assert!(error.starts_with("verifying certificate SN=") && error.contains(expected), "{error}");
        }
        let garbage = CertificateDer::from(b"no certificate".to_vec());
        assert_eq!(check(&[&authority], &[garbage]).unwrap_err(), "the client's certificate cannot be read");
    }

    #[test]
    fn intermediates_lead_to_authorities() {
        let root = Authority::new("root");
        let middle = root.intermediate("middle");
        let leaf = middle.sign(&Wanted::client("jane"));
        let shown = [leaf.clone(), middle.certificate()];
        assert_eq!(check(&[&root], &shown).unwrap().unwrap().name, "jane");
        assert!(check(&[&root], std::slice::from_ref(&leaf)).is_err());
        assert!(check(&[&middle], &[leaf]).is_ok());
        // A client's certificate cannot issue others.
        let client = root.sign_as_authority(&Wanted::client("eve"));
        assert!(check(&[&root], &[client.sign(&Wanted::client("jane")), client.certificate()]).is_err());
    }

    #[test]
    fn an_expired_authority_is_not_believed() {
        let authority = Authority::with_days("ca", -10, -1);
        let error = check(&[&authority], &[authority.sign(&Wanted::client("jane"))]).unwrap_err();
        assert!(error.contains("expired or is not yet valid"), "{error}");
    }

    #[test]
    fn version_one_is_believed_of_an_authority_itself() {
        let certificate = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let client = certificate(include_str!("../../x509/fixtures/version-one.crt"));
        let believed = |authority: &str, shown: &[CertificateDer<'static>]| {
            let bundle = CaBundle::new("test", authority).unwrap();
            ClientCertificates::new(Arc::new(bundle)).authenticate(shown).map_err(|error| error.reason)
        };
        let authority = include_str!("../../x509/fixtures/authority.crt");
        let user = believed(authority, std::slice::from_ref(&client)).unwrap().unwrap().user;
        assert_eq!(
            (user.name.as_str(), user.groups.as_slice()),
            ("jane", &["readers".to_owned(), "system:authenticated".to_owned()][..])
        );
        let impostor = include_str!("../../x509/fixtures/impostor.crt");
        let error = believed(impostor, &[client, certificate(authority)]).unwrap_err();
        assert!(error.contains("x509: certificate signed by unknown authority"), "{error}");
    }

    #[test]
    fn keys_on_p521_are_believed() {
        let client = CertificateDer::from_pem_slice(include_bytes!("../../x509/fixtures/p521.crt")).unwrap();
        let bundle = CaBundle::new("test", include_str!("../../x509/fixtures/p521-authority.crt")).unwrap();
        let user = ClientCertificates::new(Arc::new(bundle)).authenticate(&[client]).unwrap().unwrap().user;
        assert_eq!(user.name, "p521");
    }

    #[test]
    fn an_exchanged_authority_counts_at_once() {
        let (old, new) = (Authority::new("old"), Authority::new("new"));
        let bundle = Arc::new(CaBundle::new("test", &old.pem()).unwrap());
        let certificates = ClientCertificates::new(bundle.clone());
        let (by_old, by_new) = (old.sign(&Wanted::client("a")), new.sign(&Wanted::client("b")));
        assert!(certificates.authenticate(std::slice::from_ref(&by_old)).is_ok());
        assert!(certificates.authenticate(std::slice::from_ref(&by_new)).is_err());
        bundle.replace(&new.pem()).unwrap();
        assert!(certificates.authenticate(&[by_old]).is_err());
        assert!(certificates.authenticate(&[by_new]).is_ok());
    }
}
