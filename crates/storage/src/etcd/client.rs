//! Treats the cluster as one server: selects the member for each call, and handles its failures.
//!
//! All calls go to one member, the preferred one, as long as it answers; after a failure the next one is preferred. A
//! call that certainly had no effect is retried, on any member that answers, until its time is up. A write that may
//! have had an effect is not retried: only the caller can find out, by reading.

use super::{
    connection::{Connection, Failure},
    options::{EtcdOpenError, EtcdOptions, Target},
    proto,
};
use crate::StorageError;
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;
use tracing::Instrument;

/// The error of a call whose connection ended before the answer, as a gRPC client of Go words it.
const CONNECTION_LOST: &str = "rpc error: code = Unavailable desc = error reading from server: EOF";
/// The time-out of connecting to a member.
const CONNECT: Duration = Duration::from_secs(2);
/// The time-out of a read on one member, before another one is tried.
const READ: Duration = Duration::from_secs(5);
/// The time for which a read is retried, a little longer than a request lasts: its end is then told as that of a request.
const READ_PATIENCE: Duration = Duration::from_secs(62);
/// The time for which a write is awaited, and retried while it has had no effect: a little longer than a request that
/// writes lasts. etcd itself gives up after about 7 s and returns the reason.
pub(super) const WRITE_PATIENCE: Duration = Duration::from_secs(36);
/// The bounds of the back-off between two attempts to reach a member.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The size of the largest write, in bytes: as in Go's client, and below the limit of a member in most cases.
const WRITE_BYTES: usize = 2 << 20;

/// Whether a call may be sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Read,
    Write,
}

/// The reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallError {
    /// The requested revision is compacted.
    Compacted,
    /// The requested revision has not been reached, or the member has not received it.
    FutureRevision,
    /// The lease does not exist; nothing was written.
    LeaseNotFound,
    /// Any other failure.
    Failed(StorageError),
}

/// A client of all members.
pub(super) struct Client {
    options: EtcdOptions,
    members: Vec<Member>,
    preferred: AtomicUsize,
    /// The cluster that answered first. Members of another cluster are never used: their revisions are unrelated.
    cluster_id: Mutex<Option<u64>>,
}

struct Member {
    target: Target,
    connection: Mutex<Option<Connection>>,
    /// Held while connecting, so that one caller connects and the others wait.
    connecting: tokio::sync::Mutex<Attempts>,
}

#[derive(Default)]
struct Attempts {
    failed: u32,
    /// The time of the next attempt to connect.
    next: Option<Instant>,
    error: String,
}

impl Client {
    pub(super) fn new(options: EtcdOptions) -> Result<Client, EtcdOpenError> {
        let targets = options.targets()?;
        if targets.iter().any(|target| target.tls.is_some()) {
            // An unusable file is reported at the start.
            options.tls_config()?;
        }
        let members = targets
            .into_iter()
            .map(|target| Member {
                target,
                connection: Mutex::default(),
                connecting: tokio::sync::Mutex::default(),
            })
            .collect();
        Ok(Client { options, members, preferred: AtomicUsize::new(0), cluster_id: Mutex::default() })
    }

    pub(super) fn options(&self) -> &EtcdOptions {
        &self.options
    }

