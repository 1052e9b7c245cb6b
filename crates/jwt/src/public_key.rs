//! Public keys, which verify signatures.

use crate::{
    Algorithm,
    der::{self, Reader},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use p521::ecdsa::signature::Verifier;
use ring::{digest, signature};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

/// `1.2.840.113549.1.1.1`.
pub(crate) const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// `1.2.840.10045.2.1`.
pub(crate) const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// A NIST curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    const ALL: [Curve; 3] = [Curve::P256, Curve::P384, Curve::P521];

    pub(crate) fn of(object_identifier: &[u8]) -> Option<Curve> {
        Curve::ALL.into_iter().find(|curve| curve.object_identifier() == object_identifier)
    }

    fn named(name: &str) -> Option<Curve> {
        Curve::ALL.into_iter().find(|curve| curve.name() == name)
    }

    fn object_identifier(self) -> &'static [u8] {
        match self {
            Curve::P256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
            Curve::P384 => &[0x2b, 0x81, 0x04, 0x00, 0x22],
            Curve::P521 => &[0x2b, 0x81, 0x04, 0x00, 0x23],
        }
    }

    pub(crate) fn algorithm(self) -> Algorithm {
        match self {
            Curve::P256 => Algorithm::Es256,
            Curve::P384 => Algorithm::Es384,
            Curve::P521 => Algorithm::Es512,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Curve::P256 => "P-256",
            Curve::P384 => "P-384",
            Curve::P521 => "P-521",
        }
    }

    /// The size of a coordinate, in bytes.
    pub(crate) fn size(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }
}

/// A public RSA key, or one on a NIST curve.
#[derive(Clone)]
pub struct PublicKey {
    id: String,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
        /// Modulus and exponent in the encoding that `ring` reads.
        der: Vec<u8>,
    },
    Ec {
        curve: Curve,
        /// Uncompressed.
        point: Vec<u8>,
    },
}

impl PublicKey {
    /// The key in the `SubjectPublicKeyInfo` of a file or a certificate; `None` for other kinds of keys.
    pub fn from_spki(spki: &[u8]) -> Option<PublicKey> {
        let mut spki = Reader(spki).nested(der::SEQUENCE)?;
        let mut algorithm = spki.nested(der::SEQUENCE)?;
        let key = spki.bit_string()?;
        match algorithm.value(der::OBJECT_IDENTIFIER)? {
            RSA_ENCRYPTION => PublicKey::from_rsa_der(key),
            EC_PUBLIC_KEY => PublicKey::from_point(Curve::of(algorithm.value(der::OBJECT_IDENTIFIER)?)?, key),
            _ => None,
        }
    }

