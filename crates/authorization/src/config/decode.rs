//! Decodes the configuration.

use pintle_machinery::config_file::{ConfigFile, ConfigKind};
use std::sync::LazyLock;

const KIND: ConfigKind = ConfigKind {
    kind: "AuthorizationConfiguration",
    group: "apiserver.config.k8s.io",
    versions: &["v1", "v1beta1", "v1alpha1"],
};

/// The configuration file.
pub(super) static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let (text, boolean, duration) = (types.text(), types.boolean(), types.duration());
        let connection = types.structure(&[("type", text)], &[("kubeConfigFile", text)]);
        let condition = types.structure(&[("expression", text)], &[]);
        let conditions = types.list(condition);
        let webhook = types.structure(
            &[
                ("authorizedTTL", duration),
                ("unauthorizedTTL", duration),
                ("timeout", duration),
                ("subjectAccessReviewVersion", text),
                ("matchConditionSubjectAccessReviewVersion", text),
                ("failurePolicy", text),
                ("connectionInfo", connection),
                ("matchConditions", conditions),
            ],
            &[("cacheAuthorizedRequests", boolean), ("cacheUnauthorizedRequests", boolean)],
        );
        let authorizer = types.structure(&[("type", text), ("name", text)], &[("webhook", webhook)]);
        let authorizers = types.list(authorizer);
        types.root(&[("authorizers", authorizers)], &[])
    });
    file.of_scheme("pkg/apis/apiserver/load/load.go:32")
});
