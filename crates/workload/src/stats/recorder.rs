//! Counts what becomes of requests.

use std::sync::Arc;

use super::{Pace, TenantStats, LOST};
use crate::client::{Completion, Observer, Quota};
use crate::draw::Class;

/// Counts requests and replies of a run by tenant, within the measured time.
pub(crate) struct Recorder {
    tenants: Vec<TenantStats>,
    pace: Pace,
    /// Which of the tenants each stream belongs to.
    tenant_of: Vec<usize>,
    /// What each stream sends in all, if there is an end.
    quotas: Vec<Option<Arc<Quota>>>,
    /// Measured from here (ns since the run began) …
    from_ns: u64,
    /// … to here.
    until_ns: u64,
    /// What a request that lost its connection is counted as.
    pub(crate) loss: &'static str,
    /// Requests so far, whether measured or not.
    pub(crate) sent: u64,
    /// Failures so far, whether measured or not.
    pub(crate) lost: u64,
}

impl Recorder {
    /// For streams of these (tenant, tag); those of one tenant and tag are counted together.
    pub(crate) fn new(
        streams: impl Iterator<Item = (String, String)>,
        quotas: Vec<Option<Arc<Quota>>>,
        from_ns: u64,
        until_ns: u64,
    ) -> Self {
        let mut tenants: Vec<TenantStats> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        let tenant_of = streams
            .map(|name| {
                *places.entry(name).or_insert_with_key(|(tenant, tag)| {
                    tenants.push(TenantStats::new(tenant, tag));
                    tenants.len() - 1
                })
            })
            .collect();
        Self {
            tenants,
            pace: Pace::default(),
            tenant_of,
            quotas,
            from_ns,
            until_ns,
            loss: LOST,
            sent: 0,
            lost: 0,
        }
    }

    fn measured(&self, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }

    fn tenant(&mut self, stream: usize) -> &mut TenantStats {
        &mut self.tenants[self.tenant_of[stream]]
    }

    /// A request is answered, or has failed.
    fn ended(&self, stream: usize) {
        if let Some(quota) = &self.quotas[stream] {
            quota.ended();
        }
    }

    /// Nanoseconds since measuring began; 0 in the warm-up.
    pub(crate) fn since_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.from_ns)
    }

    /// A request of this many bytes was due or sent at `at_ns`.
    pub(crate) fn offered(&mut self, stream: usize, class: Class, at_ns: u64, bytes: u64) {
        self.sent += 1;
        if self.measured(at_ns) {
            let since_ns = at_ns - self.from_ns;
            let tenant = self.tenant(stream);
            tenant.series.offered(since_ns);
            let class = tenant.class_mut(class);
            class.offered += 1;
            class.bytes_out += bytes;
        }
    }

    /// A request that was due or sent at `start_ns` failed at `now_ns`.
    pub(crate) fn failed(
        &mut self,
        stream: usize,
        class: Class,
        start_ns: u64,
        now_ns: u64,
        text: &str,
    ) {
        self.lost += 1;
        self.ended(stream);
        let (begun, now) = (self.measured(start_ns), self.measured(now_ns));
        let since_ns = self.since_ns(now_ns);
        let tenant = self.tenant(stream);
        if now {
            tenant.series.failed(since_ns);
        }
        if begun {
            tenant.fail(class, text);
        }
    }

    /// Measuring ended, perhaps before its time.
    pub(crate) fn close(&mut self, now_ns: u64) {
        self.until_ns = now_ns.max(self.from_ns);
    }

    /// What was measured.
    pub(crate) fn finish(mut self) -> (Vec<TenantStats>, Pace) {
        let seconds = (self.until_ns - self.from_ns).div_ceil(1_000_000_000) as usize;
        for tenant in &mut self.tenants {
            tenant.series.finish(seconds);
        }
        (self.tenants, self.pace)
    }
}

impl Observer for Recorder {
    fn completed(&mut self, completion: Completion<'_>) {
        let Completion {
            stream,
            class,
            start_ns,
            now_ns,
            reply,
            ..
        } = completion;
        if !reply.error.is_empty() {
            let text = String::from_utf8_lossy(reply.error);
            return self.failed(stream, class, start_ns, now_ns, &text);
        }
        self.ended(stream);
        let (begun, now) = (self.measured(start_ns), self.measured(now_ns));
        if !begun && !now {
            return;
        }
        let since_ns = self.since_ns(now_ns);
        let latency_ns = now_ns.saturating_sub(start_ns);
        if now {
            self.pace.answered(since_ns);
        }
        let tenant = self.tenant(stream);
        if now {
            tenant.series.answered(since_ns, latency_ns);
        }
        let class = tenant.class_mut(class);
        if now {
            class.answered += 1;
            class.bytes_in += reply.bytes;
        }
        if begun {
            class.completed += 1;
            class.late += u64::from(!now);
            class.missed += u64::from(reply.nulls);
            class.latency.get_or_insert_default().record(latency_ns);
        }
    }

    fn lost(&mut self, stream: usize, class: Class, start_ns: u64, now_ns: u64) {
        self.failed(stream, class, start_ns, now_ns, self.loss);
    }
}
