//! A terminal for one program, used as by a person: the test types, and reads the screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::awaits::DEADLINE;
use crate::process;

const PAUSE: Duration = Duration::from_millis(20);

/// A program on a terminal of its own. Dropping it kills the program.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts a program with a terminal as its standard input, output and error.
    pub fn start(command: Command) -> Result<Self> {
        Self::start_sized(command, None)
    }

    /// Starts a program on a terminal that is this many columns wide.
    pub fn start_wide(command: Command, columns: u16) -> Result<Self> {
        Self::start_sized(command, Some(columns))
    }

    fn start_sized(mut command: Command, columns: Option<u16>) -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).context("no pseudo-terminal")?;
        unlockpt(&ours).context("the pseudo-terminal stays locked")?;
        let theirs = ioctl_tiocgptpeer(&ours, flags).context("the pseudo-terminal has no other end")?;
        if let Some(ws_col) = columns {
            let size = Winsize { ws_row: 50, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&theirs, size).context("the pseudo-terminal takes no size")?;
        }
        command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs);
        let child = command.spawn().context("the program cannot be started")?;
        // The command holds copies of the terminal's other end. The screen ends only when every copy is closed.
        drop(command);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let reader = std::thread::spawn({
            let (ours, screen) = (ours.try_clone()?, Arc::clone(&screen));
            move || read(ours, &screen)
        });
        Ok(Self { child, keyboard: File::from(ours), screen, reader: Some(reader) })
    }

    /// Returns everything that the screen has shown so far, including typed lines.
    #[must_use]
    pub fn screen(&self) -> String {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&screen).replace("\r\n", "\n")
    }

    /// Waits until the screen shows a text.
    pub async fn await_text(&self, text: &str) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        while !self.screen().contains(text) {
            if Instant::now() > deadline {
                bail!("awaited {text:?} for {DEADLINE:?}, in vain; the screen shows:\n{}", self.screen());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) -> Result<()> {
        writeln!(self.keyboard, "{line}").context("nobody reads the terminal")
    }

    /// Sends Ctrl-C to the program.
    pub fn interrupt(&self) -> Result<()> {
        process::signal(self.child.id(), Signal::INT)
    }

    /// Waits until the program has ended, and returns its exit status and the screen.
    pub async fn ended(mut self) -> Result<(ExitStatus, String)> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                // The reader ends when the last copy of the other end is closed. The program had that copy.
                drop(self.reader.take().map(JoinHandle::join));
                return Ok((status, self.screen()));
            }
            if Instant::now() > deadline {
                bail!("the program still runs after {DEADLINE:?}; the screen shows:\n{}", self.screen());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // An error means that the program has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Reads until the other end is closed, which Linux reports as an error.
fn read(terminal: OwnedFd, screen: &Mutex<Vec<u8>>) {
    let mut terminal = File::from(terminal);
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = terminal.read(&mut bytes) {
        screen.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..length]);
    }
}
