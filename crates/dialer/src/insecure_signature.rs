//! Signatures of certificates that Go refuses since their hash is insecure.

/// An algorithm of such a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InsecureSignature {
    Md5Rsa,
    Sha1Rsa,
    EcdsaSha1,
}

/// The object identifiers, without tag and length.
const ALL: [(&[u8], InsecureSignature); 3] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04], InsecureSignature::Md5Rsa),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05], InsecureSignature::Sha1Rsa),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01], InsecureSignature::EcdsaSha1),
];

impl InsecureSignature {
    /// The algorithm of an `AlgorithmIdentifier`; `None` for others.
    pub(crate) fn of(identifier: &[u8]) -> Option<InsecureSignature> {
        let has = |id: &[u8]| identifier.windows(id.len()).any(|window| window == id);
        ALL.iter().find(|(id, _)| has(id)).map(|(_, signature)| *signature)
    }

    /// The name that Go gives it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            InsecureSignature::Md5Rsa => "MD5-RSA",
            InsecureSignature::Sha1Rsa => "SHA1-RSA",
            InsecureSignature::EcdsaSha1 => "ECDSA-SHA1",
        }
    }
}
