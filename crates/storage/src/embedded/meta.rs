//! The numbers of a store that its rows do not determine, and a digest of the rows that are not contiguous.
//!
//! Rows after the compaction are contiguous, so a lost one is detected. Some of the rows up to the compaction are
//! deleted; [`Kept`] is the count and a sum of the remaining ones, updated in every transaction that changes them.

use super::schema::{integer, revision};
use crate::Revision;
use rusqlite::Connection;

/// The contents of the table `meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Meta {
    /// The oldest readable revision.
    pub(super) compacted: Revision,
    /// The latest revision at the time of writing: its row may have been compacted.
    pub(super) revision: Revision,
    /// The rows of revisions up to `compacted` that are still there.
    pub(super) kept: Kept,
}

/// A digest of a set of revisions: their number and a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kept {
    rows: u64,
    /// The sum of the [`mixed`] revisions, modulo 2^64.
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

/// A hash of a revision, so that a few changed bytes do not produce another set of revisions with the same sum (the
/// last step of splitmix64).
fn mixed(revision: Revision) -> u64 {
    let mut mixed = revision.0;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const NAMES: [&str; 5] = ["compacted", "revision", "kept_rows", "kept_sum", "checksum"];

impl Meta {
    /// Reads the numbers; `None` when one is missing or the checksum fails.
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

    /// Reads the numbers of format version 1, which have no checksum.
    pub(super) fn read_version_1(connection: &Connection) -> rusqlite::Result<Option<Meta>> {
        let [Some(compacted), Some(newest)] = numbers(connection, ["compacted", "revision"])? else {
            return Ok(None);
        };
        Ok(Some(Meta { compacted: revision(compacted), revision: revision(newest), kept: Kept::default() }))
    }

    /// Writes the numbers, in the transaction that changes the rows.
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

    /// A copy compacted at a later revision. All rows in between exist.
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
        connection.execute_batch(crate::embedded::schema::SCHEMA).unwrap();
        assert_eq!(Meta::read(&connection), Ok(None));
        let meta = Meta { revision: Revision(1), ..Meta::default() }.compacted_at(Revision(5), Revision(9));
        meta.write(&connection).unwrap();
        assert_eq!(Meta::read(&connection), Ok(Some(meta)));
        assert_eq!(meta.kept.rows, 4);
        connection.execute("UPDATE meta SET number = 4 WHERE name = 'compacted'", ()).unwrap();
        assert_eq!(Meta::read(&connection), Ok(None));
    }
}
