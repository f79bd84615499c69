//! From sections to structs: the one place that knows which key fills which field.

use server::tenants::{Password, Plain};
use settings::tenant::Terms;
use settings::{Section, TimeOrNever};

use super::{admin, fronts, upstream};
use super::{
    Config, Control, Device, Engine, Memory, Overrides, Scheduler, Server, Tenant, Tls, TlsFiles,
};

/// Why what is said of the stage before the device changes nothing.
const NO_STAGE: &str =
    "has no effect: device.stage is false, so there is no stage before the device";

/// The whole configuration; none when a part that has no default is missing or wrong.
pub(super) fn config(root: &Section, overrides: &Overrides) -> Option<Config> {
    // Every part is read before any is found missing, so that all problems are found.
    let server = server(&root.table("server"), overrides);
    let engine = engine(&root.table("engine"), overrides);
    let device = device(&root.table("device"));
    let scheduler = scheduler(&root.table("scheduler"), &device);
    let control = control(&root.table("control"));
    let named = |tenant: &Section, place: usize| match tenant.raw_text("name") {
        Some(name) => format!("tenant {name:?}"),
        None => format!("tenant number {}", place + 1),
    };
    let tenants: Vec<Option<Tenant>> = root.tables("tenant", named).iter().map(tenant).collect();
    let tenants = tenants.into_iter().collect::<Option<_>>()?;
    Some(Config {
        server: server?,
        engine,
        scheduler,
        device,
        control,
        tenants,
    })
}

fn server(section: &Section, overrides: &Overrides) -> Option<Server> {
    let tls_section = section.table("tls");
    let tls = tls(&tls_section);
    let admin_tls = admin::tls(&section.table("admin_tls"), tls.as_ref());
    let cluster_section = section.table("cluster");
    let cluster = fronts::read(&cluster_section, overrides);
    let given = section.get_or_default("listen");
    let admin = section.get_or_default("admin");
    let server = Server {
        listen: if overrides.listen.is_empty() {
            given
        } else {
            overrides.listen.clone()
        },
        admin: overrides.admin.unwrap_or(admin),
        admin_names: section.get("admin_names").unwrap_or_default(),
        admin_token: admin::token(section),
        admin_tls,
        cores: section.get("cores"),
        max_connections: section.get_or_default("max_connections"),
        max_newcomers: section.get_or_default("max_newcomers"),
        operator_connections: section.get_or_default("operator_connections"),
        login_timeout: section.get_or_default::<TimeOrNever>("login_timeout").0,
        connection_rate: section.get_or_default("connection_rate"),
        idle_timeout: section.get_or_default::<TimeOrNever>("idle_timeout").0,
        stalled_timeout: section.get_or_default("stalled_timeout"),
        max_value: section.get_or_default("max_value"),
        max_memory: section.get("max_memory"),
        max_command_memory: section.get_or_default("max_command_memory"),
        max_arguments: section.get_or_default("max_arguments"),
        drain: section.get_or_default("drain"),
        slow_log_over: section.get_or_default::<TimeOrNever>("slow_log_over").0,
        slow_log_length: section.get_or_default("slow_log_length"),
        tls,
        cluster,
    };
    let complete = (server.tls.is_some() || !tls_section.present())
        && (server.cluster.is_some() || !cluster_section.present());
    complete.then_some(server)
}

fn tls(section: &Section) -> Option<Tls> {
    let (listen, cert, key) = (
        section.get("listen"),
        section.get("cert"),
        section.get("key"),
    );
    let client_ca = section.get("client_ca");
    section.present().then_some(Tls {
        listen: listen?,
        files: TlsFiles {
            cert: cert?,
            key: key?,
            client_ca,
        },
    })
}

fn engine(section: &Section, overrides: &Overrides) -> Engine {
    let upstream = upstream::upstream(section, overrides);
    let path = section.get_or_default("path");
    let mut engine = Engine {
        path: overrides.data.clone().unwrap_or(path),
        object_cache: section.get_or_default("object_cache"),
        block_cache: section.get_or_default("block_cache"),
        write_buffers: section.get_or_default("write_buffers"),
        memtable: section.get_or_default("memtable"),
        memory: section
            .word("memory", &Memory::WORDS)
            .unwrap_or(Memory::Allotted),
        pending: section.get_or_default("pending"),
        handlers: section.get_or_default("handlers"),
        committers: section.get_or_default("committers"),
        flush_threads: section.get_or_default("flush_threads"),
        compaction_threads: section.get_or_default("compaction_threads"),
        direct_io: section.get_or_default("direct_io"),
        max_open_files: section.get_or_default("max_open_files"),
        idle_close: section.get_or_default::<TimeOrNever>("idle_close").0,
        upstream,
    };
    if engine.upstream.is_some() {
        upstream::without_storage(&mut engine);
    }
    engine
}

