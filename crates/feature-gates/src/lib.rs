//! Feature gates: every gate of kube-apiserver v1.36 with its history, the values that flags give them, and the lookup
//! (<https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/>).
//!
//! A gate has a stage and a default in each version ([`Gate`], [`Spec`]). The [`EffectiveVersion`] of the server selects
//! one of them; `--feature-gates` ([`ComponentSettings`]) overrides it. The result is a [`FeatureGates`]: a small value
//! that is copied to the parts of a server. Code that no configuration reaches, such as the validation of one field, asks
//! [`enabled`], which knows the gates of the process.
//!
//! A gate whose other value changes nothing in this server is declared so by its [`Support`]; the server warns of it when
//! it is set.

mod effective_version;
mod feature_gates;
mod gate;
mod minor_version;
mod process;
mod settings;
mod stage;
mod support;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use effective_version::{EffectiveVersion, VersionSettings};
pub use feature_gates::{FeatureGates, GateState};
pub use gate::Gate;
pub use minor_version::MinorVersion;
pub use process::{enabled, install, min_compatibility};
pub use settings::{ComponentSettings, Notice};
pub use stage::{Spec, Stage};
pub use support::Support;
