//! Every command beside the words of a real Redis.
//!
//! `transcripts/*.txt` are conversations: `> ` and a command line, then the reply as it came over
//! the wire. The replies were recorded from redis-server 7.0.15; here the same commands run against
//! our engine and must answer the same bytes: in memory where it can, under a latch, and over a
//! snapshot with the reply streamed.
//!
//! | line | meaning |
//! |---|---|
//! | `> command` | the reply follows, CR LF shown as a line end, other bytes that do not print as `\xHH` |
//! | `>~ command` | the same, but the lines of the reply come in any order |
//! | `>! command` | our own reply, where Redis has none or we differ on purpose; not recorded |
//! | `@resp 3` | switches the protocol |
//! | `@sleep 150` | so many milliseconds pass |
//! | `# …` | a comment |
//!
//! To record again: `redis-server --port 7777 --save ''` and
//! `ENTREMET_RECORD=127.0.0.1:7777 cargo test --release -p entremet-server --test transcripts`.

mod tenant;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, EngineOptions};
use resp::Protocol;
use tenant::{Tenant, Way};

/// One line of a transcript, with the reply under it.
struct Line {
    text: String,
    reply: String,
}

impl Line {
    /// The command, and whether the order of its reply's lines matters.
    fn command(&self) -> Option<(&str, bool)> {
        match self.text.split_once(' ')? {
            (">" | ">!", command) => Some((command, true)),
            (">~", command) => Some((command, false)),
            _ => None,
        }
    }

    fn directive(&self, name: &str) -> Option<u64> {
        self.text
            .strip_prefix(name)
            .map(|rest| rest.trim().parse().expect("a number"))
    }
}

fn read_transcript(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<Line> = Vec::new();
    for line in text.lines() {
        let is_reply = lines.last().is_some_and(|last| last.command().is_some())
            && !["> ", ">~ ", ">! ", "@", "#"]
                .iter()
                .any(|start| line.starts_with(start))
            && !line.is_empty();
        match lines.last_mut() {
            Some(last) if is_reply => writeln!(last.reply, "{line}").unwrap(),
            _ => lines.push(Line {
                text: line.to_owned(),
                reply: String::new(),
            }),
        }
    }
    lines
}

/// A reply as a transcript shows it.
fn shown(reply: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = reply;
    while let [first, ..] = rest {
        if let [b'\r', b'\n', after @ ..] = rest {
            text.push('\n');
            rest = after;
            continue;
        }
        match first {
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(*first)),
            other => write!(text, "\\x{other:02x}").unwrap(),
        }
        rest = &rest[1..];
    }
    // An empty line would end the reply.
    text.replace("\n\n", "\n\\\n")
}

fn sorted(reply: &str) -> Vec<&str> {
    let mut lines: Vec<_> = reply.lines().collect();
    lines.sort_unstable();
    lines
}

fn check(engine: &Arc<Engine>, path: &Path) -> Vec<String> {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let ways = [
        ("memory", Way::Memory),
        ("latch", Way::Latch),
        ("stream", Way::Stream),
    ];
    let mut tenants = ways
        .map(|(word, way)| Tenant::new(engine, &format!("{}-{word}", name.replace('_', "-")), way));
    let mut failures = Vec::new();
    for line in read_transcript(path) {
        for tenant in &mut tenants {
            if let Some(version) = line.directive("@resp ") {
                tenant.protocol = if version == 3 {
                    Protocol::Resp3
                } else {
                    Protocol::Resp2
                };
            } else if let Some(ms) = line.directive("@sleep ") {
                tenant.now_ms += ms;
            }
        }
        let Some((command, in_order)) = line.command() else {
            continue;
        };
        let replies = tenants
            .each_ref()
            .map(|tenant| shown(&tenant.answer(command)));
        for (reply, (way, _)) in replies.iter().zip(ways) {
            let same = match in_order {
                true => *reply == line.reply,
                false => sorted(reply) == sorted(&line.reply),
            };
            if !same {
                let expected = &line.reply;
                failures.push(format!(
                    "{name}, {way}: {command}\n  expected {expected:?}\n  but got  {reply:?}"
                ));
            }
        }
    }
    failures
}

/// Sends the commands to a Redis and writes its replies into the transcript.
fn record(address: &str, path: &Path) {
    let mut redis = TcpStream::connect(address).unwrap();
    redis
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    for setup in ["FLUSHALL", "HELLO 2"] {
        ask(&mut redis, setup);
    }
    let mut text = String::new();
    for line in read_transcript(path) {
        writeln!(text, "{}", line.text).unwrap();
        if let Some(version) = line.directive("@resp ") {
            ask(&mut redis, &format!("HELLO {version}"));
        } else if let Some(ms) = line.directive("@sleep ") {
            // Redis itself waits: for an element of a list that does not exist.
            ask(&mut redis, &format!("BLPOP nothing {}", ms as f64 / 1000.0));
        }
        match line.command() {
            Some(_) if line.text.starts_with(">!") => text.push_str(&line.reply),
            Some((command, _)) => text.push_str(&shown(&ask(&mut redis, command))),
            None => {}
        }
    }
    std::fs::write(path, text).unwrap();
}

/// A command's reply, whose end is found by the reply to an `ECHO` behind it.
fn ask(redis: &mut TcpStream, command: &str) -> Vec<u8> {
    const END: &[u8] = b"$8\r\nthe end.\r\n";
    redis
        .write_all(format!("{command}\r\nECHO \"the end.\"\r\n").as_bytes())
        .unwrap();
    let mut reply = Vec::new();
    let mut buffer = [0; 65536];
    while !reply.ends_with(END) {
        let count = redis.read(&mut buffer).unwrap();
        assert!(count > 0, "Redis closed the connection after {command}");
        reply.extend_from_slice(&buffer[..count]);
    }
    reply.truncate(reply.len() - END.len());
    reply
}

#[test]
fn replies_are_those_of_redis() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    if let Ok(address) = std::env::var("ENTREMET_RECORD") {
        paths.iter().for_each(|path| record(&address, path));
    }
    let data = tempfile::tempdir().unwrap();
    let engine = Engine::open(EngineOptions::new(data.path())).unwrap();
    let failures: Vec<String> = paths.iter().flat_map(|path| check(&engine, path)).collect();
    engine.shutdown();
    assert!(
        failures.is_empty(),
        "{} replies differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
