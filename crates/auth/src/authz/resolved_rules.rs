//! All that a user may do, as far as authorizers can tell.

/// What may be done to resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRule {
    /// The verbs; "*" is all.
    pub verbs: Vec<String>,
    /// The groups; "*" is all.
    pub groups: Vec<String>,
    /// The resources; "*" is all, "*/scale" that subresource of all.
    pub resources: Vec<String>,
    /// The names; none is all.
    pub names: Vec<String>,
}

/// What may be done to paths that are no resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NonResourceRule {
    /// The verbs; "*" is all.
    pub verbs: Vec<String>,
    /// The paths; "*" at the end is whatever follows.
    pub urls: Vec<String>,
}

/// What a user may do in a namespace and beyond it
/// (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access>).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedRules {
    /// Of resources.
    pub resource_rules: Vec<ResourceRule>,
    /// Of other paths.
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether they may be allowed more than that, since an authorizer cannot tell.
    pub incomplete: bool,
    /// What went wrong, such as roles that are not there.
    pub errors: Vec<String>,
}

impl ResolvedRules {
    /// Adds what another authorizer allows.
    pub fn merge(&mut self, other: ResolvedRules) {
        self.resource_rules.extend(other.resource_rules);
        self.non_resource_rules.extend(other.non_resource_rules);
        self.incomplete |= other.incomplete;
        self.errors.extend(other.errors);
    }
}
