use super::*;

const REQUEST: BlockKind = BlockKind::Request { is_whole: true };
const WITH_BODY: BlockKind = BlockKind::Request { is_whole: false };

type Rows<'a> = &'a [(&'a [u8], &'a [u8])];

fn block(headers: Rows<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        literal(&mut block, name, value);
    }
    block
}

/// The headers of a block, as text.
fn shown(block: &[u8]) -> String {
    let mut shown = Vec::new();
    let decoded = Instructions::default().decode(block, |name, value, _| {
        shown.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        true
    });
    match decoded {
        Some(()) => shown.join(" "),
        None => "undecodable".to_owned(),
    }
}

fn judge(kind: BlockKind, headers: Rows<'_>) -> String {
    match HeaderBlocks::default().judge(&block(headers), kind) {
        Judgement::Plain => "plain".to_owned(),
        Judgement::Rewritten(block) => shown(&block),
    }
}

const MALFORMED: &str = ":method=GET :scheme=refused-malformed :path=/ :authority=refused";
const MALFORMED_TRAILERS: &str = "connection=close";
const METHOD: (&[u8], &[u8]) = (b":method", b"GET");
const SCHEME: (&[u8], &[u8]) = (b":scheme", b"https");
const HOST: (&[u8], &[u8]) = (b":authority", b"h:1");
const PATH: (&[u8], &[u8]) = (b":path", b"/a?b");

fn refused(why: &str) -> String {
    format!(":method=GET :scheme=refused-{why} :path=/ :authority=refused")
}

