//! Checks the head of a request before all filters.

use super::{
    head_budget::HEADER_BYTES,
    http1::{Requests, UNCHARGED_HEAD_BYTES, refused, refused_in_http2},
};
use crate::base::{
    body::Body,
    body_budget::{BodyBudget, Charge},
    response::{Response, json_failure},
};
use http::{HeaderValue, Method, Version, header};
use pintle_http1::{Refusal, head::MAX_HEAD_BYTES};

/// The answer to a request that is not executed.
pub(super) enum Unexecuted {
    Response(Box<Response>),
    /// The stream of HTTP/2 is reset.
    Reset(h2::Reason),
}

impl From<Response> for Unexecuted {
    fn from(response: Response) -> Unexecuted {
        Unexecuted::Response(Box::new(response))
    }
}

/// Answers the requests that are answered before all filters, as in Go's server. A large head is charged to the budget of
/// bodies as long as the request is executed.
///
/// # Errors
/// When the request is not executed, with its answer.
pub(super) fn check<B>(
    request: &hyper::Request<B>,
    requests: &Requests,
    budget: &BodyBudget,
) -> Result<Option<Charge>, Unexecuted> {
    if request.version() < Version::HTTP_2
        && let Some(refusal) = requests.next()
    {
        return Err(refused(refusal).into());
    }
    if let Some(refusal) = request.uri().scheme_str().and_then(pintle_http2::Refusal::of_scheme) {
        return Err(
            refused_in_http2(refusal).map_or(Unexecuted::Reset(h2::Reason::PROTOCOL_ERROR), Into::into)
        );
    }
    let headers = request.headers();
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    // Hyper does not enforce the limit on a head that it reads at once.
    if size > MAX_HEAD_BYTES {
        return Err(refused(Refusal::HeadersTooLarge).into());
    }
    // `OPTIONS *` gets an empty response.
    if *request.method() == Method::OPTIONS && request.uri().path() == "*" {
        let mut response = Response::new(Body::empty());
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        return Err(response.into());
    }
    let memory = size + headers.len() * HEADER_BYTES;
    if memory <= UNCHARGED_HEAD_BYTES {
        return Ok(None);
    }
    let mut charge = budget.charge();
    charge.raise_to(memory).map_err(|status| json_failure(&status))?;
    Ok(Some(charge))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(checked: &Result<Option<Charge>, Unexecuted>) -> Option<u16> {
        match checked {
            Err(Unexecuted::Response(response)) => Some(response.status().as_u16()),
            _ => None,
        }
    }

    #[test]
    fn large_heads_of_requests_share_their_memory() {
        let budget = BodyBudget::new(1 << 20);
        let check = |request: &hyper::Request<()>| check(request, &Requests::default(), &budget);
        let with = |count: usize, size: usize| {
            let mut request = hyper::Request::new(());
            for _ in 0..count {
                let value = HeaderValue::from_maybe_shared(bytes::Bytes::from(vec![b'x'; size])).unwrap();
                request.headers_mut().append("x-header", value);
            }
            request
        };
        assert!(matches!(check(&with(10, 1000)), Ok(None)));
        assert_eq!(status(&check(&with(1100, 1000))), Some(431));
        // Many small headers count, too.
        for large in [with(600, 1000), with(4000, 1)] {
            let first = check(&large);
            assert!(matches!(first, Ok(Some(_))));
            assert_eq!(status(&check(&large)), Some(429));
            assert!(matches!(check(&with(10, 1000)), Ok(None)));
            drop(first);
            assert!(check(&large).is_ok());
        }
    }
}
