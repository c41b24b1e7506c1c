//! Servers that are too old, or no servers of this kind.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_runtime::check::{Code, Finding};

use crate::support::{in_time, patient};

#[tokio::test]
async fn a_server_that_is_too_old_is_refused() {
    for version in ["6.2.14", "5.0.7", "2.8.0"] {
        let url = serve(move |command| redis_answer(version, command));
        let error = Locker::connect(&url).await.unwrap_err();
        assert!(error.is_refused(), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(version) && text.contains("7.0") && text.contains(&url), "{text}");
    }
}

#[tokio::test]
async fn a_check_finds_a_server_that_is_too_old() {
    for version in ["6.2.14", "5.0.7"] {
        let url = serve(move |command| redis_answer(version, command));
        let report = patient(&url).connect_lazy().unwrap().check().await;
        let codes: Vec<_> = report.findings().map(Finding::code).collect();
        assert_eq!(codes, [Code::TooOld], "{report}");
        assert!(!report.is_ok() && report.to_string().contains(version), "{report}");
    }
}

#[tokio::test]
async fn a_server_without_greetings_is_refused() {
    let url = serve(|command| match command {
        "HELLO" => "-ERR unknown command 'HELLO'\r\n".to_owned(),
        other => redis_answer("5.0.7", other),
    });
    let error = Locker::connect(&url).await.unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("7.0"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_new_enough_is_taken() {
    let url = serve(|command| redis_answer("7.0.0", command));
    Locker::connect(&url).await.unwrap();
}

#[tokio::test]
async fn a_server_of_another_protocol_is_an_error() {
    let url = serve(|_| "HTTP/1.1 400 Bad Request\r\n\r\n".to_owned());
    let patient = patient(&url).connect_deadline(Duration::from_secs(5));
    let error = in_time(Duration::ZERO, patient.connect()).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(&url), "{error:?}");
}

#[tokio::test]
async fn a_server_with_random_answers_is_no_redis() {
    let url = serve(|_| "+PONG\r\n".to_owned());
    let error = in_time(Duration::from_secs(2), Locker::connect(&url)).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(&url), "{error:?}");
}

/// What a Redis server says while a client connects.
fn redis_answer(version: &str, command: &str) -> String {
    match command {
        "HELLO" => {
            let length = version.len();
            format!(
                "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n${length}\r\n{version}\r\n"
            )
        }
        "SCRIPT" => format!("$40\r\n{}\r\n", "0".repeat(40)),
        "TIME" => "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    }
}

/// A server that has an answer to the name of each command; gives its URL.
fn serve(answer: impl Fn(&str) -> String + Send + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || drop(converse(&client, answer)));
        }
    });
    url
}

fn converse(client: &TcpStream, answer: impl Fn(&str) -> String) -> io::Result<()> {
    let mut requests = BufReader::new(client);
    let mut client = client;
    while let Some(words) = number(&mut requests)? {
        let command: Vec<String> =
            (0..words).map(|_| word(&mut requests)).collect::<io::Result<_>>()?;
        client.write_all(answer(&command[0].to_uppercase()).as_bytes())?;
    }
    Ok(())
}

/// The number in a line such as `*3`; `None` at the end of the stream.
fn number(requests: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut line = String::new();
    requests.read_line(&mut line)?;
    Ok(line.get(1..).and_then(|number| number.trim_end().parse().ok()))
}

fn word(requests: &mut impl BufRead) -> io::Result<String> {
    let length = number(requests)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut word = vec![0; length + 2];
    requests.read_exact(&mut word)?;
    word.truncate(length);
    String::from_utf8(word).map_err(io::Error::other)
}
