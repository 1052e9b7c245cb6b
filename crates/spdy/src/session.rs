//! A session of streams over one connection.

use crate::{
    FrameError, Headers, OpenError, SessionEnd, Stream,
    frame::{Control, Reset},
    frame_reader::{Event, FrameReader},
    frame_writer::{FrameWriter, Output},
    role::Role,
    shared::Shared,
    streams::{Admission, Opened, Streams},
};
use bytes::Bytes;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadHalf, split},
    sync::{Mutex, mpsc, watch},
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};

/// The most answers that wait until the peer reads them, such as those to pings.
const MAX_ANSWERS: usize = 64;
/// How many new streams wait until they are accepted.
const MAX_NEW_STREAMS: usize = 16;
/// How long the closing of a session may wait for the peer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A session. When its last handle is dropped, it is closed in the background.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
    _task: Arc<CloseOnDrop>,
}

#[derive(Debug)]
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.closing.send_replace(true);
    }
}

impl Session {
    /// The session of the side that opened the connection. With an interval it sends pings while it is idle, one at a
    /// time, so that no middlebox forgets the connection.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn client<S>(connection: S, ping_interval: Option<Duration>) -> Session
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        Session::start(connection, Role::Client, None, ping_interval)
    }

    /// The session of the side that accepted the connection, and the streams that the peer opens. While nobody takes
    /// these, the session does not read.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn server<S>(connection: S) -> (Session, mpsc::Receiver<Stream>)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (new_streams, accepted) = mpsc::channel(MAX_NEW_STREAMS);
        (Session::start(connection, Role::Server, Some(new_streams), None), accepted)
    }

    fn start<S>(
        connection: S,
        role: Role,
        new_streams: Option<mpsc::Sender<Stream>>,
        ping_interval: Option<Duration>,
    ) -> Session
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (input, output) = split(connection);
        let (answers, waiting_answers) = mpsc::channel(MAX_ANSWERS);
        let output: Output = Box::new(output);
        let shared = Arc::new(Shared {
            writer: Mutex::new(FrameWriter::new(output)),
            streams: Streams::new(role),
            answers,
            end: watch::Sender::new(None),
            closing: watch::Sender::new(false),
            is_pinging: AtomicBool::new(false),
        });
        let task = Task { shared: shared.clone(), role };
        tokio::spawn(task.run(input, waiting_answers, new_streams, ping_interval));
        Session { _task: Arc::new(CloseOnDrop(shared.clone())), shared }
    }

    /// Opens a stream, and returns it when the peer has accepted it.
    ///
    /// # Errors
    /// When the peer refuses it, the session has ended, or there are too many streams.
    pub async fn open(&self, headers: &Headers) -> Result<Stream, OpenError> {
        let mut opened = None;
        let put = |writer: &mut FrameWriter| {
            // The numbers of streams ascend on the connection, too.
            let stream = self.shared.streams.open()?;
            writer.put_open(stream.stream, headers);
            opened = Some(stream);
            Ok(())
        };
        self.shared.write(put).await.map_err(|_| OpenError::Ended)??;
        let Some(Opened { stream, incoming, replied }) = opened else { return Err(OpenError::Ended) };
        let stream = Stream::new(stream, Headers::default(), incoming, &self.shared);
        replied.await.unwrap_or(Err(OpenError::Ended))?;
        Ok(stream)
    }

    /// Waits until the session has ended.
    pub async fn ended(&self) -> SessionEnd {
        let mut end = self.shared.end.subscribe();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(SessionEnd::Closed),
            Err(_) => SessionEnd::Closed,
        }
    }

    /// Ends the session: resets its streams and says goodbye to the peer, which takes five seconds at most. It does nothing
    /// when the session has ended already.
    pub async fn close(&self) {
        self.shared.closing.send_replace(true);
        self.ended().await;
    }
}

/// The task of a session: reads the connection, and sends answers.
struct Task {
    shared: Arc<Shared>,
    role: Role,
}