    /// Sends a call until it succeeds, certainly fails, or may have had an effect.
    pub(super) async fn call<Q, A>(
        &self,
        kind: CallKind,
        path: &'static str,
        request: Q,
    ) -> Result<A, CallError>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let span = tracing::info_span!(
            target: pintle_telemetry::TARGET,
            "etcd",
            otel.name = path.trim_start_matches('/'),
            otel.kind = "client",
            "rpc.system.name" = "grpc",
        );
        self.call_until_answered(kind, path, request).instrument(span).await
    }

    async fn call_until_answered<Q, A>(
        &self,
        kind: CallKind,
        path: &'static str,
        request: Q,
    ) -> Result<A, CallError>
    where
        Q: prost::Message + Clone + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        if kind == CallKind::Write {
            check_size(request.encoded_len())?;
        }
        let (once, patience) = match kind {
            CallKind::Read => (READ, READ_PATIENCE),
            CallKind::Write => (WRITE_PATIENCE, WRITE_PATIENCE),
        };
        let end = Instant::now() + patience;
        let mut backoff = BACKOFF.0;
        loop {
            let error = match self.connection().await {
                Err(error) => StorageError::Engine(error),
                Ok((member, connection)) => {
                    note_message("SENT", &request);
                    match timeout(once, connection.unary(path, request.clone())).await {
                        Ok(Ok(answer)) => {
                            note_message("RECEIVED", &answer);
                            return Ok(answer);
                        }
                        Ok(Err(failure)) => match after(kind, &failure) {
                            After::Stop(error) => {
                                if !connection.is_usable() {
                                    self.pass_over(member);
                                }
                                return Err(error);
                            }
                            After::TryAgain(error) => {
                                self.pass_over(member);
                                error
                            }
                        },
                        Err(_) => {
                            connection.give_up();
                            self.pass_over(member);
                            let error = StorageError::Engine("etcd: the request timed out".to_owned());
                            if kind == CallKind::Write {
                                return Err(CallError::Failed(error));
                            }
                            error
                        }
                    }
                }
            };
            // The whole time is used: a request whose own time ends with it is answered as one that took too long.
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(CallError::Failed(error));
            }
            tracing::debug!(%error, path, "asking etcd again");
            sleep(backoff.min(left)).await;
            backoff = (backoff * 2).min(BACKOFF.1);
        }
    }

    /// A connection to the preferred member, or else to the first reachable one, which becomes the preferred one.
    pub(super) async fn connection(&self) -> Result<(usize, Connection), String> {
        let count = self.members.len();
        let preferred = self.preferred.load(Ordering::Acquire) % count;
        let mut errors = Vec::new();
        for member in (preferred..count).chain(0..preferred) {
            match self.connection_to(member).await {
                Ok(connection) => {
                    if member != preferred {
                        self.preferred.store(member, Ordering::Release);
                    }
                    return Ok((member, connection));
                }
                Err(error) => errors.push(error),
            }
        }
        Err(errors.join("; "))
    }

    async fn connection_to(&self, number: usize) -> Result<Connection, String> {
        let Some(member) = self.members.get(number) else { return Err("no such member".to_owned()) };
        let usable = || member.connection.lock().clone().filter(Connection::is_usable);
        if let Some(connection) = usable() {
            return Ok(connection);
        }
        let mut attempts = member.connecting.lock().await;
        if let Some(connection) = usable() {
            return Ok(connection);
        }
        if attempts.next.is_some_and(|next| Instant::now() < next) {
            return Err(attempts.error.clone());
        }
        let opened = match timeout(CONNECT, Connection::open(&member.target, &self.options)).await {
            Ok(opened) => opened.and_then(|connection| self.same_cluster(connection)),
            Err(_) => Err("connecting timed out".to_owned()),
        };
        match opened {
            Ok(connection) => {
                *member.connection.lock() = Some(connection.clone());
                *attempts = Attempts::default();
                Ok(connection)
            }
            Err(error) => {
                let error = format!("{}: {error}", member.target);
                tracing::debug!(%error, "cannot connect to etcd");
                let wait = BACKOFF.0.saturating_mul(1 << attempts.failed.min(10)).min(BACKOFF.1);
                *attempts = Attempts {
                    failed: attempts.failed + 1,
                    next: Some(Instant::now() + wait),
                    error: error.clone(),
                };
                Err(error)
            }
        }
    }

    fn same_cluster(&self, connection: Connection) -> Result<Connection, String> {
        let mut known = self.cluster_id.lock();
        match *known.get_or_insert(connection.cluster_id) {
            id if id == connection.cluster_id => Ok(connection),
            id => Err(format!(
                "the member belongs to cluster {:x}, the others to {id:x}",
                connection.cluster_id
            )),
        }
    }

    /// Prefers the member after this one, unless the preference has changed already.
    pub(super) fn pass_over(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        let _ = self.preferred.compare_exchange(member, next, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The latest revision, linearizably.
    pub(super) async fn current_revision(&self) -> Result<crate::Revision, StorageError> {
        let answer: proto::RangeResponse = self
            .call(CallKind::Read, proto::path::RANGE, self.probe())
            .await
            .map_err(CallError::into_storage)?;
        Ok(proto::revision(answer.header.as_ref()))
    }

    /// A read without a result, which a user with access to only the prefix may make.
    pub(super) fn probe(&self) -> proto::RangeRequest {
        let key = format!("{}/health", self.options.prefix.trim_end_matches('/'));
        proto::RangeRequest { key: key.into(), count_only: true, ..Default::default() }
    }
}

impl CallError {
    /// For calls that name no revision and no lease.
    pub(super) fn into_storage(self) -> StorageError {
        match self {
            CallError::Failed(error) => error,
            other => StorageError::Engine(format!("an unexpected answer of etcd: {other:?}")),
        }
    }
}

/// Adds a message, which a call sent or received, to the span of the call.
fn note_message(direction: &str, message: &impl prost::Message) {
    pintle_telemetry::event!(
        "message",
        "rpc.message.type" = direction,
        "rpc.message.id" = 1_u64,
        "rpc.message.uncompressed_size" = message.encoded_len() as u64,
    );
}

/// Refuses writes that are too large, in the words of Go's client.
fn check_size(bytes: usize) -> Result<(), CallError> {
    if bytes <= WRITE_BYTES {
        return Ok(());
    }
    Err(CallError::Failed(StorageError::TooLarge(format!(
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({bytes} vs. {WRITE_BYTES})"
    ))))
}

enum After {
    Stop(CallError),
    TryAgain(StorageError),
}

/// Decides whether a call is retried after a failure.
fn after(kind: CallKind, failure: &Failure) -> After {
    let message = failure.status.message();
    let told = |text: &str| message.ends_with(text);
    if told("required revision has been compacted") {
        return After::Stop(CallError::Compacted);
    }
    if told("required revision is a future revision") {
        return After::Stop(CallError::FutureRevision);
    }
    if told("requested lease not found") {
        return After::Stop(CallError::LeaseNotFound);
    }
    if failure.status.code() == Code::InvalidArgument && message == "etcdserver: request is too large" {
        return After::Stop(CallError::Failed(StorageError::TooLarge(message.to_owned())));
    }
    let is_of_library = std::error::Error::source(&failure.status).is_some();
    let error = match message.starts_with("etcdserver: ") {
        true => StorageError::Etcd(message.to_owned()),
        false if failure.sent && is_of_library => StorageError::Etcd(CONNECTION_LOST.to_owned()),
        false => StorageError::Engine(message.to_owned()),
    };
    // The member refused before it proposed anything to the others, or its proposal was dropped.
    let without_effect = ["etcdserver: no leader", "etcdserver: leader changed", "raft proposal dropped"];
    if !failure.sent || without_effect.into_iter().any(told) {
        return After::TryAgain(error);
    }
    // Errors of the connection have codes chosen by the library; etcd's own errors have its prefix.
    let transient = failure.status.code() == Code::Unavailable || !message.starts_with("etcdserver:");
    let refused = matches!(
        failure.status.code(),
        Code::PermissionDenied
            | Code::Unauthenticated
            | Code::InvalidArgument
            | Code::ResourceExhausted
            | Code::Unimplemented
    );
    if kind == CallKind::Read && transient && !refused {
        return After::TryAgain(error);
    }
    After::Stop(CallError::Failed(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BoxFuture,
        etcd::{EtcdConnection, EtcdDialer},
    };
    use std::sync::Arc;
    use tonic::Status;

    #[test]
    fn only_calls_without_effect_are_made_again() {
        let unavailable = Status::unavailable;
        // (status, sent, a read is retried, a write is retried)
        let rows = [
            (unavailable("etcdserver: no leader"), true, true, true),
            (unavailable("etcdserver: leader changed"), true, true, true),
            (Status::unknown("raft proposal dropped"), true, true, true),
            (unavailable("etcdserver: request timed out"), true, true, false),
            (unavailable("etcdserver: server stopped"), true, true, false),
            (Status::unknown("connection reset"), true, true, false),
            (Status::unknown("connection refused"), false, true, true),
            (Status::invalid_argument("etcdserver: request is too large"), true, false, false),
            (Status::permission_denied("etcdserver: permission denied"), true, false, false),
            (
                Status::out_of_range("etcdserver: mvcc: required revision has been compacted"),
                true,
                false,
                false,
            ),
            (
                Status::out_of_range("etcdserver: mvcc: required revision is a future revision"),
                true,
                false,
                false,
            ),
            (Status::not_found("etcdserver: requested lease not found"), true, false, false),
            (Status::resource_exhausted("etcdserver: mvcc: database space exceeded"), true, false, false),
        ];
        for (status, sent, read, write) in rows {
            let failure = Failure { status, sent };
            for (kind, again) in [(CallKind::Read, read), (CallKind::Write, write)] {
                let is_again = matches!(after(kind, &failure), After::TryAgain(_));
                assert_eq!(is_again, again, "{kind:?}: {}", failure.status.message());
            }
        }
    }

    /// No member can be reached.
    struct Nowhere;

    impl EtcdDialer for Nowhere {
        fn dial<'a>(&'a self, _address: &'a str) -> BoxFuture<'a, Result<Box<dyn EtcdConnection>, String>> {
            Box::pin(async { Err("no way".to_owned()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_is_away_is_awaited_as_long_as_requests_last() {
        let mut options = EtcdOptions::new(["http://127.0.0.1:1", "http://127.0.0.1:2"], "/registry/");
        options.dialer = Some(Arc::new(Nowhere));
        let client = Client::new(options).unwrap();
        for (kind, path, patience) in [
            (CallKind::Read, proto::path::RANGE, READ_PATIENCE),
            (CallKind::Write, proto::path::TXN, WRITE_PATIENCE),
        ] {
            let begun = Instant::now();
            let answer: Result<proto::Nothing, _> = client.call(kind, path, client.probe()).await;
            let Err(CallError::Failed(error)) = answer else { panic!("{answer:?}") };
            assert_eq!(error.to_string(), "storage failed: 127.0.0.1:1: no way; 127.0.0.1:2: no way");
            let took = begun.elapsed();
            // The requests of clients, which began before, have ended by then.
            assert!(took >= patience && took <= patience + Duration::from_millis(1), "{took:?}");
        }
    }

    #[test]
    fn errors_of_etcd_keep_their_words() {
        for (message, expected) in [
            ("etcdserver: mvcc: database space exceeded", "etcdserver: mvcc: database space exceeded"),
            ("connection reset", "storage failed: connection reset"),
        ] {
            let failure = Failure { status: Status::unknown(message), sent: true };
            let After::Stop(CallError::Failed(error)) = after(CallKind::Write, &failure) else {
                panic!("{message}")
            };
            assert_eq!(error.to_string(), expected);
        }
        // A write may have had an effect; its error is the one of a gRPC client of Go.
        let broken = Status::from_error(Box::new(std::io::Error::other("broken")));
        let After::Stop(CallError::Failed(error)) =
            after(CallKind::Write, &Failure { status: broken, sent: true })
        else {
            panic!("it is not sent again")
        };
        assert_eq!(error.to_string(), CONNECTION_LOST);
    }

    #[test]
    fn writes_that_are_too_large_are_told_apart() {
        let too_large = |error: CallError| match error {
            CallError::Failed(StorageError::TooLarge(message)) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(check_size(WRITE_BYTES), Ok(()));
        assert_eq!(
            too_large(check_size(WRITE_BYTES + 1).unwrap_err()),
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097153 vs. 2097152)"
        );
        let refused = Status::invalid_argument("etcdserver: request is too large");
        let After::Stop(error) = after(CallKind::Write, &Failure { status: refused, sent: true }) else {
            panic!("asked again")
        };
        assert_eq!(too_large(error), "etcdserver: request is too large");
    }
}
