//! The dashboard over real data: the example `prometheus` on a server, and a Prometheus that scrapes it.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lockable_tests::Server;
use serde_json::Value;

use crate::root;

pub(crate) fn record() -> String {
    let (server, folder) = (Server::start(), tempfile::tempdir().expect("a folder"));
    let (service, prometheus) = (free(), free());
    let _running = [serve(service, &server.url()), scrape(folder.path(), service, prometheus)];
    await_answer(service);
    await_answer(prometheus);
    let start = now();
    thread::sleep(RECORDED);
    panels().iter().map(|panel| recorded(panel, prometheus, start)).collect()
}

/// Ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// `cargo xtask pictures` has built the example.
fn serve(address: SocketAddr, url: &str) -> Running {
    let folder = std::env::current_exe().expect("this program has a path");
    let example = folder.parent().expect("a folder").join("examples/prometheus");
    let mut command = Command::new(example);
    command.arg("serve").env("PORT", address.port().to_string()).env("LOCKABLE_URL", url);
    started(command)
}

fn scrape(folder: &Path, service: SocketAddr, address: SocketAddr) -> Running {
    let settings = format!(
        "global:\n  scrape_interval: {SCRAPED}s\nscrape_configs:\n  - job_name: locks\n    \
         static_configs:\n      - targets: [\"{service}\"]\n"
    );
    let file = folder.join("prometheus.yml");
    fs::write(&file, settings).expect("a file that can be written");
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address={address}"));
    started(command)
}

fn started(mut command: Command) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

fn panels() -> Vec<Value> {
    let board = root().join("examples/services/grafana.json");
    let board = fs::read_to_string(board).expect("a file that can be read");
    let board: Value = serde_json::from_str(&board).expect("JSON");
    let panels = board["panels"].as_array().expect("panels").iter();
    panels.filter(|panel| panel["targets"].is_array()).cloned().collect()
}

fn recorded(panel: &Value, prometheus: SocketAddr, start: u64) -> String {
    let mut data = "panel".to_owned();
    for side in ["x", "y", "w", "h"] {
        write!(data, " {}", panel["gridPos"][side]).expect("memory");
    }
    let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or("short");
    let [kind, title] = [&panel["type"], &panel["title"]].map(|text| text.as_str().unwrap());
    writeln!(data, " {kind} {unit} {title}").expect("memory");
    for target in panel["targets"].as_array().expect("queries") {
        let legend = target["legendFormat"].as_str().unwrap_or_default();
        for series in answer(target["expr"].as_str().expect("a query"), prometheus, start) {
            data += &recorded_series(&series, legend, start);
        }
    }
    data
}

fn recorded_series(series: &Value, legend: &str, start: u64) -> String {
    let mut name = legend.replace("__auto", "");
    for (label, value) in series["metric"].as_object().expect("labels") {
        name = name.replace(&format!("{{{{{label}}}}}"), value.as_str().unwrap_or_default());
    }
    // A lock whose function has no template has no label.
    let name = if name.contains("{{") { "without a label" } else { &name };
    let mut data = format!("series {name}\n");
    for point in series["values"].as_array().expect("points") {
        let value: f64 = point[1].as_str().and_then(|it| it.parse().ok()).expect("a number");
        if value.is_finite() {
            let second =
                point[0].as_f64().expect("a time") - f64::from(u32::try_from(start).unwrap());
            writeln!(data, "{second:.0} {}", rounded(value)).expect("memory");
        }
    }
    data
}

/// Four digits are more than a picture shows.
fn rounded(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The series that a query returns, with what Grafana fills in.
fn answer(query: &str, prometheus: SocketAddr, start: u64) -> Vec<Value> {
    let interval = format!("{}s", 4 * SCRAPED);
    let query = query.replace("$__rate_interval", &interval).replace("$lock", ".*");
    let end = start + RECORDED.as_secs();
    let path = format!(
        "/api/v1/query_range?query={}&start={}&end={end}&step={SCRAPED}",
        percent_encoded(&query),
        start + 4 * SCRAPED
    );
    let reply = get(prometheus, &path).expect("Prometheus answers");
    let reply: Value = serde_json::from_str(&reply).unwrap_or_else(|_| panic!("{reply}"));
    reply["data"]["result"].as_array().unwrap_or_else(|| panic!("{query}: {reply}")).clone()
}

fn percent_encoded(text: &str) -> String {
    let encoded = |byte: u8| format!("%{byte:02X}");
    text.bytes().map(encoded).collect()
}

/// In HTTP/1.0, whose replies are not cut into chunks.
fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut reply = String::new();
    connection.read_to_string(&mut reply)?;
    Ok(reply.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

fn await_answer(address: SocketAddr) {
    let start = Instant::now();
    while get(address, "/metrics").map_or(true, |reply| reply.is_empty()) {
        assert!(start.elapsed() < LIMIT, "{address} does not answer");
        thread::sleep(Duration::from_millis(50));
    }
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// In seconds.
const SCRAPED: u64 = 2;

const RECORDED: Duration = Duration::from_secs(120);

const LIMIT: Duration = Duration::from_secs(60);
