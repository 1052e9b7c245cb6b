//! Private keys, which sign tokens.

use crate::{
    Algorithm, KeyError, PublicKey,
    der::{self, Reader},
    generate, pem,
    public_key::{Curve, EC_PUBLIC_KEY},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use p521::ecdsa::signature::Signer;
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
        RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use rustls_pki_types::pem::SectionKind;
use zeroize::Zeroizing;

/// A private key. Like Kubernetes, it signs with RS256 if it is an RSA key, and otherwise with the algorithm of its
/// curve. It has no `Debug` output; its memory is overwritten on drop as far as the library does so.
pub struct SigningKey {
    public: PublicKey,
    material: Material,
}

enum Material {
    Rsa(Box<RsaKeyPair>),
    Ec(Box<EcdsaKeyPair>),
    P521(Box<p521::ecdsa::SigningKey>),
}

impl SigningKey {
    /// The first private key in a file of PEM blocks: `RSA PRIVATE KEY`, `EC PRIVATE KEY` or `PRIVATE KEY`.
    ///
    /// # Errors
    /// When there is none, or it cannot be used, such as an RSA key of less than 2048 bits.
    pub fn from_pem(pem: &[u8]) -> Result<SigningKey, KeyError> {
        let mut result = Err(KeyError::NoPrivateKey);
        for (kind, der) in pem::blocks(pem) {
            match SigningKey::from_block(kind, &der) {
                Some(Ok(key)) => return Ok(key),
                Some(Err(error)) => result = Err(error),
                None => {}
            }
        }
        result
    }

    /// The key of one PEM block; `None` when the block is not a private key.
    pub(crate) fn from_block(kind: SectionKind, der: &[u8]) -> Option<Result<SigningKey, KeyError>> {
        match kind {
            SectionKind::RsaPrivateKey => Some(SigningKey::from_rsa_der(der)),
            SectionKind::EcPrivateKey => Some(SigningKey::from_sec1(der, None)),
            SectionKind::PrivateKey => Some(SigningKey::from_pkcs8(der)),
            _ => None,
        }
    }

    /// Generates an RSA key of 2048 bits. Returns it with its PEM file. It takes some tenths of a second of
    /// computing.
    ///
    /// # Errors
    /// When the key is not accepted, which would be a defect.
    pub fn generate_rsa() -> Result<(SigningKey, Zeroizing<String>), KeyError> {
        let der = generate::rsa_2048();
        Ok((SigningKey::from_rsa_der(&der)?, pem::encode("RSA PRIVATE KEY", &der)))
    }

    /// An RSA key in PKCS#1 form.
    fn from_rsa_der(der: &[u8]) -> Result<SigningKey, KeyError> {
        let unusable = |error: ring::error::KeyRejected| KeyError::Unusable(error.to_string());
        SigningKey::from_rsa(RsaKeyPair::from_der(der).map_err(unusable)?)
    }

    fn from_rsa(pair: RsaKeyPair) -> Result<SigningKey, KeyError> {
        let public = PublicKey::from_rsa_der(pair.public_key().as_ref());
        let public = public.ok_or_else(|| KeyError::Unusable("unusual public exponent".to_owned()))?;
        Ok(SigningKey { public, material: Material::Rsa(Box::new(pair)) })
    }

    /// A key in PKCS#8 form.
    fn from_pkcs8(der: &[u8]) -> Result<SigningKey, KeyError> {
        let mut reader = Reader(der).nested(der::SEQUENCE).ok_or(KeyError::NoPrivateKey)?;
        let parts = (|| {
            reader.unsigned()?;
            let mut algorithm = reader.nested(der::SEQUENCE)?;
            let kind = algorithm.value(der::OBJECT_IDENTIFIER)?;
            Some((kind, algorithm.value(der::OBJECT_IDENTIFIER), reader.value(der::OCTET_STRING)?))
        })();
        match parts {
            Some((kind, Some(curve), key)) if kind == EC_PUBLIC_KEY => {
                SigningKey::from_sec1(key, Curve::of(curve))
            }
            Some((kind, _, key)) if kind == crate::public_key::RSA_ENCRYPTION => {
                SigningKey::from_rsa_der(key)
            }
            _ => Err(KeyError::NoPrivateKey),
        }
    }

    /// A key on a curve in SEC 1 form, which may omit the curve if `told` has it.
    fn from_sec1(der: &[u8], told: Option<Curve>) -> Result<SigningKey, KeyError> {
        let parts = (|| {
            let mut reader = Reader(der).nested(der::SEQUENCE)?;
            reader.unsigned()?;
            let private = reader.value(der::OCTET_STRING)?;
            let own = reader.nested(der::EXPLICIT_0);
            let own = own.and_then(|mut curve| Curve::of(curve.value(der::OBJECT_IDENTIFIER)?));
            let public = reader.nested(der::EXPLICIT_1).and_then(|mut public| public.bit_string());
            Some((private, own.or(told)?, public))
        })();
        let (private, curve, public) = parts.ok_or(KeyError::NoPrivateKey)?;
        // Some writers omit leading zeros.
        let mut padded = Zeroizing::new(vec![0; curve.size().saturating_sub(private.len())]);
        padded.extend_from_slice(private);
        if curve == Curve::P521 {
            let key = p521::ecdsa::SigningKey::from_slice(&padded)
                .map_err(|_| KeyError::Unusable("not a number of the curve".to_owned()))?;
            let point = key.verifying_key().to_sec1_point(false);
            let public = PublicKey::from_point(curve, point.as_bytes()).ok_or(KeyError::NoPrivateKey)?;
            return Ok(SigningKey { public, material: Material::P521(Box::new(key)) });
        }
        let Some(point) = public else {
            return Err(KeyError::Unusable("the file lacks its public key".to_owned()));
        };
        let algorithm = match curve {
            Curve::P256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
            Curve::P384 | Curve::P521 => &ECDSA_P384_SHA384_FIXED_SIGNING,
        };
        let pair =
            EcdsaKeyPair::from_private_key_and_public_key(algorithm, &padded, point, &SystemRandom::new())
                .map_err(|error| KeyError::Unusable(error.to_string()))?;
        let public = PublicKey::from_point(curve, point).ok_or(KeyError::NoPrivateKey)?;
        Ok(SigningKey { public, material: Material::Ec(Box::new(pair)) })
    }

    /// The public key that verifies this key's signatures.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The algorithm of this key's signatures.
    pub fn algorithm(&self) -> Algorithm {
        self.public.algorithm()
    }

    /// Signs a message.
    ///
    /// # Errors
    /// When the source of randomness fails.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        match &self.material {
            Material::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
                signed.map(|()| signature).map_err(|_| KeyError::Random)
            }
            Material::Ec(pair) => {
                let signed = pair.sign(&random, message);
                signed.map(|signature| signature.as_ref().to_vec()).map_err(|_| KeyError::Random)
            }
            Material::P521(key) => {
                let signature: p521::ecdsa::Signature =
                    key.try_sign(message).map_err(|_| KeyError::Random)?;
                Ok(signature.to_bytes().to_vec())
            }
        }
    }

    /// Signs a token with this payload, which must be JSON.
    ///
    /// # Errors
    /// As [`SigningKey::sign`].
    pub fn sign_token(&self, payload: &[u8]) -> Result<String, KeyError> {
        let header = format!(r#"{{"alg":"{}","kid":"{}"}}"#, self.algorithm().as_str(), self.public.id());
        let mut token = URL_SAFE_NO_PAD.encode(header);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(payload, &mut token);
        let signature = self.sign(token.as_bytes())?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Ok(token)
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}
