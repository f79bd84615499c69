//! Checks that need more than one key.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use server::tenants::Password;
use settings::tenant::{Room, Totals, LAG, MEMORIES};
use settings::units::{Bytes, Rate};
use settings::Reader;

use super::tls::{self, TlsProblem};
use super::validity::Validity;
use super::{admin, device, footprint, fronts, upstream, Config, Memory, Server, Tenant};

/// Adds what is wrong between keys to the reader's report.
pub(super) fn check(config: &Config, reader: &Reader) {
    addresses(config, reader);
    tls_files(config, reader);
    data_directory(config, reader);
    if config.engine.upstream.is_none() {
        device::check(config, reader);
    }
    upstream::check(config, reader);
    fronts::check(config, reader);
    names(config, reader);
    promises(config, reader);
    idle_allotments(config, reader);
    footprint::check(config, reader);
    for (place, tenant) in config.tenants.iter().enumerate() {
        one_tenant(tenant, place, &config.server, reader);
    }
    admin::check(config, reader);
    passwords(config, reader);
}

fn addresses(config: &Config, reader: &Reader) {
    let tls = config
        .server
        .tls
        .iter()
        .flat_map(|tls| tls.listen.iter().map(|a| ("server.tls.listen", *a)));
    let plain = config.server.listen.iter().map(|a| ("server.listen", *a));
    let clients: Vec<(&str, SocketAddr)> = plain.chain(tls).collect();
    let mut report = reader.report.borrow_mut();
    if clients.is_empty() {
        let problem = report.error(
            reader.place("server.listen"),
            "server.listen",
            "leaves clients no way in",
        );
        problem.advice("name an address, or add [server.tls]");
    }
    let server = &config.server;
    let nobody = |tls: &super::Tls| tls.listen.is_empty() && server.admin_tls.is_none();
    if server.tls.as_ref().is_some_and(nobody) && fronts::address(server, true).is_none() {
        let key = "server.tls.listen";
        report
            .warn(
                reader.place(key),
                key,
                "is empty: nobody is served with TLS",
            )
            .advice("name an address, or leave out [server.tls]");
    }
    let all: Vec<_> = clients
        .into_iter()
        .chain([("server.admin", config.server.admin)])
        .chain(
            [false, true]
                .map(|tls| fronts::address(&config.server, tls))
                .into_iter()
                .flatten(),
        )
        .collect();
    for (place, (key, address)) in all.iter().enumerate() {
        let earlier = all[..place]
            .iter()
            .find(|(_, other)| conflict(*address, *other));
        if let Some((other_key, other)) = earlier {
            let what = format!("{address} is also taken by {other_key} ({other})");
            report
                .error(reader.place(key), key, what)
                .advice("give each its own port");
        }
    }
}

/// Same port on the same address, or on all addresses of the machine. Port 0 never meets itself.
fn conflict(one: SocketAddr, other: SocketAddr) -> bool {
    let meet = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && meet
}

/// Certificates that expire sooner are warned about.
const EXPIRES_SOON_DAYS: i64 = 14;

fn tls_files(config: &Config, reader: &Reader) {
    let clients = config.server.tls.as_ref().map(|tls| &tls.files);
    let own = |files: &&super::TlsFiles| clients.is_none_or(|clients| clients.cert != files.cert);
    let admin = config.server.admin_tls.as_ref().filter(own);
    for (section, files) in [("server.tls", clients), ("server.admin_tls", admin)] {
        let Some(files) = files else { continue };
        let valid = tls::load(files).map(|loaded| Some((loaded.valid, &files.cert)));
        certificate(section, valid, reader);
    }
    let upstream = config.engine.upstream.as_ref();
    if let Some(engine) = upstream.and_then(|upstream| upstream.tls.as_ref()) {
        let cert = engine.files.own.as_ref().map(|own| &own.cert);
        let valid = tls::trust(&engine.files).map(|trusting| trusting.valid.zip(cert));
        certificate("engine.tls", valid, reader);
    }
}

/// Reports what is wrong with the files of a section, or with the time of its own certificate.
fn certificate(
    section: &str,
    valid: Result<Option<(Validity, &PathBuf)>, Vec<TlsProblem>>,
    reader: &Reader,
) {
    let mut report = reader.report.borrow_mut();
    match valid {
        Ok(None) => {}
        Ok(Some((valid, cert))) => {
            let key = format!("{section}.cert");
            if let Some((what, _)) = valid.doubt(now_s(), EXPIRES_SOON_DAYS) {
                let what = format!("{}: {what}", cert.display());
                report
                    .warn(reader.place(&key), &key, what)
                    .advice("put a new one in its place, and send the server SIGHUP");
            }
        }
        Err(problems) => {
            for problem in problems {
                let key = format!("{section}.{}", problem.key);
                report
                    .error(reader.place(&key), &key, problem.what)
                    .advice(problem.advice);
            }
        }
    }
}

/// Time of day, s since the Unix epoch.
fn now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64)
}

