//! Scripted scenarios: every `scenarios/*.txt` is a list of commands, each followed by the output
//! that it must give. `UPDATE_SCENARIOS=1 cargo test -p entremet-policy --test scenarios` writes
//! what it gives.

use policy::dispatch::{
    Allocation, Discipline, Dispatch, DispatchOptions, Grant, LaneAllocation, LaneId, Meter, Next,
    Others, Terms, Ticket, Verdict,
};
use policy::multiget::level_of;
use policy::words::Words as _;
use policy::{Cost, Nanos, PrincipalId};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Requests, bytes in, bytes out. A request takes 1 µs, a byte 1 ns.
const R: usize = 3;

/// The cores of a scenario, and the tickets it holds by number.
#[derive(Default)]
struct World {
    cores: Vec<Dispatch<u64, R>>,
    now: Nanos,
    tickets: BTreeMap<u64, (usize, Ticket)>,
    granted: u64,
    arrived: u64,
    /// By item, as it was queued.
    sizes: BTreeMap<u64, u64>,
}

/// `name=value` words of a command line.
struct Words<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Self {
        let pair = |word: &'a str| word.split_once('=').unwrap_or((word, ""));
        Words(line.split_whitespace().skip(1).map(pair).collect())
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.0.get(name).map(|text| match text.parse() {
            Ok(number) => number,
            Err(_) => panic!("{name}={text} is not a number"),
        })
    }

    fn ns(&self, name: &str) -> Option<Nanos> {
        self.0.get(name).map(|text| duration(text))
    }

    fn core(&self) -> usize {
        self.number("core").unwrap_or(0)
    }

    fn principal(&self) -> PrincipalId {
        PrincipalId(self.number("id").expect("id=…"))
    }

    fn lane(&self) -> LaneId {
        LaneId(self.number("lane").unwrap_or(0))
    }

    fn cost(&self) -> Cost<R> {
        Cost(["requests", "in", "out"].map(|name| self.number(name).unwrap_or(0)))
    }
}

fn duration(text: &str) -> Nanos {
    let (digits, unit) =
        text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        _ => 1,
    };
    digits.parse::<Nanos>().expect("a duration such as 5ms") * factor
}

fn lane_of(lane: LaneId) -> String {
    match lane {
        LaneId::REST => String::new(),
        LaneId(lane) => format!("/{lane}"),
    }
}

fn timed_of(timed: u64) -> String {
    match timed {
        0 => String::new(),
        timed => format!(", {timed} timed"),
    }
}

fn discipline(text: &str) -> Discipline {
    Discipline::from_word(text).expect("a discipline")
}

impl World {
    fn run(&mut self, line: &str) -> String {
        let words = Words::of(line);
        let core = words.core();
        match line.split_whitespace().next().unwrap_or("") {
            "new" => self.create(&words),
            "wait" => {
                self.now += words.ns("for").expect("for=…");
                String::new()
            }
            "configure" => {
                self.cores[core].configure(self.now, words.principal(), &allocation(&words));
                String::new()
            }
            "lane" => self.lane(&words),
            "others" => self.others(&words),
            "over" => {
                let stream = words.number("stream").expect("stream=…");
                self.cores[core].end_stream(words.principal(), stream);
                String::new()
            }
            "remove" => format!(
                "{:?}\n",
                self.cores[core].remove(self.now, words.principal())
            ),
            "enqueue" => self.enqueue(&words),
            "next" => self.next(core),
            "settle" => {
                let number = words.number("turn").unwrap_or(self.granted);
                let (core, ticket) = self.tickets.remove(&number).expect("an open turn");
                self.cores[core].settle(self.now, ticket, words.cost());
                String::new()
            }
            "abandon" => {
                let number = words.number("turn").unwrap_or(self.granted);
                let (core, ticket) = self.tickets.remove(&number).expect("an open turn");
                self.cores[core].abandon(self.now, ticket);
                String::new()
            }
            "charge" => {
                self.cores[core].charge(self.now, words.principal(), words.cost());
                String::new()
            }
            "serve" => self.serve(&words),
            "drain" => self.drain(&words),
            "exchange" => self.exchange(),
            "discipline" => {
                let rule = words.0.keys().next().copied().unwrap_or("fair");
                self.cores[core].set_discipline(self.now, discipline(rule));
                String::new()
            }
            "permits" => {
                self.cores[core].set_permits(words.number("n").expect("n=…"));
                String::new()
            }
            "state" => self.state(),
            other => panic!("no command {other:?}"),
        }
    }

    fn lane(&mut self, words: &Words) -> String {
        let (principal, lane) = (words.principal(), words.lane());
        let core = &mut self.cores[words.core()];
        if words.0.contains_key("gone") {
            core.remove_lane(self.now, principal, lane);
            return String::new();
        }
        let allocation = LaneAllocation {
            weight: words.number("weight").unwrap_or(1.0),
            contract_per_s: words.number("contract"),
        };
        core.configure_lane(self.now, principal, lane, &allocation);
        String::new()
    }

