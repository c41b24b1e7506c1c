//! What `lockable` and its watcher say to each other: a line a message, over a socket pair.

use std::fmt;
use std::str::FromStr;

use crate::clock::Moment;
use crate::exit::Exit;

/// From `lockable` to the watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The lease ends then, and the command before.
    Deadline(Moment),
    /// The command gets this signal.
    Signal(i32),
    /// The command is asked to end, and ended when it does not.
    End,
    /// The command is ended at once.
    Kill,
}

/// From the watcher to `lockable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The command runs, as this process.
    Started(i32),
    /// The lease runs out, and the command was asked to end.
    RunsOut,
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The command has ended.
    Ended(Exit),
    /// It has left processes behind, which are asked to end.
    LeftBehind,
    /// This process of it runs as another user, and cannot be ended.
    Unreachable(i32),
    /// No process that the command has started is alive.
    Clear,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline(moment) => writeln!(f, "deadline {}", moment.as_nanos()),
            Self::Signal(number) => writeln!(f, "signal {number}"),
            Self::End => writeln!(f, "end"),
            Self::Kill => writeln!(f, "kill"),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(process) => writeln!(f, "started {process}"),
            Self::RunsOut => writeln!(f, "runs-out"),
            Self::Stopped(number) => writeln!(f, "stopped {number}"),
            Self::Ended(Exit::Code(code)) => writeln!(f, "ended {code}"),
            Self::Ended(Exit::Signal(number)) => writeln!(f, "died {number}"),
            Self::LeftBehind => writeln!(f, "left-behind"),
            Self::Unreachable(process) => writeln!(f, "unreachable {process}"),
            Self::Clear => writeln!(f, "clear"),
        }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, number) = split(line);
        match word {
            "deadline" => Ok(Self::Deadline(Moment::from_nanos(parsed(number)?))),
            "signal" => Ok(Self::Signal(parsed(number)?)),
            "end" => Ok(Self::End),
            "kill" => Ok(Self::Kill),
            _ => Err(()),
        }
    }
}

impl FromStr for Event {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, number) = split(line);
        match word {
            "started" => Ok(Self::Started(parsed(number)?)),
            "runs-out" => Ok(Self::RunsOut),
            "stopped" => Ok(Self::Stopped(parsed(number)?)),
            "ended" => Ok(Self::Ended(Exit::Code(parsed(number)?))),
            "died" => Ok(Self::Ended(Exit::Signal(parsed(number)?))),
            "left-behind" => Ok(Self::LeftBehind),
            "unreachable" => Ok(Self::Unreachable(parsed(number)?)),
            "clear" => Ok(Self::Clear),
            _ => Err(()),
        }
    }
}

fn split(line: &str) -> (&str, &str) {
    line.split_once(' ').unwrap_or((line, ""))
}

fn parsed<T: FromStr>(number: &str) -> Result<T, ()> {
    number.parse().map_err(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<T>(message: T)
    where
        T: fmt::Display + FromStr + PartialEq + fmt::Debug + Copy,
    {
        let line = message.to_string();
        assert_eq!(line.strip_suffix('\n').unwrap().parse::<T>().ok(), Some(message));
    }

    #[test]
    fn every_message_is_a_line_that_comes_back() {
        let deadline = Order::Deadline(Moment::from_nanos(u64::MAX));
        for order in [deadline, Order::Signal(15), Order::End, Order::Kill] {
            comes_back(order);
        }
        let started = [Event::Started(7), Event::Stopped(21), Event::RunsOut];
        for event in started.into_iter().chain([
            Event::Ended(Exit::Code(143)),
            Event::Ended(Exit::Signal(15)),
            Event::LeftBehind,
            Event::Unreachable(7),
            Event::Clear,
        ]) {
            comes_back(event);
        }
        assert_eq!("deadline soon".parse::<Order>(), Err(()));
    }
}
