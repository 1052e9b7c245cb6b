//! OpenAPI: which documents there are, and the form of one.

use crate::harness::{Server, Transcript, assert_transcript};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn the_index_names_every_group_version_by_hash() {
    let server = Server::start().await;
    let answer = server.send("GET /openapi/v3").await;
    // Go's server guesses the type of a document that was given none.
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/plain; charset=utf-8"));
    let json = answer.json();
    let mut keys = String::new();
    for (key, entry) in json["paths"].as_object().unwrap() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let hash = url.strip_prefix(&format!("/openapi/v3/{key}?hash=")).unwrap_or_else(|| panic!("{url}"));
        assert!(hash.len() == 128 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{url}");
        keys.push_str(key);
        keys.push('\n');
        if key == "version" {
            let document = server.send(&format!("GET {url}")).await;
            assert_eq!(document.status, 200);
        }
    }
    let mut transcript = Transcript::new(&server);
    transcript.write(&keys);
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_has_paths_and_schemas() {
    let server = Server::start().await;
    let answer = server.send("GET /openapi/v3/apis/coordination.k8s.io/v1").await;
    assert_eq!(answer.status, 200);
    let mut json = answer.json();
    remove_descriptions(&mut json);
    let mut transcript = Transcript::new(&server);
    transcript.write(&format!("{json:#}\n"));
    assert_transcript!(transcript);
    server.stop().await;
}

/// Texts of others, which are long and change without any change of ours.
fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // A property may have that name, too.
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_cached_by_their_hash() {
    let server = Server::start().await;
    let index = server.send("GET /openapi/v3").await.json();
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = server.send(&format!("GET {url}")).await;
    assert_eq!(document.status, 200);
    let etag = document.header("etag").to_owned();
    assert!(!etag.is_empty());
    let again = server.send(&format!("GET {url}\nIf-None-Match: {etag}")).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let old = url.replace("hash=", "hash=0");
    let moved = server.send(&format!("GET {old}")).await;
    assert_eq!((moved.status, moved.header("location")), (301, url.as_str()));
    server.stop().await;
}
