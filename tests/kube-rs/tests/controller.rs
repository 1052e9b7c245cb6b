//! Runs a typical controller on kube-rs: a derived custom resource, reconciled with a finalizer, a status and owned
//! objects.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        controller::{Action, Controller},
        finalizer::{self, Event, finalizer},
        wait::{await_condition, conditions},
        watcher,
    },
};
use pintle_harness::Server;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

type Result<T = ()> = std::result::Result<T, pintle_harness::Error>;

const PATIENCE: Duration = Duration::from_secs(30);
const MANAGER: &str = "greeter";
const FINALIZER: &str = "greetings.example.com/cleanup";

/// Somebody to be greeted.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
#[kube(shortname = "gr", derive = "PartialEq")]
#[kube(printcolumn = r#"{"name":"Whom","type":"string","jsonPath":".spec.whom"}"#)]
#[kube(selectable = ".spec.whom")]
#[kube(validation = Rule::new("self.spec.whom != 'nobody'").message("somebody has to be greeted"))]
#[serde(rename_all = "camelCase")]
struct GreetingSpec {
    /// The name of the greeted person.
    #[schemars(length(min = 1, max = 40))]
    whom: String,
    /// How often.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 9))]
    times: u32,
    /// In other words.
    note: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GreetingStatus {
    observed_generation: Option<i64>,
    greeting: Option<String>,
}

impl PartialEq for GreetingSpec {
    fn eq(&self, other: &GreetingSpec) -> bool {
        (&self.whom, self.times, &self.note) == (&other.whom, other.times, &other.note)
    }
}

fn once() -> u32 {
    1
}

#[derive(Debug)]
struct Failed(String);

impl std::fmt::Display for Failed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl From<kube::Error> for Failed {
    fn from(error: kube::Error) -> Failed {
        Failed(error.to_string())
    }
}

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

/// Applies the derived definition and waits until it is served.
async fn define(client: &Client) -> Result {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let patch = Patch::Apply(Greeting::crd());
    definitions.patch("greetings.example.com", &PatchParams::apply(MANAGER), &patch).await?;
    let established = await_condition(definitions, "greetings.example.com", conditions::is_crd_established());
    timeout(PATIENCE, established).await??;
    Ok(())
}

/// Maintains a config map for each greeting, and reports it in the status.
async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> std::result::Result<Action, Failed> {
    let greetings: Api<Greeting> = Api::default_namespaced((*client).clone());
    let maps: Api<ConfigMap> = Api::default_namespaced((*client).clone());
    let done = finalizer(&greetings, FINALIZER, greeting, |event| async {
        match event {
            Event::Apply(greeting) => apply(&greetings, &maps, &greeting).await,
            Event::Cleanup(greeting) => {
                maps.delete(&format!("{}-farewell", greeting.name_any()), &DeleteParams::default()).await?;
                Ok(Action::await_change())
            }
        }
    });
    done.await.map_err(|error: finalizer::Error<Failed>| Failed(error.to_string()))
}

async fn apply(
    greetings: &Api<Greeting>,
    maps: &Api<ConfigMap>,
    greeting: &Greeting,
) -> std::result::Result<Action, Failed> {
    let text = vec![format!("Hello {}", greeting.spec.whom); greeting.spec.times as usize].join(", ");
    let params = PatchParams::apply(MANAGER).force();
    let owner = greeting.controller_owner_ref(&());
    for (suffix, owners) in [("", owner.map(|owner| vec![owner])), ("-farewell", None)] {
        let map = ConfigMap {
            metadata: kube::api::ObjectMeta {
                name: Some(format!("{}{suffix}", greeting.name_any())),
                owner_references: owners,
                ..Default::default()
            },
            data: Some([("text".to_owned(), text.clone())].into()),
            ..Default::default()
        };
        maps.patch(&map.name_any(), &params, &Patch::Apply(&map)).await?;
    }
    let status = GreetingStatus { observed_generation: greeting.metadata.generation, greeting: Some(text) };
    if greeting.status.as_ref() != Some(&status) {
        let status = json!({"apiVersion": "example.com/v1", "kind": "Greeting", "status": status});
        greetings.patch_status(&greeting.name_any(), &params, &Patch::Apply(status)).await?;
    }
    Ok(Action::await_change())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_reconciles_derived_custom_resources() -> Result {
    let server = start()?;
    let client = client(&server).await?;
    define(&client).await?;
    let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let controller = Controller::new(greetings.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::new(client.clone()));
    let controller = tokio::spawn(controller.for_each(|_| std::future::ready(())));

    let spec = GreetingSpec { whom: "World".to_owned(), times: 1, note: None };
    let created = greetings.create(&PostParams::default(), &Greeting::new("hello", spec)).await?;
    assert_eq!(created.metadata.generation, Some(1));
    let says = |text: &'static str, generation| {
        move |greeting: Option<&Greeting>| {
            let status = greeting.and_then(|greeting| greeting.status.as_ref());
            status.is_some_and(|status| {
                status.greeting.as_deref() == Some(text) && status.observed_generation == Some(generation)
            })
        }
    };
    timeout(PATIENCE, await_condition(greetings.clone(), "hello", says("Hello World", 1))).await??;
    let map = maps.get("hello").await?;
    assert_eq!(map.data, Some([("text".to_owned(), "Hello World".to_owned())].into()));
    assert_eq!(map.owner_references()[0].uid, created.uid().unwrap_or_default());
    let greeting = greetings.get("hello").await?;
    assert_eq!(greeting.finalizers(), [FINALIZER]);
    assert_eq!(greeting.metadata.generation, Some(1), "neither status nor metadata is another generation");

    // The owned config map is created again.
    maps.delete("hello", &DeleteParams::default()).await?;
    let is_back = |map: Option<&ConfigMap>| map.is_some_and(|map| map.uid().is_some());
    timeout(PATIENCE, await_condition(maps.clone(), "hello", is_back)).await??;

    let patch = Patch::Merge(json!({"spec": {"times": 2, "whom": "Moon"}}));
    greetings.patch("hello", &PatchParams::default(), &patch).await?;
    let twice = says("Hello Moon, Hello Moon", 2);
    timeout(PATIENCE, await_condition(greetings.clone(), "hello", twice)).await??;
    let selected = ListParams::default().fields("spec.whom=Moon");
    assert_eq!(greetings.list(&selected).await?.items.len(), 1);
    assert_eq!(greetings.list(&ListParams::default().fields("spec.whom=World")).await?.items.len(), 0);

    // The finalizer's work is done before the object is removed.
    let uid = greeting.uid().unwrap_or_default();
    greetings.delete("hello", &DeleteParams::default()).await?;
    timeout(PATIENCE, await_condition(greetings.clone(), "hello", conditions::is_deleted(&uid))).await??;
    assert!(maps.get_opt("hello-farewell").await?.is_none());
    controller.abort();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_derived_schema_forbids_is_refused() -> Result {
    let server = start()?;
    let client = client(&server).await?;
    define(&client).await?;
    let greetings: Api<Greeting> = Api::default_namespaced(client.clone());
    let spec = |whom: &str, times| GreetingSpec { whom: whom.to_owned(), times, note: None };
    for (spec, problem) in [
        (spec("", 1), "spec.whom in body should be at least 1 chars long"),
        (spec("World", 10), "spec.times in body should be less than or equal to 9"),
        (spec("nobody", 1), "somebody has to be greeted"),
    ] {
        match greetings.create(&PostParams::default(), &Greeting::new("refused", spec)).await {
            Err(kube::Error::Api(status)) => {
                assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
                assert!(status.message.contains(problem), "{}", status.message);
            }
            other => panic!("{problem}: {other:?}"),
        }
    }
    Ok(())
}
