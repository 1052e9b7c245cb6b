//! Tests objects: every form of every response to valid requests.

use crate::harness::{Identity, Server, Transcript, assert_transcript};
use pintle_machinery::{
    codec::{json, protobuf},
    json,
};
use pintle_schema::Schema;

const CONFIG_MAP: &str = "POST /api/v1/namespaces/default/configmaps\n\n\
    {\"metadata\":{\"name\":\"a\",\"labels\":{\"z\":\"1\",\"a\":\"2\"},\"annotations\":{\"note\":\"<&>\u{2028}é\"}},\"data\":{\"k\":\"v\",\"b\":\"line\\nline\"}}";

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx","ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"0.1","memory":"64Mi"}}}]}}}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_config_map_from_create_to_delete() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            CONFIG_MAP,
            "GET /api/v1/namespaces/default/configmaps/a",
            "GET /api/v1/namespaces/default/configmaps/a?pretty=true",
            "GET /api/v1/namespaces/default/configmaps/a\nAccept: application/yaml",
            "GET /api/v1/namespaces/default/configmaps/a\nUser-Agent: curl/8.0",
            "PUT /api/v1/namespaces/default/configmaps/a\n\n{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"},\"immutable\":false,\"binaryData\":{\"b\":\"AAEC/w==\"}}",
            "PATCH /api/v1/namespaces/default/configmaps/a\nContent-Type: application/merge-patch+json\n\n{\"data\":{\"n\":\"1\"},\"immutable\":null}",
            "PATCH /api/v1/namespaces/default/configmaps/a\nContent-Type: application/json-patch+json\n\n[{\"op\":\"test\",\"path\":\"/data/n\",\"value\":\"1\"},{\"op\":\"copy\",\"from\":\"/data/n\",\"path\":\"/data/m\"}]",
            "PATCH /api/v1/namespaces/default/configmaps/a\nContent-Type: application/strategic-merge-patch+json\n\n{\"data\":{\"$patch\":\"replace\",\"only\":\"this\"}}",
            "GET /api/v1/namespaces/default/configmaps?limit=500",
            "GET /api/v1/namespaces/default/configmaps?pretty=1&fieldSelector=metadata.name%3Da",
            "GET /api/v1/namespaces/default/configmaps\nAccept: application/yaml",
            "DELETE /api/v1/namespaces/default/configmaps/a",
            "GET /api/v1/namespaces/default/configmaps",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_answers_as_if_and_changes_nothing() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    transcript
        .run_all(&[
            "POST /api/v1/namespaces/default/configmaps?dryRun=All\n\n{\"metadata\":{\"name\":\"a\"}}",
            "GET /api/v1/namespaces/default/configmaps/a",
            "POST /api/v1/namespaces/default/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}",
            "PUT /api/v1/namespaces/default/configmaps/a?dryRun=All\n\n{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}",
            "PATCH /api/v1/namespaces/default/configmaps/a?dryRun=All\nContent-Type: application/merge-patch+json\n\n{\"data\":{\"k\":\"v\"}}",
            "DELETE /api/v1/namespaces/default/configmaps/a?dryRun=All",
            "GET /api/v1/namespaces/default/configmaps/a",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_come_in_the_order_of_the_types() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    let deployment = format!("POST /apis/apps/v1/namespaces/default/deployments\n\n{DEPLOYMENT}");
    transcript
        .run_all(&[
            &deployment,
            "POST /api/v1/namespaces/default/services\n\n{\"metadata\":{\"name\":\"web\"},\"spec\":{\"selector\":{\"app\":\"web\"},\"clusterIP\":\"10.0.0.77\",\"ports\":[{\"port\":80,\"targetPort\":\"http\"}]}}",
            "POST /api/v1/namespaces/default/serviceaccounts\n\n{\"metadata\":{\"name\":\"default\"}}",
            "POST /api/v1/namespaces/default/pods\n\n{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx:1\",\"livenessProbe\":{\"httpGet\":{\"path\":\"/\",\"port\":80}}}],\"automountServiceAccountToken\":false}}",
            "DELETE /api/v1/namespaces/default/services/web",
            "POST /api/v1/namespaces\n\n{\"metadata\":{\"name\":\"other\"}}",
            "DELETE /api/v1/namespaces/other",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_is_a_view_of_the_object() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    let deployment = format!("POST /apis/apps/v1/namespaces/default/deployments\n\n{DEPLOYMENT}");
    assert_eq!(server.send(&deployment).await.status, 201);
    let scale = "/apis/apps/v1/namespaces/default/deployments/web/scale";
    transcript
        .run_all(&[
            &format!("GET {scale}"),
            &format!("PUT {scale}\n\n{{\"metadata\":{{\"name\":\"web\"}},\"spec\":{{\"replicas\":5}}}}"),
            &format!(
                "PATCH {scale}\nContent-Type: application/merge-patch+json\n\n{{\"spec\":{{\"replicas\":7}}}}"
            ),
            &format!("PUT {scale}\n\n{{\"metadata\":{{\"name\":\"web\"}},\"spec\":{{\"replicas\":-1}}}}"),
            &format!("DELETE {scale}"),
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_alone_is_served_on_demand() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    let deployment = format!("POST /apis/apps/v1/namespaces/default/deployments\n\n{DEPLOYMENT}");
    assert_eq!(server.send(&deployment).await.status, 201);
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let one = "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io";
    let many = "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io";
    transcript
        .run_all(&[
            &format!("GET {path}/web\n{one};v=v1"),
            &format!("GET {path}/web\n{one};v=v1beta1"),
            &format!("GET {path}?limit=1\n{many};v=v1"),
            &format!("GET {path}?labelSelector=none\n{many};v=v1"),
            &format!("GET {path}\n{one};v=v1"),
            &format!("GET {path}/web\n{many};v=v1"),
            &format!("PATCH {path}/web\n{one};v=v1\nContent-Type: application/merge-patch+json\n\n{{\"metadata\":{{\"labels\":{{\"b\":\"c\"}}}}}}"),
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

/// The object that a review or a token request is answered with has partial metadata, but no table; the `Status` of a
/// binding has neither.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_alone_of_reviews_and_tokens() {
    let server = Server::start().await;
    let form = |kind: &str| format!("Accept: application/json;as={kind};g=meta.k8s.io;v=v1");
    let [one, many, table] = ["PartialObjectMetadata", "PartialObjectMetadataList", "Table"].map(form);
    let account = "/api/v1/namespaces/default/serviceaccounts";
    server.send(&format!("POST {account}\n\n{{\"metadata\":{{\"name\":\"robot\"}}}}")).await;
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review_body = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    let token = &format!("{account}/robot/token");
    for (path, body, kind) in [
        (review, review_body, "authorization.SelfSubjectAccessReview"),
        (token, "{}", "authentication.TokenRequest"),
    ] {
        let answer = server.send(&format!("POST {path}\n{one}\n\n{body}")).await;
        assert_eq!((answer.status, &*answer.str_at("/kind")), (201, "PartialObjectMetadata"), "{path}");
        assert!(answer.json().get("status").is_none());
        let refused = server.send(&format!("POST {path}\n{many}\n\n{body}")).await;
        let why = format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list (*{kind})"
        );
        assert_eq!((refused.status, refused.str_at("/message")), (406, why));
        assert_eq!(server.send(&format!("POST {path}\n{table}\n\n{body}")).await.status, 406);
    }
    let gone = format!("POST {account}/none/token\n{many}\n\n{{}}");
    assert_eq!(server.send(&gone).await.status, 404);
    let eviction = r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"none"}}"#;
    let gone = format!("POST /api/v1/namespaces/default/pods/none/eviction\n{one}\n\n{eviction}");
    assert_eq!(server.send(&gone).await.str_at("/message"), "pods \"none\" not found");
    let events = server.send(&format!("GET /apis/events.k8s.io/v1/events\n{one}")).await;
    assert!(events.str_at("/message").ends_with("is a list (*core.EventList)"), "{}", events.text());
    server.stop().await;
}

/// A version that is no number is an error of updates, even of those that create.
#[tokio::test(flavor = "multi_thread")]
async fn unreadable_versions_of_written_objects() {
    let server = Server::start().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = |version: &str| format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}}}}"#);
    let put = |version: &str| format!("PUT {leases}/a\n\n{}", lease(version));
    let check = async |version: &str, why: &str| {
        let answer = server.send(&put(version)).await;
        assert_eq!(
            (answer.status, answer.str_at("/message")),
            (500, format!("strconv.ParseUint: parsing {why}"))
        );
    };
    check("abc", "\"abc\": invalid syntax").await;
    let created = server.send(&put("0")).await;
    assert_eq!(created.status, 201);
    check("18446744073709551616", "\"18446744073709551616\": value out of range").await;
    assert_eq!(server.send(&put(&format!("0{}", created.resource_version()))).await.status, 200);
    assert_eq!(server.send(&put("1")).await.status, 409);
    server.stop().await;
}

