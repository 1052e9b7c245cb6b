use super::*;
use pintle_feature_gates::{FeatureGates, Gate, testing::override_gates};

fn config(jwt: &str) -> String {
    format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n{jwt}")
}

/// The validation errors of issuers; `None` when they are valid.
fn wrong(jwt: &str) -> Option<String> {
    let config = parse(config(jwt).as_bytes()).unwrap();
    validate(&config, &["https://own.example.com".to_owned()])
        .err()
        .map(|errors| ConfigError::Invalid(errors).to_string())
        .map(|text| text.strip_prefix("invalid authentication configuration: ").unwrap().to_owned())
}

const ISSUER: &str = "- issuer: {url: 'https://a.example.com', audiences: [a]}\n";
const MAPPINGS: &str = "  claimMappings: {username: {claim: sub, prefix: ''}}\n";

fn check_issuer(issuer: &str, expected: Option<&str>) {
    let found = wrong(&format!("- issuer: {{{issuer}}}\n{MAPPINGS}"));
    assert_eq!(found.as_deref(), expected, "{issuer}");
}

fn check_mappings(mappings: &str, expected: Option<&str>) {
    let found = wrong(&format!("{ISSUER}  claimMappings: {{{mappings}}}\n"));
    assert_eq!(found.as_deref(), expected, "{mappings}");
}

fn check_rules(rules: &str, expected: Option<&str>) {
    let found = wrong(&format!("{ISSUER}{MAPPINGS}  {rules}\n"));
    assert_eq!(found.as_deref(), expected, "{rules}");
}

#[test]
fn a_configuration_is_read() {
    let text = config(
        r#"- issuer:
    url: https://a.example.com
    discoveryURL: https://b.example.com/.well-known/openid-configuration
    audiences: [a, b]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.exp - claims.nbf <= 86400.0', message: too long}
  claimMappings:
    username: {expression: "'a:' + claims.sub"}
    groups: {claim: groups, prefix: 'g:'}
    uid: {claim: uid}
    extra: [{key: example.com/x, valueExpression: claims.x}]
  userValidationRules: [{expression: "!user.username.startsWith('system:')", message: reserved}]
anonymous: {enabled: true, conditions: [{path: /livez}]}
"#,
    );
    let config = parse(text.as_bytes()).unwrap();
    assert_eq!(config.anonymous.as_ref().unwrap().conditions, ["/livez"]);
    let [jwt] = config.jwt.as_slice() else { panic!() };
    assert_eq!(jwt.claim_mappings.groups.prefix.as_deref(), Some("g:"));
    assert_eq!(jwt.claim_mappings.username.prefix, None);
    let compiled = validate(&config, &[]).unwrap();
    assert_eq!(compiled.len(), 1);
    assert_eq!(compiled[0].user_validation_rules[0].1, "reserved");
    for version in ["v1beta1", "v1alpha1"] {
        assert_eq!(parse(text.replace("/v1\n", &format!("/{version}\n")).as_bytes()).unwrap(), config);
    }
    assert_eq!(
        parse(br#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration"}"#),
        Ok(AuthenticationConfiguration::default())
    );
}

#[test]
fn what_is_no_configuration_is_refused() {
    for (text, expected) in [
        ("", "empty config data"),
        ("{}", "Object 'Kind' is missing in '{}'"),
        (
            "kind: AuthenticationConfiguration",
            "Object 'apiVersion' is missing in 'kind: AuthenticationConfiguration'",
        ),
        (
            "kind: Config\napiVersion: v1",
            "no kind \"Config\" is registered for version \"v1\" in scheme \
             \"pkg/kubeapiserver/options/authentication.go:879\"",
        ),
        (
            &config("- issuer: {url: a, urls: b}\n  claims: {}"),
            "strict decoding error: unknown field \"jwt[0].claims\", unknown field \"jwt[0].issuer.urls\"",
        ),
        (
            &config("- issuer: {url: a, url: b}"),
            "strict decoding error: yaml: unmarshal errors:\n  line 4: key \"url\" already set in map",
        ),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap_err(), expected);
    }
    let error = read(Path::new("/no/such/file")).unwrap_err().to_string();
    assert!(error.starts_with("failed to load authentication configuration from file \"/no/such/file\": "));
}

