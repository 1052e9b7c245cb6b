//! Quantities out of objects.

use pintle_machinery::Quantity;

/// What parses has a value and an opposite.
pub(crate) fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(mut quantity) = Quantity::parse(text) else { return };
    let _ = (quantity.value(), quantity.milli_value(), quantity.as_i64(), quantity.as_approximate_f64());
    let other = quantity.clone();
    quantity.sub(&other);
    assert!(quantity.is_zero());
    quantity.add(&other);
    assert_eq!(quantity, other);
}