fn data_directory(config: &Config, reader: &Reader) {
    let path = &config.engine.path;
    if path.exists() && !path.is_dir() {
        let what = format!("{} is there but is not a directory", path.display());
        let mut report = reader.report.borrow_mut();
        let problem = report.error(reader.place("engine.path"), "engine.path", what);
        problem.advice("name a directory, or a path that does not exist yet");
    }
}

fn names(config: &Config, reader: &Reader) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, tenant) in config.tenants.iter().enumerate() {
        if let Some(first) = seen.get(tenant.name.as_str()) {
            let key = format!("tenant {:?}, name", tenant.name);
            let mut report = reader.report.borrow_mut();
            let first = reader.place(&format!("tenant[{first}].name"));
            let line = first.map_or(0, |span| report.place(span.start).0);
            let what = format!("is the name of another tenant already, on line {line}");
            let problem = report.error(reader.place(&format!("tenant[{place}].name")), &key, what);
            problem.advice("choose another name, or join the two");
        } else {
            seen.insert(&tenant.name, place);
        }
    }
}

/// What is promised must be there to give.
fn promises(config: &Config, reader: &Reader) {
    let each = config.tenants.iter().map(|tenant| &tenant.settings);
    let engine = &config.engine;
    let cores = config.server.cores_or_all();
    let room = Room {
        cores,
        fronts: 1,
        requests_per_s: config.scheduler.requests.per_s() * cores as f64,
        handlers: (engine.upstream.is_none()).then_some(engine.handlers.into()),
        memories: [
            engine.object_cache,
            engine.block_cache,
            engine.write_buffers,
        ]
        .map(Bytes::get),
    };
    let mut report = reader.report.borrow_mut();
    for problem in each.collect::<Totals>().unkept(&room) {
        let most = largest(&config.tenants, problem.key);
        let span = reader.place(&format!("tenant[{most}].{}", problem.key));
        // Where the file leaves the cores to the machine, this may not be the machine meant; and
        // other fronts may serve a part of it.
        let whole = config
            .server
            .cores
            .filter(|_| config.server.cluster.is_none());
        let added = match (problem.key, whole) {
            ("reserve", None) => report.warn(span, problem.key, problem.what),
            _ => report.error(span, problem.key, problem.what),
        };
        added.advice(problem.advice);
    }
}

/// Which tenant asks for most of what `key` says: the one to point at.
fn largest(tenants: &[Tenant], key: &str) -> usize {
    let asked = |tenant: &Tenant| {
        let settings = &tenant.settings;
        let memory = MEMORIES.iter().find(|memory| memory.key == key);
        match (key, memory) {
            (_, Some(memory)) => (memory.allotment)(settings).unwrap_or(0) as f64,
            ("reserve", None) => settings.promise().requests_per_s(),
            _ => f64::from(settings.reserved_permits),
        }
    };
    (0..tenants.len())
        .max_by(|a, b| asked(&tenants[*a]).total_cmp(&asked(&tenants[*b])))
        .unwrap_or(0)
}

/// Allotments that nobody reads.
fn idle_allotments(config: &Config, reader: &Reader) {
    if config.engine.memory == Memory::Allotted {
        return;
    }
    let mut report = reader.report.borrow_mut();
    for (index, tenant) in config.tenants.iter().enumerate() {
        // The object cache is allotted either way.
        for key in ["block_cache", "write_buffers"] {
            if tenant.settings.asks(key) {
                let span = reader.place(&format!("tenant[{index}].{key}"));
                let what = "has no effect: engine.memory = \"shared\" allots nothing";
                report
                    .warn(span, key, what)
                    .advice("leave it out, or set engine.memory = \"allotted\"");
            }
        }
    }
}

fn one_tenant(tenant: &Tenant, place: usize, server: &Server, reader: &Reader) {
    let mut report = reader.report.borrow_mut();
    let at = |key: &str| reader.place(&format!("tenant[{place}].{key}"));
    let key = |key: &str| format!("tenant {:?}, {key}", tenant.name);
    let settings = &tenant.settings;
    if let Some(connections) = settings
        .connections_max
        .filter(|max| *max > server.max_connections)
    {
        let what = format!(
            "{connections} is more than all tenants may have, server.max_connections = {}",
            server.max_connections
        );
        report
            .warn(at("max_connections"), &key("max_connections"), what)
            .advice("raise server.max_connections or leave it out");
    }
    if let Some(problem) = settings.beyond_its_own() {
        report
            .error(at(problem.key), &key(problem.key), problem.what)
            .advice(problem.advice);
    }
    if let (Some(limit), Some(contract)) = (settings.limit.requests_per_s, settings.contract_per_s)
    {
        if contract > limit {
            let what = format!(
                "{} is more than limit.requests = {} lets through",
                Rate::words(contract),
                Rate::words(limit)
            );
            report
                .warn(at("contract"), &key("contract"), what)
                .advice("raise the limit or lower the contract");
        }
    }
    if at(LAG).is_some() && settings.may_lag_ns().is_none() {
        let what = "has no effect: reads = \"master\"";
        report
            .warn(at(LAG), &key(LAG), what)
            .advice("set reads = \"replica\", or leave it out");
    }
    if at("limit").is_some() && at("limit.requests").is_none() && at("limit.bytes").is_none() {
        let problem = report.error(at("limit"), &key("limit"), "limits nothing");
        problem.advice("add requests = \"5000/s\" or bytes = \"100MB/s\"");
    }
}

