//! Passing the standard input on to the watcher, whose own place for it the socket has.

use std::io::{self, IoSlice, IoSliceMut, stdin};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::stdio::dup2_stdin;

/// Sends this process' standard input, before any message.
pub(crate) fn send(stream: &UnixStream) -> io::Result<()> {
    let (input, mut space) = (stdin(), [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))]);
    let descriptors = [input.as_fd()];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    buffer.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(stream, &[IoSlice::new(b"\n")], &mut buffer, SendFlags::empty())?;
    Ok(())
}

/// Takes the socket out of the place of the standard input, and puts there what was sent.
pub(crate) fn receive() -> io::Result<UnixStream> {
    let stream = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    dup2_stdin(received(&stream)?)?;
    Ok(stream)
}

fn received(stream: &UnixStream) -> io::Result<OwnedFd> {
    let (mut byte, mut space) = ([0], [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))]);
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    // The command does not inherit it: it is closed as soon as it is in its place.
    recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut buffer, RecvFlags::empty())?;
    let rights = buffer.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    rights.ok_or_else(|| io::Error::other("no standard input was passed on"))
}
