//! Fuzzes the reader and the writer of snapshot files.

use pintle_storage::{
    Key, Revision,
    snapshot::{
        SnapshotError, SnapshotHeader, SnapshotReader, SnapshotRecord, SnapshotSummary, SnapshotWriter,
    },
};
use std::path::Path;

/// A valid snapshot is written as an equal one, and a complete snapshot with replaced bytes is refused.
pub(crate) fn snapshot_read(data: &[u8]) {
    if let Ok((records, summary)) = read(data) {
        let again = write(summary.header.clone(), &records);
        let (records_again, summary_again) = read(&again).expect("it was just written");
        assert_eq!((records_again, summary_again.header), (records, summary.header));
    }
    made(data);
    let whole = whole();
    let Some(([high, low], rest)) = data.split_first_chunk().map(|(at, rest)| (*at, rest)) else { return };
    let at = usize::from(u16::from_be_bytes([high, low])) % whole.len();
    let mut damaged = whole.clone();
    for (place, byte) in damaged.iter_mut().skip(at).zip(rest) {
        *place = *byte;
    }
    let is_same = damaged == whole;
    assert_eq!(read(&damaged).is_ok(), is_same, "damage at {at} was not found");
    damaged.truncate(at);
    assert!(read(&damaged).is_err(), "a cut at {at} was not found");
}

/// The records that a writer accepts are read again, and no others. Each line is a record: its revisions, the length of
/// its key, the key behind the prefix, and its value.
fn made(data: &[u8]) {
    let mut writer = SnapshotWriter::new(Vec::new(), header()).expect("memory");
    let mut written = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Some(([created, modified, length], rest)) = line.split_first_chunk() else { continue };
        let Some((key, value)) = rest.split_at_checked(usize::from(*length)) else { continue };
        let record = SnapshotRecord {
            key: Key::new(format!("/registry/{}", String::from_utf8_lossy(key))),
            value: value.to_vec().into(),
            create_revision: Revision(u64::from(*created)),
            mod_revision: Revision(u64::from(*modified)),
            expires: u64::from(*modified) % 3,
        };
        if writer.write(&record).is_ok() {
            written.push(record);
        }
    }
    let (bytes, summary) = writer.finish().expect("memory");
    assert_eq!(read(&bytes).expect("it was just written"), (written, summary));
}

/// A complete snapshot, as a seed.
pub(crate) fn whole() -> Vec<u8> {
    let record = |name: &str, value: &'static [u8], revision, expires| SnapshotRecord {
        key: Key::new(format!("/registry/{name}")),
        value: value.into(),
        create_revision: Revision(revision),
        mod_revision: Revision(revision),
        expires,
    };
    let records = [
        record("configmaps/default/a", b"{\"kind\":\"ConfigMap\"}", 7, 0),
        record("events/default/b", b"k8s\0\x0a\x02", 9, 1_700_000_100_000),
        record("secrets/default/c", b"k8s:enc:aescbc:v1:key1:0123456789abcdef", 100, 0),
    ];
    write(header(), &records)
}

fn header() -> SnapshotHeader {
    SnapshotHeader {
        prefix: "/registry/".to_owned(),
        revision: Revision(100),
        saved: 1_700_000_000_000,
        source: "embedded".to_owned(),
        program: "fuzz".to_owned(),
    }
}

fn write(header: SnapshotHeader, records: &[SnapshotRecord]) -> Vec<u8> {
    let mut writer = SnapshotWriter::new(Vec::new(), header).expect("memory");
    for record in records {
        writer.write(record).expect("records that were read can be written");
    }
    writer.finish().expect("memory").0
}

fn read(data: &[u8]) -> Result<(Vec<SnapshotRecord>, SnapshotSummary), SnapshotError> {
    let mut reader = SnapshotReader::new(Path::new("fuzz.snap"), data)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    let summary = reader.summary().expect("it was read to its end");
    assert_eq!((summary.keys, summary.file_bytes), (records.len() as u64, data.len() as u64));
    Ok((records, summary))
}
