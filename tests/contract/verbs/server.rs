//! The server that the scripts run in, past the verbs. Its clock stands still.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use lockable_tests::{Admin, Server, wait};

use super::messages::{END, Messages};

pub(super) struct StoppedServer {
    server: Server,
    admin: Admin,
    /// What its clock shows: whole milliseconds since 1970.
    now: Duration,
    /// By how many microseconds it may show more. Valkey, from 9.1 on, reads the clock once a millisecond and
    /// adds what has passed since on another clock, which does not stop.
    blur: u64,
}

/// The time of a step on the server's clock, since 1970.
#[derive(Clone, Copy)]
pub(super) struct Now {
    pub(super) millis: u64,
    pub(super) micros: u64,
    /// A script may have read a later time, by this much at most.
    pub(super) blur: u64,
}

/// What is under each name: for how long, as a server encodes it, and the text or the list.
pub(super) type Found = HashMap<String, (i64, Vec<String>)>;

impl StoppedServer {
    pub(super) fn start() -> Self {
        let server = Server::builder().clock().start();
        let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = Duration::from_secs(today.as_secs());
        server.stop_clock(now);
        let mut this = Self { admin: server.admin(), server, now, blur: 0 };
        this.settle();
        // Enough to see one that runs.
        if (0..20).any(|_| this.time() != now) {
            this.blur = 999;
        }
        this
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    pub(super) fn now(&self) -> Now {
        let [millis, micros] = [self.now.as_millis(), self.now.as_micros()];
        let [millis, micros] = [millis, micros].map(|time| time.try_into().unwrap());
        Now { millis, micros, blur: self.blur }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.server.stop_clock(self.now);
        if self.blur > 0 {
            self.settle();
        }
    }

    /// Returns when the server shows the time that was set.
    fn settle(&self) {
        wait::until(wait::HANG, || self.time().as_millis() == self.now.as_millis());
    }

    fn time(&self) -> Duration {
        let (seconds, micros) = self.admin.command(&["TIME"]);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    }

    /// By the server's own words, not by those of a verb; and the messages up to now.
    pub(super) fn look(&self, messages: &mut Messages) -> (Found, Vec<String>) {
        // As one text: the client takes long to parse anything else, unless it is optimised.
        const LOOK: &str = r"
            local all = {}
            for n, name in ipairs(redis.call('KEYS', '*')) do
                local kind, texts = redis.call('TYPE', name).ok, {}
                if kind == 'string' then texts = {redis.call('GET', name)}
                elseif kind == 'list' then texts = redis.call('LRANGE', name, 0, -1) end
                table.insert(texts, 1, redis.call('PTTL', name))
                table.insert(texts, 1, name)
                all[n] = table.concat(texts, '\30')
            end
            redis.call('PUBLISH', ARGV[1], '')
            return table.concat(all, '\31')";
        let all: String = self.admin.command(&["EVAL", LOOK, "0", END]);
        let found = all.split_terminator('\u{1f}').map(|name| {
            let mut texts = name.split('\u{1e}').map(str::to_owned);
            let (name, life) = (texts.next().unwrap(), texts.next().unwrap().parse().unwrap());
            (name, (life, texts.collect()))
        });
        (found.collect(), messages.of_step())
    }

    pub(super) fn set_life(&self, key: &str, millis: u64) {
        self.admin.command::<()>(&["PEXPIRE", key, &millis.to_string()]);
    }

    pub(super) fn put(&self, key: &str, text: &str, life: Option<Duration>) {
        self.admin.set(key, text);
        if let Some(life) = life {
            self.set_life(key, life.as_millis().try_into().unwrap());
        }
    }

    /// Another text for as long as the one before.
    pub(super) fn replace(&self, key: &str, text: &str) {
        self.admin.command::<()>(&["SET", key, text, "KEEPTTL"]);
    }

    pub(super) fn delete(&self, key: &str) {
        self.admin.del(key);
    }

    pub(super) fn flush(&self) {
        self.admin.flush();
    }

    /// The fence counter is a minute ahead of the clock, if it is there.
    pub(super) fn count_ahead(&self, fence: &str) {
        let ahead = (self.now().micros + 60_000_000).to_string();
        self.admin.try_command(&["SET", fence, &ahead, "XX", "KEEPTTL"]).unwrap();
    }
}
