//! Tells the binary its version: the package's, and the commit when built inside a repository. No
//! clock: the same sources give the same binary.

use std::path::Path;
use std::process::Command;

/// Changes with every commit, checkout and reset.
const HISTORY: &str = "../../.git/logs/HEAD";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ENTREMET_COMMIT");
    if Path::new(HISTORY).exists() {
        println!("cargo::rerun-if-changed={HISTORY}");
    }
    let version = env!("CARGO_PKG_VERSION");
    // Packagers that build from an archive name the commit themselves.
    let named = std::env::var("ENTREMET_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    match named.or_else(head) {
        Some(commit) => println!("cargo::rustc-env=ENTREMET_VERSION={version} ({commit})"),
        None => println!("cargo::rustc-env=ENTREMET_VERSION={version}"),
    }
}

fn head() -> Option<String> {
    let asked = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()?;
    let commit = String::from_utf8(asked.stdout).ok()?;
    let commit = commit.trim();
    (asked.status.success() && !commit.is_empty()).then(|| commit.to_string())
}
