//! The binary as a user calls it: what it prints, and its exit status.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn entremet(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_entremet"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that does not read its input may be gone already.
    let _ = child
        .stdin
        .take()
        .expect("piped")
        .write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_and_version_are_no_failure() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["serve", "--help"],
        &["check", "--help"],
        &["calibrate", "--help"],
        &["load", "--help"],
        &["sim", "--help"],
    ] {
        let output = entremet(arguments, "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(out(&output).contains("entremet"), "{arguments:?}");
    }
    let version = out(&entremet(&["--version"], ""));
    assert!(
        version.starts_with(&format!("entremet {}", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
}

#[test]
fn wrong_usage_is_status_2() {
    for arguments in [
        &[][..],
        &["serv"],
        &["serve", "--listen", "nowhere"],
        &["check"],
        &["completions", "sh"],
    ] {
        assert_eq!(
            entremet(arguments, "").status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn check_says_the_sample_back() {
    let output = entremet(&["check", "../../entremet.toml"], "");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(
        out(&output).starts_with("../../entremet.toml: good, no problems.\n"),
        "{}",
        out(&output)
    );
    assert!(out(&output).contains("web (weight 10), with a password."));
}

#[test]
fn a_bad_configuration_is_status_1_for_check_and_serve() {
    for arguments in [
        &["check", "tests/bad/typos.toml"][..],
        &["serve", "--config", "tests/bad/typos.toml"],
    ] {
        let output = entremet(arguments, "");
        assert_eq!(
            (output.status.code(), out(&output).as_str()),
            (Some(1), ""),
            "{arguments:?}"
        );
        let said = err(&output);
        assert!(
            said.starts_with("entremet: the configuration cannot be used: "),
            "{said}"
        );
        assert!(
            said.contains("tests/bad/typos.toml:2:1: error: server.listn: there is no such key"),
            "{said}"
        );
    }
}

#[test]
fn passwords_are_hashed_from_standard_input() {
    let output = entremet(&["hash-password"], "secret\n");
    assert_eq!(output.status.code(), Some(0));
    let hash = out(&output);
    assert!(
        hash.starts_with("$argon2id$") && hash.ends_with('\n') && hash.lines().count() == 1,
        "{hash}"
    );
    let nothing = entremet(&["hash-password"], "\n");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(err(&nothing).contains("is empty"), "{}", err(&nothing));
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = entremet(&["completions", shell], "");
        assert_eq!(output.status.code(), Some(0));
        assert!(out(&output).contains("hash-password"), "{shell}");
    }
}

#[test]
fn the_manual_is_written_where_one_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("man1");
    let output = entremet(&["man", place.to_str().expect("UTF-8")], "");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let page = std::fs::read_to_string(place.join("entremet-serve.1")).expect("a page");
    assert!(page.contains("drain"), "{page}");

    std::fs::write(folder.path().join("file"), "").expect("written");
    let nowhere = folder.path().join("file/man1");
    let output = entremet(&["man", nowhere.to_str().expect("UTF-8")], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("cannot write the manual pages to"),
        "{}",
        err(&output)
    );
}
