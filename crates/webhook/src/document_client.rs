//! A client for documents of servers that are not webhooks, such as the keys of an OpenID issuer.

use bytes::Bytes;
use http::{HeaderMap, Request, Uri, header};
use pintle_dialer::{
    Cause, ConfigError, Connections, Connector, Destination, Dialer, TlsSettings, empty_body,
};
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// Fetches documents by URL, over TLS only. It keeps no connections: requests are rare, and go to any server.
pub struct DocumentClient {
    tls: TlsConnector,
    dialer: Dialer,
}

/// A document.
#[derive(Debug, Clone)]
pub struct Document {
    /// The HTTP status.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// The largest number of redirects.
const MAX_REDIRECTS: usize = 10;
/// The size limit of a document, in bytes.
const MAX_SIZE: usize = 4 << 20;

impl DocumentClient {
    /// A client that trusts the CA certificates of a bundle (PEM), or the system's trust anchors when it is blank, and
    /// connects in the network of the dialer.
    ///
    /// # Errors
    /// When the bundle has no certificate.
    pub fn new(ca_bundle: &[u8], dialer: Dialer) -> Result<DocumentClient, ConfigError> {
        let settings =
            TlsSettings { ca: ca_bundle, insecure: false, client_certificate: None, both_protocols: true };
        Ok(DocumentClient { tls: settings.connector()?, dialer })
    }

    /// Fetches a document; all of it must arrive within `timeout`. The bearer token is sent to the URL's host only.
    ///
    /// # Errors
    /// When there is no document, or it is larger than four megabytes. The text does not contain the token.
    pub async fn get(&self, url: &str, bearer: Option<&str>, timeout: Duration) -> Result<Document, String> {
        match tokio::time::timeout(timeout, self.follow(url, bearer)).await {
            Ok(Ok(document)) => Ok(document),
            Ok(Err(cause)) => Err(format!("Get {url:?}: {cause}")),
            Err(_) => Err(format!("Get {url:?}: {}", Cause::Timeout)),
        }
    }

    async fn follow(&self, url: &str, bearer: Option<&str>) -> Result<Document, Cause> {
        let other = |error: &dyn std::fmt::Display| Cause::Other(error.to_string());
        let first: Uri = url.parse().map_err(|error| other(&error))?;
        let mut uri = first.clone();
        for _ in 0..=MAX_REDIRECTS {
            let shown = bearer.filter(|_| uri.authority() == first.authority());
            let document = self.ask(&uri, shown).await?;
            let location = document.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            match (document.status, location) {
                (301 | 302 | 303 | 307 | 308, Some(location)) => uri = elsewhere(&uri, location)?,
                _ => return Ok(document),
            }
        }
        Err(Cause::Other(format!("stopped after {MAX_REDIRECTS} redirects")))
    }

    async fn ask(&self, uri: &Uri, bearer: Option<&str>) -> Result<Document, Cause> {
        let other = |error: &dyn std::fmt::Display| Cause::Other(error.to_string());
        if uri.scheme_str() != Some("https") || uri.host().is_none() {
            return Err(Cause::Other("the URL must begin with https:// and a host".to_owned()));
        }
        let connector = Connector {
            destination: Destination::Url,
            server_name: None,
            tls: Some(self.tls.clone()),
            timeout: None,
            dialer: self.dialer.clone(),
            peers: None,
        };
        let mut request = Request::get(uri)
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "kube-apiserver");
        if let Some(token) = bearer {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        // The library's error text might contain the token.
        let request = request.body(empty_body()).map_err(|_| other(&"the request cannot be made"))?;
        let answer = Connections::new(connector).send(request).await.map_err(|failed| failed.cause)?;
        let (head, body) = answer.into_parts();
        let body = body.whole(MAX_SIZE).await?;
        Ok(Document { status: head.status.as_u16(), headers: head.headers, body })
    }
}

/// Resolves a redirect's location against the previous URL.
fn elsewhere(from: &Uri, location: &str) -> Result<Uri, Cause> {
    let text = match location.contains("://") {
        true => location.to_owned(),
        false => {
            let authority = from.authority().map(ToString::to_string).unwrap_or_default();
            let path = match location.starts_with('/') {
                true => location.to_owned(),
                false => {
                    let directory = from.path().rsplit_once('/').map_or("", |(directory, _)| directory);
                    format!("{directory}/{location}")
                }
            };
            format!("https://{authority}{path}")
        }
    };
    text.parse().map_err(|error: http::uri::InvalidUri| Cause::Other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer};
    use std::sync::Arc;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tokio_rustls::TlsAcceptor;

    #[test]
    fn redirects_are_relative_to_the_previous_url() {
        let check = |location: &str, expected: &str| {
            let from = Uri::from_static("https://a.example.com:8443/keys/list?x=1");
            assert_eq!(elsewhere(&from, location).unwrap().to_string(), expected);
        };
        check("https://b.example.com/x", "https://b.example.com/x");
        check("http://b.example.com/x", "http://b.example.com/x");
        check("/other", "https://a.example.com:8443/other");
        check("other?y", "https://a.example.com:8443/keys/other?y");
        assert!(elsewhere(&Uri::from_static("https://a/"), "a b").is_err());
    }

    #[tokio::test]
    async fn documents_are_fetched_over_tls_only() {
        let authority = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap().cert.pem();
        let client = DocumentClient::new(authority.as_bytes(), Dialer::default()).unwrap();
        for url in ["http://127.0.0.1/x", "/x"] {
            let error = client.get(url, Some("secret"), Duration::from_secs(20)).await.unwrap_err();
            assert_eq!(error, format!("Get {url:?}: the URL must begin with https:// and a host"));
        }
        assert!(DocumentClient::new(b"no certificate", Dialer::default()).is_err());
    }

    /// A server that answers each connection with a body of so many bytes, whose length it tells or not. Returns its URL
    /// and its certificate.
    async fn server(bodies: Vec<(usize, bool)>) -> (String, String) {
        let authority = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(authority.signing_key.serialize_der());
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![authority.cert.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/keys", listener.local_addr().unwrap());
        tokio::spawn(async move {
            for (bytes, tells_length) in bodies {
                let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0);
                }
                let length =
                    if tells_length { format!("content-length: {bytes}\r\n") } else { String::new() };
                let head = format!("HTTP/1.1 200 OK\r\n{length}connection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                // The client closes the connection when it has enough.
                drop(stream.write_all(&vec![b' '; bytes]).await);
                drop(stream.shutdown().await);
            }
        });
        (url, authority.cert.pem())
    }

    #[tokio::test]
    async fn a_document_has_four_megabytes_at_most() {
        let bodies = [(MAX_SIZE, true), (MAX_SIZE, false), (MAX_SIZE + 1, true), (MAX_SIZE + 1, false)];
        let (url, authority) = server(bodies.to_vec()).await;
        let client = DocumentClient::new(authority.as_bytes(), Dialer::default()).unwrap();
        for (bytes, tells_length) in bodies {
            let document = client.get(&url, None, Duration::from_secs(60)).await;
            let expected = match bytes <= 4 << 20 {
                true => Ok(bytes),
                false => Err(format!("Get {url:?}: {}", Cause::TooLarge(4 << 20))),
            };
            assert_eq!(document.map(|document| document.body.len()), expected, "{bytes} {tells_length}");
        }
    }
}
