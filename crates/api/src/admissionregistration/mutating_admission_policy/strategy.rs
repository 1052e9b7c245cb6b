//! The strategy of mutating admission policies.

use super::validation;
use crate::{
    admissionregistration::{
        defaults::set_policy_defaults, parameter_access::review_param_kind,
        policy_validation::warnings_for_name,
    },
    plain::{Generation, PlainStrategy},
};

/// The strategy of policies.
pub(super) const STRATEGY: PlainStrategy = PlainStrategy::NEW
    .defaults(set_policy_defaults)
    .generation(Generation::Counted)
    .needs_resource_version()
    .checked(validation::validate, validation::validate_update)
    .reviewed(review_param_kind)
    .warned(warnings_for_name);
