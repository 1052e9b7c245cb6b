//! A webhook over TLS that admits every object.

use crate::{Error, https_server};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// An admission webhook that answers until the process ends.
pub struct AdmittingWebhook {
    address: SocketAddr,
    certificate: String,
    calls: Arc<AtomicUsize>,
}

impl AdmittingWebhook {
    /// Starts the webhook on a free port. Its certificate is its own authority.
    ///
    /// # Errors
    /// When no port or no certificate can be had.
    pub fn start() -> Result<AdmittingWebhook, Error> {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let (address, certificate) = https_server::serve(("127.0.0.1", 0), "127.0.0.1", move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            admit(request.into_body())
        })?;
        Ok(AdmittingWebhook { address, certificate, calls })
    }

    /// The URL of the webhook.
    pub fn url(&self) -> String {
        format!("https://{}/admit", self.address)
    }

    /// The certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The number of calls so far.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

async fn admit(body: Incoming) -> Response<Full<Bytes>> {
    let review: Option<Value> = match body.collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).ok(),
        Err(_) => None,
    };
    let Some(review) = review else {
        let mut response = Response::new(Full::default());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review.pointer("/request/uid"), "allowed": true},
    });
    Response::new(Full::from(answer.to_string()))
}
