//! The configuration of `PodTolerationRestriction`.

use crate::plugins::tolerations::Toleration;
use pintle_machinery::{
    ErrorList, FieldError, FieldPath, Value, ValueExt,
    config_file::{ConfigFile, ConfigKind},
    validation::{is_qualified_name, is_valid_label_value},
};
use std::sync::LazyLock;

const KIND: ConfigKind = ConfigKind {
    kind: "Configuration",
    group: "podtolerationrestriction.admission.k8s.io",
    versions: &["v1alpha1"],
};

static FILE: LazyLock<ConfigFile> = LazyLock::new(|| {
    let file = ConfigFile::new(KIND, |types| {
        let (text, seconds) = (types.text(), types.long_integer());
        let fields = [("key", text), ("operator", text), ("value", text), ("effect", text)];
        let toleration = types.structure(&fields, &[("tolerationSeconds", seconds)]);
        let tolerations = types.list(toleration);
        types.root(&[("default", tolerations), ("whitelist", tolerations)], &[])
    });
    file.of_scheme("pkg/admission/podtolerationrestriction/config.go:32")
});

/// The tolerations of namespaces that have none of their own.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    /// The tolerations that pods get.
    pub(super) defaults: Vec<Toleration>,
    /// The tolerations that pods may have; all when there are none.
    pub(super) allowed: Vec<Toleration>,
}

/// Reads the configuration.
pub(super) fn read(text: Option<&[u8]>) -> Result<Configuration, String> {
    let Some(text) = text else { return Ok(Configuration::default()) };
    let tree = FILE.decode(text).map_err(|error| error.to_string())?.value;
    let path = FieldPath::new("podtolerationrestriction");
    let mut errors = ErrorList::new();
    for name in ["default", "whitelist"] {
        for (index, toleration) in tree.items_at(name).iter().enumerate() {
            validate(toleration, &path.child(name).index(index), &mut errors);
        }
    }
    if !errors.is_empty() {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err(format!("invalid config: [{}]", errors.join(" ")));
    }
    let tolerations = |name| tree.items_at(name).iter().map(Toleration::of).collect();
    Ok(Configuration { defaults: tolerations("default"), allowed: tolerations("whitelist") })
}

/// The rules for the tolerations of pods.
fn validate(toleration: &Value, path: &FieldPath, errors: &mut ErrorList) {
    let text = |name: &str| toleration.str_at(name);
    let key = path.child("key");
    if !text("key").is_empty() {
        let invalid = is_qualified_name(text("key"));
        errors.extend(invalid.into_iter().map(|why| FieldError::invalid(&key, text("key"), why)));
    }
    if text("key").is_empty() && text("operator") != "Exists" {
        let why =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&path.child("operator"), text("operator"), why).of_named_type());
    }
    if toleration.i64_at("tolerationSeconds").is_some() && text("effect") != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), text("effect"), why).of_named_type());
    }
    match text("operator") {
        "" | "Equal" => {
            let invalid = is_valid_label_value(text("value")).join(";");
            if !invalid.is_empty() {
                errors.push(FieldError::invalid(&path.child("operator"), text("value"), invalid));
            }
        }
        "Exists" if !text("value").is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&path.child("operator"), text("value"), why));
        }
        "Exists" => {}
        other => {
            // Those that a gate of pods opens, which these tolerations do not know, are listed where one is used.
            let supported: &[&str] = if matches!(other, "Lt" | "Gt") {
                &["Equal", "Exists", "Lt", "Gt"]
            } else {
                &["Equal", "Exists"]
            };
            errors.push(FieldError::not_supported(&path.child("operator"), other, supported));
        }
    }
    let effects = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
    if !text("effect").is_empty() && !effects.contains(&text("effect")) {
        let supported = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.push(FieldError::not_supported(&path.child("effect"), text("effect"), &supported));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_tolerations_are_refused() {
        let check = |fields: &str, expected: &str| {
            let text = format!("apiVersion: {}/v1alpha1\nkind: Configuration\n{fields}", KIND.group);
            assert_eq!(read(Some(text.as_bytes())).unwrap_err(), format!("invalid config: [{expected}]"));
        };
        check(
            "default: [{operator: Equal}]",
            "podtolerationrestriction.default[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is \
             empty, which means \"match all values and all keys\"",
        );
        check(
            "whitelist: [{key: a, effect: NoSchedule, tolerationSeconds: 5}, {key: a, operator: In}]",
            "podtolerationrestriction.whitelist[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when \
             `tolerationSeconds` is set podtolerationrestriction.whitelist[1].operator: Unsupported value: \"In\": supported \
             values: \"Equal\", \"Exists\"",
        );
        check(
            "default: [{key: a, operator: Exists, value: b}]",
            "podtolerationrestriction.default[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
        );
        check(
            "default: [{key: a, operator: Lt, value: '5'}]",
            "podtolerationrestriction.default[0].operator: Unsupported value: \"Lt\": supported values: \"Equal\", \"Exists\", \
             \"Lt\", \"Gt\"",
        );
        assert_eq!(read(None), Ok(Configuration::default()));
    }
}
