//! Decodes the policy.

use pintle_machinery::config_file::{ConfigFile, ConfigKind};
use std::sync::LazyLock;

const KIND: ConfigKind = ConfigKind { kind: "Policy", group: "audit.k8s.io", versions: &["v1"] };

/// The policy file.
pub(super) static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let (text, texts, boolean) = (types.text(), types.texts(), types.boolean());
        let group_resources =
            types.structure(&[("group", text), ("resources", texts), ("resourceNames", texts)], &[]);
        let resources = types.list(group_resources);
        let rule = types.structure(
            &[
                ("level", text),
                ("users", texts),
                ("userGroups", texts),
                ("verbs", texts),
                ("resources", resources),
                ("namespaces", texts),
                ("nonResourceURLs", texts),
                ("omitStages", texts),
            ],
            &[("omitManagedFields", boolean)],
        );
        let (rules, metadata) = (types.list(rule), types.object_meta());
        types.root(
            &[
                ("metadata", metadata),
                ("rules", rules),
                ("omitStages", texts),
                ("omitManagedFields", boolean),
            ],
            &[],
        )
    });
    file.of_scheme("pkg/audit/scheme.go:30").of_known_kind()
});
