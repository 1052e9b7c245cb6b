use super::*;
use crate::Stage;
use pintle_machinery::UserInfo;

fn policy(rules: &str) -> Policy {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    Policy::parse(text.as_bytes()).unwrap().0
}

const ANY: Attributes<'_> = Attributes {
    user: None,
    verb: "get",
    is_resource_request: true,
    api_group: "",
    resource: "pods",
    subresource: "",
    namespace: "default",
    name: "a",
    path: "/api/v1/namespaces/default/pods/a",
};

#[test]
fn rules_match_what_they_name() {
    let user = UserInfo {
        name: "jane".to_owned(),
        groups: vec!["devs".to_owned(), "system:authenticated".to_owned()],
        ..UserInfo::default()
    };
    let request = Attributes { user: Some(&user), ..ANY };
    let log = Attributes { subresource: "log", ..request };
    let path = |path| Attributes {
        is_resource_request: false,
        resource: "",
        namespace: "",
        name: "",
        path,
        ..request
    };
    let nodes = Attributes { resource: "nodes", namespace: "", ..request };
    let check = |rule: &str, request: &Attributes<'_>, want: bool| {
        let policy = policy(&format!("rules: [{{level: Metadata, {rule}}}]"));
        let level = if want { Level::Metadata } else { Level::None };
        assert_eq!(policy.evaluate(request).level, level, "{rule} {request:?}");
    };
    check("", &request, true);
    check("", &path("/version"), true);
    check("users: [joe, jane]", &request, true);
    check("users: [joe]", &request, false);
    check("users: [jane]", &ANY, false);
    check("userGroups: [devs]", &request, true);
    check("userGroups: [ops]", &request, false);
    check("userGroups: [devs]", &ANY, false);
    check("verbs: [get, list]", &request, true);
    check("verbs: [list]", &request, false);
    check("namespaces: [default]", &request, true);
    check("namespaces: [kube-system]", &request, false);
    check("namespaces: ['']", &nodes, true);
    check("namespaces: ['']", &request, false);
    check("namespaces: ['']", &path("/version"), false);
    check("resources: [{group: ''}]", &request, true);
    check("resources: [{group: ''}]", &path("/version"), false);
    check("resources: [{group: apps}]", &request, false);
    check("resources: [{group: '*', resources: [pods]}]", &request, true);
    check("resources: [{group: '', resources: [pods]}]", &log, false);
    check("resources: [{group: '', resources: [pods/log]}]", &log, true);
    check("resources: [{group: '', resources: [pods/log]}]", &request, false);
    check("resources: [{group: '', resources: ['pods/*']}]", &log, true);
    check("resources: [{group: '', resources: ['pods/*']}]", &request, true);
    check("resources: [{group: '', resources: ['pods/*']}]", &nodes, false);
    check("resources: [{group: '', resources: ['*/log']}]", &log, true);
    check("resources: [{group: '', resources: ['*/log']}]", &request, false);
    check("resources: [{group: '', resources: ['*/status']}]", &log, false);
    check("resources: [{group: '', resources: ['*']}]", &log, true);
    check("resources: [{group: '', resources: [pods], resourceNames: [a]}]", &request, true);
    check("resources: [{group: '', resources: [pods], resourceNames: [b]}]", &request, false);
    check("nonResourceURLs: [/version]", &path("/version"), true);
    check("nonResourceURLs: [/version]", &path("/version/"), false);
    check("nonResourceURLs: ['/healthz*']", &path("/healthz/ping"), true);
    check("nonResourceURLs: ['*']", &path("/anything"), true);
    check("nonResourceURLs: ['*']", &request, false);
}

#[test]
fn the_first_rule_decides_and_stages_are_the_union() {
    let policy = policy(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n- {level: Request, verbs: [get], omitStages: \
         [Panic], omitManagedFields: false}\n- {level: Metadata}",
    );
    let config = policy.evaluate(&ANY);
    assert_eq!((config.level, config.omit_managed_fields), (Level::Request, false));
    let omitted: Vec<_> =
        Stage::ALL.into_iter().filter(|stage| config.omit_stages.contains(*stage)).collect();
    assert_eq!(omitted, [Stage::RequestReceived, Stage::Panic]);
    let config = policy.evaluate(&Attributes { verb: "list", ..ANY });
    assert_eq!((config.level, config.omit_managed_fields), (Level::Metadata, true));
}

