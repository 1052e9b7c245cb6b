//! The scope of a sweep, which the environment names.

use crate::{Fill, Spot};
use pintle_harness::Error;
use std::{
    collections::HashSet,
    env,
    ffi::OsString,
    fmt::Display,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    str::FromStr,
    time::Duration,
};

/// The scope of a sweep.
#[derive(Debug)]
pub struct Sweep {
    /// The size of a list or map, in bytes.
    pub bytes: usize,
    /// The entries of the lists and maps.
    pub fills: Vec<Fill>,
    /// Whether to write every kind, instead of each type once.
    pub every_kind: bool,
    /// The limit of the CPU time of a request.
    pub bound: Duration,
    /// Whether to send updates and all patches, too.
    pub every_way: bool,
    /// Only spots whose owner has this text in its name.
    pub only: String,
    /// The number of objects of each kind with lists that are filled together.
    pub rounds: usize,
    /// The seed of the random choice of lists.
    pub seed: usize,
}

impl Sweep {
    /// The scope that the environment names.
    ///
    /// # Errors
    /// When a variable has a value that means nothing: a sweep of another scope would look like the one that was meant.
    pub fn from_environment() -> Result<Sweep, Error> {
        Sweep::from_variables(|name| env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Sweep, Error> {
        let text = |name: &str| match variable(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => Err(Error::from(format!("{name} is no text"))),
        };
        let number = |name: &str, default: usize| text(name)?.map_or(Ok(default), |text| parsed(name, &text));
        let (is_whole, every_kind) = match text("PINTLE_SWEEP")?.as_deref() {
            None => (false, false),
            Some("once") => (true, false),
            Some("all") => (true, true),
            Some(other) => return Err(format!("PINTLE_SWEEP is {other:?}, neither once nor all").into()),
        };
        let milliseconds = text("PINTLE_SWEEP_MS")?.map_or(Ok(1000), |text| parsed("PINTLE_SWEEP_MS", &text));
        Ok(Sweep {
            bytes: number("PINTLE_SWEEP_BYTES", if is_whole { 1_200_000 } else { 40_000 })?,
            fills: if is_whole { Fill::ALL.to_vec() } else { vec![Fill::Distinct] },
            every_way: is_whole,
            every_kind,
            bound: Duration::from_millis(milliseconds?),
            only: text("PINTLE_SWEEP_ONLY")?.unwrap_or_default(),
            rounds: number("PINTLE_SWEEP_ROUNDS", if is_whole { 20 } else { 1 })?,
            seed: number("PINTLE_SWEEP_SEED", 1)?,
        })
    }

    /// Whether to skip a spot, by its name or because its type was seen in another kind.
    pub fn skips(&self, spot: &Spot, seen: &mut HashSet<String>) -> bool {
        !spot.owner().contains(&self.only) || !self.every_kind && !seen.insert(spot.owner().to_owned())
    }

    /// Lists and maps of the kind at a path to fill together, chosen at random. A list below another one comes after it:
    /// it is filled in the first entry.
    pub fn choices<'a>(&self, spots: &'a [Spot], path: &str) -> Vec<Vec<(&'a Spot, Fill)>> {
        const MOST: usize = 6;
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        // The metadata of all kinds has the same lists, which are filled one by one.
        let own = |spot: &&Spot| !spot.pointer().starts_with("/metadata/");
        let spots: Vec<&Spot> = spots.iter().filter(own).collect();
        let choose = |round: usize| {
            let choice = |draw: usize, from: usize| {
                let hash = hasher.hash_one((self.seed, round, draw, path.to_owned()));
                usize::try_from(hash % from as u64).unwrap_or_default()
            };
            let fill = |draw: usize| if choice(draw, 2) == 0 { Fill::Distinct } else { Fill::Full };
            let mut chosen: Vec<(&Spot, Fill)> = (0..2 + choice(0, MOST - 1))
                .filter_map(|draw| {
                    let spot = *spots.get(choice(draw + 1, spots.len()))?;
                    Some((spot, fill(MOST + draw + 1)))
                })
                .collect();
            chosen.sort_by_key(|(spot, _)| spot.pointer().len());
            chosen
        };
        (0..self.rounds * spots.len().div_ceil(10)).map(choose).collect()
    }
}

fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Error> {
    text.parse().map_err(|error| format!("{name} is {text:?}: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(variables: &[(&str, &str)]) -> Result<Sweep, String> {
        let variable =
            |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, text)| text.into());
        Sweep::from_variables(variable).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_names_the_scope() {
        let by_default = sweep(&[]).unwrap();
        assert_eq!((by_default.bytes, by_default.every_kind, by_default.every_way), (40_000, false, false));
        for (value, every_kind) in [("once", false), ("all", true)] {
            let whole = sweep(&[("PINTLE_SWEEP", value), ("PINTLE_SWEEP_MS", "20")]).unwrap();
            assert_eq!((whole.bytes, whole.every_kind, whole.every_way), (1_200_000, every_kind, true));
            assert_eq!((whole.bound, whole.fills.len()), (Duration::from_millis(20), Fill::ALL.len()));
        }
        let seeded = sweep(&[("PINTLE_SWEEP_SEED", "7"), ("PINTLE_SWEEP_ONLY", "Taint")]).unwrap();
        assert_eq!((seeded.seed, seeded.rounds, seeded.only.as_str()), (7, 1, "Taint"));
    }

    #[test]
    fn a_value_that_means_nothing_is_refused() {
        let rows = [
            ("PINTLE_SWEEP", "1", "PINTLE_SWEEP is \"1\", neither once nor all"),
            ("PINTLE_SWEEP", "", "PINTLE_SWEEP is \"\", neither once nor all"),
            ("PINTLE_SWEEP_BYTES", "1MB", "PINTLE_SWEEP_BYTES is \"1MB\": invalid digit found in string"),
            ("PINTLE_SWEEP_MS", "-1", "PINTLE_SWEEP_MS is \"-1\": invalid digit found in string"),
            (
                "PINTLE_SWEEP_ROUNDS",
                "",
                "PINTLE_SWEEP_ROUNDS is \"\": cannot parse integer from empty string",
            ),
            ("PINTLE_SWEEP_SEED", "x", "PINTLE_SWEEP_SEED is \"x\": invalid digit found in string"),
        ];
        for (name, value, expected) in rows {
            assert_eq!(sweep(&[(name, value)]).err().as_deref(), Some(expected));
        }
    }
}
