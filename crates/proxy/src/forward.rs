//! Forwards one request.

use crate::{
    backend_body::{BackendBody, ask_for_gzip},
    body::{Relayed, ResponseBody},
    failure::{Failure, plain},
    headers::{
        append_client, asks_for_upgrade, check_framing, clean_response, remove_hop_by_hop, set_forwarded,
        set_user_agent, state_length, translate_pragma,
    },
    links::{self, Links},
    target::{Origin, Target},
    tunnel::TunnelLife,
    upgrade,
};
use bytes::{Bytes, BytesMut};
use futures_util::future::Either;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request, response};
use http_body::Body;
use http_body_util::BodyExt;
use pintle_dialer::{Cause, Client, IncomingBody, UpstreamBody};
use pintle_go_forms::{Url, quote};
use std::{net::IpAddr, pin::Pin, time::Duration};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// A body of known length up to this many bytes is awaited and sent together with its head.
const WHOLE_BYTES: u64 = 64 << 10;
/// How long such a body is awaited before its head is sent.
const WHOLE_TIMEOUT: Duration = Duration::from_millis(200);
/// When such a body breaks off within this many bytes, the client gets no response at all, since Go's server would
/// still hold the bytes in its buffer.
const HELD_BACK_BYTES: usize = 3584;

/// How a request is forwarded.
pub struct Forwarding<'a> {
    /// The client of the server.
    pub client: &'a Client,
    /// The URL.
    pub target: Target,
    /// The address that the backend and the links of its pages have for the client.
    pub origin: Origin,
    /// The client's address, which is appended to `X-Forwarded-For`.
    pub client_address: Option<IpAddr>,
    /// Whether a redirect is answered with 502; otherwise it passes, with a rewritten location.
    pub rejects_redirects: bool,
    /// The time limit of the whole response; `None` for no limit.
    pub limit: Option<Duration>,
    /// The life of the tunnel that an upgraded connection becomes.
    pub tunnel: TunnelLife,
}

