//! The candidates, each with the settings that suit it best here.

use std::{fs::File, io::Write, path::Path};

/// A row to write: revision, what the index needs, value.
pub type Row<'a> = (u64, Vec<u8>, &'a [u8]);

pub trait Engine: Send {
    /// Writes the rows durably.
    fn commit(&mut self, rows: &[Row<'_>]);
    /// Deletes the rows of these revisions, durably.
    fn delete(&mut self, from: u64, to: u64);
    /// Reads all that the index needs, and returns how many rows that were.
    fn load(&self) -> usize;
    /// Reads these values, and returns how many bytes they have.
    fn get(&self, revisions: &[u64]) -> usize;
}

pub fn open(name: &str, directory: &Path) -> Box<dyn Engine> {
    match name {
        "log" => Box::new(Log(File::create(directory.join("log")).expect("create"))),
        "redb" => Box::new(Redb::open(directory)),
        "fjall" => Box::new(Fjall::open(directory, false)),
        "fjall-blob" => Box::new(Fjall::open(directory, true)),
        "sqlite-4k" => Box::new(Sqlite::open(directory, 4096, 16 << 20)),
        "sqlite-8k" => Box::new(Sqlite::open(directory, 8192, 16 << 20)),
        "sqlite-8k-4m" => Box::new(Sqlite::open(directory, 8192, 4 << 20)),
        "sqlite-8k-8m" => Box::new(Sqlite::open(directory, 8192, 8 << 20)),
        "sqlite-16k" => Box::new(Sqlite::open(directory, 16384, 16 << 20)),
        other => panic!("unknown engine {other}"),
    }
}

/// The cost of the harness and the kernel alone: append and sync.
struct Log(File);

impl Engine for Log {
    fn commit(&mut self, rows: &[Row<'_>]) {
        let mut buffer = Vec::new();
        for (revision, index, value) in rows {
            buffer.extend(revision.to_be_bytes());
            buffer.extend(index);
            buffer.extend(*value);
        }
        self.0.write_all(&buffer).expect("write");
        self.0.sync_data().expect("sync");
    }

    fn delete(&mut self, _from: u64, _to: u64) {}

    fn load(&self) -> usize {
        0
    }

    fn get(&self, _revisions: &[u64]) -> usize {
        0
    }
}

const INDEX: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("index");
const VALUES: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("values");

struct Redb(redb::Database);

impl Redb {
    fn open(directory: &Path) -> Redb {
        Redb(redb::Builder::new().set_cache_size(8 << 20).create(directory.join("redb")).expect("open"))
    }
}

impl Engine for Redb {
    fn commit(&mut self, rows: &[Row<'_>]) {
        let transaction = self.0.begin_write().expect("begin");
        {
            let mut indices = transaction.open_table(INDEX).expect("table");
            let mut values = transaction.open_table(VALUES).expect("table");
            for (revision, index, value) in rows {
                indices.insert(revision, index.as_slice()).expect("insert");
                values.insert(revision, *value).expect("insert");
            }
        }
        transaction.commit().expect("commit");
    }

    fn delete(&mut self, from: u64, to: u64) {
        let transaction = self.0.begin_write().expect("begin");
        {
            let mut indices = transaction.open_table(INDEX).expect("table");
            let mut values = transaction.open_table(VALUES).expect("table");
            for revision in from..to {
                indices.remove(revision).expect("remove");
                values.remove(revision).expect("remove");
            }
        }
        transaction.commit().expect("commit");
    }

    fn load(&self) -> usize {
        use redb::{ReadableDatabase, ReadableTable};
        let transaction = self.0.begin_read().expect("begin");
        let table = transaction.open_table(INDEX).expect("table");
        table
            .iter()
            .expect("iter")
            .map(|row| row.expect("row").1.value().len())
            .filter(|len| *len > 0)
            .count()
    }

    fn get(&self, revisions: &[u64]) -> usize {
        use redb::ReadableDatabase;
        let transaction = self.0.begin_read().expect("begin");
        let table = transaction.open_table(VALUES).expect("table");
        revisions
            .iter()
            .map(|revision| table.get(revision).expect("get").expect("a row").value().to_vec().len())
            .sum()
    }
}

struct Fjall {
    database: fjall::Database,
    indices: fjall::Keyspace,
    values: fjall::Keyspace,
}

impl Fjall {
    fn open(directory: &Path, blobs: bool) -> Fjall {
        let database = fjall::Database::builder(directory)
            .cache_size(8 << 20)
            .max_journaling_size(64 << 20)
            .worker_threads(1)
            .open()
            .expect("open");
        let options = || fjall::KeyspaceCreateOptions::default().max_memtable_size(8 << 20);
        let indices = database.keyspace("index", options).expect("keyspace");
        let separation = blobs.then(fjall::KvSeparationOptions::default);
        let values =
            database.keyspace("values", || options().with_kv_separation(separation)).expect("keyspace");
        Fjall { database, indices, values }
    }
}

impl Engine for Fjall {
    fn commit(&mut self, rows: &[Row<'_>]) {
        let mut batch = self.database.batch().durability(Some(fjall::PersistMode::SyncData));
        for (revision, index, value) in rows {
            batch.insert(&self.indices, revision.to_be_bytes(), index.as_slice());
            batch.insert(&self.values, revision.to_be_bytes(), *value);
        }
        batch.commit().expect("commit");
    }

    fn delete(&mut self, from: u64, to: u64) {
        let mut batch = self.database.batch().durability(Some(fjall::PersistMode::SyncData));
        for revision in from..to {
            batch.remove(&self.indices, revision.to_be_bytes());
            batch.remove(&self.values, revision.to_be_bytes());
        }
        batch.commit().expect("commit");
    }

    fn load(&self) -> usize {
        self.indices.iter().map(|row| row.into_inner().expect("row").1.len()).filter(|len| *len > 0).count()
    }

    fn get(&self, revisions: &[u64]) -> usize {
        let value =
            |revision: &u64| self.values.get(revision.to_be_bytes()).expect("get").expect("a row").len();
        revisions.iter().map(value).sum()
    }
}

struct Sqlite(rusqlite::Connection);

impl Sqlite {
    fn open(directory: &Path, page_size: u32, log_size: u32) -> Sqlite {
        let connection = rusqlite::Connection::open(directory.join("sqlite")).expect("open");
        let settings = format!(
            "PRAGMA page_size = {page_size};
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = {};
             PRAGMA cache_size = -2000;
             CREATE TABLE IF NOT EXISTS indices (revision INTEGER PRIMARY KEY, entry BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS vals (revision INTEGER PRIMARY KEY, value BLOB NOT NULL);",
            log_size / page_size
        );
        connection.execute_batch(&settings).expect("settings");
        connection.set_prepared_statement_cache_capacity(16);
        Sqlite(connection)
    }
}

impl Engine for Sqlite {
    fn commit(&mut self, rows: &[Row<'_>]) {
        let transaction = self.0.unchecked_transaction().expect("begin");
        {
            let mut indices = self.0.prepare_cached("INSERT INTO indices VALUES (?, ?)").expect("prepare");
            let mut values = self.0.prepare_cached("INSERT INTO vals VALUES (?, ?)").expect("prepare");
            for (revision, index, value) in rows {
                indices.execute((*revision as i64, index)).expect("insert");
                values.execute((*revision as i64, *value)).expect("insert");
            }
        }
        transaction.commit().expect("commit");
    }

    fn delete(&mut self, from: u64, to: u64) {
        let transaction = self.0.unchecked_transaction().expect("begin");
        for table in ["indices", "vals"] {
            let sql = format!("DELETE FROM {table} WHERE revision >= ? AND revision < ?");
            self.0.prepare_cached(&sql).expect("prepare").execute((from as i64, to as i64)).expect("delete");
        }
        transaction.commit().expect("commit");
    }

    fn load(&self) -> usize {
        let mut statement = self.0.prepare_cached("SELECT revision, entry FROM indices").expect("prepare");
        let rows =
            statement.query_map((), |row| row.get_ref(1).map(|entry| entry.as_blob().map_or(0, <[u8]>::len)));
        rows.expect("query").map(|len| len.expect("row")).filter(|len| *len > 0).count()
    }

    fn get(&self, revisions: &[u64]) -> usize {
        let mut statement =
            self.0.prepare_cached("SELECT value FROM vals WHERE revision = ?").expect("prepare");
        let mut value = |revision: &u64| {
            let value = statement.query_row([*revision as i64], |row| row.get::<_, Vec<u8>>(0));
            value.expect("get").len()
        };
        revisions.iter().map(&mut value).sum()
    }
}
