//! Implements a KMS v2 plugin for tests: gRPC on a Unix socket
//! (<https://kubernetes.io/docs/tasks/administer-cluster/kms-provider/>).
//!
//! It "encrypts" by writing `sealed:` before the plaintext, so that a test can create ciphertexts. It declares its own
//! messages, so that an error in the server's messages is detected.

mod messages;
mod serve;

pub use serve::serve;

use hyper::body::Incoming;
use messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse,
};
use parking_lot::{Mutex, MutexGuard};
use prost::Message;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{net::UnixListener, task::JoinHandle};
use tonic::{Code, Request, Response, Status, body::Body, server::Grpc};
use tonic_prost::ProstCodec;

const SEAL: &[u8] = b"sealed:";

/// A plugin that runs until it is dropped.
pub struct KmsPlugin {
    path: PathBuf,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

/// The behavior of the plugin, and its counts of calls.
#[derive(Debug, Clone)]
pub struct State {
    /// The id of the key that encrypts.
    pub key_id: String,
    /// The ids of keys that are no longer available.
    pub forgotten: Vec<String>,
    /// The `version` of its status.
    pub version: String,
    /// The `healthz` of its status.
    pub healthz: String,
    /// The annotations of a ciphertext, which a request to decrypt has to repeat.
    pub annotations: BTreeMap<String, Vec<u8>>,
    /// The error that every call returns, if set.
    pub failure: Option<(Code, String)>,
    /// The delay of each response.
    pub delay: Duration,
    /// The number of status calls.
    pub statuses: usize,
    /// The number of encrypt calls.
    pub encryptions: usize,
    /// The number of decrypt calls.
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
    /// Starts a plugin on a new socket, on the current runtime.
    ///
    /// # Errors
    /// When the socket cannot be listened on.
    pub fn start(path: &Path) -> io::Result<KmsPlugin> {
        KmsPlugin::start_with(path, State::default())
    }

    /// Starts a plugin with the state of an earlier one.
    ///
    /// # Errors
    /// When the socket cannot be listened on.
    pub fn start_with(path: &Path, state: State) -> io::Result<KmsPlugin> {
        let listener = UnixListener::bind(path)?;
        let state = Arc::new(Mutex::new(state));
        let of_plugin = state.clone();
        let task = tokio::spawn(serve(listener, move |request| answer(of_plugin.clone(), request)));
        Ok(KmsPlugin { path: path.to_owned(), state, task })
    }

    /// The state, to read or change.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Stops the plugin and its connections, and returns its state.
    pub async fn stop(mut self) -> State {
        self.task.abort();
        // The task was aborted above; its error is expected.
        let _ = (&mut self.task).await;
        self.state.lock().clone()
    }
}

impl Drop for KmsPlugin {
    fn drop(&mut self) {
        self.task.abort();
        // A stale socket would prevent the next start.
        let _ = std::fs::remove_file(&self.path);
    }
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
