use super::*;
use crate::tests::{config, keyed, rule, secret};

/// The validation error of a configuration, without the common prefix.
fn error(text: &str, reload: bool) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("encryption.yaml");
    std::fs::write(&path, text).unwrap();
    let error = read(&path, reload).unwrap_err().to_string();
    error.replace(&format!("{path:?}"), "…")
}

fn invalid(rules: &str) -> String {
    let error = error(&config(rules), true);
    error.strip_prefix("error while parsing file: ").unwrap().to_owned()
}

fn of_providers(providers: &str) -> String {
    invalid(&format!("- resources: [secrets]\n  providers: {providers}\n"))
}

fn of_resources(resources: &str) -> String {
    invalid(&rule(resources, "aesgcm", "a", 1))
}

#[test]
fn a_configuration_is_read_from_yaml_and_json() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("encryption");
    let secret = secret(9);
    let json = format!(
        r#"{{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1","resources":[
            {{"resources":["secrets","*.apps"],"providers":[
              {{"aescbc":{{"keys":[{{"name":"a","secret":"{secret}"}}]}}}},
              {{"kms":{{"apiVersion":"v2","name":"p","endpoint":"unix:///@p","timeout":"1m5s"}}}},
              {{"kms":{{"name":"old","endpoint":"unix:///run/old.sock","cachesize":-1}}}},
              {{"identity":{{}}}}]}}]}}"#
    );
    let yaml = config(&format!(
        "- resources:\n  - secrets\n  - '*.apps'\n  providers:\n{}  - kms: {{apiVersion: v2, name: p, endpoint: 'unix:///@p', timeout: 65s}}\n  - kms:\n      name: old\n      endpoint: unix:///run/old.sock\n      cachesize: -1\n  - identity: {{}}\n",
        keyed("aescbc", &[("a", 9)])
    ));
    let shown: Vec<String> = [json, yaml]
        .map(|text| {
            std::fs::write(&path, text).unwrap();
            let config = read(&path, false).unwrap();
            let ProviderConfiguration::AesCbc(keys) = &config.resources[0].providers[0] else { panic!() };
            assert_eq!(keys[0].secret.as_slice(), [9; 32]);
            format!("{:?}", config.resources)
        })
        .into();
    assert_eq!(shown[0], shown[1]);
    assert_eq!(
        shown[0],
        "[ResourceConfiguration { resources: [GroupResource { group: \"\", resource: \"secrets\" }, \
         GroupResource { group: \"apps\", resource: \"*\" }], providers: [AesCbc([Key { name: \"a\", .. }]), \
         Kms(KmsConfiguration { api_version: V2, name: \"p\", endpoint: Endpoint { path: \"\\0p\" }, timeout: 65s }), \
         Kms(KmsConfiguration { api_version: V1, name: \"old\", endpoint: Endpoint { path: \"/run/old.sock\" }, \
         timeout: 3s }), Identity] }]"
    );
}

#[test]
fn what_is_no_configuration_is_refused() {
    let secret = secret(1);
    for (text, expected) in [
        (
            String::new(),
            "error while parsing file: error while loading file: encryption provider configuration file … is empty",
        ),
        (
            "{}".to_owned(),
            "error while parsing file: error decoding encryption provider configuration file …: Object 'Kind' is missing",
        ),
        (
            "kind: EncryptionConfiguration".to_owned(),
            "error while parsing file: error decoding encryption provider configuration file …: Object 'apiVersion' is missing",
        ),
        (
            "kind: Config\napiVersion: v1".to_owned(),
            "error while parsing file: error decoding encryption provider configuration file …: no kind \"Config\" is registered for version \
             \"v1\"; EncryptionConfiguration of apiserver.config.k8s.io/v1 is wanted",
        ),
        (
            config("- resources: [a]\n  provider: []\n  resources: [b]\nother: 1"),
            "error while parsing file: error decoding encryption provider configuration file …: strict decoding error: yaml: unmarshal errors:\n  \
             line 6: key \"resources\" already set in map, unknown field \"other\", unknown field \
             \"resources[0].provider\"",
        ),
    ] {
        assert_eq!(error(&text, false), expected);
    }
    // Errors about the place of a secret do not contain it.
    for text in [
        config(&format!("- providers: [{{aescbc: {secret}}}]")),
        config(&format!("- providers: [{{aescbc: {{keys: [{secret}]}}}}]")),
        config(&format!("- providers: [{{aescbc: {{keys: [{{name: {{a: b}}, secret: {secret}}}]}}}}]")),
        config(&format!("- providers: [{{aescbc: {{keys: [{{name: a, secret: [{secret}]}}]}}}}]")),
        config("- providers: [{aescbc: {keys: [{name: a, secret: 12345678}]}}]"),
        config(&format!("- providers: [{{aescbc: {{keys: [{{name: a, secret: \"{secret}}}]}}}}]")),
    ] {
        let error = error(&text, false);
        assert!(!error.contains(&secret) && !error.contains("12345678"), "{error}");
    }
}

