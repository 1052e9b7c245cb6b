//! The strategy of mutating admission policies.

use super::validation;
use crate::{
    admissionregistration::{
        defaults::set_policy_defaults, parameter_access::review_param_kind,
        reserved_names::with_reserved_names,
    },
    plain::{Generation, PlainStrategy},
};

/// The strategy of policies.
pub(in crate::admissionregistration) const STRATEGY: PlainStrategy = with_reserved_names(
    PlainStrategy::NEW
        .defaults(set_policy_defaults)
        .generation(Generation::Counted)
        .needs_resource_version()
        .checked(validation::validate, validation::validate_update)
        .reviewed(review_param_kind),
);
