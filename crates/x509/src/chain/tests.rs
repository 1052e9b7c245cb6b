//! The expected results are those of Go 1.26 for certificates made in the same way.

use super::*;
use rcgen::{
    BasicConstraints, Certificate as Made, CertificateParams, CidrSubnet, CustomExtension, DnType,
    ExtendedKeyUsagePurpose as Eku, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, SanType, SignatureAlgorithm,
};
use rustls_pki_types::pem::PemObject;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::prelude::{FromDer, X509Certificate};

const NOW: u64 = 1_800_000_000;
const HOUR: u64 = 3600;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn now() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(NOW))
}

/// A certificate to be made.
struct Wanted(CertificateParams);

impl Wanted {
    fn named(name: &str) -> Wanted {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (at(NOW - HOUR).into(), at(NOW + HOUR).into());
        Wanted(params)
    }

    fn authority(name: &str) -> Wanted {
        Wanted::named(name).with(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
    }

    fn leaf() -> Wanted {
        Wanted::named("leaf").with(|params| {
            params.extended_key_usages = vec![Eku::ServerAuth, Eku::ClientAuth];
            params.subject_alt_names = vec![
                SanType::DnsName("a.ok.example".try_into().unwrap()),
                SanType::IpAddress("127.0.0.1".parse().unwrap()),
            ];
        })
    }

    fn with(mut self, adapt: impl FnOnce(&mut CertificateParams)) -> Wanted {
        adapt(&mut self.0);
        self
    }

    /// Adds an extension.
    fn says(self, oid: &[u64], critical: bool, value: &[u8]) -> Wanted {
        let mut extension = CustomExtension::from_oid_content(oid, value.to_vec());
        extension.set_criticality(critical);
        self.with(|params| params.custom_extensions.push(extension))
    }

    fn made(self, issuer: Option<&Authority>, algorithm: &'static SignatureAlgorithm) -> Authority {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = match issuer {
            None => self.0.self_signed(&key).unwrap(),
            Some(issuer) => self.0.signed_by(&key, &issuer.issuer).unwrap(),
        };
        Authority { certificate, issuer: Issuer::new(self.0, key) }
    }

    fn root(self) -> Authority {
        self.made(None, &PKCS_ECDSA_P256_SHA256)
    }

    fn by(self, issuer: &Authority) -> Authority {
        self.made(Some(issuer), &PKCS_ECDSA_P256_SHA256)
    }
}

/// A certificate that was made, with its key.
struct Authority {
    certificate: Made,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }
}

const PEER: &str = "a.ok.example";

fn verify(anchors: &[&Authority], chain: &[&Authority], usage: Usage) -> Result<i64, VerifyError> {
    let mut trusted = TrustAnchors::default();
    for anchor in anchors {
        trusted.add(anchor.der()).unwrap();
    }
    let chain: Vec<_> = chain.iter().map(|one| one.der()).collect();
    let name = ServerName::try_from(PEER).unwrap();
    trusted.verify(&chain, (usage == Usage::Server).then_some(&name), usage, now())
}

/// Checks the results for a server and for a client; an empty text is a success.
fn check(what: &str, anchors: &[&Authority], chain: &[&Authority], expected: [&str; 2]) {
    let found = [Usage::Server, Usage::Client].map(|usage| match verify(anchors, chain, usage) {
        Ok(_) => String::new(),
        Err(why) => why.to_string(),
    });
    assert_eq!(found, expected, "{what}");
}

const CANNOT_SIGN: &str = "x509: invalid signature: parent certificate cannot sign this kind of certificate";
const USAGE: &str = "x509: certificate specifies an incompatible key usage";
const TOO_MANY: &str = "x509: too many intermediates for path length constraint";
const UNHANDLED: &str = "x509: unhandled critical extension";

fn unknown_authority(why: &str, name: &str) -> String {
    format!(
        "x509: certificate signed by unknown authority (possibly because of \"{why}\" while trying to verify candidate \
         authority certificate \"{name}\")"
    )
}

