//! The runner, with a script in the server's place and a player that makes its figures up.

mod made;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use experiment::plan::Only;
use experiment::runner::Setup;
use experiment::spec::{Experiment, FILE};
use experiment::ExperimentError;
use telemetry::api::HistogramsView;
use telemetry::{Class, Histogram, HistogramSnapshot};
use toml::Table;
use workload::stats::Pace;

use made::{experiment, run, script, setup, Made, NEVER, SCRIPTS, TEXT};

#[test]
fn runs_take_turns_and_each_has_its_scenario_and_seed() {
    let (player, binary) = (Made::default(), script("serves"));
    let experiment = experiment("");
    let (told, done) = run(&experiment, &setup(&binary, &player, &NEVER)).expect("it runs");
    assert_eq!(told.len(), 8);
    assert_eq!(told[0], "1/8 fifo/alone, repeat 1");
    assert_eq!(told[4], "5/8 fair/alone, repeat 2");
    let played = player.played.borrow();
    let of = |index: usize| {
        let request = played[index]["server"]["scheduler"]["request"].as_str();
        (
            request.expect("a scheduler").to_string(),
            played[index]["seed"].as_integer(),
        )
    };
    assert_eq!(of(0), ("fifo".into(), Some(40)));
    assert_eq!(of(1), ("fair".into(), Some(40)));
    assert_eq!(of(4), ("fair".into(), Some(41)));
    // Rates grow by one a run: fair/together is the fourth and seventh, fair/alone the second and
    // fifth.
    let measured = done.judged[0].measured.as_ref().expect("measured");
    assert_eq!(measured.samples, [104.0 / 102.0, 107.0 / 105.0]);
    assert!(done.passed() && done.seed == 40);
    assert!(
        done.notes[0].contains("shares processors"),
        "{:?}",
        done.notes
    );
}

/// An admin address of the test's: each question for histograms finds a hundred gets more, ten
/// times slower than those before.
fn tells_histograms(listener: TcpListener) {
    let latency = Histogram::new();
    let mut each_ns = 100_000;
    for stream in listener.incoming() {
        let mut stream = stream.expect("a question");
        let mut head = BufReader::new(&stream).lines().map_while(Result::ok);
        let line = head.next().unwrap_or_default();
        head.find(String::is_empty);
        let mut body = String::new();
        if line.starts_with("GET /api/histograms ") {
            latency.record_many(each_ns, 100);
            each_ns *= 10;
            let view = HistogramsView {
                tenant: "web".into(),
                class: Class::Get,
                latency: latency.snapshot(),
                queue: HistogramSnapshot::default(),
                disk: HistogramSnapshot::default(),
            };
            body = serde_json::to_string(&[view]).expect("JSON");
        }
        write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}").expect("an answer");
    }
}

#[test]
fn the_server_s_own_histograms_are_asked_at_both_ends_of_the_measured_time() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let admin = listener.local_addr().expect("its number").to_string();
    let binary = script("tells");
    fs::write(SCRIPTS.path().join("tells.admin"), admin).expect("the address");
    std::thread::spawn(move || tells_histograms(listener));
    let rest = "[[verdict]]\ntarget = \"told\"\nvariant = \"fair\"\npoint = \"alone\"\nmeasure = \"value\"\n\
                figure = \"server-p50\"\nclass = \"get\"\nshown = true\n";
    let player = Made::default();
    let alone = Setup {
        only: Some(Only {
            variant: Some("fair".into()),
            point: Some("alone".into()),
        }),
        repeats: Some(1),
        ..setup(&binary, &player, &NEVER)
    };
    let (_, done) = run(&experiment(rest), &alone).expect("it runs");
    // The first hundred were of the warm-up.
    let told = done
        .judged
        .iter()
        .find(|one| one.target.starts_with("told"));
    let told = told
        .expect("the verdict")
        .measured
        .as_ref()
        .expect("measured")
        .value;
    assert!((told - 1.0).abs() < 1.0 / 32.0, "{told} ms");
}

#[test]
fn a_yardstick_is_measured_first_and_told_to_all_that_come_after() {
    let (player, binary) = (Made::default(), script("serves"));
    let rest = "[[yardstick]]\nsets = \"server.scheduler.requests\"\nvariant = \"fifo\"\npoint = \"alone\"\nunit = \"/s\"\n";
    let (_, done) = run(&experiment(rest), &setup(&binary, &player, &NEVER)).expect("it runs");
    let played = player.played.borrow();
    assert_eq!(played.len(), 9);
    assert!(played[0]["server"]["scheduler"].get("requests").is_none());
    for scenario in &played[1..] {
        assert_eq!(
            scenario["server"]["scheduler"]["requests"].as_str(),
            Some("101/s")
        );
    }
    assert_eq!(
        done.yardsticks,
        [("server.scheduler.requests".to_string(), "101/s".into())]
    );
}

