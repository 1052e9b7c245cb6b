//! Tests stored values that cannot be read: an error for that object, while all others are served.

use crate::harness::{Identity, Server, plain_user};
use pintle::StorageMediaType;
use pintle_storage::{Key, Storage};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn put(storage: &dyn Storage, key: &str, value: impl Into<pintle_storage::Payload>) {
    let key = Key::new(key);
    let current = storage.get(&key).await.unwrap().kv;
    match current {
        Some(kv) => storage.update(&key, value.into(), kv.mod_revision, None).await.unwrap(),
        None => storage.create(&key, value.into(), None).await.unwrap(),
    };
}

fn names(list: &crate::harness::Answer) -> Vec<String> {
    let json = list.json();
    let items = json["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_value_is_an_error_of_its_object_alone() {
    let rows: [(&[u8], &str); 8] = [
        (b"k8s\0\xff\xff", "unexpected EOF"),
        (b"k8s\0", "empty body"),
        (b"\x01\x02garbage", "yaml: control characters are not allowed"),
        (b"{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":1}}"#, "json: cannot unmarshal number"),
        (br#"{"apiVersion":"v1"}"#, "Object 'Kind' is missing"),
        (
            br#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"bad"}}"#,
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            br#"{"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"bad"}}"#,
            "no kind \"Thing\" is registered for version \"example.com/v1\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\"",
        ),
    ];
    for media_type in [StorageMediaType::Json, StorageMediaType::Protobuf] {
        let server = Server::start_with(|options| options.storage_media_type = Some(media_type)).await;
        let storage = server.storage();
        for name in ["good", "other"] {
            let made = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"{name}\"}}}}")).await;
            assert_eq!(made.status, 201);
        }
        for (value, message) in rows {
            put(&*storage, "/registry/configmaps/default/bad", value.to_vec()).await;
            let read = server.send(&format!("GET {MAPS}/bad")).await;
            assert_eq!(read.status, 500, "{}", read.text());
            assert!(
                read.str_at("/message").contains(message),
                "{} for {}",
                read.text(),
                value.escape_ascii()
            );
            let list = server.send(&format!("GET {MAPS}")).await;
            assert_eq!(list.status, 200);
            let names = names(&list);
            assert!(names.contains(&"good".into()) && !names.contains(&"bad".into()), "{names:?}");
            assert_eq!(
                list.header("warning"),
                "299 - \"1 configmaps could not be read from storage and are missing from this list\""
            );
        }
        let elsewhere = server.send("GET /api/v1/namespaces/kube-system/configmaps").await;
        assert_eq!(elsewhere.header("warning"), "");
        // The object exists: it cannot be created or changed, and the collection is not empty.
        let taken = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"bad\"}}}}")).await;
        assert_eq!(taken.status, 409, "{}", taken.text());
        for request in ["PUT", "DELETE"] {
            let body = if request == "PUT" { "\n\n{\"metadata\":{\"name\":\"bad\"}}" } else { "" };
            let refused = server.send(&format!("{request} {MAPS}/bad{body}")).await;
            assert_eq!(refused.status, 500, "{}", refused.text());
        }
        let all = server.send(&format!("DELETE {MAPS}")).await;
        assert_eq!(all.status, 500, "{}", all.text());
        assert_eq!(names(&server.send(&format!("GET {MAPS}")).await), [""; 0]);
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_good_again_is_served_again() {
    let server = Server::start().await;
    let storage = server.storage();
    let made = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}")).await;
    let mut watch =
        server.watch(&format!("{MAPS}?watch=1&resourceVersion={}", made.resource_version()), &[]).await;
    let key = "/registry/configmaps/default/a";
    let good = storage.get(&Key::new(key)).await.unwrap().kv.unwrap().value;
    put(&*storage, key, "bad").await;
    assert_eq!(server.send(&format!("GET {MAPS}/a")).await.status, 500);
    put(&*storage, key, good).await;
    let read = server.send(&format!("GET {MAPS}/a")).await;
    assert_eq!(read.status, 200, "{}", read.text());
    let event = watch.next().await.unwrap();
    // No DELETED event was sent.
    assert_eq!(event, format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", read.text().trim_end()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_no_known_shape_trouble_nobody() {
    let server = Server::start().await;
    let storage = server.storage();
    let foreign = [
        "/registry/configmaps/default/a/b",
        "/registry/configmaps/alone",
        "/registry/configmaps/",
        "/registry/nodes.example.com/things/a",
        "/registry/masterleases/10.0.0.1",
        "/other/configmaps/default/x",
        "compact_rev_key",
        "",
    ];
    for key in foreign {
        if !key.is_empty() {
            put(&*storage, key, "whatever").await;
        }
    }
    let made = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"a\"}}}}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let list = server.send(&format!("GET {MAPS}")).await;
    assert!(names(&list).contains(&"a".to_owned()));
    server.assert_lives().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_value_is_deleted_by_who_may_and_says_so() {
    const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
    let server = Server::start_with(|options| {
        options.features.gates.add("AllowUnsafeMalformedObjectDeletion=true");
        plain_user(options);
    })
    .await;
    let storage = server.storage();
    put(&*storage, "/registry/configmaps/default/bad", "k8s\0").await;
    let revision = storage.current_revision().await.unwrap();
    let made = server.send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"good\"}}}}")).await;
    assert_eq!(made.status, 201);
    let corrupt = format!(
        "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /configmaps/default/bad, \
         ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision={revision}: empty body"
    );
    for request in [format!("GET {MAPS}/bad"), format!("DELETE {MAPS}/bad")] {
        let refused = server.send(&request).await;
        assert_eq!((refused.status, refused.str_at("/message")), (500, corrupt.clone()));
    }
    let rows = [
        (
            format!("DELETE {MAPS}/good?{OPTION}"),
            422,
            "configmaps \"good\" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is \
             exclusively used to delete corrupt object(s), try again by removing this option",
        ),
        (
            format!("DELETE {MAPS}/none?{OPTION}"),
            422,
            "configmaps \"none\" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is \
             exclusively used to delete corrupt object(s), try again by removing this option",
        ),
        (
            format!("DELETE {MAPS}/bad?{OPTION}&gracePeriodSeconds=0"),
            422,
            "DeleteOptions.meta.k8s.io \"\" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: \
             true: cannot be set together with .gracePeriodSeconds",
        ),
        (
            format!("DELETE {MAPS}?{OPTION}"),
            422,
            "DeleteOptions.meta.k8s.io \"\" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: \
             true: is not allowed with DELETECOLLECTION, try again after removing the option",
        ),
    ];
    for (request, code, message) in rows {
        let refused = server.send(&request).await;
        assert_eq!((refused.status, refused.str_at("/message").as_str()), (code, message), "{request}");
    }
    let nobody = server.client(Identity::Nobody).await;
    let refused = nobody.send(&format!("DELETE {MAPS}/bad?{OPTION}\nAuthorization: Bearer plain")).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let deleted = server.send(&format!("DELETE {MAPS}/bad?{OPTION}")).await;
    assert_eq!(
        deleted.text(),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"details\":{\"name\":\"bad\",\
         \"kind\":\"ConfigMap\"},\"code\":200}\n"
    );
    assert_eq!(server.send(&format!("GET {MAPS}/bad")).await.status, 404);
    assert_eq!(server.send(&format!("GET {MAPS}")).await.header("warning"), "");
    server.stop().await;
}
