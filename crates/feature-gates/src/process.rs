//! The gates of the process, for code that no configuration reaches.
//!
//! Kube-apiserver has one set of gates in a process, and so has the binary of this server. Where a test runs several
//! servers in a process, the gates of the last one hold here for all of them; code that has a configuration takes the
//! [`FeatureGates`] from there.

use crate::{EffectiveVersion, FeatureGates, Gate, MinorVersion, feature_gates::WORDS};
use std::sync::{
    PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

/// A bit for each gate: whether its value differs from the default of the binary's version.
static CHANGED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// The versions of the process; `None` for those of the binary.
static VERSIONS: RwLock<Option<EffectiveVersion>> = RwLock::new(None);

/// Makes these gates those of the process, with their versions.
pub fn install(gates: &FeatureGates) {
    *VERSIONS.write().unwrap_or_else(PoisonError::into_inner) = Some(gates.versions());
    for (word, changed) in CHANGED.iter().zip(gates.changed()) {
        word.store(changed, Ordering::Relaxed);
    }
}

/// Whether a gate of the process is open. It costs a load.
pub fn enabled(gate: Gate) -> bool {
    let (word, bit) = gate.position();
    #[cfg(any(test, feature = "testing"))]
    if let Some(changed) = crate::testing::overridden(word) {
        return gate.default_now() != (changed & bit != 0);
    }
    let changed = CHANGED.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0);
    gate.default_now() != changed
}

/// The least version of the other servers of the control plane. Values that only newer versions understand must not be stored.
pub fn min_compatibility() -> MinorVersion {
    #[cfg(any(test, feature = "testing"))]
    if let Some(versions) = crate::testing::overridden_versions() {
        return versions.min_compatibility;
    }
    let versions = *VERSIONS.read().unwrap_or_else(PoisonError::into_inner);
    versions.unwrap_or_default().min_compatibility
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_the_gates_that_were_installed_last() {
        assert!(enabled(Gate::APIResponseCompression) && !enabled(Gate::CBORServingAndStorage));
        let gates = FeatureGates::default();
        install(&gates.with(Gate::CBORServingAndStorage, true).with(Gate::APIResponseCompression, false));
        assert!(!enabled(Gate::APIResponseCompression) && enabled(Gate::CBORServingAndStorage));
        assert_eq!(min_compatibility(), MinorVersion::new(1, 35));
        install(&FeatureGates::new(EffectiveVersion::emulating(MinorVersion::new(1, 34))));
        assert_eq!(min_compatibility(), MinorVersion::new(1, 33));
        install(&gates);
        assert!(Gate::ALL.iter().all(|gate| enabled(*gate) == gates.enabled(*gate)));
    }
}
