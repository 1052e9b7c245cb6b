//! Flow schemas: match requests and group them into flows
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#flowschema>).

use crate::RequestAttributes;
use pintle_machinery::{UserInfo, Value, ValueExt, meta::ObjectMeta};
use sha2::{Digest, Sha256};

/// A parsed flow schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSchema {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The order of matching: the lowest number first, and among equal ones the first by name.
    pub matching_precedence: i64,
    /// The priority level of its requests.
    pub priority_level: String,
    /// The attribute that distinguishes its flows; `None` makes one flow of all requests.
    pub distinguisher: Option<Distinguisher>,
    rules: Vec<PolicyRule>,
    /// The condition `Dangling` in its status.
    pub dangling: Option<DanglingCondition>,
}

/// The attribute that distinguishes the flows of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinguisher {
    /// Each user is a flow.
    ByUser,
    /// Each namespace is a flow.
    ByNamespace,
}

/// The condition `Dangling` of a flow schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DanglingCondition {
    /// `True` when the priority level does not exist.
    pub status: String,
    /// The reason, as one word.
    pub reason: String,
    /// The reason, as a sentence.
    pub message: String,
}

impl DanglingCondition {
    /// The condition for a schema whose priority level exists or not.
    pub fn new(priority_level: &str, is_found: bool) -> DanglingCondition {
        let (status, reason, ending) = match is_found {
            true => ("False", "Found", "and it exists"),
            false => ("True", "NotFound", "but there is no such object"),
        };
        DanglingCondition {
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: format!(
                "This FlowSchema references the PriorityLevelConfiguration object named \"{priority_level}\" {ending}"
            ),
        }
    }