#[test]
fn pseudo_headers_are_read_by_gos_rules() {
    let rows: [(Rows<'_>, &str); 27] = [
        (&[METHOD, SCHEME, HOST, PATH], "plain"),
        (&[METHOD, SCHEME, PATH], "plain"),
        (&[SCHEME, PATH], MALFORMED),
        (&[METHOD, PATH], MALFORMED),
        (&[METHOD, SCHEME], MALFORMED),
        (&[METHOD, METHOD, SCHEME, PATH], MALFORMED),
        (&[METHOD, SCHEME, (b"x", b"y"), PATH], MALFORMED),
        (&[METHOD, SCHEME, PATH, (b":status", b"200")], MALFORMED),
        (&[METHOD, SCHEME, PATH, (b":other", b"x")], MALFORMED),
        (&[(b":method", b""), SCHEME, PATH], MALFORMED),
        (&[(b":method", b"G T"), SCHEME, PATH], MALFORMED),
        (&[METHOD, (b":scheme", b"http"), PATH], "plain"),
        (&[METHOD, (b":scheme", b"HTTPS"), PATH], MALFORMED),
        (&[METHOD, (b":scheme", b"refused-te"), HOST, PATH], MALFORMED),
        (&[METHOD, (b":scheme", b""), PATH], MALFORMED),
        (&[METHOD, SCHEME, (b":path", b"")], MALFORMED),
        (&[METHOD, SCHEME, (b":path", b"?a")], MALFORMED),
        (&[METHOD, SCHEME, (b":path", b"/a%zz")], MALFORMED),
        (&[METHOD, SCHEME, (b":path", b"/a\tb")], MALFORMED),
        (&[METHOD, SCHEME, (b":path", b"/a?%zz\\^`{}|")], "plain"),
        (
            &[METHOD, SCHEME, (b":path", b"/a b#c\xff<?d e>")],
            ":method=GET :scheme=https :path=/a%20b%23c%FF%3C?d%20e%3E",
        ),
        (&[METHOD, SCHEME, HOST, (b":path", b"/a^")], ":method=GET :scheme=https :path=/a%5E :authority=h:1"),
        (&[METHOD, SCHEME, PATH, (b":authority", b"")], ":method=GET :scheme=https :path=/a?b"),
        (&[METHOD, SCHEME, PATH, (b":authority", b"a b")], ":method=GET :scheme=https :path=/a?b host=a b"),
        (&[METHOD, SCHEME, PATH, (b":authority", b"u@h")], MALFORMED),
        (&[METHOD, SCHEME, PATH, (b"host", b"u@h")], MALFORMED),
        (&[METHOD, SCHEME, PATH, HOST, (b"host", b"u@h")], "plain"),
    ];
    for (headers, expected) in rows {
        assert_eq!(judge(REQUEST, headers), expected, "{}", shown(&block(headers)));
    }
}

#[test]
fn connect_has_an_authority_alone() {
    let connect: (&[u8], &[u8]) = (b":method", b"CONNECT");
    let rows: [(Rows<'_>, &str); 5] = [
        (&[connect, HOST], "plain"),
        (&[connect], MALFORMED),
        (&[connect, HOST, PATH], MALFORMED),
        (&[connect, HOST, (b":path", b"")], ":method=CONNECT :authority=h:1"),
        (&[connect, SCHEME, HOST, PATH, (b":protocol", b"websocket")], MALFORMED),
    ];
    for (headers, expected) in rows {
        assert_eq!(judge(REQUEST, headers), expected, "{}", shown(&block(headers)));
    }
}

#[test]
fn other_headers_are_read_by_gos_rules() {
    let te: (&[u8], &[u8]) = (b"te", b"trailers");
    let rows: [(BlockKind, Rows<'_>, &str); 21] = [
        (REQUEST, &[(b"a", b"\xff \t")], "plain"),
        (REQUEST, &[(b"A", b"")], MALFORMED),
        (REQUEST, &[(b"", b"")], MALFORMED),
        (REQUEST, &[(b"a b", b"")], MALFORMED),
        (REQUEST, &[(b"a", b"\0")], MALFORMED),
        (REQUEST, &[(b"a", b"\x7f")], MALFORMED),
        (REQUEST, &[(b"upgrade", b"x"), (b"connection", b"x")], &refused("connection")),
        (REQUEST, &[(b"connection", b"x"), (b"upgrade", b"x")], &refused("connection")),
        (REQUEST, &[(b"keep-alive", b"")], &refused("keep-alive")),
        (REQUEST, &[te], "plain"),
        (REQUEST, &[te, te], &refused("te")),
        (REQUEST, &[(b"te", b"gzip")], &refused("te")),
        (REQUEST, &[(b"te", b"")], ""),
        (REQUEST, &[(b"connection", b"x"), (b"A", b"")], MALFORMED),
        (REQUEST, &[(b"content-length", b"0")], "plain"),
        (REQUEST, &[(b"content-length", b"5")], ""),
        (WITH_BODY, &[(b"content-length", b"5")], "plain"),
        (WITH_BODY, &[(b"content-length", b"5"), (b"content-length", b"6")], " content-length=5"),
        (WITH_BODY, &[(b"content-length", b"+5")], " content-length=0"),
        (BlockKind::Trailers, &[(b"a", b"b")], "plain"),
        (BlockKind::Trailers, &[(b"A", b"b")], MALFORMED_TRAILERS),
    ];
    for (kind, headers, expected) in rows {
        let all = match kind {
            BlockKind::Trailers => headers.to_vec(),
            _ => [&[METHOD, SCHEME, HOST, PATH], headers].concat(),
        };
        let judged = judge(kind, &all);
        let judged =
            judged.strip_prefix(":method=GET :scheme=https :path=/a?b :authority=h:1").unwrap_or(&judged);
        assert_eq!(judged, expected, "{}", shown(&block(&all)));
    }
    assert_eq!(judge(BlockKind::Trailers, &[PATH, (b"a", b"b")]), MALFORMED_TRAILERS);
    assert_eq!(judge(BlockKind::Trailers, &[(b"a", b"b"), (b"connection", b"x"), te]), "a=b");
}

/// The table of the library is not the client's once a block was rewritten.
#[test]
fn blocks_behind_a_rewritten_one_refer_to_nothing() {
    let mut blocks = HeaderBlocks::default();
    let mut plain = block(&[METHOD, SCHEME, PATH]);
    // `a: b` is added to the table.
    plain.extend([0x40, 1, b'a', 1, b'b']);
    assert_eq!(blocks.judge(&plain, REQUEST), Judgement::Plain);
    let rewritten = |judgement: Judgement| match judgement {
        Judgement::Plain => "plain".to_owned(),
        Judgement::Rewritten(block) => shown(&block),
    };
    // GET, https, `/` and `a: b`, by index.
    let referring = [0x82, 0x87, 0x84, 0x80 | 62];
    assert_eq!(blocks.judge(&referring, REQUEST), Judgement::Plain);
    let added = [0x40, 1, b'A', 1, b'b'];
    assert_eq!(rewritten(blocks.judge(&[&referring[..], &added].concat(), REQUEST)), MALFORMED);
    let moved = [0x82, 0x87, 0x84, 0x80 | 63];
    assert_eq!(rewritten(blocks.judge(&moved, REQUEST)), ":method=GET :scheme=https :path=/ a=b");
    // An entry that is not well-formed stays so.
    assert_eq!(rewritten(blocks.judge(&referring, REQUEST)), MALFORMED);
    assert_eq!(rewritten(blocks.judge(&[0x80 | 64], REQUEST)), "undecodable");
}

#[test]
fn headers_beyond_a_megabyte_are_left_to_the_library_or_refused() {
    let large = vec![b'x'; 4000];
    let head = [METHOD, SCHEME, HOST, PATH];
    let with = |count: usize, last: (&'static [u8], &'static [u8])| {
        let mut headers = head.to_vec();
        headers.extend(std::iter::repeat_n((&b"a"[..], &large[..]), count));
        headers.push(last);
        judge(REQUEST, &headers)
    };
    assert_eq!(with(300, (b"a", b"b")), "plain");
    // It is not looked at.
    assert_eq!(with(300, (b"A", b"b")), "plain");
    assert_eq!(with(200, (b"A", b"b")), MALFORMED);
    let mut headers = vec![METHOD, SCHEME, HOST, (&b":path"[..], &b"/ "[..])];
    headers.extend(std::iter::repeat_n((&b"a"[..], &large[..]), 300));
    assert_eq!(judge(REQUEST, &headers), refused("too-large"));
    let path = [b"/".repeat(MAX_TARGET_BYTES), b"/".to_vec()].concat();
    assert_eq!(judge(REQUEST, &[METHOD, SCHEME, HOST, (b":path", &path)]), refused("too-large"));
}

/// The library accepts each path that passes, unchanged, and each rewritten one.
#[test]
fn paths_that_pass_are_paths_of_the_library() {
    for place in ["/", "/?"] {
        for byte in 0..=u8::MAX {
            let path = [place.as_bytes(), &[byte], b"00"].concat();
            if !is_path(&path) {
                continue;
            }
            let passed = encoded(&path).unwrap_or(path.clone());
            let read = http::uri::PathAndQuery::try_from(passed.as_slice());
            let read = read.as_ref().map(|read| read.as_str().as_bytes());
            assert_eq!(read.ok(), Some(&passed[..]), "{}", path.escape_ascii());
        }
    }
}

#[test]
fn refusals_are_schemes_of_the_library() {
    let headers = Headers::default();
    let names = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    let of_headers = names.map(|name| Refusal::of_header(name.as_bytes()).unwrap());
    for refusal in of_headers.into_iter().chain([Refusal::Malformed, Refusal::Te, Refusal::TooLarge]) {
        assert!(shown(&headers.refused(refusal)).contains(refusal.scheme()));
        assert!(http::uri::Scheme::try_from(refusal.scheme()).is_ok());
        assert_eq!(Refusal::of_scheme(refusal.scheme()), Some(refusal));
    }
    assert_eq!(Refusal::of_scheme("https"), None);
}
