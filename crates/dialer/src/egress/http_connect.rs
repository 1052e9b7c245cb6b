//! Connects through a proxy that speaks HTTP `CONNECT` (<https://www.rfc-editor.org/rfc/rfc9110#name-connect>).

use super::config::{ProxyAddress, TlsConfig};
use crate::{Cause, TlsSettings, direct, link::Tunnel};
use pintle_go_forms::{Url, quote};
use rustls::pki_types::ServerName;
use std::{fs, path::PathBuf};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

/// The most bytes of a response's head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The proxy.
pub(super) enum HttpConnect {
    Unix(PathBuf),
    Tcp { address: String, tls: Option<(TlsConnector, ServerName<'static>)> },
}

impl HttpConnect {
    /// The proxy at an address; it does not connect yet.
    ///
    /// # Errors
    /// When the URL or a certificate is unusable.
    pub(super) fn new(address: &ProxyAddress) -> Result<HttpConnect, String> {
        let (url, tls) = match address {
            ProxyAddress::Unix(path) => return Ok(HttpConnect::Unix(path.clone())),
            ProxyAddress::Tcp { url, tls } => (url, tls),
        };
        let parsed = Url::parse(url);
        let parsed = parsed.map_err(|error| format!("invalid proxy server url {}: {error}", quote(url)))?;
        let tls = match tls {
            None => None,
            Some(tls) => Some(configure(tls, &parsed.hostname())?),
        };
        Ok(HttpConnect::Tcp { address: parsed.host(), tls })
    }

    /// The label of the transport in metrics.
    pub(super) fn transport(&self) -> &'static str {
        match self {
            HttpConnect::Unix(_) => "uds",
            HttpConnect::Tcp { .. } => "tcp",
        }
    }

    /// Opens a connection to the proxy.
    pub(super) async fn connect(&self) -> Result<Box<dyn Tunnel>, Cause> {
        let (address, tls) = match self {
            HttpConnect::Unix(path) => return Ok(Box::new(direct::unix(path).await?)),
            HttpConnect::Tcp { address, tls } => (address, tls),
        };
        let (_, port) = address.rsplit_once(':').unwrap_or_default();
        if port.is_empty() || port.ends_with(']') {
            return Err(Cause::Other(format!("dial tcp: address {address}: missing port in address")));
        }
        let tcp = direct::tcp(address, None).await?;
        match tls {
            None => Ok(Box::new(tcp)),
            Some((tls, name)) => Ok(Box::new(tls.connect(name.clone(), tcp).await.map_err(Cause::Tls)?)),
        }
    }

    /// Requests a tunnel to an address.
    pub(super) async fn tunnel(
        &self,
        mut connection: Box<dyn Tunnel>,
        address: &str,
    ) -> Result<Box<dyn Tunnel>, Cause> {
        let proxy = match self {
            HttpConnect::Unix(path) => path.display().to_string(),
            HttpConnect::Tcp { address, .. } => address.clone(),
        };
        let request = format!("CONNECT {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let unread = |why: String| {
            Cause::Other(format!(
                "reading HTTP response from CONNECT to {address} via proxy {proxy} failed: {why}"
            ))
        };
        let asked = connection.write_all(request.as_bytes()).await;
        // A proxy that closes the connection may have answered first.
        let _ = asked.and(connection.flush().await);
        let (head, rest) = head(&mut connection).await.map_err(unread)?;
        match status(&head).map_err(unread)? {
            (200, _) if rest == 0 => Ok(connection),
            // Both ends of the tunnel wait for this server to speak first.
            (200, _) => Err(Cause::Other(format!(
                "unexpected {rest} bytes of buffered data from CONNECT proxy {}",
                quote(&proxy)
            ))),
            (code, status) => Err(Cause::Other(format!(
                "proxy error from {proxy} while dialing {address}, code {code}: {status}"
            ))),
        }
    }
}

fn configure(tls: &TlsConfig, host: &str) -> Result<(TlsConnector, ServerName<'static>), String> {
    let TlsConfig { ca_bundle, client_key, client_cert, server_name } = tls;
    let failed = |error: String| format!("failed to read key pair {client_cert} & {client_key}, got {error}");
    let read = |path: &str| fs::read(path).map_err(|error| failed(error.to_string()));
    let (certificate, key) = (read(client_cert)?, read(client_key)?);
    let ca = match ca_bundle.as_str() {
        "" => Vec::new(),
        path => fs::read(path).map_err(|error| format!("failed to read cert file {path}, got {error}"))?,
    };
    if !ca_bundle.is_empty() {
        TlsSettings { ca: &ca, insecure: false, client_certificate: None, both_protocols: false }
            .connector()
            .ok()
            // Blank text would mean the authorities of the system.
            .filter(|_| !ca.trim_ascii().is_empty())
            .ok_or("failed to append CA cert to the cert pool")?;
    }
    let settings = TlsSettings {
        ca: &ca,
        insecure: false,
        client_certificate: Some((&certificate, &key)),
        both_protocols: false,
    };
    let connector = settings.connector().map_err(|error| failed(error.to_string()))?;
    let name = if server_name.is_empty() { host } else { server_name };
    let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
    Ok((connector, name))
}

/// Reads the head of a response, and returns the number of bytes that came after it.
async fn head(connection: &mut Box<dyn Tunnel>) -> Result<(Vec<u8>, usize), String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let read = connection.read(&mut buffer).await.map_err(|error| error.to_string())?;
        let read = buffer.get(..read).unwrap_or_default();
        if read.is_empty() || head.len() + read.len() > MAX_HEAD_BYTES {
            return Err("unexpected EOF".to_owned());
        }
        let searched = head.len().saturating_sub(3);
        head.extend_from_slice(read);
        if let Some(end) = end_of_head(&head, searched) {
            let rest = head.len() - end;
            head.truncate(end);
            return Ok((head, rest));
        }
    }
}

