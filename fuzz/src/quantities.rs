//! Quantities out of objects.

use pintle_machinery::Quantity;
use pintle_machinery::codec::canonical_quantity;

/// The codecs and the arithmetic read and print alike, and what is printed reads back as the same number.
pub fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = Quantity::parse(text);
    match canonical_quantity(text) {
        Ok(canonical) => assert_eq!(parsed.as_ref().map(ToString::to_string).as_deref(), Ok(&*canonical)),
        Err(error) => assert_eq!(parsed.as_ref().map_err(ToString::to_string).err().as_deref(), Some(error)),
    }
    let Ok(mut quantity) = parsed else { return };
    let _ = (quantity.value(), quantity.milli_value(), quantity.as_i64(), quantity.as_approximate_f64());
    let other = quantity.clone();
    quantity.sub(&other);
    assert!(quantity.is_zero());
    quantity.add(&other);
    assert_eq!(quantity, other);
}
