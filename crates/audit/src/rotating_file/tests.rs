use super::*;
use std::io::Read;

const NO_ROTATION: RotationConfig =
    RotationConfig { max_size: 100, max_age_days: 0, max_backups: 0, compress: false };

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_full_file_is_put_aside_with_the_time_in_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    fs::write(&path, "x".repeat(50)).unwrap();
    let mut file = RotatingFile::new(path.clone(), NO_ROTATION);
    file.write(&[b'y'; 50]).unwrap();
    assert_eq!(names(dir.path()), ["audit.log"]);
    for _ in 0..3 {
        file.write(&[b'z'; 80]).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), [b'z'; 80]);
    let old = old_files(&path).unwrap();
    let sizes: Vec<u64> = old.iter().map(|file| fs::metadata(&file.path).unwrap().len()).collect();
    assert_eq!(sizes, [80, 80, 100], "{:?}", names(dir.path()));
    let error = file.write(&[b'!'; 101]).unwrap_err().to_string();
    assert_eq!(error, "write length 101 exceeds maximum file size 100");
}

#[test]
fn old_files_go_by_number_and_age_and_others_are_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    for name in [
        "audit.log",
        "audit-2026-01-01T00-00-00.000.log",
        "audit-2026-01-02T00-00-00.000.log.gz",
        "audit-2026-01-03T00-00-00.000.log",
        "audit-2026-01-04T00-00-00.000.log",
        "audit-notes.log",
        "other-2026-01-01T00-00-00.000.log",
    ] {
        fs::write(dir.path().join(name), name).unwrap();
    }
    let now = "2026-01-04T12:00:00Z".parse().unwrap();
    let config = RotationConfig { max_age_days: 2, max_backups: 2, compress: true, ..NO_ROTATION };
    look_after_old_files(&path, &config, now).unwrap();
    assert_eq!(
        names(dir.path()),
        [
            "audit-2026-01-03T00-00-00.000.log.gz",
            "audit-2026-01-04T00-00-00.000.log.gz",
            "audit-notes.log",
            "audit.log",
            "other-2026-01-01T00-00-00.000.log",
        ]
    );
    let mut text = String::new();
    let compressed = File::open(dir.path().join("audit-2026-01-03T00-00-00.000.log.gz")).unwrap();
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
    assert_eq!(text, "audit-2026-01-03T00-00-00.000.log");
}
