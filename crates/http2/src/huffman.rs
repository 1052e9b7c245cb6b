//! The Huffman code of header texts ([RFC 7541, appendix B](https://www.rfc-editor.org/rfc/rfc7541#appendix-B)).
//!
//! The code is canonical: codes are ordered by length, and by symbol among those of a length. The lengths determine it.

/// The symbol that no text has.
const EOS: u16 = 256;
const SYMBOLS: usize = 257;

/// The length of each symbol's code, in bits.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];

/// The codes of one length.
#[derive(Clone, Copy)]
struct Group {
    bits: u32,
    /// The first code, aligned to the left of 32 bits.
    first: u64,
    /// The end of the codes, aligned alike.
    end: u64,
    /// The position of the first code's symbol in the order of codes.
    symbol: usize,
}

/// The number of different lengths.
const GROUPS: usize = 21;

#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled, where a wrong index is an error")]
const CODE: ([Group; GROUPS], [u16; SYMBOLS]) = {
    let mut groups = [Group { bits: 0, first: 0, end: 0, symbol: 0 }; GROUPS];
    let mut symbols = [0; SYMBOLS];
    let (mut group, mut position, mut code, mut bits) = (0, 0, 0_u64, 1);
    while bits <= 30 {
        let first = code;
        let begin = position;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as u32 == bits {
                symbols[position] = symbol as u16;
                position += 1;
                code += 1 << (32 - bits);
            }
            symbol += 1;
        }
        if position > begin {
            groups[group] = Group { bits, first, end: code, symbol: begin };
            group += 1;
        }
        bits += 1;
    }
    (groups, symbols)
};

/// The codes of eight bits at most, which most texts have alone: for each byte the symbol of the code that it begins with, and
/// the code's length; zero if it begins a longer one.
#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled, where a wrong index is an error")]
static SHORT: [(u8, u8); 256] = {
    let mut short = [(0, 0); 256];
    let mut group = 0;
    while group < GROUPS {
        let Group { bits, first, end, symbol } = CODE.0[group];
        if bits <= 8 {
            let mut byte = (first >> 24) as usize;
            while byte < (end >> 24) as usize {
                let index = (((byte as u64) << 24) - first) >> (32 - bits);
                short[byte] = (CODE.1[symbol + index as usize] as u8, bits as u8);
                byte += 1;
            }
        }
        group += 1;
    }
    short
};

/// The next bits of a text, aligned to the left, and their number.
struct Window<'a> {
    bits: u64,
    available: u32,
    input: std::slice::Iter<'a, u8>,
}

impl Window<'_> {
    /// Takes as many bytes as there is room for.
    fn fill(&mut self) {
        while self.available <= 56 {
            let Some(byte) = self.input.next() else { break };
            self.bits |= u64::from(*byte) << (56 - self.available);
            self.available += 8;
        }
    }

    fn skip(&mut self, bits: u32) {
        self.bits <<= bits;
        self.available -= bits;
    }
}

/// Appends the decoded text. Returns `None` for a text that is not well-formed.
pub(crate) fn decode(input: &[u8], text: &mut Vec<u8>) -> Option<()> {
    static LONG: ([Group; GROUPS], [u16; SYMBOLS]) = CODE;
    let (groups, symbols) = &LONG;
    text.reserve(input.len() * 2);
    let mut window = Window { bits: 0, available: 0, input: input.iter() };
    loop {
        if window.available < 8 {
            window.fill();
        }
        let byte = usize::try_from(window.bits >> 56).ok()?;
        if let Some((symbol, bits @ 1..)) = SHORT.get(byte).copied()
            && u32::from(bits) <= window.available
        {
            text.push(symbol);
            window.skip(u32::from(bits));
            continue;
        }
        window.fill();
        if window.available == 0 {
            return Some(());
        }
        let next = window.bits >> 32;
        let group = groups.iter().find(|group| next < group.end)?;
        if group.bits > window.available {
            // The text ends with the first bits of EOS, which are ones, and fewer than eight.
            let ones = (1_u64 << window.available) - 1;
            return (window.available < 8 && window.bits >> (64 - window.available) == ones).then_some(());
        }
        let index = usize::try_from((next - group.first) >> (32 - group.bits)).ok()?;
        let symbol = *symbols.get(group.symbol + index)?;
        if symbol == EOS {
            return None;
        }
        text.push(u8::try_from(symbol).ok()?);
        window.skip(group.bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded() {
        // <https://www.rfc-editor.org/rfc/rfc7541#appendix-C.4>
        let rows: [(&[u8], Option<&[u8]>); 10] = [
            (
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
                Some(b"www.example.com"),
            ),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], Some(b"no-cache")),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf], Some(b"custom-value")),
            (&[], Some(b"")),
            // Padding of eight bits, of zeros, EOS itself.
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf, 0xff], None),
            (&[0x08], None),
            (&[0xff, 0xff, 0xff, 0xff], None),
            (&[0xff], None),
            (&[0b0000_0111], Some(b"0")),
            // `X`, of eight bits, and `!`, of ten.
            (&[0xfc, 0xfe, 0x3f], Some(b"X!")),
        ];
        for (input, expected) in rows {
            let mut text = Vec::new();
            let decoded = decode(input, &mut text).map(|()| text.as_slice());
            assert_eq!(decoded, expected, "{input:?}");
        }
    }
}
