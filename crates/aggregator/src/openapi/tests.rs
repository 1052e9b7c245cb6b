//! Tests of OpenAPI over several servers.

use super::*;
use crate::testing::{Answer, Script, api_service, api_services};
use pintle_machinery::{Value, json};

fn answer(etag: &'static str, document: &Value) -> Answer {
    Answer::Complete(200, vec![("etag", etag)], document.to_string())
}

fn document(versions: &[&str]) -> Value {
    let paths: pintle_machinery::Map =
        versions.iter().map(|version| (format!("/apis/{version}/things"), json!({}))).collect();
    json!({"swagger": "2.0", "paths": paths})
}

fn index(keys: &[&str]) -> Answer {
    let entry =
        |key: &&str| ((*key).to_owned(), json!({"serverRelativeURL": format!("/openapi/v3/{key}?hash=1")}));
    let paths: pintle_machinery::Map = keys.iter().map(entry).collect();
    answer("", &json!({"paths": paths}))
}

struct Fixture {
    api_services: Arc<ApiServices>,
    script: Arc<Script>,
    manager: Arc<OpenApiManager>,
    known: Known,
}

impl Fixture {
    fn new(objects: &[Value]) -> Fixture {
        let (api_services, script) = (api_services(), Arc::new(Script::default()));
        let manager = OpenApiManager::asking(&api_services, script.clone());
        api_services.set(objects);
        Fixture { api_services, script, manager, known: Known::default() }
    }

    async fn refresh(&mut self, is_changed: bool) -> Duration {
        self.manager.api_services_changed();
        let snapshot = self.api_services.current();
        let own: Vec<_> = snapshot.values().filter(|own| own.backend.is_some()).cloned().collect();
        let backend = own[0].backend.clone().unwrap();
        self.manager.refresh(Behind { backend, api_services: own, is_changed }, &mut self.known).await
    }

    /// The number of documents, and the keys of the index.
    fn published(&self) -> (usize, Vec<String>) {
        (self.manager.current().len(), self.manager.index().into_keys().collect())
    }
}

#[tokio::test]
async fn a_document_is_asked_for_once_and_split_by_api_service() {
    let mut fixture = Fixture::new(&[
        api_service("a", "v1", Some("s")),
        api_service("b", "v1", Some("s")),
        api_service("b", "v2", None),
    ]);
    fixture.script.set("s", "/openapi/v2", answer("\"1\"", &document(&["a/v1", "b/v1", "c/v1"])));
    // Versions that are not registered are left out, and the document of a group that this server has.
    fixture.script.set(
        "s",
        "/openapi/v3",
        index(&["apis/a/v1", "apis/a", "apis/b/v1", "apis/b", "apis/c/v1", "version"]),
    );
    assert_eq!(fixture.refresh(true).await, SOON);
    assert_eq!(fixture.published(), (2, ["apis/a", "apis/a/v1", "apis/b/v1"].map(str::to_owned).to_vec()));
    assert_eq!(fixture.manager.owner("apis/b/v1").as_deref(), Some("v1.b"));
    assert!(fixture.manager.owner("apis/b").is_none());
    fixture.script.set("s", "/openapi/v2", Answer::Complete(304, vec![], String::new()));
    assert_eq!(fixture.refresh(false).await, INTERVAL);
    assert_eq!(
        fixture.script.take(),
        ["s /openapi/v2", "s /openapi/v3", "s /openapi/v2 \"1\"", "s /openapi/v3"]
    );
    // A new API service needs the whole document.
    fixture.api_services.set(&[api_service("a", "v1", Some("s")), api_service("c", "v1", Some("s"))]);
    fixture.script.set("s", "/openapi/v2", answer("\"1\"", &document(&["a/v1", "b/v1", "c/v1"])));
    fixture.refresh(true).await;
    assert_eq!(fixture.script.take(), ["s /openapi/v2", "s /openapi/v3"]);
    assert_eq!(fixture.published(), (2, ["apis/a", "apis/a/v1", "apis/c/v1"].map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn what_is_known_stays_when_a_server_fails() {
    let mut fixture = Fixture::new(&[api_service("a", "v1", Some("s"))]);
    fixture.script.set("s", "/openapi/v2", answer("\"1\"", &document(&["a/v1"])));
    fixture.script.set("s", "/openapi/v3", index(&["apis/a/v1"]));
    fixture.refresh(true).await;
    let published = fixture.published();
    assert_eq!(published.0, 1);
    let mut delay = INTERVAL;
    for row in [
        Answer::Refused,
        Answer::Complete(500, vec![], String::new()),
        Answer::Complete(200, vec![], "<html>".to_owned()),
        Answer::Complete(200, vec![], r#"{"paths":{"/a":{"get":7}}}"#.to_owned()),
        Answer::Complete(200, vec![], "[".repeat(1 << 20)),
    ] {
        fixture.script.set("s", "/openapi/v2", row);
        fixture.script.set("s", "/openapi/v3", Answer::Complete(200, vec![], "[]".to_owned()));
        assert_eq!(fixture.refresh(false).await, delay);
        assert_eq!(fixture.published(), published);
        delay *= 2;
    }
    // The change of an API service is a reason to try again soon.
    assert_eq!(fixture.refresh(true).await, INTERVAL);
    // A server that is not available is not asked.
    fixture.script.take();
    let mut object = api_service("a", "v1", Some("s"));
    object["status"]["conditions"][0]["status"] = json!("False");
    fixture.api_services.set(&[object]);
    fixture.refresh(true).await;
    assert!(fixture.script.take().is_empty());
    assert_eq!(fixture.published(), published);
    fixture.api_services.set(&[]);
    fixture.manager.api_services_changed();
    assert_eq!(fixture.published(), (0, vec![]));
}
