//! Tests tables, as `kubectl get` prints them.

use crate::harness::{Server, Transcript, assert_transcript};
use serde_json::Value;

const TABLE: &str = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async fn objects(server: &Server) {
    for request in [
        "POST /api/v1/namespaces/default/serviceaccounts\n\n{\"metadata\":{\"name\":\"default\"}}",
        "POST /api/v1/namespaces/default/configmaps\n\n{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}",
        "POST /api/v1/namespaces/default/secrets\n\n{\"metadata\":{\"name\":\"s\"},\"stringData\":{\"k\":\"v\"}}",
        "POST /api/v1/namespaces/default/pods\n\n{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"},{\"name\":\"d\",\"image\":\"nginx\"}]}}",
        "PATCH /api/v1/namespaces/default/pods/p/status\nContent-Type: application/merge-patch+json\n\n{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\",\"podIPs\":[{\"ip\":\"10.1.2.3\"}],\"containerStatuses\":[{\"name\":\"c\",\"ready\":true,\"restartCount\":2,\"image\":\"nginx\",\"imageID\":\"\",\"state\":{\"running\":{}}},{\"name\":\"d\",\"ready\":false,\"restartCount\":0,\"image\":\"nginx\",\"imageID\":\"\",\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}]}}",
        "POST /api/v1/nodes\n\n{\"metadata\":{\"name\":\"n\",\"labels\":{\"node-role.kubernetes.io/worker\":\"\"}},\"spec\":{\"unschedulable\":true}}",
        "POST /api/v1/namespaces/default/services\n\n{\"metadata\":{\"name\":\"web\"},\"spec\":{\"type\":\"NodePort\",\"clusterIP\":\"10.0.0.77\",\"selector\":{\"app\":\"web\"},\"ports\":[{\"port\":80,\"nodePort\":30080}]}}",
        "POST /apis/apps/v1/namespaces/default/deployments\n\n{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"nginx\"}]}}}}",
    ] {
        let answer = server.send(request).await;
        assert!(answer.status < 300, "{request}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_has_its_columns() {
    let server = Server::start().await;
    objects(&server).await;
    let mut transcript = Transcript::new(&server);
    for path in [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/secrets",
        "/api/v1/namespaces/default/pods",
        "/api/v1/nodes",
        "/api/v1/namespaces/default/services?fieldSelector=metadata.name%3Dweb",
        "/apis/apps/v1/namespaces/default/deployments",
        "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ] {
        transcript.run(&format!("GET {path}\n{TABLE}")).await;
    }
    assert_transcript!(transcript);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_carry_what_was_asked_for() {
    let server = Server::start().await;
    objects(&server).await;
    let mut transcript = Transcript::new(&server);
    let path = "/api/v1/namespaces/default/configmaps";
    transcript
        .run_all(&[
            &format!("GET {path}/a?includeObject=None\n{TABLE}"),
            &format!("GET {path}/a?includeObject=Object\n{TABLE}"),
            &format!("GET {path}?labelSelector=none\n{TABLE}"),
            &format!("GET {path}?limit=1&pretty=1\nAccept: application/json;as=Table;v=v1beta1;g=meta.k8s.io"),
            &format!("GET {path}/none\n{TABLE}"),
            &format!("POST {path}\n{TABLE}\n\n{{\"metadata\":{{\"name\":\"b\"}}}}"),
            &format!("DELETE {path}/b\n{TABLE}"),
            "GET /apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io",
        ])
        .await;
    assert_transcript!(transcript);
    server.stop().await;
}

/// In lists and in the events of watches, as in single objects.
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_lists_and_watches_carry_what_was_asked_for() {
    let server = Server::start().await;
    objects(&server).await;
    let path = "/api/v1/namespaces/default/configmaps";
    for (part, kind) in [
        ("", "PartialObjectMetadata"),
        ("includeObject=&", "PartialObjectMetadata"),
        ("includeObject=Metadata&", "PartialObjectMetadata"),
        ("includeObject=Object&", "ConfigMap"),
        ("includeObject=None&", ""),
        ("includeObject=None&includeObject=x&", ""),
    ] {
        let list = server.send(&format!("GET {path}?{part}\n{TABLE}")).await;
        let list: Value = serde_json::from_str(list.text()).unwrap();
        let watch = format!("GET {path}?{part}watch=1&timeoutSeconds=1&resourceVersion=0\n{TABLE}");
        let events = server.send(&watch).await;
        let events: Vec<Value> =
            events.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(list["rows"].as_array().unwrap().len(), events.len(), "{part}");
        for row in list["rows"]
            .as_array()
            .unwrap()
            .iter()
            .chain(events.iter().map(|event| &event["object"]["rows"][0]))
        {
            assert_eq!(row["object"]["kind"].as_str().unwrap_or_default(), kind, "{part}: {row}");
        }
        for (index, event) in events.iter().enumerate() {
            // Only the first event has the columns.
            assert_eq!(event["object"]["columnDefinitions"].is_null(), index > 0, "{event}");
        }
    }
    for request in
        [format!("GET {path}?includeObject=metadata"), format!("GET {path}?includeObject=x&watch=1")]
    {
        let refused = server.send(&format!("{request}\n{TABLE}")).await;
        assert_eq!(refused.status, 400, "{request}");
        assert!(
            refused.text().contains("must be 'Metadata', 'Object', 'None', or empty"),
            "{}",
            refused.text()
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_metadata_are_made_of_the_stored_version() {
    let server = Server::start().await;
    let metrics = "[{\"type\":\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\",\"averageUtilization\":50}}},{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",\"target\":{\"type\":\"AverageValue\",\"averageValue\":\"1Gi\"}}}]";
    for request in [
        format!(
            "POST /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers\n\n{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"scaleTargetRef\":{{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"d\"}},\"maxReplicas\":5,\"metrics\":{metrics}}}}}"
        ),
        "POST /apis/apps/v1/namespaces/default/daemonsets\n\n{\"metadata\":{\"name\":\"a\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}".to_owned(),
    ] {
        let answer = server.send(&request).await;
        assert!(answer.status < 300, "{request}: {}", answer.text());
    }
    let partial = "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    // The first version keeps the metrics, and daemon sets a counter, in annotations.
    for path in [
        "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/a",
        "/apis/apps/v1/namespaces/default/daemonsets/a",
    ] {
        let whole = server.send(&format!("GET {path}")).await.json();
        assert!(whole["metadata"]["annotations"].is_object(), "{whole}");
        let metadata = server.send(&format!("GET {path}\n{partial}")).await.json();
        assert!(metadata["metadata"]["annotations"].is_null(), "{metadata}");
        let table = server.send(&format!("GET {path}\n{TABLE}")).await.json();
        let row = &table["rows"][0];
        assert_eq!(row["object"]["metadata"], metadata["metadata"]);
        if path.contains("autoscaling") {
            assert_eq!(row["cells"][2], "cpu: <unknown>/50%, memory: <unknown>/1Gi");
        }
        let table = server.send(&format!("GET {path}?includeObject=Object\n{TABLE}")).await.json();
        assert_eq!(table["rows"][0]["object"], whole);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_schemas_are_listed_by_precedence() {
    let server = Server::start().await;
    for (name, precedence) in [("a", 10_000), ("b", 700), ("c", 700)] {
        let schema = format!(
            "{{\"metadata\":{{\"name\":\"{name}\"}},\"spec\":{{\"matchingPrecedence\":{precedence},\"priorityLevelConfiguration\":{{\"name\":\"exempt\"}}}}}}"
        );
        let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
        assert_eq!(server.send(&format!("POST {path}\n\n{schema}")).await.status, 201);
    }
    let names = async |query: &str, accept: &str, items: &str, name: &str| -> Vec<String> {
        let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
        let list = server.send(&format!("GET {path}{query}\n{accept}")).await.json();
        let names = list[items].as_array().unwrap().iter();
        names.map(|item| item.pointer(name).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let table = names("", TABLE, "rows", "/cells/0").await;
    let position = |wanted: &str| table.iter().position(|name| name == wanted).unwrap();
    assert_eq!(table.first().unwrap(), "exempt");
    assert!(table.ends_with(&["a".to_owned(), "catch-all".to_owned()]), "{table:?}");
    assert_eq!(position("b") + 1, position("c"));
    assert!(position("b") > position("system-nodes"), "{table:?}");
    // A page has the objects that its limit selects, and sorts only these.
    assert_eq!(names("?limit=2", TABLE, "rows", "/cells/0").await, ["b", "a"]);
    assert_eq!(names("?limit=2", "Accept: application/json", "items", "/metadata/name").await, ["a", "b"]);
    server.stop().await;
}
