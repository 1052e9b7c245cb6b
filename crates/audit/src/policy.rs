//! The audit policy: selects requests, and the level of detail of their events
//! (<https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/#audit-k8s-io-v1-Policy>).
//!
//! The first rule that matches a request decides; a request that no rule matches is not audited.

mod attributes;
mod decode;
mod rule;
#[cfg(test)]
mod tests;
mod validation;

pub use attributes::Attributes;

use crate::{Level, StageSet};
use pintle_go_forms::{FileError, quote, read_file};
use pintle_machinery::{ErrorList, config_file::ConfigFileError, status::aggregate};
use rule::Rules;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A valid policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy(Rules);

/// The result of a policy for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestAuditConfig {
    /// The level of detail.
    pub level: Level,
    /// The stages without an event.
    pub omit_stages: StageSet,
    /// Whether managed fields are omitted from objects.
    pub omit_managed_fields: bool,
}

impl Policy {
    /// Reads a policy from a file. Unknown fields are logged and ignored, as by the reference.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a valid policy.
    pub fn read(path: &Path) -> Result<Policy, PolicyError> {
        let failed = |problem| PolicyError { path: path.to_owned(), problem };
        let text = read_file(path).map_err(|error| failed(PolicyProblem::Read(error)))?;
        let (policy, warnings) = Policy::parse(&text).map_err(failed)?;
        if !warnings.is_empty() {
            tracing::warn!(
                path = %path.display(),
                "audit policy contains errors, which are ignored: {}",
                warnings.join(", ")
            );
        }
        Ok(policy)
    }

    /// Parses a policy from YAML or JSON. Also returns warnings for unknown and duplicate fields.
    ///
    /// # Errors
    /// When the text is not a valid policy.
    pub fn parse(text: &[u8]) -> Result<(Policy, Vec<String>), PolicyProblem> {
        let decoded = decode::FILE.decode(text).map_err(PolicyProblem::Decode)?;
        let rules = validation::validate(&decoded.value).map_err(PolicyProblem::Invalid)?;
        match rules.list.is_empty() {
            true => Err(PolicyProblem::Empty),
            false => Ok((Policy(rules), decoded.problems.iter().map(ToString::to_string).collect())),
        }
    }

    /// The level, stages and options for a request.
    pub fn evaluate(&self, attributes: &Attributes<'_>) -> RequestAuditConfig {
        let Policy(rules) = self;
        match rules.list.iter().find(|rule| rule.matches(attributes)) {
            Some(rule) => RequestAuditConfig {
                level: rule.level,
                omit_stages: rules.omit_stages.union(rule.omit_stages),
                omit_managed_fields: rule.omit_managed_fields.unwrap_or(rules.omit_managed_fields),
            },
            None => RequestAuditConfig {
                level: Level::None,
                omit_stages: rules.omit_stages,
                omit_managed_fields: rules.omit_managed_fields,
            },
        }
    }
}

/// The error of reading a policy file.
#[derive(Debug, thiserror::Error)]
pub struct PolicyError {
    path: PathBuf,
    #[source]
    problem: PolicyProblem,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            PolicyProblem::Read(error) => {
                let path = quote(&path.to_string());
                write!(f, "loading audit policy file: failed to read file path {path}: {error}")
            }
            problem => write!(f, "loading audit policy file: {problem}: from file {path}"),
        }
    }
}

/// The problem with a policy.
#[derive(Debug)]
#[non_exhaustive]
pub enum PolicyProblem {
    /// The file cannot be read.
    Read(FileError),
    /// It is not a policy.
    Decode(ConfigFileError),
    /// Fields have invalid values.
    Invalid(ErrorList),
    /// It has no rules.
    Empty,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyProblem::Read(error) => error.fmt(f),
            PolicyProblem::Decode(reason) => write!(f, "failed decoding: {reason}"),
            PolicyProblem::Invalid(errors) => f.write_str(&aggregate(errors.iter().map(ToString::to_string))),
            PolicyProblem::Empty => f.write_str("loaded illegal policy with 0 rules"),
        }
    }
}

impl std::error::Error for PolicyProblem {}
