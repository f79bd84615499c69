//! `entremet calibrate` as a user calls it. What it measures is tested in the device crate.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn calibrate(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entremet"));
    command.arg("calibrate").args(arguments).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

#[test]
fn bad_places_are_refused_before_anything_is_measured() {
    let folder = folder();
    let run = |arguments: &[&str]| {
        calibrate(arguments, folder.path())
            .output()
            .expect("it runs")
    };
    let none = run(&[]);
    assert_eq!(none.status.code(), Some(2), "{}", said(&none));
    let nowhere = run(&["nowhere"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(
        said(&nowhere).contains("cannot inspect nowhere"),
        "{}",
        said(&nowhere)
    );
    let out = run(&[".", "--out", "no/such/device.toml"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        said(&out).contains("no/such is no directory"),
        "{}",
        said(&out)
    );
    let novel = folder.path().join("novel.txt");
    std::fs::write(&novel, "Call me Ishmael.").expect("written");
    let over = run(&[".", "--out", "novel.txt"]);
    assert_eq!(over.status.code(), Some(1));
    assert!(
        said(&over).contains("a file that is no profile is there"),
        "{}",
        said(&over)
    );
    assert_eq!(
        std::fs::read_to_string(novel).expect("still there"),
        "Call me Ishmael."
    );
}

#[test]
fn an_interruption_leaves_nothing_behind() {
    let folder = folder();
    let mut child = calibrate(&["."], folder.path()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped"));
    let mut first = String::new();
    lines.read_line(&mut first).expect("a line");
    if first.contains("cannot be measured") {
        println!("not measured: {first}");
        child.wait().expect("it ends");
        return;
    }
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill runs").success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(1), "{rest}");
    assert!(
        rest.contains("interrupted; nothing was written"),
        "{first}{rest}"
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        0
    );
}
