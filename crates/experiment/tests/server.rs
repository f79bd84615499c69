//! Servers under test, with scripts in the binary's place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use experiment::server::check::{self, Answer};
use experiment::server::{Launch, Server};
use experiment::ExperimentError;
use toml::Table;

/// Programs by name, and what they do.
const SCRIPTS: [(&str, &str); 6] = [
    ("refuses", "echo no room for me >&2\nexit 3"),
    ("reads", "cat \"$3\"\nexit 1"),
    ("serves", "READY\nexec sleep 1000"),
    ("crashes", "READY\nkill -9 $$"),
    (
        "warns",
        "echo \"$2: warning: a: has no effect\" >&2\necho \"$2: warning: b\" >&2",
    ),
    ("rejects", "echo \"$2:1:2: error: c\" >&2\nexit 1"),
];
const READY: &str =
    "echo 'entremet is ready: clients on 127.0.0.1:4711, admin on http://127.0.0.1:1'";

/// All of them are written before any is started: a file that another test's new process still
/// holds open for writing cannot be run.
static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("folder");
    for (name, lines) in SCRIPTS {
        let path = folder.path().join(name);
        let lines = lines.replace("READY", READY);
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
    }
    folder
});

fn script(name: &str) -> PathBuf {
    FOLDER.path().join(name)
}

fn start(name: &str) -> Result<Server, ExperimentError> {
    let config: Table = "scheduler.request = \"fifo\"".parse().expect("toml");
    Server::entremet(&Launch {
        label: "fifo/even, repeat 1",
        binary: &script(name),
        cores: &[0],
        config: &config,
        data: None,
    })
}

fn alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_that_does_not_come_up_is_told_with_its_last_words() {
    let error = start("refuses").err().expect("an error");
    let text = error.to_string();
    for part in [
        "fifo/even, repeat 1",
        "did not come up",
        "exit status: 3",
        "no room for me",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn it_gets_its_configuration_and_a_place_of_its_own() {
    let error = start("reads").err().expect("an error");
    let text = error.to_string();
    for part in [
        "request = \"fifo\"",
        "listen = \"127.0.0.1:0\"",
        "cores = 1",
        "path = \"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn dropping_a_server_ends_it() {
    let server = start("serves").expect("it is ready");
    assert_eq!(server.address.port(), 4711);
    let pid = server.pid();
    assert!(alive(pid));
    drop(server);
    assert!(!alive(pid), "it is waited for, so nothing of it is left");
}

#[test]
fn a_server_that_ends_says_how() {
    let mut server = start("crashes").expect("it was ready");
    let status = server.ended_soon().expect("it ended");
    assert!(status.contains("signal: 9"), "{status}");
    let text = server.failed("it is gone".into()).to_string();
    assert!(text.contains("entremet is ready"), "{text}");
}

#[test]
fn a_configuration_is_checked_by_the_server() {
    let ask = |name: &str| check::ask(&script(name), &Table::new()).expect("asked");
    let said = vec!["entremet.toml: warning: a: has no effect".to_string()];
    assert_eq!(ask("warns"), Answer::Good(said));
    let told = "entremet.toml:1:2: error: c".to_string();
    assert_eq!(ask("rejects"), Answer::Bad(told));
}
