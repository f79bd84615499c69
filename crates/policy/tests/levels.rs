//! Levels of multigets and how they tune themselves, as scripts: `scenarios/*.levels`, commands at
//! the margin, each followed by what it gives. `UPDATE_SCENARIOS=1 cargo test -p entremet-policy
//! --test levels` writes what it gives.

use policy::multiget::{
    split, tag, Levels, Opset, Options, Order, Queue, Rates, Strategy, Tag, Tuner,
};
use policy::Nanos;
use std::fmt::Write as _;
use std::path::Path;

/// Load of the system that levels are chosen for, unless the script says another.
const LOAD: f64 = 0.75;

struct World {
    levels: Levels,
    queue: Queue<String>,
    tuner: Tuner,
    now: Nanos,
}

fn queue(order: Order, levels: &Levels, guard_ns: Option<Nanos>) -> Queue<String> {
    Queue::new(Options {
        order,
        levels: levels.clone(),
        guard_ns,
    })
}

impl World {
    fn new() -> Self {
        let levels = Levels::exponential(1, 2.0, 1, Rates::Linear);
        World {
            queue: queue(Order::Levels, &levels, None),
            levels,
            tuner: Tuner::default(),
            now: 0,
        }
    }

    fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |place: usize| -> u64 { words[place].parse().expect("a number") };
        match words[0] {
            "levels" => {
                let rates = match words[4] {
                    "linear" => Rates::Linear,
                    _ => Rates::Geometric(4),
                };
                let range = words[2].parse().expect("a range");
                self.levels = Levels::exponential(number(1) as usize, range, number(3), rates);
                self.show_levels()
            }
            "queue" => {
                let order = match words[1] {
                    "exact" => Order::Exact,
                    "arrival" => Order::Arrival,
                    _ => Order::Levels,
                };
                let guard_ns = words.get(2).map(|_| number(2));
                self.queue = queue(order, &self.levels, guard_ns);
                String::new()
            }
            "wait" => {
                self.now += number(1);
                String::new()
            }
            "multiget" => self.multiget(words[1], &words[2..]),
            "serve" => self.serve(number(1)),
            "observe" => {
                for _ in 0..number(3) {
                    self.tuner.observe(number(1), number(2));
                }
                String::new()
            }
            "tune" => {
                let load = words
                    .get(1)
                    .map_or(LOAD, |load| load.parse().expect("a load"));
                self.tune(load)
            }
            other => panic!("{other} is no command"),
        }
    }

    fn show_levels(&self) -> String {
        let rates: Vec<u64> = (0..self.levels.count())
            .map(|level| self.levels.rate(level))
            .collect();
        let from = self.levels.thresholds();
        format!("  begin at 0 and {from:?}, rates {rates:?}\n")
    }

    /// Tags a multiget given as partition:cost of each operation, and queues all of it at one
    /// server.
    fn multiget(&mut self, name: &str, operations: &[&str]) -> String {
        let operations = operations.iter().map(|operation| {
            let (group, cost) = operation.split_once(':').expect("partition:cost");
            (
                group.parse().expect("a partition"),
                cost.parse().expect("a cost"),
            )
        });
        let (mut opsets, mut tags): (Vec<Opset>, Vec<Tag>) = Default::default();
        split(operations, &mut opsets);
        tag(Strategy::Rein, self.now, &opsets, &self.levels, &mut tags);
        let mut out = String::new();
        for (opset, tag) in opsets.iter().zip(tags) {
            let (group, cost) = (opset.group, opset.cost);
            let _ = writeln!(
                out,
                "  {name}{group} cost {cost}: level {} priority {}",
                tag.level, tag.priority
            );
            self.queue
                .push(self.now, tag, cost, format!("{name}{group}"));
        }
        out
    }

    fn serve(&mut self, count: u64) -> String {
        let mut served = Vec::new();
        for _ in 0..count {
            served.push(match self.queue.pop(self.now) {
                Some(taken) if taken.boosted => format!("{} (boosted)", taken.item),
                Some(taken) => taken.item,
                None => "nothing".into(),
            });
        }
        format!("  {}\n", served.join(", "))
    }

    fn tune(&mut self, load: f64) -> String {
        let Some(tuned) = self.tuner.choose(load) else {
            return "  nothing was seen\n".into();
        };
        self.levels = tuned.levels;
        self.queue.set_levels(self.levels.clone());
        let (count, range, wait) = (self.levels.count(), tuned.range, tuned.wait);
        let order = self.tuner.deadline();
        format!(
            "  K {count} R {range:.2}, mean wait {wait:.3} of one level's\n{}  {order:?}\n",
            self.show_levels()
        )
    }
}

/// What the file should be: comments and commands as they are, what they give below them.
fn play(text: &str) -> String {
    let mut world = World::new();
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.starts_with(' ')) {
        out += line;
        out.push('\n');
        if !line.is_empty() && !line.starts_with('#') {
            out += &world.run(line);
        }
    }
    out
}

#[test]
fn scripts() {
    for name in ["rein", "tuner"] {
        let file = format!("tests/scenarios/{name}.levels");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = std::fs::read_to_string(&file).expect("a readable script");
        let given = play(&text);
        if std::env::var_os("UPDATE_SCENARIOS").is_some() {
            std::fs::write(&file, &given).expect("a writable script");
        } else {
            assert!(given == text, "{} gives:\n{given}", file.display());
        }
    }
}