/// Checks what an authority that says something of itself may issue, as a trust anchor and as an intermediate.
fn check_authority(what: &str, adapt: impl Fn(Wanted) -> Wanted, as_anchor: [&str; 2], between: [&str; 2]) {
    let root = adapt(Wanted::authority("ca")).root();
    check(what, &[&root], &[&Wanted::leaf().by(&root)], as_anchor);
    let root = Wanted::authority("root").root();
    let middle = adapt(Wanted::authority("ca")).by(&root);
    check(what, &[&root], &[&Wanted::leaf().by(&middle), &middle], between);
}

#[test]
fn authorities_issue_what_they_may() {
    let cannot_sign = unknown_authority(CANNOT_SIGN, "ca");
    let usages = |usages: &'static [Eku]| {
        move |wanted: Wanted| wanted.with(|params| params.extended_key_usages = usages.to_vec())
    };
    let same = |expected| (expected, expected);
    let check =
        |what: &str, adapt: &dyn Fn(Wanted) -> Wanted, (as_anchor, between): ([&str; 2], [&str; 2])| {
            check_authority(what, adapt, as_anchor, between);
        };
    check("plain", &|wanted| wanted, same(["", ""]));
    let no_authority = |wanted: Wanted| wanted.with(|params| params.is_ca = IsCa::ExplicitNoCa);
    check("no authority", &no_authority, same([&cannot_sign; 2]));
    let silent = |wanted: Wanted| wanted.with(|params| params.is_ca = IsCa::NoCa);
    check("no basic constraints", &silent, same([&cannot_sign; 2]));
    let key = |usage| move |wanted: Wanted| wanted.with(|params| params.key_usages = vec![usage]);
    check("key for signatures alone", &key(KeyUsagePurpose::DigitalSignature), same([&cannot_sign; 2]));
    check("key for certificates", &key(KeyUsagePurpose::KeyCertSign), same(["", ""]));
    check("for servers", &usages(&[Eku::ServerAuth]), same(["", USAGE]));
    check("for clients", &usages(&[Eku::ClientAuth]), same([USAGE, ""]));
    check("for code", &usages(&[Eku::CodeSigning]), same([USAGE, USAGE]));
    check("for anything", &usages(&[Eku::Any]), same(["", ""]));
    let expired = |wanted: Wanted| wanted.with(|params| params.not_after = at(NOW - 5).into());
    let text = "x509: certificate has expired or is not yet valid: current time 2027-01-15T08:00:00Z is after \
                2027-01-15T07:59:55Z";
    check("expired", &expired, same([text, text]));
    let early = |wanted: Wanted| wanted.with(|params| params.not_before = at(NOW + 500).into());
    let text = "x509: certificate has expired or is not yet valid: current time 2027-01-15T08:00:00Z is before \
                2027-01-15T08:08:20Z";
    check("not yet valid", &early, same([text, text]));
    check("unknown demands", &|wanted| wanted.says(&[1, 2, 3, 4], true, &[5, 0]), same([UNHANDLED; 2]));
    check("unknown wishes", &|wanted| wanted.says(&[1, 2, 3, 4], false, &[5, 0]), same(["", ""]));
    let policies: &[u8] = &[0x30, 7, 0x30, 5, 6, 3, 0x2a, 3, 4];
    check("policies", &|wanted| wanted.says(&[2, 5, 29, 32], true, policies), same(["", ""]));
    // The reference evaluates it: no chain here has a policy.
    let explicit: &[u8] = &[0x30, 3, 0x80, 1, 0];
    check("explicit policy", &|wanted| wanted.says(&[2, 5, 29, 36], false, explicit), same([UNHANDLED; 2]));
}