/// A job without labels has those of its template, also after a write of its status.
#[tokio::test(flavor = "multi_thread")]
async fn the_labels_of_a_job() {
    let server = Server::start().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let template = r#"{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}"#;
    let body = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"suspend":true,"template":{template}}}}}"#);
    assert_eq!(server.send(&format!("POST {jobs}\n\n{body}")).await.status, 201);
    let answer = server.send(&format!("PUT {jobs}/a/status\n\n{body}")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.str_at("/metadata/labels/job-name"), "a");
    server.stop().await;
}

/// A status of flow schemas and priority levels is written without any metadata.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_flow_schema_keeps_its_metadata() {
    let server = Server::start().await;
    let schema = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt";
    let patch = "Content-Type: application/merge-patch+json\n\n{\"metadata\":{\"generateName\":\"x-\",\"labels\":{\"a\":\"b\"}}}";
    let answer = server.send(&format!("PATCH {schema}/status\n{patch}")).await;
    assert_eq!(answer.status, 200);
    let metadata = answer.json();
    assert!(
        metadata.pointer("/metadata/generateName").is_none()
            && metadata.pointer("/metadata/labels").is_none()
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_nobody_knows_are_warned_of_or_refused() {
    let server = Server::start().await;
    let mut transcript = Transcript::new(&server);
    let path = "/api/v1/namespaces/default/configmaps";
    let body = "{\"metadata\":{\"name\":\"a\",\"nam\":1},\"data\":{\"k\":\"v\",\"k\":\"w\"},\"spec\":{}}";
    transcript
        .run_all(&[
            &format!("POST {path}?fieldValidation=Strict\n\n{body}"),
            &format!("POST {path}?fieldValidation=Warn&dryRun=All\n\n{body}"),
            &format!("POST {path}?dryRun=All\n\n{body}"),
            &format!("POST {path}?fieldValidation=Ignore&dryRun=All\n\n{body}"),
            &format!("POST {path}?fieldValidation=Maybe\n\n{body}"),
            &format!("POST {path}?dryRun=All\nContent-Type: application/yaml\n\nmetadata:\n  name: a\n  nam: 1\nkind: ConfigMap\ndata:\n  k: v\n  k: w\nspec: {{}}\n"),
            "GET /api/v1/componentstatuses/none",
            "GET /api/v1/namespaces/default/endpoints/kubernetes",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn protobuf_says_the_same_as_json() {
    let server = Server::start().await;
    assert_eq!(server.send(CONFIG_MAP).await.status, 201);
    let protobuf_type = "application/vnd.kubernetes.protobuf";
    let rows = [
        ("/api/v1/namespaces/default/configmaps/a", "k8s.io/api/core/v1.ConfigMap"),
        ("/api/v1/namespaces/default/configmaps", "k8s.io/api/core/v1.ConfigMapList"),
        ("/api/v1/namespaces/default/services/kubernetes", "k8s.io/api/core/v1.Service"),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", "k8s.io/api/scheduling/v1.PriorityClassList"),
    ];
    for (path, type_name) in rows {
        let schema = Schema::builtin().by_type_name(type_name).unwrap();
        // A list tells the revision of the store, which the server's own writes move on: both answers
        // are of one revision when the same question before and after them is answered alike.
        let (plain, packed) = loop {
            let before = server.send(&format!("GET {path}")).await;
            let packed = server.send(&format!("GET {path}\nAccept: {protobuf_type}")).await;
            if server.send(&format!("GET {path}")).await.text() == before.text() {
                break (before, packed);
            }
        };
        assert_eq!((packed.status, packed.header("content-type")), (200, protobuf_type), "{path}");
        assert!(packed.body.starts_with(b"k8s\0"), "{path}");
        let unpacked = protobuf::decode(&packed.body, schema).unwrap();
        assert!(unpacked.problems.is_empty(), "{path}");
        let message = protobuf::open(&packed.body).unwrap();
        let mut tree = unpacked.value;
        tree["kind"] = message.kind.into();
        tree["apiVersion"] = message.api_version.into();
        let again = format!("{}\n", String::from_utf8(json::encode(&tree, schema)).unwrap());
        assert_eq!(again, plain.text(), "{path}");
    }
    // The encoded object is accepted as a body.
    let path = "/api/v1/namespaces/default/configmaps/a";
    let packed = server.send(&format!("GET {path}\nAccept: {protobuf_type}")).await;
    let headers = [("Content-Type", protobuf_type)];
    let answer = server.exchange("PUT", path, &headers, packed.body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.text(), server.send(&format!("GET {path}")).await.text());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_name_is_the_prefix_and_five_letters() {
    let server = Server::start().await;
    let answer = server
        .send("POST /api/v1/namespaces/default/configmaps\n\n{\"metadata\":{\"generateName\":\"a-\"}}")
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let name = answer.str_at("/metadata/name");
    let letters = name.strip_prefix("a-").unwrap();
    assert!(
        letters.len() == 5 && letters.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)),
        "{name}"
    );
    assert_eq!(answer.str_at("/metadata/generateName"), "a-");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_status_changes_while_it_is_deleted_is_deleted() {
    let server = Server::start().await;
    server
        .send("POST /api/v1/namespaces/default/serviceaccounts\n\n{\"metadata\":{\"name\":\"default\"}}")
        .await;
    let (scheduler, user) = (server.client(Identity::Admin).await, server.client(Identity::Admin).await);
    for round in 0..200 {
        let pod = r#"{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
        let made = user.send(&format!("POST /api/v1/namespaces/default/pods\n\n{pod}")).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let patch = format!("{{\"status\":{{\"message\":\"{round}\"}}}}");
        let patch = format!(
            "PATCH /api/v1/namespaces/default/pods/a/status\nContent-Type: application/merge-patch+json\n\n{patch}"
        );
        // The update of an object without a grace period deletes it, and may come first.
        let deleting = user.send("DELETE /api/v1/namespaces/default/pods/a?gracePeriodSeconds=0");
        let (_, deleted) = tokio::join!(scheduler.send(&patch), deleting);
        assert_eq!(deleted.status, 200, "round {round}: {}", deleted.text());
    }
    server.stop().await;
}

/// The kinds differ: most require a domain in finalizers, some validate a name but not its prefix.
#[tokio::test(flavor = "multi_thread")]
async fn names_and_finalizers_are_those_of_the_kind() {
    const TEMPLATE: &str = r#""template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Always","containers":[{"name":"c","image":"i"}]}}"#;
    let server = Server::start().await;
    let namespaced = |version: &str, resource: &str| match version {
        "v1" => format!("/api/v1/namespaces/default/{resource}"),
        _ => format!("/apis/{version}/namespaces/default/{resource}"),
    };
    let workload = format!(r#","spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},{TEMPLATE}}}}}"#);
    let replicas = format!(r#","spec":{{"selector":{{"a":"b"}},{TEMPLATE}}}}}"#);
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    for (path, metadata, rest, code) in [
        (namespaced("apps/v1", "statefulsets"), r#"{"name":"a-b"}"#, workload.as_str(), 201),
        (namespaced("apps/v1", "statefulsets"), r#"{"name":"a.b"}"#, &workload, 422),
        (namespaced("apps/v1", "deployments"), r#"{"name":"a.b"}"#, &workload, 201),
        (namespaced("v1", "replicationcontrollers"), r#"{"name":"a","generateName":"A_"}"#, &replicas, 201),
        (namespaced("v1", "replicationcontrollers"), r#"{"generateName":"A_"}"#, &replicas, 422),
        (namespaced("v1", "limitranges"), "{}", "}", 201),
        (namespaced("v1", "configmaps"), "{}", "}", 422),
        (namespaced("v1", "configmaps"), r#"{"name":"a","generateName":"A_"}"#, "}", 422),
        (namespaced("v1", "configmaps"), r#"{"name":"a","finalizers":["plain"]}"#, "}", 422),
        (namespaced("v1", "configmaps"), r#"{"name":"a","finalizers":["a.b/plain"]}"#, "}", 201),
        (namespaced("coordination.k8s.io/v1", "leases"), r#"{"name":"a","finalizers":["plain"]}"#, "}", 201),
        (namespaced("coordination.k8s.io/v1", "leases"), r#"{"name":"a","finalizers":["a b"]}"#, "}", 422),
        (webhooks.to_owned(), r#"{"name":"a","finalizers":["plain"]}"#, "}", 201),
    ] {
        let answer = server.send(&format!("POST {path}?dryRun=All\n\n{{\"metadata\":{metadata}{rest}")).await;
        assert_eq!(answer.status, code, "{path} {metadata}: {}", answer.text());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_name_the_group_of_the_request() {
    let server = Server::start().await;
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = r#"{"metadata":{"name":"e"},"eventTime":"2024-01-01T00:00:00.000000Z","reportingController":"a.b/c",
        "reportingInstance":"x","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"default"}}"#
        .replace('\n', "");
    let made = server.send(&format!("POST {path}\n\n{event}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let patch = "\nContent-Type: application/merge-patch+json\n\n{\"metadata\":{\"resourceVersion\":\"1\"}}";
    for (request, message) in [
        (format!("DELETE {path}/none"), "events.events.k8s.io \"none\" not found"),
        (format!("PATCH {path}/none{patch}"), "events.events.k8s.io \"none\" not found"),
        (format!("POST {path}\n\n{event}"), "events.events.k8s.io \"e\" already exists"),
        (format!("PATCH {path}/e{patch}"), "Operation cannot be fulfilled on events.events.k8s.io \"e\""),
        (
            format!("PATCH {path}/e\nContent-Type: application/merge-patch+json\n\n{{\"series\":{{}}}}"),
            "Event \"e\" is invalid: [series.count: Invalid value: \"\": should be at least 2",
        ),
        ("DELETE /api/v1/namespaces/default/events/none".to_owned(), "events \"none\" not found"),
    ] {
        let answer = server.send(&request).await;
        let text = answer.text().replace("\\\"", "\"");
        assert!(text.contains(&format!("\"message\":\"{message}")), "{request}: {text}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_show_the_empty_lists_of_the_body() {
    let server = Server::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |container: &str| {
        format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i"{container}}}]}}}}"#
        )
    };
    for creation in [
        "POST /api/v1/namespaces/default/serviceaccounts\n\n{\"metadata\":{\"name\":\"default\"}}",
        &format!("POST {pods}\n\n{}", pod("")),
    ] {
        let created = server.send(creation).await;
        assert_eq!(created.status, 201, "{}", created.text());
    }
    let privileged = r#","securityContext":{"privileged":true,"allowPrivilegeEscalation":false,"capabilities":{"add":[]}}"#;
    for (request, shown) in [
        (format!("PUT {pods}/p\n\n{}", pod(r#","tty":true,"args":[]"#)), r#"+   "Args": [],"#),
        (format!("POST {pods}\n\n{}", pod(privileged)), r#""Capabilities":{"Add":[],"Drop":null}"#),
    ] {
        let refused = server.send(&request).await;
        assert_eq!(refused.status, 422, "{request}");
        let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(shown), "{message}");
    }
    server.stop().await;
}

/// The default of such a field is that of the stored object, which omits what is empty: nobody manages it.
#[tokio::test(flavor = "multi_thread")]
async fn fields_that_a_body_gives_as_empty_have_no_default_of_absent_ones() {
    let server = Server::start().await;
    let nodes = "/api/v1/nodes";
    let node = |status: &str| format!(r#"{{"metadata":{{"name":"n"}},"status":{status}}}"#);
    let (absent, empty) = (r#"{"capacity":{"cpu":"1"}}"#, r#"{"capacity":{"cpu":"1"},"allocatable":{}}"#);
    let merge = "Content-Type: application/merge-patch+json";
    let bare = "POST /api/v1/nodes\n\n{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\"}}}";
    for (request, is_managed) in [
        (format!("PUT {nodes}/n/status\n\n{}", node(absent)), true),
        (format!("PUT {nodes}/n/status\n\n{}", node(empty)), false),
        (format!("PATCH {nodes}/n/status\n{merge}\n\n{{\"status\":{empty}}}"), false),
    ] {
        let made = server.send(bare).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let written = server.send(&request).await;
        let managed = written.json()["metadata"]["managedFields"].to_string();
        assert_eq!(managed.contains("f:allocatable"), is_managed, "{request}: {}", written.text());
        let read = server.send(&format!("GET {nodes}/n")).await;
        for answer in [written, read] {
            assert_eq!(answer.str_at("/status/allocatable/cpu"), "1", "{request}: {}", answer.text());
        }
        server.send(&format!("DELETE {nodes}/n")).await;
    }

    let scaler = json!({"metadata": {"name": "h"}, "spec": {
        "maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
        "behavior": {"scaleDown": {"policies": []}},
    }});
    let refused = server
        .send(&format!("POST /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers\n\n{scaler}"))
        .await;
    assert!(
        refused.text().contains("spec.behavior.scaleDown.policies: Required value"),
        "{}",
        refused.text()
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn system_priority_classes_are_deleted_with_their_collection_only() {
    let server = Server::start().await;
    server.until_ready().await;
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    for request in [
        format!("DELETE {path}/system-node-critical"),
        format!("DELETE {path}/system-cluster-critical?dryRun=All"),
    ] {
        let refused = server.send(&request).await;
        assert_eq!(refused.status, 403, "{request}");
        let message = refused.text();
        assert!(message.contains("this is a system priority class and cannot be deleted"), "{message}");
    }
    let names = |list: &pintle_machinery::Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let deleted = server.send(&format!("DELETE {path}")).await;
    assert_eq!(deleted.status, 200);
    assert_eq!(names(&deleted.json()), ["system-cluster-critical", "system-node-critical"]);
    assert_eq!(names(&server.send(&format!("GET {path}")).await.json()), Vec::<String>::new());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_that_admission_creates_have_the_servers_manager() {
    let server = Server::start_with(|options| {
        options.admission.enable_plugins = Some(vec!["NamespaceAutoProvision".to_owned()]);
    })
    .await;
    let made = server.send("POST /api/v1/namespaces/new/configmaps\n\n{\"metadata\":{\"name\":\"a\"}}").await;
    assert_eq!(made.status, 201, "{}", made.text());
    let namespace = server.send("GET /api/v1/namespaces/new").await;
    assert!(namespace.text().contains("\"manager\":\"kube-apiserver\""), "{}", namespace.text());
    server.stop().await;
}

/// A manifest in another version than that of the path is a patch, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_may_name_another_served_version() {
    let server = Server::start().await;
    let path = "namespaces/default/horizontalpodautoscalers";
    let target = json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"});
    let scaler = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 5, "scaleTargetRef": target}});
    let made = server.send(&format!("POST /apis/autoscaling/v2/{path}\n\n{scaler}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let patch = json!({"apiVersion": "autoscaling/v1", "spec": {"targetCPUUtilizationPercentage": 30}});
    let merge = "Content-Type: application/merge-patch+json";
    let patched = server.send(&format!("PATCH /apis/autoscaling/v2/{path}/h\n{merge}\n\n{patch}")).await;
    assert_eq!(patched.status, 200, "{}", patched.text());
    assert_eq!(patched.str_at("/apiVersion"), "autoscaling/v2");
    let metric = &patched.json()["spec"]["metrics"][0]["resource"];
    assert_eq!(
        metric["target"],
        json!({"type": "Utilization", "averageUtilization": 30}),
        "{}",
        patched.text()
    );

    let older = json!({"apiVersion": "autoscaling/v2beta1"});
    let refused = server.send(&format!("PATCH /apis/autoscaling/v2/{path}/h\n{merge}\n\n{older}")).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    server.stop().await;
}

/// A quantity may be a number, whose digits count: a patch keeps them, but for a strategic merge patch, which parses them.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_keeps_the_digits_of_quantities() {
    let server = Server::start().await;
    let path = "/api/v1/namespaces/default/resourcequotas";
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    let made = server.send(&format!("POST {path}\n\n{quota}")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    for (written, kept, parsed) in [
        ("9223372036854775808", "9223372036854775808", "9223372036854776k"),
        ("1e3", "1e3", "1k"),
        ("2.0", "2", "2"),
    ] {
        let nested = format!("{{\"spec\":{{\"hard\":{{\"pods\":{written}}}}}}}");
        let operations = format!("[{{\"op\":\"add\",\"path\":\"/spec/hard/pods\",\"value\":{written}}}]");
        for (format, patch, expected) in [
            ("merge-patch", &nested, kept),
            ("json-patch", &operations, kept),
            ("strategic-merge-patch", &nested, parsed),
        ] {
            let content_type = format!("Content-Type: application/{format}+json");
            let patched = server.send(&format!("PATCH {path}/q\n{content_type}\n\n{patch}")).await;
            assert_eq!(patched.str_at("/spec/hard/pods"), expected, "{format}: {}", patched.text());
        }
    }
    server.stop().await;
}
