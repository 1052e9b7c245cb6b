//! Implements an external signer of service account tokens for tests: gRPC on a Unix socket
//! (<https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#external-serviceaccount-token-signing-and-key-management>).
//!
//! It declares its own messages, so that an error in the server's messages is detected.

mod messages;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper::body::Incoming;
use messages::{
    FetchKeysRequest, FetchKeysResponse, Key, MetadataRequest, MetadataResponse, SignJwtRequest,
    SignJwtResponse, Timestamp,
};
use parking_lot::{Mutex, MutexGuard};
use pintle_jwt::SigningKey;
use pintle_kms_plugin::serve;
use prost::Message;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{net::UnixListener, task::JoinHandle};
use tonic::{Request, Response, Status, body::Body, server::Grpc};
use tonic_prost::ProstCodec;

/// A signer that runs until it is dropped.
pub struct JwtSigner {
    path: PathBuf,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

/// The behavior of the signer, and its counts of calls.
pub struct State {
    /// The keys, the first of which signs.
    pub keys: Vec<SignerKey>,
    /// The number of seconds after which the keys are fetched again.
    pub refresh_hint_seconds: i64,
    /// The longest lifetime of tokens, in seconds.
    pub max_token_expiration_seconds: i64,
    /// The header of tokens, instead of the right one.
    pub header: Option<String>,
    /// The error that every call returns, if set.
    pub failure: Option<Status>,
    /// The number of times that the keys were fetched.
    pub fetches: usize,
}

/// A key on the curve P-256.
pub struct SignerKey {
    /// The id that the signer gives it.
    pub id: String,
    /// Whether it is not published.
    pub is_excluded: bool,
    public: Vec<u8>,
    private: SigningKey,
}

impl SignerKey {
    /// A new key with this id.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn generate(id: &str) -> io::Result<SignerKey> {
        let pair = rcgen::KeyPair::generate().map_err(io::Error::other)?;
        let private = SigningKey::from_pem(pair.serialize_pem().as_bytes()).map_err(io::Error::other)?;
        let public = rcgen::PublicKeyData::subject_public_key_info(&pair);
        Ok(SignerKey { id: id.to_owned(), is_excluded: false, public, private })
    }
}

impl JwtSigner {
    /// Starts a signer with one key, `key-1`, on a new socket, on the current runtime.
    ///
    /// # Errors
    /// When the socket cannot be listened on.
    pub fn start(path: &Path) -> io::Result<JwtSigner> {
        let listener = UnixListener::bind(path)?;
        let state = Arc::new(Mutex::new(State {
            keys: vec![SignerKey::generate("key-1")?],
            refresh_hint_seconds: 3600,
            max_token_expiration_seconds: 7200,
            header: None,
            failure: None,
            fetches: 0,
        }));
        let of_signer = state.clone();
        let task = tokio::spawn(serve(listener, move |request| answer(of_signer.clone(), request)));
        Ok(JwtSigner { path: path.to_owned(), state, task })
    }

    /// The state, to read or change.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Drop for JwtSigner {
    fn drop(&mut self) {
        self.task.abort();
        // A stale socket would prevent the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn answer(state: Arc<Mutex<State>>, request: http::Request<Incoming>) -> http::Response<Body> {
    match request.uri().path() {
        "/v1.ExternalJWTSigner/Sign" => call(state, request, sign).await,
        "/v1.ExternalJWTSigner/FetchKeys" => call(state, request, fetch_keys).await,
        "/v1.ExternalJWTSigner/Metadata" => call(state, request, metadata).await,
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
            let mut state = state.lock();
            match state.failure.clone() {
                Some(failure) => Err(failure),
                None => method(&mut state, request.into_inner()).map(Response::new),
            }
        }
    });
    Grpc::new(ProstCodec::<R, Q>::default()).unary(service, request).await
}

fn sign(state: &mut State, request: SignJwtRequest) -> Result<SignJwtResponse, Status> {
    let key = state.keys.first().ok_or_else(|| Status::failed_precondition("there is no key"))?;
    let right = format!(r#"{{"alg":"ES256","kid":"{}","typ":"JWT"}}"#, key.id);
    let header = URL_SAFE_NO_PAD.encode(state.header.as_ref().unwrap_or(&right));
    let message = format!("{header}.{}", request.claims);
    let signature =
        key.private.sign(message.as_bytes()).map_err(|error| Status::internal(error.to_string()))?;
    Ok(SignJwtResponse { header, signature: URL_SAFE_NO_PAD.encode(signature) })
}

fn fetch_keys(state: &mut State, _: FetchKeysRequest) -> Result<FetchKeysResponse, Status> {
    state.fetches += 1;
    let keys = state.keys.iter().map(|key| Key {
        key_id: key.id.clone(),
        key: key.public.clone(),
        exclude_from_oidc_discovery: key.is_excluded,
    });
    Ok(FetchKeysResponse {
        keys: keys.collect(),
        data_timestamp: Some(Timestamp { seconds: 1_700_000_000, nanos: 0 }),
        refresh_hint_seconds: state.refresh_hint_seconds,
    })
}

fn metadata(state: &mut State, _: MetadataRequest) -> Result<MetadataResponse, Status> {
    Ok(MetadataResponse { max_token_expiration_seconds: state.max_token_expiration_seconds })
}
