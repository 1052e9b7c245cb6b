//! Writes objects member by member, where their order is not that of a schema.

use super::write_string;

/// Appends an object with the members that `write` writes.
pub fn write_object(out: &mut Vec<u8>, write: impl FnOnce(&mut ObjectWriter<'_>)) {
    out.push(b'{');
    write_members(out, write);
    out.push(b'}');
}

/// As [`write_object`], without the braces.
pub fn write_members(out: &mut Vec<u8>, write: impl FnOnce(&mut ObjectWriter<'_>)) {
    write(&mut ObjectWriter { out, is_empty: true });
}

/// Appends a list of the items that `write` appends.
pub fn write_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// Writes the members of an object in the order of the calls, as Go writes them.
///
/// Names are written as they are and must not need escapes, except those of [`ObjectWriter::entry`].
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl ObjectWriter<'_> {
    /// Writes a member whose value `write` appends.
    pub fn member(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        write(self.out);
    }

    /// As [`ObjectWriter::member`], with any name.
    pub fn entry(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.separate();
        write_string(self.out, key);
        self.out.push(b':');
        write(self.out);
    }

    /// Writes a text.
    pub fn text(&mut self, name: &str, text: &str) {
        self.member(name, |out| write_string(out, text));
    }

    /// Writes a text unless it is empty.
    pub fn text_if_any(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.text(name, text);
        }
    }

    /// Writes a truth value.
    pub fn boolean(&mut self, name: &str, value: bool) {
        self.json(name, if value { b"true" } else { b"false" });
    }

    /// Writes a number unless it is zero.
    pub fn number_if_any(&mut self, name: &str, number: i64) {
        if number != 0 {
            self.json(name, number.to_string().as_bytes());
        }
    }

    /// Writes a value that is JSON already.
    pub fn json(&mut self, name: &str, json: &[u8]) {
        self.member(name, |out| out.extend_from_slice(json));
    }

    /// Writes an object with the members that `write` writes.
    pub fn object(&mut self, name: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.member(name, |out| write_object(out, write));
    }

    /// Writes a list of the items that `write` appends, unless there are none.
    pub fn list_if_any<T>(&mut self, name: &str, items: &[T], write: impl FnMut(&mut Vec<u8>, &T)) {
        if !items.is_empty() {
            self.member(name, |out| write_list(out, items, write));
        }
    }

    /// Writes members that [`write_members`] has written.
    pub fn members(&mut self, json: &[u8]) {
        if !json.is_empty() {
            self.separate();
            self.out.extend_from_slice(json);
        }
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_written_in_the_order_of_the_calls() {
        let mut out = Vec::new();
        write_object(&mut out, |object| {
            object.members(b"");
            object.text_if_any("a", "");
            object.text_if_any("b", "<");
            object.text("c", "");
            object.number_if_any("d", 0);
            object.number_if_any("e", -1);
            object.boolean("f", true);
            object.object("g", |_| {});
            object.list_if_any("h", &[0; 0], |_, _| {});
            object.list_if_any("i", &["x", "y"], |out, text| write_string(out, text));
            object.entry("\"", |out| write_list(out, [0; 0], |_, _| {}));
            object.members(br#""j":1,"k":2"#);
            object.json("l", b"null");
        });
        let expected =
            r#"{"b":"\u003c","c":"","e":-1,"f":true,"g":{},"i":["x","y"],"\"":[],"j":1,"k":2,"l":null}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