/// The first of some names, and how many more there are.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    match names.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

/// Who can reach the server can be anybody without a password.
fn passwords(config: &Config, reader: &Reader) {
    // A refused password is an error of its own and must not read as "no password".
    let none_given = |place: usize| {
        let mut keys = ["password", "password_hash"].into_iter();
        keys.all(|key| reader.place(&format!("tenant[{place}].{key}")).is_none())
    };
    let open = |(place, tenant): &(usize, &Tenant)| {
        tenant.name != "default" && tenant.password == Password::None && none_given(*place)
    };
    let open: Vec<(usize, &Tenant)> = config.tenants.iter().enumerate().filter(open).collect();
    let mut report = reader.report.borrow_mut();
    if let Some((first, _)) = open.first() {
        let open: Vec<&str> = open.iter().map(|(_, tenant)| &*tenant.name).collect();
        let what = format!(
            "no password is set for {}: whoever connects may be that tenant",
            listed(&open)
        );
        let span = reader.place(&format!("tenant[{first}].name"));
        report
            .warn(span, "tenant", what)
            .advice("add password_hash; `entremet hash-password` makes it");
    }
    let plain = config.server.listen.iter().map(|a| ("server.listen", *a));
    let mut plain = plain.chain(fronts::address(&config.server, false));
    if let Some((key, address)) = plain.find(|(_, address)| !address.ip().is_loopback()) {
        let what =
            format!("{address} is open to the network without TLS: passwords travel readable");
        let advice = match key {
            "server.listen" => "add [server.tls], or listen on 127.0.0.1",
            _ => "take tls_listen instead, or listen on 127.0.0.1",
        };
        report.warn(reader.place(key), key, what).advice(advice);
    }
    open_default(config, reader, &mut report);
    operators(config, &mut report);
}

/// Whoever can connect is the tenant that needs no log-in, and without any `[[tenant]]` may
/// administer the server: that is for trying things on one machine.
fn open_default(config: &Config, reader: &Reader, report: &mut settings::problem::Report) {
    if config.tenants.is_empty() {
        let known = |tls: &&super::Tls| tls.files.client_ca.is_none();
        let server = &config.server;
        let tls = server.tls.iter().filter(known).flat_map(|tls| {
            let own = tls.listen.iter().map(|a| ("server.tls.listen", *a));
            own.chain(fronts::address(server, true))
        });
        let plain = server.listen.iter().map(|a| ("server.listen", *a));
        let mut all = plain.chain(fronts::address(server, false)).chain(tls);
        if let Some((key, address)) = all.find(|(_, address)| !address.ip().is_loopback()) {
            let what = format!(
                "{address} is open to the network, and without a [[tenant]] whoever connects may administer the server"
            );
            let advice = "add [[tenant]] with password_hash and admin = true (`entremet hash-password` makes the hash), or listen \
                          on 127.0.0.1";
            report.error(reader.place(key), key, what).advice(advice);
        } else if !report.failed() {
            let what = "there is none: whoever connects is \"default\", needs no password and may administer the server";
            report
                .warn(None, "tenant", what)
                .advice("add [[tenant]] with password_hash before others can connect");
        }
        return;
    }
    let open = |tenant: &Tenant| tenant.name == "default" && tenant.password == Password::None;
    if let Some(place) = config.tenants.iter().position(open) {
        let what = "has no password: a connection that does not log in is this tenant";
        let key = "tenant \"default\"";
        report
            .warn(reader.place(&format!("tenant[{place}].name")), key, what)
            .advice("add password_hash, or take this tenant out, so that all must log in");
    }
}

/// Somebody should be able to administer the server, and not everybody.
fn operators(config: &Config, report: &mut settings::problem::Report) {
    let operators: Vec<&Tenant> = config
        .tenants
        .iter()
        .filter(|tenant| tenant.settings.admin)
        .collect();
    if !config.tenants.is_empty() && operators.is_empty() {
        let what = "no tenant has admin = true: nobody can change tenants or settings at run time, nor shut down";
        report
            .warn(None, "tenant", what)
            .advice("set admin = true for an operator's tenant, unless this file is to rule alone");
    }
    for open in operators
        .iter()
        .filter(|tenant| tenant.password == Password::None)
    {
        let key = format!("tenant {:?}, admin", open.name);
        let what = "is true without a password: whoever connects may administer the server";
        report.warn(None, &key, what).advice("add password_hash");
    }
}
