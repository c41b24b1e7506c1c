//! What the guard around a script lets pass, and what it leaves behind.

use lockable_runtime::fencing;
use lockable_tests::{Admin, Server};
use redis::{RedisResult, Value};

use super::{DATA, RECORD, assert_fenced, run, stored, texts, write};

#[test]
fn no_digit_of_a_token_is_lost() {
    let (_server, admin) = prepared();
    let ends = [1, 10, 100, 1_000_000_000_000_000, 1_750_000_000_000_000, 1 << 53, 1 << 63];
    let around = ends.into_iter().flat_map(|number| number - 1..=number + 1);
    let rising: Vec<u64> = around.chain([u64::MAX - 1, u64::MAX]).collect();
    for (&older, newer) in rising.iter().zip(&rising[1..]) {
        write(&admin, older, "older").unwrap();
        write(&admin, newer, "newer").unwrap();
        assert_fenced(write(&admin, older, "late"), older, newer);
        assert_eq!(stored(&admin), texts("newer", newer));
    }
}

#[test]
fn zeros_in_front_change_no_number() {
    let (_server, admin) = prepared();
    admin.set(RECORD, "0042");
    assert_fenced(write(&admin, "00041", "late"), 41, 42);
    write(&admin, "42", "equal").unwrap();
    assert_eq!(stored(&admin), texts("equal", 42));
    write(&admin, "00043", "newer").unwrap();
    assert_eq!(stored(&admin), texts("newer", 43));
}

#[test]
fn what_is_no_token_writes_nothing() {
    let (_server, admin) = prepared();
    for token in ["", " 43", "43 ", "-1", "+43", "1.5", "1e9", "0x2b", "forty", "4\u{664}", "4\n"] {
        let error = write(&admin, token, "wrong").unwrap_err();
        assert_eq!(error.code(), Some("ERR"), "{token:?}: {error}");
        assert!(error.to_string().contains("ARGV[1] a fencing token"), "{token:?}: {error}");
        assert_eq!(stored(&admin), (None, None));
    }
}

#[test]
fn a_script_needs_a_record_and_a_token() {
    let (_server, admin) = prepared();
    let script = fencing::redis_script("return redis.call('SET', 'stock:{tea}', '1')");
    for arguments in [&["0"][..], &["0", "43"], &["1", RECORD]] {
        let error = admin.try_command(&[&["EVAL", &script], arguments].concat()).unwrap_err();
        assert!(error.to_string().contains("KEYS[1] must be a record"), "{error}");
        assert_eq!(stored(&admin), (None, None));
    }
}

#[test]
fn a_record_of_another_type_stays_untouched() {
    let (_server, admin) = prepared();
    for text in ["", "forty", "-1", "1.5", "1e9"] {
        admin.set(RECORD, text);
        let error = write(&admin, 43, "new").unwrap_err();
        assert!(error.to_string().contains(RECORD), "{error}");
        assert_eq!((admin.get(DATA), admin.get(RECORD).as_deref()), (None, Some(text)));
    }
    admin.del(RECORD);
    admin.command::<()>(&["RPUSH", RECORD, "43"]);
    assert_eq!(write(&admin, 43, "new").unwrap_err().code(), Some("WRONGTYPE"));
    assert_eq!((admin.get(DATA), admin.type_of(RECORD).as_str()), (None, "list"));
}

#[test]
fn scripts_index_their_keys_and_arguments_from_one() {
    let (_server, admin) = prepared();
    let body = "return {#KEYS, KEYS[1] or 0, KEYS[2] or 0, #ARGV, ARGV[1] or 0, ARGV[2] or 0}";
    let script = fencing::redis_script(body);
    let call = |words: &[&str]| {
        let reply = admin.command::<Vec<String>>(&[&["EVAL", &script], words].concat());
        reply.join(" ")
    };
    assert_eq!(call(&["3", RECORD, "a", "b", "1", "x", "y"]), "2 a b 2 x y");
    assert_eq!(call(&["1", RECORD, "1", "x"]), "0 0 0 1 x 0");
    assert_eq!(call(&["2", RECORD, "a", "1"]), "1 a 0 0 0 0");
    // More than Lua can pass on as parameters.
    let many = vec!["x"; 20_000];
    assert_eq!(call(&[&["1", RECORD, "1"], &many[..]].concat()), "0 0 0 20000 x x");
}