    fn others(&mut self, words: &Words) -> String {
        let usual = Others::default();
        let others = Others {
            permits: words.number("permits").unwrap_or(usual.permits),
            beside: words.number("beside").unwrap_or(usual.beside),
            kept: words.number("kept").unwrap_or(usual.kept),
            floor: words.number("floor").unwrap_or(usual.floor),
            first: words.0.contains_key("first"),
            between: words.0.contains_key("between"),
            linger_ns: words.ns("linger").unwrap_or(0),
            run_ns: words.ns("run").unwrap_or(0),
        };
        self.cores[words.core()].set_others(self.now, others);
        String::new()
    }

    fn create(&mut self, words: &Words) -> String {
        let meter = Meter {
            requests: 0,
            bytes: [false, true, true],
        };
        let mut options = DispatchOptions::new([1_000_000, 1_000_000_000, 1_000_000_000], meter);
        options.discipline = discipline(words.0.get("discipline").copied().unwrap_or("fair"));
        options.permits = words.number("permits").unwrap_or(1);
        options.queue_max = words.number("queue").unwrap_or(1024);
        options.seed = words.number("seed").unwrap_or(0);
        let cores = words.number("cores").unwrap_or(1);
        self.cores = (0..cores).map(|_| Dispatch::new(options.clone())).collect();
        String::new()
    }

    fn enqueue(&mut self, words: &Words) -> String {
        let mut out = String::new();
        for _ in 0..words.number("n").unwrap_or(1u32) {
            self.arrived += 1;
            let terms = Terms {
                lane: words.lane(),
                due_at: words.ns("due").map(|ns| self.now + ns),
                stream: words.number("stream").unwrap_or(0),
                level: level_of(words.number("size").unwrap_or(1)),
            };
            self.sizes
                .insert(self.arrived, words.number("size").unwrap_or(1));
            let (core, principal) = (words.core(), words.principal());
            let full = self.cores[core].enqueue_on(self.now, principal, terms, self.arrived);
            if full.is_err() {
                let _ = writeln!(out, "item {} not taken", self.arrived);
            }
        }
        out
    }

    fn next(&mut self, core: usize) -> String {
        match self.cores[core].next(self.now) {
            Next::Grant(grant) => self.granted(core, grant),
            Next::At(at) => format!("at {}us\n", at / 1000),
            Next::Idle => "idle\n".into(),
        }
    }

    fn granted(&mut self, core: usize, grant: Grant<u64, R>) -> String {
        self.granted += 1;
        let verdict = match grant.verdict {
            Verdict::Serve => format!("budget {:?}", grant.budget.0),
            Verdict::Refuse {
                limit,
                retry_after_ns,
            } => {
                format!(
                    "refuse ({limit:?}), retry after {}us",
                    retry_after_ns / 1000
                )
            }
        };
        let lane = lane_of(grant.ticket.lane());
        let due = if grant.ticket.timed() { " timed" } else { "" };
        let line = format!(
            "turn {}: p{}{lane}{due} item {} waited {}us aside {}us {verdict}\n",
            self.granted,
            grant.principal.0,
            grant.item,
            grant.waited_ns / 1000,
            grant.ticket.set_aside_ns() / 1000,
        );
        self.tickets.insert(self.granted, (core, grant.ticket));
        line
    }

    /// Turns of one cost, one after the other, each principal coming back at once; prints who was
    /// served.
    fn serve(&mut self, words: &Words) -> String {
        let core = words.core();
        let mut order = Vec::new();
        for _ in 0..words.number("turns").unwrap_or(1u32) {
            let Next::Grant(grant) = self.cores[core].next(self.now) else {
                break;
            };
            let cost = words.cost();
            self.now += (cost.0[0] * 1000).max(cost.0[1]).max(cost.0[2]);
            let (lane, timed) = (grant.ticket.lane(), grant.ticket.timed());
            order.push(format!("p{}{}", grant.principal.0, lane_of(lane)));
            self.cores[core].settle(self.now, grant.ticket, cost);
            self.arrived += 1;
            let due = words.ns("due").filter(|_| timed);
            let terms = Terms {
                lane,
                due_at: due.map(|ns| self.now + ns),
                ..Terms::default()
            };
            let _ = self.cores[core].enqueue_on(self.now, grant.principal, terms, self.arrived);
        }
        order.join(" ") + "\n"
    }

