//! Servers of other designs that ours is measured against: examples of this project, built beside
//! it.

use std::path::{Path, PathBuf};

/// A few event loops that read RocksDB in their middle.
pub const PLAIN_STORE: &str = "plain_store";
/// A small store behind queues of two designs.
pub const QUEUE_STORE: &str = "queue_store";

/// All of them.
pub const ALL: [&str; 2] = [PLAIN_STORE, QUEUE_STORE];

/// Where `cargo build --example` puts one, beside a server.
pub fn path(server: &Path, name: &str) -> PathBuf {
    let folder = server.parent().unwrap_or(Path::new("."));
    folder.join("examples").join(name)
}

/// The same, or what to do if it is not there.
pub fn built(server: &Path, name: &str) -> Result<PathBuf, String> {
    let path = path(server, name);
    if path.exists() {
        return Ok(path);
    }
    Err(format!(
        "{} is not there: cargo build --release --locked -p entremet-server --example {name}",
        path.display()
    ))
}
