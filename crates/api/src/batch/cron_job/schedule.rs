//! Validates schedules in cron's notation: minute, hour, day of month, month, day of week; or `@hourly` and similar
//! (<https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax>).

use pintle_go_forms::parse_duration;

/// A field's bounds and the names of its values.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [(&'static str, u64)],
}

const MONTHS: [(&str, u64); 12] = [
    ("jan", 1),
    ("feb", 2),
    ("mar", 3),
    ("apr", 4),
    ("may", 5),
    ("jun", 6),
    ("jul", 7),
    ("aug", 8),
    ("sep", 9),
    ("oct", 10),
    ("nov", 11),
    ("dec", 12),
];
const DAYS: [(&str, u64); 7] =
    [("sun", 0), ("mon", 1), ("tue", 2), ("wed", 3), ("thu", 4), ("fri", 5), ("sat", 6)];
const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds { min: 1, max: 12, names: &MONTHS },
    Bounds { min: 0, max: 6, names: &DAYS },
];
const DESCRIPTORS: [&str; 8] =
    ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every"];

/// Validates a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let mut schedule = schedule;
    if let Some(zone) = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        let (zone, rest) = zone.split_once(' ').unwrap_or((zone, ""));
        if jiff::tz::TimeZone::get(zone).is_err() {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        schedule = rest.trim();
    }
    if schedule.starts_with('@') {
        return check_descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let found = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{found}]", fields.len()));
    }
    fields.into_iter().zip(&FIELDS).try_for_each(|(field, bounds)| {
        field.split(',').filter(|range| !range.is_empty()).try_for_each(|range| bounds.check(range))
    })
}

fn check_descriptor(descriptor: &str) -> Result<(), String> {
    if let Some(duration) = descriptor.strip_prefix("@every ") {
        return match parse_duration(duration) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("failed to parse duration {descriptor}: {error}")),
        };
    }
    match DESCRIPTORS.contains(&descriptor) && descriptor != "@every" {
        true => Ok(()),
        false => Err(format!("unrecognized descriptor: {descriptor}")),
    }
}

impl Bounds {
    /// One of `*`, `n`, `n-m`, each with a step or not.
    fn check(&self, text: &str) -> Result<(), String> {
        let mut parts = text.split('/');
        let (range, step, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let mut limits = range.split('-');
        let (low, high, extra) = (limits.next().unwrap_or_default(), limits.next(), limits.next());
        let is_any = matches!(low, "*" | "?");
        let (start, mut end) = if is_any {
            (self.min, self.max)
        } else {
            let start = self.number(low)?;
            match (high, extra) {
                (None, _) => (start, start),
                (Some(high), None) => (start, self.number(high)?),
                (Some(_), Some(_)) => return Err(format!("too many hyphens: {text}")),
            }
        };
        let step = match (step, more) {
            (None, _) => 1,
            (Some(step), None) => {
                let step = parse_number(step)?;
                if high.is_none() && !is_any {
                    end = self.max;
                }
                step
            }
            (Some(_), Some(_)) => return Err(format!("too many slashes: {text}")),
        };
        if start < self.min {
            return Err(format!("beginning of range ({start}) below minimum ({}): {text}", self.min));
        }
        if end > self.max {
            return Err(format!("end of range ({end}) above maximum ({}): {text}", self.max));
        }
        if start > end {
            return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
        }
        if step == 0 {
            return Err(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<u64, String> {
        let lower = text.to_ascii_lowercase();
        match self.names.iter().find(|(name, _)| *name == lower) {
            Some((_, number)) => Ok(*number),
            None => parse_number(text),
        }
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": invalid syntax"))
        }
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schedules_are_read_as_cron_does() {
        for schedule in [
            "* * * * *",
            "0 0 31 2 *",
            "*/5 1-3,7 ? jan-MAR Sun",
            "5/15 * * * 0-6",
            "@hourly",
            "@every 1h30m",
            "TZ=UTC 0 * * * *",
        ] {
            assert_eq!(check(schedule), Ok(()), "{schedule}");
        }
        let rows = [
            ("every day", "expected exactly 5 fields, found 2: [every day]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@every day", "failed to parse duration @every day: time: invalid duration \"day\""),
            ("@never", "unrecognized descriptor: @never"),
            ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ];
        for (schedule, why) in rows {
            assert_eq!(check(schedule), Err(why.to_owned()), "{schedule}");
        }
    }
}
