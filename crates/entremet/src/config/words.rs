//! A configuration said back in plain English, so that one can see what was understood.

use std::fmt::{Display, Write};

use device::BESIDE_DATA;
use policy::words::Words;
use server::tenants::Password;

use super::footprint::{whole, Footprint};
use super::{Config, Memory, Server, Tenant};

/// What the server would do, in words.
pub fn words(config: &Config) -> String {
    let mut text = String::new();
    server(&mut text, &config.server);
    memory(&mut text, config);
    storage(&mut text, config);
    scheduling(&mut text, config);
    tenants(&mut text, config);
    text
}

fn line(text: &mut String, words: impl Display) {
    let _ = writeln!(text, "{words}");
}

fn list<T: ToString>(items: &[T]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" and ")
}

fn server(text: &mut String, server: &Server) {
    if !server.listen.is_empty() {
        line(
            text,
            format_args!("Clients connect to {} without TLS.", list(&server.listen)),
        );
    }
    if let Some(tls) = &server.tls {
        let certificates = match &tls.files.client_ca {
            Some(path) => format!(", with a certificate signed by one of {}", path.display()),
            None => String::new(),
        };
        line(
            text,
            format_args!(
                "Clients connect to {} with TLS{certificates}.",
                list(&tls.listen)
            ),
        );
    }
    admin(text, server);
    let cores = match server.cores {
        None => "All cores of the machine serve clients".to_string(),
        Some(1) => "1 core serves clients".to_string(),
        Some(cores) => format!("{cores} cores serve clients"),
    };
    let idle = match server.idle_timeout {
        None => "none is closed for being idle".to_string(),
        Some(time) => format!("one that asks for nothing for {time} is closed"),
    };
    line(
        text,
        format_args!(
            "{cores}: at most {} connections of tenants, {idle}, one that takes nothing of a large reply for {} is cut off.",
            server.max_connections, server.stalled_timeout
        ),
    );
    seats(text, server);
    line(
        text,
        format_args!(
            "A value may be {} large, a request have {} arguments, a command work with {} of memory; after SIGTERM requests under way get {}.",
            server.max_value, server.max_arguments, server.max_command_memory, server.drain
        ),
    );
    match server.slow_log_over {
        None => line(text, "There is no slow log."),
        Some(over) => {
            let entries = server.slow_log_length;
            line(
                text,
                format_args!(
                    "The slow log keeps each tenant's last {entries} commands longer than {over}."
                ),
            );
        }
    }
}

fn admin(text: &mut String, server: &Server) {
    let scheme = if server.admin_tls.is_some() {
        "https"
    } else {
        "http"
    };
    let token = match server.admin_token {
        Some(_) => ", with a token",
        None => "",
    };
    let names = match server.admin_names.as_slice() {
        [] => String::new(),
        names => format!(", also called {}", list(names)),
    };
    line(
        text,
        format_args!(
            "Metrics, health and JSON are at {scheme}://{}{token}{names}.",
            server.admin
        ),
    );
}

fn memory(text: &mut String, config: &Config) {
    let footprint = Footprint::of(config);
    line(
        text,
        format_args!(
            "The process takes {} of memory at most, of which requests and replies may hold {}.",
            whole(footprint.max),
            whole(footprint.requests)
        ),
    );
}

fn seats(text: &mut String, server: &Server) {
    let login = match server.login_timeout {
        None => "may take as long as it likes".to_string(),
        Some(time) => format!("is closed after {time}"),
    };
    line(
        text,
        format_args!(
            "Beside them: {} that speak for no tenant yet, where one that must log in {login}, and {} for operators; an address connects {} at most.",
            server.max_newcomers, server.operator_connections, server.connection_rate
        ),
    );
}

fn storage(text: &mut String, config: &Config) {
    let engine = &config.engine;
    let direct = if engine.direct_io {
        "around"
    } else {
        "through"
    };
    line(
        text,
        format_args!(
            "\nData is in {}, in RocksDB, {direct} the page cache.",
            engine.path.display()
        ),
    );
    let how = match engine.memory {
        Memory::Allotted => "by allotments",
        Memory::Shared => "the last two for whoever asks most",
    };
    line(
        text,
        format_args!(
            "Memory: {} of objects, {} of file blocks and {} of memtables for all tenants together, {how}; for each tenant up to 4 memtables of {} and {} of uncommitted writes.",
            engine.object_cache, engine.block_cache, engine.write_buffers, engine.memtable, engine.pending
        ),
    );
    line(
        text,
        format_args!(
            "Threads: {} handlers, {} committers, {} for flushes, {} for compaction.",
            engine.handlers, engine.committers, engine.flush_threads, engine.compaction_threads
        ),
    );
    match engine.idle_close {
        None => line(text, "Databases of idle tenants stay open."),
        Some(time) => line(
            text,
            format_args!("A tenant's database is closed when unused for {time}."),
        ),
    }
    disk(text, config);
}

/// By what I/O is scheduled.
fn disk(text: &mut String, config: &Config) {
    let device = &config.device;
    let by = match (&device.profile, &device.model) {
        (Some(profile), _) => format!("by tenant, at the prices of {}", profile.display()),
        (None, Some(model)) => format!("by tenant, as slow as an emulated {model}"),
        (None, None) if device.stage => {
            let kept = config.engine.path.join(BESIDE_DATA);
            format!(
                "by tenant, at the prices of {}; where that is not there, the disk is measured for some seconds first",
                kept.display()
            )
        }
        (None, None) => "as the system takes it: no tenant is kept from slowing the others".into(),
    };
    line(text, format_args!("I/O goes to the disk {by}."));
}

