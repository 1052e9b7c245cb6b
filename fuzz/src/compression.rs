//! Fuzzes the compression of values: the library's encoder is not safe Rust.

use pintle_storage::Packed;

/// Bytes come back from their compressed form. Only what shrinks is compressed, as a repetition does.
pub(crate) fn compression(data: &[u8]) {
    for bytes in [data.to_vec(), data.repeat(3), [data, data.get(1..).unwrap_or_default()].concat()] {
        let packed = Packed::new(&bytes.clone().into());
        assert_eq!((packed.size(), &packed.unpack()[..]), (bytes.len(), &bytes[..]));
    }
}
