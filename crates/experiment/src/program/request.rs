//! One request of one tenant, as large as it may be, beside somebody else's smallest.
//!
//! A server is started; a victim gets one key after the other; the sender sends its request,
//! several times. What a request does to the core it does each time, and what the machine does to
//! the victim (the host of a virtual machine, other programs) now and then: so of each figure of
//! the victim the least of all times counts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use policy::dispatch::Discipline;
use policy::words::Words as _;
use serde_json::Value;
use toml::Table;
use workload::client::control::Control;
use workload::client::Identity;

use settings::table::Fields;

use super::{figures, Program, Work};
use crate::observed::Observed;
use crate::server::{watch, Launch, Server};

/// See the reference.
pub const REQUEST: Program = Program {
    name: "one-request",
    timed: true,
    prepare,
};

/// How long any reply may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Of the thread that sends, beside the victim's 0.
const SENDER_NICE: i32 = 15;
/// Commands that are sent before their answers are read: more might fill both sockets.
const AT_ONCE: usize = 1_000;
/// Of the victim alone, before each time.
const QUIET: Duration = Duration::from_millis(300);
/// The server writes down what its stages observe once a second.
const TOLD: Duration = Duration::from_millis(1_500);
/// How often it is given something to do meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// Both may see and change all.
const CONFIG: &str = r#"
[[tenant]]
name = "sender"
password = "none"
[[tenant]]
name = "victim"
password = "none"
"#;

type Words = Vec<Vec<u8>>;

/// How large requests are.
#[derive(Clone, Copy)]
struct Size {
    words: usize,
    bytes: usize,
}

/// A request: what is there before it, and what is sent, all of it at once.
struct Request {
    before: Vec<Words>,
    sent: Vec<Words>,
}

/// What can be asked for.
const REQUESTS: [&str; 28] = [
    "watch",
    "hset",
    "hmget",
    "hgetall",
    "hdel",
    "zadd",
    "zmscore",
    "zrange",
    "zunionstore",
    "mset",
    "multi-mset",
    "exists",
    "mget",
    "keys",
    "del",
    "docs",
    "client-list",
    "lcs",
    "set",
    "get",
    "setbit",
    "bitcount",
    "bitop",
    "append",
    "auth",
    "echo",
    "multi-incr",
    "unknown",
];

fn words(text: &str) -> Words {
    let words = text.split(' ');
    words.map(|word| word.as_bytes().to_vec()).collect()
}

/// `text` and `count` more words.
fn with(text: &str, count: usize, word: impl Fn(usize) -> String) -> Words {
    let mut words = words(text);
    words.extend((0..count).map(|number| word(number).into_bytes()));
    words
}

/// `text` and one word of this many bytes.
fn long(text: &str, bytes: usize) -> Words {
    let mut words = words(text);
    words.push(vec![b'x'; bytes]);
    words
}

