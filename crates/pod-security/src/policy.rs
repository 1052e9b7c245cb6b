//! The policy that the labels of a namespace select
//! (<https://kubernetes.io/docs/concepts/security/pod-security-admission/#pod-security-admission-labels-for-namespaces>).

use crate::{level::Level, version::Version};
use pintle_machinery::{FieldError, FieldPath, Value, ValueExt};
use std::{fmt, str::FromStr};

/// A level in one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LevelVersion {
    /// The level.
    pub level: Level,
    /// The version.
    pub version: Version,
}

impl LevelVersion {
    /// The latest privileged level, which allows everything.
    pub const PRIVILEGED: LevelVersion = LevelVersion { level: Level::Privileged, version: Version::Latest };

    fn is_equivalent(&self, other: &LevelVersion) -> bool {
        self == other || (self.level == Level::Privileged && other.level == Level::Privileged)
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level, self.version)
    }
}

/// The levels of a namespace's three modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Pods that violate this level are refused.
    pub enforce: LevelVersion,
    /// Violations of this level are recorded in audit events.
    pub audit: LevelVersion,
    /// Violations of this level are reported to the client as warnings.
    pub warn: LevelVersion,
}

impl Policy {
    /// The policy that allows everything.
    pub const PRIVILEGED: Policy = Policy {
        enforce: LevelVersion::PRIVILEGED,
        audit: LevelVersion::PRIVILEGED,
        warn: LevelVersion::PRIVILEGED,
    };

    /// Returns the policy of a namespace with these labels, `defaults` where it has none, and the errors of its labels.
    ///
    /// An invalid level is `restricted` for enforcement and `privileged` for the other modes; an invalid version is the
    /// latest. Without a warn level of its own, a namespace warns at its enforced level if that is the stricter one.
    pub fn of_labels(labels: &Value, defaults: Policy) -> (Policy, Vec<FieldError>) {
        let mut policy = defaults;
        let mut labels = Labels { labels, errors: Vec::new() };
        let enforced = labels.parse(ENFORCE);
        set(&mut policy.enforce.level, enforced, Level::Restricted);
        set(&mut policy.enforce.version, labels.parse(ENFORCE_VERSION), Version::Latest);
        set(&mut policy.audit.level, labels.parse(AUDIT), Level::Privileged);
        set(&mut policy.audit.version, labels.parse(AUDIT_VERSION), Version::Latest);
        let (warned, warned_version) = (labels.parse(WARN), labels.parse(WARN_VERSION));
        set(&mut policy.warn.level, warned, Level::Privileged);
        set(&mut policy.warn.version, warned_version, Version::Latest);
        if warned.is_none()
            && enforced == Some(Some(policy.enforce.level))
            && policy.enforce.level > policy.warn.level
        {
            policy.warn.level = policy.enforce.level;
            if warned_version.is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, labels.errors)
    }

    /// Whether all modes allow everything.
    pub fn is_privileged(&self) -> bool {
        self.is_equivalent(&Policy::PRIVILEGED)
    }

    /// Whether both policies have the same effect.
    pub fn is_equivalent(&self, other: &Policy) -> bool {
        self.enforce.is_equivalent(&other.enforce)
            && self.audit.is_equivalent(&other.audit)
            && self.warn.is_equivalent(&other.warn)
    }

    /// The modes that these labels set and that forbid something, as in `enforce=baseline:latest, warn=restricted:v1.30`.
    pub fn explicit_modes(&self, labels: &Value) -> String {
        let modes = [
            ("enforce", self.enforce, ENFORCE, ENFORCE_VERSION),
            ("audit", self.audit, AUDIT, AUDIT_VERSION),
            ("warn", self.warn, WARN, WARN_VERSION),
        ];
        let has = |label: &str| labels.field(label).is_some();
        let set = modes.into_iter().filter(|(_, own, level, version)| {
            own.level != Level::Privileged && (has(level) || has(version))
        });
        set.map(|(mode, own, _, _)| format!("{mode}={own}")).collect::<Vec<_>>().join(", ")
    }
}

const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
const ENFORCE_VERSION: &str = "pod-security.kubernetes.io/enforce-version";
const AUDIT: &str = "pod-security.kubernetes.io/audit";
const AUDIT_VERSION: &str = "pod-security.kubernetes.io/audit-version";
const WARN: &str = "pod-security.kubernetes.io/warn";
const WARN_VERSION: &str = "pod-security.kubernetes.io/warn-version";

/// The labels of a namespace, and the errors found in them.
struct Labels<'a> {
    labels: &'a Value,
    errors: Vec<FieldError>,
}

impl Labels<'_> {
    /// The value of a label: `None` when it is absent, `Some(None)` when it is invalid.
    fn parse<T: FromStr<Err: fmt::Display>>(&mut self, label: &str) -> Option<Option<T>> {
        let text = self.labels.field(label)?.as_str().unwrap_or_default();
        Some(match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let path = FieldPath::new("metadata").child("labels").key(label);
                self.errors.push(FieldError::invalid(&path, text, error.to_string()));
                None
            }
        })
    }
}

fn set<T>(own: &mut T, label: Option<Option<T>>, if_invalid: T) {
    if let Some(value) = label {
        *own = value.unwrap_or(if_invalid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_machinery::json;

    fn policy(labels: &Value) -> (String, Vec<String>) {
        let (policy, errors) = Policy::of_labels(labels, Policy::PRIVILEGED);
        let text = format!("{} {} {}", policy.enforce, policy.audit, policy.warn);
        (text, errors.iter().map(FieldError::to_string).collect())
    }

    #[test]
    fn labels_select_levels_and_warnings_follow_enforcement() {
        let check =
            |labels: Value, expected: &str| assert_eq!(policy(&labels), (expected.to_owned(), vec![]));
        check(json!({}), "privileged:latest privileged:latest privileged:latest");
        check(json!({ENFORCE: "baseline"}), "baseline:latest privileged:latest baseline:latest");
        check(
            json!({ENFORCE: "restricted", ENFORCE_VERSION: "v1.20", WARN: "baseline"}),
            "restricted:v1.20 privileged:latest baseline:latest",
        );
        check(
            json!({ENFORCE: "baseline", ENFORCE_VERSION: "v1.20", WARN_VERSION: "v1.30", AUDIT: "restricted"}),
            "baseline:v1.20 restricted:latest baseline:v1.30",
        );
    }

    #[test]
    fn invalid_labels_are_reported_and_fail_safe() {
        let (text, errors) = policy(&json!({ENFORCE: "x", AUDIT: "y", WARN: "z", ENFORCE_VERSION: "1.2"}));
        assert_eq!(text, "restricted:latest privileged:latest privileged:latest");
        assert_eq!(errors.len(), 4);
        assert_eq!(
            errors[0],
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"x\": must be one of privileged, \
             baseline, restricted"
        );
        assert!(
            errors[1].ends_with("Invalid value: \"1.2\": must be \"latest\" or \"v1.x\""),
            "{}",
            errors[1]
        );
    }

    #[test]
    fn only_explicit_modes_that_forbid_something_are_told() {
        let labels = json!({ENFORCE: "baseline", AUDIT: "privileged", WARN_VERSION: "v1.30"});
        let (policy, _) = Policy::of_labels(&labels, Policy::PRIVILEGED);
        assert_eq!(policy.explicit_modes(&labels), "enforce=baseline:latest, warn=baseline:v1.30");
        assert!(!policy.is_privileged());
        let other = LevelVersion { level: Level::Privileged, version: Version::Minor(3) };
        assert!(Policy { enforce: other, ..Policy::PRIVILEGED }.is_privileged());
    }
}
