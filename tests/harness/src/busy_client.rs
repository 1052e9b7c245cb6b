//! A client with many requests at the same time, which share a connection.

use crate::{Client, Error, Lines, client::READ_TIMEOUT};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::sync::Arc;
use tokio::{runtime::Runtime, time::timeout};

/// A client over one HTTP/2 connection, as those of controllers are: they have many requests and watches at the same time.
pub struct BusyClient {
    runtime: Arc<Runtime>,
    sender: http2::SendRequest<Full<Bytes>>,
    base: String,
    token: Option<String>,
}

impl BusyClient {
    /// Connects to the server of `client`, with its credentials.
    ///
    /// # Errors
    /// When no server listens, its certificate is not trusted, or it does not speak HTTP/2.
    pub fn connect(client: &Client) -> Result<BusyClient, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, connection) = runtime.block_on(async {
            let stream = TokioIo::new(client.connect_http2().await?);
            let handshake = http2::Builder::new(TokioExecutor::new()).adaptive_window(true).handshake(stream);
            Ok::<_, Error>(handshake.await?)
        })?;
        runtime.spawn(connection);
        let base = format!("https://{}", client.address());
        Ok(BusyClient { runtime: Arc::new(runtime), sender, base, token: client.token().map(str::to_owned) })
    }

    /// Sends requests, `at_once` of them at the same time, and reads their responses. `path_and_body` makes them from
    /// their numbers: a request with a body is a POST of JSON, and any other a GET.
    ///
    /// # Errors
    /// When a response is incomplete, or its status is not 200 or 201.
    pub fn requests(
        &self,
        count: u32,
        at_once: usize,
        path_and_body: impl Fn(u32) -> (String, String),
    ) -> Result<(), Error> {
        let requests = stream::iter(0..count).map(|number| {
            let (path, body) = path_and_body(number);
            async move {
                let mut body = self.send("*/*", &path, body).await?;
                while let Some(frame) = body.frame().await {
                    frame?;
                }
                Ok::<_, Error>(())
            }
        });
        self.runtime.block_on(requests.buffer_unordered(at_once).try_collect())
    }

    /// Reads this many responses to GETs of a path at the same time, such as watches, to their ends. Returns the size of
    /// all of them in bytes.
    ///
    /// # Errors
    /// As [`BusyClient::requests`].
    pub fn read_at_once(&self, path: &str, count: usize) -> Result<usize, Error> {
        let responses = (0..count).map(|_| async {
            let mut body = self.send("*/*", path, String::new()).await?;
            let mut length = 0;
            while let Some(frame) = body.frame().await {
                length += frame?.data_ref().map_or(0, Bytes::len);
            }
            Ok::<_, Error>(length)
        });
        let lengths = self.runtime.block_on(futures_util::future::try_join_all(responses))?;
        Ok(lengths.into_iter().sum())
    }

    /// Starts a watch beside the other requests, as [`Client::lines_as`] does on a connection of its own.
    ///
    /// # Errors
    /// When the status is not 200.
    pub fn lines_as(&self, accept: &str, path: &str) -> Result<Lines, Error> {
        let runtime = Arc::clone(&self.runtime);
        let mut body = runtime.block_on(self.send(accept, path, String::new()))?;
        Ok(Lines::new(path, move || {
            let frame = async { timeout(READ_TIMEOUT, body.frame()).await };
            match runtime.block_on(frame)? {
                Some(frame) => Ok(Some(frame?.into_data().map(Vec::from).unwrap_or_default())),
                None => Ok(None),
            }
        }))
    }

    async fn send(&self, accept: &str, path: &str, body: String) -> Result<Incoming, Error> {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        request = request.header(header::ACCEPT, accept);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::from(body))?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        match response.status().as_u16() {
            200 | 201 => Ok(response.into_body()),
            status => {
                let body = response.into_body().collect().await?.to_bytes();
                Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&body)).into())
            }
        }
    }
}