#[test]
fn mistakes_are_told_with_file_and_field() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.yaml");
    let check = |text: &str, want: &str| {
        std::fs::write(&file, text).unwrap();
        let error = Policy::read(&file).unwrap_err().to_string();
        let want = format!("loading audit policy file: {want}: from file {}", file.display());
        assert_eq!(error, want);
    };
    let body = |rest: &str| format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rest}");
    check(&body(""), "loaded illegal policy with 0 rules");
    check(&body("rules: x"), "failed decoding: rules: cannot read string as list of objects");
    check(
        &body("rules: [{level: Metadata, users: jane}]"),
        "failed decoding: rules[0].users: cannot read string as list of strings",
    );
    check(
        &body("rules: [{level: Metadata, resources: [{resourceNames: [1]}]}]"),
        "failed decoding: rules[0].resources[0].resourceNames: cannot read array as list of strings",
    );
    check(
        "apiVersion: audit.k8s.io/v1beta1\nkind: Policy",
        "failed decoding: no kind \"Policy\" is registered for version \"audit.k8s.io/v1beta1\" in scheme \
         \"pkg/audit/scheme.go:30\"",
    );
    check("kind: Policy", "failed decoding: Object 'apiVersion' is missing in 'kind: Policy'");
    check("", "failed decoding: Object 'apiVersion' is missing in ''");
    let metadata = |fields: &str| body(&format!("rules: [{{level: None}}]\nmetadata: {fields}"));
    for (fields, problem) in [
        ("1", "json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
        ("{name: 1}", "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
        (
            "{labels: {a: 1}}",
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            "{creationTimestamp: x}",
            "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        ),
        (
            "{ownerReferences: {}}",
            "json: cannot unmarshal object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
        ),
        (
            "{managedFields: [{time: 1}]}",
            "json: cannot unmarshal number into Go struct field ManagedFieldsEntry.managedFields.time of type string",
        ),
    ] {
        check(&metadata(fields), &format!("failed decoding: {problem}"));
    }
    for fields in
        ["{name: a, labels: {a: b}, creationTimestamp: null}", "{creationTimestamp: '2024-01-01T00:00:00Z'}"]
    {
        let (_, warnings) = Policy::parse(metadata(fields).as_bytes()).unwrap();
        assert_eq!(warnings, Vec::<String>::new(), "{fields}");
    }
    let without_kind = b"apiVersion: audit.k8s.io/v1\nrules: [{level: None}]";
    assert!(Policy::parse(without_kind).is_ok());
    check(
        &body(
            "omitStages: [Nope]\nrules:\n- level: Foo\n- level: Metadata\n  resources: [{group: 'A/b'}, {group: '', \
             resourceNames: [x]}]\n  nonResourceURLs: ['x*y', /a]\n  omitStages: [Zip]\n- users: [a]",
        ),
        "[omitStages[0]: Invalid value: \"Nope\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic, \
         rules[0].level: Unsupported value: \"Foo\": supported values: \"None\", \"Metadata\", \"Request\", \
         \"RequestResponse\", rules[1].nonResourceURLs[0]: Invalid value: \"x*y\": non-resource URL rules must begin with a \
         '/' character, rules[1].nonResourceURLs[0]: Invalid value: \"x*y\": non-resource URL wildcards '*' must be the \
         final character of the rule, rules[1].resources.group: Invalid value: \"A/b\": a lowercase RFC 1123 subdomain must \
         consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
         (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), \
         rules[1].resources.resourceNames: Invalid value: [\"x\"]: using resourceNames requires at least one resource, \
         rules[1].omitStages[0]: Invalid value: \"Zip\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic, \
         rules[1].nonResourceURLs: Invalid value: [\"x*y\",\"/a\"]: rules cannot apply to both regular resources and \
         non-resource URLs, rules[2].level: Required value]",
    );
    let (_, warnings) = Policy::parse(body("rules: [{level: None}]\nzzz: 1").as_bytes()).unwrap();
    assert_eq!(warnings, ["unknown field \"zzz\""]);
}
