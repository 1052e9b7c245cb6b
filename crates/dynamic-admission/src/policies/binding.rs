//! A binding: where a policy is in force, and with which parameters.

use super::params::ParamRef;
use crate::matching::Matcher;
use pintle_machinery::{Value, ValueExt, meta::ObjectMeta};

/// A binding in the form that requests are compared with.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: Box<str>,
    /// The name of the policy.
    pub(super) policy: Box<str>,
    /// `None` matches all requests that the policy matches.
    pub(super) matcher: Option<Matcher>,
    pub(super) param_ref: Option<ParamRef>,
    /// The `validationActions` of a validating policy.
    pub(super) actions: Vec<Box<str>>,
}

impl Binding {
    pub(super) fn new(binding: &Value) -> Binding {
        let actions = binding.items_at("spec.validationActions").iter();
        Binding {
            name: binding.name().into(),
            policy: binding.str_at("spec.policyName").into(),
            matcher: binding.at("spec.matchResources").map(Matcher::of_match_resources),
            param_ref: binding.at("spec.paramRef").map(ParamRef::new),
            actions: actions.filter_map(Value::as_str).map(Box::from).collect(),
        }
    }
}