    fn of(schema: &Value) -> Option<DanglingCondition> {
        let conditions = schema.items_at("status.conditions");
        let condition = conditions.iter().find(|condition| condition.str_at("type") == "Dangling")?;
        Some(DanglingCondition {
            status: condition.str_at("status").to_owned(),
            reason: condition.str_at("reason").to_owned(),
            message: condition.str_at("message").to_owned(),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PolicyRule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    urls: Vec<UrlRule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    User(Names),
    Group(Names),
    /// The prefix of the service account's user name, and whether it is the whole name.
    ServiceAccount {
        prefix: String,
        whole: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ResourceRule {
    verbs: Names,
    groups: Names,
    resources: Names,
    namespaces: Names,
    cluster_scope: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct UrlRule {
    verbs: Names,
    urls: Vec<Url>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Url {
    All,
    /// This path, or the paths below a path.
    Path {
        exact: String,
        below: String,
    },
}

/// A set of names, or all names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    All,
    These(Vec<String>),
}

impl Names {
    fn one(name: &str) -> Names {
        Names::of([name].into_iter())
    }

    fn listed(object: &Value, member: &str) -> Names {
        Names::of(object.items_at(member).iter().filter_map(Value::as_str))
    }

    /// `*` alone means all names; validation rejects `*` together with others.
    fn of<'a>(names: impl Iterator<Item = &'a str>) -> Names {
        let names: Vec<String> = names.map(str::to_owned).collect();
        if names == ["*"] { Names::All } else { Names::These(names) }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Names::All => true,
            Names::These(names) => names.iter().any(|own| own == name),
        }
    }

    /// Whether the set has `resource` or `resource/subresource`.
    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        let is_it = |own: &String| match subresource {
            "" => own == resource,
            _ => own.split_once('/') == Some((resource, subresource)),
        };
        match self {
            Names::All => true,
            Names::These(names) => names.iter().any(is_it),
        }
    }
}

impl FlowSchema {
    /// Reads an object. Rules that validation would reject match no request.
    pub fn read(object: &Value) -> FlowSchema {
        let rules = object.items_at("spec.rules").iter().map(PolicyRule::read).collect();
        FlowSchema {
            name: object.name().to_owned(),
            uid: object.str_at("metadata.uid").to_owned(),
            matching_precedence: object.i64_at("spec.matchingPrecedence").unwrap_or_default(),
            priority_level: object.str_at("spec.priorityLevelConfiguration.name").to_owned(),
            distinguisher: match object.str_at("spec.distinguisherMethod.type") {
                "ByUser" => Some(Distinguisher::ByUser),
                "ByNamespace" => Some(Distinguisher::ByNamespace),
                _ => None,
            },
            rules,
            dangling: DanglingCondition::of(object),
        }
    }

    /// Whether a rule of the schema matches the request.
    pub fn matches(&self, request: &dyn RequestAttributes) -> bool {
        self.rules.iter().any(|rule| rule.matches(request))
    }

    /// The sort key of the order of matching.
    pub(crate) fn order(&self) -> (i64, &str) {
        (self.matching_precedence, &self.name)
    }

    /// The request's flow within the schema.
    pub fn flow_distinguisher<'a>(&self, request: &'a dyn RequestAttributes) -> &'a str {
        match self.distinguisher {
            None => "",
            Some(Distinguisher::ByUser) => &request.user().name,
            Some(Distinguisher::ByNamespace) => request.namespace(),
        }
    }

    /// The hash of a flow. A client cannot choose a user or namespace name for given queues: the hash is
    /// cryptographic.
    pub fn flow_hash(&self, distinguisher: &str) -> u64 {
        let mut hash = Sha256::new();
        hash.update(&self.name);
        hash.update([0]);
        hash.update(distinguisher);
        let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.finalize());
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl PolicyRule {
    fn read(rule: &Value) -> PolicyRule {
        PolicyRule {
            subjects: rule.items_at("subjects").iter().filter_map(Subject::read).collect(),
            resources: rule.items_at("resourceRules").iter().map(ResourceRule::read).collect(),
            urls: rule.items_at("nonResourceRules").iter().map(UrlRule::read).collect(),
        }
    }

    fn matches(&self, request: &dyn RequestAttributes) -> bool {
        let user = request.user();
        self.subjects.iter().any(|subject| subject.matches(user))
            && match request.is_resource_request() {
                true => self.resources.iter().any(|rule| rule.matches(request)),
                false => self.urls.iter().any(|rule| rule.matches(request)),
            }
    }
}

impl Subject {
    fn read(subject: &Value) -> Option<Subject> {
        match subject.str_at("kind") {
            "User" => Some(Subject::User(Names::one(subject.at("user.name")?.as_str()?))),
            "Group" => Some(Subject::Group(Names::one(subject.at("group.name")?.as_str()?))),
            "ServiceAccount" => {
                let account = subject.at("serviceAccount")?;
                let namespace = account.str_at("namespace");
                let (name, whole) = match account.str_at("name") {
                    "*" => ("", false),
                    name => (name, true),
                };
                let prefix = format!("system:serviceaccount:{namespace}:{name}");
                Some(Subject::ServiceAccount { prefix, whole })
            }
            _ => None,
        }
    }

    fn matches(&self, user: &UserInfo) -> bool {
        match self {
            Subject::User(names) => names.has(&user.name),
            Subject::Group(Names::All) => true,
            Subject::Group(names) => user.groups.iter().any(|group| names.has(group)),
            Subject::ServiceAccount { prefix, whole: true } => user.name == *prefix,
            Subject::ServiceAccount { prefix, whole: false } => user.name.starts_with(prefix),
        }
    }
}

impl ResourceRule {
    fn read(rule: &Value) -> ResourceRule {
        ResourceRule {
            verbs: Names::listed(rule, "verbs"),
            groups: Names::listed(rule, "apiGroups"),
            resources: Names::listed(rule, "resources"),
            namespaces: Names::listed(rule, "namespaces"),
            cluster_scope: rule.bool_at("clusterScope"),
        }
    }

    fn matches(&self, request: &dyn RequestAttributes) -> bool {
        self.verbs.has(request.verb())
            && self.resources.has_resource(request.resource(), request.subresource())
            && self.groups.has(request.api_group())
            && match request.namespace() {
                "" => self.cluster_scope,
                namespace => self.namespaces.has(namespace),
            }
    }
}

impl UrlRule {
    fn read(rule: &Value) -> UrlRule {
        let urls = rule.items_at("nonResourceURLs").iter().filter_map(Value::as_str);
        UrlRule { verbs: Names::listed(rule, "verbs"), urls: urls.map(Url::read).collect() }
    }

    fn matches(&self, request: &dyn RequestAttributes) -> bool {
        self.verbs.has(request.verb()) && self.urls.iter().any(|url| url.matches(request.path()))
    }
}

impl Url {
    fn read(url: &str) -> Url {
        if url == "*" {
            return Url::All;
        }
        let mut below = url.strip_suffix('*').unwrap_or(url).to_owned();
        if !below.ends_with('/') {
            below.push('/');
        }
        Url::Path { exact: url.to_owned(), below }
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Url::All => true,
            Url::Path { exact, below } => path == exact || path.starts_with(below),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestRequest;
    use pintle_machinery::json;

    fn schema(rule: Value) -> FlowSchema {
        FlowSchema::read(&json!({"metadata": {"name": "a"}, "spec": {"rules": [rule]}}))
    }

    #[test]
    fn subjects_are_users_groups_and_service_accounts() {
        let check = |subject: Value, user: &str, groups: &[&str], expected: bool| {
            let schema = schema(json!({
                "subjects": [subject],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }));
            let request = TestRequest::path("get", "/version").by(user, groups);
            assert_eq!(schema.matches(&request), expected, "{subject} {user} {groups:?}");
        };
        let user = |name: &str| json!({"kind": "User", "user": {"name": name}});
        check(user("jane"), "jane", &[], true);
        check(user("jane"), "joe", &["jane"], false);
        check(user("*"), "joe", &[], true);
        let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
        check(group("devs"), "jane", &["ops", "devs"], true);
        check(group("devs"), "devs", &["ops"], false);
        check(group("*"), "jane", &[], true);
        let account = |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}});
        check(account("a", "b"), "system:serviceaccount:a:b", &[], true);
        check(account("a", "b"), "system:serviceaccount:a:bb", &[], false);
        check(account("a", "*"), "system:serviceaccount:a:bb", &[], true);
        check(account("a", "*"), "system:serviceaccount:ab:b", &[], false);
        check(account("a", "*"), "jane", &[], false);
        check(json!({"kind": "User"}), "jane", &[], false);
        check(json!({"kind": "Robot", "user": {"name": "*"}}), "jane", &[], false);
    }