impl Request {
    fn of(name: &str, size: Size) -> Self {
        let keys = |text: &str| with(text, size.words, |number| format!("{number}"));
        let pairs = |text: &str| {
            let word = |number: usize| format!("{}", number / 2);
            with(text, size.words / 2 * 2, word)
        };
        let (big, far) = (|| long("SET big", size.bytes), size.bytes - 1);
        let (before, sent) = match name {
            "watch" => (vec![], vec![keys("WATCH")]),
            "hset" => (vec![words("DEL hash")], vec![pairs("HSET hash")]),
            "hmget" => (vec![pairs("HSET hash")], vec![keys("HMGET hash")]),
            "hgetall" => (vec![pairs("HSET hash")], vec![words("HGETALL hash")]),
            "hdel" => (vec![pairs("HSET hash")], vec![keys("HDEL hash")]),
            "zadd" => (vec![words("DEL set")], vec![pairs("ZADD set")]),
            "zmscore" => (vec![pairs("ZADD set")], vec![keys("ZMSCORE set")]),
            "zrange" => (vec![pairs("ZADD set")], vec![words("ZRANGE set 0 -1")]),
            "zunionstore" => (
                vec![pairs("ZADD set")],
                vec![words("ZUNIONSTORE to 2 set set")],
            ),
            "mset" => (vec![], vec![pairs("MSET")]),
            "multi-mset" => (vec![], vec![words("MULTI"), pairs("MSET"), words("EXEC")]),
            "exists" => (vec![pairs("MSET")], vec![keys("EXISTS")]),
            "mget" => (vec![pairs("MSET")], vec![keys("MGET")]),
            "keys" => (vec![pairs("MSET")], vec![words("KEYS *")]),
            "del" => (vec![pairs("MSET")], vec![keys("DEL")]),
            "docs" => {
                let docs = with("COMMAND DOCS", size.words / 10, |_| "client".into());
                (vec![], vec![docs])
            }
            "client-list" => {
                let list = with("CLIENT LIST ID", size.words, |_| "1".into());
                (vec![], vec![list])
            }
            "lcs" => {
                let (a, b) = ("ab".repeat(2_850), "ba".repeat(2_850));
                let before = vec![words(&format!("MSET a {a} b {b}"))];
                (before, vec![words("LCS a b LEN")])
            }
            "set" => (vec![], vec![big()]),
            "get" => (vec![big()], vec![words("GET big")]),
            "setbit" => (vec![big()], vec![words(&format!("SETBIT big {far} 1"))]),
            "bitcount" => (vec![big()], vec![words("BITCOUNT big")]),
            "bitop" => (vec![big()], vec![with("BITOP OR to", 40, |_| "big".into())]),
            "append" => (
                vec![words(&format!("SETRANGE most {} x", size.bytes / 2))],
                vec![words("APPEND most y")],
            ),
            "auth" => (vec![], vec![long("AUTH victim", size.bytes)]),
            "echo" => (vec![], vec![long("ECHO", size.bytes)]),
            "multi-incr" => {
                let mut sent = vec![words("MULTI")];
                sent.extend((0..size.words / 4).map(|_| words("INCR number")));
                sent.push(words("EXEC"));
                (vec![], sent)
            }
            _ => (vec![], vec![long("NOSUCH", size.bytes)]),
        };
        Self { before, sent }
    }
}

fn prepare(parameters: &Fields) -> Work {
    let name = parameters.word("request", &REQUESTS);
    let disciplines: Vec<&str> = Discipline::ALL.iter().map(|(_, (word, _))| *word).collect();
    let scheduler = parameters.word_or_first("scheduler", &disciplines);
    let times = parameters.count("times").unwrap_or(5);
    let size = Size {
        words: parameters.count("words").unwrap_or(1_000_000),
        bytes: parameters.count("bytes").unwrap_or(128 << 20),
    };
    Box::new(move |host| {
        let config = format!("[scheduler]\nrequest = \"{scheduler}\"\n{CONFIG}");
        let config: Table = config.parse().map_err(|error| format!("{error}"))?;
        let launch = Launch {
            label: name,
            binary: host.binary,
            cores: host.cores,
            config: &config,
            data: None,
        };
        let server = Server::entremet(&launch).map_err(|error| error.to_string())?;
        measure(&server, &Request::of(name, size), times)
    })
}

fn connect(address: SocketAddr, tenant: &str) -> Result<Control, String> {
    let identity = Identity {
        credentials: Some((tenant.into(), "none".into())),
        ..Identity::default()
    };
    Control::connect(address, &identity, PATIENCE).map_err(|error| error.to_string())
}