#[test]
fn paths_are_no_longer_than_allowed() {
    let limit = |name: &str, limit| {
        Wanted::authority(name).with(|params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(limit)))
    };
    for (root_limit, first_limit, expected) in [
        (None, None, ""),
        (Some(1), None, TOO_MANY),
        (Some(2), None, ""),
        (None, Some(0), TOO_MANY),
        (None, Some(1), ""),
    ] {
        let wanted =
            |name, bound: Option<u8>| bound.map_or_else(|| Wanted::authority(name), |n| limit(name, n));
        let root = wanted("root", root_limit).root();
        let first = wanted("first", first_limit).by(&root);
        let second = Wanted::authority("second").by(&first);
        let leaf = Wanted::leaf().by(&second);
        let what = format!("{root_limit:?} {first_limit:?}");
        check(&what, &[&root], &[&leaf, &second, &first], [expected; 2]);
        // In any order, with more than is needed.
        check(&what, &[&root], &[&leaf, &first, &root, &second, &first], [expected; 2]);
    }
}

#[test]
fn a_leaf_is_for_its_usage_and_name() {
    let root = Wanted::authority("ca").root();
    let check =
        |what: &str, leaf: Wanted, expected: [&str; 2]| check(what, &[&root], &[&leaf.by(&root)], expected);
    let usages = |usages: Vec<Eku>| Wanted::leaf().with(|params| params.extended_key_usages = usages);
    check("any", usages(vec![Eku::Any]), ["", ""]);
    check("none", usages(Vec::new()), ["", ""]);
    check("server", usages(vec![Eku::ServerAuth]), ["", USAGE]);
    check("client", usages(vec![Eku::ClientAuth]), [USAGE, ""]);
    let authority = Wanted::leaf().with(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
    check("an authority", authority, ["", ""]);
    check("unknown demands", Wanted::leaf().says(&[1, 2, 3, 4], true, &[5, 0]), [UNHANDLED; 2]);
    let malformed = "x509: malformed certificate";
    check("a usage of the key", Wanted::leaf().says(&[2, 5, 29, 15], false, &[3]), [malformed; 2]);
    check("a key's identifier", Wanted::leaf().says(&[2, 5, 29, 35], false, &[0x30, 1]), ["", ""]);
    let comment: &[u64] = &[2, 16, 840, 1, 113_730, 1, 13];
    check("a comment", Wanted::leaf().says(comment, false, &[0x16, 5]), ["", ""]);
    check("a critical comment", Wanted::leaf().says(comment, true, &[0x16, 5]), [UNHANDLED; 2]);
    check(
        "twice",
        Wanted::leaf().says(comment, false, &[5, 0]).says(comment, false, &[5, 0]),
        [malformed; 2],
    );
    let names = |names: Vec<SanType>| Wanted::leaf().with(|params| params.subject_alt_names = names);
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    check("wildcard", names(vec![dns("*.ok.example")]), ["", ""]);
    check("upper case", names(vec![dns("A.OK.example")]), ["", ""]);
    let text = "x509: certificate is valid for *.example, b.ok.example, not a.ok.example";
    check("other names", names(vec![dns("*.example"), dns("b.ok.example")]), [text, ""]);
    let text = "x509: certificate is not valid for any names, but wanted to match a.ok.example";
    check("an address", names(vec![SanType::IpAddress("127.0.0.1".parse().unwrap())]), [text, ""]);
    check("no names", names(Vec::new()), [text, ""]);
    let many = (0..100).map(|number| dns(&format!("n{number}"))).collect();
    let text = "x509: certificate is valid for 100 names, but none matched a.ok.example";
    check("many names", names(many), [text, ""]);
    let common_name = Wanted::named(PEER).with(|params| params.subject_alt_names = Vec::new());
    let text = "x509: certificate relies on legacy Common Name field, use SANs instead";
    check("common name", common_name, [text, ""]);
}

#[test]
fn names_are_those_an_authority_may_issue() {
    let dns = |name: &str| GeneralSubtree::DnsName(name.to_owned());
    let network = |text: &str| {
        let (address, prefix) = text.split_once('/').unwrap();
        GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(
            address.parse().unwrap(),
            prefix.parse().unwrap(),
        ))
    };
    let refused = |why: &str| {
        format!("x509: a root or intermediate certificate is not authorized to sign for this name: {why}")
    };
    let rows = [
        (vec![dns("ok.example")], vec![], None),
        (vec![dns("")], vec![], None),
        (vec![dns(".ok.example")], vec![], None),
        (vec![dns("A.OK.EXAMPLE")], vec![], None),
        (
            vec![dns("k.example")],
            vec![],
            Some("DNS name \"a.ok.example\" is not permitted by any constraint"),
        ),
        (
            vec![dns(".a.ok.example")],
            vec![],
            Some("DNS name \"a.ok.example\" is not permitted by any constraint"),
        ),
        (vec![dns("bad.example"), dns("example")], vec![], None),
        (
            vec![],
            vec![dns("example")],
            Some("DNS name \"a.ok.example\" is excluded by constraint \"example\""),
        ),
        (vec![dns("example")], vec![dns("b.ok.example")], None),
        (vec![network("127.0.0.0/8")], vec![], None),
        (
            vec![network("10.0.0.0/8")],
            vec![],
            Some("IP address \"127.0.0.1\" is not permitted by any constraint"),
        ),
        (vec![network("::/0")], vec![], Some("IP address \"127.0.0.1\" is not permitted by any constraint")),
        (vec![network("0.0.0.0/0")], vec![], None),
        (
            vec![],
            vec![network("127.0.0.0/8")],
            Some("IP address \"127.0.0.1\" is excluded by constraint \"127.0.0.0/8\""),
        ),
    ];
    for (permitted_subtrees, excluded_subtrees, expected) in rows {
        let what = format!("{permitted_subtrees:?} {excluded_subtrees:?}");
        let expected = expected.map(refused).unwrap_or_default();
        let limit = |wanted: Wanted| {
            let constraints = NameConstraints {
                permitted_subtrees: permitted_subtrees.clone(),
                excluded_subtrees: excluded_subtrees.clone(),
            };
            wanted.with(|params| params.name_constraints = Some(constraints))
        };
        check_authority(&what, limit, [&expected; 2], [&expected; 2]);
    }
    // A wildcard stands for what is excluded.
    let constraints =
        NameConstraints { permitted_subtrees: Vec::new(), excluded_subtrees: vec![dns("b.ok.example")] };
    let root = Wanted::authority("ca").with(|params| params.name_constraints = Some(constraints)).root();
    let wildcard = SanType::DnsName("*.ok.example".try_into().unwrap());
    let leaf = Wanted::leaf().with(|params| params.subject_alt_names = vec![wildcard]).by(&root);
    let text = refused("DNS name \"*.ok.example\" is excluded by constraint \"b.ok.example\"");
    check("wildcard", &[&root], &[&leaf], [&text; 2]);
}

