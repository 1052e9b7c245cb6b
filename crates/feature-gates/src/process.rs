//! The gates of the process, for code that no configuration reaches.
//!
//! Kube-apiserver has one set of gates in a process, and so has the binary of this server. Where a test runs several
//! servers in a process, the gates of the last one hold here for all of them; code that has a configuration takes the
//! [`FeatureGates`] from there.

use crate::{FeatureGates, Gate, feature_gates::WORDS};
use std::sync::atomic::{AtomicU64, Ordering};

/// A bit for each gate: whether its value differs from the default of the binary's version.
static CHANGED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Makes these gates those of the process.
pub fn install(gates: &FeatureGates) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_the_gates_that_were_installed_last() {
        assert!(enabled(Gate::APIResponseCompression) && !enabled(Gate::CBORServingAndStorage));
        let gates = FeatureGates::default();
        install(&gates.with(Gate::CBORServingAndStorage, true).with(Gate::APIResponseCompression, false));
        assert!(!enabled(Gate::APIResponseCompression) && enabled(Gate::CBORServingAndStorage));
        install(&gates);
        assert!(Gate::ALL.iter().all(|gate| enabled(*gate) == gates.enabled(*gate)));
    }
}
