//! The stages of a gate.

use crate::MinorVersion;

/// The maturity of a gate in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Not introduced yet: the gate cannot be set.
    PreAlpha,
    /// Off unless it is opened, and subject to change.
    Alpha,
    /// Tested; often on by default.
    Beta,
    /// Stable: the gate will be removed.
    GA,
    /// The gate restores old behavior, and will be removed.
    Deprecated,
}

impl Stage {
    /// The name in help texts and metrics; a stable gate has none.
    pub fn name(self) -> &'static str {
        match self {
            Stage::PreAlpha => "PRE-ALPHA",
            Stage::Alpha => "ALPHA",
            Stage::Beta => "BETA",
            Stage::GA => "",
            Stage::Deprecated => "DEPRECATED",
        }
    }
}

/// The state of a gate from a version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// The first version with this state.
    pub since: MinorVersion,
    /// The stage.
    pub stage: Stage,
    /// The value without flags.
    pub default: bool,
    /// Whether flags cannot change the value.
    pub locked: bool,
}

impl Spec {
    /// The state before the first version.
    pub(crate) const PRE_ALPHA: Spec =
        Spec { since: MinorVersion::new(0, 0), stage: Stage::PreAlpha, default: false, locked: false };
}
