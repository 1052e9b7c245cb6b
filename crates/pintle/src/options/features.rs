//! The flags of feature gates and of the emulated version
//! (<https://kubernetes.io/docs/concepts/cluster-administration/compatibility-version/>).

use super::arguments::{flag, list, set, switch, texts};
use clap::{Arg, ArgAction, ArgMatches};
use pintle_feature_gates::{
    ComponentSettings, FeatureGates, Gate, MinorVersion, Notice, Stage, VersionSettings,
};

/// The options of feature gates and of the emulated version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureOptions {
    /// The gates that are set (`--feature-gates`).
    pub gates: ComponentSettings,
    /// The versions (`--emulated-version`, `--min-compatibility-version`).
    pub versions: VersionSettings,
    /// Whether resources are also served in versions that are newer than the emulated one, if they are served in an older
    /// version.
    pub emulation_forward_compatible: bool,
    /// Whether `--runtime-config` may enable versions and resources that are newer than the emulated version.
    pub runtime_config_emulation_forward_compatible: bool,
}

impl FeatureOptions {
    /// The flags.
    pub fn args() -> Vec<Arg> {
        vec![
            flag("feature-gates", "NAME=BOOL,…", "Feature gates to enable or disable")
                .action(ArgAction::Append),
            list(
                "emulated-version",
                "VERSION,…",
                "Kubernetes version whose APIs and features the server emulates",
            ),
            list(
                "min-compatibility-version",
                "VERSION,…",
                "Minimum version of the other control plane components",
            ),
            switch(
                "emulation-forward-compatible",
                "Serves resources also in API versions that are newer than the emulated version",
            ),
            switch(
                "runtime-config-emulation-forward-compatible",
                "Allows --runtime-config to enable APIs that are newer than the emulated version",
            ),
        ]
    }

    /// Reads the flags.
    pub fn read(matches: &ArgMatches) -> FeatureOptions {
        let mut options = FeatureOptions::default();
        for text in matches.get_many::<String>("feature-gates").into_iter().flatten() {
            options.gates.add(text);
        }
        let versions = |name: &str| texts(matches, name).unwrap_or_default();
        options.versions = VersionSettings {
            emulated: versions("emulated-version"),
            min_compatibility: versions("min-compatibility-version"),
        };
        set(matches, "emulation-forward-compatible", &mut options.emulation_forward_compatible);
        set(
            matches,
            "runtime-config-emulation-forward-compatible",
            &mut options.runtime_config_emulation_forward_compatible,
        );
        options
    }

    /// Whether a gate is open; closed if a setting is invalid.
    pub fn is_open(&self, gate: Gate) -> bool {
        self.settings().is_ok_and(|(gates, _)| gates.enabled(gate))
    }

    /// The gates in force, and remarks on the settings.
    ///
    /// # Errors
    /// When a setting is malformed, unknown or locked, in kube-apiserver's words.
    pub(crate) fn settings(&self) -> Result<(FeatureGates, Vec<Notice>), String> {
        self.gates.apply(self.versions.resolve()?)
    }

    /// The gates in force. Remarks on the settings go to the log.
    ///
    /// # Errors
    /// As those of [`FeatureOptions::settings`].
    pub(crate) fn resolve(&self) -> Result<FeatureGates, String> {
        let (gates, notices) = self.settings()?;
        for notice in notices {
            log(&notice);
        }
        warn_of_unsupported(&gates);
        let alpha = alpha_while_emulating(&gates);
        if !alpha.is_empty() {
            tracing::warn!(
                "component has alpha features enabled in emulated version, this is unsupported: features=[{}]",
                alpha.join(" ")
            );
        }
        Ok(gates)
    }

