//! A server that is not there, and a client that speaks HTTP by hand.

// Each test program uses its part of this.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use parking_lot::Mutex;
use telemetry::admin::{start, Access, AdminHandle, AdminOptions};
use telemetry::{
    AdminSource, Capacities, CertificateSnapshot, Class, ClusterMove, ClusterNode, ClusterPromise,
    ClusterTenant, ClusterView, Connections, ControlSnapshot, Delay, DeviceOperation,
    DeviceSnapshot, DeviceUse, Explanation, LateTime, Logins, Memory, PartSpent, PrincipalSnapshot,
    PromiseAttainment, PromiseKept, PromiseSnapshot, PromiseStep, PromiseWindow, Registry, Request,
    RequestCost, ServerSnapshot, SlowRequest, StageSnapshot, State, Storage, TenantAtNode,
    TenantDevice, TenantSetting, TenantSnapshot, TenantStage,
};

/// Says what a server might say.
pub struct Fake {
    pub state: Mutex<State>,
}

impl AdminSource for Fake {
    fn state(&self) -> State {
        self.state.lock().clone()
    }

    fn server(&self) -> ServerSnapshot {
        ServerSnapshot {
            version: "0.1.0".into(),
            redis_version: "7.0.15".into(),
            process_id: 7,
            uptime_s: 60,
            cores: 2,
            scheduler: "fair".into(),
            capacities: Capacities {
                requests_per_s: 2e5,
                bytes_in_per_s: 1e9,
                bytes_out_per_s: 1e9,
                cpu_per_s: 2.0,
            },
            listen: vec!["127.0.0.1:6380".into()],
            connections: Connections {
                open: 3,
                max: 10_000,
                ..Connections::default()
            },
            logins: Logins::default(),
            certificates: vec![CertificateSnapshot {
                shown_to: "clients".into(),
                expires_unix_s: 1_900_000_000,
            }],
            memory: Memory::default(),
            largest_turn: telemetry::LargestTurn {
                words: 7,
                bytes: 64,
                steps: 9,
                cpu_ns: 11,
            },
            storage: Storage::default(),
            cpu_user_s: 1.5,
            cpu_system_s: 0.25,
            slowlog_length: 0,
            reloads: 0,
            reloads_refused: 0,
            log_lines_lost: 0,
            device: Some(device()),
            device_doubt: Some("the profile was made elsewhere".into()),
            engine_links: None,
            engine_replicas: None,
            control: ControlSnapshot {
                failures: 1,
                failure: Some("it divided by nothing".into()),
                ..ControlSnapshot::default()
            },
        }
    }

