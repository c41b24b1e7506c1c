//! A `redis-server` of the test's own.

use std::env;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::admin::Admin;
use crate::port::Port;
use crate::tls::Tls;
use crate::{clock, python, spawner, wait};

/// A running `redis-server` on a free port of 127.0.0.1, without persistence.
///
/// It ends when this value is dropped, also by a panic, and when the test process is killed. The
/// program is `redis-server` on the PATH, or what the environment variable `LOCKABLE_REDIS_SERVER`
/// names.
#[derive(Debug)]
pub struct Server {
    settings: ServerBuilder,
    directory: TempDir,
    port: Port,
    /// With TLS, the port that speaks it.
    tls_port: Option<Port>,
    /// `None` between [`kill`](Self::kill) and [`restart`](Self::restart).
    child: Mutex<Option<Child>>,
    is_paused: AtomicBool,
}

impl Server {
    /// Starts a server with nothing special about it, and waits until it answers.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Prepares a server with settings of its own.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Where the server listens for plain connections.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// The URL without a user, a password and a database.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr())
    }

    /// The URL with a user, a password and a database; the user may be empty.
    pub fn url_with(&self, user: &str, password: &str, database: u8) -> String {
        format!("redis://{user}:{password}@{}/{database}", self.addr())
    }

    /// The `rediss://` URL of a server with [`tls`](ServerBuilder::tls).
    pub fn tls_url(&self) -> String {
        assert!(self.is_tls(), "the server was started without TLS");
        format!("rediss://{}", self.service_host())
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls_port.is_some()
    }

    /// Where a server of a group listens for the others and for clients.
    pub(crate) fn service_addr(&self) -> SocketAddr {
        self.tls_port.as_ref().unwrap_or(&self.port).addr()
    }

    /// The same as a URL has it.
    pub(crate) fn service_host(&self) -> String {
        host(self.service_addr(), self.is_tls())
    }

    /// The `unix://` URL of a server with [`unix_socket`](ServerBuilder::unix_socket).
    pub fn unix_url(&self) -> String {
        assert!(self.settings.unix_socket, "the server was started without a socket");
        format!("unix://{}", self.file("redis.sock").display())
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.child().as_ref().expect("the server runs").id()
    }

    /// Connects as a user of the harness, who may do everything whatever the test forbids.
    pub fn admin(&self) -> Admin {
        Admin::connect(&self.admin_url())
    }

    /// What the server has logged since its first start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).expect("the log is there from the start")
    }

    /// Whether it can answer: it was neither killed nor paused.
    pub fn is_running(&self) -> bool {
        self.child().is_some() && !self.is_paused()
    }

    /// Whether it was paused and not resumed.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::SeqCst)
    }

    /// Ends the server by SIGKILL, with everything it stored, and waits for its end.
    pub fn kill(&self) {
        let Some(mut child) = self.child().take() else { return };
        self.is_paused.store(false, Ordering::SeqCst);
        child.kill().and_then(|()| child.wait()).expect("a child can be killed");
    }

    /// Starts the server again on the same ports, with what `SAVE` has stored, mostly nothing, and a Sentinel
    /// with what it knew; ends it before if it runs.
    pub fn restart(&self) {
        self.kill();
        self.boot().unwrap_or_else(|log| panic!("the server did not start again:\n{log}"));
    }

    /// Stops the server's process, and returns when it has stopped.
    ///
    /// The kernel still accepts its connections and buffers what they send.
    pub fn pause(&self) {
        spawner::pause(self.child().as_ref().expect("the server runs"));
        self.is_paused.store(true, Ordering::SeqCst);
    }

    /// Resumes a paused server.
    pub fn resume(&self) {
        spawner::resume(self.child().as_ref().expect("the server runs"));
        self.is_paused.store(false, Ordering::SeqCst);
    }

    /// Sets the clock of a server with [`clock`](ServerBuilder::clock): from now on it is that far behind
    /// the machine's.
    pub fn set_clock_back(&self, behind: Duration) {
        self.set_clock(-1, behind);
    }

    /// The same the other way: from now on it is that far ahead of the machine's.
    pub fn set_clock_forward(&self, ahead: Duration) {
        self.set_clock(1, ahead);
    }

    fn set_clock(&self, sign: i64, difference: Duration) {
        assert!(self.settings.clock, "the server was started without a clock of its own");
        let micros = i64::try_from(difference.as_micros()).expect("a time that a clock can show");
        clock::set(self.directory.path(), sign * micros);
    }

    /// Stops the clock of a server with [`clock`](ServerBuilder::clock): from now on it shows that time since
    /// 1970, until it is set again.
    pub fn stop_clock(&self, at: Duration) {
        assert!(self.settings.clock, "the server was started without a clock of its own");
        let micros = i64::try_from(at.as_micros()).expect("a time that a clock can show");
        clock::stop(self.directory.path(), micros);
    }

    /// Adds a line of the configuration to a server that was not started yet.
    pub(crate) fn configure(&mut self, line: String) {
        self.settings.lines.push(line);
    }

    /// Starts the process and waits until it answers; the error is the log.
    pub(crate) fn boot(&self) -> Result<(), String> {
        let child =
            self.spawn().map_err(|error| format!("{}: {error}", self.settings.program()))?;
        *self.child() = Some(child);
        match wait::poll(START_LIMIT, || self.progress()) {
            Some(Progress::Ready) => Ok(()),
            Some(Progress::Ended) | None => Err(self.log()),
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        let configuration = self.file("redis.conf");
        // A Sentinel has written what it knows into its own.
        if !(self.settings.sentinel && configuration.exists()) {
            fs::write(&configuration, self.configuration())?;
        }
        let log = File::options().create(true).append(true).open(self.log_file())?;
        let mut command = spawner::command(self.settings.program().as_ref());
        command
            .arg(configuration)
            .args(self.settings.sentinel.then_some("--sentinel"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        if self.settings.clock {
            clock::prepare(self.directory.path());
            clock::preload(&mut command, self.directory.path());
        }
        spawner::spawn(command)
    }

    /// Asks for the process id, because another server answers on a port that was taken meanwhile.
    fn progress(&self) -> Option<Progress> {
        let mut child = self.child();
        let child = child.as_mut()?;
        if child.try_wait().is_ok_and(|status| status.is_some()) {
            return Some(Progress::Ended);
        }
        let information = Admin::try_connect(&self.admin_url()).ok()?.info("server");
        let line = format!("process_id:{}", child.id());
        information.lines().any(|found| found == line).then_some(Progress::Ready)
    }

    fn configuration(&self) -> String {
        let mut lines = vec![
            format!("port {}", self.addr().port()),
            format!("dir {}", self.directory.path().display()),
            "bind 127.0.0.1".to_owned(),
            "save \"\"".to_owned(),
            "appendonly no".to_owned(),
            // Otherwise the server lets a replica wait for others to come.
            "repl-diskless-sync-delay 0".to_owned(),
            format!("user {ADMIN} on >{ADMIN} ~* &* +@all"),
        ];
        lines.extend(self.settings.lines.iter().cloned());
        lines.extend(self.tls_port.iter().map(|port| format!("tls-port {}", port.addr().port())));
        lines.extend(self.socket_line());
        lines.join("\n") + "\n"
    }

    fn socket_line(&self) -> Option<String> {
        let socket = self.file("redis.sock");
        self.settings.unix_socket.then(|| format!("unixsocket {}", socket.display()))
    }

    pub(crate) fn admin_url(&self) -> String {
        self.url_with(ADMIN, ADMIN, 0)
    }

    fn log_file(&self) -> PathBuf {
        self.file("redis.log")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A test that panicked must still end its server.
    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The settings of a server that is not running yet.
#[derive(Clone, Debug, Default)]
pub struct ServerBuilder {
    lines: Vec<String>,
    unix_socket: bool,
    sentinel: bool,
    clock: bool,
    program: Program,
}

/// Which program the server is.
#[derive(Clone, Copy, Debug, Default)]
enum Program {
    /// What `LOCKABLE_REDIS_SERVER` names, or `redis-server` on the PATH.
    #[default]
    System,
    /// The same if it has a conditional delete, or else the Valkey of the Python environment.
    Deletes,
}

impl ServerBuilder {
    /// Adds a line of redis.conf: `config("maxmemory", "2mb")`.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.lines.push(format!("{name} {value}"));
        self
    }

    /// Asks the default user for a password, which a replica has too.
    #[must_use]
    pub fn password(self, password: &str) -> Self {
        self.config("requirepass", password).config("masterauth", password)
    }

    /// Adds a user by ACL rules: `user("app", "on >secret ~disLock:* +@all")`.
    #[must_use]
    pub fn user(self, name: &str, rules: &str) -> Self {
        self.config("user", &format!("{name} {rules}"))
    }

    /// Listens on a Unix socket too.
    #[must_use]
    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Is a Sentinel, which watches servers and keeps no keys.
    #[must_use]
    pub fn sentinel(mut self) -> Self {
        self.sentinel = true;
        self
    }

    /// Is a server that deletes a key by its value in one command: Redis from 8.4 on, or Valkey from 9.0 on.
    #[must_use]
    pub fn deletes(mut self) -> Self {
        self.program = Program::Deletes;
        self
    }

    /// Gives the server a clock of its own, for [`Server::set_clock_back`], [`Server::set_clock_forward`] and
    /// [`Server::stop_clock`], where [`clock::can_be_set`].
    #[must_use]
    pub fn clock(mut self) -> Self {
        self.clock = true;
        self
    }

    /// Listens on a second port that speaks TLS with these certificates, and speaks TLS to other servers.
    ///
    /// They must live as long as the server starts and restarts.
    #[must_use]
    pub fn tls(self, tls: &Tls) -> Self {
        let [authority, certificate, key] = [tls.ca_file(), tls.certificate_file(), tls.key_file()]
            .map(|file| file.display().to_string());
        self.config("tls-ca-cert-file", &authority)
            .config("tls-cert-file", &certificate)
            .config("tls-key-file", &key)
            .config("tls-auth-clients", "no")
            .config("tls-replication", "yes")
            .config("tls-cluster", "yes")
    }

    /// Like [`tls`](Self::tls), and asks every client there for a certificate of the same authority.
    #[must_use]
    pub fn mutual_tls(self, tls: &Tls) -> Self {
        self.tls(tls).config("tls-auth-clients", "yes")
    }

    /// Starts the server and waits until it answers.
    ///
    /// A program that is no test may take a port before the server does; then it is another port.
    pub fn start(self) -> Server {
        on_free_ports(|| {
            let server = self.clone().prepare();
            server.boot().map(|()| server)
        })
    }

    fn program(&self) -> String {
        let chosen = env::var("LOCKABLE_REDIS_SERVER");
        match self.program {
            Program::System => chosen.unwrap_or_else(|_| "redis-server".to_owned()),
            Program::Deletes => {
                chosen.ok().filter(|it| deletes(it)).unwrap_or_else(|| python::valkey().to_owned())
            }
        }
    }

    fn is_tls(&self) -> bool {
        self.lines.iter().any(|line| line.starts_with("tls-cert-file "))
    }

    /// Reserves the ports of a server, which is not started yet.
    pub(crate) fn prepare(self) -> Server {
        Server {
            directory: TempDir::with_prefix("lockable-").expect("a directory can be made"),
            port: Port::reserve(),
            tls_port: self.is_tls().then(Port::reserve),
            child: Mutex::new(None),
            is_paused: AtomicBool::new(false),
            settings: self,
        }
    }
}

/// What `start` starts, on other ports if a program that is no test takes one before; the error is the log.
pub(crate) fn on_free_ports<T>(start: impl Fn() -> Result<T, String>) -> T {
    for _ in 0..START_ATTEMPTS {
        match start() {
            Ok(started) => return started,
            Err(log) if log.contains(PORT_TAKEN) => {}
            Err(log) => panic!("the server did not start ({INSTALL_HINT}):\n{log}"),
        }
    }
    panic!("{START_ATTEMPTS} ports that were free were taken before the server started");
}

enum Progress {
    Ready,
    Ended,
}

/// Starts servers side by side; the error is the log of one that did not start.
pub(crate) fn boot_all<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Result<(), String> {
    thread::scope(|scope| {
        let starts = servers.into_iter().map(|server| scope.spawn(|| server.boot()));
        let starts: Vec<_> = starts.collect();
        starts.into_iter().try_for_each(|start| start.join().expect("no start panics"))
    })
}

/// An address as a URL has it; over TLS by the name that certificates have.
pub(crate) fn host(addr: SocketAddr, is_tls: bool) -> String {
    if is_tls { format!("localhost:{}", addr.port()) } else { addr.to_string() }
}

/// Whether a server of that program has `DELEX` or `DELIFEQ`, by what it prints: `Redis server v=8.6.3 sha=…`.
fn deletes(program: &str) -> bool {
    let printed = Command::new(program).arg("--version").output();
    let printed = printed.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    let printed = printed.unwrap_or_default();
    let version = printed.split("v=").nth(1).unwrap_or_default();
    let mut numbers = version.split(['.', ' ']).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    version >= if printed.starts_with("Valkey") { (9, 0) } else { (8, 4) }
}

/// The name and the password of the harness's own user.
pub(crate) const ADMIN: &str = "harness";

/// What the server logs when it finds its port taken.
const PORT_TAKEN: &str = "Address already in use";

const INSTALL_HINT: &str = "`cargo xtask test` installs what is missing";

/// An idle machine needs 20 ms; a busy one gets time.
const START_LIMIT: Duration = Duration::from_secs(20);

const START_ATTEMPTS: usize = 10;
