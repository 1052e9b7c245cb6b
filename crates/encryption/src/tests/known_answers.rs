//! Values from other implementations: OpenSSL through Python's `cryptography`, and libsodium through `PyNaCl`. The
//! bytes of keys count up from 1, those of nonces and vectors from their first visible byte.

use super::Fixture;
use base64::{Engine, engine::general_purpose::STANDARD};

pub(crate) const PLAIN: &[u8] = br#"{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}"#;
pub(crate) const KEY: &str = "/registry/secrets/default/db";

const CBC_128: &str = "6b38733a656e633a6165736362633a76313a6b6579313aa0a1a2a3a4a5a6a7a8a9aaabacadaeafeb0e374b036d8538b3ca8b2ff9790dfd75202027442e153caa1e2f0d475153e370697ab4e67fcaee5de1cbb7a3d6ddf33a0987c01c1c99cccc8a82434ca88548";
const CBC_192: &str = "6b38733a656e633a6165736362633a76313a6b6579313aa0a1a2a3a4a5a6a7a8a9aaabacadaeafc47c6031c8be0cedcfbb5e4a0e79da43c95f9ce42905af367e31f853688ac9bd5cfecbc156d35f0f120308cbe39920ee9c5d592b7a7db6cece7e7652209b94c6";
const CBC_256: &str = "6b38733a656e633a6165736362633a76313a6b6579313aa0a1a2a3a4a5a6a7a8a9aaabacadaeaffe87d6bc05fd1fad84eb6551f48df612471efb355a76dc77837a904c6998d5348f8248743213d2076c02fe1cac0a4d3121df6751b4c5d56822666271d72d1568";
const GCM_128: &str = "6b38733a656e633a61657367636d3a76313a6b6579313ab0b1b2b3b4b5b6b7b8b9babbe55ae400e0833a944a82e4e67237f1a51b3668ac2e8699b8e472e906297381f5669f146976e1bb3cf49153905a067a00f84e018181b053d50c9070f42bb2f8ae847d1b94";
const GCM_192: &str = "6b38733a656e633a61657367636d3a76313a6b6579313ab0b1b2b3b4b5b6b7b8b9babb7e67fccd141f386363819f24042ec31553fb3552ff7f4849167c4af61740f3570a91f81c8f69db20706ee5049caf0de46d300050adf4ec583daf9fbfb772cf525a208c3c";
const GCM_256: &str = "6b38733a656e633a61657367636d3a76313a6b6579313ab0b1b2b3b4b5b6b7b8b9babbfbe144bdf28fd0a525f9d6b355d9872c2d301d4dabd112ddec1d1acdb8f015bb8da1d94663556f1d78aa8946ed5cf0734af6471aac99d22bf67ace7c2bf407c9424ce6e4";
const SECRETBOX: &str = "6b38733a656e633a736563726574626f783a76313a6b6579313ac0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7b6d4875f5aa17669171f74eabb03e5350a0adc90fb24d9c8a07eb5be2566ca7a4eec2adaad9798cb2ff94053a060c44d1aaf6471c6f8548f411da80dd4fbcf2f8ecacb0b";

/// The data key is a seed `40 41 42 …`; its ciphertext is `sealed:` and the seed, with the plugin's key `key-7` and
/// one annotation.
pub(crate) const KMS_SEED: &str = "6b38733a656e633a6b6d733a76323a706c7567696e3a0a70d0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeefe0e1e2e3e4e5e6e7e8e9eaeb52cad9f430aaf790146fa96bd121b7451e9eb0bb76087a54b7fb8e654964bb668c47a6069992e3f32c373fc3258b7dad1ee0c256efd9452ff0990ef1178e03a78ebfc63812056b65792d371a277365616c65643a404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f221f0a1a76657273696f6e2e706c7567696e2e6578616d706c652e636f6d1201312801";
/// The same without the annotation, and with the seed as the data key itself.
pub(crate) const KMS_KEY: &str = "6b38733a656e633a6b6d733a76323a706c7567696e3a0a50e0e1e2e3e4e5e6e7e8e9eaebd4faa200b46b96eab7909384b8da634aa71484feb25498c5ed3cd84d13ec9d038a24869a40f555c6f62aa21eb4f1b3bd20467dfc350faf3db3aba1e92aeabbdc9ee52fb712056b65792d371a277365616c65643a404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f";

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

