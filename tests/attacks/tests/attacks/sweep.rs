//! Writes every list and map of every served kind, full of small entries, by every verb and patch type.
//!
//! The whole sweep takes more than an hour with a release build: `cargo xtask sweep` runs it. The test by default takes
//! every list and map once, in the first kind that has its type, with smaller bodies of different entries, created and
//! applied: quadratic work is visible at a thirtieth of the size, too.
//!
//! A second test fills some lists and maps of an object together, chosen at random: their entries have the same names,
//! so that code which looks one up in the other finds it late, or not at all.

use crate::{Result, requests::Requests};
use pintle_attacks::{Fill, Spot, Sweep, body_with, value_of_size};
use std::collections::HashSet;

#[test]
fn no_list_or_map_makes_a_request_expensive() -> Result {
    let sweep = Sweep::from_environment()?;
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
    let sweep = Sweep::from_environment()?;
    let mut client = Requests::start(sweep.bound)?;
    for subject in client.subjects()? {
        for chosen in sweep.choices(&subject.spots, &subject.kind.path("")) {
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
