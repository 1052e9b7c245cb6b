//! Computes component statuses: the health of the scheduler, the controller manager and the store.

use crate::engines::Engines;
use http::{HeaderMap, Request};
use pintle_dialer::{Client, Dialer, TlsSettings, empty_body};
use pintle_machinery::{GroupResource, Status, Value, json};
use pintle_registry::{BoxFuture, ComputedObjects};
use pintle_storage::Storage;
use std::{sync::Arc, time::Duration};

/// How long a component may take to answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The size limit of an answer, in bytes.
const MAX_SIZE: usize = 10 << 10;

/// The components whose health is computed, by name.
pub(crate) struct ComponentStatuses(Vec<(String, Component)>);

enum Component {
    /// An HTTP server on this machine, whose certificate is its own.
    Http(&'static str),
    /// A storage engine.
    Storage(Arc<dyn Storage>),
}

impl ComponentStatuses {
    /// The components at their default ports on this machine, and the engines.
    pub(crate) fn new(engines: &Engines) -> ComponentStatuses {
        let mut components = vec![
            ("controller-manager".to_owned(), Component::Http("https://127.0.0.1:10257/healthz")),
            ("scheduler".to_owned(), Component::Http("https://127.0.0.1:10259/healthz")),
        ];
        let engines = engines.all().enumerate();
        components.extend(
            engines.map(|(at, engine)| (format!("etcd-{at}"), Component::Storage(engine.storage.clone()))),
        );
        ComponentStatuses(components)
    }
}

impl Component {
    /// Whether it is healthy, with the message, and the error of the check.
    async fn check(&self) -> (bool, String, String) {
        match self {
            Component::Http(url) => match tokio::time::timeout(TIMEOUT, probe(url)).await {
                Ok(Ok(text)) => (true, text, String::new()),
                Ok(Err(message)) => (false, message, String::new()),
                Err(_) => {
                    let reason = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                    (false, format!("Get \"{url}\": {reason}"), String::new())
                }
            },
            Component::Storage(storage) => match tokio::time::timeout(TIMEOUT, storage.health()).await {
                Ok(Ok(())) => (true, "ok".to_owned(), String::new()),
                Ok(Err(error)) => (false, String::new(), error.to_string()),
                Err(_) => (false, String::new(), "context deadline exceeded".to_owned()),
            },
        }
    }
}

/// The text of a healthy component.
///
/// # Errors
/// The message of an unhealthy one.
async fn probe(url: &str) -> Result<String, String> {
    let failed = |cause: &dyn std::fmt::Display| format!("Get \"{url}\": {cause}");
    let settings = TlsSettings { ca: &[], insecure: true, client_certificate: None, both_protocols: true };
    let client =
        Client::new("127.0.0.1".to_owned(), &settings, &Dialer::default()).map_err(|error| failed(&error))?;
    let mut request = Request::new(empty_body());
    *request.uri_mut() = url.parse().map_err(|error| failed(&error))?;
    *request.headers_mut() = HeaderMap::new();
    let (head, body) = client.send(request).await.map_err(|cause| failed(&cause))?.into_parts();
    let body = body.whole(MAX_SIZE).await.map_err(|cause| failed(&cause))?;
    match head.status.as_u16() {
        200..400 => Ok(String::from_utf8_lossy(&body).into_owned()),
        status => Err(format!("HTTP probe failed with statuscode: {status}")),
    }
}

async fn status(name: &str, component: &Component) -> Value {
    let (is_healthy, message, error) = component.check().await;
    let mut condition =
        json!({"type": "Healthy", "status": if is_healthy { "True" } else { "False" }, "message": message});
    if let (Some(condition), false) = (condition.as_object_mut(), error.is_empty()) {
        condition.insert("error", error.into());
    }
    json!({"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": [condition]})
}

impl ComputedObjects for ComponentStatuses {
    fn list(&self) -> BoxFuture<'_, Vec<Value>> {
        let all = self.0.iter().map(|(name, component)| status(name, component));
        Box::pin(futures_util::future::join_all(all))
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            match self.0.iter().find(|(own, _)| own == name) {
                Some((_, component)) => Ok(status(name, component).await),
                None => Err(Status::not_found(&GroupResource::new("", "componentstatus"), name)),
            }
        })
    }
}
