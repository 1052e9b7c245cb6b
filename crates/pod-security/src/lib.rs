//! The Pod Security Standards (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>): evaluates pods
//! against a level in one of its versions.
//!
//! A [`Level`] is a set of [`Check`](check::Check)s; each check has revisions, which apply from a Kubernetes version on.
//! The labels of a namespace select a level and version for each of three modes, its [`Policy`].
//! [`evaluate`] returns the [`Violations`] of a pod.
//!
//! This crate knows pods and labels only. Requests, exemptions and the modes' consequences belong to the admission plugin.

mod check;
mod checks;
mod evaluation;
mod level;
mod pod;
mod policy;
mod setters;
mod version;

pub use check::Violation;
pub use evaluation::{Violations, evaluate};
pub use level::{InvalidLevel, Level};
pub use pod::Pod;
pub use policy::{LevelVersion, Policy};
pub use version::{InvalidVersion, Version};
