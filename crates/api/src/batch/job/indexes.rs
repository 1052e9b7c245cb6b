//! Parses the indexes of an indexed job: `0-2,4`.

use pintle_go_forms::quote;

/// Counts the indexes in a text; all must be below `completions`, and in order.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut previous = None;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = parse_interval(interval, completions)?;
        check_order(previous, first)?;
        total += last - first + 1;
        previous = Some(last);
    }
    Ok(total)
}

/// An index in both texts. Walks both at once, past malformed intervals, and so misses some of what a text out of order has
/// in common with the other; its order is an error of its own.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let intervals =
        |text| str::split(text, ',').filter_map(move |interval| parse_interval(interval, completions).ok());
    let (mut completed, mut failed) = (intervals(completed).peekable(), intervals(failed).peekable());
    loop {
        let (&(first, last), &(start, end)) = (completed.peek()?, failed.peek()?);
        if first <= end && start <= last {
            return Some(first.max(start));
        }
        match first <= start {
            true => completed.next(),
            false => failed.next(),
        };
    }
}

fn parse_interval(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let mut limits = interval.split('-');
    let (first, last, more) = (limits.next().unwrap_or_default(), limits.next(), limits.next());
    if more.is_some() {
        return Err(format!(
            "the fragment \"{interval}\" violates the requirement that an index interval can have at most two parts \
             separated by '-'"
        ));
    }
    let first = parse_index(first, completions)?;
    let Some(last) = last else {
        return Ok((first, first));
    };
    let last = parse_index(last, completions)?;
    check_order(Some(first), last)?;
    Ok((first, last))
}

fn parse_index(text: &str, completions: i64) -> Result<i64, String> {
    match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {}", quote(text))),
        Ok(index) if index >= completions => Err(format!("too large index: \"{text}\"")),
        Ok(index) => Ok(index),
    }
}

fn check_order(previous: Option<i64>, current: i64) -> Result<(), String> {
    match previous {
        Some(previous) if previous >= current => {
            Err(format!("non-increasing order, previous: {previous}, current: {current}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_counted() {
        let check = |text: &str, expected: Result<i64, &str>| {
            assert_eq!(count(text, 5), expected.map_err(str::to_owned), "{text}");
        };
        check("", Ok(0));
        check("0-2,4", Ok(4));
        check("5", Err("too large index: \"5\""));
        check("\u{a0}", Err("cannot convert string to integer for index: \"\\u00a0\""));
        check("x", Err("cannot convert string to integer for index: \"x\""));
        check("3,1", Err("non-increasing order, previous: 3, current: 1"));
        check("2-2", Err("non-increasing order, previous: 2, current: 2"));
        check("0-", Err("cannot convert string to integer for index: \"\""));
    }

    #[test]
    fn overlaps_are_found() {
        assert_eq!(overlap("0-2", "2,3", 5), Some(2));
        assert_eq!(overlap("0,4", "1-3", 5), None);
        assert_eq!(overlap("", "1", 5), None);
        assert_eq!(overlap("x,1-2", "y,0,2", 5), Some(2));
        assert_eq!(overlap("0-2", "3,2", 5), None);
    }

    #[test]
    fn long_texts_are_compared_in_one_pass() {
        let every_other = |first: i64| {
            (first..200_000).step_by(2).map(|index| index.to_string()).collect::<Vec<_>>().join(",")
        };
        let start = std::time::Instant::now();
        assert_eq!(overlap(&every_other(0), &every_other(1), 200_000), None);
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }
}