#[test]
fn fields_are_validated() {
    let providers = "resources[0].providers";
    assert_eq!(
        error(&config(""), false),
        "error while parsing file: resources: Required value: at least one resources is required"
    );
    assert_eq!(
        invalid("- {}"),
        "[resources[0].resources: Required value: at least one resources[0].resources is required, \
         resources[0].providers: Required value: at least one resources[0].providers is required]"
    );
    for (text, expected) in [
        (
            "[{}]",
            "Invalid value: []: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, \
             Secretbox, Identity",
        ),
        (
            "[{identity: {}, kms: {apiVersion: v2, name: a, endpoint: 'unix:///a'}}]",
            "Invalid value: [\"identity\",\"kms\"]: more than one provider specified in a single element, should \
             split into different list elements",
        ),
    ] {
        assert_eq!(of_providers(text), format!("{providers}[0]: {expected}"));
    }
    for (keys, expected) in [
        ("", ": Required value: at least one keys is required"),
        ("{name: a}", "[0].secret: Required value: secret is a mandatory field for a key"),
        (
            "{secret: AQEBAQEBAQEBAQEBAQEBAQ==}",
            "[0].name: Required value: name is a mandatory field for a key",
        ),
        ("{name: a, secret: '#'}", "[0].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded"),
        (
            "{name: a, secret: aGVsbG8=}",
            "[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 5, expected one of \
             [16 24 32]",
        ),
    ] {
        let error = of_providers(&format!("[{{aesgcm: {{keys: [{keys}]}}}}]"));
        assert_eq!(error, format!("{providers}[0].aesgcm.keys{expected}"));
    }
    assert_eq!(
        of_providers("[{secretbox: {keys: [{name: a, secret: AQEBAQEBAQEBAQEBAQEBAQ==}]}}]"),
        format!(
            "{providers}[0].secretbox.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected \
             length, got 16, expected one of [32]"
        )
    );
}

#[test]
fn key_services_are_validated() {
    for (fields, expected) in [
        (
            "apiVersion: v2, endpoint: 'unix:///a'",
            "name: Required value: name is a mandatory field for a provider",
        ),
        (
            "apiVersion: v2, name: 'a:b', endpoint: 'unix:///a'",
            "name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':'",
        ),
        (
            "apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: 0s",
            "timeout: Invalid value: \"0s\": timeout should be a positive value",
        ),
        (
            "apiVersion: v2, name: a, endpoint: 'unix:///a', timeout: -5s",
            "timeout: Invalid value: \"-5s\": timeout should be a positive value",
        ),
        ("apiVersion: v2, name: a", "endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms"),
        (
            "apiVersion: v2, name: a, endpoint: 'http://a'",
            "endpoint: Invalid value: \"http://a\": unsupported scheme \"http\" for KMS provider, only unix is \
             supported",
        ),
        (
            "apiVersion: v2, name: a, endpoint: ':a'",
            "endpoint: Invalid value: \":a\": invalid endpoint for kms provider, error: parse \":a\": missing \
             protocol scheme",
        ),
        (
            "apiVersion: v2, name: a, endpoint: 'unix:///a', cachesize: 5",
            "cachesize: Invalid value: 5: cachesize is not supported in v2",
        ),
        (
            "name: a, endpoint: 'unix:///a', cachesize: 0",
            "cachesize: Invalid value: 0: cachesize should be a positive value, or negative to disable",
        ),
        (
            "apiVersion: v3, name: a, endpoint: 'unix:///a'",
            "apiVersion: Invalid value: \"v3\": unsupported apiVersion apiVersion for KMS provider, only v1 and v2 \
             are supported",
        ),
    ] {
        assert_eq!(
            of_providers(&format!("[{{kms: {{{fields}}}}}]")),
            format!("resources[0].providers[0].kms.{expected}")
        );
    }
    let twice = "- resources: [a]\n  providers: [{kms: {apiVersion: v2, name: a, endpoint: 'unix:///a'}}]\n"
        .repeat(2);
    assert_eq!(
        invalid(&twice),
        "resources[1].providers[0].kms.name: Invalid value: \"a\": duplicate KMS provider name a, names must be unique"
    );
}

#[test]
fn resources_are_validated() {
    let overlap = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as \
                   they will be masked";
    for (resources, shown) in [
        ("secrets, '*.'", r#"["secrets","*."]"#),
        ("'*.*', deployments.apps", r#"["*.*","deployments.apps"]"#),
        ("deployments.apps, '*.apps'", r#"["deployments.apps","*.apps"]"#),
    ] {
        assert_eq!(
            of_resources(resources),
            format!("resources[0].resources: Invalid value: {shown}: {overlap}")
        );
    }
    let duplicate = "the same resource cannot be specified multiple times";
    assert_eq!(
        of_resources("a.b, a.b"),
        format!("resources[0].resources: Invalid value: [\"a.b\",\"a.b\"]: {duplicate}")
    );
    assert_eq!(
        of_resources("'*.b', '*.b'"),
        format!(
            "[resources[0].resources: Invalid value: [\"*.b\",\"*.b\"]: {duplicate}, resources[0].resources: Invalid \
             value: [\"*.b\",\"*.b\"]: {overlap}]"
        )
    );
    for (resource, expected) in [
        ("Secrets", "resource name should not contain capital letters"),
        ("*", "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"),
        ("serviceipallocations", "resources which do not have REST API/s cannot be encrypted"),
        (
            "'*.events.k8s.io'",
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file",
        ),
        ("ingresses.extensions", "'extensions' group has been removed and cannot be used for encryption"),
        ("secrets.*", "encrypting the same resource across groups is not supported"),
    ] {
        let name = resource.trim_matches('\'');
        assert_eq!(
            of_resources(&format!("'{name}'")),
            format!("resources[0].resources[0]: Invalid value: \"{name}\": {expected}")
        );
    }
}