#[test]
fn a_yardstick_may_be_measured_anew_before_every_repeat() {
    let (player, binary) = (Made::default(), script("serves"));
    let rest = "[[yardstick]]\nsets = \"server.scheduler.requests\"\nvariant = \"fifo\"\npoint = \"alone\"\nunit = \"/s\"\neach = true\n";
    // The second one is of the same run.
    let rest = &(rest.to_string()
        + &rest
            .replace("requests", "bandwidth_out")
            .replace("/s", "B/s"));
    let (_, done) = run(&experiment(rest), &setup(&binary, &player, &NEVER)).expect("it runs");
    assert_eq!(done.yardsticks.len(), 4);
    assert_eq!(player.played.borrow().len(), 8 + 2);
}

#[test]
fn a_yardstick_may_be_told_times_where_a_point_lies() {
    let (player, binary) = (Made::default(), script("serves"));
    let rest = "[[point]]\nname = \"half\"\nx = 0.5\n[[yardstick]]\nsets = \"server.scheduler.requests\"\n\
                variant = \"fifo\"\npoint = \"alone\"\nunit = \"/s\"\ntimes_x = true\n";
    let (_, done) = run(&experiment(rest), &setup(&binary, &player, &NEVER)).expect("it runs");
    let said = ("server.scheduler.requests".to_string(), "101/s".into());
    assert_eq!(done.yardsticks, [said]);
    let played = player.played.borrow();
    let told = |scenario: &Table| {
        let told = scenario["server"]["scheduler"].get("requests");
        told.and_then(toml::Value::as_str).map(str::to_owned)
    };
    let told: Vec<_> = played.iter().filter_map(told).collect();
    assert!(!told.is_empty() && told.len() < played.len() - 1);
    assert!(
        told.iter().all(|told| told == "50/s" || told == "51/s"),
        "{told:?}"
    );
}

#[test]
fn the_pace_of_a_server_is_told_to_simulated_runs_only() {
    let binary = script("serves");
    let player = Made {
        pace: Pace::from_iter([3, 1]),
        ..Made::default()
    };
    let rest =
        "[[yardstick]]\nsets = \"fault\"\nvariant = \"fifo\"\npoint = \"alone\"\npace = true\n";
    let (_, done) = run(&experiment(rest), &setup(&binary, &player, &NEVER)).expect("it runs");
    assert!(done.yardsticks[0].1.is_array(), "{:?}", done.yardsticks);
    let played = player.played.borrow();
    assert_eq!(played.len(), 9);
    assert!(played
        .iter()
        .all(|scenario| !scenario.contains_key("fault")));
    drop(played);
    // A run that no server answered says nothing of how fast one was.
    let player = Made::default();
    let Err(error) = run(&experiment(rest), &setup(&binary, &player, &NEVER)) else {
        panic!("there is nothing to tell");
    };
    assert!(error.to_string().contains("has no pace"), "{error}");
}

#[test]
fn a_yardstick_for_the_simulator_makes_no_server_s_run_a_simulated_one() {
    let (player, binary) = (Made::default(), script("serves"));
    let rest = "[[yardstick]]\nsets = \"cluster.requests\"\nvariant = \"fifo\"\npoint = \"alone\"\nunit = \"/s\"\n";
    run(&experiment(rest), &setup(&binary, &player, &NEVER)).expect("it runs");
    let played = player.played.borrow();
    assert_eq!(played.len(), 9);
    assert!(played
        .iter()
        .all(|scenario| !scenario.contains_key("cluster")));
}

#[test]
fn a_change_reaches_the_server_in_its_time() {
    let change =
        "[[change]]\nat = \"1s\"\n[[change.scenario.tenant]]\nname = \"web\"\nweight = 7\n\
                  [[change]]\nat = \"1s\"\nvariants = [\"none\"]\n[[change.scenario.tenant]]\nname = \"web\"\nweight = 8\n\
                  [[change]]\nat = \"3s\"\n[[change.scenario.tenant]]\nname = \"web\"\nweight = 9\n\
                  [[variant]]\nname = \"none\"\npoints = []";
    let seen = script("rereads.seen");
    let player = Made {
        awaits: Some(seen.clone()),
        ..Made::default()
    };
    let binary = script("rereads");
    let mut setup = setup(&binary, &player, &NEVER);
    setup.repeats = Some(1);
    run(&experiment(change), &setup).expect("played");
    let config: Table = fs::read_to_string(&seen)
        .expect("read anew")
        .parse()
        .expect("TOML");
    assert_eq!(config["tenant"][0]["weight"].as_integer(), Some(7));
}

