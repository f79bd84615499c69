//! A configuration said back in plain English, so that one can see what was understood.

use std::fmt::{Display, Write};

use device::BESIDE_DATA;
use policy::words::Words;
use server::tenants::Password;

use super::footprint::{whole, Footprint};
use super::upstream::{OF_CLUSTERS, OF_STORAGE};
use super::{Cluster, Config, EngineTls, Memory, Server, Tenant, Upstream};

/// What the server would do, in words.
pub fn words(config: &Config) -> String {
    let mut text = String::new();
    server(&mut text, &config.server);
    memory(&mut text, config);
    match &config.engine.upstream {
        None => storage(&mut text, config),
        Some(upstream) => before(&mut text, upstream, config.server.cluster.as_ref()),
    }
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
    if let Some(tls) = server.tls.as_ref().filter(|tls| !tls.listen.is_empty()) {
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
        Some(time) => format!("one that sends nothing for {time} is closed"),
    };
    line(
        text,
        format_args!(
            "{cores}. Tenants have at most {} connections together; {idle}. A client that reads nothing of a large reply for {} is closed.",
            server.max_connections, server.stalled_timeout
        ),
    );
    seats(text, server);
    line(
        text,
        format_args!(
            "A value may have {} and a request {} arguments. A command may use {} of memory. After SIGTERM requests under way get {} to finish.",
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
            "Metrics, health checks and the JSON API are at {scheme}://{}{token}{names}.",
            server.admin
        ),
    );
}

fn memory(text: &mut String, config: &Config) {
    let footprint = Footprint::of(config);
    line(
        text,
        format_args!(
            "The process uses at most {} of memory. Requests and replies may hold {} of that.",
            whole(footprint.max),
            whole(footprint.requests)
        ),
    );
}

fn seats(text: &mut String, server: &Server) {
    let login = match server.login_timeout {
        None => "they may take as long as they like".to_string(),
        Some(time) => format!("they are closed after {time}"),
    };
    line(
        text,
        format_args!(
            "Besides, {} connections may wait to log in (where they must, {login}), and operators have {} more. One address may connect at most {}.",
            server.max_newcomers, server.operator_connections, server.connection_rate
        ),
    );
}

