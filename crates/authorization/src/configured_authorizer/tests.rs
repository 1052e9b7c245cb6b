use super::*;
use crate::testing::now;
use prometheus::{Registry, TextEncoder};
use std::fs;

fn metrics() -> Arc<AuthorizationMetrics> {
    Arc::new(AuthorizationMetrics::new("me").unwrap())
}

fn nobody() -> ObjectAuthorizers {
    ObjectAuthorizers { node: Arc::new(AlwaysDeny), rbac: Arc::new(AlwaysDeny) }
}

fn load(source: ConfigurationSource) -> Result<Arc<ConfiguredAuthorizer>, String> {
    ConfiguredAuthorizer::load(source, None, nobody(), metrics(), Dialer::default())
        .map_err(|error| error.to_string())
}

fn fixed(types: &[AuthorizerType]) -> ConfigurationSource {
    let authorizers = types.iter().map(|own| AuthorizerConfiguration {
        name: own.authorizer_name(),
        kind: AuthorizerKind::BuiltIn(*own),
    });
    ConfigurationSource::Fixed(AuthorizationConfiguration { authorizers: authorizers.collect() })
}

fn verdict(authorizer: &ConfiguredAuthorizer, groups: &[&str]) -> Verdict {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let user = UserInfo { name: "jane".to_owned(), groups, ..UserInfo::default() };
    now(authorizer.authorize(&Attributes { resource: "pods", ..Attributes::of(&user, "get") }))
}

#[test]
fn administrators_are_never_locked_out() {
    let authorizer = load(fixed(&[AuthorizerType::AlwaysDeny])).unwrap();
    assert!(verdict(&authorizer, &[SYSTEM_MASTERS]).is_allowed());
    let denied = verdict(&authorizer, &[]);
    assert_eq!((denied.decision, &*denied.reason), (Decision::NoOpinion, "Everything is forbidden."));
}

#[test]
fn authorizers_are_asked_in_the_order_of_the_configuration() {
    let metrics = metrics();
    let source = fixed(&[AuthorizerType::AlwaysDeny, AuthorizerType::Rbac, AuthorizerType::AlwaysAllow]);
    let authorizer =
        ConfiguredAuthorizer::load(source, None, nobody(), metrics.clone(), Dialer::default()).unwrap();
    assert!(authorizer.has(AuthorizerType::Rbac) && !authorizer.has(AuthorizerType::Node));
    assert!(verdict(&authorizer, &[]).is_allowed());
    let registry = Registry::new();
    for collector in metrics.collectors() {
        registry.register(collector).unwrap();
    }
    let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let line = "apiserver_authorization_decisions_total{decision=\"allowed\",name=\"alwaysallow\",type=\"AlwaysAllow\"} 1";
    assert!(text.contains(line), "{text}");
    assert_eq!(text.matches("apiserver_authorization_decisions_total{").count(), 1);
}

#[test]
fn policies_need_a_file() {
    let error = |policy_file| {
        let loaded = ConfiguredAuthorizer::load(
            fixed(&[AuthorizerType::Abac]),
            policy_file,
            nobody(),
            metrics(),
            Dialer::default(),
        );
        loaded.map(|_| ()).unwrap_err().to_string()
    };
    assert!(error(None).ends_with("authorization policy file not passed"));
    let unused = fixed(&[AuthorizerType::AlwaysDeny]);
    let unused =
        ConfiguredAuthorizer::load(unused, Some("/nowhere".into()), nobody(), metrics(), Dialer::default());
    assert!(unused.is_err_and(|error| error.to_string().contains("without mode ABAC")));
    assert!(error(Some("/nowhere".into())).starts_with("error reading policy file /nowhere: "));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "{\"user\":\"jane\"}").unwrap();
    let path = Some(file.path().to_owned());
    let authorizer = ConfiguredAuthorizer::load(
        fixed(&[AuthorizerType::Abac]),
        path,
        nobody(),
        metrics(),
        Dialer::default(),
    )
    .unwrap();
    assert!(verdict(&authorizer, &[]).is_allowed());
}

#[test]
fn a_changed_file_is_put_in_force_if_it_is_right() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_owned();
    let write = |authorizers: &str| {
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";
        fs::write(&path, format!("{head}{authorizers}")).unwrap();
    };
    let source = ConfigurationSource::File { path: path.clone(), poll_interval: Duration::from_secs(60) };
    write("- {type: Unheard, name: of}");
    let error = load(source.clone()).map(|_| ()).unwrap_err();
    assert!(error.starts_with("authorizers[0].type: Unsupported value: "), "{error}");
    write("- {type: AlwaysDeny, name: alwaysdeny}");
    let authorizer = load(source).unwrap();
    assert!(!verdict(&authorizer, &[]).is_allowed());
    assert!(!authorizer.reload().unwrap(), "nothing is new");
    write("- {type: AlwaysDeny, name: alwaysdeny}\n- {type: AlwaysAllow, name: alwaysallow}");
    assert!(authorizer.reload().unwrap());
    assert!(verdict(&authorizer, &[]).is_allowed());
    // Authorizers that use objects cannot be added, and none of the first types removed.
    for (wrong, expected) in [
        ("- {type: AlwaysAllow, name: alwaysallow}", "missing required types: [AlwaysDeny]"),
        (
            "- {type: AlwaysDeny, name: alwaysdeny}\n- {type: AlwaysAllow, name: alwaysallow}\n- {type: RBAC, name: rbac}",
            "authorizer type RBAC is not allowed if it was not enabled at initial server startup",
        ),
        ("- {}", "authorizers[0].type: Required value"),
    ] {
        write(wrong);
        let error = authorizer.reload().unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
        assert!(!authorizer.reload().unwrap(), "it is told once");
        assert!(verdict(&authorizer, &[]).is_allowed(), "what was in force stays");
    }
    fs::remove_file(&path).unwrap();
    assert!(authorizer.reload().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_missing_is_told_once_a_minute() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_owned();
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: AlwaysDeny, name: alwaysdeny}";
    fs::write(&path, text).unwrap();
    let metrics = metrics();
    let source = ConfigurationSource::File { path: path.clone(), poll_interval: Duration::from_secs(1) };
    let authorizer =
        ConfiguredAuthorizer::load(source, None, nobody(), metrics.clone(), Dialer::default()).unwrap();
    let registry = Registry::new();
    for collector in metrics.collectors() {
        registry.register(collector).unwrap();
    }
    fs::remove_file(&path).unwrap();
    let told = tokio::time::timeout(Duration::from_secs(90), authorizer.run()).await;
    assert!(told.is_err(), "it runs for ever");
    let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let mut lines = text.lines().filter(|line| line.contains("reloads_total{") && line.contains("failure"));
    assert!(lines.next().is_some_and(|line| line.ends_with("} 2")), "{text}");
}