#[test]
fn mailboxes_and_uris_are_constrained_too() {
    let subtree = |tag: u8, text: &str| -> Vec<u8> {
        let length = u8::try_from(text.len()).unwrap();
        [&[0x30, length + 2, tag, length], text.as_bytes()].concat()
    };
    let constraints = |list: u8, subtree: &[u8]| -> Vec<u8> {
        let length = u8::try_from(subtree.len()).unwrap();
        [&[0x30, length + 2, list, length], subtree].concat()
    };
    const PERMITTED: u8 = 0xa0;
    const EXCLUDED: u8 = 0xa1;
    const EMAIL: u8 = 0x81;
    const URI: u8 = 0x86;
    let email = |text: &str| SanType::Rfc822Name(text.try_into().unwrap());
    let uri = |text: &str| SanType::URI(text.try_into().unwrap());
    let rows = [
        (PERMITTED, EMAIL, "example.com", email("a@example.com"), true),
        (PERMITTED, EMAIL, "example.com", email("a@b.example.com"), true),
        (PERMITTED, EMAIL, "example.com", email("a@other.com"), false),
        (PERMITTED, EMAIL, "b@example.com", email("a@example.com"), false),
        (PERMITTED, EMAIL, "a@example.com", email("a@EXAMPLE.com"), true),
        (EXCLUDED, EMAIL, "example.com", email("a@example.com"), false),
        (EXCLUDED, EMAIL, "example.com", email("\"a\"@example.com"), false),
        (PERMITTED, EMAIL, "example.com", uri("https://other.com"), true),
        (PERMITTED, URI, "example.com", uri("https://a.example.com:1/x"), true),
        (PERMITTED, URI, "example.com", uri("https://example.com@other.com/"), false),
        (PERMITTED, URI, "example.com", uri("https://other.com/@example.com"), false),
        (EXCLUDED, URI, "other.com", uri("urn:a:b"), false),
        (EXCLUDED, URI, "other.com", uri("https://127.0.0.1:80/"), false),
        (EXCLUDED, URI, "other.com", uri("https://[::1]/"), false),
    ];
    for (list, kind, limit, name, is_valid) in rows {
        let value = constraints(list, &subtree(kind, limit));
        let root = Wanted::authority("ca").says(&[2, 5, 29, 30], true, &value).root();
        let what = format!("{limit} {name:?}");
        let leaf = Wanted::leaf().with(|params| params.subject_alt_names.push(name)).by(&root);
        assert_eq!(verify(&[&root], &[&leaf], Usage::Client).is_ok(), is_valid, "{what}");
    }
    // Constraints that cannot be read, or honored, are not ignored.
    let minimum = constraints(PERMITTED, &[0x30, 6, 0x82, 1, b'a', 0x80, 1, 0]);
    for (what, value) in [
        ("minimum", minimum),
        ("empty", vec![0x30, 0]),
        ("directory", constraints(PERMITTED, &[0x30, 4, 0xa4, 2, 0x30, 0])),
    ] {
        let root = Wanted::authority("root").root();
        let middle = Wanted::authority("ca").says(&[2, 5, 29, 30], true, &value).by(&root);
        assert!(verify(&[&root], &[&Wanted::leaf().by(&middle), &middle], Usage::Client).is_err(), "{what}");
    }
}

