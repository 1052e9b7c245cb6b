//! The standard streams of a command, whatever protocol carries them.

use bytes::Bytes;
use tokio::sync::mpsc;

/// The streams that a client asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) tty: bool,
}

impl Wanted {
    pub(crate) fn of(query: &[(String, String)]) -> Wanted {
        let has = |wanted: &str| query.iter().any(|(name, value)| name == wanted && value == "1");
        let tty = has("tty");
        Wanted { stdin: has("input"), stdout: has("output"), stderr: has("error") && !tty, tty }
    }
}

/// The command's side of the streams.
pub(crate) struct Streams {
    pub(crate) stdin: mpsc::Receiver<Bytes>,
    pub(crate) sizes: mpsc::Receiver<Bytes>,
    pub(crate) stdout: mpsc::Sender<Bytes>,
    pub(crate) stderr: mpsc::Sender<Bytes>,
}

/// The connection's side of the streams.
pub(crate) struct Ends {
    pub(crate) stdin: mpsc::Sender<Bytes>,
    pub(crate) sizes: mpsc::Sender<Bytes>,
    pub(crate) stdout: mpsc::Receiver<Bytes>,
    pub(crate) stderr: mpsc::Receiver<Bytes>,
}

/// The streams of a command and of its connection.
pub(crate) fn streams() -> (Streams, Ends) {
    let (stdin, input) = mpsc::channel(4);
    let (size, sizes) = mpsc::channel(4);
    let (stdout, output) = mpsc::channel(4);
    let (stderr, errors) = mpsc::channel(4);
    let streams = Streams { stdin: input, sizes, stdout, stderr };
    (streams, Ends { stdin, sizes: size, stdout: output, stderr: errors })
}