#[test]
fn a_bad_scenario_is_told_before_anything_runs_and_not_a_hundred_times() {
    let player = Made {
        refuses: Some("conections means nothing"),
        ..Made::default()
    };
    let points: String = (0..9)
        .map(|n| format!("[[point]]\nname = \"{n}\"\n"))
        .collect();
    let error = run(
        &experiment(&points),
        &setup(&script("serves"), &player, &NEVER),
    )
    .err();
    let text = error.expect("an error").to_string();
    assert!(
        text.contains("fifo/alone: conections means nothing"),
        "{text}"
    );
    assert_eq!(text.matches("conections").count(), 4, "{text}");
    assert!(text.contains("and of 18 other runs"), "{text}");
    assert!(player.played.borrow().is_empty());
}

#[test]
fn a_crash_is_told_with_the_server_s_end_and_not_as_a_lost_connection() {
    let player = Made {
        loses: true,
        ..Made::default()
    };
    let error = run(&experiment(""), &setup(&script("crashes"), &player, &NEVER)).err();
    let text = error.expect("an error").to_string();
    for part in [
        "fifo/alone, repeat 1",
        "ended during the load (exit status: 7)",
        "I am done",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_load_that_fails_beside_a_living_server_says_why() {
    let player = Made {
        loses: true,
        ..Made::default()
    };
    let error = run(&experiment(""), &setup(&script("serves"), &player, &NEVER)).err();
    let text = error.expect("an error").to_string();
    assert!(
        text.contains("fifo/alone, repeat 1") && text.contains("went away (reset)"),
        "{text}"
    );
}

#[test]
fn an_interrupt_in_the_first_run_ends_it_without_a_verdict() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let player = Made {
        interrupts: Some((&STOP, 1)),
        ..Made::default()
    };
    let error = run(&experiment(""), &setup(&script("serves"), &player, &STOP)).err();
    assert!(matches!(error, Some(ExperimentError::Interrupted)));
    assert_eq!(player.played.borrow().len(), 1);
}

#[test]
fn an_interrupt_later_on_keeps_the_runs_before_it() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let player = Made {
        interrupts: Some((&STOP, 6)),
        ..Made::default()
    };
    let experiment = experiment("");
    let (told, done) = run(&experiment, &setup(&script("serves"), &player, &STOP)).expect("kept");
    assert_eq!(told.len(), 5);
    assert!(matches!(done.cut, Some(ExperimentError::Interrupted)));
    assert_eq!(done.runs.all().count(), 5);
    let measured = done.judged[0].measured.as_ref().expect("measured");
    assert_eq!(measured.samples.len(), 1, "of the repeat that is whole");
    assert!(done.passed());
    let note = "5 of 8 runs were made: interrupted";
    assert!(
        done.notes.iter().any(|said| said == note),
        "{:?}",
        done.notes
    );
}

#[test]
fn a_cluster_is_simulated_and_takes_no_server() {
    let text = TEXT
        .replace("seed = 40", "seed = 40, cluster = { operation = \"1ms\" }")
        .replace("load = [{}]", "load = [{ rate = \"100/s\" }]")
        .replace(
            "scenario.server.scheduler.request =",
            "scenario.cluster.scheduler =",
        );
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join(FILE), text).expect("file");
    let experiment = Experiment::read(folder.path()).expect("a good one");
    let (player, nowhere) = (Made::default(), PathBuf::from("no/such/binary"));
    let (told, done) = run(&experiment, &setup(&nowhere, &player, &NEVER)).expect("it runs");
    assert!(player.played.borrow().is_empty());
    assert_eq!(done.notes, Vec::<String>::new());
    let measured = done.judged[0].measured.as_ref().expect("measured");
    // Variants, points and seeds alike: the same run twice.
    assert_eq!(measured.samples, [1.0, 1.0]);
    let seen: Vec<f64> = done
        .runs
        .of("fair", "alone")
        .map(|run| run.figures["events"])
        .collect();
    assert!(seen[0] > 3_000.0 && seen[0] != seen[1], "{seen:?}");
    // Several at once come to the same, and are told in the same order.
    let many = Setup {
        processors: &[0, 1, 2],
        ..setup(&nowhere, &player, &NEVER)
    };
    let (alike, beside) = run(&experiment, &many).expect("it runs");
    assert_eq!(alike, told);
    assert_eq!(beside.judged[0].measured, done.judged[0].measured);
    let wrong = "[[point]]\nname = \"odd\"\nscenario.cluster.nods = 3\n";
    let text = fs::read_to_string(folder.path().join(FILE)).expect("text") + wrong;
    fs::write(folder.path().join(FILE), text).expect("file");
    let experiment = Experiment::read(folder.path()).expect("read");
    let error = run(&experiment, &setup(&nowhere, &player, &NEVER)).err();
    let text = error.expect("an error").to_string();
    assert!(text.contains("fifo/odd") && text.contains("nods"), "{text}");
}
