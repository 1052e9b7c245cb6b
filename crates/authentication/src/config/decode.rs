//! Decodes the configuration.

use pintle_machinery::config_file::{ConfigFile, ConfigKind};
use std::sync::LazyLock;

const KIND: ConfigKind = ConfigKind {
    kind: "AuthenticationConfiguration",
    group: "apiserver.config.k8s.io",
    versions: &["v1", "v1beta1", "v1alpha1"],
};

/// The configuration file.
pub(super) static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let (text, texts, boolean) = (types.text(), types.texts(), types.boolean());
        let issuer = types.structure(
            &[
                ("url", text),
                ("certificateAuthority", text),
                ("audiences", texts),
                ("audienceMatchPolicy", text),
                ("egressSelectorType", text),
            ],
            &[("discoveryURL", text)],
        );
        let claim_rule = types.structure(
            &[("claim", text), ("requiredValue", text), ("expression", text), ("message", text)],
            &[],
        );
        let claim_rules = types.list(claim_rule);
        let prefixed = types.structure(&[("claim", text), ("expression", text)], &[("prefix", text)]);
        let plain = types.structure(&[("claim", text), ("expression", text)], &[]);
        let extra = types.structure(&[("key", text), ("valueExpression", text)], &[]);
        let extras = types.list(extra);
        let mappings = types.structure(
            &[("username", prefixed), ("groups", prefixed), ("uid", plain), ("extra", extras)],
            &[],
        );
        let user_rule = types.structure(&[("expression", text), ("message", text)], &[]);
        let user_rules = types.list(user_rule);
        let jwt = types.structure(
            &[
                ("issuer", issuer),
                ("claimValidationRules", claim_rules),
                ("claimMappings", mappings),
                ("userValidationRules", user_rules),
            ],
            &[],
        );
        let jwts = types.list(jwt);
        let condition = types.structure(&[("path", text)], &[]);
        let conditions = types.list(condition);
        let anonymous = types.structure(&[("enabled", boolean), ("conditions", conditions)], &[]);
        types.root(&[("jwt", jwts)], &[("anonymous", anonymous)])
    });
    file.of_scheme("pkg/kubeapiserver/options/authentication.go:879")
});