/// Sends it, and waits for all answers; one that is an error is as good.
fn send(control: &mut Control, row: &[Words]) -> Result<(), String> {
    for some in row.chunks(AT_ONCE) {
        let some: Vec<Vec<&[u8]>> = (some.iter())
            .map(|words| words.iter().map(Vec::as_slice).collect())
            .collect();
        let answered = control.commands(&some);
        answered.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Gets a key until it is told to stop; how long each took, ms, in order of length.
fn victim(control: &mut Control, stop: impl Fn() -> bool) -> Result<Vec<f64>, String> {
    let mut took = Vec::new();
    while !stop() || took.is_empty() {
        let begun = Instant::now();
        let answer = control.command(&[b"GET", b"key"]);
        if let Some(refused) = answer.map_err(|error| error.to_string())? {
            return Err(format!("the victim was answered {refused}"));
        }
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(took)
}

/// What the server tells.
#[derive(Clone, Copy, Default)]
struct Told {
    turn_ms: f64,
    forgiven_ms: f64,
    charged_s: f64,
}

fn tell(admin: SocketAddr) -> Result<Told, String> {
    let ask = |path: &str| -> Result<Value, String> {
        let page = watch::get(admin, path).map_err(|error| error.to_string())?;
        serde_json::from_str(&page).map_err(|error| format!("{path}: {error}"))
    };
    let (server, stages) = (ask("/api/server")?, ask("/api/stages")?);
    let ns = |value: &Value| value.as_f64().unwrap_or(0.0);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let request = (list(&stages).into_iter()).filter(|stage| stage["stage"] == "request");
    let (mut charged_ns, mut forgiven_ns) = (0.0, 0.0);
    for stage in request {
        charged_ns += ns(&stage["charged_ns"]);
        forgiven_ns += ns(&stage["forgiven_ns"]);
    }
    Ok(Told {
        turn_ms: ns(&server["largest_turn"]["cpu_ns"]) / 1e6,
        forgiven_ms: forgiven_ns / 1e6,
        charged_s: charged_ns / 1e9,
    })
}

fn measure(server: &Server, request: &Request, times: usize) -> Result<Observed, String> {
    let admin = server.admin.ok_or("the server tells nothing")?;
    let mut getter = connect(server.address, "victim")?;
    send(&mut getter, &[words("SET key value")])?;
    let mut least = [f64::INFINITY; 5];
    for _ in 0..times {
        let mut sender = connect(server.address, "sender")?;
        send(&mut sender, &request.before)?;
        let until = Instant::now() + QUIET;
        let quiet = victim(&mut getter, || Instant::now() >= until)?;
        let over = AtomicBool::new(false);
        let (beside, took) = std::thread::scope(|scope| {
            let sends = scope.spawn(|| {
                // They share a processor, and what is measured is the victim.
                let _ = rustix::process::nice(SENDER_NICE);
                let begun = Instant::now();
                let sent = send(&mut sender, &request.sent);
                over.store(true, Ordering::Relaxed);
                sent.map(|()| begun.elapsed().as_secs_f64())
            });
            let beside = victim(&mut getter, || over.load(Ordering::Relaxed));
            let sent = sends.join();
            let took = sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (beside, took)
        });
        let beside = beside?;
        let at = |part: f64| beside[((beside.len() - 1) as f64 * part) as usize];
        let seen = [took?, at(0.5), at(0.99), at(1.0), quiet[quiet.len() - 1]];
        for (least, seen) in least.iter_mut().zip(seen) {
            *least = least.min(seen);
        }
    }
    let (cpu_s, begun) = (server.cpu_s(), Instant::now());
    // It writes that down when it serves.
    while begun.elapsed() < TOLD {
        victim(&mut getter, || true)?;
        std::thread::sleep(LOOK);
    }
    let told = tell(admin)?;
    let [took, p50, p99, worst, quiet] = least;
    Ok(figures([
        ("took", took),
        ("beside-p50", p50),
        ("beside-p99", p99),
        ("beside-worst", worst),
        ("quiet-worst", quiet),
        ("turn", told.turn_ms),
        ("forgiven", told.forgiven_ms),
        ("charged", told.charged_s / cpu_s),
    ]))
}
