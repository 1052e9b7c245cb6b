//! The numbers of a store that its rows do not tell, and what is known of rows that are not one after the other.
//!
//! Rows after the compaction are contiguous, so that a lost one is noticed. Of the rows up to it some were deleted;
//! [`Kept`] is a count and a sum of those that are there, changed by every transaction that changes them.

use super::row::{integer, revision};
use crate::Revision;
use rusqlite::Connection;

/// What the table `meta` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Meta {
    /// The oldest readable revision.
    pub(super) compacted: Revision,
    /// The newest revision when this was written: the row of it may have been compacted away.
    pub(super) revision: Revision,
    /// The rows of revisions up to `compacted` that are still there.
    pub(super) kept: Kept,
}

/// A set of revisions, as far as can be said in two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kept {
    rows: u64,
    /// Of [`mixed`] revisions, modulo 2^64.
    sum: u64,
}

impl Kept {
    pub(super) fn add(&mut self, revision: Revision) {
        self.rows = self.rows.wrapping_add(1);
        self.sum = self.sum.wrapping_add(mixed(revision));
    }

    pub(super) fn remove(&mut self, revision: Revision) {
        self.rows = self.rows.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(mixed(revision));
    }
}

/// A number of a revision, such that two sets of revisions with the same sum do not come about by a few bytes that
/// changed (the last step of splitmix64).
fn mixed(revision: Revision) -> u64 {
    let mut mixed = revision.0;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const NAMES: [&str; 5] = ["compacted", "revision", "kept_rows", "kept_sum", "checksum"];

impl Meta {
    /// Reads the numbers; `None` when they are not all there or fail their checksum.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Option<Meta>> {
        let [Some(compacted), Some(newest), Some(rows), Some(sum), Some(checksum)] =
            numbers(connection, NAMES)?
        else {
            return Ok(None);
        };
        let meta = Meta {
            compacted: revision(compacted),
            revision: revision(newest),
            kept: Kept { rows: rows.cast_unsigned(), sum: sum.cast_unsigned() },
        };
        Ok((meta.checksum() == checksum).then_some(meta))
    }

    /// Reads what there was in format version 1, without a checksum.
    pub(super) fn read_version_1(connection: &Connection) -> rusqlite::Result<Option<Meta>> {
        let [Some(compacted), Some(newest)] = numbers(connection, ["compacted", "revision"])? else {
            return Ok(None);
        };
        Ok(Some(Meta { compacted: revision(compacted), revision: revision(newest), kept: Kept::default() }))
    }

    /// Writes the numbers, in the transaction of what they tell of.
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?, ?)")?;
        let numbers = [
            integer(self.compacted),
            integer(self.revision),
            self.kept.rows.cast_signed(),
            self.kept.sum.cast_signed(),
            self.checksum(),
        ];
        for row in NAMES.into_iter().zip(numbers) {
            statement.execute(row)?;
        }
        Ok(())
    }

    /// The same, compacted at a later revision. All rows between are there.
    pub(super) fn compacted_at(mut self, compacted: Revision, newest: Revision) -> Meta {
        // Revision 1 is the empty store, which has no row.
        for between in self.compacted.0.max(1) + 1..=compacted.0 {
            self.kept.add(Revision(between));
        }
        self.compacted = compacted;
        self.revision = newest;
        self
    }

    fn checksum(&self) -> i64 {
        let mut hasher = crc32fast::Hasher::new();
        for number in [self.compacted.0, self.revision.0, self.kept.rows, self.kept.sum] {
            hasher.update(&number.to_be_bytes());
        }
        i64::from(hasher.finalize())
    }
}

fn numbers<const COUNT: usize>(
    connection: &Connection,
    names: [&str; COUNT],
) -> rusqlite::Result<[Option<i64>; COUNT]> {
    let mut found = [None; COUNT];
    let mut statement = connection.prepare("SELECT name, number FROM meta")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (name, number) = (row.get_ref(0)?, row.get_ref(1)?);
        for (wanted, found) in names.iter().zip(&mut found) {
            if name.as_str() == Ok(wanted) {
                *found = number.as_i64().ok();
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_tells_apart_what_a_few_changes_make() {
        let kept = |revisions: &[u64]| {
            let mut kept = Kept::default();
            revisions.iter().for_each(|revision| kept.add(Revision(*revision)));
            kept
        };
        let all = kept(&[2, 3, 5, 8]);
        for other in [&[2, 3, 5][..], &[2, 3, 5, 9], &[2, 4, 4, 8], &[3, 4, 5, 6], &[2, 3, 5, 8, 8]] {
            assert_ne!(kept(other), all, "{other:?}");
        }
        let mut fewer = kept(&[8, 5, 3, 2, 7]);
        fewer.remove(Revision(7));
        assert_eq!(fewer, all);
    }

    #[test]
    fn numbers_that_were_changed_are_not_read() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(crate::embedded::row::SCHEMA).unwrap();
        assert_eq!(Meta::read(&connection), Ok(None));
        let meta = Meta { revision: Revision(1), ..Meta::default() }.compacted_at(Revision(5), Revision(9));
        meta.write(&connection).unwrap();
        assert_eq!(Meta::read(&connection), Ok(Some(meta)));
        assert_eq!(meta.kept.rows, 4);
        connection.execute("UPDATE meta SET number = 4 WHERE name = 'compacted'", ()).unwrap();
        assert_eq!(Meta::read(&connection), Ok(None));
    }
}
