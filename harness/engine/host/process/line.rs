//! A conversation with whatever runs a component: a request at a time, and a reply to each.

use std::time::Duration;

use shakedown_core::value::wire::Message;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// Not within the limit. The process has been killed.
    TimedOut,
    /// What came is no reply to this request, or too large for one. The process has been killed,
    /// as what follows cannot be trusted either.
    Confused(String),
    /// The process has ended, or its output is not a message and it was killed.
    Ended {
        /// How.
        how: String,
        /// The last lines of its standard error.
        stderr: String,
    },
}

/// What takes requests and gives replies.
pub(super) trait Line: Send {
    /// Sends a request and waits for the reply to it.
    fn exchange(&mut self, request: Vec<u8>, limit: Duration) -> Result<Vec<u8>, Lost>;
    /// Ends what answers: what it says next cannot be trusted.
    fn end(&mut self);
}

/// A line whose replies say which request they answer.
pub(super) struct Conversation {
    line: Box<dyn Line>,
    /// How many requests were sent.
    sent: u64,
}

impl Conversation {
    /// Nothing was said yet.
    pub(super) fn over(line: impl Line + 'static) -> Conversation {
        Conversation { line: Box::new(line), sent: 0 }
    }

    /// Sends a request and waits for the reply to it.
    pub(super) fn ask(&mut self, request: Vec<u8>, limit: Duration) -> Result<Message, Lost> {
        let number = self.sent.to_string();
        self.sent += 1;
        let reply = self.line.exchange(request, limit)?;
        let wrong = match Message::decode(&reply) {
            Ok(reply) if reply.get("number") == number => return Ok(reply),
            Ok(reply) => match reply.get("number") {
                "" => "its reply does not say which request it answers".to_owned(),
                other => format!("its reply answers request {other}, and this is request {number}"),
            },
            Err(why) => format!("its reply is not a message: {why}"),
        };
        self.line.end();
        Err(Lost::Confused(wrong))
    }
}
