//! A key service of Kubernetes' KMS v2 for tests: gRPC on a Unix socket
//! (<https://kubernetes.io/docs/tasks/administer-cluster/kms-provider/>).
//!
//! It "encrypts" by writing `sealed:` before the plaintext, so that a test can make ciphertexts of its own. Its messages
//! are declared anew here, so that a mistake in the server's is not made twice.

mod messages;

use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse,
};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{UnixListener, UnixStream},
    task::{JoinHandle, JoinSet},
};
use tonic::{Code, Request, Response, Status, body::Body, server::Grpc};
use tonic_prost::ProstCodec;

const SEAL: &[u8] = b"sealed:";

/// A service that runs until it is dropped.
pub struct KmsPlugin {
    path: PathBuf,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

/// How the service behaves, and what it was asked.
#[derive(Debug, Clone)]
pub struct State {
    /// The key that it encrypts by.
    pub key_id: String,
    /// Keys that it does not know any more.
    pub forgotten: Vec<String>,
    /// What it says its version is.
    pub version: String,
    /// What it says of its health.
    pub healthz: String,
    /// What it wants to have back when it decrypts.
    pub annotations: BTreeMap<String, Vec<u8>>,
    /// What it answers to every call instead of doing it.
    pub failure: Option<(Code, String)>,
    /// How long it takes to answer.
    pub delay: Duration,
    /// How often it was asked how it is.
    pub statuses: usize,
    /// How often it was asked to encrypt.
    pub encryptions: usize,
    /// How often it was asked to decrypt.
    pub decryptions: usize,
}

impl Default for State {
    fn default() -> State {
        State {
            key_id: "key-1".to_owned(),
            forgotten: Vec::new(),
            version: "v2".to_owned(),
            healthz: "ok".to_owned(),
            annotations: BTreeMap::new(),
            failure: None,
            delay: Duration::ZERO,
            statuses: 0,
            encryptions: 0,
            decryptions: 0,
        }
    }
}

impl KmsPlugin {
    /// A service on a new socket, on the current runtime.
    ///
    /// # Errors
    /// When the socket cannot be listened on.
    pub fn start(path: &Path) -> io::Result<KmsPlugin> {
        KmsPlugin::start_with(path, State::default())
    }

    /// A service that goes on from where another one was.
    ///
    /// # Errors
    /// When the socket cannot be listened on.
    pub fn start_with(path: &Path, state: State) -> io::Result<KmsPlugin> {
        let listener = UnixListener::bind(path)?;
        let state = Arc::new(Mutex::new(state));
        let task = tokio::spawn(accept(listener, state.clone()));
        Ok(KmsPlugin { path: path.to_owned(), state, task })
    }

    /// How it behaves, to look at or to change.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Ends it with all its connections, and returns how it was.
    pub async fn stop(mut self) -> State {
        self.task.abort();
        // It was ended just now, which is what is waited for.
        let _ = (&mut self.task).await;
        self.state.lock().clone()
    }
}

impl Drop for KmsPlugin {
    fn drop(&mut self) {
        self.task.abort();
        // A socket that nobody listens on is in nobody's way but the next one's.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn accept(listener: UnixListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, state.clone()));
    }
}

async fn serve(stream: UnixStream, state: Arc<Mutex<State>>) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(answer(state, request).await) }
    });
    let connection =
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service);
    // A client that goes away is no failure.
    let _ = connection.await;
}

async fn answer(state: Arc<Mutex<State>>, request: http::Request<Incoming>) -> http::Response<Body> {
    match request.uri().path() {
        "/v2.KeyManagementService/Status" => call(state, request, status).await,
        "/v2.KeyManagementService/Encrypt" => call(state, request, encrypt).await,
        "/v2.KeyManagementService/Decrypt" => call(state, request, decrypt).await,
        path => Status::unimplemented(format!("unknown method {path}")).into_http(),
    }
}

async fn call<Q, R>(
    state: Arc<Mutex<State>>,
    request: http::Request<Incoming>,
    method: fn(&mut State, Q) -> Result<R, Status>,
) -> http::Response<Body>
where
    Q: Message + Default + 'static,
    R: Message + 'static,
{
    let service = tower::service_fn(move |request: Request<Q>| {
        let state = state.clone();
        async move {
            let (delay, failure) = {
                let state = state.lock();
                (state.delay, state.failure.clone())
            };
            tokio::time::sleep(delay).await;
            match failure {
                Some((code, message)) => Err(Status::new(code, message)),
                None => method(&mut state.lock(), request.into_inner()).map(Response::new),
            }
        }
    });
    Grpc::new(ProstCodec::<R, Q>::default()).unary(service, request).await
}

fn status(state: &mut State, _: StatusRequest) -> Result<StatusResponse, Status> {
    state.statuses += 1;
    Ok(StatusResponse {
        version: state.version.clone(),
        healthz: state.healthz.clone(),
        key_id: state.key_id.clone(),
    })
}

fn encrypt(state: &mut State, request: EncryptRequest) -> Result<EncryptResponse, Status> {
    state.encryptions += 1;
    if request.uid.is_empty() {
        return Err(Status::invalid_argument("the call has no name"));
    }
    let ciphertext = [SEAL, request.plaintext.as_slice()].concat();
    Ok(EncryptResponse { ciphertext, key_id: state.key_id.clone(), annotations: state.annotations.clone() })
}

fn decrypt(state: &mut State, request: DecryptRequest) -> Result<DecryptResponse, Status> {
    state.decryptions += 1;
    if request.uid.is_empty() {
        return Err(Status::invalid_argument("the call has no name"));
    }
    if state.forgotten.contains(&request.key_id) {
        return Err(Status::not_found(format!("no key {}", request.key_id)));
    }
    if request.annotations != state.annotations {
        return Err(Status::invalid_argument("other annotations than were given"));
    }
    match request.ciphertext.strip_prefix(SEAL) {
        Some(plaintext) => Ok(DecryptResponse { plaintext: plaintext.to_vec() }),
        None => Err(Status::invalid_argument("nothing that was encrypted here")),
    }
}
