//! Reads frames of WebSocket, whole and in parts.

use pintle_websocket::{Event, Reader, Role};
use tokio::io::AsyncReadExt;

/// The same bytes give the same events however they arrive, and no piece is larger than its bytes.
pub(crate) fn frames(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for role in [Role::Server, Role::Client] {
        let (whole, error) = runtime.block_on(read(data, role, data.len()));
        let (parts, other) = runtime.block_on(read(data, role, data.len() / 2));
        assert_eq!((&whole, &error), (&parts, &other));
        let length: usize = whole.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(length <= data.len());
    }
}

/// The messages and control frames, and the error that ended the reading.
async fn read(data: &[u8], role: Role, cut: usize) -> (Vec<(String, Vec<u8>)>, Option<String>) {
    let (first, second) = data.split_at(cut);
    let mut reader = Reader::new(first.chain(second), role);
    let mut events: Vec<(String, Vec<u8>)> = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(Event::Piece { is_text, is_first, bytes, .. })) => {
                if is_first {
                    events.push((format!("text {is_text}"), Vec::new()));
                }
                let message = events.iter_mut().rev().find(|(kind, _)| kind.starts_with("text")).unwrap();
                message.1.extend_from_slice(&bytes);
            }
            Ok(Some(Event::Ping(bytes))) => events.push(("ping".to_owned(), bytes.to_vec())),
            Ok(Some(event)) => events.push((format!("{event:?}"), Vec::new())),
            Ok(None) => return (events, None),
            Err(error) => return (events, Some(error.to_string())),
        }
    }
}
