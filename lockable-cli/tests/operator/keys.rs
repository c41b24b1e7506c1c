//! One key, however it is written: by the attribute, by `lock_key!`, and by the program as the guide has it.

use std::path::Path;
use std::process::Command;

use lockable_runtime::{LockError, LockErrorKind, Locker, distributed_lock, lock_key};
use lockable_tests::Server;

use super::names::text;
use crate::program::{Running, outcome, with};

/// What a template escapes, and what a shell or a parser of arguments may take for something else.
const VALUES: [&str; 22] = [
    "plain-7",
    "a b:c",
    "arn:aws:s3:::bucket/x",
    "03:00",
    "::1",
    "50%",
    "%41",
    "{",
    "}",
    "{x}",
    "{}",
    "a\nb",
    "a\n",
    " ",
    "\t",
    "caf\u{e9}",
    "cafe\u{301}",
    "\u{65e5}\u{672c}",
    "*",
    "-x",
    "--json",
    "'\"$(x)\\",
];

/// Runs a body under the lock of a value, as a service does.
#[distributed_lock(key = "file:{path}", locker = locks, expire = "5m")]
async fn under<T>(
    locks: &Locker,
    path: &str,
    body: impl Future<Output = T>,
) -> Result<T, LockError> {
    Ok(body.await)
}

/// The script of the guide, around another command than its own.
fn guide(url: &str, path: &str, command: &str) -> Command {
    let page = text("lockable-runtime/guide/shell_script.md");
    let (_, block) = page.split_once("```sh\nkey=").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let script = format!("key={}", block.replace("./convert \"$path\"", command));
    assert!(script.contains(command), "{script}");
    let folder = Path::new(env!("CARGO_BIN_EXE_lockable")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("LOCKABLE_URL", url).env("path", path);
    shell.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
    shell
}

/// Whether the program finds the lock of a value busy, and runs nothing.
fn is_busy(server: &Server, path: &str) -> bool {
    let (code, said, _) = outcome(&mut guide(&server.url(), path, "echo ran"));
    (code, said.as_str()) == (75, "")
}

#[tokio::test]
async fn each_way_to_write_a_key_excludes_the_others() {
    let server = Server::start();
    let locks = Locker::connect(&server.url()).await.unwrap();
    for path in VALUES {
        let key = lock_key!("file:{path}").unwrap();
        // In a task of its own, so that it is another caller than a body around it.
        let is_locked = async || {
            let tried = tokio::spawn(locks.lock(&key).try_acquire()).await.unwrap();
            tried.is_err_and(|error| error.is_busy())
        };
        let others = async { (is_locked().await, is_busy(&server, path)) };
        assert_eq!(under(&locks, path, others).await.unwrap(), (true, true), "{path:?}");

        let guard = locks.lock(&key).acquire().await.unwrap();
        let error = under(&locks, path, async {}).await.unwrap_err();
        assert!(error.is_busy() && is_busy(&server, path), "{path:?}: {error}");
        guard.release().await.unwrap();

        let running = Running::of(guide(&server.url(), path, "sh -c 'echo $$; read line'"), 1);
        let error = under(&locks, path, async {}).await.unwrap_err();
        assert!(error.is_busy() && is_locked().await, "{path:?}: {error}");
        assert_eq!(with(&server.url(), &["show", key.as_str()]).0, 0, "{path:?}");
        running.end();
    }
}

#[tokio::test]
async fn an_empty_value_makes_no_key_in_any_way() {
    let (server, path) = (Server::start(), "");
    let locks = Locker::connect(&server.url()).await.unwrap();
    let refused = under(&locks, path, async {}).await.unwrap_err();
    assert_eq!(refused.kind(), LockErrorKind::InvalidKey);
    assert_eq!(lock_key!("file:{path}").unwrap_err().kind(), LockErrorKind::InvalidKey);
    let (code, said, why) = outcome(&mut guide(&server.url(), path, "echo ran"));
    assert!((code, said.as_str()) == (2, "") && why.contains("`{path}` is empty"), "{why}");
}

/// A script that does not look at the outcome passes an empty key on.
#[test]
fn no_command_takes_an_empty_key() {
    let server = Server::start();
    for command in [
        "run --key KEY -- true",
        "show KEY",
        "wait KEY",
        "release KEY",
        "pause KEY --for 1h",
        "resume KEY",
    ] {
        let words: Vec<_> =
            command.split(' ').map(|word| if word == "KEY" { "" } else { word }).collect();
        let (code, said, why) = with(&server.url(), &words);
        assert!(
            (code, said.as_str()) == (2, "") && why.contains("the key is empty"),
            "{command}: {why}"
        );
    }
}

#[test]
fn a_template_is_rendered_as_the_library_does() {
    let (a, b, c) = ("x-y_z:1", "2-3", "4");
    for (template, values, key) in [
        ("{a}", &[a][..], lock_key!("{a}")),
        ("{}", &[a], lock_key!("{}", a)),
        ("{a}-{b}", &[a, b], lock_key!("{a}-{b}")),
        ("{a}-{}", &[a, b], lock_key!("{a}-{}", b)),
        ("{a}:{b}-tail", &[a, b], lock_key!("{a}:{b}-tail")),
        ("{a}-{b}/{a}_{c}", &[a, b, c], lock_key!("{a}-{b}/{a}_{c}")),
        ("{{{a}}}:{b}", &[a, b], lock_key!("{{{a}}}:{b}")),
        ("{{user}}:{a}", &[a], lock_key!("{{user}}:{a}")),
        ("nightly", &[], lock_key!("nightly")),
    ] {
        let words = [&["key", template, "--"], values].concat();
        let (code, said, why) = with("", &words);
        assert_eq!((code, said), (0, format!("{}\n", key.unwrap())), "{template}: {why}");
    }
    let (code, said, _) = with("", &["key", "file:{}", "a b", "--json"]);
    assert_eq!((code, said.as_str()), (0, "{\"schema\":1,\"name\":\"file:a%20b\"}\n"));
}

#[test]
fn what_is_no_template_makes_no_key() {
    let long = "v".repeat(1_100);
    for (words, part) in [
        (&["{a", "1"][..], "brace"),
        (&["a}"], "brace"),
        (&["100%"], "no `%`"),
        (&["a\n"], "control character"),
        (&["{a}{b}", "1", "2"], "nothing between them"),
        (&["{0}", "1"], "not `{0}`"),
        (&["{a.b}", "1"], "not `{a.b}`"),
        (&["{a:?}", "1"], "not `{a:?}`"),
        (&["{_}", "1"], "not `{_}`"),
        (&["a:{}"], "takes is 1, and 0 were given"),
        (&["a:{}", "1", "2"], "takes is 1, and 2 were given"),
        (&["a:{b}:{b}", "1", "2"], "takes is 1, and 2 were given"),
        (&["", ""], "takes is 0, and 1 were given"),
        (&[""], "the key is empty"),
        (&["{}", &long], "1 KiB"),
    ] {
        let (code, said, why) = with("", &[&["key"], words].concat());
        assert!((code, said.as_str()) == (2, "") && why.contains(part), "{words:?}: {said}{why}");
    }
}
