use super::*;

const DATA: u8 = 0;
const SETTINGS: u8 = 4;
/// `GET https /`, by index.
const PLAIN: &[u8] = &[0x82, 0x87, 0x84];
/// The same with a name that Go's server refuses.
const MALFORMED: &[u8] = &[0x82, 0x87, 0x84, 0, 1, b'A', 0];

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags, 0, 0, 0, stream]);
    frame.extend(payload);
    frame
}

/// The bytes that pass, when they come in pieces.
fn passed(input: &[u8], piece: usize) -> Vec<u8> {
    let mut frames = Frames::default();
    let (mut passed, mut held) = (Vec::new(), Vec::new());
    for piece in input.chunks(piece) {
        held.extend_from_slice(piece);
        while !held.is_empty() {
            let used = match frames.step(&held) {
                Step::Pass(used) => {
                    passed.extend_from_slice(&held[..used]);
                    used
                }
                Step::Replace(used, by) => {
                    passed.extend_from_slice(&by);
                    used
                }
                Step::More => break,
                Step::Stop => unreachable!(),
            };
            assert!(used > 0);
            held.drain(..used);
        }
    }
    passed
}

fn check(input: &[Vec<u8>], expected: &[Vec<u8>]) {
    let input = [PREFACE, input.concat().as_slice()].concat();
    let expected = [PREFACE, expected.concat().as_slice()].concat();
    for piece in [1, 2, 3, 7, 100, 100_000] {
        assert_eq!(
            passed(&input, piece).escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "by {piece}"
        );
    }
}

#[test]
fn plain_frames_pass_as_they_come() {
    let padded = [&[2][..], PLAIN, &[0, 0]].concat();
    let prior = [&[0, 0, 0, 0, 16][..], PLAIN].concat();
    let frames = [
        frame(SETTINGS, 0, 0, &[0; 6]),
        frame(HEADERS, END_HEADERS, 1, PLAIN),
        frame(DATA, 0, 1, &[HEADERS; 300]),
        frame(DATA, END_STREAM, 1, &[]),
        frame(HEADERS, END_STREAM, 3, &PLAIN[..1]),
        frame(CONTINUATION, 0, 3, &[]),
        frame(CONTINUATION, END_HEADERS, 3, &PLAIN[1..]),
        frame(HEADERS, END_HEADERS | PADDED, 5, &padded),
        frame(HEADERS, END_HEADERS | PRIORITY, 7, &prior),
        frame(0xee, 0, 0, &[1; 20]),
    ];
    check(&frames, &frames);
}

/// The rules of trailers are others than those of requests.
#[test]
fn blocks_are_rewritten_from_the_first_on_that_has_to_be() {
    let refused =
        b"\0\x07:method\x03GET\0\x07:scheme\x11refused-malformed\0\x05:path\x01/\0\x0a:authority\x07refused";
    let close = b"\0\x0aconnection\x05close";
    let all = b"\0\x07:method\x03GET\0\x07:scheme\x05https\0\x05:path\x01/";
    let prior = [&[1, 0, 0, 0, 0, 16][..], PLAIN, &[0]].concat();
    check(
        &[
            frame(HEADERS, END_HEADERS, 1, PLAIN),
            frame(HEADERS, END_STREAM, 3, &MALFORMED[..5]),
            frame(CONTINUATION, END_HEADERS, 3, &MALFORMED[5..]),
            frame(DATA, 0, 1, b"a"),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0, 1, b'a', 1, b'b']),
            frame(HEADERS, END_HEADERS | PRIORITY | PADDED, 5, &prior),
            frame(HEADERS, END_HEADERS | END_STREAM, 5, PLAIN),
        ],
        &[
            frame(HEADERS, END_HEADERS, 1, PLAIN),
            frame(HEADERS, END_HEADERS | END_STREAM, 3, refused),
            frame(DATA, 0, 1, b"a"),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0, 1, b'a', 1, b'b']),
            frame(HEADERS, END_HEADERS, 5, all),
            frame(HEADERS, END_HEADERS | END_STREAM, 5, close),
        ],
    );
}

#[test]
fn long_blocks_are_rewritten_in_several_frames() {
    let value = [b'v'; 10_000];
    let header = [&[0, 1, b'a', 0x7f, 0x91, 0x4d][..], &value].concat();
    let block = [MALFORMED, &header, &header].concat();
    let first = [PLAIN, &[0, 2, b't', b'e', 0], &header].concat();
    let input = [frame(HEADERS, 0, 1, &first), frame(CONTINUATION, END_HEADERS, 1, &header)];
    let passed = passed(&[PREFACE, input.concat().as_slice()].concat(), usize::MAX);
    assert!(passed.len() > block.len());
    let head = FrameHead::of(&passed[PREFACE_BYTES..]).unwrap();
    assert_eq!((head.length, head.kind, head.flags), (MAX_PAYLOAD_BYTES, HEADERS, 0));
    let second = PREFACE_BYTES + FRAME_HEAD_BYTES + MAX_PAYLOAD_BYTES;
    let head = FrameHead::of(&passed[second..]).unwrap();
    assert_eq!((head.kind, head.flags, head.stream), (CONTINUATION, END_HEADERS, 1));
    assert_eq!(passed.len(), second + FRAME_HEAD_BYTES + head.length);
}

/// Header blocks behind such frames would be decoded with another table than the client's.
#[test]
fn frames_that_are_not_allowed_end_the_connection() {
    let begun = frame(HEADERS, 0, 1, PLAIN);
    let many = vec![frame(CONTINUATION, 0, 1, &[]); MAX_BLOCK_FRAMES];
    let rows = [
        vec![frame(CONTINUATION, END_HEADERS, 1, &[])],
        vec![begun.clone(), frame(DATA, 0, 1, &[])],
        vec![begun.clone(), frame(CONTINUATION, END_HEADERS, 3, &[])],
        vec![frame(HEADERS, END_HEADERS | PADDED, 1, &[4, 0, 0, 0])],
        vec![frame(HEADERS, END_HEADERS | PRIORITY, 1, &[0; 4])],
        vec![frame(HEADERS, END_HEADERS, 1, &[0x82; MAX_PAYLOAD_BYTES + 1])[..FRAME_HEAD_BYTES].to_vec()],
        [vec![begun.clone()], many].concat(),
    ];
    for frames in rows {
        let input = [PREFACE, frames.concat().as_slice()].concat();
        let passed = passed(&[input.clone(), frame(SETTINGS, 0, 0, &[])].concat(), input.len());
        assert_eq!(passed, [&input, &FATAL[..]].concat());
    }
}

#[test]
fn a_block_counts_until_its_last_frame() {
    let mut frames = Frames::default();
    assert!(matches!(frames.step(PREFACE), Step::Pass(PREFACE_BYTES)));
    let mut block = frame(HEADERS, 0, 1, &[0x82; 700]);
    assert!(matches!(frames.step(&block), Step::More));
    assert_eq!(frames.memory(), block.len() * HEADER_BYTES);
    block.extend(frame(CONTINUATION, END_HEADERS, 1, &[0x82]));
    assert!(matches!(frames.step(&block), Step::Replace(..)));
    assert_eq!(frames.memory(), 0);
}
