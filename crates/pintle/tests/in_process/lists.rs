//! Tests lists: pages, continue tokens, versions, and deletes of collections.

use crate::harness::{Server, Transcript, assert_transcript};
use pintle_machinery::{Value, codec::cbor};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn fill(server: &Server, names: &[&str]) {
    for name in names {
        let body =
            format!("{{\"metadata\":{{\"name\":\"{name}\",\"labels\":{{\"first\":\"{}\"}}}}}}", &name[..1]);
        assert_eq!(server.send(&format!("POST {MAPS}\n\n{body}")).await.status, 201);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_one_version_and_say_how_to_go_on() {
    let server = Server::start().await;
    fill(&server, &["a1", "a2", "b1", "b2", "c1"]).await;
    let mut transcript = Transcript::new(&server);
    let first = transcript.run(&format!("GET {MAPS}?limit=2")).await;
    // Creates and deletes between the pages do not affect them.
    server.send(&format!("DELETE {MAPS}/b1")).await;
    fill(&server, &["b3"]).await;
    let token = first.str_at("/metadata/continue");
    let second = transcript.run(&format!("GET {MAPS}?limit=2&continue={token}")).await;
    let token = second.str_at("/metadata/continue");
    let third = transcript.run(&format!("GET {MAPS}?limit=2&continue={token}")).await;
    assert_eq!(first.resource_version(), second.resource_version());
    assert_eq!(first.resource_version(), third.resource_version());
    transcript
        .run_all(&[
            &format!("GET {MAPS}?limit=1&labelSelector=first%3Db"),
            &format!("GET {MAPS}?limit=1&resourceVersion=0"),
            &format!(
                "GET {MAPS}?limit=1\nAccept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
            ),
            &format!("GET {MAPS}?limit=1&pretty=1"),
        ])
        .await;
    let version = first.resource_version();
    transcript.run(&format!("GET {MAPS}?resourceVersionMatch=Exact&resourceVersion={version}&fieldSelector=metadata.name!%3Da1")).await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_by_label_is_the_same_with_and_without_an_index() {
    let server = Server::start().await;
    let map = |number: usize, app: usize| {
        format!(r#"{{"metadata":{{"name":"m{number}","labels":{{"app":"a{app}","tier":"t"}}}}}}"#)
    };
    for number in 0..1100 {
        let sent = server.send(&format!("POST {MAPS}\n\n{}", map(number, number % 20))).await;
        assert_eq!(sent.status, 201);
    }
    let list = async |selector: &str| {
        server.send(&format!("GET {MAPS}?labelSelector={selector}")).await.text().to_owned()
    };
    let first = list("app%3Da7,tier%3Dt").await;
    assert_eq!(first.matches(r#""app":"a7""#).count(), 55);
    // Later ones are answered by the index.
    for _ in 0..20 {
        assert_eq!(list("app%3Da7,tier%3Dt").await, first);
    }
    server.send(&format!("DELETE {MAPS}/m7")).await;
    server.send(&format!("PUT {MAPS}/m27\n\n{}", map(27, 8))).await;
    server.send(&format!("PUT {MAPS}/m28\n\n{}", map(28, 7))).await;
    let names = |list: &str| -> Vec<String> {
        let list: pintle_machinery::Value = list.parse().unwrap();
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].to_string()).collect()
    };
    // Nobody asks for this selector again, so that all objects are looked at.
    assert_eq!(names(&list("app%3Da7").await), names(&list("app+notin+(a1),app+in+(a7,none)").await));
    assert_eq!(names(&list("app%3Da7").await).len(), 54);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_deleted_as_it_is_selected() {
    let server = Server::start().await;
    fill(&server, &["a1", "a2", "b1"]).await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            &format!("DELETE {MAPS}?labelSelector=first%3Da&dryRun=All"),
            &format!("DELETE {MAPS}?labelSelector=first%3Da"),
            &format!("GET {MAPS}"),
            &format!(
                "DELETE {MAPS}\nAccept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
            ),
            &format!("DELETE {MAPS}"),
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

/// Items of metadata alone have their kind, as they do in JSON.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_alone_in_cbor() {
    let server = Server::start_with(|options| options.features.gates.add("CBORServingAndStorage=true")).await;
    fill(&server, &["a"]).await;
    let partial = "as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = server.send(&format!("GET {MAPS}\nAccept: application/cbor;{partial}")).await;
    assert_eq!((list.status, list.header("content-type")), (200, "application/cbor"));
    let list = cbor::decode_any(&list.body).unwrap();
    let items = list.pointer("/items").and_then(Value::as_array).unwrap();
    let texts =
        ["/kind", "/apiVersion", "/metadata/name"].map(|at| items[0].pointer(at).and_then(Value::as_str));
    assert_eq!(texts, ["PartialObjectMetadata", "meta.k8s.io/v1", "a"].map(Some));
    server.stop().await;
}