impl Task {
    async fn run<S>(
        self,
        input: ReadHalf<S>,
        mut answers: mpsc::Receiver<Control>,
        new_streams: Option<mpsc::Sender<Stream>>,
        ping_interval: Option<Duration>,
    ) where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut closing = self.shared.closing.subscribe();
        let is_closing = async { drop(closing.wait_for(|closing| *closing).await) };
        let end = tokio::select! {
            end = self.read(FrameReader::new(input, self.role), new_streams) => end.unwrap_or_else(failed),
            error = self.answer(&mut answers, ping_interval) => failed(error.into()),
            () = is_closing => SessionEnd::Closed,
        };
        tracing::trace!(?end, "a session ends");
        if matches!(end, SessionEnd::Closed) {
            let streams = self.shared.streams.end();
            timeout(CLOSE_TIMEOUT, self.say_goodbye(answers, streams)).await.ok();
        }
        self.shared.end(end);
        // No other writer waits for the peer any more.
        let mut writer = self.shared.writer.lock().await;
        timeout(CLOSE_TIMEOUT, writer.shutdown()).await.ok();
        writer.close();
    }

    /// Sends the answers that wait, resets the streams, and ends the session.
    async fn say_goodbye(&self, mut answers: mpsc::Receiver<Control>, streams: Vec<u32>) {
        let waiting = std::iter::from_fn(move || answers.try_recv().ok());
        let resets = streams.into_iter().map(|stream| Control::Reset { stream, reset: Reset::Cancel });
        let goodbye = Control::GoAway { last_stream: self.shared.streams.latest_of_peer() };
        for control in waiting.chain(resets).chain([goodbye]) {
            if self.shared.write(|writer| writer.put_control(control)).await.is_err() {
                break;
            }
        }
    }

    /// Sends answers and pings, until the connection fails.
    async fn answer(
        &self,
        answers: &mut mpsc::Receiver<Control>,
        ping_interval: Option<Duration>,
    ) -> io::Error {
        let mut ticks = ping_interval.map(|period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        let mut id = 1;
        loop {
            let tick = async {
                match &mut ticks {
                    Some(ticks) => drop(ticks.tick().await),
                    None => std::future::pending().await,
                }
            };
            let control = tokio::select! {
                // The session has a sender itself.
                answer = answers.recv() => match answer {
                    Some(answer) => answer,
                    None => return io::ErrorKind::NotConnected.into(),
                },
                () = tick => {
                    if self.shared.is_pinging.swap(true, Ordering::Relaxed) {
                        continue;
                    }
                    let ping = Control::Ping(id);
                    id = if id > u32::MAX - 2 { 1 } else { id + 2 };
                    ping
                }
            };
            if let Err(error) = self.shared.write(|writer| writer.put_control(control)).await {
                return error;
            }
        }
    }

    /// Reads until the connection or the session ends.
    async fn read<S: AsyncRead + Unpin>(
        &self,
        mut reader: FrameReader<S>,
        new_streams: Option<mpsc::Sender<Stream>>,
    ) -> Result<SessionEnd, FrameError> {
        let streams = &self.shared.streams;
        while let Some(event) = reader.next().await? {
            match event {
                Event::Data { stream, bytes, ends } => self.receive(stream, bytes, ends).await,
                Event::Open { stream, headers, ends, is_one_way } => {
                    match (streams.admit(stream), &new_streams) {
                        (Admission::Accepted(incoming), Some(new_streams)) => {
                            let new = Stream::new(stream, headers, incoming, &self.shared);
                            if is_one_way {
                                streams.end_here(stream);
                            }
                            if ends {
                                streams.end_of_peer(stream);
                            }
                            // Without anybody who accepts streams, this one is reset.
                            new_streams.send(new).await.ok();
                        }
                        // A client accepts no streams.
                        (Admission::Accepted(_) | Admission::TooMany, _) => {
                            streams.forget(stream);
                            self.answer_with(Control::Reset { stream, reset: Reset::RefusedStream })?;
                        }
                        (Admission::Invalid, _) => {
                            self.answer_with(Control::Reset { stream, reset: Reset::ProtocolError })?;
                        }
                    }
                }
                Event::Reply { stream, ends } => {
                    streams.reply(stream);
                    if ends {
                        streams.end_of_peer(stream);
                    }
                }
                Event::Headers { stream, ends: true } => streams.end_of_peer(stream),
                Event::Reset { stream } => streams.reset_by_peer(stream),
                Event::Ping(id) => {
                    let is_answer = (id % 2 == 1) == (self.role == Role::Client);
                    match is_answer {
                        true => self.shared.is_pinging.store(false, Ordering::Relaxed),
                        false => self.answer_with(Control::Ping(id))?,
                    }
                }
                Event::GoAway => return Ok(SessionEnd::GoAway),
                Event::Headers { ends: false, .. } | Event::Ignored => {}
            }
        }
        Ok(SessionEnd::Disconnected)
    }

    /// Hands data to the reader of a stream, when there is one. It waits for slow readers.
    async fn receive(&self, stream: u32, bytes: Bytes, ends: bool) {
        if let Some(data) = self.shared.streams.data(stream)
            && !bytes.is_empty()
        {
            // A reader that was dropped discards.
            data.send(Box::new(bytes)).await.ok();
        }
        if ends {
            self.shared.streams.end_of_peer(stream);
        }
    }

    fn answer_with(&self, control: Control) -> Result<(), FrameError> {
        self.shared.answers.try_send(control).map_err(|_| FrameError::Flood)
    }
}

fn failed(error: FrameError) -> SessionEnd {
    SessionEnd::Failed(Arc::new(error))
}