impl Forwarding<'_> {
    /// Forwards a request and returns its response. Dropping the future, or the response's body, aborts the request.
    ///
    /// The request's URI is replaced. `prepare` adds the proxy's own headers; a text from it is the reason why the
    /// request cannot be sent. It gets the client's headers without those that concern the client's connection, so that
    /// a client's `Connection` header never removes what `prepare` adds. A request to upgrade keeps them, and must have
    /// hyper's `OnUpgrade` among its extensions.
    ///
    /// # Errors
    /// When there is no response that could pass.
    pub async fn forward(
        self,
        request: Request<UpstreamBody>,
        prepare: impl FnOnce(&mut HeaderMap) -> Result<(), String>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let (mut head, body) = request.into_parts();
        translate_pragma(head.version, &mut head.headers);
        let is_upgrade = asks_for_upgrade(&head.headers);
        if !is_upgrade {
            remove_hop_by_hop(&mut head.headers);
        }
        set_user_agent(&mut head.headers, is_upgrade);
        prepare(&mut head.headers).map_err(Failure::Unreachable)?;
        match is_upgrade {
            // Few requests are, and their future is large.
            true => Box::pin(self.upgrade(head, body)).await,
            false => self.pass(head, body).await,
        }
    }

    async fn upgrade(
        self,
        mut head: request::Parts,
        body: UpstreamBody,
    ) -> Result<Response<ResponseBody>, Failure> {
        append_client(&mut head.headers, self.client_address);
        self.address(&mut head);
        let answer = upgrade::upgrade(self.client, Request::from_parts(head, body), self.tunnel);
        answer.await.map_err(|error| Failure::Other(error.to_string()))
    }

    async fn pass(
        self,
        mut head: request::Parts,
        body: UpstreamBody,
    ) -> Result<Response<ResponseBody>, Failure> {
        append_client(&mut head.headers, self.client_address);
        set_forwarded(&mut head.headers, &self.target.uri, &self.target.prefix, self.origin);
        self.address(&mut head);
        state_length(&mut head, &body);
        let unpacks = ask_for_gzip(&head.method, &mut head.headers);
        let host = match self.origin {
            Origin::Backend => None,
            Origin::Client => head.headers.get(header::HOST).cloned(),
        };
        let method = head.method.clone();
        let deadline = self.limit.map(|limit| Instant::now() + limit);
        let sent = match deadline {
            None => self.send(head, body).await,
            Some(deadline) => match timeout_at(deadline, self.send(head, body)).await {
                Ok(sent) => sent,
                Err(_) => Err(Cause::Timeout),
            },
        };
        let response = sent.map_err(|error| Failure::Unreachable(error.to_string()))?;
        let (mut head, body) = response.into_parts();
        check_framing(head.version, &head.headers).map_err(Failure::Unreachable)?;
        translate_pragma(head.version, &mut head.headers);
        let body = BackendBody::new(body, &mut head.headers, unpacks);
        let response = Response::from_parts(head, body);
        let links = self.links(host.as_ref().and_then(|host| host.to_str().ok()));
        self.answer(&method, response, &links, deadline.map(sleep_until).map(Box::pin)).await
    }

    /// Sets the URL and the `Host` header.
    fn address(&self, head: &mut request::Parts) {
        let requested = std::mem::replace(&mut head.uri, self.target.uri.clone());
        head.version = http::Version::HTTP_11;
        let host = match self.origin {
            Origin::Backend => head.uri.authority(),
            // A request of HTTP/2 has no such header.
            Origin::Client if head.headers.contains_key(header::HOST) => None,
            Origin::Client => requested.authority(),
        };
        if let Some(Ok(host)) = host.map(|host| HeaderValue::from_str(host.as_str())) {
            head.headers.insert(header::HOST, host);
        }
    }

    /// Sends the request. It is sent again if a kept connection was closed and a repetition does no harm.
    async fn send(
        &self,
        mut head: request::Parts,
        body: UpstreamBody,
    ) -> Result<Response<IncomingBody>, Cause> {
        // The extensions are those of the client's connection.
        head.extensions = http::Extensions::new();
        // The futures around this one would each be moved with it.
        match is_replayable(&head, &body) {
            true => Box::pin(self.client.send_replayable(head)).await,
            false => Box::pin(self.client.send(Request::from_parts(head, body))).await,
        }
    }

    /// The response to the client.
    async fn answer(
        &self,
        method: &Method,
        response: Response<BackendBody>,
        links: &Links<'_>,
        deadline: Option<Pin<Box<Sleep>>>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let (mut head, body) = response.into_parts();
        head.extensions.clear();
        let location = head.headers.get(header::LOCATION).filter(|location| !location.is_empty());
        if let Some(location) = location {
            let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
            match Url::parse(&location) {
                Err(error) => {
                    let why = format!("error trying to parse Location header: {error}");
                    return Err(Failure::Internal(why));
                }
                Ok(_) if self.rejects_redirects && head.status.is_redirection() => {
                    let why = "the backend attempted to redirect this request, which is not permitted";
                    return Ok(plain(StatusCode::BAD_GATEWAY, why.to_owned()));
                }
                Ok(url) => {
                    if let Ok(location) = HeaderValue::from_str(&links.rewrite(url)) {
                        head.headers.insert(header::LOCATION, location);
                    }
                }
            }
        } else if links::is_page(&head.headers) && *method == Method::HEAD {
            // Nobody knows the length that the page would have.
            head.headers.remove(header::CONTENT_LENGTH);
        } else if links::is_page(&head.headers) {
            return Box::pin(page(head, body, links, deadline)).await;
        }
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            let protocol = head.headers.get(header::UPGRADE).map(HeaderValue::as_bytes).unwrap_or_default();
            let protocol = quote(&String::from_utf8_lossy(protocol));
            let why = format!("backend tried to switch protocol {protocol} when \"\" was requested");
            return Err(Failure::Other(why));
        }
        clean_response(head.version, &mut head.headers);
        if head.status == StatusCode::NO_CONTENT {
            // Not even the response to a HEAD has a length.
            head.headers.remove(header::CONTENT_LENGTH);
        }
        if head.status == StatusCode::NOT_MODIFIED {
            // There is no body that they tell of; the client's copy has its own.
            head.headers.remove(header::CONTENT_TYPE);
            head.headers.remove(header::CONTENT_LENGTH);
        }
        let length = match *method == Method::HEAD {
            // The length is not that of this body.
            true => None,
            false => body.size_hint().exact(),
        };
        let body = match length {
            Some(0) => ResponseBody::Full(Bytes::new()),
            Some(length) if length <= WHOLE_BYTES => whole(body, deadline).await,
            _ => ResponseBody::Stream(Relayed::new(Bytes::new(), body, deadline)),
        };
        Ok(finished(head, body))
    }

    /// The links of a page that was requested of `requested_host`; `None` for the host that was dialled.
    fn links<'a>(&'a self, requested_host: Option<&'a str>) -> Links<'a> {
        let uri = &self.target.uri;
        let page_host = uri.authority().map_or("", |authority| authority.as_str());
        let (scheme, host) = match self.origin {
            Origin::Backend => (uri.scheme_str().unwrap_or_default(), page_host),
            Origin::Client => ("", ""),
        };
        let requested_host = requested_host.unwrap_or(page_host);
        Links { scheme, host, page_host, requested_host, prefix: &self.target.prefix }
    }
}

