//! The versions that a server emulates and stays compatible with
//! (<https://kubernetes.io/docs/concepts/cluster-administration/compatibility-version/>).

use crate::MinorVersion;
use std::collections::BTreeMap;

/// The versions in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveVersion {
    /// The version whose APIs and gates the server has.
    pub emulation: MinorVersion,
    /// The least version of the other servers of the control plane.
    pub min_compatibility: MinorVersion,
}

/// The least version of both flags.
const FLOOR: MinorVersion = MinorVersion::new(1, 33);

impl Default for EffectiveVersion {
    fn default() -> EffectiveVersion {
        EffectiveVersion::emulating(MinorVersion::BINARY)
    }
}

impl EffectiveVersion {
    /// The emulation of a version, compatible with the version before it.
    pub fn emulating(emulation: MinorVersion) -> EffectiveVersion {
        EffectiveVersion { emulation, min_compatibility: emulation.previous().max(FLOOR) }
    }

    /// Checks that both versions are between the supported ones.
    ///
    /// # Errors
    /// One text for each version out of range, in kube-apiserver's words.
    pub fn validate(self) -> Result<(), Vec<String>> {
        let EffectiveVersion { emulation, min_compatibility } = self;
        let mut errors = Vec::new();
        if !(FLOOR..=MinorVersion::BINARY).contains(&emulation) {
            let binary = MinorVersion::BINARY;
            errors.push(format!("emulation version {emulation} is not between [{FLOOR}, {binary}.0]"));
        }
        if min_compatibility > emulation || min_compatibility < FLOOR {
            errors.push(format!(
                "minCompatibilityVersion version {min_compatibility} is not between [{FLOOR}, {emulation}]"
            ));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The help of the ranges: `kube=1.33..1.36(default:1.36)` for emulation, and for compatibility.
    pub fn ranges() -> (String, String) {
        let (binary, default) = (MinorVersion::BINARY, EffectiveVersion::default());
        let range = |default: MinorVersion| format!("kube={FLOOR}..{binary}(default:{default})");
        (range(default.emulation), range(default.min_compatibility))
    }
}

/// The values of `--emulated-version` and `--min-compatibility-version`: `version` or `component=version`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionSettings {
    /// The values of `--emulated-version`.
    pub emulated: Vec<String>,
    /// The values of `--min-compatibility-version`.
    pub min_compatibility: Vec<String>,
}

impl VersionSettings {
    /// The versions. Their ranges are not checked yet.
    ///
    /// # Errors
    /// When a value is malformed, in kube-apiserver's words.
    pub fn resolve(&self) -> Result<EffectiveVersion, String> {
        let mut versions = match of_kube(&self.emulated)? {
            Some(emulation) => EffectiveVersion::emulating(emulation),
            None => EffectiveVersion::default(),
        };
        if let Some(min_compatibility) = of_kube(&self.min_compatibility)? {
            versions.min_compatibility = min_compatibility;
        }
        Ok(versions)
    }
}

/// The version of the only component.
fn of_kube(settings: &[String]) -> Result<Option<MinorVersion>, String> {
    let mut versions: BTreeMap<&str, MinorVersion> = BTreeMap::new();
    for setting in settings {
        let (component, version) = match setting.split_once('=') {
            Some((component, version)) => (component.trim(), version.trim()),
            None => ("kube", setting.as_str()),
        };
        let version = MinorVersion::parse(component, version)?;
        if let Some(other) = versions.insert(component, version) {
            return Err(format!("duplicate version flag, {component}={other} and {component}={version}"));
        }
    }
    match versions.keys().find(|component| **component != "kube") {
        Some(other) => Err(format!("component not registered: {other}")),
        None => Ok(versions.remove("kube")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(emulated: &[&str], min_compatibility: &[&str]) -> VersionSettings {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        VersionSettings { emulated: owned(emulated), min_compatibility: owned(min_compatibility) }
    }

    #[test]
    fn versions_follow_from_the_flags() {
        let check = |emulated: &[&str], min_compatibility: &[&str], expected: (&str, &str)| {
            let versions = settings(emulated, min_compatibility).resolve().unwrap();
            let found = (versions.emulation.to_string(), versions.min_compatibility.to_string());
            assert_eq!((found.0.as_str(), found.1.as_str()), expected);
            assert_eq!(versions.validate(), Ok(()));
        };
        check(&[], &[], ("1.36", "1.35"));
        check(&["1.35"], &[], ("1.35", "1.34"));
        check(&["kube=1.33"], &[], ("1.33", "1.33"));
        check(&["1.35"], &["1.35"], ("1.35", "1.35"));
        check(&[], &[" kube = 1.36 "], ("1.36", "1.36"));
    }

    #[test]
    fn mistakes_have_the_words_of_the_reference() {
        let check = |emulated: &[&str], expected: &str| {
            assert_eq!(settings(emulated, &[]).resolve(), Err(expected.to_owned()));
            assert_eq!(settings(&[], emulated).resolve(), Err(expected.to_owned()));
        };
        check(&["kube=1.35", "1.34"], "duplicate version flag, kube=1.35 and kube=1.34");
        check(&["wardle=1.35"], "component not registered: wardle");
        check(&["1.36.2"], "patch version not allowed, got: kube=1.36.2");
        let out_of_range = |emulated: &[&str], min_compatibility: &[&str]| {
            settings(emulated, min_compatibility).resolve().unwrap().validate().unwrap_err()
        };
        assert_eq!(
            out_of_range(&["1.30"], &[]),
            [
                "emulation version 1.30 is not between [1.33, 1.36.0]",
                "minCompatibilityVersion version 1.33 is not between [1.33, 1.30]"
            ]
        );
        assert_eq!(out_of_range(&["1.37"], &[]), ["emulation version 1.37 is not between [1.33, 1.36.0]"]);
        assert_eq!(
            out_of_range(&["1.34"], &["1.35"]),
            ["minCompatibilityVersion version 1.35 is not between [1.33, 1.34]"]
        );
        assert_eq!(EffectiveVersion::ranges().0, "kube=1.33..1.36(default:1.36)");
    }
}
