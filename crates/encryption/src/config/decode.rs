//! Decodes the configuration.

use pintle_machinery::{
    Value,
    config_file::{ConfigFile, ConfigKind},
};
use std::sync::LazyLock;
use zeroize::Zeroize;

/// Overwrites every string of a tree.
pub(super) fn wipe(tree: &mut Value) {
    match tree {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

const KIND: ConfigKind =
    ConfigKind { kind: "EncryptionConfiguration", group: "apiserver.config.k8s.io", versions: &["v1"] };

/// The configuration file.
pub(super) static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    ConfigFile::new(KIND, |types| {
        let (text, texts) = (types.text(), types.texts());
        let key = types.structure(&[("name", text), ("secret", text)], &[]);
        let keys = types.list(key);
        let with_keys = types.structure(&[("keys", keys)], &[]);
        let identity = types.structure(&[], &[]);
        let (cache_size, timeout) = (types.integer(), types.duration());
        let kms = types.structure(
            &[("apiVersion", text), ("name", text), ("endpoint", text)],
            &[("cachesize", cache_size), ("timeout", timeout)],
        );
        let provider = types.structure(
            &[],
            &[
                ("aesgcm", with_keys),
                ("aescbc", with_keys),
                ("secretbox", with_keys),
                ("identity", identity),
                ("kms", kms),
            ],
        );
        let providers = types.list(provider);
        let rule = types.structure(&[("resources", texts), ("providers", providers)], &[]);
        let rules = types.list(rule);
        types.root(&[("resources", rules)], &[])
    })
});