    /// The errors of versions that are well-formed.
    pub(crate) fn errors(&self) -> Vec<String> {
        let Ok(versions) = self.versions.resolve() else { return Vec::new() };
        let mut errors = versions.validate().err().unwrap_or_default();
        let needs_emulation = [
            ("EmulationForwardCompatible", self.emulation_forward_compatible),
            ("RuntimeConfigEmulationForwardCompatible", self.runtime_config_emulation_forward_compatible),
        ];
        for (option, is_set) in needs_emulation {
            if is_set && versions.emulation == MinorVersion::BINARY {
                errors.push(format!(
                    "ServerRunOptions.{option} cannot be set to true if the emulation version is the same as the binary \
                     version"
                ));
            }
        }
        errors
    }
}

fn log(notice: &Notice) {
    match notice {
        Notice::Unrecognized(_) => tracing::warn!("{notice}"),
        Notice::Removal { .. } => tracing::info!("{notice}"),
    }
}

/// The open alpha gates of an emulated version: their features may differ from those of that version.
fn alpha_while_emulating(gates: &FeatureGates) -> Vec<&'static str> {
    if gates.versions().emulation == MinorVersion::BINARY {
        return Vec::new();
    }
    let is_alpha = |gate: &&Gate| gates.spec(**gate).stage == Stage::Alpha && gates.enabled(**gate);
    Gate::ALL.iter().filter(is_alpha).map(|gate| gate.name()).collect()
}

/// Names the gates whose value is not implemented: silence would mislead.
fn warn_of_unsupported(gates: &FeatureGates) {
    for value in [true, false] {
        let unsupported = gates.unsupported().filter(|gate| gates.enabled(*gate) == value);
        let names: Vec<&str> = unsupported.map(Gate::name).collect();
        if !names.is_empty() {
            tracing::warn!(
                "feature gates have no effect here: this server works as with {}: {}",
                !value,
                names.join(", ")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_gates_are_named_while_an_older_version_is_emulated() {
        let check = |version: &str, gates: &str, expected: &[&str]| {
            let mut options = FeatureOptions::default();
            options.versions.emulated.push(version.to_owned());
            options.gates.add(gates);
            assert_eq!(alpha_while_emulating(&options.settings().unwrap().0), expected, "{version} {gates}");
        };
        check("1.36", "HPAScaleToZero=true", &[]);
        check("1.35", "", &[]);
        check("1.35", "HPAScaleToZero=true", &["HPAScaleToZero"]);
        check(
            "1.35",
            "HPAScaleToZero=true,StrictIPCIDRValidation=true",
            &["HPAScaleToZero", "StrictIPCIDRValidation"],
        );
    }

    #[test]
    fn versions_and_gates_are_checked_together() {
        let check = |change: fn(&mut FeatureOptions), expected: Result<bool, &str>| {
            let mut options = FeatureOptions::default();
            change(&mut options);
            let found = match options.errors().join(", ") {
                errors if errors.is_empty() => options.resolve(),
                errors => Err(errors),
            };
            let found = found.map(|gates| gates.enabled(Gate::ConstrainedImpersonation));
            assert_eq!(found, expected.map_err(str::to_owned), "{options:?}");
        };
        check(|_| {}, Ok(true));
        check(|options| options.versions.emulated.push("1.35".to_owned()), Ok(false));
        check(
            |options| {
                options.versions.emulated.push("1.35".to_owned());
                options.gates.add("ConstrainedImpersonation=true");
                options.emulation_forward_compatible = true;
            },
            Ok(true),
        );
        check(
            |options| options.versions.emulated.push("1.37".to_owned()),
            Err("emulation version 1.37 is not between [1.33, 1.36.0]"),
        );
        check(
            |options| {
                options.emulation_forward_compatible = true;
                options.runtime_config_emulation_forward_compatible = true;
            },
            Err(
                "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same \
                 as the binary version, ServerRunOptions.RuntimeConfigEmulationForwardCompatible cannot be set to true if \
                 the emulation version is the same as the binary version",
            ),
        );
        check(
            |options| options.gates.add("BtreeWatchCache=false"),
            Err("cannot set feature gate BtreeWatchCache to false, feature is locked to true"),
        );
    }
}