    /// The public key of a certificate.
    pub fn from_certificate(certificate: &[u8]) -> Option<PublicKey> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        PublicKey::from_spki(certificate.public_key().raw)
    }

    /// An RSA key with the components of a JSON Web Key: big-endian integers.
    pub fn from_rsa_components(modulus: &[u8], exponent: &[u8]) -> Option<PublicKey> {
        let der = der::value(der::SEQUENCE, &[&der::unsigned(modulus), &der::unsigned(exponent)]);
        PublicKey::from_rsa_der(&der)
    }

    /// A key on a curve with the components of a JSON Web Key: the curve's name, and big-endian coordinates of full
    /// length.
    pub fn from_ec_components(curve: &str, x: &[u8], y: &[u8]) -> Option<PublicKey> {
        let curve = Curve::named(curve)?;
        let is_whole = x.len() == curve.size() && y.len() == curve.size();
        is_whole.then(|| PublicKey::from_point(curve, &[&[4], x, y].concat())).flatten()
    }

    /// The size of a coordinate on a curve of this name, in bytes; `None` for an unknown curve.
    pub(crate) fn coordinate_size(curve: &str) -> Option<usize> {
        Curve::named(curve).map(Curve::size)
    }

    /// An RSA key in PKCS#1 form.
    pub(crate) fn from_rsa_der(der: &[u8]) -> Option<PublicKey> {
        let mut key = Reader(der).nested(der::SEQUENCE)?;
        let (modulus, exponent) = (key.unsigned()?, key.unsigned()?);
        // Any other size is not a modulus, or one that is too slow to use.
        if !(128..=1024).contains(&modulus.len()) || exponent.len() > 4 || !key.is_at_end() {
            return None;
        }
        let material =
            Material::Rsa { modulus: modulus.to_vec(), exponent: exponent.to_vec(), der: der.to_vec() };
        Some(PublicKey::of(material))
    }

    /// A key on a curve, as an uncompressed point.
    pub(crate) fn from_point(curve: Curve, point: &[u8]) -> Option<PublicKey> {
        (point.first() == Some(&4) && point.len() == 1 + 2 * curve.size())
            .then(|| PublicKey::of(Material::Ec { curve, point: point.to_vec() }))
    }

    fn of(material: Material) -> PublicKey {
        let digest = digest::digest(&digest::SHA256, &spki(&material));
        PublicKey { id: URL_SAFE_NO_PAD.encode(digest), material }
    }

    /// The same key under another id, which its owner has given it.
    #[must_use]
    pub fn with_id(mut self, id: String) -> PublicKey {
        self.id = id;
        self
    }

    /// The key's id, which Kubernetes writes as `kid`: the SHA-256 of its `SubjectPublicKeyInfo`, in base64url, unless it has
    /// been given another one.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The algorithm that Kubernetes uses for such a key.
    pub fn algorithm(&self) -> Algorithm {
        match &self.material {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::Ec { curve, .. } => curve.algorithm(),
        }
    }

    /// Whether `signature` is this key's signature of `message`. `false` for every algorithm of another kind of key.
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Rsa { der, .. } => {
                let parameters = match algorithm {
                    Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
                    Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
                    Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512 => return false,
                };
                signature::UnparsedPublicKey::new(parameters, der).verify(message, signature).is_ok()
            }
            Material::Ec { curve, point } => {
                let parameters = match (curve, algorithm) {
                    (Curve::P256, Algorithm::Es256) => &signature::ECDSA_P256_SHA256_FIXED,
                    (Curve::P384, Algorithm::Es384) => &signature::ECDSA_P384_SHA384_FIXED,
                    (Curve::P521, Algorithm::Es512) => return verify_p521(point, message, signature),
                    _ => return false,
                };
                signature::UnparsedPublicKey::new(parameters, point).verify(message, signature).is_ok()
            }
        }
    }

    /// The key as a JSON Web Key ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517)), its members in the order of
    /// Kubernetes.
    pub fn json_web_key(&self) -> Vec<(&'static str, Value)> {
        let encoded = |bytes: &[u8]| json!(URL_SAFE_NO_PAD.encode(bytes));
        let mut members = vec![("use", json!("sig"))];
        let (key_type, curve, numbers) = match &self.material {
            Material::Rsa { modulus, exponent, .. } => {
                ("RSA", None, [("n", encoded(modulus)), ("e", encoded(exponent))])
            }
            Material::Ec { curve, point } => {
                let coordinates = point.get(1..).unwrap_or_default();
                let (x, y) = coordinates.split_at_checked(curve.size()).unwrap_or_default();
                ("EC", Some(curve.name()), [("x", encoded(x)), ("y", encoded(y))])
            }
        };
        members.extend([("kty", json!(key_type)), ("kid", json!(self.id))]);
        members.extend(curve.map(|curve| ("crv", json!(curve))));
        members.push(("alg", json!(self.algorithm().as_str())));
        members.extend(numbers);
        members
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &PublicKey) -> bool {
        self.id == other.id
    }
}

impl Eq for PublicKey {}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublicKey").field("id", &self.id).finish_non_exhaustive()
    }
}

fn verify_p521(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(point);
    let signature = p521::ecdsa::Signature::from_slice(signature);
    matches!((key, signature), (Ok(key), Ok(signature)) if key.verify(message, &signature).is_ok())
}

fn spki(material: &Material) -> Vec<u8> {
    let (algorithm, key) = match material {
        Material::Rsa { der, .. } => {
            let algorithm = der::value(der::OBJECT_IDENTIFIER, &[RSA_ENCRYPTION]);
            ([algorithm, der::value(der::NULL, &[])].concat(), der)
        }
        Material::Ec { curve, point } => {
            let algorithm = der::value(der::OBJECT_IDENTIFIER, &[EC_PUBLIC_KEY]);
            let curve = der::value(der::OBJECT_IDENTIFIER, &[curve.object_identifier()]);
            ([algorithm, curve].concat(), point)
        }
    };
    let algorithm = der::value(der::SEQUENCE, &[&algorithm]);
    der::value(der::SEQUENCE, &[&algorithm, &der::value(der::BIT_STRING, &[&[0], key])])
}
