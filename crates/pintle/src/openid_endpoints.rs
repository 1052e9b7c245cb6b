//! Serves the documents by which others verify the server's tokens: `/.well-known/openid-configuration` and
//! `/openid/v1/jwks`.

use http::{HeaderValue, Method, header};
use pintle_apiserver::{
    base::{
        request::Request,
        response::{Response, accept_only, json_failure, negotiated_failure, with_content_type},
    },
    endpoints::method_not_allowed,
    server::PlainEndpoints,
};
use pintle_machinery::Status;
use pintle_offload::aside;
use pintle_service_account::{CONFIGURATION_PATH, KEYS_PATH, OpenIdMetadata};

const JSON: &str = "application/json";
/// [RFC 7517, section 8.5.1](https://www.rfc-editor.org/rfc/rfc7517#section-8.5.1).
const KEY_SET: &str = "application/jwk-set+json";

/// Serves the documents of an [`OpenIdMetadata`].
pub(crate) struct OpenIdEndpoints(pub(crate) OpenIdMetadata);

impl PlainEndpoints for OpenIdEndpoints {
    fn serve(&self, request: &Request) -> Option<Response> {
        let path = request.uri().path();
        let behind =
            |root: &str| path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let media_type = match (behind(CONFIGURATION_PATH), behind(KEYS_PATH)) {
            (Some("" | "/"), _) => JSON,
            (_, Some("" | "/")) => KEY_SET,
            (None, None) => return None,
            // The paths below belong to the web service of the document.
            _ => return Some(negotiated_failure(&Status::no_such_resource(), request.headers(), None)),
        };
        if *request.method() != Method::GET {
            return Some(negotiated_failure(&method_not_allowed(), request.headers(), None));
        }
        if let Err(refusal) = accept_only(request.headers(), media_type) {
            return Some(*refusal);
        }
        // On first use the server may have to generate its key.
        let document = aside(|| match media_type {
            KEY_SET => self.0.keys(),
            _ => self.0.configuration(),
        });
        let text = match document {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(%error, "the keys of service-account tokens cannot be told");
                return Some(json_failure(&Status::internal_error("there are no keys")));
            }
        };
        let mut response = with_content_type(200, media_type, text);
        let age = format!("public, max-age={}", self.0.max_age_seconds());
        if let Ok(age) = HeaderValue::from_str(&age) {
            response.headers_mut().insert(header::CACHE_CONTROL, age);
        }
        Some(response)
    }

    fn paths(&self) -> Vec<String> {
        [CONFIGURATION_PATH, KEYS_PATH].map(str::to_owned).into()
    }
}
