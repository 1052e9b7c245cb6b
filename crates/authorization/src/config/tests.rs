use super::*;
use crate::ReviewVersion;
use std::{fs, time::Duration};

const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";

fn parse(text: &str) -> Result<AuthorizationConfiguration, String> {
    AuthorizationConfiguration::parse(text.as_bytes()).map_err(|error| error.to_string())
}

/// An existing kubeconfig file.
fn kubeconfig() -> tempfile::NamedTempFile {
    tempfile::NamedTempFile::new().unwrap()
}

#[test]
fn a_configuration_is_read() {
    let file = kubeconfig();
    let path = file.path().display();
    let text = format!(
        "{HEAD}
- type: Webhook
  name: strict
  webhook:
    timeout: 3s
    authorizedTTL: 90s
    cacheUnauthorizedRequests: false
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {path}}}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: request.user != 'root'
- type: Node
  name: node
- type: RBAC
  name: rbac
- type: Webhook
  name: last
  webhook:
    timeout: 30s
    subjectAccessReviewVersion: v1beta1
    failurePolicy: NoOpinion
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {path}}}
"
    );
    let read = parse(&text).unwrap();
    let names: Vec<_> = read.authorizers.iter().map(|own| (&*own.name, own.kind.authorizer_type())).collect();
    let expected = [
        ("strict", AuthorizerType::Webhook),
        ("node", AuthorizerType::Node),
        ("rbac", AuthorizerType::Rbac),
        ("last", AuthorizerType::Webhook),
    ];
    assert_eq!(names, expected);
    let AuthorizerKind::Webhook(webhook) = &read.authorizers[0].kind else { panic!() };
    assert_eq!(webhook.timeout, Duration::from_secs(3));
    assert_eq!((webhook.authorized_ttl, webhook.unauthorized_ttl), (Duration::from_secs(90), Duration::ZERO));
    assert_eq!(webhook.failure_policy, FailurePolicy::Deny);
    assert!(!webhook.match_conditions.is_empty());
    let AuthorizerKind::Webhook(webhook) = &read.authorizers[3].kind else { panic!() };
    assert_eq!(
        (webhook.authorized_ttl, webhook.unauthorized_ttl),
        (Duration::from_secs(300), Duration::from_secs(30))
    );
    assert_eq!(webhook.subject_access_review_version, ReviewVersion::V1beta1);
    assert_eq!(parse(&text).unwrap(), read);
    assert!(read.has(AuthorizerType::Rbac) && !read.has(AuthorizerType::Abac));
    for version in ["v1beta1", "v1alpha1"] {
        assert!(parse(&text.replace("k8s.io/v1\n", &format!("k8s.io/{version}\n"))).is_ok(), "{version}");
    }
}

#[test]
fn what_is_no_configuration_is_told() {
    let check = |text: &str, expected: &str| {
        let expected = format!("failed to load AuthorizationConfiguration from file: {expected}");
        assert_eq!(parse(text).unwrap_err(), expected);
    };
    check("authorizers: []", "Object 'Kind' is missing in 'authorizers: []'");
    check(
        "kind: AuthorizationConfiguration",
        "Object 'apiVersion' is missing in 'kind: AuthorizationConfiguration'",
    );
    check(
        "kind: Pod\napiVersion: v1",
        "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/apis/apiserver/load/load.go:32\"",
    );
    check(
        &format!("{HEAD}- {{type: RBAC, name: rbac, mode: x}}\n- {{type: Node, name: node, name: node}}"),
        "strict decoding error: yaml: unmarshal errors:\n  line 5: key \"name\" already set in map, unknown field \
         \"authorizers[0].mode\"",
    );
}

#[test]
fn everything_that_is_wrong_is_told_by_field() {
    let check = |authorizers: &str, expected: &[&str]| {
        let found = parse(&format!("{HEAD}{authorizers}")).unwrap_err();
        let expected = match expected {
            [one] => (*one).to_owned(),
            many => format!("[{}]", many.join(", ")),
        };
        assert_eq!(found, expected, "{authorizers}");
    };
    assert_eq!(
        parse("").unwrap_err(),
        "authorizers: Required value: at least one authorization mode must be defined"
    );
    check("- {name: x}", &["authorizers[0].type: Required value"]);
    check(
        "- {type: Custom, name: x}",
        &[
            "authorizers[0].type: Unsupported value: \"Custom\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \
           \"Node\", \"RBAC\", \"Webhook\"",
        ],
    );
    check(
        "- {type: RBAC, name: rbac}\n- {type: RBAC, name: other}",
        &["authorizers[1].type: Duplicate value: \"RBAC\""],
    );
    check(
        "- {type: RBAC, name: same}\n- {type: Node, name: same}\n- {type: AlwaysDeny}",
        &["authorizers[1].name: Duplicate value: \"same\"", "authorizers[2].name: Required value"],
    );
    check("- {type: RBAC, name: roles}", &["expected name rbac for authorizer RBAC instead of roles"]);
    check(
        "- {type: Webhook, name: w}",
        &["authorizers[0].webhook: Required value: required when type=Webhook"],
    );
    check(
        "- {type: RBAC, name: rbac, webhook: {}}",
        &["authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"],
    );
    check(
        "- {type: Webhook, name: w, webhook: {matchConditions: [{expression: '1'}]}}",
        &[
            "authorizers[0].timeout: Required value",
            "authorizers[0].subjectAccessReviewVersion: Required value",
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
            "authorizers[0].failurePolicy: Required value",
            "authorizers[0].connectionInfo.type: Required value",
            "authorizers[0].matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but got int",
        ],
    );
    check(
        "- {type: Webhook, name: w, webhook: {timeout: 31s, authorizedTTL: -1s, unauthorizedTTL: -2s, \
         subjectAccessReviewVersion: v2, matchConditionSubjectAccessReviewVersion: v2, failurePolicy: Allow, \
         connectionInfo: {type: KubeConfigFile, kubeConfigFile: relative}}}",
        &[
            "authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s",
            "authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s",
            "authorizers[0].unauthorizedTTL: Invalid value: \"-2s\": must be > 0s",
            "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\"",
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\"",
            "authorizers[0].failurePolicy: Unsupported value: \"Allow\": supported values: \"NoOpinion\", \"Deny\"",
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"relative\": must be an absolute path",
        ],
    );
    let dir = tempfile::tempdir().unwrap();
    let webhook = |connection: String| {
        format!(
            "- {{type: Webhook, name: w, webhook: {{timeout: 1s, subjectAccessReviewVersion: v1, failurePolicy: Deny, \
             connectionInfo: {connection}}}}}"
        )
    };
    let of_file = |path: &str| webhook(format!("{{type: KubeConfigFile, kubeConfigFile: {path}}}"));
    let path = dir.path().display().to_string();
    let field = "authorizers[0].connectionInfo";
    let expected = format!("{field}.kubeConfigFile: Invalid value: \"{path}\": must be a regular file");
    check(&of_file(&path), &[&expected]);
    fs::remove_dir(dir.path()).unwrap();
    let expected = format!(
        "{field}.kubeConfigFile: Invalid value: \"{path}\": error loading file: stat {path}: no such file or directory"
    );
    check(&of_file(&path), &[&expected]);
    check(
        &webhook("{type: KubeConfigFile}".to_owned()),
        &["authorizers[0].connectionInfo.kubeConfigFile: Required value"],
    );
    check(
        &webhook("{type: InClusterConfig}".to_owned()),
        &[
            "authorizers[0].connectionInfo.type: Invalid value: \"InClusterConfig\": an API server has no cluster that it is in",
        ],
    );
}
