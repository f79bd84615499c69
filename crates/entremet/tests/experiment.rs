//! `entremet experiment` as a user calls it, with tiny runs of the real server.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use device::{calibrate, EmulatedDisk, Machine, Profile};

const BINARY: &str = env!("CARGO_BIN_EXE_entremet");
/// Nothing here takes longer, on a machine however busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two variants, one point; `DURATION` and `BOUND` are put in. What it judges is the same however
/// busy the machine is.
const TINY: &str = r#"
title = "Tiny"
source = "none"
shows = "that it runs"
paper = "nothing"
repeats = 2
[scenario]
duration = "DURATION"
warm_up = "50ms"
[[scenario.tenant]]
name = "web"
count = 2
[[scenario.tenant.load]]
loop = "closed"
connections = 16
depth = 2
keys = { count = 100 }
[[variant]]
name = "fifo"
scenario.server.scheduler.request = "fifo"
[[variant]]
name = "fair"
scenario.server.scheduler.request = "fair"
[quick]
scenario.duration = "1s"
[[verdict]]
target = "no request fails"
variant = "fair"
measure = "value"
figure = "failed"
bound = "BOUND"
[[plot]]
title = "Rates"
kind = "bars"
measure = "value"
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(duration: &str, bound: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let inner = folder.path().join("experiments/tiny");
        fs::create_dir_all(&inner).expect("inner");
        let text = TINY.replace("DURATION", duration).replace("BOUND", bound);
        fs::write(inner.join("experiment.toml"), text).expect("file");
        Self(folder)
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .arg("experiment")
            .args(arguments)
            .current_dir(self.0.path())
            .arg("--out")
            .arg(self.out())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    fn start(&self) -> Child {
        self.command(&["tiny"]).spawn().expect("it starts")
    }

    fn result(&self) -> serde_json::Value {
        let text = fs::read_to_string(self.out().join("tiny/result.json")).expect("result.json");
        serde_json::from_str(&text).expect("JSON")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asks again and again; the answer must come some day.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} did not come");
        std::thread::yield_now();
    }
}

/// The server that `parent` started, once it has clients.
fn loaded_server(parent: u32) -> u32 {
    until("a loaded server", || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        let pid: u32 = children.split_whitespace().next()?.parse().ok()?;
        let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let links = open.filter_map(|one| fs::read_link(one.ok()?.path()).ok());
        let sockets = links.filter(|link| link.to_string_lossy().starts_with("socket:"));
        (sockets.count() > 20).then_some(pid)
    })
}

/// Whether a process is there and not merely waiting to be buried.
fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.expect("kill").success());
}

#[test]
fn a_met_target_is_status_0_and_everything_is_written() {
    let folder = Folder::new("500ms", "<= 0");
    let output = folder.run(&["tiny"]);
    let printed = text(&output.stdout);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}{said}");
    assert!(
        printed.contains("pass") && printed.contains("1 of 1 targets met"),
        "{printed}"
    );
    // Variants took turns, and the second repeat began with the other one.
    let order: Vec<String> = text(&output.stderr)
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.1.split_once(':')?.0.to_string()))
        .map(|line| {
            line.rsplit_once("/4 ")
                .map_or(line.clone(), |(_, run)| run.to_string())
        })
        .collect();
    assert!(
        order[0].ends_with("fifo, repeat 1") && order[1].ends_with("fair, repeat 1"),
        "{order:?}"
    );
    assert!(
        order[2].ends_with("fair, repeat 2") && order[3].ends_with("fifo, repeat 2"),
        "{order:?}"
    );
    let result = folder.result();
    assert_eq!(result["verdicts"][0]["pass"], true);
    assert_eq!(
        result["verdicts"][0]["samples"].as_array().map(Vec::len),
        Some(2)
    );
    let runs = result["figures"]["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert_eq!(
            run["observed"]["tenants"].as_array().map(Vec::len),
            Some(2),
            "{run}"
        );
        let tenants = run["observed"]["tenants"].as_array().expect("tenants");
        assert_eq!(
            (&tenants[1]["name"], &tenants[1]["group"]),
            (&"web-2".into(), &"web".into())
        );
        let rates = tenants
            .iter()
            .filter_map(|tenant| tenant["total"]["rate_per_s"].as_f64());
        assert!(rates.sum::<f64>() > 0.0, "{run}");
    }
    let report = fs::read_to_string(folder.out().join("tiny/report.html")).expect("report.html");
    assert!(report.contains("no request fails") && report.contains("entremetPlot"));
}

#[test]
fn time_that_is_up_is_status_3_and_the_same_command_goes_on() {
    let folder = Folder::new("100ms", "<= 0");
    let part = folder.run(&["tiny", "--quick", "--only", "fair"]);
    assert_eq!(part.status.code(), Some(0), "{}", text(&part.stderr));
    let slice = folder.run(&["tiny", "--quick", "--within", "0s"]);
    assert_eq!(slice.status.code(), Some(3), "{}", text(&slice.stderr));
    let never = folder.run(&["tiny", "--quick", "--within", "1ms"]);
    assert_eq!(never.status.code(), Some(2), "no slice is long enough");
    assert!(
        text(&never.stderr).contains("give it more"),
        "{}",
        text(&never.stderr)
    );
    let rest = folder.run(&["tiny", "--quick"]);
    assert_eq!(rest.status.code(), Some(0), "{}", text(&rest.stderr));
    assert_eq!(text(&rest.stderr).matches("(kept)").count(), 1);
    let again = folder.run(&["tiny", "--quick", "--within", "0s"]);
    assert_eq!(again.status.code(), Some(0), "all are there");
    assert_eq!(text(&again.stderr).matches("(kept)").count(), 2);
    let disturbed = folder.run(&["tiny", "--quick", "--again", "--within", "0s"]);
    assert_eq!(disturbed.status.code(), Some(3), "none is wanted");
    let summary = fs::read_to_string(folder.out().join("summary.html")).expect("summary.html");
    assert!(summary.contains("1 of 1 targets met"), "{summary}");
    let told = folder.run(&["summary"]);
    assert!(text(&told.stdout).contains("tiny"));
    assert!(folder.out().join("summary.svg").exists());
}

