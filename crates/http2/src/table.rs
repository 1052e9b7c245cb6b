//! The tables of headers that a block refers to ([RFC 7541, section 2.3](https://www.rfc-editor.org/rfc/rfc7541#section-2.3)).

use std::collections::VecDeque;

/// The size that the table may have at most, in bytes: the one that peers assume, and that no setting changes here.
pub(crate) const MAX_TABLE_BYTES: usize = 4096;
/// The size of an entry beside its text, in bytes.
pub(crate) const ENTRY_BYTES: usize = 32;

/// The headers that earlier blocks of the connection added, and those that every connection has.
pub(crate) struct Table {
    /// The latest entry is the first.
    entries: VecDeque<Entry>,
    size: usize,
    max_size: usize,
}

struct Entry {
    text: Box<[u8]>,
    name_length: usize,
    is_checked: bool,
}

impl Default for Table {
    fn default() -> Table {
        Table { entries: VecDeque::new(), size: 0, max_size: MAX_TABLE_BYTES }
    }
}

impl Table {
    /// The name and the value with this index, and whether they were found to be well-formed.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], &[u8], bool)> {
        let index = index.checked_sub(1)?;
        match index.checked_sub(STATIC.len()) {
            None => STATIC.get(index).map(|(name, value)| (*name, *value, true)),
            Some(index) => {
                let entry = self.entries.get(index)?;
                let (name, value) = entry.text.split_at_checked(entry.name_length)?;
                Some((name, value, entry.is_checked))
            }
        }
    }

    /// Adds an entry, which displaces the oldest ones. One that is larger than the table empties it.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8], is_checked: bool) {
        let size = name.len() + value.len() + ENTRY_BYTES;
        self.shrink_to(self.max_size.saturating_sub(size));
        if size <= self.max_size {
            self.size += size;
            let text = [name, value].concat().into();
            self.entries.push_front(Entry { text, name_length: name.len(), is_checked });
        }
    }

    /// Changes the size of the table. `None` if it may not have this size.
    pub(crate) fn resize(&mut self, max_size: usize) -> Option<()> {
        if max_size > MAX_TABLE_BYTES {
            return None;
        }
        self.max_size = max_size;
        self.shrink_to(max_size);
        Some(())
    }

    fn shrink_to(&mut self, size: usize) {
        while self.size > size
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= entry.text.len() + ENTRY_BYTES;
        }
    }
}

/// The entries of all connections, from index 1 on ([RFC 7541, appendix A](https://www.rfc-editor.org/rfc/rfc7541#appendix-A)).
static STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_give_way() {
        let mut table = Table::default();
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(2), Some((&b":method"[..], &b"GET"[..], true)));
        assert_eq!(table.get(62), None);
        let value = |index: usize| vec![b'a' + index as u8; 1000];
        for index in 0..5 {
            table.add(b"name", &value(index), false);
        }
        let values = |table: &Table| -> Vec<u8> {
            (62..70).map_while(|index| table.get(index)).map(|(_, value, _)| value[0]).collect()
        };
        assert_eq!(values(&table), b"edc");
        table.resize(2 * 1036).unwrap();
        assert_eq!(values(&table), b"ed");
        assert_eq!(table.resize(MAX_TABLE_BYTES + 1), None);
        table.add(b"name", &[0; MAX_TABLE_BYTES], false);
        assert_eq!(values(&table), b"");
    }
}