fn scheduler(section: &Section, below: &Device) -> Scheduler {
    if section.gives("device") && !below.scheduled() {
        let advice = "set device.stage = true, or leave it out";
        section.warn("device", NO_STAGE, advice);
    }
    Scheduler {
        request: section.get_or_default("request"),
        device: section.get_or_default("device"),
        requests: section.get_or_default("requests"),
        bandwidth_in: section.get_or_default("bandwidth_in"),
        bandwidth_out: section.get_or_default("bandwidth_out"),
        chunk: section.get_or_default("chunk"),
        seed: section.get("seed"),
    }
}

fn device(section: &Section) -> Device {
    if section.gives("profile") && section.gives("model") {
        let what = "has no effect beside device.profile: I/O goes to the real disk, at the profile's prices";
        section.warn("model", what, "keep one of the two");
    }
    let device = Device {
        stage: section.get_or_default("stage"),
        profile: section.get("profile"),
        model: section.get("model"),
        disks: section.get_or_default("disks"),
        span: section.get("span"),
        learn_prices: section.get_or_default("learn_prices"),
        overbook: section.get_or_default("overbook"),
    };
    if !device.stage && device.scheduled() {
        let what = "false has no effect beside a profile or a model: I/O is scheduled by that";
        section.warn("stage", what, "keep one of the two");
    }
    for key in ["disks", "span"] {
        if device.model.is_none() && section.gives(key) {
            let what = "has no effect without device.model: only emulated disks are placed";
            section.warn(key, what, "leave it out");
        }
    }
    for key in ["learn_prices", "overbook"] {
        if !device.scheduled() && section.gives(key) {
            let advice = "set stage = true, or leave it out";
            section.warn(key, NO_STAGE, advice);
        }
    }
    device
}

fn control(section: &Section) -> Control {
    Control {
        policy: section.get_or_default("policy"),
        interval: section.get_or_default("interval"),
        admission: section.get_or_default("admission"),
    }
}

fn tenant(section: &Section) -> Option<Tenant> {
    let name = name(section);
    let terms = Terms::read(section);
    let (password, plain) = password(section);
    // What may be missing comes last, so that all that is wrong is found.
    Some(Tenant {
        password,
        plain,
        settings: terms.settings,
        name: name?,
    })
}

fn name(section: &Section) -> Option<String> {
    let name: String = section.get("name")?;
    if !valid_name(&name) {
        let what = format!("{name:?} is not a tenant's name");
        section.error(
            "name",
            &what,
            "use 1 to 64 of A-Z a-z 0-9 _ . -, the first not a point",
        );
    }
    Some(name)
}

/// A tenant's password, whichever way it is given.
fn password(section: &Section) -> (Password, Option<Plain>) {
    let hash: Option<String> = section.get("password_hash");
    let plain: Option<String> = section.get("password");
    let hashed = hash.as_deref().map(|hash| {
        Password::from_hash(hash).unwrap_or_else(|why| {
            let advice = "make one with `entremet hash-password`";
            section.error("password_hash", &why, advice);
            Password::None
        })
    });
    match (plain, hashed) {
        (None, hashed) => (hashed.unwrap_or(Password::None), None),
        (Some(_), Some(_)) => {
            let advice = "keep password_hash only";
            section.error("password", "is given as well as password_hash", advice);
            (Password::None, None)
        }
        (Some(plain), None) => (plain_password(section, &plain), Some(Plain::new(&plain))),
    }
}

fn plain_password(section: &Section, plain: &str) -> Password {
    match Password::hash(plain.as_bytes()) {
        Ok(password) => {
            let advice =
                "put password_hash = \"…\" in its place; `entremet hash-password` makes it";
            section.warn(
                "password",
                "is in plain text, for everybody who can read the file",
                advice,
            );
            password
        }
        Err(why) => {
            section.error("password", &why, "use 1 to 512 characters");
            Password::None
        }
    }
}

/// Safe in a file name, a metric label and a command line.
fn valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}
