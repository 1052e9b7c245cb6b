//! `/statusz`: the version and the uptime of the server
//! (<https://kubernetes.io/docs/reference/instrumentation/zpages/>).

use super::Front;
use crate::base::{
    body::Body,
    request::Request,
    response::{Measured, Response, with_content_type},
    warning::Warnings,
};
use http::header;
use jiff::Timestamp;
use pintle_machinery::{Status, Value, ValueExt, codec::yaml};
use serde_json::json;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json(&'static str),
    Yaml(&'static str),
}

/// The versions of the kind `Statusz`.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

const NOTICE: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees \
                      and is for debugging purposes only.";

/// Answers a request.
pub(super) fn serve(front: &Front, request: &Request, version: &Value) -> Response {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let mut response = match negotiate(accept.unwrap_or_default()) {
        Some(form) => answer(front, form, version),
        None => not_acceptable(),
    };
    response.extensions_mut().insert(Measured {
        resource: "statusz",
        subresource: "",
        component: "apiserver",
    });
    response
}

fn answer(front: &Front, form: Form, version: &Value) -> Response {
    let started = i64::try_from(front.metrics.start_time()).unwrap_or_default();
    let start = Timestamp::from_second(started).unwrap_or(Timestamp::UNIX_EPOCH);
    let uptime = Timestamp::now().as_second().saturating_sub(started);
    let binary = version.str_at("gitVersion").trim_start_matches('v').split('+').next().unwrap_or_default();
    let emulation = format!("{}.{}", version.str_at("emulationMajor"), version.str_at("emulationMinor"));
    let go = version.str_at("goVersion");
    // Those of the server itself that this document is about, in their order.
    let paths = ["/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version"];
    let (api, is_yaml) = match form {
        Form::Text => {
            let (hours, minutes, seconds) = (uptime / 3600, uptime / 60 % 60, uptime % 60);
            let text = format!(
                "\napiserver statusz\n{NOTICE}\n\nStarted: {}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\n\
                 Go version: {go}\nBinary version: {binary}\nEmulation version: {emulation}\nPaths: {}\n",
                start.strftime("%a %b %e %H:%M:%S UTC %Y"),
                paths.join(" "),
            );
            return with_content_type(200, "text/plain; charset=utf-8", Body::from(text));
        }
        Form::Json(api) => (api, false),
        Form::Yaml(api) => (api, true),
    };
    let document = json!({
        "kind": "Statusz",
        "apiVersion": format!("config.k8s.io/{api}"),
        "metadata": {"name": "apiserver"},
        "startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "uptimeSeconds": uptime,
        "goVersion": go,
        "binaryVersion": binary,
        "emulationVersion": emulation,
        "paths": paths,
    });
    let parameters = format!("g=config.k8s.io;v={api};as=Statusz");
    let mut response = match is_yaml {
        false => {
            let text = format!("{document:#}");
            with_content_type(200, &format!("application/json;{parameters}"), Body::from(text))
        }
        true => {
            let bytes = bytes::Bytes::from(yaml::encode_any(&document));
            with_content_type(200, &format!("application/yaml;{parameters}"), Body::from(bytes))
        }
    };
    if api != VERSIONS[0] {
        let warnings = Warnings::default();
        warnings.add("This version of the statusz endpoint is deprecated. Please use a newer version.");
        warnings.write_to(response.headers_mut());
    }
    response
}

/// The form of the first clause that has one, by descending quality.
fn negotiate(accept: &str) -> Option<Form> {
    if accept.trim().is_empty() {
        return Some(Form::Text);
    }
    let mut clauses: Vec<(f64, Option<Form>)> = accept.split(',').map(clause).collect();
    clauses.sort_by(|left, right| right.0.total_cmp(&left.0));
    clauses.into_iter().find_map(|(_, form)| form)
}

fn clause(text: &str) -> (f64, Option<Form>) {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let quality = parameter("q").and_then(|value| value.parse().ok()).unwrap_or(1.0);
    let api = VERSIONS.into_iter().find(|version| {
        parameter("v") == Some(*version)
            && parameter("g") == Some("config.k8s.io")
            && parameter("as") == Some("Statusz")
    });
    let form = match media_type {
        "text/plain" | "text/*" | "*/*" => Some(Form::Text),
        "application/json" => api.map(Form::Json),
        "application/yaml" => api.map(Form::Yaml),
        _ => None,
    };
    (quality, form)
}

/// The refusal of other media types: JSON, whatever is accepted.
fn not_acceptable() -> Response {
    let message =
        "only the following media types are accepted: application/json, application/yaml, text/plain";
    crate::base::response::json_failure(&Status::not_acceptable(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_negotiated() {
        for (accept, expected) in [
            ("", Some(Form::Text)),
            ("*/*", Some(Form::Text)),
            ("text/plain", Some(Form::Text)),
            ("application/json", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", Some(Form::Json("v1beta1"))),
            ("application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz", Some(Form::Yaml("v1alpha1"))),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz;q=0.5,text/plain", Some(Form::Text)),
            ("text/html", None),
        ] {
            assert_eq!(negotiate(accept), expected, "{accept}");
        }
    }
}
