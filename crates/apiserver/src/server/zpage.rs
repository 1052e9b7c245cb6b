//! The pages of a component about itself, in the forms that clients select
//! (<https://kubernetes.io/docs/reference/instrumentation/zpages/>).

use crate::base::{
    body::Body,
    encoding::indent,
    negotiation::{MediaType, MediaTypes, is_pretty},
    request::{Request, header_text, query_of},
    response::{Measured, Response, failure_among, with_content_type},
    warning::Warnings,
};
use http::header;
use pintle_machinery::{
    Map, Status, Value,
    codec::{cbor, yaml},
};

/// A page: its kind, and its name in metrics and messages.
pub(super) struct ZPage {
    pub(super) kind: &'static str,
    pub(super) name: &'static str,
}

/// The contents of a page.
pub(super) trait Contents {
    /// The text below the notice.
    fn text(&self) -> String;
    /// The members of the document beside kind, version and metadata, in their order.
    fn members(&self) -> Vec<(&'static str, Value)>;
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json(&'static str),
    Yaml(&'static str),
    Cbor(&'static str),
}

/// The versions of the kinds.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

const NOTICE: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees \
                      and is for debugging purposes only.";

impl ZPage {
    /// Answers a request.
    pub(super) fn serve(
        &self,
        request: &Request,
        media_types: MediaTypes,
        contents: &impl Contents,
    ) -> Response {
        let accept = header_text(request.headers(), header::ACCEPT);
        let mut response = match self.negotiate(accept, media_types) {
            Some(form) => self.answer(request, form, contents),
            None => not_acceptable(request, media_types),
        };
        response.extensions_mut().insert(Measured {
            resource: self.name,
            subresource: "",
            component: "apiserver",
        });
        response
    }

    fn answer(&self, request: &Request, form: Form, contents: &impl Contents) -> Response {
        let api = match form {
            Form::Text => {
                let text = format!("\napiserver {}\n{NOTICE}\n{}", self.name, contents.text());
                return with_content_type(200, "text/plain; charset=utf-8", Body::from(text));
            }
            Form::Json(api) | Form::Yaml(api) | Form::Cbor(api) => api,
        };
        let mut members = vec![
            ("kind", self.kind.into()),
            ("apiVersion", format!("config.k8s.io/{api}").into()),
            ("metadata", pintle_machinery::json!({"name": "apiserver"})),
        ];
        members.extend(contents.members());
        let (media_type, bytes) = match form {
            Form::Text | Form::Json(_) => {
                // The members have the order of the type.
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                let text = format!("{{{}}}\n", members.join(","));
                let text = match is_pretty(request.headers(), query_of(request).first("pretty")) {
                    true => indent(text.as_bytes()),
                    false => text.into(),
                };
                (MediaType::Json, text)
            }
            Form::Yaml(_) => (MediaType::Yaml, yaml::encode_any(&document(members)).into()),
            Form::Cbor(_) => (MediaType::Cbor, cbor::encode_any(&document(members)).into()),
        };
        let media_type = format!("{};g=config.k8s.io;v={api};as={}", media_type.as_str(), self.kind);
        let mut response = with_content_type(200, &media_type, Body::from(bytes));
        if api != VERSIONS[0] {
            let warnings = Warnings::default();
            warnings.add(format!(
                "This version of the {} endpoint is deprecated. Please use a newer version.",
                self.name
            ));
            warnings.write_to(response.headers_mut());
        }
        response
    }

    /// The form of the first clause that has one, by descending quality.
    fn negotiate(&self, accept: &str, media_types: MediaTypes) -> Option<Form> {
        if accept.trim().is_empty() {
            return Some(Form::Text);
        }
        let mut clauses: Vec<(f64, Option<Form>)> =
            accept.split(',').map(|text| self.clause(text, media_types)).collect();
        clauses.sort_by(|left, right| right.0.total_cmp(&left.0));
        clauses.into_iter().find_map(|(_, form)| form)
    }

    fn clause(&self, text: &str, media_types: MediaTypes) -> (f64, Option<Form>) {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter =
            |name: &str| parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let quality = parameter("q").and_then(|value| value.parse().ok()).unwrap_or(1.0);
        let api = VERSIONS.into_iter().find(|version| {
            parameter("v") == Some(*version)
                && parameter("g") == Some("config.k8s.io")
                && parameter("as") == Some(self.kind)
        });
        let form = match media_type {
            "text/plain" | "text/*" | "*/*" => Some(Form::Text),
            "application/json" => api.map(Form::Json),
            "application/yaml" => api.map(Form::Yaml),
            "application/cbor" if media_types.has_cbor() => api.map(Form::Cbor),
            _ => None,
        };
        (quality, form)
    }
}

/// The document with these members.
fn document(members: Vec<(&'static str, Value)>) -> Value {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(Map::from_iter(members))
}

/// The refusal of other media types.
fn not_acceptable(request: &Request, media_types: MediaTypes) -> Response {
    let cbor = if media_types.has_cbor() { ", application/cbor" } else { "" };
    let message = format!(
        "only the following media types are accepted: application/json, application/yaml, text/plain{cbor}"
    );
    let query = query_of(request);
    failure_among(&Status::not_acceptable(message), request.headers(), query.first("pretty"), media_types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_negotiated() {
        let page = ZPage { kind: "Statusz", name: "statusz" };
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
            assert_eq!(page.negotiate(accept, MediaTypes::of_pages(false)), expected, "{accept}");
        }
        let cbor = "application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz";
        assert_eq!(page.negotiate(cbor, MediaTypes::of_pages(false)), None);
        assert_eq!(page.negotiate(cbor, MediaTypes::of_pages(true)), Some(Form::Cbor("v1beta1")));
    }
}
