//! Writes and compares times as Go does, also those that its arithmetic does not hold.

/// The seconds from the first moment that Go's calendar has, in March of a year divisible by 400, to 1970.
const TO_1970: i128 = (ERAS_BEFORE * DAYS_OF_ERA + DAYS_TO_1970) * SECONDS_OF_DAY;
const ERAS_BEFORE: i128 = 730_692_556;
/// The days of 400 years.
const DAYS_OF_ERA: i128 = 146_097;
/// The days from March of the year 0 to 1970.
const DAYS_TO_1970: i128 = 719_468;
const SECONDS_OF_DAY: i128 = 86_400;
/// The seconds from the year 1 to 1970.
const FROM_YEAR_ONE: i64 = 62_135_596_800;

/// Whether the first time, in seconds since 1970, is before the second one, of which a part of a second has passed.
pub(super) fn is_before(seconds: i64, other: i64) -> bool {
    // A second that has begun is over when a part of it has passed.
    seconds.wrapping_add(FROM_YEAR_ONE) <= other.wrapping_add(FROM_YEAR_ONE)
}

/// A time in seconds since 1970, as Go prints it: `2026-01-31 10:00:00 +0000 UTC`.
pub(super) fn format(seconds: i64) -> String {
    let absolute = (seconds as u64).wrapping_add(TO_1970 as u64);
    let days = i128::from(absolute / 86_400);
    let time = absolute % 86_400;
    let (era, day_of_era) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + (era - ERAS_BEFORE) * 400 + i128::from(month <= 2);
    let sign = if year < 0 { "-" } else { "" };
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!(
        "{sign}{:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} +0000 UTC",
        year.unsigned_abs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_go_writes_them() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 +0000 UTC"),
            (1_795_893_453, "2026-11-28 19:17:33 +0000 UTC"),
            (951_782_400, "2000-02-29 00:00:00 +0000 UTC"),
            (-62_135_596_800, "0001-01-01 00:00:00 +0000 UTC"),
            (253_402_300_800, "10000-01-01 00:00:00 +0000 UTC"),
        ] {
            assert_eq!(format(seconds), expected);
        }
    }

    #[test]
    fn times_beyond_the_calendar_are_in_the_past() {
        assert!(is_before(i64::MAX, 0));
        assert!(is_before(i64::MIN, 0));
        assert!(is_before(5, 5));
        assert!(!is_before(6, 5));
        assert!(!is_before(i64::MAX - FROM_YEAR_ONE, 0));
    }
}
