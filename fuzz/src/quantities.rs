//! Fuzzes the quantities of objects.

use pintle_machinery::Quantity;

/// A parsed quantity has a value and a negation, and its printed form parses and prints the same.
pub(crate) fn quantity(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(mut quantity) = Quantity::parse(text) else { return };
    let _ = (quantity.value(), quantity.milli_value(), quantity.as_i64(), quantity.as_approximate_f64());
    let printed = quantity.to_string();
    let read = Quantity::parse(&printed).expect("what was printed can be read");
    assert_eq!(read.to_string(), printed);
    let mut negated = Quantity::default();
    negated.sub(&quantity);
    assert_eq!(negated.sign(), -quantity.sign());
    let other = quantity.clone();
    quantity.add(&negated);
    assert!(quantity.is_zero());
    quantity.sub(&negated);
    assert_eq!(quantity, other);
    quantity.round_up(0);
    assert!(if other.sign() < 0 { quantity <= other } else { quantity >= other });
}
