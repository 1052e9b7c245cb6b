//! Runs sessions of SPDY on bytes of a peer.

use pintle_spdy::Session;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

/// A session ends when its peer has sent everything and left, whatever that was, and so do its streams.
pub(crate) fn frames(data: &[u8]) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (near, far) = duplex(data.len().max(1));
        let (mut input, mut output) = tokio::io::split(near);
        let (session, mut streams) = Session::server(far);
        let received = tokio::spawn(async move {
            let (mut tasks, mut received) = (tokio::task::JoinSet::new(), 0);
            while let Some(stream) = streams.recv().await {
                tasks.spawn(async move {
                    stream.accept().await.ok();
                    let (mut reader, writer) = stream.split();
                    let mut received = 0;
                    while let Ok(Some(bytes)) = reader.next().await {
                        received += bytes.len();
                        writer.write(&bytes).await.ok();
                    }
                    received
                });
            }
            while let Some(count) = tasks.join_next().await {
                received += count.unwrap();
            }
            received
        });
        let answers = tokio::spawn(async move {
            let mut answers = Vec::new();
            input.read_to_end(&mut answers).await.ok();
        });
        output.write_all(data).await.ok();
        output.shutdown().await.ok();
        session.ended().await;
        assert!(received.await.unwrap() <= data.len());
        answers.await.unwrap();
    });
}
