//! The values of all gates.

use crate::{EffectiveVersion, Gate, MinorVersion, Spec, Stage, Support};

/// The number of words that hold a bit for each gate.
pub(crate) const WORDS: usize = Gate::ALL.len().div_ceil(64);

/// The values of all gates, for a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureGates {
    /// A bit for each gate: whether its value differs from the default of the binary's version.
    changed: [u64; WORDS],
    versions: EffectiveVersion,
}

/// A gate with its stage and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateState {
    /// The gate.
    pub gate: Gate,
    /// Its stage in the emulated version.
    pub stage: Stage,
    /// Its value.
    pub enabled: bool,
}

impl Default for FeatureGates {
    fn default() -> FeatureGates {
        FeatureGates::new(EffectiveVersion::default())
    }
}

impl FeatureGates {
    /// The defaults of the emulated version.
    pub fn new(versions: EffectiveVersion) -> FeatureGates {
        let defaults = FeatureGates { changed: [0; WORDS], versions };
        match versions.emulation == MinorVersion::BINARY {
            true => defaults,
            false => Gate::ALL
                .iter()
                .fold(defaults, |gates, gate| gates.with(*gate, gate.spec(versions.emulation).default)),
        }
    }

    /// The versions that the gates are those of.
    pub fn versions(&self) -> EffectiveVersion {
        self.versions
    }

    /// Whether a gate is open.
    pub fn enabled(&self, gate: Gate) -> bool {
        let (word, bit) = gate.position();
        let changed = self.changed.get(word).is_some_and(|word| word & bit != 0);
        gate.default_now() != changed
    }

    /// The same gates with another value of one of them, which is not checked.
    #[must_use]
    pub fn with(mut self, gate: Gate, enabled: bool) -> FeatureGates {
        let (word, bit) = gate.position();
        if let Some(word) = self.changed.get_mut(word) {
            *word = if enabled == gate.default_now() { *word & !bit } else { *word | bit };
        }
        self
    }

    /// The state of a gate in the emulated version.
    pub fn spec(&self, gate: Gate) -> Spec {
        gate.spec(self.versions.emulation)
    }

    /// The gates that exist in the emulated version, by name.
    pub fn known(&self) -> impl Iterator<Item = GateState> {
        let state = |gate: &Gate| GateState {
            gate: *gate,
            stage: self.spec(*gate).stage,
            enabled: self.enabled(*gate),
        };
        Gate::ALL.iter().map(state).filter(|state| state.stage != Stage::PreAlpha)
    }

    /// The gates whose value would change the server's behavior, but is not implemented.
    pub fn unsupported(&self) -> impl Iterator<Item = Gate> {
        let differs =
            |gate: &Gate| gate.support() == Support::DefaultOnly && self.enabled(*gate) != gate.default_now();
        Gate::ALL.iter().copied().filter(differs)
    }

    /// The lines of `--help`: the gates that can be set, with their defaults.
    pub fn help() -> Vec<String> {
        let line = |gate: &Gate| {
            let Spec { stage, default, .. } = gate.spec(MinorVersion::BINARY);
            let is_listed = matches!(stage, Stage::Alpha | Stage::Beta);
            is_listed
                .then(|| format!("kube:{}=true|false ({} - default={default})", gate.name(), stage.name()))
        };
        Gate::ALL.iter().filter_map(line).collect()
    }

    pub(crate) fn changed(&self) -> [u64; WORDS] {
        self.changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_emulated_version() {
        let at = |minor| FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, minor)));
        for (gate, expected) in [
            (Gate::ConstrainedImpersonation, [false, false, false, true]),
            (Gate::WatchList, [false, true, true, true]),
            (Gate::MutatingAdmissionPolicy, [false, false, false, true]),
            (Gate::KMSv1, [false; 4]),
            (Gate::AllowServiceExternalIPs, [true; 4]),
        ] {
            assert_eq!([33, 34, 35, 36].map(|minor| at(minor).enabled(gate)), expected, "{gate}");
        }
        assert_eq!(at(36), FeatureGates::default());
        let introduced_later = |state: GateState| state.gate == Gate::ShardedListAndWatch;
        assert!(!at(35).known().any(introduced_later) && at(36).known().any(introduced_later));
    }

    #[test]
    fn gates_with_an_unsupported_value_are_known() {
        let gates = FeatureGates::default();
        assert_eq!(gates.unsupported().count(), 0);
        let gates = gates.with(Gate::KMSv1, true).with(Gate::EventedPLEG, true);
        assert_eq!(gates.unsupported().collect::<Vec<_>>(), [Gate::KMSv1]);
        assert_eq!(gates.with(Gate::KMSv1, false).unsupported().count(), 0);
    }
}
