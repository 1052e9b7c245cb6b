//! Streams texts of other servers, such as logs.

mod messages;

use crate::{
    base::{
        body::Body,
        response::{Proxied, Response, with_content_type},
    },
    proxying::{Interruptions, stop},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Uri, header};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use pintle_dialer::{Cause, Client};
use pintle_go_forms::{Url, quote};
use pintle_machinery::{GroupResource, Status};
use pintle_proxy::{BackendBody, BrokenOff, fetch};
use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
};

pub(crate) use messages::Messages;

/// The most bytes of an error's text that are read.
const MAX_ERROR_BYTES: usize = 50_000;
/// A text that is not followed is sent in pieces of at least this size: the buffer of Go's server.
const PIECE_BYTES: usize = 4096;

/// A text of another server.
pub(crate) struct Text<'a> {
    pub(crate) client: &'a Client,
    pub(crate) uri: Uri,
    /// Whether each piece is sent at once.
    pub(crate) follow: bool,
    /// The resource and the name that failures are told of.
    pub(crate) resource: GroupResource,
    pub(crate) name: &'a str,
}

impl Text<'_> {
    /// Asks for the text, and returns it as it arrives. It ends when the server stops, and when it breaks off.
    ///
    /// # Errors
    /// When there is no text: the failure of the other server, or that of the connection to it.
    pub(crate) async fn stream(self, interruptions: Interruptions) -> Result<Response, Failed> {
        let url = self.uri.to_string();
        let response = match interruptions.wait_for(pin!(fetch(self.client, self.uri))).await {
            Ok(response) => response.map_err(|cause| Failed {
                is_untrusted: is_untrusted(&cause),
                status: Status::unknown(format!("Get {}: {cause}", quote(&url))),
            })?,
            Err(interrupted) => return Ok(interrupted),
        };
        let (head, body) = response.into_parts();
        let code = head.status.as_u16();
        refuse_redirect(code, &head.headers, &url)?;
        if !(200..=206).contains(&code) {
            // A node may take any time for the text of its error.
            let failure = pin!(failure(code, body, &self.resource, self.name));
            return match interruptions.wait_for(failure).await {
                Ok(status) => Err(status.into()),
                Err(interrupted) => Ok(interrupted),
            };
        }
        let body = TextBody {
            text: body,
            gathered: if self.follow { None } else { Some(BytesMut::new()) },
            stopped: Box::pin(stop(interruptions.stopping)),
            is_over: false,
        };
        let mut response = with_content_type(200, "text/plain", Body::Foreign(Box::pin(body)));
        response.extensions_mut().insert(Proxied);
        Ok(response)
    }
}

/// Why there is no text.
pub(crate) struct Failed {
    pub(crate) status: Status,
    /// Whether the certificate of the other server was refused.
    pub(crate) is_untrusted: bool,
}

impl From<Status> for Failed {
    fn from(status: Status) -> Failed {
        Failed { status, is_untrusted: false }
    }
}

fn is_untrusted(cause: &Cause) -> bool {
    matches!(cause, Cause::Tls(_)) && cause.to_string().contains("x509:")
}

/// A redirect could lead anywhere, with the credentials of this server: none is followed.
fn refuse_redirect(code: u16, headers: &HeaderMap, url: &str) -> Result<(), Status> {
    let location = headers.get(header::LOCATION).map(|location| String::from_utf8_lossy(location.as_bytes()));
    let Some(location) = location.filter(|location| !location.is_empty()) else { return Ok(()) };
    if !matches!(code, 301 | 302 | 303 | 307 | 308) {
        return Ok(());
    }
    let message = match Url::parse(&location) {
        Ok(_) => format!("Get {}: redirects forbidden", quote(&location)),
        Err(error) => {
            let location = quote(&location);
            format!("Get {}: failed to parse Location header {location}: {error}", quote(url))
        }
    };
    Err(Status::unknown(message))
}

/// The failure that another server reports.
async fn failure(code: u16, mut body: BackendBody, resource: &GroupResource, name: &str) -> Status {
    let mut text = BytesMut::new();
    while text.len() < MAX_ERROR_BYTES {
        match body.frame().await {
            None => break,
            Some(Ok(frame)) => text.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            Some(Err(_)) => return Status::internal_error("unexpected EOF"),
        }
    }
    text.truncate(MAX_ERROR_BYTES);
    let shown = || String::from_utf8_lossy(&text);
    match code {
        // A response with such a code would not be the last one.
        ..200 => Status::unknown(format!("the server responded with the status code {code}")),
        500 => Status::internal_error(shown()),
        400 => Status::bad_request(shown()),
        code => Status::server_response(code, resource, name, &text),
    }
}

/// A text as it arrives.
struct TextBody {
    text: BackendBody,
    /// The text that is not sent yet; `None` when each piece is sent at once.
    gathered: Option<BytesMut>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl HttpBody for TextBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = self.get_mut();
        while !this.is_over {
            let piece = match Pin::new(&mut this.text).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Poll::Ready(end) => {
                    if let Some(Err(error)) = end {
                        tracing::debug!(%error, "a text broke off");
                    }
                    this.is_over = true;
                    continue;
                }
                Poll::Pending if this.stopped.as_mut().poll(context).is_ready() => {
                    this.is_over = true;
                    continue;
                }
                Poll::Pending => return Poll::Pending,
            };
            match &mut this.gathered {
                None if piece.is_empty() => {}
                None => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Some(gathered) => {
                    gathered.extend_from_slice(&piece);
                    if gathered.len() >= PIECE_BYTES {
                        return Poll::Ready(Some(Ok(Frame::data(gathered.split().freeze()))));
                    }
                }
            }
        }
        let rest = this.gathered.take().filter(|rest| !rest.is_empty());
        Poll::Ready(rest.map(|rest| Ok(Frame::data(rest.freeze()))))
    }
}
