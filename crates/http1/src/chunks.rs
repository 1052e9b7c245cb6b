//! Finds the end of a chunked body ([RFC 9112, section 7.1](https://www.rfc-editor.org/rfc/rfc9112#section-7.1)), and
//! rejects the malformed bodies that Go's reader rejects.

/// The length limit of the line before a chunk, in bytes.
const MAX_LINE_BYTES: u64 = 4096;
/// The limit of bytes that are not data, beyond the allowance of each chunk, as in Go's reader.
const MAX_EXCESS: u64 = 16 << 10;
const EXCESS_PER_CHUNK: u64 = 16;

/// The position in a chunked body; data is skipped, everything else is parsed byte by byte.
#[derive(Default)]
pub struct Chunks {
    at: Position,
    size: u64,
    digits: u8,
    line: u64,
    excess: u64,
    /// The error in the chunk size; reported when its line has ended correctly.
    wrong: Option<&'static str>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Position {
    #[default]
    Size,
    /// After the size, where only blanks may precede the end of the line or an extension.
    Blank,
    Extension,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    /// At the beginning of a trailer line; an empty line ends the body.
    Trailer,
    TrailerEnd,
    TrailerLine,
}

impl Chunks {
    /// Parses more input. Returns how many bytes belong to the body, and whether the body ends with them.
    ///
    /// # Errors
    /// Go's message about a malformed body.
    pub fn read(&mut self, input: &[u8]) -> Result<(usize, bool), &'static str> {
        let mut read = 0;
        while let Some(byte) = input.get(read) {
            if self.at == Position::Data {
                let passed = self.size.min((input.len() - read) as u64);
                self.size -= passed;
                read += usize::try_from(passed).unwrap_or(usize::MAX);
                if self.size == 0 {
                    self.at = Position::DataReturn;
                }
                continue;
            }
            read += 1;
            if self.next(*byte)? {
                return Ok((read, true));
            }
        }
        Ok((read, false))
    }

    /// Parses a byte outside of data; true at the end of the body.
    fn next(&mut self, byte: u8) -> Result<bool, &'static str> {
        if matches!(self.at, Position::Size | Position::Blank | Position::Extension) {
            self.line += 1;
            if self.line > MAX_LINE_BYTES {
                return Err("header line too long");
            }
        }
        self.at = match (self.at, byte) {
            (Position::Size | Position::Blank | Position::Extension, b'\n') => {
                return Err("chunked line ends with bare LF");
            }
            (Position::Size, b'\r' | b';') if self.digits == 0 => {
                self.wrong = Some("empty hex number for chunk length");
                if byte == b'\r' { Position::SizeEnd } else { Position::Extension }
            }
            (Position::Size | Position::Blank | Position::Extension, b'\r') => Position::SizeEnd,
            (Position::Size, b';') => Position::Extension,
            (Position::Size, b' ' | b'\t') if self.digits > 0 => Position::Blank,
            (Position::Blank, b' ' | b'\t') => Position::Blank,
            (Position::Size, digit) => match char::from(digit).to_digit(16) {
                Some(digit) if self.digits < 16 => {
                    self.digits += 1;
                    self.size = self.size << 4 | u64::from(digit);
                    Position::Size
                }
                Some(_) => self.wrong("http chunk length too large"),
                None => self.wrong("invalid byte in chunk length"),
            },
            (Position::Blank, _) => self.wrong("invalid byte in chunk length"),
            (Position::Extension, _) => Position::Extension,
            (Position::SizeEnd, b'\n') => self.begin()?,
            (Position::SizeEnd, _) => return Err("invalid CR in chunked line"),
            (Position::DataReturn, b'\r') => Position::DataEnd,
            (Position::DataEnd, b'\n') => Position::Size,
            (Position::Data | Position::DataReturn | Position::DataEnd, _) => {
                return Err("malformed chunked encoding");
            }
            (Position::Trailer, b'\r') => Position::TrailerEnd,
            (Position::Trailer | Position::TrailerEnd, b'\n') => return Ok(true),
            (Position::TrailerLine, b'\n') => Position::Trailer,
            (Position::Trailer | Position::TrailerLine | Position::TrailerEnd, _) => Position::TrailerLine,
        };
        Ok(false)
    }

    fn wrong(&mut self, why: &'static str) -> Position {
        self.wrong = Some(why);
        Position::Extension
    }

    /// Ends the line before a chunk.
    fn begin(&mut self) -> Result<Position, &'static str> {
        if let Some(why) = self.wrong {
            return Err(why);
        }
        let allowed = EXCESS_PER_CHUNK.saturating_add(self.size.saturating_mul(2));
        // The CR is counted already; the line's LF and the line end after the data are not.
        self.excess = (self.excess + self.line + 1).saturating_sub(allowed);
        if self.excess > MAX_EXCESS {
            return Err("chunked encoding contains too much non-data");
        }
        (self.line, self.digits) = (0, 0);
        Ok(if self.size == 0 { Position::Trailer } else { Position::Data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8], piece: usize) -> Result<Option<usize>, &'static str> {
        let mut chunks = Chunks::default();
        let mut total = 0;
        for part in input.chunks(piece) {
            let (read, is_over) = chunks.read(part)?;
            total += read;
            if is_over {
                return Ok(Some(total));
            }
            assert_eq!(read, part.len());
        }
        Ok(None)
    }

    #[test]
    fn the_end_is_found_however_the_bytes_come() {
        let check = |body: &str, expected: Result<Option<usize>, &'static str>| {
            // Of long bodies, most sizes of pieces show nothing new.
            for piece in (1..=body.len()).filter(|piece| body.len() < 100 || piece.is_power_of_two()) {
                assert_eq!(read(body.as_bytes(), piece), expected, "{body:?} by {piece}");
            }
        };
        check("0\r\n\r\n", Ok(Some(5)));
        check("0\r\n\r\nGET", Ok(Some(5)));
        check("3\r\nabc\r\n0\r\n\r\n", Ok(Some(13)));
        check("3 \t\r\nabc\r\n0\r\n\r\n", Ok(Some(15)));
        check("A;x=\"y\"\r\n0123456789\r\n00\r\nTrailer: x\r\n\r\nGET", Ok(Some(39)));
        check("3\r\nabc\r\n", Ok(None));
        check("0\r\nX: y\n\n", Ok(Some(9)));
        check("zz\r\n\r\n", Err("invalid byte in chunk length"));
        check("1 2\r\n", Err("invalid byte in chunk length"));
        check("3 ;x\r\n", Err("invalid byte in chunk length"));
        check("-1\r\n", Err("invalid byte in chunk length"));
        check("\r\n", Err("empty hex number for chunk length"));
        check(";x\r\n", Err("empty hex number for chunk length"));
        check("zz\n", Err("chunked line ends with bare LF"));
        check("3\nabc", Err("chunked line ends with bare LF"));
        check("3\rabc", Err("invalid CR in chunked line"));
        check("3\r\nabcd\r\n", Err("malformed chunked encoding"));
        check("3\r\nabc\n", Err("malformed chunked encoding"));
        check("11111111111111111\r\n", Err("http chunk length too large"));
        check(&format!("1;{}\r\n", "x".repeat(5000)), Err("header line too long"));
        let padded = format!("1;{}\r\nx\r\n", "y".repeat(4000));
        check(&padded.repeat(5), Err("chunked encoding contains too much non-data"));
        check(&"1\r\nx\r\n".repeat(2000), Ok(None));
    }
}