#[test]
fn issuers_are_validated() {
    check_issuer("url: 'https://a.example.com', audiences: [a]", None);
    check_issuer("audiences: [a]", Some("jwt[0].issuer.url: Required value"));
    check_issuer(
        "url: 'http://u:p@a.example.com?q#f', audiences: [a]",
        Some(
            "[jwt[0].issuer.url: Invalid value: \"http://u:p@a.example.com?q#f\": URL scheme must be https, \
             jwt[0].issuer.url: Invalid value: \"http://u:p@a.example.com?q#f\": URL must not contain a username or password, \
             jwt[0].issuer.url: Invalid value: \"http://u:p@a.example.com?q#f\": URL must not contain a query, \
             jwt[0].issuer.url: Invalid value: \"http://u:p@a.example.com?q#f\": URL must not contain a fragment]",
        ),
    );
    check_issuer(
        "url: 'https://own.example.com', audiences: [a]",
        Some(
            "jwt[0].issuer.url: Invalid value: \"https://own.example.com\": URL must not overlap with disallowed issuers: \
             [https://own.example.com]",
        ),
    );
    check_issuer(
        "url: 'https://a.example.com', discoveryURL: 'https://a.example.com/', audiences: [a]",
        Some(
            "jwt[0].issuer.discoveryURL: Invalid value: \"https://a.example.com/\": discoveryURL must be different from URL",
        ),
    );
    let with = |rest: &str| format!("url: 'https://a.example.com', {rest}");
    check_issuer(
        &with("audiences: []"),
        Some("jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"),
    );
    check_issuer(
        &with("audiences: [a, a, ''], audienceMatchPolicy: MatchAny"),
        Some(
            "[jwt[0].issuer.audiences[1]: Duplicate value: \"a\", jwt[0].issuer.audiences[2]: Required value]",
        ),
    );
    check_issuer(
        &with("audiences: [a, b]"),
        Some(
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
    );
    check_issuer(
        &with("audiences: [a], audienceMatchPolicy: All"),
        Some(
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"All\": audienceMatchPolicy must be empty or MatchAny for \
             single audience",
        ),
    );
    check_issuer(
        &with("audiences: [a], certificateAuthority: none"),
        Some(
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA \
             certificates",
        ),
    );
    check_issuer(
        &with("audiences: [a], egressSelectorType: etcd"),
        Some(
            "jwt[0].issuer.egressSelectorType: Invalid value: \"etcd\": egress selector must be either controlplane or \
             cluster",
        ),
    );
    for valid in ["controlplane", "cluster", "\"\""] {
        check_issuer(&with(&format!("audiences: [a], egressSelectorType: {valid}")), None);
    }
    {
        let gates =
            FeatureGates::default().with(Gate::StructuredAuthenticationConfigurationEgressSelector, false);
        let _gates = override_gates(&gates);
        check_issuer(
            &with("audiences: [a], egressSelectorType: cluster"),
            Some(
                "jwt[0].issuer.egressSelectorType: Invalid value: \"cluster\": egress selector is not supported when \
                 StructuredAuthenticationConfigurationEgressSelector feature gate is disabled",
            ),
        );
        check_issuer(&with("audiences: [a]"), None);
    }
    assert_eq!(
        wrong(&format!("{ISSUER}{MAPPINGS}{ISSUER}{MAPPINGS}")).as_deref(),
        Some("jwt[1].issuer.url: Duplicate value: \"https://a.example.com\"")
    );
    assert_eq!(
        wrong(&format!("{ISSUER}{MAPPINGS}").repeat(65)).as_deref(),
        Some("jwt: Too many: 65: must have at most 64 items")
    );
}

#[test]
fn mappings_are_validated() {
    check_mappings("username: {claim: sub, prefix: ''}", None);
    check_mappings(
        "",
        Some("jwt[0].claimMappings.username: Required value: claim or expression is required"),
    );
    check_mappings(
        "username: {claim: sub}",
        Some(
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an \
             empty string to disable prefixing",
        ),
    );
    check_mappings(
        "username: {claim: sub, expression: claims.sub}",
        Some("jwt[0].claimMappings.username: Invalid value: \"\": claim and expression can't both be set"),
    );
    check_mappings(
        "username: {expression: claims.sub, prefix: a}",
        Some(
            "jwt[0].claimMappings.username.prefix: Invalid value: \"a\": may not be specified when expression is set",
        ),
    );
    let with = |rest: &str| format!("username: {{claim: sub, prefix: ''}}, {rest}");
    check_mappings(
        &with("uid: {claim: a, expression: claims.b}"),
        Some("jwt[0].claimMappings.uid: Invalid value: \"\": claim and expression can't both be set"),
    );
    for (key, expected) in [
        ("''", "Required value"),
        ("a", "Invalid value: \"a\": must be a domain-prefixed path (such as \"acme.io/foo\")"),
        ("example.com/A", "Invalid value: \"example.com/A\": must be lowercase"),
        (
            "x.k8s.io/a",
            "Invalid value: \"x.k8s.io/a\": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use",
        ),
        (
            "example.com/a b",
            "Invalid value: \"a b\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
        ),
    ] {
        let expected = format!("jwt[0].claimMappings.extra[0].key: {expected}");
        let mappings = with(&format!("extra: [{{key: {key}, valueExpression: claims.a}}]"));
        check_mappings(&mappings, Some(&expected));
    }
    check_mappings(
        &with("extra: [{key: example.com/a}]"),
        Some("jwt[0].claimMappings.extra[0].valueExpression: Required value"),
    );
}

#[test]
fn unverified_addresses_are_no_names() {
    let unverified = "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified must \
                      be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or \
                      claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression";
    check_mappings("username: {expression: claims.email}", Some(unverified));
    for looked_at in [
        "username: {expression: 'claims.email_verified ? claims.email : claims.sub'}",
        "username: {expression: 'claims.?email_verified.orValue(true) ? claims.email : claims.sub'}",
        "username: {expression: claims.email}, extra: [{key: example.com/a, valueExpression: \
         'string(claims.email_verified)'}]",
    ] {
        check_mappings(looked_at, None);
    }
    let rules = format!(
        "{ISSUER}  claimMappings: {{username: {{expression: claims.email}}}}\n  claimValidationRules: [{{expression: \
         'claims.email_verified == true'}}]\n"
    );
    assert_eq!(wrong(&rules), None);
}

#[test]
fn rules_are_validated() {
    check_rules("claimValidationRules: [{claim: a, requiredValue: b}]", None);
    check_rules(
        "claimValidationRules: [{}]",
        Some("jwt[0].claimValidationRules[0]: Required value: claim or expression is required"),
    );
    check_rules(
        "claimValidationRules: [{claim: a, expression: 'true'}]",
        Some("jwt[0].claimValidationRules[0]: Invalid value: \"a\": claim and expression can't both be set"),
    );
    check_rules(
        "claimValidationRules: [{claim: a, message: b}, {claim: a}]",
        Some(
            "[jwt[0].claimValidationRules[0].message: Invalid value: \"b\": may not be specified when claim is set, \
             jwt[0].claimValidationRules[1].claim: Duplicate value: \"a\"]",
        ),
    );
    check_rules(
        "claimValidationRules: [{expression: claims.a, requiredValue: b}]",
        Some(
            "[jwt[0].claimValidationRules[0].requiredValue: Invalid value: \"b\": may not be specified when expression is \
             set, jwt[0].claimValidationRules[0].expression: Invalid value: \"claims.a\": must evaluate to bool]",
        ),
    );
    check_rules(
        "userValidationRules: [{expression: ''}, {expression: user.name == ''}]",
        Some(
            "[jwt[0].userValidationRules[0].expression: Required value, jwt[0].userValidationRules[1].expression: Invalid \
             value: \"user.name == ''\": compilation failed: ERROR: <input>:1:5: undefined field 'name'\n | user.name == ''\n \
             | ....^]",
        ),
    );
    let anonymous = parse(
        b"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {conditions: [{path: /a}]}",
    );
    assert_eq!(
        validate(&anonymous.unwrap(), &[]).unwrap_err()[0].to_string(),
        "anonymous.conditions: Invalid value: [{\"Path\":\"/a\"}]: enabled should be set to true when conditions are defined"
    );
}

#[test]
fn macros_do_not_range_over_a_claim_whose_type_is_unknown() {
    use super::expressions::{Expression, Variable};
    let compile = |text: &str| Expression::compile(text, Variable::Claims, false);
    assert!(compile("[claims.roles].map(role, string(role))").is_ok());
    assert!(compile("dyn(claims.roles).map(role, string(role))").is_ok());
    let error = compile("claims.roles.map(role, string(role))").unwrap_err();
    assert!(error.contains("expression of type 'any' cannot be range of a comprehension"), "{error}");
}
