//! Writes data items.

use pintle_tree::Number;

/// Appends a head with the shortest argument.
pub(super) fn head(out: &mut Vec<u8>, major: u8, value: u64) {
    let first = major << 5;
    let bytes = value.to_be_bytes();
    let tail = |count: usize| bytes.get(bytes.len() - count..).unwrap_or_default();
    match value {
        0..24 => out.push(first | value as u8),
        24..0x100 => {
            out.push(first | 24);
            out.extend_from_slice(tail(1));
        }
        0x100..0x1_0000 => {
            out.push(first | 25);
            out.extend_from_slice(tail(2));
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(first | 26);
            out.extend_from_slice(tail(4));
        }
        _ => {
            out.push(first | 27);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a byte string.
pub(super) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    head(out, 2, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn array(out: &mut Vec<u8>, count: usize) {
    head(out, 4, count as u64);
}

pub(super) fn map(out: &mut Vec<u8>, count: usize) {
    head(out, 5, count as u64);
}

pub(super) fn null(out: &mut Vec<u8>) {
    out.push(0xf6);
}

pub(super) fn bool(out: &mut Vec<u8>, value: bool) {
    out.push(0xf4 + u8::from(value));
}

pub(super) fn integer(out: &mut Vec<u8>, value: i64) {
    match u64::try_from(value) {
        Ok(value) => head(out, 0, value),
        // -1 - value, which the bits of a negative number are when inverted.
        Err(_) => head(out, 1, !value as u64),
    }
}

pub(super) fn number(out: &mut Vec<u8>, number: &Number) {
    match (number.as_i64(), number.as_u64()) {
        (Some(value), _) => integer(out, value),
        (None, Some(value)) => head(out, 0, value),
        (None, None) => float(out, number.as_f64().unwrap_or_default()),
    }
}

/// Appends a float in the shortest form that keeps its value.
pub(super) fn float(out: &mut Vec<u8>, value: f64) {
    let single = value as f32;
    if f64::from(single) != value {
        out.push(0xfb);
        out.extend_from_slice(&value.to_be_bytes());
    } else if let Some(half) = half(single) {
        out.push(0xf9);
        out.extend_from_slice(&half.to_be_bytes());
    } else {
        out.push(0xfa);
        out.extend_from_slice(&single.to_be_bytes());
    }
}

/// The half-precision form of a finite float, if it has one.
fn half(value: f32) -> Option<u16> {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let exponent = ((bits >> 23) & 0xff) as i32 - 127;
    let fraction = bits & 0x7f_ffff;
    if bits & 0x7fff_ffff == 0 {
        return Some(sign);
    }
    match exponent {
        -14..=15 if fraction & 0x1fff == 0 => {
            Some(sign | ((exponent + 15) as u16) << 10 | (fraction >> 13) as u16)
        }
        // Subnormal: a multiple of 2^-24.
        -24..=-15 => {
            let lost = (-exponent - 1) as u32;
            let whole = fraction | 0x80_0000;
            (whole.trailing_zeros() >= lost).then_some(sign | (whole >> lost) as u16)
        }
        _ => None,
    }
}