/// A page of HTML, with its links rewritten.
async fn page(
    mut head: response::Parts,
    body: BackendBody,
    links: &Links<'_>,
    deadline: Option<Pin<Box<Sleep>>>,
) -> Result<Response<ResponseBody>, Failure> {
    let rewriting = links::rewrite_page(&head.headers, body, links);
    let rewritten = match deadline {
        None => rewriting.await,
        Some(deadline) => match timeout_at(deadline.deadline(), rewriting).await {
            Ok(rewritten) => rewritten,
            Err(_) => Err("context deadline exceeded".to_owned()),
        },
    };
    clean_response(head.version, &mut head.headers);
    match rewritten {
        Ok(links::Page::Rewritten(page)) => {
            head.headers.remove(header::CONTENT_LENGTH);
            head.headers.remove(header::TRAILER);
            Ok(finished(head, ResponseBody::Full(page)))
        }
        Ok(links::Page::Unchanged(body)) => Ok(finished(head, ResponseBody::Stream(body))),
        Err(error) => Err(Failure::Other(error)),
    }
}

fn finished(head: response::Parts, body: ResponseBody) -> Response<ResponseBody> {
    // The versions of the two connections have nothing to do with each other.
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// Whether a second attempt has the same effect as the first: the rule of Go's HTTP client.
fn is_replayable(head: &request::Parts, body: &UpstreamBody) -> bool {
    let is_safe = matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE);
    let is_idempotent = |headers: &HeaderMap| {
        headers.contains_key("idempotency-key") || headers.contains_key("x-idempotency-key")
    };
    body.is_end_stream() && (is_safe || is_idempotent(&head.headers))
}

/// Reads a short body to its end. One that takes its time, or breaks off late, is passed on piece by piece.
async fn whole(mut body: BackendBody, deadline: Option<Pin<Box<Sleep>>>) -> ResponseBody {
    let until = Instant::now() + WHOLE_TIMEOUT;
    let mut first = Either::Left(Bytes::new());
    loop {
        match timeout_at(until, body.frame()).await {
            Err(_) => return ResponseBody::Stream(Relayed::new(bytes_of(first), body, deadline)),
            Ok(None) => return ResponseBody::Full(bytes_of(first)),
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "the response of a proxied request broke off");
                let first = bytes_of(first);
                return match first.len() <= HELD_BACK_BYTES {
                    true => ResponseBody::broken(),
                    false => ResponseBody::Stream(Relayed::broken_after(first)),
                };
            }
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                first = match first {
                    Either::Left(bytes) if bytes.is_empty() => Either::Left(data),
                    Either::Left(bytes) => {
                        let mut both = BytesMut::with_capacity(bytes.len() + data.len());
                        both.extend_from_slice(&bytes);
                        both.extend_from_slice(&data);
                        Either::Right(both)
                    }
                    Either::Right(mut all) => {
                        all.extend_from_slice(&data);
                        Either::Right(all)
                    }
                };
                if body.is_end_stream() {
                    return ResponseBody::Full(bytes_of(first));
                }
            }
        }
    }
}

fn bytes_of(bytes: Either<Bytes, BytesMut>) -> Bytes {
    match bytes {
        Either::Left(bytes) => bytes,
        Either::Right(bytes) => bytes.freeze(),
    }
}