async fn provider(kind: &str, size: u8) -> Fixture {
    let secret = STANDARD.encode((1..=size).collect::<Vec<u8>>());
    Fixture::load(&format!(
        "- resources: [secrets]\n  providers:\n  - {kind}: {{keys: [{{name: key1, secret: {secret}}}]}}\n"
    ))
    .await
}

#[tokio::test]
async fn values_of_other_implementations_are_read() {
    for (kind, size, stored) in [
        ("aescbc", 16, CBC_128),
        ("aescbc", 24, CBC_192),
        ("aescbc", 32, CBC_256),
        ("aesgcm", 16, GCM_128),
        ("aesgcm", 24, GCM_192),
        ("aesgcm", 32, GCM_256),
        ("secretbox", 32, SECRETBOX),
    ] {
        let fixture = provider(kind, size).await;
        let opened = fixture.open("secrets", KEY, &bytes(stored)).await.unwrap();
        assert_eq!(opened.value, PLAIN.into(), "{kind} {size}");
        assert!(!opened.stale, "{kind} {size}");
        // Written values have the same length and prefix, and differ each time.
        let (one, two) = (
            fixture.seal("secrets", KEY, PLAIN).await.unwrap(),
            fixture.seal("secrets", KEY, PLAIN).await.unwrap(),
        );
        assert_eq!(one.len(), bytes(stored).len(), "{kind} {size}");
        assert!(one.starts_with(format!("k8s:enc:{kind}:v1:key1:").as_bytes()), "{kind} {size}");
        assert_ne!(one, two, "{kind} {size}");
    }
}

#[tokio::test]
async fn damaged_values_fail_in_known_words() {
    let cbc = provider("aescbc", 32).await;
    let gcm = provider("aesgcm", 32).await;
    let secretbox = provider("secretbox", 32).await;
    let too_short = "the stored data was shorter than the required size";
    let sixteen = "0123456789abcdef";
    for (fixture, stored, expected) in [
        (&cbc, "k8s:enc:aescbc:v1:key1:0123456789abcde".to_owned(), too_short),
        (&cbc, format!("k8s:enc:aescbc:v1:key1:{sixteen}"), "invalid PKCS7 data (empty or not padded)"),
        (
            &cbc,
            format!("k8s:enc:aescbc:v1:key1:{sixteen}x"),
            "the stored data is not a multiple of the block size",
        ),
        (&gcm, "k8s:enc:aesgcm:v1:key1:0123456789a".to_owned(), too_short),
        (&gcm, "k8s:enc:aesgcm:v1:key1:0123456789ab".to_owned(), "cipher: message authentication failed"),
        (
            &gcm,
            "k8s:enc:aesgcm:v1:other:0123456789ab".to_owned(),
            "no matching key was found for the provided AES transformer",
        ),
        (&gcm, "k8s:enc:aescbc:v1:key1:x".to_owned(), "no matching prefix found"),
        (&gcm, "{}".to_owned(), "no matching prefix found"),
        (&secretbox, "k8s:enc:secretbox:v1:key1:x".to_owned(), too_short),
        (
            &secretbox,
            format!("k8s:enc:secretbox:v1:key1:{sixteen}{sixteen}{sixteen}"),
            "output array was not large enough for encryption",
        ),
        (
            &secretbox,
            "k8s:enc:secretbox:v1:key2:x".to_owned(),
            "no matching key was found for the provided Secretbox transformer",
        ),
    ] {
        let failure = fixture.open("secrets", KEY, stored.as_bytes()).await.unwrap_err();
        assert_eq!(failure.0, expected, "{stored}");
    }
    let unencrypted = cbc.open("pods", "/registry/pods/a/b", b"k8s:enc:kms:v1:x:y").await.unwrap_err();
    assert_eq!(unencrypted.0, "identity transformer tried to read encrypted data");
}