    #[test]
    fn resource_rules_name_all_they_mean() {
        let check = |rule: Value, request: TestRequest, expected: bool| {
            let schema = schema(json!({
                "subjects": [{"kind": "Group", "group": {"name": "*"}}],
                "resourceRules": [rule],
            }));
            assert_eq!(schema.matches(&request), expected, "{rule}");
        };
        let pods = |namespaces: &[&str], cluster: bool| {
            json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/status"],
                   "namespaces": namespaces, "clusterScope": cluster})
        };
        let get = |namespace: &str| TestRequest::resource("get", "", "pods").within(namespace);
        check(pods(&["a"], false), get("a"), true);
        check(pods(&["a"], false), get("b"), false);
        check(pods(&["*"], false), get("b"), true);
        check(pods(&["*"], false), get(""), false);
        check(pods(&[], true), get(""), true);
        check(pods(&["*"], true), get("b").on("status"), true);
        check(pods(&["*"], true), get("b").on("log"), false);
        check(pods(&["*"], true), TestRequest::resource("watch", "", "pods").within("b"), false);
        check(pods(&["*"], true), TestRequest::resource("get", "apps", "pods").within("b"), false);
        check(pods(&["*"], true), TestRequest::resource("get", "", "nodes"), false);
        check(pods(&["*"], true), TestRequest::path("get", "/pods"), false);
    }

    #[test]
    fn urls_are_exact_or_prefixes() {
        let check = |url: &str, path: &str, expected: bool| {
            let schema = schema(json!({
                "subjects": [{"kind": "User", "user": {"name": "*"}}],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [url]}],
            }));
            assert_eq!(schema.matches(&TestRequest::path("get", path)), expected, "{url} {path}");
            assert!(!schema.matches(&TestRequest::path("post", path)));
        };
        check("*", "/anything", true);
        check("/healthz", "/healthz", true);
        check("/healthz", "/healthz/etcd", true);
        check("/healthz", "/healthzz", false);
        check("/apis/*", "/apis/apps", true);
        check("/apis/*", "/apis", false);
    }

    #[test]
    fn flows_are_told_apart_as_the_schema_says() {
        let request = TestRequest::resource("get", "", "pods").within("ns").by("jane", &[]);
        let check = |method: Value, expected: &str| {
            let schema = FlowSchema::read(
                &json!({"metadata": {"name": "a"}, "spec": {"distinguisherMethod": method}}),
            );
            assert_eq!(schema.flow_distinguisher(&request), expected);
        };
        check(json!(null), "");
        check(json!({"type": "ByUser"}), "jane");
        check(json!({"type": "ByNamespace"}), "ns");
        let schema = |name: &str| FlowSchema::read(&json!({"metadata": {"name": name}}));
        assert_eq!(schema("a").flow_hash("x"), schema("a").flow_hash("x"));
        assert_ne!(schema("a").flow_hash("x"), schema("a").flow_hash("y"));
        assert_ne!(schema("a").flow_hash("bx"), schema("ab").flow_hash("x"));
    }

    #[test]
    fn the_condition_tells_of_the_level() {
        let object = json!({"metadata": {"name": "a"}, "status": {"conditions": [
            {"type": "Other", "status": "True"},
            {"type": "Dangling", "status": "True", "reason": "NotFound",
             "message": "This FlowSchema references the PriorityLevelConfiguration object named \"x\" but there is no such object"},
        ]}});
        assert_eq!(FlowSchema::read(&object).dangling, Some(DanglingCondition::new("x", false)));
        assert_ne!(FlowSchema::read(&object).dangling, Some(DanglingCondition::new("x", true)));
    }
}
