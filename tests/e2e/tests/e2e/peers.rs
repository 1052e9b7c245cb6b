//! Tests that a server forwards requests for what it does not serve to a server of the same etcd that serves it.

use crate::Result;
use pintle_e2e::{Cli, PATIENCE, config};
use pintle_harness::{Etcd, MASTER_TOKEN, OTHER_TOKEN, Server, definition, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use tempfile::TempDir;

/// The groups and versions that only one of the servers serves.
const LACKING: &str = "batch/v1=false,authentication.k8s.io/v1=false";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Two servers on one etcd; dropping kills them before etcd.
struct Cluster {
    lacking: Server,
    whole: Server,
    _etcd: Etcd,
    _certificates: TempDir,
}

impl Cluster {
    fn start() -> Result<Cluster> {
        let (etcd, certificates) = (Etcd::start(1)?, tempfile::tempdir()?);
        let start = |name: &str, flag: &str| -> Result<Server> {
            let peer_ca = certificates.path().join("ca.crt");
            let config = config()?
                .hostname(name)
                .cert_dir(certificates.path())
                .flag(format!("--etcd-servers={}", etcd.urls()))
                .flag(format!("--peer-ca-file={}", peer_ca.display()))
                .flag("--advertise-address=127.0.0.1")
                .flag(flag);
            Server::start(config)
        };
        let whole = start("whole", "--runtime-config=")?;
        let lacking = start("lacking", &format!("--runtime-config={LACKING}"))?;
        let cluster = Cluster { lacking, whole, _etcd: etcd, _certificates: certificates };
        wait_for("the resources of the other server", PATIENCE, || {
            cluster.groups("").ok().filter(|groups| groups.contains(&"batch".to_owned()))
        })?;
        Ok(cluster)
    }

    /// The groups in the aggregated discovery of the server that lacks some.
    fn groups(&self, parameter: &str) -> Result<Vec<String>> {
        let accept = format!("{AGGREGATED}{parameter}");
        let answer = self.lacking.client()?.request("GET", "/apis", &[("accept", &accept)], b"")?.json()?;
        let groups = answer["items"].as_array().ok_or("no list")?;
        Ok(groups.iter().map(|group| group["metadata"]["name"].as_str().unwrap().to_owned()).collect())
    }

    /// The sum of the values of a metric with this text in its labels.
    fn metric(&self, name: &str, label: &str) -> Result<u64> {
        let metrics = self.lacking.client()?.get("/metrics")?.text();
        let rows = metrics.lines().filter(|line| line.starts_with(name) && line.contains(label));
        Ok(rows.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum())
    }
}

#[test]
fn kubectl_finds_and_uses_what_another_server_serves() -> Result {
    let cluster = Cluster::start()?;
    let kubectl = Cli::kubectl(&cluster.lacking)?;
    let resources = kubectl.run(&["api-resources", "--api-group=batch", "-o", "name"])?;
    assert_eq!(resources.lines().collect::<Vec<_>>(), ["cronjobs.batch", "jobs.batch"]);

    let mut watch = kubectl.command(&["get", "jobs", "--watch", "-o", "name"]).spawn()?;
    let mut watched = BufReader::new(watch.stdout.take().unwrap()).lines();
    let created = kubectl.run(&["create", "job", "far", "--image=registry.example.com/far:1"])?;
    assert_eq!(created, "job.batch/far created\n");
    assert_eq!(watched.next().unwrap()?, "job.batch/far");
    assert_eq!(kubectl.json(&["get", "job", "far"])?["spec"]["completions"], 1);
    assert_eq!(kubectl.run(&["label", "job", "far", "a=b"])?, "job.batch/far labeled\n");
    assert_eq!(watched.next().unwrap()?, "job.batch/far");
    let applied = r#"{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": {"schedule": "0 4 * * *",
        "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "c", "image": "registry.example.com/c:1"}]}}}}}}"#;
    assert_eq!(
        kubectl.feed(&["apply", "--server-side", "-f", "-"], applied)?,
        "cronjob.batch/c serverside-applied\n"
    );
    let deleted = kubectl.run(&["delete", "job,cronjob", "--all"])?;
    assert!(deleted.contains("\"far\" deleted") && deleted.contains("\"c\" deleted"), "{deleted}");
    watch.kill()?;
    watch.wait()?;

    let labels = "group=\"batch\",resource=\"jobs\",version=\"v1\"";
    assert!(cluster.metric("apiserver_rerouted_request_total", labels)? >= 4);
    assert!(
        cluster.metric("apiserver_rerouted_request_total", "group=\"\"")? >= 2,
        "questions for discovery"
    );
    Ok(())
}

#[test]
fn discovery_lists_all_servers_or_this_one() -> Result {
    let cluster = Cluster::start()?;
    let all = cluster.groups("")?;
    let accept = [("accept", AGGREGATED)];
    let whole = cluster.whole.client()?.request("GET", "/apis", &accept, b"")?;
    let lacking = cluster.lacking.client()?.request("GET", "/apis", &accept, b"")?;
    assert_eq!(lacking.json()?, whole.json()?, "both servers list the same");
    assert_eq!(lacking.header("etag"), whole.header("etag"));
    let own = cluster.groups(";profile=nopeer")?;
    let missing: Vec<&String> = all.iter().filter(|group| !own.contains(group)).collect();
    assert_eq!(missing, ["authentication.k8s.io", "batch"]);
    assert!(own.iter().all(|group| all.contains(group)));
    assert!(cluster.metric("aggregator_discovery_nopeer_requests_total", "")? >= 1);
    assert!(cluster.metric("aggregator_discovery_peer_aggregated_cache_misses_total", "")? >= 1);
    // Documents of single groups, and the core group, are those of the server alone.
    let client = cluster.lacking.client()?;
    assert_eq!(client.get("/apis/batch/v1")?.status, 404);
    Ok(())
}

#[test]
fn the_other_server_learns_of_the_user_and_decides_itself() -> Result {
    let cluster = Cluster::start()?;
    let admin = cluster.lacking.client()?;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let user = |headers: &[(&str, &str)], token: &str| -> Result<Value> {
        let client = cluster.lacking.anonymous_client()?.with_token(token);
        let headers: Vec<_> = [("content-type", "application/json")].iter().chain(headers).copied().collect();
        let answer = client.request("POST", reviews, &headers, review.to_string().as_bytes())?;
        assert_eq!(answer.status, 201, "{}", answer.text());
        Ok(answer.json()?["status"]["userInfo"].clone())
    };
    // Headers of the client about its user are not forwarded.
    let lies = [("x-remote-user", "evil"), ("x-remote-group", "system:masters"), ("x-remote-uid", "0")];
    let stranger = user(&lies, OTHER_TOKEN)?;
    assert_eq!(stranger["username"], "stranger");
    assert_eq!(stranger["uid"], "2");
    assert_eq!(stranger["groups"], json!(["system:authenticated"]));
    let impersonated =
        [("impersonate-user", "jane"), ("impersonate-group", "crew"), ("impersonate-extra-scope", "a")];
    let jane = user(&impersonated, MASTER_TOKEN)?;
    assert_eq!(jane["username"], "jane");
    assert_eq!(jane["groups"], json!(["crew", "system:authenticated"]));
    assert_eq!(jane["extra"]["scope"], json!(["a"]));

    let stranger = cluster.lacking.anonymous_client()?.with_token(OTHER_TOKEN);
    let refused = stranger.get(JOBS)?;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()?["reason"], "Forbidden");
    assert_eq!(cluster.metric("apiserver_rerouted_request_total", "resource=\"jobs\"")?, 0, "refused here");
    // A request that was forwarded already is not forwarded again, also if any client set the mark.
    let headers = [("x-kubernetes-peer-proxied", "true")];
    assert_eq!(admin.request("GET", JOBS, &headers, b"")?.status, 404);
    assert_eq!(admin.get(JOBS)?.status, 200);
    assert_eq!(admin.get("/apis/batch/v1/namespaces/default/nothings")?.status, 404);
    assert_eq!(admin.get("/apis/batch/v7/namespaces/default/jobs")?.status, 404);
    Ok(())
}

