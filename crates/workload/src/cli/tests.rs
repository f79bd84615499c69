use super::*;
use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    load: LoadArgs,
}

fn parse(words: &[&str]) -> Result<LoadArgs, clap::Error> {
    Command::try_parse_from([&["load"], words].concat()).map(|command| command.load)
}

#[test]
fn defaults_and_lists() {
    let args = parse(&[]).expect("defaults");
    let names: Vec<_> = args
        .replay
        .iter()
        .map(|replay| replay.name.as_str())
        .collect();
    assert_eq!(names, ["twitter", "mooncake", "kosarak"]);
    assert_eq!((args.duration, args.scenario), (None, None));
    let args = parse(&[
        "--replay",
        "twitter@2880",
        "meta",
        "--tenant",
        "a:b:c",
        "--tenant",
        "d:",
    ])
    .expect("valid");
    assert_eq!(args.replay[0].speed_up, Some(2880.0));
    assert_eq!(
        args.tenant,
        [("a".into(), "b:c".into()), ("d".into(), String::new())]
    );
}

#[test]
fn mistakes_are_explained() {
    let error = |words: &[&str]| parse(words).expect_err("wrong").to_string();
    assert!(error(&["--replay", "facebook"]).contains("no replay `facebook`; known are twitter"));
    assert!(error(&["--tenant", "web"]).contains("expected NAME:PASSWORD"));
    assert!(error(&["--duration", "30"]).contains("has no unit"));
    assert!(error(&["--duration", "0s"]).contains("more than nothing"));
    assert!(error(&["--speed-up", "0"]).contains("above zero"));
}

#[test]
fn loads_go_to_one_server_to_several_or_to_a_cluster() {
    let goal = |words: &[&str]| parse(words).expect("valid").goal();
    let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let two = ["--target", "127.0.0.1:1,127.0.0.1:2"];
    assert_eq!(goal(&two).expect("two"), Goal::Servers(vec![at(1), at(2)]));
    let front = ["--target", "127.0.0.1:1", "--cluster"];
    assert_eq!(goal(&front).expect("one"), Goal::Cluster(at(1)));
    let error = |words: &[&str]| goal(words).expect_err("wrong").to_string();
    assert!(error(&[&two[..], &["--cluster"]].concat()).contains("that front names the others"));
    assert!(goal(&["--target", "127.0.0.1:1,"]).is_err());
}

#[test]
fn a_scenario_brings_its_own() {
    let args = parse(&["a.toml", "--check"]).expect("valid");
    assert!(args.check && args.scenario.is_some());
    for words in [
        &["a.toml", "--replay", "meta"][..],
        &["a.toml", "--keys", "5"],
        &["--check"],
        &["--provision"],
        &["a.toml", "--operator", "a:b"],
        &["a.toml", "--anonymous", "--provision"],
        &["a.toml", "--histograms"],
    ] {
        assert!(parse(words).is_err(), "{words:?}");
    }
}

#[test]
fn durations() {
    assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1_500)));
    assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_duration("2min"), Ok(Duration::from_secs(120)));
    assert!(parse_duration("9999h").is_err());
    assert!(parse_duration("s").is_err());
}
