//! A blocking HTTP/1.1 client over TLS.

use crate::Error;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::{CertificateDer, IpAddr, ServerName, pem::PemObject};
use serde_json::Value;
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The timeout of a read; a test that hangs longer fails.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A client of one server: address, trust anchor and credentials.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    token: Option<String>,
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// When the body is not JSON.
    pub fn json(&self) -> Result<Value, Error> {
        serde_json::from_slice(&self.body).map_err(|error| format!("{error}: {}", self.text()).into())
    }
}

impl Client {
    /// A client that trusts this certificate authority.
    ///
    /// # Errors
    /// When the certificate is malformed.
    pub fn new(address: SocketAddr, ca_pem: &[u8]) -> Result<Client, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca_pem) {
            roots.add(certificate.map_err(|error| format!("the authority's certificate: {error}"))?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Client { address, tls: Arc::new(tls), token: None })
    }

    /// The same client with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Client {
        Client { token: Some(token.to_owned()), ..self.clone() }
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// When no server listens, or its certificate is not trusted.
    pub fn connect(&self) -> Result<Connection, Error> {
        let socket = TcpStream::connect(self.address)?;
        socket.set_read_timeout(Some(READ_TIMEOUT))?;
        socket.set_nodelay(true)?;
        let name = ServerName::IpAddress(IpAddr::from(self.address.ip()));
        let session = ClientConnection::new(Arc::clone(&self.tls), name)?;
        let stream = BufReader::new(StreamOwned::new(session, socket));
        Ok(Connection { stream, token: self.token.clone() })
    }

    /// Opens a connection for HTTP/2.
    pub(crate) async fn connect_http2(&self) -> Result<TlsStream<tokio::net::TcpStream>, Error> {
        let socket = tokio::net::TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::IpAddress(IpAddr::from(self.address.ip()));
        Ok(TlsConnector::from(Arc::new(tls)).connect(name, socket).await?)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Sends one request on a connection of its own.
    ///
    /// # Errors
    /// When there is no complete response.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, Error> {
        let response =
            self.connect().and_then(|mut connection| connection.request(method, path, headers, body));
        response.map_err(|error| format!("{method} {path}: {}", in_words(&error)).into())
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// When there is no complete response.
    pub fn get(&self, path: &str) -> Result<Response, Error> {
        self.request("GET", path, &[], b"")
    }

    /// Sends a POST of JSON.
    ///
    /// # Errors
    /// When there is no complete response.
    pub fn post(&self, path: &str, body: &Value) -> Result<Response, Error> {
        self.request("POST", path, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    /// Sends a DELETE.
    ///
    /// # Errors
    /// When there is no complete response.
    pub fn delete(&self, path: &str) -> Result<Response, Error> {
        self.request("DELETE", path, &[], b"")
    }

    /// Starts a watch (or any other endless response) and returns its lines.
    ///
    /// # Errors
    /// When the status is not 200.
    pub fn lines(&self, path: &str) -> Result<Lines, Error> {
        self.lines_as("*/*", path)
    }

    /// [`Client::lines`] of a response of this media type.
    ///
    /// # Errors
    /// As [`Client::lines`].
    pub fn lines_as(&self, accept: &str, path: &str) -> Result<Lines, Error> {
        let mut connection = self.connect()?;
        connection.send("GET", path, &[("accept", accept)], b"")?;
        let (status, headers) = connection.head()?;
        if status != 200 {
            let body = connection.body(&headers)?;
            return Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&body)).into());
        }
        Ok(Lines::new(path, move || connection.chunk()))
    }
}

/// The text of an error. The error of a timed-out read says by itself only that it would block.
fn in_words(error: &Error) -> String {
    match error.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::WouldBlock) => format!("nothing came for {READ_TIMEOUT:?}"),
        _ => error.to_string(),
    }
}

/// One connection, for one request at a time.
pub struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    token: Option<String>,
}

