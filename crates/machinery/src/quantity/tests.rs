use super::*;

fn parse(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn texts_become_canonical() {
    let rows = [
        // Unchanged, since the text is canonical by the API's generous rule.
        ("0", "0"),
        ("1", "1"),
        ("+1", "+1"),
        ("01", "01"),
        ("1.", "1."),
        ("1.500", "1.500"),
        ("-1", "-1"),
        ("100m", "100m"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1Ki", "1Ki"),
        ("3Gi", "3Gi"),
        ("1E", "1E"),
        // Brought into canonical form.
        ("1.5", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1000", "1k"),
        ("1000m", "1"),
        ("1000000", "1M"),
        ("10e3", "10e3"),
        ("100e4", "1e6"),
        ("1e-3", "1e-3"),
        ("1.5e-1", "150e-3"),
        ("8Ki", "8Ki"),
        ("1024Ki", "1Mi"),
        ("1024", "1024"),
        ("1.5Ki", "1536"),
        ("1.5Mi", "1536Ki"),
        ("0.1Ki", "102400m"),
        ("0.001Ki", "1024m"),
        ("0.0001Ki", "102400u"),
        ("512.0Ki", "512Ki"),
        ("0Ki", "0"),
        ("00", "0"),
        ("-0", "0"),
        ("-", "0"),
        (".", "0"),
        ("m", "0"),
        ("-1.5", "-1500m"),
        // Rounded away from zero below a nano.
        ("1e-10", "1e-9"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("1.00000000001", "1000000001n"),
        ("0.1n", "1n"),
        ("1e-999999999", "1e-9"),
        // Large numbers.
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        (
            "123456789012345678901234567890123456789012345000",
            "123456789012345678901234567890123456789012345k",
        ),
        ("8Ei", "9223372036854775807"),
        ("1000Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("7Ei", "7Ei"),
        ("1000E", "1"),
        ("1e999999999", "1e999999999"),
        ("1e4294967299", "1e4294967299"),
        ("1000e2147482640", "100e2147482641"),
        ("1e2147483647", "10e2147483646"),
        ("1e-2147483648", "1e-9"),
    ];
    for (text, canonical) in rows {
        assert_eq!(parse(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn what_is_no_quantity_says_why() {
    use QuantityError::{FormatWrong, Numeric, Suffix};
    let rows = [
        ("", FormatWrong),
        (" 1", FormatWrong),
        ("1 ", FormatWrong),
        ("abc", FormatWrong),
        ("1..2", FormatWrong),
        ("1e3Ki", FormatWrong),
        ("--1", Suffix),
        ("1é", FormatWrong),
        ("é", FormatWrong),
        ("1e", Suffix),
        ("1e+", Suffix),
        ("1ki", Suffix),
        ("1Ee3", Suffix),
        ("1Mi3", Suffix),
        ("1e99999999999999999999", Suffix),
        ("e-20", Numeric),
        ("1000000e-2147483649", Numeric),
    ];
    for (text, error) in rows {
        assert_eq!(Quantity::parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn numbers_compare_by_number() {
    let ascending = [
        "-1e999999999",
        "-8Ei",
        "-1",
        "-1m",
        "0",
        "1n",
        "1m",
        "0.5",
        "1",
        "1k",
        "1Ki",
        "1M",
        "1Mi",
        "9223372036854775807",
        "9223372036854775808",
        "1e30",
        "1e999999999",
    ];
    for (index, one) in ascending.iter().enumerate() {
        for (other_index, other) in ascending.iter().enumerate() {
            assert_eq!(parse(one).cmp(&parse(other)), index.cmp(&other_index), "{one} {other}");
        }
    }
    for (one, other) in [("1", "1000m"), ("1Ki", "1024"), ("1e3", "1k"), ("0", "0Ki"), ("1e30", "1000000e24")]
    {
        assert_eq!(parse(one), parse(other), "{one} {other}");
    }
}

#[test]
fn numbers_add_and_subtract() {
    let rows = [
        ("1", "1", "2", "0"),
        ("1Ki", "1Ki", "2Ki", "0"),
        ("0", "1Ki", "1Ki", "-1Ki"),
        ("100m", "1", "1100m", "-900m"),
        ("1Gi", "1", "1073741825", "1073741823"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
        ("1e30", "1", "1000000000000000000000000000001", "999999999999999999999999999999"),
        ("1e999999999", "1", "1e999999999", "1e999999999"),
    ];
    for (one, other, sum, difference) in rows {
        let mut quantity = parse(one);
        quantity.add(&parse(other));
        assert_eq!(quantity.to_string(), sum, "{one} + {other}");
        let mut quantity = parse(one);
        quantity.sub(&parse(other));
        assert_eq!(quantity.to_string(), difference, "{one} - {other}");
    }
}

#[test]
fn what_is_printed_can_be_read() {
    for text in [
        format!("{}e4", "9".repeat(1000)),
        format!("{}00", "9".repeat(1000)),
        format!("0.{}", "9".repeat(998)),
    ] {
        let printed = parse(&text).to_string();
        assert_eq!(parse(&printed).to_string(), printed);
    }
    for text in [format!("{}1", "9".repeat(1000)), format!("1{}", "0".repeat(1002))] {
        assert_eq!(Quantity::parse(&text), Err(QuantityError::Numeric));
    }
}

#[test]
fn values_round_up() {
    let rows = [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1n", 1, 1),
        ("1Ki", 1024, 1_024_000),
        ("0.1", 1, 100),
        ("1e17", 100_000_000_000_000_000, 0),
        ("1e19", 0, 0),
        // Beyond 64 bits the numbers are those of Go.
        ("292601729818991682", 292_601_729_818_991_682, -2_546_175_360_361_143_856),
        ("9223372036854775808", i64::MIN, 0),
        ("4732705.234818P", -8_107_992_125_354_765_312, 0),
        ("-2.5Gi", -2_684_354_560, -2_684_354_560_000),
        // A decimal below zero is rounded towards zero, and up from there.
        ("-1.0000000001", 0, -999),
    ];
    for (text, value, milli) in rows {
        assert_eq!((parse(text).value(), parse(text).milli_value()), (value, milli), "{text}");
    }
    let mut quantity = parse("0.1m");
    assert!(!quantity.round_up(-3));
    assert_eq!(quantity.to_string(), "1m");
    let mut quantity = parse("+1");
    assert!(quantity.round_up(-3));
    assert_eq!(quantity.to_string(), "+1");
    for (text, integer) in [
        ("1k", Some(1000)),
        ("1m", None),
        ("1e19", None),
        ("1.0", None),
        ("1.5Gi", None),
        ("1Gi", Some(1 << 30)),
        ("12Ei", None),
        ("999999999999999999", Some(999_999_999_999_999_999)),
        ("9223372036854775807", None),
    ] {
        assert_eq!(parse(text).as_i64(), integer, "{text}");
    }
    let mut sum = parse("9223372036854775807");
    sum.sub(&parse("9223372036854775806"));
    assert_eq!((sum.to_string().as_str(), sum.as_i64()), ("1", None));
}

#[test]
fn floats_have_the_last_digit_of_go() {
    let rows = [
        ("0.1", "0.1"),
        ("+9223372036854775807e3", "9.223372036854777e21"),
        ("-9223372036854775807G", "-9.223372036854777e27"),
        ("1e400", "inf"),
        ("1e-400", "1e-9"),
    ];
    for (text, float) in rows {
        assert_eq!(format!("{:?}", parse(text).as_approximate_f64()), float, "{text}");
    }
    let sums = [
        ("558238113021935E", "1", "5.58238113021935e32"),
        ("-2.675Gi", "-0.1", "-2872259379.2999997"),
        ("8.5e30", "1", "8.5e30"),
        ("92129.5Gi", "1", "98923297374209.02"),
    ];
    for (one, other, float) in sums {
        let mut sum = parse(one);
        sum.add(&parse(other));
        assert_eq!(format!("{:?}", sum.as_approximate_f64()), float, "{one} + {other}");
    }
}
