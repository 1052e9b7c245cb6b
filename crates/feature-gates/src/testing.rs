//! Gates of one thread, for tests that run beside others in a process.

use crate::{EffectiveVersion, FeatureGates};
use std::{cell::Cell, marker::PhantomData};

thread_local! {
    static OVERRIDDEN: Cell<Option<FeatureGates>> = const { Cell::new(None) };
}

/// Makes these gates and their versions those that [`crate::enabled`] and [`crate::min_compatibility`] tell in this
/// thread, until the result is dropped.
#[must_use]
pub fn override_gates(gates: &FeatureGates) -> OverriddenGates {
    OVERRIDDEN.set(Some(*gates));
    OverriddenGates(PhantomData)
}

/// Gates that hold in a thread, which it does not leave.
#[derive(Debug)]
pub struct OverriddenGates(PhantomData<*const ()>);

impl Drop for OverriddenGates {
    fn drop(&mut self) {
        OVERRIDDEN.set(None);
    }
}

pub(crate) fn overridden(word: usize) -> Option<u64> {
    OVERRIDDEN.get()?.changed().get(word).copied()
}

pub(crate) fn overridden_versions() -> Option<EffectiveVersion> {
    OVERRIDDEN.get().map(|gates| gates.versions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gate, enabled};

    #[test]
    fn gates_are_overridden_until_the_end() {
        let gates = FeatureGates::default().with(Gate::WatchList, false);
        let overridden = override_gates(&gates);
        assert!(!enabled(Gate::WatchList) && enabled(Gate::OpenAPIEnums));
        assert!(std::thread::spawn(|| enabled(Gate::WatchList)).join().unwrap());
        drop(overridden);
        assert!(enabled(Gate::WatchList));
    }
}
