//! Tests kube-rs against a started server: CRUD, watcher, reflector.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{WatchStreamExt, reflector, watcher},
};
use pintle_harness::Server;
use serde_json::{from_value, json};
use tokio::time::timeout;

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;

const PATIENCE: Duration = Duration::from_secs(30);

fn start() -> Result<Server> {
    let binary =
        std::env::var_os("PINTLE_SERVER").ok_or("PINTLE_SERVER is not set: run `cargo xtask test e2e`")?;
    Server::start(pintle_harness::Config::new(binary))
}

async fn client(server: &Server) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([("app".to_owned(), "kube-rs".to_owned())])),
            ..Default::default()
        },
        data: Some(BTreeMap::from([("key".to_owned(), value.to_owned())])),
        ..Default::default()
    }
}

fn value(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("key").map(String::as_str)
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_created_read_changed_and_deleted() -> Result {
    let server = start()?;
    let client = client(&server).await?;
    let version = client.apiserver_version().await?;
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));

    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let post = PostParams::default();
    let created = maps.create(&post, &config_map("a", "1")).await?;
    assert!(created.uid().is_some());
    match maps.create(&post, &config_map("a", "1")).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"))
        }
        other => panic!("{other:?}"),
    }
    let mut map = maps.get("a").await?;
    map.data = Some(BTreeMap::from([("key".to_owned(), "2".to_owned())]));
    let replaced = maps.replace("a", &post, &map).await?;
    assert_ne!(replaced.resource_version(), created.resource_version());
    match maps.replace("a", &post, &map).await {
        Err(kube::Error::Api(status)) => assert_eq!((status.code, status.reason.as_str()), (409, "Conflict")),
        other => panic!("{other:?}"),
    }
    let patch = Patch::Merge(json!({"data": {"key": "3"}}));
    assert_eq!(value(&maps.patch("a", &PatchParams::default(), &patch).await?), Some("3"));
    assert_eq!(maps.list(&ListParams::default().labels("app=kube-rs")).await?.items.len(), 1);
    assert_eq!(maps.list_metadata(&ListParams::default()).await?.items.len(), 1);
    maps.delete("a", &DeleteParams::default()).await?;
    assert!(maps.get_opt("a").await?.is_none());

    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let deployment: Deployment = from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
            },
        },
    }))?;
    deployments.create(&post, &deployment).await?;
    let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let scale = deployments.patch_scale("web", &PatchParams::default(), &scale).await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(3));
    let status = Patch::Merge(json!({"status": {"readyReplicas": 2, "replicas": 3}}));
    deployments.patch_status("web", &PatchParams::default(), &status).await?;
    let read = deployments.get_status("web").await?;
    assert_eq!(read.status.and_then(|status| status.ready_replicas), Some(2));

    let namespaces: Api<Namespace> = Api::all(client);
    let names: Vec<String> =
        namespaces.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
    assert!(names.contains(&"kube-system".to_owned()), "{names:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_come_in_pages() -> Result {
    let server = start()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await?);
    for number in 0..25 {
        maps.create(&PostParams::default(), &config_map(&format!("m{number:02}"), "x")).await?;
    }
    let mut params = ListParams::default().limit(10);
    let (mut names, mut pages) = (Vec::new(), 0);
    loop {
        let page = maps.list(&params).await?;
        pages += 1;
        names.extend(page.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    let expected: Vec<String> = (0..25).map(|number| format!("m{number:02}")).collect();
    assert_eq!((pages, names), (3, expected));
    Ok(())
}

/// Watches by both initial strategies: a list and a watch, and a watch with initial events.
async fn watch_sees_every_change(config: watcher::Config) -> Result {
    let server = start()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await?);
    let post = PostParams::default();
    maps.create(&post, &config_map("first", "1")).await?;
    // Both strategies begin with what the watch cache has, which may be behind the create.
    let cached = ListParams::default().match_any();
    timeout(PATIENCE, async {
        while maps.list(&cached).await?.items.is_empty() {}
        Result::Ok(())
    })
    .await??;
    let mut events = watcher(maps.clone(), config).boxed();
    let mut seen = Vec::new();
    while let Some(event) = timeout(PATIENCE, events.try_next()).await?? {
        match event {
            watcher::Event::Init => seen.push("init".to_owned()),
            watcher::Event::InitApply(map) => seen.push(format!("initial {}", map.name_any())),
            watcher::Event::InitDone => {
                seen.push("done".to_owned());
                let mut second = maps.create(&post, &config_map("second", "1")).await?;
                second.data = Some(BTreeMap::from([("key".to_owned(), "2".to_owned())]));
                maps.replace("second", &post, &second).await?;
                maps.delete("second", &DeleteParams::default()).await?;
            }
            watcher::Event::Apply(map) => {
                seen.push(format!("apply {} {}", map.name_any(), value(&map).unwrap_or_default()));
            }
            watcher::Event::Delete(map) => {
                seen.push(format!("delete {}", map.name_any()));
                break;
            }
        }
    }
    assert_eq!(seen, ["init", "initial first", "done", "apply second 1", "apply second 2", "delete second"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_lists_first_sees_every_change() -> Result {
    watch_sees_every_change(watcher::Config::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_streams_the_list_sees_every_change() -> Result {
    watch_sees_every_change(watcher::Config::default().streaming_lists()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_holds_what_the_server_holds() -> Result {
    let server = start()?;
    let client = client(&server).await?;
    // Elsewhere the service account controller creates it.
    let account: ServiceAccount = from_value(json!({"metadata": {"name": "default"}}))?;
    Api::<ServiceAccount>::default_namespaced(client.clone())
        .create(&PostParams::default(), &account)
        .await?;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod = |name: &str| {
        from_value::<Pod>(json!({
            "metadata": {"name": name, "labels": {"app": "kube-rs"}},
            "spec": {"containers": [{"name": "c", "image": "registry.example.com/c:1"}]},
        }))
    };
    let post = PostParams::default();
    pods.create(&post, &pod("before")?).await?;
    let (reader, writer) = reflector::store();
    let config = watcher::Config::default().labels("app=kube-rs");
    let stream = reflector(writer, watcher(pods.clone(), config)).default_backoff().touched_objects();
    let driving = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    timeout(PATIENCE, reader.wait_until_ready()).await??;
    assert_eq!(reader.len(), 1);

    pods.create(&post, &pod("after")?).await?;
    let now = DeleteParams::default().grace_period(0);
    pods.delete("before", &now).await?;
    timeout(PATIENCE, async {
        loop {
            let names: Vec<String> = reader.state().iter().map(|pod| pod.name_any()).collect();
            if names == ["after"] {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await?;
    driving.abort();
    Ok(())
}

fn data(map: &ConfigMap) -> BTreeMap<String, String> {
    map.data.clone().unwrap_or_default()
}

/// The managers of an object that apply, with the keys of its data that they own.
fn appliers(map: &ConfigMap) -> BTreeMap<String, Vec<String>> {
    let entries = map.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.operation.as_deref() == Some("Apply"))
        .map(|entry| {
            let fields = entry.fields_v1.as_ref().and_then(|fields| fields.0.get("f:data")?.as_object());
            let fields = fields.into_iter().flat_map(|fields| fields.keys().cloned()).collect();
            (entry.manager.clone().unwrap_or_default(), fields)
        })
        .collect()
}

fn owners(rows: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let fields = |fields: &[&str]| fields.iter().map(|field| format!("f:{field}")).collect();
    rows.iter().map(|(manager, owned)| ((*manager).to_owned(), fields(owned))).collect()
}

fn applied(rows: &[(&str, &str)]) -> Patch<serde_json::Value> {
    let data: BTreeMap<&str, &str> = rows.iter().copied().collect();
    Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": data,
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_appliers_at_war() -> Result {
    let server = start()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await?);
    let (alice, bob) = (PatchParams::apply("alice"), PatchParams::apply("bob"));
    let made = maps.patch("shared", &alice, &applied(&[("colour", "red"), ("size", "small")])).await?;
    assert_eq!(appliers(&made), owners(&[("alice", &["colour", "size"])]));
    match maps.patch("shared", &bob, &applied(&[("colour", "blue")])).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
            let text = "Apply failed with 1 conflict: conflict with \"alice\": .data.colour";
            assert_eq!(status.message, text);
            let causes = status.details.map(|details| details.causes).unwrap_or_default();
            let causes: Vec<_> = causes.iter().map(|cause| (&*cause.reason, &*cause.field)).collect();
            assert_eq!(causes, [("FieldManagerConflict", ".data.colour")]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(maps.get("shared").await?.resource_version(), made.resource_version());
    let taken = maps.patch("shared", &bob.force(), &applied(&[("colour", "blue")])).await?;
    assert_eq!(data(&taken).get("colour").map(String::as_str), Some("blue"));
    assert_eq!(appliers(&taken), owners(&[("alice", &["size"]), ("bob", &["colour"])]));
    // The manager that lost the field gets a conflict at its next apply.
    match maps.patch("shared", &alice, &applied(&[("colour", "red"), ("size", "small")])).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 409),
        other => panic!("{other:?}"),
    }
    // An update takes the ownership of fields without a conflict.
    let update = PatchParams { field_manager: Some("carol".to_owned()), ..PatchParams::default() };
    let updated = maps.patch("shared", &update, &Patch::Merge(json!({"data": {"size": "large"}}))).await?;
    assert_eq!(appliers(&updated), owners(&[("bob", &["colour"])]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_appliers_at_peace() -> Result {
    let server = start()?;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&server).await?);
    let (alice, bob) = (PatchParams::apply("alice"), PatchParams::apply("bob"));
    maps.patch("shared", &alice, &applied(&[("a", "1"), ("both", "x")])).await?;
    let both = maps.patch("shared", &bob, &applied(&[("b", "2"), ("both", "x")])).await?;
    assert_eq!(appliers(&both), owners(&[("alice", &["a", "both"]), ("bob", &["b", "both"])]));
    // Applying the same again is no change.
    let again = maps.patch("shared", &bob, &applied(&[("b", "2"), ("both", "x")])).await?;
    assert_eq!(again.resource_version(), both.resource_version());
    // A shared field stays until its last owner stops applying it.
    let left = maps.patch("shared", &alice, &applied(&[("a", "1")])).await?;
    assert_eq!(data(&left).keys().collect::<Vec<_>>(), ["a", "b", "both"]);
    let left = maps.patch("shared", &bob, &applied(&[])).await?;
    assert_eq!(data(&left).keys().collect::<Vec<_>>(), ["a"]);
    // An empty map is owned although it has no entries.
    assert_eq!(appliers(&left), owners(&[("alice", &["a"]), ("bob", &[])]));
    Ok(())
}
