//! Rules: operations, groups, versions, resources, scope and names.

use pintle_admission::{AdmissionRequest, Endpoint, Operation};
use pintle_machinery::{Value, ValueExt};

/// A rule of a webhook (`RuleWithOperations`) or of a policy (`NamedRuleWithOperations`), in a form that is compared
/// fast.
#[derive(Debug, Clone)]
pub struct Rule {
    operations: Vec<Operation>,
    api_groups: Names,
    api_versions: Names,
    /// Resources and subresources.
    resources: Vec<(Name, Name)>,
    scope: Scope,
    /// Empty for any name.
    resource_names: Vec<String>,
}

impl Rule {
    /// Reads a rule. Absent lists match nothing, except that absent `resourceNames` match any name.
    pub fn new(rule: &Value) -> Rule {
        const ALL: [Operation; 4] =
            [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
        let operations = strings(rule, "operations");
        let has = |operation: Operation| {
            operations.iter().any(|own| matches!(own.as_str(), "*") || own == operation.as_str())
        };
        let resources = strings(rule, "resources");
        let resources = resources.iter().map(|resource| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            (Name::new(resource), Name::new(subresource))
        });
        let scope = match rule.str_at("scope") {
            "" | "*" => Scope::All,
            "Namespaced" => Scope::Namespaced,
            "Cluster" => Scope::Cluster,
            _ => Scope::Unknown,
        };
        Rule {
            operations: ALL.into_iter().filter(|operation| has(*operation)).collect(),
            api_groups: Names::new(rule, "apiGroups"),
            api_versions: Names::new(rule, "apiVersions"),
            resources: resources.collect(),
            scope,
            resource_names: strings(rule, "resourceNames"),
        }
    }

    /// Whether the rule applies to a request, as if it were for this endpoint.
    pub fn matches(&self, request: &AdmissionRequest<'_>, endpoint: &Endpoint) -> bool {
        let resource = &endpoint.resource;
        self.operations.contains(&request.operation)
            && self.api_groups.contain(&resource.group)
            && self.api_versions.contain(&resource.version)
            && self.resources.iter().any(|(own, subresource)| {
                own.matches(&resource.resource) && subresource.matches(request.subresource)
            })
            && self.scope.matches(request, endpoint)
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == request.name))
    }
}

/// The scope of a rule.
#[derive(Debug, Clone, Copy)]
enum Scope {
    All,
    Namespaced,
    Cluster,
    Unknown,
}

impl Scope {
    fn matches(self, request: &AdmissionRequest<'_>, endpoint: &Endpoint) -> bool {
        // A request for a namespace has its name as namespace.
        let resource = &endpoint.resource;
        let is_namespace =
            resource.group.is_empty() && resource.version == "v1" && resource.resource == "namespaces";
        let is_namespaced = !is_namespace && !request.namespace.is_empty();
        match self {
            Scope::All => true,
            Scope::Namespaced => is_namespaced,
            Scope::Cluster => !is_namespaced,
            Scope::Unknown => false,
        }
    }
}

/// A name, or `*` for any.
#[derive(Debug, Clone)]
enum Name {
    Any,
    Only(String),
}

impl Name {
    fn new(name: &str) -> Name {
        match name {
            "*" => Name::Any,
            name => Name::Only(name.to_owned()),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Name::Any => true,
            Name::Only(own) => own == name,
        }
    }
}

/// A list of names.
#[derive(Debug, Clone)]
struct Names(Vec<Name>);

impl Names {
    fn new(rule: &Value, path: &str) -> Names {
        Names(rule.items_at(path).iter().filter_map(Value::as_str).map(Name::new).collect())
    }

    fn contain(&self, name: &str) -> bool {
        self.0.iter().any(|own| own.matches(name))
    }
}

fn strings(value: &Value, path: &str) -> Vec<String> {
    value.items_at(path).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