#[test]
fn a_script_answers_as_it_would_alone() {
    let (_server, admin) = prepared();
    let bodies = [
        "return 7",
        "return redis.call('GET', KEYS[1])",
        "return {1, {'two', false}}",
        "return redis.status_reply('FINE')",
        "return redis.error_reply('SOLD none is left')",
        "local stock = 3\nreturn stock -- the rest",
        "--[[ of\nmany lines ]]\nreturn 'text'",
        "",
        "return record or token or guarded",
        "return redis.call('NO SUCH COMMAND')",
        "return )",
        "\n\nerror('on the third line')",
    ];
    for body in bodies {
        let alone = admin.try_command(&["EVAL", body, "1", DATA, "x"]);
        assert_eq!(answer(run(&admin, body, 43, "x")), answer(alone), "{body}");
    }
}

/// A reply or an error, but for the name that Redis gives to the text of a script.
fn answer(outcome: RedisResult<Value>) -> Result<Value, String> {
    outcome.map_err(|error| {
        let text = error.to_string();
        let is_word = |word: &&str| !(word.len() >= 40 && word.contains(|c: char| c.is_numeric()));
        text.split(' ').filter(is_word).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn a_failing_script_leaves_the_record_and_its_writes() {
    let (_server, admin) = prepared();
    write(&admin, 41, "old").unwrap();
    let body = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('LPUSH', KEYS[1], 'x')";
    assert_eq!(run(&admin, body, 42, "half").unwrap_err().code(), Some("WRONGTYPE"));
    assert_eq!(stored(&admin), texts("half", 42));
    assert_fenced(write(&admin, 41, "late"), 41, 42);
    write(&admin, 42, "whole").unwrap();
    assert_eq!(stored(&admin), texts("whole", 42));
}

#[test]
fn without_memory_for_the_record_no_script_runs() {
    let (_server, admin) = prepared();
    write(&admin, 41, "old").unwrap();
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let outcome = run(&admin, "return redis.call('DEL', KEYS[1])", 42, "");
    assert_eq!(outcome.unwrap_err().code(), Some("OOM"));
    assert_eq!(stored(&admin), texts("old", 41));
}

/// Goal: a first, an equal and a newer token write, and an older one does not, in sequences that no one thought of.
/// Method: numbers of every length, mostly near each other, against a reference of one line.
#[test]
fn any_sequence_of_tokens_matches_the_reference() {
    let (_server, admin) = prepared();
    for seed in 1..=20 {
        admin.flush();
        let mut random = Random(seed);
        let (mut newest, mut data) = (None, None);
        for step in 0..100 {
            let (token, value) = (random.token(newest.unwrap_or(0)), step.to_string());
            let outcome = write(&admin, token, &value);
            if Some(token) >= newest {
                assert_eq!(outcome, Ok(Value::Okay), "{token} after {newest:?}, seed {seed}");
                (newest, data) = (Some(token), Some(value));
            } else {
                assert_fenced(outcome, token, newest.unwrap());
            }
            let record = newest.map(|token: u64| token.to_string());
            assert_eq!(stored(&admin), (data.clone(), record), "seed {seed}, step {step}");
        }
        assert_eq!(admin.pttl(RECORD), -1);
    }
}

/// Numbers that are the same in every run: xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number near the newest one, or of any length; not so high that none could follow.
    fn token(&mut self, newest: u64) -> u64 {
        let near = self.next() % 5;
        match self.next() % 8 {
            0 => self.next() >> (1 + self.next() % 63),
            1..=4 => newest.saturating_add(near),
            _ => newest.saturating_sub(near),
        }
    }
}

fn prepared() -> (Server, Admin) {
    let server = Server::start();
    let admin = server.admin();
    (server, admin)
}