    fn tenants(&self) -> Vec<TenantSnapshot> {
        let tenant = |name: &str, weight| TenantSnapshot {
            name: name.into(),
            weight,
            weight_here: weight,
            stages: vec![TenantStage {
                stage: "request".into(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let web = TenantSnapshot {
            reserve_get_per_s: Some(2_000.0),
            reserve_put_per_s: Some(500.0),
            limit_requests_per_s: Some(50_000.0),
            limit_bytes_per_s: Some(1e8),
            contract_per_s: Some(20_000.0),
            write_error: Some("the disk is full".into()),
            device: Some(of_the_device()),
            promises: vec![promise()],
            ..tenant("web", 6.0)
        };
        vec![web, tenant("batch", 2.0), tenant("idle", 2.0)]
    }

    fn settings(&self, tenant: &str) -> Vec<TenantSetting> {
        let colour = TenantSetting {
            key: "colour".into(),
            text: "red".into(),
            set_at_run_time: true,
            ..TenantSetting::default()
        };
        [colour].into_iter().filter(|_| tenant == "web").collect()
    }

    fn explain(&self, tenant: &str) -> Option<Explanation> {
        let slow = SlowRequest {
            workload: Some("pages".into()),
            parts: late_time().parts,
            delays: late_time().delays,
            ..SlowRequest::default()
        };
        let told = || Explanation {
            lines: vec!["web: weight 6".into()],
            slowest: vec![slow],
        };
        (tenant == "web").then(told)
    }

    fn attainment(&self, tenant: &str) -> Option<Vec<PromiseAttainment>> {
        let told = || PromiseAttainment {
            class: "get".into(),
            hour: vec![PromiseStep::default()],
            days: vec![PromiseStep::default()],
            ..PromiseAttainment::default()
        };
        (tenant == "web").then(|| vec![told()])
    }

    fn newcomers(&self) -> TenantSnapshot {
        TenantSnapshot {
            name: "(newcomers)".into(),
            ..Default::default()
        }
    }

    fn cluster(&self, tenant: Option<&str>) -> Option<ClusterView> {
        let at = String::from("10.0.0.1:7001");
        let (busy, partitions) = (Some(0.25), 3);
        let node = ClusterNode {
            at: at.clone(),
            busy,
            ..Default::default()
        };
        let web = ClusterTenant {
            name: "web".into(),
            nodes: vec![TenantAtNode {
                at: at.clone(),
                partitions,
                busy,
            }],
            promises: vec![ClusterPromise {
                class: "get".into(),
                fronts: 3,
                last: promise().last,
                hour: promise().hour,
                ..Default::default()
            }],
            ..Default::default()
        };
        let known = tenant.is_none_or(|name| name == web.name);
        Some(ClusterView {
            nodes: vec![node],
            tenants: known.then_some(web).into_iter().collect(),
            tenants_total: 1,
            moves: vec![ClusterMove {
                slots: "7-90".into(),
                tenants: vec!["web".into()],
                from: Some(at),
            }],
        })
    }

    fn stages(&self) -> Vec<StageSnapshot> {
        let explanation = Some("waits for its turn".into());
        let web = PrincipalSnapshot {
            name: "web".into(),
            waiting: 1,
            explanation,
            ..Default::default()
        };
        vec![StageSnapshot {
            stage: "request".into(),
            permits: 8,
            principals: vec![web],
            ..Default::default()
        }]
    }
}

fn device() -> DeviceSnapshot {
    DeviceSnapshot {
        floor_vops_per_s: 18e3,
        reservation_scale: 0.9,
        operations: vec![DeviceOperation {
            operation: "read".into(),
            ios: 5,
            vops: 2.5,
            device_s: 0.002,
        }],
        ..DeviceSnapshot::default()
    }
}

fn of_the_device() -> TenantDevice {
    TenantDevice {
        allocated_vops_per_s: 900.0,
        costs: vec![RequestCost {
            request: "put".into(),
            direct: 3.0,
            flush: 0.5,
            ..RequestCost::default()
        }],
        used: vec![DeviceUse {
            class: "put".into(),
            activity: "log".into(),
            ios: 7,
            vops: 21.5,
        }],
        ..TenantDevice::default()
    }
}

/// An admin server on a free port of the loopback interface.
pub fn serve() -> (AdminHandle, Arc<Fake>, Arc<Registry>) {
    serve_with(Access::default(), None)
}

/// The same, that asks this of requests.
pub fn serve_with(
    access: Access,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> (AdminHandle, Arc<Fake>, Arc<Registry>) {
    let fake = Arc::new(Fake {
        state: Mutex::new(State::Ready),
    });
    let registry = Arc::new(Registry::new(2));
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = AdminOptions {
        address,
        access,
        tls,
        registry: Arc::clone(&registry),
        source: fake.clone(),
    };
    (
        start(options).expect("the admin server starts"),
        fake,
        registry,
    )
}

/// A request that took that long.
pub fn request(class: Class, latency_ns: u64) -> Request {
    Request {
        class,
        latency_ns,
        queue_ns: latency_ns / 4,
        disk_ns: latency_ns / 2,
        bytes_in: 40,
        bytes_out: 1_000,
        cpu_ns: 5_000,
        failed: false,
        parts: telemetry::TimeParts(std::array::from_fn(
            |at| if at == 0 { latency_ns } else { 0 },
        )),
    }
}

/// An answer taken apart.
pub struct Answer {
    /// 0: none came.
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// `GET path`.
pub fn get(at: SocketAddr, path: &str) -> Answer {
    exchange(
        at,
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
    )
}

/// Sends the bytes and reads until the other side closes.
pub fn exchange(at: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(at).expect("connect");
    // A refusal may come, and close the way, before everything is sent.
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8(text).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    Answer {
        status,
        head: head.to_string(),
        body: body.to_string(),
    }
}

/// A stream of server-sent events being read.
pub struct Events {
    lines: BufReader<TcpStream>,
    pub head: String,
}

impl Events {
    /// Asks for the stream and reads the head of the answer.
    pub fn open(at: SocketAddr, path: &str) -> Self {
        let mut stream = TcpStream::connect(at).expect("connect");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("ask");
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).expect("a line") > 0, "{head}");
        }
        Self { lines, head }
    }

    /// The data of the next event of that name; empty when the stream has ended.
    pub fn next(&mut self, name: &str) -> String {
        let (mut event, mut line) = (String::new(), Vec::new());
        while self.lines.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
            let text = String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned();
            if let Some(word) = text.strip_prefix("event: ") {
                event = word.trim_end().to_string();
            } else if let Some(data) = text.strip_prefix("data: ") {
                if event == name {
                    return data.trim_end().to_string();
                }
            }
        }
        String::new()
    }
}

/// A p99.9 that is kept, of a workload.
fn promise() -> PromiseSnapshot {
    let kept = PromiseKept {
        windows_met: 359,
        windows_missed: 1,
        windows_without_data: 0,
        requests: 40_000,
        late: 16,
        met_percent: Some(99.72),
        budget_left_percent: Some(60.0),
    };
    PromiseSnapshot {
        workload: Some("pages".into()),
        class: "get".into(),
        percentile: Some(99.9),
        at_most_ms: Some(20.0),
        window_s: 10.0,
        throughput_per_s: Some(1_000.0),
        contract_per_s: Some(1_500.0),
        contract_portion: 0.25,
        throughput_portion: 0.5,
        importance: 80,
        requests: 100_000,
        late: 40,
        last: Some(PromiseWindow {
            outcome: "met".into(),
            latency_ms: Some(12.5),
            sample: 12_000,
            sample_late: 3,
            served_per_s: 1_200.0,
        }),
        hour: kept,
        days: kept,
        late_time: late_time(),
        ..PromiseSnapshot::default()
    }
}

/// Most of it waiting for the disk behind `batch`.
fn late_time() -> LateTime {
    LateTime {
        looked_at: 40,
        parts: vec![PartSpent {
            part: "device".into(),
            mean_ms: 25.0,
            ..PartSpent::default()
        }],
        delays: vec![Delay {
            line: "device".into(),
            behind: "batch".into(),
            mean_ms: 24.0,
        }],
    }
}
