//! Frosting (Wang et al., HotStorage 2012): shares of the handlers by a linear program.
//!
//! Each client's performance `p` (desired / actual for latency, actual / desired for throughput) is
//! taken to be linear in its share near where it is. Each interval the program finds the shares
//! that make the largest difference of weighted badness, `w (1 - p)`, smallest (2.3).

use super::{Given, Held, PromiseGiven, Seen, ShareGiven, HANDLERS};
use crate::cost::{Nanos, PrincipalId};
use microlp::{ComparisonOp, OptimizationDirection, Problem};

/// Frosting's settings. The paper gives none of these figures but the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrostingOptions {
    /// Handlers: what bounds outstanding requests (2.1).
    pub handlers: u32,
    /// The most that a share changes in a step, sigma.
    pub step: f64,
    /// The least share, so that a client is still measured; of many clients, half of what each has
    /// if all have the same.
    pub share_min: f64,
    /// Steps are this long; what comes between is gathered (3: about 70 s are 7 steps).
    pub interval_ns: Nanos,
}

impl Default for FrostingOptions {
    fn default() -> Self {
        FrostingOptions {
            handlers: 8,
            step: 0.05,
            share_min: 0.01,
            interval_ns: 10_000_000_000,
        }
    }
}

/// A client's linear model, and what was measured since the last step.
#[derive(Clone, Debug)]
struct Client {
    principal: PrincipalId,
    share: f64,
    /// Performance gained for a whole share more.
    slope: f64,
    /// The last share and performance.
    last: Option<(f64, f64)>,
    perf: f64,
    weight: f64,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Frosting {
    options: FrostingOptions,
    clients: Vec<Client>,
    /// Since the last step of its own.
    gathered: Seen,
    why: Vec<String>,
}

/// Performance beyond this says nothing more: a client that asks for nothing is infinitely well
/// served.
const PERF_MAX: f64 = 2.0;
/// A slope that two noisy measurements give is taken for this at least: more share never hurts.
const SLOPE_MIN: f64 = 0.05;
const SLOPE_MAX: f64 = 20.0;

impl Frosting {
    /// Everybody begins with the same share (3).
    #[must_use]
    pub fn new(options: FrostingOptions) -> Self {
        Frosting {
            options,
            clients: Vec::new(),
            gathered: Seen::default(),
            why: vec!["All have the same share.".into()],
        }
    }

    pub(super) fn step(&mut self, held: &[Held], seen: &Seen) -> Given {
        self.meet(held);
        self.gathered.add(seen);
        if self.gathered.elapsed_ns >= self.options.interval_ns {
            let gathered = std::mem::take(&mut self.gathered);
            self.rate(held, &gathered);
            self.decide();
        }
        let share = |client: &Client| ShareGiven {
            principal: client.principal,
            share: [client.share; 2],
            reserved: [0; 2],
        };
        let mut permits = [None; 2];
        permits[HANDLERS] = Some(self.options.handlers);
        Given {
            promises: vec![PromiseGiven::default(); held.len()],
            shares: self.clients.iter().map(share).collect(),
            rest: [self.options.share_min; 2],
            permits,
            why: self.why.clone(),
            ..Given::default()
        }
    }

    /// Clients are the tenants that hold something, each once. When they change, shares begin anew.
    fn meet(&mut self, held: &[Held]) {
        let mut all: Vec<_> = held.iter().map(|held| held.principal).collect();
        all.sort_unstable();
        all.dedup();
        if all
            .iter()
            .eq(self.clients.iter().map(|client| &client.principal))
        {
            return;
        }
        let share = 1.0 / all.len().max(1) as f64;
        let client = |principal| Client {
            principal,
            share,
            slope: 1.0 / share.max(f64::MIN_POSITIVE),
            last: None,
            perf: 1.0,
            weight: 1.0,
        };
        self.clients = all.into_iter().map(client).collect();
        self.gathered = Seen::default();
    }

    /// A client with several promises is as well off as with the worst of them.
    fn rate(&mut self, held: &[Held], seen: &Seen) {
        for client in &mut self.clients {
            let all = held.iter().zip(&seen.promises);
            let own = all.filter(|(held, _)| held.principal == client.principal);
            let rated = own.filter_map(|(held, promise)| {
                let perf = promise.performance(&held.objective, seen.elapsed_ns)?;
                let (perf, weight) = (perf.min(PERF_MAX), f64::from(held.objective.importance));
                Some((weight * (1.0 - perf), perf, weight))
            });
            let worst = rated.max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((_, perf, weight)) = worst {
                (client.perf, client.weight) = (perf, weight);
                client.learn();
            }
        }
    }

    fn decide(&mut self) {
        match solve(&self.clients, &self.options) {
            Some(shares) => {
                self.why.clear();
                for (client, share) in self.clients.iter_mut().zip(shares) {
                    self.why.push(format!(
                        "Tenant {} had {:.2} of what it was promised; its share goes from {:.1} to {:.1} %.",
                        client.principal.0,
                        client.perf,
                        client.share * 100.0,
                        share * 100.0,
                    ));
                    client.share = share;
                }
            }
            None => self.why = vec!["The program has no solution, so shares stay.".into()],
        }
    }
}

impl Client {
    /// The line through the last two measurements, as far as they tell one.
    fn learn(&mut self) {
        if let Some((share, perf)) = self.last {
            let moved = self.share - share;
            if moved.abs() > 1e-3 {
                let slope = ((self.perf - perf) / moved).clamp(SLOPE_MIN, SLOPE_MAX);
                self.slope = 0.5 * self.slope + 0.5 * slope;
            }
        }
        self.last = Some((self.share, self.perf));
    }
}

/// The linear program: minimise the largest difference of badness, with bounded steps and shares
/// that sum to 1.
fn solve(clients: &[Client], options: &FrostingOptions) -> Option<Vec<f64>> {
    if clients.len() < 2 {
        return Some(vec![1.0; clients.len()]);
    }
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let share_min = options.share_min.min(0.5 / clients.len() as f64);
    let variable = |client: &Client| {
        let least = (client.share - options.step).max(share_min);
        let most = (client.share + options.step).min(1.0).max(least);
        program.add_var(0.0, (least, most))
    };
    let shares: Vec<_> = clients.iter().map(variable).collect();
    // The largest difference is that of the worst and the best: two constraints for each client,
    // where one for each pair would be a quarter of a million for 500.
    let anything = (f64::NEG_INFINITY, f64::INFINITY);
    let worst = program.add_var(1.0, anything);
    let best = program.add_var(-1.0, anything);
    for (client, share) in clients.iter().zip(&shares) {
        // w (1 - p(a)) = w (1 - p0 + slope a0) - w slope a
        let at_zero = client.weight * (1.0 - client.perf + client.slope * client.share);
        let falls = client.weight * client.slope;
        program.add_constraint([(worst, 1.0), (*share, falls)], ComparisonOp::Ge, at_zero);
        program.add_constraint([(best, 1.0), (*share, falls)], ComparisonOp::Le, at_zero);
    }
    let all: Vec<_> = shares.iter().map(|share| (*share, 1.0)).collect();
    program.add_constraint(all.as_slice(), ComparisonOp::Eq, 1.0);
    let solution = program.solve().ok()?;
    let found: Vec<f64> = shares.iter().map(|share| solution[*share]).collect();
    found.iter().all(|share| share.is_finite()).then_some(found)
}
