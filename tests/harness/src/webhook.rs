//! A webhook over TLS that admits every object.

use crate::Error;
use rcgen::{CertificateParams, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// An admission webhook that answers on kept connections until the process ends.
pub struct AdmittingWebhook {
    address: SocketAddr,
    certificate: String,
    calls: Arc<AtomicUsize>,
}

impl AdmittingWebhook {
    /// Starts the webhook on a free port. Its certificate is its own authority.
    ///
    /// # Errors
    /// When no port or no certificate can be had.
    pub fn start() -> Result<AdmittingWebhook, Error> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(["127.0.0.1".to_owned()])?.self_signed(&key)?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (tls, calls) = (Arc::new(tls), Arc::new(AtomicUsize::new(0)));
        let counted = calls.clone();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (tls, calls) = (tls.clone(), counted.clone());
                // A connection ends with an error when its client closes it.
                thread::spawn(move || serve(socket, tls, &calls).ok());
            }
        });
        Ok(AdmittingWebhook { address, certificate: certificate.pem(), calls })
    }

    /// The URL of the webhook.
    pub fn url(&self) -> String {
        format!("https://{}/admit", self.address)
    }

    /// The certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The number of calls so far.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

fn serve(socket: TcpStream, tls: Arc<ServerConfig>, calls: &AtomicUsize) -> Result<(), Error> {
    socket.set_nodelay(true)?;
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(tls)?, socket));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        calls.fetch_add(1, Ordering::Relaxed);
        let review: Value = serde_json::from_slice(&body)?;
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": review.pointer("/request/uid"), "allowed": true},
        })
        .to_string();
        let length = answer.len();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
        let answer = format!("{head}\r\nContent-Length: {length}\r\n\r\n{answer}");
        stream.get_mut().write_all(answer.as_bytes())?;
        stream.get_mut().flush()?;
    }
}
