//! Writes a scrape as one page.

use super::catalogue::{
    Metric, CERTIFICATE, CLASS, PARTS, SERVER, STAGE, TENANT, TENANT_STAGE, THROTTLED, TIMES,
};
use super::{Scrape, TenantScrape};
use crate::class::Class;
use crate::exposition::{Kind, Page};
use crate::model::{StageSnapshot, TenantStage};
use crate::parts::Part;
use crate::recorder::Limit;
use crate::totals::ClassTotals;

/// The Prometheus text of a scrape.
pub fn render(scrape: &Scrape) -> String {
    let mut page = Page::default();
    server(&mut page, scrape);
    certificates(&mut page, scrape);
    for metric in TENANT {
        tenants(&mut page, metric, scrape);
    }
    for metric in CLASS {
        classes(&mut page, metric, scrape);
    }
    throttled(&mut page, scrape);
    parts(&mut page, scrape);
    for metric in TENANT_STAGE {
        tenant_stages(&mut page, metric, scrape);
    }
    for times in TIMES {
        page.family(times.name, Kind::Histogram, times.help);
        for (tenant, class, totals) in active(scrape) {
            let times_of = (times.times)(totals);
            if !times_of.is_empty() {
                page.histogram(
                    times.name,
                    &[("tenant", tenant), ("class", class.name())],
                    times_of,
                );
            }
        }
    }
    for metric in STAGE {
        stages(&mut page, metric, scrape);
    }
    super::promise::write(&mut page, scrape);
    super::device::write(&mut page, scrape);
    page.finish()
}

fn server(page: &mut Page, scrape: &Scrape) {
    page.family(
        "redis_instance_info",
        Kind::Gauge,
        "Always 1; the labels say what runs.",
    );
    let server = &scrape.server;
    let labels = [
        ("redis_version", server.redis_version.as_str()),
        ("entremet_version", server.version.as_str()),
        ("redis_mode", "standalone"),
        ("role", "master"),
        ("scheduler", server.scheduler.as_str()),
    ];
    page.sample("redis_instance_info", &labels, 1.0);
    for metric in SERVER {
        page.family(metric.name, metric.kind, metric.help);
        let labels: &[_] = if metric.name == "redis_db_keys" {
            &[("db", "db0")]
        } else {
            &[]
        };
        page.sample(metric.name, labels, (metric.value)(scrape));
    }
}

fn certificates(page: &mut Page, scrape: &Scrape) {
    let (name, help) = CERTIFICATE;
    page.family(name, Kind::Gauge, help);
    for certificate in &scrape.server.certificates {
        let labels = [("shown_to", certificate.shown_to.as_str())];
        page.sample(name, &labels, certificate.expires_unix_s as f64);
    }
}

fn tenants(page: &mut Page, metric: &Metric<TenantScrape>, scrape: &Scrape) {
    page.family(metric.name, metric.kind, metric.help);
    for (name, tenant) in &scrape.tenants {
        page.sample(metric.name, &[("tenant", name)], (metric.value)(tenant));
    }
}

fn classes(page: &mut Page, metric: &Metric<ClassTotals>, scrape: &Scrape) {
    page.family(metric.name, metric.kind, metric.help);
    for (tenant, class, totals) in active(scrape) {
        let labels = [("tenant", tenant), ("class", class.name())];
        page.sample(metric.name, &labels, (metric.value)(totals));
    }
}

fn throttled(page: &mut Page, scrape: &Scrape) {
    let (name, help) = THROTTLED;
    page.family(name, Kind::Counter, help);
    for (tenant, class, totals) in active(scrape) {
        for (limit, &count) in Limit::ALL.iter().zip(&totals.throttled) {
            let labels = [
                ("tenant", tenant),
                ("class", class.name()),
                ("limit", limit.name()),
            ];
            page.sample(name, &labels, count as f64);
        }
    }
}

/// Parts that took no time are left out: most tenants have few.
fn parts(page: &mut Page, scrape: &Scrape) {
    let (name, help) = PARTS;
    page.family(name, Kind::Counter, help);
    for (tenant, class, totals) in active(scrape) {
        for part in Part::ALL {
            let labels = [
                ("tenant", tenant),
                ("class", class.name()),
                ("part", part.words().name),
            ];
            if totals.parts[part] > 0 {
                page.sample(name, &labels, totals.parts[part] as f64 / 1e9);
            }
        }
    }
}

fn tenant_stages(page: &mut Page, metric: &Metric<TenantStage>, scrape: &Scrape) {
    page.family(metric.name, metric.kind, metric.help);
    for (tenant, scraped) in &scrape.tenants {
        for stage in &scraped.gauges.stages {
            let labels = [("tenant", tenant.as_str()), ("stage", stage.stage.as_str())];
            page.sample(metric.name, &labels, (metric.value)(stage));
        }
    }
}

fn stages(page: &mut Page, metric: &Metric<StageSnapshot>, scrape: &Scrape) {
    page.family(metric.name, metric.kind, metric.help);
    for stage in &scrape.stages {
        let labels = [
            ("stage", stage.stage.as_str()),
            ("core", &stage.core.to_string()),
        ];
        page.sample(metric.name, &labels, (metric.value)(stage));
    }
}

fn active(scrape: &Scrape) -> impl Iterator<Item = (&str, Class, &ClassTotals)> {
    scrape.tenants.iter().flat_map(|(name, tenant)| {
        tenant
            .totals
            .active()
            .map(move |(class, totals)| (name.as_str(), class, totals))
    })
}
