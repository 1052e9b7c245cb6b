//! The configuration of `PodSecurity`: the policy of namespaces without labels, and exemptions
//! (<https://kubernetes.io/docs/tasks/configure-pod-container/enforce-standards-admission-controller/>).

use super::exemptions::Exemptions;
use crate::PluginError;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    config_file::{ConfigFile, ConfigKind},
    status::aggregate,
    validation::{is_dns1123_label, is_dns1123_subdomain},
};
use pintle_pod_security::{Level, LevelVersion, Policy, Version};
use std::{collections::BTreeSet, fmt::Display, str::FromStr, sync::LazyLock};

const KIND: ConfigKind = ConfigKind {
    kind: "PodSecurityConfiguration",
    group: "pod-security.admission.config.k8s.io",
    versions: &["v1", "v1beta1", "v1alpha1"],
};

static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let (text, texts) = (types.text(), types.texts());
        let modes = ["enforce", "enforce-version", "audit", "audit-version", "warn", "warn-version"];
        let defaults = types.structure(&modes.map(|mode| (mode, text)), &[]);
        let lists = ["usernames", "namespaces", "runtimeClasses"];
        let exemptions = types.structure(&lists.map(|list| (list, texts)), &[]);
        types.root(&[("defaults", defaults), ("exemptions", exemptions)], &[])
    });
    file.of_scheme("k8s.io/pod-security-admission/admission/api/scheme/scheme.go:31")
});

/// Reads the configuration.
pub(super) fn read(text: Option<&[u8]>) -> Result<(Policy, Exemptions), PluginError> {
    let tree = match text.filter(|text| !text.is_empty()) {
        Some(text) => FILE.decode_strict(text).map_err(PluginError::configuration)?,
        None => Value::Null,
    };
    let invalid = |what: &str, errors: Vec<String>| {
        PluginError::Initialization(format!("PodSecurity {what}: {}", aggregate(errors.into_iter())))
    };
    let mut errors = Vec::new();
    let defaults = defaults(&tree, &mut errors);
    if !errors.is_empty() {
        return Err(invalid("configuration error", errors));
    }
    let mut errors = ErrorList::new();
    let exemptions = Exemptions {
        namespaces: names(&tree, "namespaces", &mut errors, is_dns1123_label),
        runtime_classes: names(&tree, "runtimeClasses", &mut errors, is_dns1123_subdomain),
        usernames: names(&tree, "usernames", &mut errors, |name| match name {
            "" => vec!["username must not be empty".to_owned()],
            _ => Vec::new(),
        }),
    };
    match errors.is_empty() {
        true => Ok((defaults, exemptions)),
        false => Err(invalid("invalid", errors.iter().map(ToString::to_string).collect())),
    }
}

fn defaults(tree: &Value, errors: &mut Vec<String>) -> Policy {
    let mut mode = |level: &str, version: &str| LevelVersion {
        level: parse(tree, level, Level::Privileged, errors),
        version: parse(tree, version, Version::Latest, errors),
    };
    Policy {
        enforce: mode("enforce", "enforce-version"),
        audit: mode("audit", "audit-version"),
        warn: mode("warn", "warn-version"),
    }
}

fn parse<T>(tree: &Value, field: &str, default: T, errors: &mut Vec<String>) -> T
where
    T: FromStr<Err: Display>,
{
    let text = tree
        .at("defaults")
        .map_or("", |defaults| defaults.field(field).and_then(Value::as_str).unwrap_or(""));
    if text.is_empty() {
        return default;
    }
    text.parse().unwrap_or_else(|error| {
        errors.push(format!("{field}: {error}"));
        default
    })
}

fn names(
    tree: &Value,
    list: &str,
    errors: &mut ErrorList,
    validate: impl Fn(&str) -> Vec<String>,
) -> BTreeSet<String> {
    let path = FieldPath::new("exemptions").child(list);
    let mut names = BTreeSet::new();
    let items = tree.items_at(&format!("exemptions.{list}")).iter();
    for (index, name) in items.map(|item| item.as_str().unwrap_or_default()).enumerate() {
        let invalid = validate(name);
        if !invalid.is_empty() {
            errors.push(FieldError::invalid(&path.index(index), name, invalid.join(", ")));
        } else if !names.insert(name.to_owned()) {
            errors.push(FieldError::duplicate(&path.index(index), name));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(fields: &str) -> PluginError {
        let text = format!("apiVersion: {}/v1\nkind: PodSecurityConfiguration\n{fields}", KIND.group);
        read(Some(text.as_bytes())).unwrap_err()
    }

    #[test]
    fn absent_fields_are_privileged() {
        let text = format!(
            "apiVersion: {}/v1\nkind: PodSecurityConfiguration\ndefaults: {{enforce: baseline, warn-version: v1.20}}\n\
             exemptions: {{usernames: [jane]}}",
            KIND.group
        );
        let (policy, exemptions) = read(Some(text.as_bytes())).unwrap();
        assert_eq!(policy.enforce, LevelVersion { level: Level::Baseline, version: Version::Latest });
        assert_eq!(policy.warn, LevelVersion { level: Level::Privileged, version: Version::Minor(20) });
        assert!(exemptions.usernames.contains("jane"));
        for absent in [None, Some(&b""[..])] {
            assert_eq!(read(absent).unwrap().0, Policy::PRIVILEGED);
        }
    }

    #[test]
    fn unusable_configurations_are_refused() {
        let text = "defaults: {enforce: none, warn-version: v2.1}";
        let why = "[enforce: must be one of privileged, baseline, restricted, warn-version: must be \"latest\" or \"v1.x\"]";
        assert_eq!(
            error(text),
            PluginError::Initialization(format!("PodSecurity configuration error: {why}"))
        );
        let text = "exemptions: {usernames: [a, a, ''], runtimeClasses: [b, b]}";
        let why = "[exemptions.runtimeClasses[1]: Duplicate value: \"b\", exemptions.usernames[1]: Duplicate value: \"a\", \
                   exemptions.usernames[2]: Invalid value: \"\": username must not be empty]";
        assert_eq!(error(text), PluginError::Initialization(format!("PodSecurity invalid: {why}")));
        let unknown = error("default: {}");
        assert_eq!(unknown, PluginError::configuration("strict decoding error: unknown field \"default\""));
        assert_eq!(
            read(Some(b"a: b")).unwrap_err(),
            PluginError::configuration("Object 'Kind' is missing in 'a: b'")
        );
    }
}
