//! Servers behind API services for tests, without a network.

use crate::{
    ApiServices, Routing, ServiceDirectory,
    ask::{Ask, Question},
    backend::{Backend, Fetched},
};
use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use pintle_dialer::{ClientCertificate, Dialer};
use pintle_machinery::{Value, json};
use pintle_registry::BoxFuture;
use std::{collections::HashMap, sync::Arc};

/// API services that nothing is registered in.
pub(crate) fn api_services() -> Arc<ApiServices> {
    let directory = Arc::new(ServiceDirectory::new(Routing::ClusterIp));
    Arc::new(ApiServices::new(directory, Arc::new(ClientCertificate::default()), Dialer::default()))
}

/// An available API service; `service` is the name of its service, if it has one.
pub(crate) fn api_service(group: &str, version: &str, service: Option<&str>) -> Value {
    let service = service.map(|name| json!({"namespace": "n", "name": name, "port": 443}));
    json!({
        "metadata": {"name": format!("{version}.{group}")},
        "spec": {"group": group, "version": version, "service": service, "groupPriorityMinimum": 100, "versionPriority": 10},
        "status": {"conditions": [{"type": "Available", "status": "True"}]},
    })
}

/// Answers questions from a script.
#[derive(Default)]
pub(crate) struct Script {
    answers: Mutex<HashMap<(String, String), Answer>>,
    asked: Mutex<Vec<(String, Question)>>,
}

#[derive(Clone)]
pub(crate) enum Answer {
    /// Status, headers and body.
    Complete(u16, Vec<(&'static str, &'static str)>, String),
    Refused,
    /// No answer, ever.
    Silent,
}

impl Script {
    /// Sets the answer of the server of a service to the questions for a path.
    pub(crate) fn set(&self, service: &str, path: &str, answer: Answer) {
        self.answers.lock().insert((service.to_owned(), path.to_owned()), answer);
    }

    /// Takes the questions since the last call: service, path, and entity tag.
    pub(crate) fn take(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock());
        let text = |(service, question): (String, Question)| {
            let etag = question.etag.map(|etag| format!(" {etag}")).unwrap_or_default();
            format!("{service} {}{etag}", question.path)
        };
        asked.into_iter().map(text).collect()
    }
}

impl Ask for Script {
    fn ask<'a>(&'a self, backend: &'a Backend, question: Question) -> BoxFuture<'a, Result<Fetched, String>> {
        Box::pin(async move {
            let service = backend.spec().name.clone();
            let answer = self.answers.lock().get(&(service.clone(), question.path.clone())).cloned();
            self.asked.lock().push((service, question));
            match answer {
                Some(Answer::Complete(status, headers, body)) => {
                    let headers: HeaderMap = headers
                        .into_iter()
                        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                        .collect();
                    Ok(Fetched { status, headers, body: body.into() })
                }
                Some(Answer::Silent) => std::future::pending().await,
                Some(Answer::Refused) => Err("connection refused".to_owned()),
                None => Ok(Fetched { status: 404, headers: HeaderMap::new(), body: "{}".into() }),
            }
        })
    }
}
