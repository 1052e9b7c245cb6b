//! Tests of discovery over several servers.

use super::*;
use crate::testing::{Answer, Script, api_service, api_services};
use pintle_machinery::json;

const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn document(group: &str, versions: &[&str]) -> Answer {
    let version = |name: &&str| json!({"version": name, "resources": [{"resource": "things", "scope": "Cluster", "verbs": []}]});
    let versions: Vec<Value> = versions.iter().map(version).collect();
    let items = json!([{"metadata": {"name": group}, "versions": versions}]);
    let document =
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items});
    Answer::Complete(200, vec![("content-type", MEDIA_TYPE), ("etag", "\"1\"")], document.to_string())
}

fn list() -> Answer {
    let resources = json!([{"name": "things", "kind": "Thing", "namespaced": true, "verbs": ["get"]}]);
    let document = json!({"kind": "APIResourceList", "apiVersion": "v1", "resources": resources});
    Answer::Complete(200, vec![("content-type", "application/json")], document.to_string())
}

struct Fixture {
    api_services: Arc<ApiServices>,
    script: Arc<Script>,
    manager: Arc<DiscoveryManager>,
}

impl Fixture {
    fn new() -> Fixture {
        let (api_services, script) = (api_services(), Arc::new(Script::default()));
        let manager = DiscoveryManager::asking(&api_services, script.clone());
        Fixture { api_services, script, manager }
    }

    /// The learnt documents: freshness and number of resources.
    fn learnt(&self) -> String {
        let learnt = self.manager.learnt.lock();
        let mut lines: Vec<String> = learnt
            .documents
            .iter()
            .map(|(version, document)| {
                format!("{version} {} {}", document.str_at("freshness"), document.items_at("resources").len())
            })
            .collect();
        lines.sort();
        lines.join(", ")
    }

    /// Refreshes the server of a service once.
    async fn refresh(&self, service: &str, known: &mut Known) -> Duration {
        self.manager.api_services_changed();
        let snapshot = self.api_services.current();
        let own: Vec<_> = snapshot
            .values()
            .filter(|own| own.backend.as_ref().is_some_and(|backend| backend.spec().name == service))
            .cloned()
            .collect();
        let backend = own[0].backend.clone().unwrap();
        self.manager.refresh(Behind { backend, api_services: own, is_changed: true }, known).await
    }
}

#[tokio::test]
async fn one_document_has_all_versions_of_a_server() {
    let fixture = Fixture::new();
    fixture.api_services.set(&[
        api_service("a", "v1", Some("s")),
        api_service("a", "v2", Some("s")),
        api_service("local", "v1", None),
    ]);
    fixture.script.set("s", "/apis", document("a", &["v1", "v7"]));
    let mut known = Known::default();
    assert_eq!(fixture.refresh("s", &mut known).await, INTERVAL);
    assert_eq!(fixture.learnt(), "a/v1 Current 1, a/v2 Current 0");
    fixture.script.set("s", "/apis", Answer::Complete(304, vec![], String::new()));
    assert_eq!(fixture.refresh("s", &mut known).await, INTERVAL);
    assert_eq!(fixture.learnt(), "a/v1 Current 1, a/v2 Current 0");
    assert_eq!(fixture.script.take(), ["s /apis", "s /apis \"1\""]);
    // A failure removes the resources; the delay grows.
    fixture.script.set("s", "/apis", Answer::Refused);
    assert_eq!(fixture.refresh("s", &mut known).await, FIRST_DELAY);
    assert_eq!(fixture.refresh("s", &mut known).await, FIRST_DELAY * 2);
    assert_eq!(fixture.learnt(), "a/v1 Stale 0, a/v2 Stale 0");
    fixture.api_services.set(&[api_service("a", "v2", None)]);
    fixture.manager.current();
    assert_eq!(fixture.learnt(), "");
}

#[tokio::test]
async fn a_server_without_aggregated_discovery_is_asked_for_each_version() {
    let fixture = Fixture::new();
    fixture.api_services.set(&[api_service("a", "v1", Some("s")), api_service("a", "v2", Some("s"))]);
    fixture.script.set("s", "/apis", list());
    fixture.script.set("s", "/apis/a/v1", list());
    let mut known = Known::default();
    assert_eq!(fixture.refresh("s", &mut known).await, FIRST_DELAY);
    assert_eq!(fixture.learnt(), "a/v1 Current 1, a/v2 Stale 0");
    assert_eq!(fixture.script.take(), ["s /apis", "s /apis/a/v1", "s /apis/a/v2"]);
    // A server that does not answer is not asked for the other versions.
    fixture.script.set("s", "/apis/a/v1", Answer::Refused);
    fixture.refresh("s", &mut known).await;
    assert_eq!(fixture.learnt(), "a/v1 Stale 0, a/v2 Stale 0");
    assert_eq!(fixture.script.take(), ["s /apis", "s /apis/a/v1"]);
}

#[tokio::test]
async fn unusable_answers_are_failures() {
    let fixture = Fixture::new();
    fixture.api_services.set(&[api_service("a", "v1", Some("s"))]);
    let of_type = |status: u16, body: &str| {
        Answer::Complete(status, vec![("content-type", MEDIA_TYPE)], body.to_owned())
    };
    let rows = [
        Answer::Refused,
        of_type(503, "service unavailable"),
        of_type(500, "{}"),
        // Not modified, though there is nothing to modify.
        of_type(304, ""),
        of_type(200, "<html></html>"),
        of_type(200, r#"{"kind":"Status"}"#),
        of_type(200, r#"{"kind":"APIGroupDiscoveryList","items":7}"#),
        of_type(200, &"[".repeat(1 << 20)),
    ];
    for row in rows {
        fixture.script.set("s", "/apis", row);
        let mut known = Known::default();
        assert_eq!(fixture.refresh("s", &mut known).await, FIRST_DELAY);
        assert_eq!(fixture.learnt(), "a/v1 Stale 0");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_delays_no_other() {
    let fixture = Fixture::new();
    fixture.script.set("silent", "/apis", Answer::Silent);
    fixture.script.set("works", "/apis", document("b", &["v1"]));
    let services = [api_service("a", "v1", Some("silent")), api_service("b", "v1", Some("works"))];
    fixture.api_services.set(&services);
    let (api_services, manager) = (fixture.api_services.clone(), fixture.manager.clone());
    let following = tokio::spawn(async move { servers::follow(&api_services, &manager).await });
    let learns = async |expected: &str| {
        while fixture.learnt() != expected {
            tokio::task::yield_now().await;
        }
    };
    let began = tokio::time::Instant::now();
    learns("b/v1 Current 1").await;
    // An API service that changes is asked about at once; one that goes is forgotten.
    fixture.script.set("works", "/apis", document("b", &["v1", "v2"]));
    let [silent, works] = services;
    fixture.api_services.set(&[silent.clone(), works, api_service("b", "v2", Some("works"))]);
    learns("b/v1 Current 1, b/v2 Current 1").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    fixture.api_services.set(&[silent]);
    learns("").await;
    let asked = fixture.script.take();
    assert_eq!(asked.iter().filter(|asked| asked.starts_with("silent")).count(), 1, "{asked:?}");
    following.abort();
}
