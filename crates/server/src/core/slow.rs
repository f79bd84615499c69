//! Which commands were slow: measured one by one, for a pipeline would hide them in its turn.

use commands::{Action, EntremetCommand, Flags, SessionCommand, Spec};
use policy::Nanos;
use resp::Args;

use super::Core;
use crate::shared::Shared;
use crate::tenants::{Client, Tenant};

impl Core {
    /// A command has ended, in memory; it began when the one before it had ended, or its turn had
    /// begun.
    pub(super) fn timed(&mut self, tenant: &Tenant, client: &Client, spec: &Spec, args: Args<'_>) {
        let end = self.shared.options.clock.now();
        let took = end - self.now;
        self.now = end;
        if took >= self.slow_over_ns {
            note_slow(&self.shared, tenant, client, spec, args, took);
        }
    }

    /// Reads anew what [`crate::Tuning`] says.
    pub(super) fn tuned(&mut self, now: Nanos) {
        let tuning = self.shared.tuning();
        self.lines.set_discipline(now, tuning.discipline);
        for crew in [&self.handlers].into_iter().chain(&self.beyond) {
            crew.stage().set_discipline(now, tuning.discipline);
        }
        self.slow_over_ns = slow_over_ns(tuning.slow_log_over_us);
        self.post(now);
    }
}

/// The threshold in ns; a negative one is never reached.
pub(super) fn slow_over_ns(over_us: i64) -> Nanos {
    u64::try_from(over_us).map_or(Nanos::MAX, |us| us.saturating_mul(1_000))
}

/// Puts a command into its tenant's slow log; commands whose words may hold a password never go
/// there.
pub(super) fn note_slow(
    shared: &Shared,
    tenant: &Tenant,
    client: &Client,
    spec: &Spec,
    args: Args<'_>,
    took: Nanos,
) {
    use SessionCommand::{Auth, Entremet, Hello};
    let secret = matches!(
        spec.action,
        Action::Session(Auth | Hello | Entremet(EntremetCommand::Tenant))
    );
    if secret || spec.flags.has(Flags::SKIP_SLOWLOG) {
        return;
    }
    let (addr, name) = (client.addr.to_string(), client.labels().name);
    let at_s = (shared.options.wall_ms)() / 1_000;
    let length_max = shared.tuning().slow_log_length;
    tenant
        .slow_log
        .lock()
        .push(length_max, at_s, took / 1_000, args.iter(), (&addr, &name));
}
