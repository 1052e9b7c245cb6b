//! Builds what is packaged: the static binary, the manual pages, completions and the bill of materials, with their checksums.
//!
//! The binary depends on the sources, the toolchain and the target only: paths in it are replaced, so that a build from another
//! path is equal to the byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{sbom, task};

/// The target that is built without a flag.
pub(crate) const HOST: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "release";

/// The binary that a build is compared with.
enum Verification<'a> {
    /// A second build, from another path.
    Again,
    /// A binary that was built elsewhere.
    With(&'a str),
}

/// Builds into `target/dist/`.
///
/// # Errors
/// When a build fails, the binary is not static, or two builds differ.
pub(crate) fn run(root: &Path, args: &[&str]) -> Result<(), String> {
    let mut target = HOST;
    let mut verification = None;
    for arg in args {
        match (arg.split_once('='), *arg) {
            (Some(("--target", triple)), _) => target = triple,
            (Some(("--verify", binary)), _) => verification = Some(Verification::With(binary)),
            (None, "--verify") => verification = Some(Verification::Again),
            _ => return Err(format!("dist: unknown argument {arg}")),
        }
    }
    let binary = build(root, &task::target_directory(root), target)?;
    check_static(&binary)?;
    let dist = root.join("target/dist");
    let failed = |error: std::io::Error| format!("{}: {error}", dist.display());
    fs::create_dir_all(dist.join("completions")).map_err(failed)?;
    fs::create_dir_all(dist.join("data")).map_err(failed)?;
    let packaged = dist.join("pintle");
    fs::copy(&binary, &packaged).map_err(failed)?;
    let write = |name: &str, text: String| fs::write(dist.join(name), text).map_err(failed);
    write("sbom.cdx.json", sbom::bill(root, target)?)?;
    fs::copy(root.join("packaging/pintle.service"), dist.join("pintle.service")).map_err(failed)?;
    let mut files = ["pintle", "sbom.cdx.json", "pintle.service"].map(str::to_owned).to_vec();
    // A binary of another target does not run here.
    if target == HOST {
        let pages = dist.join("man");
        fs::create_dir_all(&pages).map_err(failed)?;
        let written = task::output(Command::new(&packaged).args(["man", "--directory"]).arg(&pages))?;
        files.extend(written.lines().map(|page| format!("man/{page}")));
        for (shell, name) in [
            ("bash", "completions/pintle"),
            ("zsh", "completions/_pintle"),
            ("fish", "completions/pintle.fish"),
        ] {
            write(name, task::output(Command::new(&packaged).args(["completion", shell]))?)?;
            files.push(name.to_owned());
        }
    }
    let sums = task::output(Command::new("sha256sum").args(&files).current_dir(&dist))?;
    write("SHA256SUMS", sums)?;
    match verification {
        None => {}
        Some(Verification::Again) => verify(root, target, &packaged)?,
        Some(Verification::With(binary)) => {
            compare(&packaged, Path::new(binary))?;
            println!("the binary is equal to {binary}");
        }
    }
    println!("{}", dist.display());
    Ok(())
}

/// Builds the binary of these sources, and returns its path.
fn build(root: &Path, target_directory: &Path, target: &str) -> Result<PathBuf, String> {
    let home = std::env::var("CARGO_HOME").map_or_else(|_| home().join(".cargo"), PathBuf::from);
    let toolchain = task::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root))?;
    let replaced = [
        (target_directory, "/target"),
        (root, "/pintle"),
        (home.as_path(), "/cargo"),
        (Path::new(toolchain.trim()), "/rust"),
    ];
    // A static program has no dynamic linker in which `getrandom` could be looked up: randomness would need `/dev/urandom`.
    let mut flags = vec![
        "-Ctarget-feature=+crt-static".to_owned(),
        "--cfg=getrandom_backend=\"linux_getrandom\"".to_owned(),
    ];
    let mut c_flags = Vec::new();
    // Of several flags that match, the last one counts.
    for (path, name) in replaced.iter().rev() {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
        c_flags.push(format!("-ffile-prefix-map={}={name}", path.display()));
    }
    let mut cargo = task::cargo(root);
    cargo
        .args(["build", "--locked", "--package=pintle", "--profile", PROFILE, "--target", target])
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CFLAGS", c_flags.join(" "))
        // The time of compilation in C code: that of the allocator shows it.
        .env("SOURCE_DATE_EPOCH", "0")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", target_directory)
        .env_remove("RUSTFLAGS");
    task::run(&mut cargo)?;
    Ok(target_directory.join(target).join(PROFILE).join("pintle"))
}

/// Builds the binary again from a copy of the sources at another path, and compares.
fn verify(root: &Path, target: &str, first: &Path) -> Result<(), String> {
    let elsewhere = std::env::temp_dir().join(format!("pintle-dist-{}", std::process::id()));
    let (sources, built) = (elsewhere.join("other/sources"), elsewhere.join("built"));
    let failed = |error: std::io::Error| format!("{}: {error}", elsewhere.display());
    fs::create_dir_all(&sources).map_err(failed)?;
    let archive = format!("git archive --format=tar HEAD | tar -x -C '{}'", sources.display());
    let compared = task::run(Command::new("sh").args(["-c", &archive]).current_dir(root)).and_then(|()| {
        let second = build(&sources, &built, target)?;
        compare(first, &second)?;
        println!("two builds from two paths are equal");
        Ok(())
    });
    fs::remove_dir_all(&elsewhere).map_err(failed)?;
    compared
}

/// Compares two binaries byte by byte.
fn compare(first: &Path, second: &Path) -> Result<(), String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let (one, other) = (read(first)?, read(second)?);
    if one == other {
        return Ok(());
    }
    let at = one.iter().zip(&other).position(|(one, other)| one != other);
    let at = at.unwrap_or_else(|| one.len().min(other.len()));
    Err(format!(
        "{} ({} bytes) and {} ({} bytes) differ, first at byte {at}: the build is not reproducible",
        first.display(),
        one.len(),
        second.display(),
        other.len(),
    ))
}

/// Checks that a program needs no loader and no library.
fn check_static(binary: &Path) -> Result<(), String> {
    let headers = task::output(Command::new("readelf").args(["--program-headers", "--dynamic"]).arg(binary))?;
    match headers.contains("INTERP") || headers.contains("(NEEDED)") {
        true => Err(format!("{} is not static", binary.display())),
        false => Ok(()),
    }
}

fn home() -> PathBuf {
    std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_are_compared_to_the_byte() {
        let directory = std::env::temp_dir().join(format!("pintle-compare-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let (one, same) = (file("one", b"abc"), file("same", b"abc"));
        assert_eq!(compare(&one, &same), Ok(()));
        for (name, bytes, at) in [("other", &b"abd"[..], 2), ("longer", b"abcd", 3)] {
            let error = compare(&one, &file(name, bytes)).unwrap_err();
            assert!(error.contains(&format!("first at byte {at}:")), "{error}");
        }
        assert!(compare(&one, &directory.join("none")).is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
