//! Tests malicious bodies, names and tokens: each gets its 4xx, leaves nothing behind, and the server keeps running.

use crate::harness::{Answer, Server, Transcript, assert_transcript, whole};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use pintle_machinery::json;
use std::convert::Infallible;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const YAML: (&str, &str) = ("Content-Type", "application/yaml");
const PROTOBUF: (&str, &str) = ("Content-Type", "application/vnd.kubernetes.protobuf");
const JSON_PATCH: (&str, &str) = ("Content-Type", "application/json-patch+json");
const MERGE_PATCH: (&str, &str) = ("Content-Type", "application/merge-patch+json");
const STRATEGIC_PATCH: (&str, &str) = ("Content-Type", "application/strategic-merge-patch+json");

/// Creates a config map that must be unchanged after the attack.
async fn keep(server: &Server) -> Answer {
    let answer = server
        .send(&format!("POST {MAPS}\n\n{{\"metadata\":{{\"name\":\"kept\"}},\"data\":{{\"k\":\"v\"}}}}"))
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer
}

/// Fails unless the kept object is the only one, unchanged, and a new client is served.
async fn assert_untouched(server: &Server, kept: &Answer) {
    server.assert_lives().await;
    let list = server.send(&format!("GET {MAPS}")).await;
    assert_eq!(list.json()["items"].as_array().unwrap().len(), 1, "{}", list.text());
    assert_eq!(server.send(&format!("GET {MAPS}/kept")).await.body, kept.body);
    for form in [
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ] {
        assert_eq!(server.send(&format!("GET {MAPS}\nAccept: {form}")).await.status, 200, "{form}");
    }
}

