//! The conversion strategy `Webhook`.
//!
//! Objects of other versions are sent to the webhook in one review, or in several when they are large. When a webhook
//! fails, times out or responds wrongly, the request fails with an error, and stored objects are unchanged.

use super::answer::{Question, Refused, converted, kind_of, read};
use super::metrics::{ConversionMetrics, FailureType};
use super::review::{self, ReviewVersion};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_dialer::Outbound;
use pintle_machinery::{GroupVersion, Status, Value, ValueExt};
use pintle_registry::{BoxFuture, Converter};
use pintle_webhook::{ClientConfig, Endpoint, ServiceReference, WebhookClient};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The time limit of one webhook call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of the objects in one review, in bytes: lists are unbounded, and a review is held in memory.
const REVIEW_SIZE: usize = 2 << 20;

/// The dependencies that all conversion webhooks share.
#[derive(Clone)]
pub(crate) struct Webhooks {
    pub(crate) outbound: Outbound,
    pub(crate) metrics: ConversionMetrics,
}

/// Converts objects by webhook calls.
pub(crate) struct WebhookConverter {
    definition: String,
    /// The client, or the reason why it cannot be built.
    client: Result<WebhookClient, String>,
    version: Option<ReviewVersion>,
    metrics: ConversionMetrics,
}

impl WebhookConverter {
    /// Creates the converter from `spec.conversion.webhook` of a definition.
    pub(crate) fn new(definition: &str, webhook: &Value, webhooks: &Webhooks) -> WebhookConverter {
        let versions = webhook.items_at("conversionReviewVersions").iter().filter_map(Value::as_str);
        let config = client_config(webhook.at("clientConfig").unwrap_or(&Value::Null));
        let client = WebhookClient::new(&config, &webhooks.outbound).map_err(|error| error.to_string());
        WebhookConverter {
            definition: definition.to_owned(),
            client,
            version: ReviewVersion::choose(versions),
            metrics: webhooks.metrics.clone(),
        }
    }

    async fn convert_all(&self, objects: Vec<Value>, to: &GroupVersion) -> Result<Vec<Value>, String> {
        let version = to.to_string();
        let mut objects: Vec<Option<Value>> = objects.into_iter().map(Some).collect();
        let mut done = vec![Value::Null; objects.len()];
        let mut places = Vec::new();
        let mut bodies = Vec::new();
        let mut size = 0;
        for place in 0..objects.len() {
            let Some(object) = objects.get_mut(place).and_then(|slot| slot.as_mut()) else { continue };
            if is_converted_by_name(object, &version) {
                if let (Some(slot), Some(object)) =
                    (done.get_mut(place), objects.get_mut(place).and_then(Option::take))
                {
                    *slot = object;
                }
                continue;
            }
            let body = review::object(object);
            if size > 0 && size + body.len() > REVIEW_SIZE {
                self.review(
                    &mut objects,
                    &mut done,
                    std::mem::take(&mut places),
                    std::mem::take(&mut bodies),
                    to,
                )
                .await?;
                size = 0;
            }
            size += body.len();
            places.push(place);
            bodies.push(body);
        }
        if !places.is_empty() {
            self.review(&mut objects, &mut done, places, bodies, to).await?;
        }
        Ok(done)
    }

    /// Sends the objects at these positions in one review, and replaces them by the converted ones.
    async fn review(
        &self,
        objects: &mut [Option<Value>],
        done: &mut [Value],
        places: Vec<usize>,
        bodies: Vec<Vec<u8>>,
        to: &GroupVersion,
    ) -> Result<(), String> {
        let taken = places.iter().filter_map(|place| objects.get_mut(*place)?.take()).collect();
        let converted = self.ask(taken, bodies, to).await?;
        for (place, object) in places.into_iter().zip(converted) {
            if let Some(slot) = done.get_mut(place) {
                *slot = object;
            }
        }
        Ok(())
    }

    async fn ask(
        &self,
        objects: Vec<Value>,
        bodies: Vec<Vec<u8>>,
        to: &GroupVersion,
    ) -> Result<Vec<Value>, String> {
        let version = self.version.ok_or("no supported conversion review versions")?;
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let started = Instant::now();
        let about = objects.first().map(kind_of).unwrap_or_default();
        let uid = Uuid::new_v4().to_string();
        let question = review::review(version, &uid, &to.to_string(), &bodies);
        drop(bodies);
        let answer = client.post(question, TIMEOUT).await.map_err(|error| error.to_string());
        let answer = answer.and_then(|answer| read(&answer, version)).map_err(|error| {
            Refused(FailureType::Call, format!("conversion webhook for {about} failed: {error}"))
        });
        let found = answer.and_then(|answer| converted(answer, Question { version, uid: &uid, to, objects }));
        self.metrics.called(started.elapsed(), found.as_ref().err().map(|Refused(failure, _)| *failure));
        found.map_err(|Refused(_, why)| why)
    }
}

/// Converts an object that needs no webhook: one already of the version, or an empty one, as for building empty
/// objects, which only needs a new `apiVersion`. Returns whether it did.
fn is_converted_by_name(object: &mut Value, version: &str) -> bool {
    if object.str_at("apiVersion") == version {
        return true;
    }
    let is_empty = object.as_object().is_some_and(|members| {
        members.len() == 2 && members.contains_key("kind") && members.contains_key("apiVersion")
    });
    if is_empty {
        object.set("apiVersion", version);
    }
    is_empty
}

impl Converter for WebhookConverter {
    fn convert<'a>(
        &'a self,
        objects: Vec<Value>,
        to: &GroupVersion,
    ) -> BoxFuture<'a, Result<Vec<Value>, Status>> {
        let to = to.clone();
        Box::pin(async move {
            let started = Instant::now();
            let other = objects.iter().map(|object| object.str_at("apiVersion"));
            let to_version = to.to_string();
            let from = other.into_iter().find(|version| *version != to_version).unwrap_or(&to_version);
            let from = from.rsplit('/').next().unwrap_or_default().to_owned();
            let converted = self.convert_all(objects, &to).await;
            if from != to.version {
                let took = started.elapsed();
                self.metrics.converted(&self.definition, &from, &to.version, converted.is_ok(), took);
            }
            // A webhook's failure has no status of its own.
            converted.map_err(Status::unknown)
        })
    }
}

fn client_config(config: &Value) -> ClientConfig {
    let endpoint = match config.at("service") {
        Some(service) => Endpoint::Service(ServiceReference {
            namespace: service.str_at("namespace").to_owned(),
            name: service.str_at("name").to_owned(),
            port: service.i64_at("port").and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
            path: service.str_at("path").to_owned(),
        }),
        None => Endpoint::Url(config.str_at("url").to_owned()),
    };
    let ca_bundle = STANDARD.decode(config.str_at("caBundle")).unwrap_or_default();
    ClientConfig { endpoint, ca_bundle }
}
