//! The values that `--feature-gates` gives to gates.

use crate::{EffectiveVersion, FeatureGates, Gate, Spec, Stage};
use pintle_go_forms::{parse_bool, quote};
use std::{collections::BTreeSet, fmt};

/// The values of `--feature-gates`: lists of `component:gate=value`, whose component is `kube` if there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentSettings(Vec<(String, String)>);

/// A remark on a setting that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// There is no gate of this name.
    Unrecognized(String),
    /// A gate that will be removed is set.
    Removal {
        /// The gate.
        gate: Gate,
        /// Its stage.
        stage: Stage,
        /// The value.
        value: bool,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Unrecognized(name) => write!(formatter, "unrecognized feature gate: {name}"),
            Notice::Removal { gate, stage, value } => {
                let stage = if *stage == Stage::GA { "GA" } else { "deprecated" };
                write!(
                    formatter,
                    "setting {stage} feature gate {gate}={value}: it will be removed in a future release"
                )
            }
        }
    }
}

impl ComponentSettings {
    /// Adds the value of a flag that may be repeated.
    pub fn add(&mut self, text: &str) {
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        self.0.extend(pairs.map(|pair| match pair.split_once(':') {
            Some((component, setting)) => (component.trim().to_owned(), setting.trim().to_owned()),
            None => (String::new(), pair.trim().to_owned()),
        }));
    }

    /// The gates of a version with these settings. A setting that is repeated has its last value.
    ///
    /// # Errors
    /// When a setting is malformed, names an unknown component, changes a locked gate, or contradicts a dependency: in
    /// kube-apiserver's words.
    pub fn apply(&self, versions: EffectiveVersion) -> Result<(FeatureGates, Vec<Notice>), String> {
        let settings = self.of_kube()?;
        let mut gates = FeatureGates::new(versions);
        let mut errors = Vec::new();
        let mut notices = Vec::new();
        // Gates of their own take precedence over the words for many.
        for (name, value) in &settings {
            let stage = match *name {
                "AllAlpha" => Stage::Alpha,
                "AllBeta" => Stage::Beta,
                _ => continue,
            };
            let of_stage = Gate::ALL.iter().filter(|gate| gates.spec(**gate).stage == stage);
            let words = [Gate::AllAlpha, Gate::AllBeta];
            let of_stage: Vec<&Gate> = of_stage.filter(|gate| !words.contains(gate)).collect();
            gates = of_stage.into_iter().fold(gates, |gates, gate| gates.with(*gate, *value));
        }
        for (name, value) in settings {
            let Ok(gate) = name.parse::<Gate>() else {
                notices.push(Notice::Unrecognized(name.to_owned()));
                continue;
            };
            let Spec { stage, default, locked, .. } = gates.spec(gate);
            if locked && default != value {
                errors.push(format!(
                    "cannot set feature gate {gate} to {value}, feature is locked to {default}"
                ));
                continue;
            }
            match stage {
                Stage::PreAlpha => {
                    let EffectiveVersion { emulation, min_compatibility } = versions;
                    errors.push(format!(
                        "cannot set feature gate {gate} to {value}, feature is PreAlpha at emulated version {emulation}, \
                         min compatibility version {min_compatibility}"
                    ));
                    continue;
                }
                Stage::GA | Stage::Deprecated => notices.push(Notice::Removal { gate, stage, value }),
                Stage::Alpha | Stage::Beta => {}
            }
            gates = gates.with(gate, value);
        }
        if errors.is_empty() {
            errors = closed_dependencies(&gates);
        }
        match errors.as_slice() {
            [] => Ok((gates, notices)),
            [error] => Err(error.clone()),
            errors => Err(format!("[{}]", errors.join(", "))),
        }
    }

    /// The settings of the only component, each gate once, in the order of their first mention.
    fn of_kube(&self) -> Result<Vec<(&str, bool)>, String> {
        let components: BTreeSet<&str> = self.0.iter().map(|(component, _)| component.as_str()).collect();
        if components.contains("") && components.contains("kube") {
            return Err(
                "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
                    .to_owned(),
            );
        }
        if let Some(other) = components.into_iter().find(|component| !["", "kube"].contains(component)) {
            return Err(format!("component not registered: {other}"));
        }
        let mut settings: Vec<(&str, bool)> = Vec::new();
        for (_, setting) in self.0.iter().filter(|(_, setting)| !setting.is_empty()) {
            let Some((name, value)) = setting.split_once('=') else {
                return Err(format!("missing bool value for {setting}"));
            };
            let (name, value) = (name.trim(), value.trim());
            let parsed = parse_bool(value).ok_or_else(|| {
                format!(
                    "invalid value of {name}={value}, err: strconv.ParseBool: parsing {}: invalid syntax",
                    quote(value)
                )
            })?;
            match settings.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = parsed,
                None => settings.push((name, parsed)),
            }
        }
        Ok(settings)
    }
}

impl fmt::Display for ComponentSettings {
    /// The settings sorted by component, as kube-apiserver shows the flag: `:gate=value`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&(String, String)> = self.0.iter().collect();
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        let pairs: Vec<String> =
            sorted.iter().map(|(component, setting)| format!("{component}:{setting}")).collect();
        formatter.write_str(&pairs.join(","))
    }
}

