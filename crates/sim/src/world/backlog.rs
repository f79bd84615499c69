//! What waits at a node or is in service there, as its replies tell it.

/// Counts and expected times of operations: all, and those that are not put off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backlog {
    all: Sum,
    urgent: Sum,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u32,
    ns: f64,
}

impl Sum {
    fn add(&mut self, ns: f32) {
        self.count += 1;
        self.ns += f64::from(ns);
    }

    fn take(&mut self, ns: f32) {
        self.count = self.count.saturating_sub(1);
        self.ns = (self.ns - f64::from(ns)).max(0.0);
    }

    /// How long it takes, as a count of operations that take `each_ns` on average, or as the sum of
    /// what each is expected to.
    fn time_ns(&self, each_ns: Option<f64>) -> f64 {
        each_ns.map_or(self.ns, |each_ns| each_ns * f64::from(self.count))
    }
}

impl Backlog {
    pub(super) fn add(&mut self, put_off: bool, ns: f32) {
        self.all.add(ns);
        if !put_off {
            self.urgent.add(ns);
        }
    }

    /// One goes into service: whoever comes now waits for it.
    pub(super) fn begin(&mut self, put_off: bool, ns: f32) {
        if put_off {
            self.urgent.add(ns);
        }
    }

    pub(super) fn end(&mut self, ns: f32) {
        self.all.take(ns);
        self.urgent.take(ns);
    }

    pub(super) fn count(&self) -> u32 {
        self.all.count
    }

    /// How long all of it takes, and what of it is not put off.
    pub(super) fn times_ns(&self, each_ns: Option<f64>) -> [f64; 2] {
        [self.all.time_ns(each_ns), self.urgent.time_ns(each_ns)]
    }
}