#[test]
fn a_certificate_may_be_an_anchor_itself() {
    let own = |adapt: fn(&mut CertificateParams)| Wanted::leaf().with(adapt).root();
    let check = |what: &str, own: &Authority, expected: [&str; 2]| check(what, &[own], &[own], expected);
    check("no authority", &own(|_| ()), ["", ""]);
    check("an authority", &own(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)), ["", ""]);
    check("for servers", &own(|params| params.extended_key_usages = vec![Eku::ServerAuth]), ["", USAGE]);
    check("for clients", &own(|params| params.extended_key_usages = vec![Eku::ClientAuth]), [USAGE, ""]);
    let text = "x509: certificate has expired or is not yet valid: current time 2027-01-15T08:00:00Z is after \
                2027-01-15T07:59:55Z";
    check("expired", &own(|params| params.not_after = at(NOW - 5).into()), [text; 2]);
    // Issued by somebody else.
    let issued = Wanted::leaf().by(&Wanted::authority("ca").root());
    check("issued", &issued, ["", ""]);
    let middle = Wanted::authority("middle").by(&Wanted::authority("root").root());
    super::tests::check("an intermediate as an anchor", &[&middle], &[&Wanted::leaf().by(&middle)], ["", ""]);
}

#[test]
fn one_of_several_authorities_of_a_name_suffices() {
    let good = Wanted::authority("ca").root();
    let leaf = Wanted::leaf().by(&good);
    let other = Wanted::authority("ca").root();
    check("another key", &[&other, &good], &[&leaf], ["", ""]);
    let failed = unknown_authority("x509: ECDSA verification failure", "ca");
    check("another key alone", &[&other], &[&leaf], [&failed; 2]);
    check("nobody", &[], &[&leaf], ["x509: certificate signed by unknown authority"; 2]);
    check(
        "another name",
        &[&Wanted::authority("b").root()],
        &[&leaf],
        ["x509: certificate signed by unknown authority"; 2],
    );
    // Cross-signed: one of the paths ends at an anchor.
    let (old, new) = (Wanted::authority("old").root(), Wanted::authority("new").root());
    let middle = Wanted::authority("middle").by(&old);
    let crossed = Authority {
        certificate: Wanted::authority("middle").0.signed_by(middle.issuer.key(), &new.issuer).unwrap(),
        issuer: Issuer::new(Wanted::authority("middle").0, KeyPair::generate().unwrap()),
    };
    let leaf = Wanted::leaf().by(&middle);
    check("cross-signed", &[&new], &[&leaf, &middle, &crossed], ["", ""]);
}

