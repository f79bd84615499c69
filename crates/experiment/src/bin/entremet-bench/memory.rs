//! What an idle tenant and an idle connection cost, and that thousands of connections are held.

use std::time::{Duration, Instant};

use experiment::ExperimentError;
use serde_json::json;
use workload::client::control::Control;
use workload::client::Identity;
use workload::WorkloadError;

use crate::rows::{Bound, Row, Rows};
use crate::server::{identity, Entremet, Server, Tenant};
use crate::Setup;

const TENANTS: usize = 1_000;
const CONNECTIONS: usize = 10_000;
const KIB: f64 = 1024.0;
/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long memory may take to come back once tenants are idle.
const SETTLE: Duration = Duration::from_secs(90);

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    if rows.wants("idle tenant, KiB") {
        tenants(setup, rows)?;
    }
    if rows.wants("idle connection, KiB") || rows.wants("connections held") {
        connections(setup, rows)?;
    }
    Ok(())
}

fn start(setup: &Setup, tenants: usize) -> Result<Server, ExperimentError> {
    let tenants: Vec<Tenant> = (0..tenants).map(|i| (format!("tenant{i}"), 1)).collect();
    let cores = vec![setup.server_core];
    Entremet {
        label: "entremet",
        request: "fair",
        cores,
        tenants,
        cache_mib: 0,
    }
    .start(setup)
}

/// Resident memory, bytes.
fn resident(server: &Server) -> f64 {
    server.resident_bytes() as f64
}

/// One put and one get as a tenant, on a connection that is closed again.
fn touch(server: &Server, tenant: usize) -> Result<(), ExperimentError> {
    let identity = identity(&format!("tenant{tenant}"));
    let mut control = Control::connect(server.address, &identity, PATIENCE)?;
    let commands: [&[&[u8]]; 2] = [&[b"SET", b"key", b"value"], &[b"GET", b"key"]];
    for command in commands {
        if let Some(reply) = control.command(command)? {
            let (tenant, command) = (format!("tenant{tenant}"), "SET or GET".into());
            return Err(WorkloadError::Refused {
                tenant,
                command,
                reply,
            }
            .into());
        }
    }
    Ok(())
}

fn tenants(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let one = start(setup, 1)?;
    touch(&one, 0)?;
    let base = resident(&one);
    drop(one);
    let server = start(setup, TENANTS)?;
    let configured = resident(&server);
    for tenant in 0..TENANTS {
        touch(&server, tenant)?;
    }
    let touched = resident(&server);
    let each = |bytes: f64| (bytes - base) / (TENANTS - 1) as f64 / KIB;
    let (begun, mut idle) = (Instant::now(), touched);
    while begun.elapsed() < SETTLE && each(idle) > 64.0 {
        std::thread::sleep(Duration::from_millis(500));
        idle = idle.min(resident(&server));
    }
    let sides = format!(
        "configured only {:.1} KiB, just touched {:.1} KiB, idle for {:.0} s; one tenant alone: \
         {:.1} MiB in all",
        each(configured),
        each(touched),
        begun.elapsed().as_secs_f64(),
        base / KIB / KIB
    );
    let figures = json!({
        "resident_bytes": { "one": base, "configured": configured, "touched": touched, "idle": idle },
    });
    let row = Row::new("idle tenant, KiB", Bound::AtMost(64.0), vec![each(idle)]);
    rows.add(row.sides(sides).figures(figures));
    Ok(())
}

/// Connections that answer, and the memory that each adds.
fn hold(server: &Server, identity: &Identity) -> Result<(f64, f64), ExperimentError> {
    let before = resident(server);
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut control = Control::connect(server.address, identity, PATIENCE)?;
        control.command(&[b"GET", b"key"])?;
        held.push(control);
    }
    let mut alive = 0.0;
    for control in &mut held {
        alive += f64::from(u8::from(matches!(control.command(&[b"PING"]), Ok(None))));
    }
    let each = (resident(server) - before) / CONNECTIONS as f64 / KIB;
    Ok((alive, each))
}

fn connections(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let server = start(setup, 1)?;
    let (alive, each) = hold(&server, &identity("tenant0"))?;
    drop(server);
    let redis = Server::redis(setup.server_core, &[])?;
    let (redis_alive, redis_each) = hold(&redis, &Identity::default())?;
    let sides = format!("entremet {each:.1} KiB; redis {redis_each:.1} KiB");
    let row = Row::new("idle connection, KiB", Bound::AtMost(20.0), vec![each]);
    rows.add(row.sides(sides));
    let sides = format!("redis {redis_alive:.0}");
    let row = Row::new(
        "connections held",
        Bound::AtLeast(CONNECTIONS as f64),
        vec![alive],
    );
    rows.add(row.sides(sides));
    Ok(())
}