#[test]
fn a_missed_target_is_status_1_and_says_so() {
    let folder = Folder::new("100ms", ">= 1e12");
    let output = folder.run(&["tiny", "--quick"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("MISS"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(folder.result()["verdicts"][0]["pass"], false);
}

#[test]
fn a_request_that_fails_is_a_miss_where_none_may() {
    let folder = Folder::new("2s", "<= 0");
    let path = folder.0.path().join("experiments/tiny/experiment.toml");
    let read = fs::read_to_string(&path).expect("file");
    let behaved = "loop = \"closed\"\nconnections = 16\ndepth = 2\nkeys = { count = 100 }";
    assert!(read.contains(behaved));
    // Sends nothing but commands that fail.
    let failing = read.replace(behaved, "misbehave = \"error-storm\"\ndepth = 1");
    fs::write(&path, failing).expect("file");
    let output = folder.run(&["tiny", "--quick"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert_eq!(folder.result()["verdicts"][0]["pass"], false);
}

#[test]
fn the_disk_of_a_profile_takes_the_place_of_an_emulated_one() {
    let folder = Folder::new("100ms", "<= 0");
    let path = folder.0.path().join("experiments/tiny/experiment.toml");
    let read = fs::read_to_string(&path).expect("file");
    let emulated = "[scenario.server.device]\nmodel = \"ssd\"\n[quick]";
    fs::write(&path, read.replace("[quick]", emulated)).expect("file");
    let mut disk = EmulatedDisk::named("ssd").expect("a model");
    let plan = disk.plan();
    let profile = Profile {
        made_s: 0,
        version: "0".into(),
        quick: true,
        directory: folder.0.path().display().to_string(),
        machine: Machine::of(folder.0.path()).expect("a machine"),
        measured: calibrate(&mut disk, &plan, &mut |_, _| {}).expect("calibrated"),
    };
    let profile_path = folder.0.path().join("device.toml");
    profile.save(&profile_path).expect("saved");
    let output = folder.run(&["tiny", "--quick", "--device", "device.toml"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("in the place of the emulated device"));
    let report = fs::read_to_string(folder.out().join("tiny/report.html")).expect("report.html");
    // The server's configuration has the whole path.
    assert!(report.contains(&*profile_path.to_string_lossy()));
    let command = "entremet experiment tiny --quick --device device.toml";
    assert!(report.contains(command));
}

#[test]
fn wrong_usage_is_status_2() {
    let folder = Folder::new("100ms", "<= 0");
    for (arguments, part) in [
        (&["tony"][..], "there are: tiny"),
        (&["tiny", "--only", "fare"], "no variant \"fare\""),
        (&["tiny", "--repeats", "0"], "0 is not in"),
        (&["all", "--experiments", "nowhere"], "--experiments DIR"),
        (&["tiny", "--device", "no.toml"], "--device no.toml: cannot"),
        (&[], "NAME"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(part),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_bad_scenario_is_told_before_anything_runs() {
    let folder = Folder::new("100ms", "<= 0");
    let file = folder.0.path().join("experiments/tiny/experiment.toml");
    let bad = fs::read_to_string(&file)
        .expect("file")
        .replace("connections = 16", "conections = 16");
    fs::write(&file, bad).expect("file");
    let output = folder.run(&["tiny"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(
        told.contains("conections") && !told.contains("1/4"),
        "{told}"
    );
}

#[test]
fn a_setting_that_the_server_refuses_is_told_with_its_words() {
    let folder = Folder::new("100ms", "<= 0");
    let file = folder.0.path().join("experiments/tiny/experiment.toml");
    let bad = fs::read_to_string(&file)
        .expect("file")
        .replace("\"fifo\"\n[[", "\"fofo\"\n[[");
    fs::write(&file, bad).expect("file");
    let output = folder.run(&["tiny"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("fofo"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_server_that_crashes_is_an_error_with_its_end() {
    let folder = Folder::new("50s", "<= 0");
    let experiment = folder.start();
    let server = loaded_server(experiment.id());
    signal(server, "KILL");
    let output = experiment.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(
        told.contains("fifo, repeat 1: the server ended during the load (signal: 9"),
        "{told}"
    );
    assert!(told.contains("entremet is ready"), "its last words: {told}");
    assert!(!folder.out().join("tiny/result.json").exists());
}

#[test]
fn ctrl_c_leaves_no_server_behind() {
    let folder = Folder::new("50s", "<= 0");
    let experiment = folder.start();
    let server = loaded_server(experiment.id());
    signal(experiment.id(), "INT");
    let output = experiment.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("interrupted"),
        "{}",
        text(&output.stderr)
    );
    assert!(!alive(server));
}

#[test]
fn a_killed_experiment_leaves_no_server_behind() {
    let folder = Folder::new("50s", "<= 0");
    let mut experiment = folder.start();
    let server = loaded_server(experiment.id());
    signal(experiment.id(), "KILL");
    experiment.wait().expect("it is gone");
    until("the server's end", || (!alive(server)).then_some(()));
}