/// An error for each open gate that needs a closed one.
fn closed_dependencies(gates: &FeatureGates) -> Vec<String> {
    let open = Gate::ALL.iter().filter(|gate| gates.enabled(**gate));
    let error = |gate: &Gate| {
        let closed = gate.needed().iter().filter(|needed| !gates.enabled(**needed));
        let closed: Vec<&str> = closed.map(|gate| gate.name()).collect();
        let closed = (!closed.is_empty()).then(|| closed.join(" "))?;
        Some(format!("{gate} is enabled, but depends on features that are disabled: [{closed}]"))
    };
    open.filter_map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MinorVersion;

    fn apply(flags: &[&str], versions: EffectiveVersion) -> Result<(FeatureGates, Vec<Notice>), String> {
        let mut settings = ComponentSettings::default();
        flags.iter().for_each(|flag| settings.add(flag));
        settings.apply(versions)
    }

    /// The gates that differ from the defaults.
    fn changed(flags: &[&str]) -> Vec<&'static str> {
        let (gates, _) = apply(flags, EffectiveVersion::default()).unwrap();
        let changed = Gate::ALL.iter().filter(|gate| gates.enabled(**gate) != gate.default_now());
        changed.map(|gate| gate.name()).collect()
    }

    #[test]
    fn gates_are_set_by_their_names() {
        assert_eq!(changed(&["CBORServingAndStorage=true"]), ["CBORServingAndStorage"]);
        assert_eq!(
            changed(&["kube:CBORServingAndStorage=T,kube:WatchList=0"]),
            ["CBORServingAndStorage", "WatchList"]
        );
        assert_eq!(changed(&["CBORServingAndStorage=true", "CBORServingAndStorage=false"]), [""; 0]);
        assert_eq!(
            changed(&[" CBORServingAndStorage = 1 ,,", ",WatchList=f"]),
            ["CBORServingAndStorage", "WatchList"]
        );
        assert_eq!(changed(&["BtreeWatchCache=true"]), [""; 0]);
        let settings = |text: &str| {
            let mut settings = ComponentSettings::default();
            settings.add(text);
            settings.to_string()
        };
        assert_eq!(settings("kube:B=true,A=1,kube:A=false"), ":A=1,kube:B=true,kube:A=false");
    }

    #[test]
    fn words_stand_for_many_gates_without_a_value_of_their_own() {
        let alpha = changed(&["AllAlpha=true,WorkloadWithJob=false"]);
        assert!(alpha.contains(&"CBORServingAndStorage") && alpha.contains(&"AllAlpha"));
        assert!(!alpha.contains(&"WorkloadWithJob") && !alpha.contains(&"ClusterTrustBundle"));
        let beta = changed(&["AllBeta=true"]);
        assert!(beta.contains(&"ClusterTrustBundle") && !beta.contains(&"CBORServingAndStorage"));
        let closed = changed(&["WatchList=true,AllBeta=false"]);
        assert!(closed.contains(&"OpenAPIEnums") && !closed.contains(&"WatchList"));
    }

    #[test]
    fn mistakes_have_the_words_of_the_reference() {
        let check = |flags: &[&str], expected: &str| {
            let error = apply(flags, EffectiveVersion::default()).unwrap_err();
            assert_eq!(error, expected, "{flags:?}");
        };
        check(&["Nope"], "missing bool value for Nope");
        check(
            &["CBORServingAndStorage=maybe"],
            "invalid value of CBORServingAndStorage=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax",
        );
        check(&["other:X=true"], "component not registered: other");
        check(
            &["X=true,kube:Y=true"],
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        );
        check(
            &["DeclarativeValidation=false,BtreeWatchCache=false,GangScheduling=true"],
            "[cannot set feature gate DeclarativeValidation to false, feature is locked to true, cannot set feature gate \
             BtreeWatchCache to false, feature is locked to true]",
        );
        check(
            &["GangScheduling=true"],
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        );
        check(
            &["AllBeta=false,ResourceHealthStatusMessage=1"],
            "ResourceHealthStatusMessage is enabled, but depends on features that are disabled: [ResourceHealthStatus]",
        );
        let older = EffectiveVersion::emulating(MinorVersion::new(1, 34));
        assert_eq!(
            apply(&["ShardedListAndWatch=true"], older).unwrap_err(),
            "cannot set feature gate ShardedListAndWatch to true, feature is PreAlpha at emulated version 1.34, min \
             compatibility version 1.33"
        );
        assert!(apply(&["DeclarativeValidation=false"], older).is_ok());
    }

    #[test]
    fn gates_without_a_future_are_remarked() {
        let notices = |flag: &str| -> Vec<String> {
            let (_, notices) = apply(&[flag], EffectiveVersion::default()).unwrap();
            notices.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            notices("Nope=true,:Other=1"),
            ["unrecognized feature gate: Nope", "unrecognized feature gate: Other"]
        );
        assert_eq!(
            notices("MutatingAdmissionPolicy=false,KMSv1=true"),
            [
                "setting GA feature gate MutatingAdmissionPolicy=false: it will be removed in a future release",
                "setting deprecated feature gate KMSv1=true: it will be removed in a future release"
            ]
        );
        assert_eq!(notices("CBORServingAndStorage=true"), [""; 0]);
    }
}
