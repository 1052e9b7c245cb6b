//! The minimum cost of forwarding on this machine: a thread that copies the same bytes between two connections, without
//! TLS, HTTP or any other work, with as few system calls as a proxy can have.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use pintle_harness::Error;

/// The CPU time of the copying thread for one exchange of this many bytes there and back. The next one begins after
/// `pause`. Without an answer (`back` is 0) the exchange is a message.
pub(crate) fn cost(count: u32, there: usize, back: usize, pause: Duration) -> Result<Duration, Error> {
    let front = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let behind = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (near, far) = (front.local_addr()?, behind.local_addr()?);
    let relay = thread::spawn(move || -> Result<Duration, Error> {
        let (mut client, _) = front.accept()?;
        let mut server = TcpStream::connect(far)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut buffer = vec![0; there.max(back)];
        let before = cpu_time()?;
        for _ in 0..count {
            pass(&mut client, &mut server, &mut buffer, there)?;
            pass(&mut server, &mut client, &mut buffer, back)?;
        }
        Ok((cpu_time()? - before) / count)
    });
    let server = thread::spawn(move || -> Result<(), Error> {
        let (mut stream, _) = behind.accept()?;
        stream.set_nodelay(true)?;
        let mut buffer = vec![0; there.max(back)];
        for _ in 0..count {
            stream.read_exact(buffer.get_mut(..there).unwrap_or_default())?;
            stream.write_all(buffer.get(..back).unwrap_or_default())?;
        }
        Ok(())
    });
    let mut client = TcpStream::connect(near)?;
    client.set_nodelay(true)?;
    let mut buffer = vec![0; there.max(back)];
    for _ in 0..count {
        client.write_all(buffer.get(..there).unwrap_or_default())?;
        client.read_exact(buffer.get_mut(..back).unwrap_or_default())?;
        if !pause.is_zero() {
            #[expect(clippy::disallowed_methods, reason = "no runtime owns the thread")]
            thread::sleep(pause);
        }
    }
    server.join().map_err(|_| "the server's thread panicked")??;
    relay.join().map_err(|_| "the copying thread panicked")?
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, buffer: &mut [u8], bytes: usize) -> Result<(), Error> {
    let mut left = bytes;
    while left > 0 {
        let room = left.min(buffer.len());
        let count = from.read(buffer.get_mut(..room).unwrap_or_default())?;
        if count == 0 {
            return Err("a connection ended".into());
        }
        to.write_all(buffer.get(..count).unwrap_or_default())?;
        left -= count;
    }
    Ok(())
}

/// The CPU time of this thread.
fn cpu_time() -> Result<Duration, Error> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().ok_or("no time")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}
