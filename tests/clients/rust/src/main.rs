//! The `redis` crate's part of the common suite. The contract of a client program is in
//! ../README.md.

mod cluster;
mod typed;

use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};
use redis::{IntoConnectionInfo, RedisError, Value};
use serde_json::{json, Value as Json};

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Where the server is, and who asks it, with any password.
fn address(password: &str) -> Result<ConnectionInfo, RedisError> {
    let protocol = match setting("SUITE_PROTOCOL").as_str() {
        "3" => ProtocolVersion::RESP3,
        _ => ProtocolVersion::RESP2,
    };
    let port = setting("SUITE_PORT").parse().expect("a port");
    let session = RedisConnectionInfo::default()
        .set_username(setting("SUITE_USER"))
        .set_password(password)
        .set_protocol(protocol);
    let address = ConnectionAddr::Tcp("127.0.0.1".into(), port);
    Ok(address.into_connection_info()?.set_redis_settings(session))
}

/// Opens a connection as the suite's tenant, with any password.
fn connect(password: &str) -> Result<Connection, RedisError> {
    Client::open(address(password)?)?.get_connection()
}

/// The code points of the suite, all below 256, as the bytes that they stand for.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|point| point as u32 as u8).collect()
}

fn argument(arg: &Json) -> Vec<u8> {
    if let Some(text) = arg.as_str() {
        return latin1(text);
    }
    let big = arg["repeat"].as_array().expect("text and times");
    let times = big[1].as_u64().expect("a count") as usize;
    latin1(big[0].as_str().expect("text")).repeat(times)
}

fn command(step: &Json) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    for arg in step[0].as_array().expect("a command") {
        command.arg(argument(arg));
    }
    command
}

fn adler32(data: &[u8]) -> u32 {
    let (mut low, mut high) = (1u32, 0u32);
    for byte in data {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    high * 65_536 + low
}

fn tell_bytes(data: &[u8]) -> Json {
    if data.len() > 4096 {
        return json!({"length": data.len(), "adler": adler32(data)});
    }
    json!(data
        .iter()
        .map(|byte| char::from(*byte))
        .collect::<String>())
}

fn tell_error(error: &RedisError) -> Json {
    let code = error.code().unwrap_or_default();
    json!({"error": format!("{code} {}", error.detail().unwrap_or_default())})
}

/// A reply as the JSON that every client program prints.
fn tell(reply: &Value) -> Json {
    match reply {
        Value::Nil => Json::Null,
        Value::Okay => json!("OK"),
        Value::Int(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::Boolean(truth) => json!(truth),
        Value::BulkString(data) => tell_bytes(data),
        Value::SimpleString(text) => json!(text),
        Value::VerbatimString { text, .. } => tell_bytes(text.as_bytes()),
        Value::Array(items) | Value::Set(items) => items.iter().map(tell).collect(),
        Value::Map(pairs) => {
            let pairs: Vec<Json> = pairs
                .iter()
                .map(|(key, value)| json!([tell(key), tell(value)]))
                .collect();
            json!({ "map": pairs })
        }
        Value::ServerError(error) => tell_error(&RedisError::from(error.clone())),
        other => json!(format!("{other:?}")),
    }
}

fn told(reply: Result<Value, RedisError>) -> Json {
    match reply {
        Ok(value) => tell(&value),
        Err(error) => tell_error(&error),
    }
}

fn run_case(connection: &mut Connection, case: &Json) -> Vec<Json> {
    let steps = case["steps"].as_array().expect("steps");
    if case.get("pipeline").is_none() {
        return steps
            .iter()
            .map(|step| told(command(step).query(connection)))
            .collect();
    }
    let mut packed = Vec::new();
    for step in steps {
        packed.extend(command(step).get_packed_command());
    }
    use redis::ConnectionLike;
    let replies = connection.req_packed_commands(&packed, 0, steps.len());
    replies.expect("a reply to each").iter().map(tell).collect()
}

fn main() {
    if std::env::var("SUITE_STOP").is_ok() {
        cluster::run();
        return;
    }
    let text = std::fs::read_to_string(setting("SUITE_FILE")).expect("the suite");
    let suite: Json = serde_json::from_str(&text).expect("JSON");
    let password = setting("SUITE_PASSWORD");
    let mut connection = connect(&password).expect("a connection");
    for case in suite.as_array().expect("cases") {
        redis::cmd("FLUSHDB")
            .exec(&mut connection)
            .expect("FLUSHDB");
        let replies = run_case(&mut connection, case);
        println!("{}", json!({"case": case["name"], "replies": replies}));
    }
    for (name, check) in typed::CHECKS {
        let problem = check(&mut connection).err().unwrap_or_default();
        println!("{}", json!({"case": name, "problem": problem}));
    }
}
