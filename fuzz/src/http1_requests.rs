//! Reads requests of HTTP/1, whole and in parts, and compares their heads with what hyper's parser finds.

use pintle_http1::{
    Chunks,
    head::{self, Framing, MAX_HEADERS},
};

/// The bytes give the same requests however they arrive, and hyper's parser agrees about each head that passes: where it
/// ends, and how long the body is. Returns the number of requests.
pub(crate) fn requests(mut data: &[u8]) -> usize {
    let mut count = 0;
    while let Some(end) = head::end(data, 0) {
        for searched in [end / 2, end - 1] {
            assert_eq!(head::end(&data[..searched], 0), None);
            assert_eq!(head::end(data, searched), Some(end));
        }
        let (text, rest) = data.split_at(end);
        let Ok(read) = head::read(text) else { break };
        count += 1;
        assert_eq!(head::check_beginning(text), Ok(()));
        let passed = read.rewritten.as_deref().unwrap_or(text);
        assert_eq!(framing(passed), read.framing, "{}", String::from_utf8_lossy(passed));
        let body = match read.framing {
            Framing::Length(length) => usize::try_from(length).ok(),
            Framing::Chunked => end_of_chunks(rest),
        };
        match body.and_then(|body| rest.get(body..)) {
            Some(next) => data = next,
            None => break,
        }
    }
    count
}

/// The framing of the body by hyper's rules.
fn framing(head: &[u8]) -> Framing {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    assert_eq!(
        request.parse(head),
        Ok(httparse::Status::Complete(head.len())),
        "{}",
        String::from_utf8_lossy(head)
    );
    http::Method::from_bytes(request.method.unwrap().as_bytes()).unwrap();
    request.path.unwrap().parse::<http::Uri>().unwrap();
    let values = |name: &str| -> Vec<&[u8]> {
        let named = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value).collect()
    };
    match (&values("Transfer-Encoding")[..], &values("Content-Length")[..]) {
        ([], []) => Framing::Length(0),
        ([], [length]) => Framing::Length(std::str::from_utf8(length).unwrap().parse().unwrap()),
        ([encoding], []) => {
            assert!(encoding.eq_ignore_ascii_case(b"chunked") && request.version == Some(1));
            Framing::Chunked
        }
        (encodings, lengths) => panic!("{} encodings, {} lengths", encodings.len(), lengths.len()),
    }
}

/// The number of bytes of a chunked body; `None` if it is malformed or does not end.
fn end_of_chunks(data: &[u8]) -> Option<usize> {
    let whole = read_chunks(&[data]);
    let (first, second) = data.split_at(data.len() / 2);
    assert_eq!(read_chunks(&[first, second]), whole);
    whole.ok().flatten()
}

fn read_chunks(parts: &[&[u8]]) -> Result<Option<usize>, &'static str> {
    let mut chunks = Chunks::default();
    let mut total = 0;
    for part in parts {
        let (read, is_over) = chunks.read(part)?;
        total += read;
        if is_over {
            return Ok(Some(total));
        }
        assert_eq!(read, part.len());
    }
    Ok(None)
}
