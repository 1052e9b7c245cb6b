//! The rules of a user, as far as authorizers can enumerate them.

/// Verbs allowed on resources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRule {
    /// The verbs; "*" stands for all.
    pub verbs: Vec<String>,
    /// The groups; "*" stands for all.
    pub groups: Vec<String>,
    /// The resources; "*" stands for all, "*/scale" for that subresource of all.
    pub resources: Vec<String>,
    /// The object names; an empty list stands for all.
    pub names: Vec<String>,
}

/// Verbs allowed on non-resource paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NonResourceRule {
    /// The verbs; "*" stands for all.
    pub verbs: Vec<String>,
    /// The paths; "*" at the end matches any continuation.
    pub urls: Vec<String>,
}

/// The rules of a user in a namespace and in the whole cluster
/// (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access>).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedRules {
    /// The rules on resources.
    pub resource_rules: Vec<ResourceRule>,
    /// The rules on non-resource paths.
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether the list may be incomplete, since an authorizer cannot enumerate its rules.
    pub incomplete: bool,
    /// Errors of the evaluation, such as missing roles.
    pub errors: Vec<String>,
}

impl ResolvedRules {
    /// Adds the rules of another authorizer.
    pub fn merge(&mut self, other: ResolvedRules) {
        self.resource_rules.extend(other.resource_rules);
        self.non_resource_rules.extend(other.non_resource_rules);
        self.incomplete |= other.incomplete;
        self.errors.extend(other.errors);
    }
}