#[test]
fn signatures_are_of_each_algorithm() {
    for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
        let root = Wanted::authority("ca").made(None, algorithm);
        let leaf = Wanted::leaf().by(&root);
        check("algorithm", &[&root], &[&leaf], ["", ""]);
        let mut der = leaf.der().to_vec();
        let last = der.len() - 1;
        der[last] ^= 1;
        let mut anchors = TrustAnchors::default();
        anchors.add(root.der()).unwrap();
        let error = anchors.verify(&[der.into()], None, Usage::Client, now()).unwrap_err().to_string();
        assert!(error.contains("verification failure"), "{error}");
    }
    let other = Wanted::authority("ca").made(None, &PKCS_ED25519);
    let leaf = Wanted::leaf().by(&Wanted::authority("ca").root());
    let why = "x509: signature algorithm specifies an ECDSA public key, but have public key of type ed25519.PublicKey";
    check("another kind of key", &[&other], &[&leaf], [&unknown_authority(why, "ca"); 2]);
}

#[test]
fn version_one_is_issued_by_an_anchor() {
    let pem = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
    let client = pem(include_str!("../../fixtures/version-one.crt"));
    let verify = |anchor: &str| {
        let mut anchors = TrustAnchors::default();
        anchors.add(pem(anchor)).unwrap();
        anchors
            .verify(std::slice::from_ref(&client), None, Usage::Client, now())
            .map_err(|why| why.to_string())
    };
    assert!(verify(include_str!("../../fixtures/authority.crt")).is_ok());
    let impostor = verify(include_str!("../../fixtures/impostor.crt"));
    assert_eq!(impostor, Err(unknown_authority("x509: ECDSA verification failure", "authority")));
}

#[test]
fn the_work_for_a_chain_is_bounded() {
    // Authorities of one name that issued each other, none of them trusted: each path through them is possible.
    let anchor = Wanted::authority("anchor").root();
    let first = Wanted::authority("a").root();
    let chain: Vec<Authority> = (0..14).map(|_| Wanted::authority("a").by(&first)).collect();
    let leaf = Wanted::leaf().by(&first);
    let shown: Vec<&Authority> = [&leaf, &first].into_iter().chain(&chain).collect();
    assert!(verify(&[&anchor], &shown, Usage::Client).is_err());
    let long: Vec<&Authority> = shown.iter().copied().chain([&leaf]).collect();
    assert_eq!(verify(&[&anchor], &long, Usage::Client), Err(VerifyError::TooLong));
    // Many anchors of one name.
    let anchors: Vec<Authority> = (0..120).map(|_| Wanted::authority("a").root()).collect();
    let anchors: Vec<&Authority> = anchors.iter().collect();
    assert_eq!(verify(&anchors, &[&leaf], Usage::Client), Err(VerifyError::SignatureLimit));
}

#[test]
fn damaged_certificates_are_errors() {
    let root =
        Wanted::authority("ca").says(&[2, 5, 29, 32], true, &[0x30, 7, 0x30, 5, 6, 3, 0x2a, 3, 4]).root();
    let leaf = Wanted::leaf().by(&root);
    let mut anchors = TrustAnchors::default();
    anchors.add(root.der()).unwrap();
    for original in [leaf.der(), root.der()] {
        let (_, parsed) = X509Certificate::from_der(&original).unwrap();
        // The header of the whole has four bytes; it is not signed.
        for index in 4..4 + parsed.tbs_certificate.as_ref().len() {
            for bit in 0..8 {
                let mut der = original.to_vec();
                der[index] ^= 1 << bit;
                let chain = [der.into(), root.der()];
                assert!(anchors.verify(&chain, None, Usage::Client, now()).is_err(), "{index} {bit}");
            }
        }
        assert_eq!(
            anchors.verify(&[original.get(..original.len() - 1).unwrap().into()], None, Usage::Client, now()),
            Err(VerifyError::Malformed)
        );
    }
    assert!(anchors.add(vec![1].into()).is_err());
}