    /// Turns that cost as many requests as their items are large, one after the other until nothing
    /// waits; prints who was served with which items.
    fn drain(&mut self, words: &Words) -> String {
        let core = words.core();
        let mut order: Vec<(String, u64, u64)> = Vec::new();
        while let Next::Grant(grant) = self.cores[core].next(self.now) {
            let (item, size) = (grant.item, self.sizes[&grant.item]);
            let whose = format!("p{}{}", grant.principal.0, lane_of(grant.ticket.lane()));
            self.now += size * 1000;
            self.cores[core].settle(self.now, grant.ticket, Cost([size, 0, 0]));
            match order.last_mut() {
                Some((last, _, to)) if *last == whose && *to + 1 == item => *to = item,
                _ => order.push((whose, item, item)),
            }
        }
        let runs = order.into_iter().map(|(whose, from, to)| match from == to {
            true => format!("{whose}:{from}"),
            false => format!("{whose}:{from}-{to}"),
        });
        runs.collect::<Vec<_>>().join(" ") + "\n"
    }

    fn exchange(&mut self) -> String {
        let mut out = String::new();
        let mut reports = Vec::new();
        for (number, core) in self.cores.iter_mut().enumerate() {
            let mut report = Vec::new();
            core.report(&mut report);
            for c in &report {
                let (id, us) = (c.principal.0, c.charge.ns() / 1000);
                let _ = writeln!(
                    out,
                    "core {number}: p{id}{} {us}us, {} requests, {} bytes, {} in contract{}",
                    lane_of(c.lane),
                    c.requests,
                    c.bytes,
                    c.in_contract,
                    timed_of(c.timed)
                );
            }
            reports.push(report);
        }
        for (to, core) in self.cores.iter_mut().enumerate() {
            for (_, report) in reports.iter().enumerate().filter(|(from, _)| *from != to) {
                core.absorb(self.now, report);
            }
        }
        out
    }

    fn state(&self) -> String {
        let mut out = format!("now {}us\n", self.now / 1000);
        for (number, core) in self.cores.iter().enumerate() {
            let (queued, flying) = (core.queued(), core.in_flight());
            let round = core.round();
            let _ = writeln!(
                out,
                "core {number}: round {round}, {queued} queued, {flying} in flight"
            );
            for id in 0..100 {
                let Some(o) = core.observe(self.now, PrincipalId(id)) else {
                    continue;
                };
                let effort = if o.best_effort { " best effort" } else { "" };
                let _ = writeln!(
                    out,
                    "  p{id} {:?}{effort}: queued {} flying {} granted {} refused {} rejected {} waited {}us \
                     occupied {}us busy {}us charged {}us debt {}us left {}us forgiven {}us",
                    o.state,
                    o.queued,
                    o.in_flight,
                    o.granted,
                    o.refused,
                    o.rejected,
                    o.waited_ns / 1000,
                    o.occupied_ns / 1000,
                    o.busy_ns / 1000,
                    o.charged_ns / 1000,
                    o.debt_ns / 1000,
                    o.quanta_left_ns / 1000,
                    o.forgiven_ns / 1000,
                );
                for lane in 0..LaneId::END {
                    let seen = core.observe_lane(self.now, PrincipalId(id), LaneId(lane));
                    let Some(l) = seen else {
                        continue;
                    };
                    let _ = writeln!(
                        out,
                        "    lane {lane}: queued {} flying {} granted {} timed {} late {} waited {}us charged {}us",
                        l.queued,
                        l.in_flight,
                        l.granted,
                        l.timed,
                        l.late,
                        l.waited_ns / 1000,
                        l.charged_ns / 1000,
                    );
                }
            }
        }
        out
    }
}

fn allocation(words: &Words) -> Allocation {
    let mut allocation = Allocation::share(words.number("weight").unwrap_or(1.0));
    allocation.reserved_permits = words.number("permits").unwrap_or(0);
    allocation.reservation_per_s = words.number("reserve");
    allocation.contract_per_s = words.number("contract");
    allocation.limit.requests_per_s = words.number("limit");
    allocation.limit.bytes_per_s = words.number("bytes");
    allocation.limit.burst_ns = words.ns("burst").unwrap_or(0);
    allocation.limit.max_wait_ns = words.ns("patience").unwrap_or(allocation.limit.max_wait_ns);
    allocation
}

/// What the file should be: comments and commands as they are, outputs as they come.
fn play(text: &str) -> String {
    let mut world = World::default();
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            out += line;
            out.push('\n');
            continue;
        }
        // Commands up to the line of dashes, then what they gave, up to the next empty line.
        let mut commands = vec![line];
        while let Some(command) = lines.next_if(|l| *l != "----" && !l.is_empty()) {
            commands.push(command);
        }
        if lines.next_if(|l| *l == "----").is_some() {
            while lines.next_if(|l| !l.is_empty()).is_some() {}
        }
        let given: String = commands.iter().map(|command| world.run(command)).collect();
        out += &commands.join("\n");
        out += if given.is_empty() { "\n" } else { "\n----\n" };
        out += &given;
    }
    out
}

#[test]
fn scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the scenarios' folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable scenario");
        let given = play(&text);
        if std::env::var_os("UPDATE_SCENARIOS").is_some() {
            std::fs::write(&file, &given).expect("a writable scenario");
        } else {
            assert!(given == text, "{} gives:\n{given}", file.display());
        }
    }
}