fn assert_refused(what: &str, answer: &Answer) {
    assert!((400..500).contains(&answer.status), "{what}: {} {:?}", answer.status, answer.body);
    let status = answer.json();
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(answer.status)), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_bodies() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let mut transcript = Transcript::new(&server);
    let post = format!("POST {MAPS}");
    let rows: [(&str, (&str, &str), &[u8]); 22] = [
        ("half an object", JSON, br#"{"metadata":{"name":"a"}"#),
        ("two objects", JSON, br#"{"metadata":{"name":"a"}}{"metadata":{"name":"b"}}"#),
        ("a lone quote", JSON, b"\""),
        ("a control character", JSON, b"{\"metadata\":{\"name\":\"a\nb\"}}"),
        ("a broken escape", JSON, br#"{"metadata":{"name":"\u12"}}"#),
        ("a trailing comma", JSON, br#"{"metadata":{"name":"a"},}"#),
        ("no number", JSON, br#"{"immutable":01}"#),
        ("a number for a string", JSON, br#"{"metadata":{"name":7}}"#),
        ("a string for a boolean", JSON, br#"{"metadata":{"name":"a"},"immutable":"yes"}"#),
        ("no base64", JSON, br#"{"metadata":{"name":"a"},"binaryData":{"k":"***"}}"#),
        ("no time", JSON, br#"{"metadata":{"name":"a","creationTimestamp":"today"}}"#),
        ("a tab for indentation", YAML, b"metadata:\n\tname: a\n"),
        ("an unknown alias", YAML, b"metadata:\n  name: *nobody\n"),
        ("an unfinished quote", YAML, b"metadata:\n  name: \"a\n"),
        ("bytes that are no text", YAML, b"metadata:\n  name: \xff\xfe\n"),
        ("a list for an object", YAML, b"- a\n- b\n"),
        ("nothing behind the mark", PROTOBUF, b"k8s\0"),
        ("a length beyond the end", PROTOBUF, b"k8s\0\x0a\x7f\x0a\x02v1"),
        ("a length beyond all memory", PROTOBUF, b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("a varint without end", PROTOBUF, b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        ("a group", PROTOBUF, b"k8s\0\x0b\x0b\x0b"),
        ("another kind", PROTOBUF, b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x00"),
    ];
    for (what, content_type, body) in rows {
        let answer = transcript.run_hidden(what, &post, &[content_type], body.to_vec()).await;
        assert_refused(what, &answer);
    }
    assert_transcript!(transcript);
    assert_untouched(&server, &kept).await;
    server.stop().await;
}

/// Bytes that are not UTF-8 are replaced in JSON, as by Go.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_text_are_replaced_in_json() {
    let server = Server::start().await;
    let body = b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"\xff\"}}".to_vec();
    let answer = server.exchange("POST", MAPS, &[JSON], body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.str_at("/data/k"), "\u{fffd}");
    server.stop().await;
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_deeper_than_anything_real() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let depth = 100_000;
    let lists = nested("[", "", "]", depth);
    let maps = nested("{\"a\":", "1", "}", depth);
    let meta = r#""metadata":{"name":"deep"}"#;
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let rows = [
        ("unknown lists", "POST", MAPS.to_owned(), JSON, format!("{{{meta},\"x\":{lists}}}")),
        ("unknown maps", "POST", MAPS.to_owned(), JSON, format!("{{{meta},\"x\":{maps}}}")),
        ("nothing but lists", "POST", MAPS.to_owned(), JSON, lists.clone()),
        ("lists without end", "POST", MAPS.to_owned(), JSON, "[".repeat(depth)),
        (
            "data of no type",
            "POST",
            revisions.to_owned(),
            JSON,
            format!("{{{meta},\"revision\":1,\"data\":{maps}}}"),
        ),
        ("a merge patch", "PATCH", format!("{MAPS}/kept"), MERGE_PATCH, maps.clone()),
        ("a strategic merge patch", "PATCH", format!("{MAPS}/kept"), STRATEGIC_PATCH, maps.clone()),
        (
            "a JSON patch",
            "PATCH",
            format!("{MAPS}/kept"),
            JSON_PATCH,
            format!("[{{\"op\":\"add\",\"path\":\"/data\",\"value\":{maps}}}]"),
        ),
        (
            "an applied configuration",
            "PATCH",
            format!("{MAPS}/applied?fieldManager=test"),
            ("Content-Type", "application/apply-patch+yaml"),
            format!("{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{maps}}}"),
        ),
        ("delete options", "DELETE", format!("{MAPS}/kept"), JSON, format!("{{\"x\":{lists}}}")),
        ("YAML lists", "POST", MAPS.to_owned(), YAML, format!("x: {lists}\n")),
        ("YAML maps", "POST", MAPS.to_owned(), YAML, nested("{a: ", "1", "}", depth)),
        ("YAML block lists", "POST", MAPS.to_owned(), YAML, format!("{}a", "- ".repeat(depth))),
    ];
    for (what, method, path, content_type, body) in rows {
        let answer = server.exchange(method, &path, &[content_type], body).await;
        assert_refused(what, &answer);
    }
    assert_untouched(&server, &kept).await;
    assert_eq!(server.send(&format!("GET {revisions}")).await.json()["items"], json!([]));
    server.stop().await;
}

/// Every accepted object can be read in every form, however deep it is.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_deep_and_let_in_can_be_read() {
    let server = Server::start().await;
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    for depth in [100, 130, 200, 250] {
        let data = nested("{\"a\":", "1", "}", depth);
        let body = format!("{{\"metadata\":{{\"name\":\"deep{depth}\"}},\"revision\":1,\"data\":{data}}}");
        let answer = server.exchange("POST", path, &[JSON], body).await;
        assert_eq!(answer.status, 201, "{depth}: {}", answer.text());
        let one = format!("{path}/deep{depth}");
        for accept in [
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        ] {
            let answer = server.send(&format!("GET {one}\nAccept: {accept}")).await;
            assert_eq!(answer.status, 200, "{depth} as {accept}");
        }
        let patch = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}";
        for content_type in [MERGE_PATCH, STRATEGIC_PATCH] {
            let answer = server.exchange("PATCH", &one, &[content_type], patch).await;
            assert_eq!(answer.status, 200, "{depth}: {}", answer.text());
        }
        let answer = server.send(&format!("DELETE {one}")).await;
        assert_eq!(answer.status, 200, "{depth}: {}", answer.text());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aliases_that_explode() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let mut laughs = String::from("a0: &a0 [ha,ha,ha,ha,ha,ha,ha,ha,ha,ha]\n");
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(",");
        laughs.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let mut doubled = String::from("a0: &a0 {k: v}\n");
    for level in 1..40 {
        doubled.push_str(&format!("a{level}: &a{level} {{x: *a{}, y: *a{}}}\n", level - 1, level - 1));
    }
    let rows = [
        ("ten to the twelfth", laughs),
        ("two to the fortieth", doubled),
        ("itself", "a: &a [*a]\n".to_owned()),
    ];
    for (what, body) in rows {
        let answer = server.exchange("POST", MAPS, &[YAML], body).await;
        assert_refused(what, &answer);
    }
    assert_untouched(&server, &kept).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_larger_than_allowed() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let mut transcript = Transcript::new(&server);
    let limit = 3 * 1024 * 1024;
    let body = |length: usize| {
        let head = "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"";
        format!("{head}{}\"}}}}", "x".repeat(length - head.len() - 3))
    };
    let answer = transcript
        .run_hidden("one byte more than is read", &format!("POST {MAPS}"), &[JSON], body(limit + 1))
        .await;
    assert_refused("one byte more", &answer);
    // A body within the limit may exceed the limit of a config map.
    let answer = server.exchange("POST", MAPS, &[JSON], body(limit)).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    let answer = transcript
        .run_hidden("a patch", &format!("PATCH {MAPS}/kept"), &[MERGE_PATCH], body(limit + 1))
        .await;
    assert_refused("a patch", &answer);
    let answer = transcript
        .run_hidden("delete options", &format!("DELETE {MAPS}/kept"), &[JSON], body(limit + 1))
        .await;
    assert_refused("delete options", &answer);
    assert_transcript!(transcript);
    // Without `Content-Length`, in pieces.
    let client = server.client(crate::harness::Identity::Admin).await;
    let pieces = (0..64).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; 64 * 1024]))));
    let body = StreamBody::new(futures_util::stream::iter(pieces)).boxed();
    let response = client.begin("POST", MAPS, &[JSON], body).await.unwrap();
    let answer = Answer::read(response).await;
    assert_eq!(answer.status, 413);
    assert_refused("pieces", &answer);
    assert_untouched(&server, &kept).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_lead_elsewhere() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let mut transcript = Transcript::new(&server);
    let long = "a".repeat(300);
    for name in [
        "..", ".", "%2e%2e", "a%2fb", "%00", "a%00b", "a%5cb", "A", "a_b", "-a", "%ff", "a%20b", "a;b", &long,
    ] {
        for request in [
            format!("GET {MAPS}/{name}"),
            format!("PUT {MAPS}/{name}\n\n{{\"metadata\":{{\"name\":\"x\"}}}}"),
            format!("DELETE {MAPS}/{name}"),
        ] {
            let answer = transcript.run(&request).await;
            assert_refused(&request, &answer);
        }
    }
    for name in ["../default", "a/b", "a\0b", "", ".", "..", "A", &long] {
        let body = json!({"metadata": {"name": name}}).to_string();
        let answer = transcript.run(&format!("POST {MAPS}\n\n{body}")).await;
        assert_refused(name, &answer);
    }
    for namespace in ["..", "%2e%2e", "a%2f..%2fdefault", "%00", "none", "A"] {
        let answer = transcript
            .run(&format!(
                "POST /api/v1/namespaces/{namespace}/configmaps\n\n{{\"metadata\":{{\"name\":\"a\"}}}}"
            ))
            .await;
        assert_refused(namespace, &answer);
    }
    assert_transcript!(transcript);
    assert_untouched(&server, &kept).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_nobody_knows_change_nothing() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    for query in ["?nonsense=1", "?%zz", "?a=b;c=d", "?&&&=", "?%00=%00", "?limit", "?watch=false&x[]=1"] {
        let answer = server.send(&format!("GET {MAPS}/kept{query}")).await;
        assert_eq!((answer.status, &answer.body), (200, &kept.body), "{query}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_read_nothing_else() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let secret = "POST /api/v1/namespaces/default/secrets\n\n{\"metadata\":{\"name\":\"zz\"},\"stringData\":{\"k\":\"hush\"}}";
    assert_eq!(server.send(secret).await.status, 201);
    let namespace = "POST /api/v1/namespaces\n\n{\"metadata\":{\"name\":\"other\"}}";
    assert_eq!(server.send(namespace).await.status, 201);
    let elsewhere = "POST /api/v1/namespaces/other/configmaps\n\n{\"metadata\":{\"name\":\"theirs\"}}";
    let version: u64 = server.send(elsewhere).await.resource_version().parse().unwrap();
    let token = |start: &str, version: i64| {
        let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": start});
        URL_SAFE_NO_PAD.encode(token.to_string())
    };
    let now = i64::try_from(version).unwrap();
    for start in [
        "a",
        "\u{0}",
        "/",
        "/a",
        "//",
        "../secrets/default/a",
        "..",
        "a/../../secrets",
        "/registry/secrets/",
        "other/a",
        "../other/a",
        "default/../other/a",
        "\u{10ffff}",
        "kept\u{0}",
        "k/./x",
    ] {
        for version in [now, -1, 1, 0, i64::MIN] {
            let answer =
                server.send(&format!("GET {MAPS}?limit=500&continue={}", token(start, version))).await;
            let text = answer.text();
            assert!(!text.contains("hush") && !text.contains("theirs"), "{start:?} {version}: {text}");
            if answer.status != 200 {
                // A read at a future version waits, and times out.
                if answer.status != 504 {
                    assert_refused(start, &answer);
                }
            }
        }
    }
    for garbage in
        ["", "%00", "AAAA", "bnVsbA", "W10", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjIifQ", &"A".repeat(10_000)]
    {
        let answer = server.send(&format!("GET {MAPS}?limit=1&continue={garbage}")).await;
        match garbage {
            "" => assert_eq!(answer.status, 200),
            garbage => assert_refused(garbage, &answer),
        }
    }
    for version in ["-1", "18446744073709551615", "18446744073709551616", "1e3", "0x10", "%00", " 1"] {
        let answer =
            server.send(&format!("GET {MAPS}?resourceVersion={}", version.replace(' ', "%20"))).await;
        // A number of 64 bits is a revision that the server never reaches.
        let is_number = version == "18446744073709551615";
        assert_eq!(answer.status, if is_number { 504 } else { 400 }, "{version}: {}", answer.text());
        let body = format!(
            "{{\"metadata\":{{\"name\":\"kept\",\"resourceVersion\":{version:?}}},\"data\":{{\"k\":\"w\"}}}}"
        );
        let answer = server.send(&format!("PUT {MAPS}/kept\n\n{body}")).await;
        assert_eq!(answer.status, if is_number { 409 } else { 500 }, "{version}: {}", answer.text());
    }
    assert_untouched(&server, &kept).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_that_explode() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let path = format!("{MAPS}/kept");
    let big = "x".repeat(100_000);
    let mut doubling = vec![json!({"op": "add", "path": "/data/k0", "value": big})];
    for step in 0..30 {
        doubling.push(json!({"op": "copy", "from": "/data", "path": format!("/metadata/annotations{step}")}));
        doubling.push(json!({"op": "copy", "from": "/metadata", "path": format!("/data/k{step}")}));
    }
    let many: Vec<_> = (0..10_001).map(|_| json!({"op": "test", "path": "/data/k", "value": "v"})).collect();
    let deep = json!([{"op": "add", "path": "/a".repeat(50_000), "value": 1}]);
    let rows = [
        ("doubling", JSON_PATCH, json!(doubling).to_string()),
        ("too many operations", JSON_PATCH, json!(many).to_string()),
        ("a path of many parts", JSON_PATCH, deep.to_string()),
        (
            "an index beyond the list",
            JSON_PATCH,
            "[{\"op\":\"add\",\"path\":\"/metadata/finalizers/99999999999\",\"value\":1}]".to_owned(),
        ),
        (
            "the object itself into it",
            JSON_PATCH,
            "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/data/self\"}]".to_owned(),
        ),
        ("another name", MERGE_PATCH, "{\"metadata\":{\"name\":\"other\"}}".to_owned()),
        ("another namespace", MERGE_PATCH, "{\"metadata\":{\"namespace\":\"other\"}}".to_owned()),
        (
            "another uid",
            MERGE_PATCH,
            "{\"metadata\":{\"uid\":\"00000000-0000-0000-0000-000000000000\"}}".to_owned(),
        ),
        ("another kind", MERGE_PATCH, "{\"kind\":\"Secret\"}".to_owned()),
        ("no object", MERGE_PATCH, "7".to_owned()),
        ("a list for the data", STRATEGIC_PATCH, "{\"data\":[1]}".to_owned()),
        ("metadata that is none", MERGE_PATCH, "{\"metadata\":7}".to_owned()),
    ];
    for (what, content_type, body) in rows {
        let answer = server.exchange("PATCH", &path, &[content_type], body).await;
        assert_refused(what, &answer);
    }
    assert_untouched(&server, &kept).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_streams_are_read_before_their_object_is_looked_up() {
    let server = Server::start().await;
    for (path, code, message) in [
        ("log?tailLines=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "log?limitBytes=0",
            422,
            "PodLogOptions \"none\" is invalid: limitBytes: Invalid value: 0: must be greater than 0",
        ),
        (
            "portforward?ports=http",
            400,
            "cannot convert to []int32: strconv.ParseUint: parsing \"http\": invalid syntax",
        ),
        ("log?tailLines=1", 404, "pods \"none\" not found"),
    ] {
        let answer = server.send(&format!("GET /api/v1/namespaces/default/pods/none/{path}")).await;
        assert_eq!((answer.status, answer.json()["message"].as_str()), (code, Some(message)), "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_where_none_belongs_are_ignored() {
    let server = Server::start().await;
    let kept = keep(&server).await;
    let client = server.client(crate::harness::Identity::Admin).await;
    let response = client.begin("GET", &format!("{MAPS}/kept"), &[JSON], whole("{{{")).await.unwrap();
    assert_eq!(Answer::read(response).await.body, kept.body);
    server.stop().await;
}

/// Numbers at and beyond the limits of their types: nothing overflows, panics or takes long.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_at_the_end_of_their_range() {
    let server = Server::start().await;
    let account = "POST /api/v1/namespaces/default/serviceaccounts\n\n{\"metadata\":{\"name\":\"default\"}}";
    assert_eq!(server.send(account).await.status, 201);
    let check = |what: &str, answer: &Answer| {
        assert!(answer.status < 500, "{what}: {} {}", answer.status, answer.text());
    };
    let numbers =
        [i64::MAX.to_string(), i64::MIN.to_string(), "99999999999999999999".to_owned(), "1e400".to_owned()];
    for number in &numbers {
        for query in
            ["limit=", "watch=1&timeoutSeconds=1&resourceVersion=0&limit=", "timeoutSeconds=", "timeout="]
        {
            check(query, &server.send(&format!("GET {MAPS}?{query}{number}")).await);
        }
        // A very long watch is served until its client ends it.
        let client = server.client(crate::harness::Identity::Admin).await;
        let path = format!("{MAPS}?watch=1&timeoutSeconds={number}");
        let response = client.begin("GET", &path, &[], whole("")).await.unwrap();
        assert!(response.status().as_u16() < 500, "{path}: {}", response.status());
        let map = format!(
            "{{\"metadata\":{{\"name\":\"a\",\"generation\":{number},\"finalizers\":[\"example.com/wait\"],\"deletionGracePeriodSeconds\":{number}}}}}"
        );
        let created = server.send(&format!("POST {MAPS}\n\n{map}")).await;
        check("a generation", &created);
        if created.status == 201 {
            check("a deletion", &server.send(&format!("DELETE {MAPS}/a?gracePeriodSeconds={number}")).await);
            let patch = "{\"metadata\":{\"finalizers\":null}}";
            let freed = server.exchange("PATCH", &format!("{MAPS}/a"), &[MERGE_PATCH], patch).await;
            assert_eq!(freed.status, 200, "{}", freed.text());
        }
    }
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |spec: &str| {
        format!(
            "{{\"metadata\":{{\"name\":\"p\"}},\"spec\":{{{spec}\"containers\":[{{\"name\":\"c\",\"image\":\"i\"}}]}}}}"
        )
    };
    for first in &numbers {
        for second in &numbers {
            let body = pod(&format!("\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":{first},"));
            let created = server.send(&format!("POST {pods}\n\n{body}")).await;
            check("a grace period", &created);
            for period in [second.as_str(), "30", second.as_str(), "0"] {
                check(
                    "a deletion",
                    &server.send(&format!("DELETE {pods}/p?gracePeriodSeconds={period}")).await,
                );
            }
            let gone = server.send(&format!("GET {pods}/p")).await;
            assert_eq!(gone.status, 404, "{first} {second}: {}", gone.text());
        }
    }
    let long = "9".repeat(100_000);
    let deep = format!("0.{}1", "0".repeat(100_000));
    for quantity in [
        "1e999999999",
        "1e-999999999",
        "1e9223372036854775807",
        "-1e308",
        "9E",
        "1Ei",
        &long,
        &deep,
        "1e",
        "NaN",
    ] {
        let spec = format!(
            "{{\"metadata\":{{\"name\":\"q\"}},\"spec\":{{\"containers\":[{{\"name\":\"c\",\"image\":\"i\",\"resources\":{{\"limits\":{{\"cpu\":\"{quantity}\",\"memory\":\"{quantity}\"}}}}}}]}}}}"
        );
        let begun = std::time::Instant::now();
        check(quantity, &server.send(&format!("POST {pods}?dryRun=All\n\n{spec}")).await);
        assert!(begun.elapsed().as_secs() < 5, "{quantity:.20}: {:?}", begun.elapsed());
    }
    for number in ["1e308", "1e-320", "-0", "0.1", "123456789012345678901234567890", "1e400"] {
        let body = format!("{{\"metadata\":{{\"name\":\"r\"}},\"revision\":1,\"data\":{{\"n\":{number}}}}}");
        let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
        check(number, &server.send(&format!("POST {path}\n\n{body}")).await);
        for accept in ["application/yaml", "application/vnd.kubernetes.protobuf"] {
            check(number, &server.send(&format!("GET {path}/r\nAccept: {accept}")).await);
        }
        server.send(&format!("DELETE {path}/r")).await;
    }
    server.assert_lives().await;
    server.stop().await;
}

/// The same for a custom resource, whose managed fields are as deep as itself and inside its metadata: no stored object
/// is too deep to be read.
#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_at_the_limit_of_depth_are_refused_or_can_be_read() {
    let server = Server::start().await;
    let definition = json!({
        "metadata": {"name": "wells.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "wells", "kind": "Well"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = server.send(&format!("POST {definitions}\n\n{definition}")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let path = "/apis/example.com/v1/namespaces/default/wells";
    while server.send(&format!("GET {path}")).await.status != 200 {
        tokio::task::yield_now().await;
    }
    let mut statuses = Vec::new();
    for depth in [100, 240, 246, 248, 249, 250, 251, 252, 253, 254, 255, 256, 257] {
        let data = nested("{\"a\":", "1", "}", depth);
        let meta = format!("\"metadata\":{{\"name\":\"deep{depth}\"}}");
        let body = format!("{{\"apiVersion\":\"example.com/v1\",\"kind\":\"Well\",{meta},\"spec\":{data}}}");
        let answer = server.exchange("POST", path, &[JSON], body).await;
        statuses.push(answer.status);
        if answer.status != 201 {
            assert_refused(&format!("{depth}"), &answer);
            continue;
        }
        let one = format!("{path}/deep{depth}");
        for accept in ["application/json", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"]
        {
            let answer = server.send(&format!("GET {one}\nAccept: {accept}")).await;
            assert_eq!(answer.status, 200, "{depth} as {accept}");
        }
        let object = server.send(&format!("GET {one}")).await.text().to_owned();
        assert_eq!(server.exchange("PUT", &one, &[JSON], object).await.status, 200, "{depth}");
        let patch = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}";
        let answer = server.exchange("PATCH", &one, &[MERGE_PATCH], patch).await;
        assert_eq!(answer.status, 200, "{depth}: {}", answer.text());
        let answer = server.send(&format!("DELETE {one}")).await;
        assert_eq!(answer.status, 200, "{depth}: {}", answer.text());
    }
    assert_eq!((statuses.first(), statuses.last()), (Some(&201), Some(&400)), "{statuses:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_route_refuses_gets_no_warning() {
    const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
    let server = Server::start().await;
    let served = server.send(&format!("GET {ENDPOINTS}")).await;
    assert!(served.header("warning").contains("deprecated"), "{}", served.header("warning"));
    let patch =
        format!("PATCH {ENDPOINTS}/a\nContent-Type: application/merge-patch+json\nAccept: text/html\n\n{{}}");
    for (request, code) in [
        (format!("PATCH {ENDPOINTS}/a\nContent-Type: text/plain\n\n{{}}"), 415),
        (format!("GET {ENDPOINTS}\nAccept: text/html"), 406),
        (patch, 406),
    ] {
        let answer = server.send(&request).await;
        assert_eq!((answer.status, answer.header("warning")), (code, ""), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subresources_without_tables_and_without_names() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    const TABLE: &str = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io";
    let server = Server::start().await;
    for (request, code) in [
        (format!("GET {PODS}/a/status\n{TABLE}"), 404),
        (format!("GET {PODS}/a/ephemeralcontainers\n{TABLE}"), 406),
        (format!("GET {PODS}/a/ephemeralcontainers?resourceVersion=x\n{TABLE}"), 406),
        (format!("GET {PODS}/a/ephemeralcontainers"), 404),
        (format!("GET {PODS}//status"), 400),
        (format!("GET {PODS}//proxy/"), 400),
        (format!("GET {PODS}//binding"), 405),
    ] {
        assert_eq!(server.send(&request).await.status, code, "{request}");
    }
}