/// The position after the empty line, if there is one after `searched`.
fn end_of_head(head: &[u8], searched: usize) -> Option<usize> {
    (searched..head.len()).find_map(|at| {
        let rest = head.get(at..)?;
        [b"\n\r\n".as_slice(), b"\n\n"].iter().find(|end| rest.starts_with(end)).map(|end| at + end.len())
    })
}

/// The code and the text of the status line, such as 403 and `403 Forbidden`, by the rules of Go's client.
fn status(head: &[u8]) -> Result<(u16, String), String> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default();
    let Some((protocol, status)) = line.split_once(' ') else {
        return Err(format!("malformed HTTP response {}", quote(line)));
    };
    let status = status.trim_start_matches(' ');
    let code = status.split(' ').next().unwrap_or_default();
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("malformed HTTP status code {}", quote(code)));
    }
    let version = protocol.strip_prefix("HTTP/").unwrap_or_default().as_bytes();
    if !matches!(version, [major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit()) {
        return Err(format!("malformed HTTP version {}", quote(protocol)));
    }
    for line in lines.take_while(|line| !line.is_empty()) {
        if !line.contains(':') && !line.starts_with([' ', '\t']) {
            return Err(format!("malformed MIME header: missing colon: {}", quote(line)));
        }
    }
    Ok((code.parse().unwrap_or_default(), status.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read_as_go_reads_it() {
        let check = |head: &str, expected: Result<(u16, &str), &str>| {
            let found = status(head.as_bytes());
            let found = found.as_ref().map(|(code, status)| (*code, status.as_str())).map_err(String::as_str);
            assert_eq!(found, expected, "{head}");
        };
        check("HTTP/1.1 200 OK\r\na: b\r\n\r\n", Ok((200, "200 OK")));
        check("HTTP/1.0 200\n\n", Ok((200, "200")));
        check("HTTP/1.1  403 Not here\r\n\r\n", Ok((403, "403 Not here")));
        check("hello\r\n\r\n", Err("malformed HTTP response \"hello\""));
        check("HTTP/1.1 2000 OK\r\n\r\n", Err("malformed HTTP status code \"2000\""));
        check("HTTP/1.1 +20 OK\r\n\r\n", Err("malformed HTTP status code \"+20\""));
        check("HTTPS 200 OK\r\n\r\n", Err("malformed HTTP version \"HTTPS\""));
        check("HTTP/1.1 200 OK\r\nno\r\n\r\n", Err("malformed MIME header: missing colon: \"no\""));
    }

    #[test]
    fn the_end_of_a_head_is_found_wherever_reading_stopped() {
        for (head, expected) in
            [("a\r\n\r\nb", Some(5)), ("a\n\nb", Some(3)), ("a\r\n\rb", None), ("", None), ("\r\n", None)]
        {
            assert_eq!(end_of_head(head.as_bytes(), 0), expected, "{head}");
        }
        assert_eq!(end_of_head(b"abc\r\n\r\n", 4), Some(7));
    }
}