fn storage(text: &mut String, config: &Config) {
    let engine = &config.engine;
    let direct = if engine.direct_io {
        "bypass"
    } else {
        "go through"
    };
    line(
        text,
        format_args!(
            "\nData is in {}, in RocksDB, whose files {direct} the page cache.",
            engine.path.display()
        ),
    );
    let how = match engine.memory {
        Memory::Allotted => "divided by allotment",
        Memory::Shared => "the last two for whoever asks for most",
    };
    line(
        text,
        format_args!(
            "Memory: {} for objects, {} for file blocks and {} for memtables of all tenants together, {how}. A tenant has at most 4 memtables of {} and {} of uncommitted writes.",
            engine.object_cache, engine.block_cache, engine.write_buffers, engine.memtable, engine.pending
        ),
    );
    line(
        text,
        format_args!(
            "Threads: {} handlers, {} committers, {} for flushes, {} for compactions.",
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

/// Before which engine it stands.
fn before(text: &mut String, upstream: &Upstream, fronts: Option<&Cluster>) {
    let user = match (&upstream.url.user, &upstream.url.password) {
        (Some(user), _) => format!(" as {user}"),
        (None, Some(_)) => " with a password".into(),
        (None, None) => String::new(),
    };
    line(
        text,
        format_args!(
            "\nData is kept by the {} at {}, which this server logs in to{user}. When data is safe is that engine's setting.",
            if upstream.url.cluster { "cluster" } else { "engine" },
            upstream.url.addresses.join(", ")
        ),
    );
    if let Some(tls) = &upstream.tls {
        by_tls(text, tls);
    }
    if upstream.url.cluster {
        one_of_several(text, fronts);
        return line(text, "Each tenant's keys begin with {@NAME} there, or, if it has several partitions, with {@NAME/NUMBER}: a number for each. The cluster copies to replicas after it has answered: a node that is lost may take its last writes with it.");
    }
    line(
        text,
        match &upstream.unmarked {
            None => "Each tenant's keys begin with {@NAME} there. Keys without such a mark are nobody's.".into(),
            Some(name) => format!("Each tenant's keys begin with {{@NAME}} there, but for those of {name}: it has the keys without a mark."),
        },
    );
}

/// How TLS is spoken to it.
fn by_tls(text: &mut String, tls: &EngineTls) {
    let whose = match &tls.name {
        Some(name) => format!("{}", name.to_str()),
        None => "the host by which it is reached".into(),
    };
    let shown = match &tls.files.own {
        Some(own) => format!(" This server shows it {}.", own.cert.display()),
        None => String::new(),
    };
    line(
        text,
        format_args!(
            "It is reached by TLS only, and must have a certificate of {whose} that one of {} has signed.{shown}",
            tls.files.ca.display()
        ),
    );
}

/// How it is one of several fronts.
fn one_of_several(text: &mut String, fronts: Option<&Cluster>) {
    let Some(fronts) = fronts else {
        return line(
            text,
            "Clients see this server alone, also those that know of clusters.",
        );
    };
    let at = [(false, ""), (true, " with TLS")].map(|(tls, how)| {
        let listen = (*fronts.listen.of(tls))?;
        let told = match fronts.options.announce.of(tls) {
            Some(place) => format!(" (they are told {place})"),
            None => String::new(),
        };
        Some(format!("{listen}{how}{told}"))
    });
    let at: Vec<String> = at.into_iter().flatten().collect();
    let node = match &fronts.options.node {
        Some(node) => format!("the node {node}"),
        None => "the only node of the cluster on this host, if there is one".into(),
    };
    line(
        text,
        format_args!(
            "It is one of several fronts. Clients that know of clusters connect to {} for what {node} has, and to the other fronts for the rest.",
            list(&at)
        ),
    );
    if !fronts.options.divide_weights {
        line(
            text,
            "Each front goes by the whole weight of a tenant, wherever else that is served.",
        );
    }
}

/// By what I/O is scheduled.
fn disk(text: &mut String, config: &Config) {
    let device = &config.device;
    let by = match (&device.profile, &device.model) {
        (Some(profile), _) => format!("by tenant, at the prices of {}", profile.display()),
        (None, Some(model)) => {
            let disks = match device.disks {
                1 => format!("an emulated {model}"),
                disks => format!("{disks} emulated disks ({model})"),
            };
            format!("by tenant, as slow as {disks}")
        }
        (None, None) if device.stage => {
            let kept = config.engine.path.join(BESIDE_DATA);
            format!(
                "by tenant, at the prices of {}. If that file is missing, the server first measures the disk for some seconds",
                kept.display()
            )
        }
        (None, None) => "as it comes: one tenant can slow down the others".into(),
    };
    line(text, format_args!("I/O goes to the disk {by}."));
}

fn scheduling(text: &mut String, config: &Config) {
    let scheduler = &config.scheduler;
    line(text, format_args!("\n{}", scheduler.request.meaning()));
    line(
        text,
        format_args!(
            "One core is taken to serve requests at {}, to read at {} and to send at {}. A turn is at most {}.",
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
        .map(|tenant| tenant.settings.weight)
        .sum();
    line(text, "When all tenants want more than there is, they get:");
    for tenant in &config.tenants {
        let unsaid = match &config.engine.upstream {
            None => OF_CLUSTERS.to_vec(),
            Some(engine) if engine.url.cluster => OF_STORAGE.to_vec(),
            Some(_) => [&OF_STORAGE[..], &OF_CLUSTERS].concat(),
        };
        one(
            text,
            tenant,
            100.0 * tenant.settings.weight / total,
            &unsaid,
        );
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
            "There is one tenant, \"default\", for all connections. It has no password and may administer the server.\nIts writes are safe within a second; a power cut can cost the last second's."
        }
        Some(tenant) if tenant.password == Password::None => {
            "A connection that does not log in speaks for \"default\", WHICH IS OPEN: it has no password."
        }
        _ => "Every connection must log in: there is no open \"default\".",
    }
}

fn one(text: &mut String, tenant: &Tenant, percent: f64, unsaid: &[&str]) {
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
            tenant.name, tenant.settings.weight
        ),
    );
    for words in tenant.settings.sentences_but(unsaid) {
        line(text, format_args!("           {words}"));
    }
}