impl Connection {
    /// Sends a request and reads its response.
    ///
    /// # Errors
    /// When there is no complete response.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Response, Error> {
        let sent = self.send(method, path, headers, body);
        // A server that refuses a body may respond and close before it has read all of it: the response counts.
        let (status, headers) = self.head().map_err(|error| sent.err().unwrap_or(error))?;
        let body = self.body(&headers)?;
        Ok(Response { status, headers, body })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), Error> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
        if let Some(token) = &self.token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let length_given = headers.iter().any(|(name, _)| *name == "content-length");
        if !length_given && (!body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")) {
            head += &format!("content-length: {}\r\n", body.len());
        }
        head += "\r\n";
        self.write(head.as_bytes())?;
        self.write(body)
    }

    /// Sends raw bytes.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()?;
        Ok(())
    }

    /// Reads the status and headers of the next response.
    ///
    /// # Errors
    /// When the head is incomplete or malformed.
    pub fn head(&mut self) -> Result<(u16, Vec<(String, String)>), Error> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).ok_or("no status")?.parse()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok((status, headers));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| format!("no header: {line}"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads the body that follows these headers.
    ///
    /// # Errors
    /// When the body is incomplete.
    pub fn body(&mut self, headers: &[(String, String)]) -> Result<Vec<u8>, Error> {
        let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let mut body = Vec::new();
        if header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk()? {
                body.extend(chunk);
            }
        } else if let Some(length) = header("content-length") {
            body.resize(length.parse()?, 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok(body)
    }

    /// Reads the body of known length that follows these headers, and keeps nothing of it. Returns its length in bytes.
    ///
    /// # Errors
    /// When the body is incomplete, or has no known length.
    pub fn discard(&mut self, headers: &[(String, String)]) -> Result<u64, Error> {
        let length = headers.iter().find(|(name, _)| name == "content-length").ok_or("no content-length")?;
        let length = length.1.parse()?;
        match io::copy(&mut (&mut self.stream).take(length), &mut io::sink())? {
            read if read == length => Ok(read),
            read => Err(format!("{read} of {length} bytes").into()),
        }
    }

    /// Reads this many bytes, such as those after an upgrade.
    ///
    /// # Errors
    /// When the connection ends before.
    pub fn read(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads this many bytes, and keeps nothing of them.
    ///
    /// # Errors
    /// When the connection ends before.
    pub fn skip(&mut self, count: u64) -> Result<(), Error> {
        match io::copy(&mut (&mut self.stream).take(count), &mut io::sink())? {
            read if read == count => Ok(()),
            read => Err(format!("{read} of {count} bytes").into()),
        }
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err("the connection ended".into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// The next chunk; `None` at the end of the body.
    fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let size = self.line()?;
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default(), 16)?;
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk)?;
        self.line()?;
        Ok((size > 0).then_some(chunk))
    }
}

/// The lines of an endless response as they arrive.
pub struct Lines {
    chunk: Box<dyn FnMut() -> Result<Option<Vec<u8>>, Error> + Send>,
    path: String,
    pending: Vec<u8>,
    ended: bool,
}

impl Lines {
    /// `chunk` waits for the next part of the response, and returns `None` at its end.
    pub(crate) fn new(
        path: &str,
        chunk: impl FnMut() -> Result<Option<Vec<u8>>, Error> + Send + 'static,
    ) -> Lines {
        Lines { chunk: Box::new(chunk), path: path.to_owned(), pending: Vec::new(), ended: false }
    }

    /// The next line as JSON; `None` when the server has completed the response.
    ///
    /// # Errors
    /// When the connection was closed early, or a line is not JSON.
    pub fn next_json(&mut self) -> Result<Option<Value>, Error> {
        loop {
            if let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if self.ended {
                return Ok(None);
            }
            let chunk = (self.chunk)();
            match chunk.map_err(|error| format!("{}: {}", self.path, in_words(&error)))? {
                Some(chunk) => self.pending.extend(chunk),
                None => self.ended = true,
            }
        }
    }
}