#[test]
fn connections_are_upgraded_through_the_other_server() -> Result {
    let cluster = Cluster::start()?;
    let mut connection = cluster.lacking.client()?.connect()?;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("origin", "https://console.example.com"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    connection.send("GET", &format!("{JOBS}?watch=true"), &headers, b"")?;
    let (status, headers) = connection.head()?;
    assert_eq!(status, 101, "{headers:?}");
    let kubectl = Cli::kubectl(&cluster.whole)?;
    kubectl.run(&["create", "job", "near", "--image=registry.example.com/near:1"])?;
    // The head of a text frame of medium length: its type, 126, and the length.
    let head = connection.read(4)?;
    assert_eq!(head[..2], [0x81, 126]);
    let event: Value =
        serde_json::from_slice(&connection.read(u16::from_be_bytes([head[2], head[3]]).into())?)?;
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("near")));
    assert_eq!(cluster.metric("apiserver_rerouted_request_total", "code=\"101\"")?, 1);
    Ok(())
}

#[test]
fn requests_fail_while_the_other_server_is_away_and_succeed_when_it_is_back() -> Result {
    let mut cluster = Cluster::start()?;
    let client = cluster.lacking.client()?;
    assert_eq!(client.get(JOBS)?.status, 200);
    cluster.whole.kill()?;
    let refused = client.get(JOBS)?;
    assert_eq!(refused.status, 503, "{}", refused.text());
    // The lease of its address expires.
    let message = "Error getting ip and port info of the remote server while proxying";
    let status = wait_for("the end of the lease", PATIENCE, || {
        client.get(JOBS).ok()?.json().ok().filter(|status: &Value| status["message"] == message)
    })?;
    assert_eq!(
        status,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": "ServiceUnavailable", "code": 503
        })
    );
    assert!(cluster.metric("apiserver_peer_proxy_errors_total", "type=\"endpoint_resolution\"")? >= 1);
    cluster.whole.restart()?;
    wait_for("the other server", PATIENCE, || client.get(JOBS).ok().filter(|answer| answer.status == 200))?;
    // A server that stops in peace takes its leases with it.
    cluster.whole.terminate()?;
    cluster.whole.wait_for_end()?;
    wait_for("the end of the identity", PATIENCE, || {
        client.get(JOBS).ok().filter(|answer| answer.status == 404)
    })?;
    assert!(!cluster.groups("")?.contains(&"batch".to_owned()));
    Ok(())
}

#[test]
fn custom_resources_are_never_forwarded() -> Result {
    let mut cluster = Cluster::start()?;
    let client = cluster.lacking.client()?;
    let (object, path) = (definition::definition(0), definition::path_of(0));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.post(definitions, &object)?.status, 201);
    wait_for("the custom resource", PATIENCE, || {
        client.get(&path).ok().filter(|answer| answer.status == 200)
    })?;
    // The other server is asked anew, and lists the custom resource.
    cluster.whole.kill()?;
    cluster.whole.restart()?;
    let name = object["metadata"]["name"].as_str().unwrap();
    wait_for("the other server", PATIENCE, || client.get(JOBS).ok().filter(|answer| answer.status == 200))?;
    assert_eq!(client.delete(&format!("{definitions}/{name}"))?.status, 200);
    wait_for("its end", PATIENCE, || client.get(&path).ok().filter(|answer| answer.status == 404))?;
    let label = format!("group=\"{}\"", definition::group_of(0));
    assert_eq!(cluster.metric("apiserver_rerouted_request_total", &label)?, 0);
    Ok(())
}
