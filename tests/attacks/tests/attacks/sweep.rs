//! Writes every list and map of every served kind, full of small entries, by every verb and patch type.
//!
//! The whole sweep takes more than an hour with a release build: `cargo xtask sweep` runs it. The test by default takes
//! every list and map once, in the first kind that has its type, with smaller bodies of different entries, created and
//! applied: quadratic work is visible at a thirtieth of the size, too.
//!
//! A second test fills some lists and maps of an object together, chosen at random: their entries have the same names,
//! so that code which looks one up in the other finds it late, or not at all.

use crate::{
    Result,
    requests::{Requests, Subject},
};
use pintle_attacks::{Fill, Spot, body_with, value_of_size};
use std::{
    collections::HashSet,
    env,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    time::Duration,
};

/// The scope of a sweep.
pub(crate) struct Sweep {
    /// The size of a list or map, in bytes.
    pub(crate) bytes: usize,
    pub(crate) fills: Vec<Fill>,
    /// Whether to write every kind, instead of each type once.
    pub(crate) every_kind: bool,
    /// The limit of the CPU time of a request.
    pub(crate) bound: Duration,
    /// Whether to send updates and all patches, too.
    pub(crate) every_way: bool,
    /// Only spots whose owner has this text in its name.
    pub(crate) only: String,
    /// The number of objects of each kind with lists that are filled together.
    pub(crate) rounds: usize,
    /// The seed of the random choice of lists.
    pub(crate) seed: usize,
}

impl Sweep {
    /// The scope that the environment names.
    pub(crate) fn from_environment() -> Sweep {
        let number = |name: &str, default: usize| {
            env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let is_whole = env::var_os("PINTLE_SWEEP").is_some();
        Sweep {
            bytes: number("PINTLE_SWEEP_BYTES", if is_whole { 1_200_000 } else { 40_000 }),
            fills: if is_whole { Fill::ALL.to_vec() } else { vec![Fill::Distinct] },
            every_way: is_whole,
            every_kind: env::var("PINTLE_SWEEP").is_ok_and(|value| value == "all"),
            bound: Duration::from_millis(number("PINTLE_SWEEP_MS", 1000) as u64),
            only: env::var("PINTLE_SWEEP_ONLY").unwrap_or_default(),
            rounds: number("PINTLE_SWEEP_ROUNDS", if is_whole { 20 } else { 1 }),
            seed: number("PINTLE_SWEEP_SEED", 1),
        }
    }

    /// Whether to skip a spot, by its name or because its type was seen in another kind.
    pub(crate) fn skips(&self, spot: &Spot, seen: &mut HashSet<String>) -> bool {
        !spot.owner().contains(&self.only) || !self.every_kind && !seen.insert(spot.owner().to_owned())
    }

    /// Lists and maps of a subject to fill together, chosen at random. A list below another one comes after it: it is
    /// filled in the first entry.
    pub(crate) fn choices<'a>(&self, subject: &'a Subject) -> Vec<Vec<(&'a Spot, Fill)>> {
        const MOST: usize = 6;
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        // The metadata of all kinds has the same lists, which are filled one by one.
        let own = |spot: &&Spot| !spot.pointer().starts_with("/metadata/");
        let spots: Vec<&Spot> = subject.spots.iter().filter(own).collect();
        let choose = |round: usize| {
            let choice = |draw: usize, from: usize| {
                let hash = hasher.hash_one((self.seed, round, draw, subject.kind.path("")));
                usize::try_from(hash % from as u64).unwrap_or_default()
            };
            let mut chosen: Vec<(&Spot, Fill)> = (0..2 + choice(0, MOST - 1))
                .map(|draw| {
                    let fill = [Fill::Distinct, Fill::Full][choice(MOST + draw + 1, 2)];
                    (spots[choice(draw + 1, spots.len())], fill)
                })
                .collect();
            chosen.sort_by_key(|(spot, _)| spot.pointer().len());
            chosen
        };
        (0..self.rounds * spots.len().div_ceil(10)).map(choose).collect()
    }
}

#[test]
fn no_list_or_map_makes_a_request_expensive() -> Result {
    let sweep = Sweep::from_environment();
    let mut client = Requests::start(sweep.bound)?;
    let mut seen = HashSet::new();
    for subject in client.subjects()? {
        for spot in &subject.spots {
            if sweep.skips(spot, &mut seen) {
                continue;
            }
            for &fill in &sweep.fills {
                let body = body_with(&subject.base, spot, value_of_size(spot, fill, sweep.bytes));
                let what = format!("{} {fill:?}", spot.owner());
                client.write(&subject.kind, &subject.name, &what, body, &spot.pointer(), sweep.every_way)?;
            }
        }
    }
    client.report()
}

#[test]
fn no_lists_and_maps_together_make_a_request_expensive() -> Result {
    let sweep = Sweep::from_environment();
    let mut client = Requests::start(sweep.bound)?;
    for subject in client.subjects()? {
        for chosen in sweep.choices(&subject) {
            let mut body = subject.base.clone();
            for (spot, fill) in &chosen {
                body = body_with(&body, spot, value_of_size(spot, *fill, sweep.bytes / chosen.len()));
            }
            client.write(
                &subject.kind,
                &subject.name,
                &names(&chosen),
                body,
                &chosen[0].0.pointer(),
                sweep.every_way,
            )?;
        }
    }
    client.report()
}

/// The names of lists and maps, and their entries.
pub(crate) fn names(chosen: &[(&Spot, Fill)]) -> String {
    let names: Vec<_> = chosen.iter().map(|(spot, fill)| format!("{} {fill:?}", spot.owner())).collect();
    names.join(", ")
}