fn scheduling(text: &mut String, config: &Config) {
    let scheduler = &config.scheduler;
    line(text, format_args!("\n{}", scheduler.request.meaning()));
    line(
        text,
        format_args!(
            "One core is reckoned at {}, {} in and {} out; a turn is at most {}.",
            scheduler.requests, scheduler.bandwidth_in, scheduler.bandwidth_out, scheduler.chunk
        ),
    );
}

fn tenants(text: &mut String, config: &Config) {
    line(text, format_args!("\n{}", without_login(config)));
    if config.tenants.is_empty() {
        return;
    }
    let total: f64 = config
        .tenants
        .iter()
        .map(|tenant| tenant.terms.weight)
        .sum();
    line(text, "When all tenants want more than there is, they get:");
    for tenant in &config.tenants {
        one(text, tenant, 100.0 * tenant.terms.weight / total);
    }
}

/// Whom a connection speaks for that does not log in.
fn without_login(config: &Config) -> &'static str {
    let default = config
        .tenants
        .iter()
        .find(|tenant| tenant.name == "default");
    match default {
        _ if config.tenants.is_empty() => {
            "There is one tenant, \"default\", which all connections speak for; without a password it may administer the \
             server.\nIts writes are safe within a second; a power cut can cost the last second's."
        }
        Some(tenant) if tenant.password == Password::None => {
            "A connection that does not log in speaks for \"default\", WHICH IS OPEN: it has no password."
        }
        _ => "Every connection must log in: there is no open \"default\".",
    }
}

fn one(text: &mut String, tenant: &Tenant, percent: f64) {
    let password = match (&tenant.password, tenant.name == "default") {
        (Password::Hashed(_), false) => "with a password",
        (Password::None, false) => "without a password",
        (Password::Hashed(_), true) => "for log-ins that name no tenant, with a password",
        (Password::None, true) => "for connections that do not log in, without a password",
    };
    line(
        text,
        format_args!(
            "  {percent:5.1} %  {} (weight {}), {password}.",
            tenant.name, tenant.terms.weight
        ),
    );
    let mut said = Vec::new();
    if tenant.admin {
        said.push("It may administer the server.".into());
    }
    said.push(tenant.terms.sync.meaning().into());
    promises(&mut said, tenant);
    limits(&mut said, tenant);
    wishes(&mut said, tenant);
    for words in said {
        line(text, format_args!("           {words}"));
    }
}

/// What it gets whatever the others want.
fn promises(said: &mut Vec<String>, tenant: &Tenant) {
    let rates = [
        (tenant.terms.reserve.get, "reads"),
        (tenant.terms.reserve.put, "writes"),
    ];
    let promised: Vec<String> = rates
        .into_iter()
        .filter_map(|(rate, what)| Some(format!("{} {what}", rate?)))
        .collect();
    if !promised.is_empty() {
        said.push(format!(
            "Promised whatever the others want: {} of 1 KiB.",
            list(&promised)
        ));
    }
    match tenant.terms.reserved_permits {
        0 => {}
        1 => said.push("1 handler is kept free for it.".into()),
        permits => said.push(format!("{permits} handlers are kept free for it.")),
    }
    if let Some(contract) = tenant.terms.contract {
        said.push(format!(
            "Promises hold while it offers at most {contract}; beyond, best effort."
        ));
    }
    if let Some(connections) = tenant.max_connections {
        said.push(format!("It may have {connections} connections."));
    }
    if let Some(bytes) = tenant.request_memory {
        said.push(format!("Its requests and replies may hold {bytes}."));
    }
    for (what, bytes) in [
        ("object cache", tenant.terms.cache),
        ("block cache", tenant.terms.block_cache),
        ("write buffers", tenant.terms.write_buffers),
    ] {
        if let Some(bytes) = bytes {
            said.push(format!("Its part of the {what} is {bytes}."));
        }
    }
}

/// What it is held to.
fn limits(said: &mut Vec<String>, tenant: &Tenant) {
    let requests = tenant
        .terms
        .limit
        .requests
        .map(|rate| format!("{rate} requests"));
    let bytes = tenant
        .terms
        .limit
        .bytes
        .map(|rate| format!("{rate} in and out"));
    let limits: Vec<String> = requests.into_iter().chain(bytes).collect();
    if limits.is_empty() {
        return;
    }
    let (burst, wait) = (tenant.terms.limit.burst, tenant.terms.limit.max_wait);
    said.push(format!(
        "Never more than {}; {burst} of that may come at once; a request that would wait",
        list(&limits)
    ));
    said.push(format!("longer than {wait} is answered -THROTTLED."));
}

/// What is recorded and not enforced.
fn wishes(said: &mut Vec<String>, tenant: &Tenant) {
    for slo in &tenant.terms.slos {
        let latency = slo
            .latency
            .map(|(p, time)| format!("{p} % of requests within {time}"));
        let throughput = slo.throughput.map(|rate| format!("{rate} requests"));
        let targets: Vec<String> = latency.into_iter().chain(throughput).collect();
        said.push(format!(
            "Wished for {}, not yet enforced: {}.",
            slo.class,
            list(&targets)
        ));
    }
}
