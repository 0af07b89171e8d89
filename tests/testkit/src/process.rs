//! Child processes that end with the process that started them, and their logs.
//!
//! A child is started through `control-plane exec`. That program asks the kernel to kill the process when its parent
//! ends, and then becomes the requested program. For the kernel, the parent is a *thread*: start children from a thread
//! that lives as long as they should.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::chroot;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use rustix::thread::clear_ambient_capability_set;

/// Finds a binary of this workspace: beside the running binary, or one directory above (tests run from `deps/`).
pub fn workspace_binary(name: &str) -> Result<PathBuf> {
    let current = std::env::current_exe().context("the path of this program is unknown")?;
    current.ancestors().skip(1).take(2).map(|dir| dir.join(name)).find(|path| path.is_file()).with_context(|| {
        format!("no binary {name} near {}: run `cargo build --bins` (same profile) first", current.display())
    })
}

/// Prepares a command whose process dies with the thread that spawns it.
pub fn command(program: impl AsRef<OsStr>) -> Result<Command> {
    let mut command = Command::new(workspace_binary("control-plane")?);
    command.args(["exec", "--parent", &std::process::id().to_string(), "--"]).arg(program);
    // Ctrl-C in a terminal goes to a whole process group. A group of its own keeps the signal from the child, which the
    // parent stops.
    command.stdin(Stdio::null()).process_group(0);
    Ok(command)
}

/// Becomes `program`, and has the kernel kill it when `parent` ends. Returns only if that fails or `parent` has already
/// ended.
pub fn exec(parent: u32, program: &OsStr, args: &[std::ffi::OsString]) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("the parent-death signal cannot be set")?;
    // The parent may have ended before the line above.
    let now = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if i64::from(now) != i64::from(parent) {
        // No process would receive an error any more.
        return Ok(());
    }
    let error = Command::new(program).args(args).exec();
    bail!("{} cannot be started: {error}", program.display());
}

/// Changes the root to `root`, gives up all capabilities, and becomes `program` as [`exec`] does. The script `confined`
/// of `tests/controlplane` ends with this call.
pub fn confine(parent: u32, root: &Path, program: &OsStr, args: &[std::ffi::OsString]) -> Result<()> {
    chroot(root).with_context(|| format!("{} cannot be the root", root.display()))?;
    std::env::set_current_dir("/")?;
    clear_ambient_capability_set().context("the capabilities cannot be given up")?;
    exec(parent, program, args)
}

/// Sends a signal to a child that has not been reaped yet.
pub(crate) fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("not a process id")?;
    kill_process(pid, signal).context("the signal could not be sent")
}

/// Opens a log for appending, as the output of a child.
pub(crate) fn open_log(path: &Path) -> Result<fs::File> {
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("the log {} cannot be written", path.display()))
}

/// Reads the last `count` lines of a log, but no more than its last 64 kB.
#[must_use]
pub fn last_lines(path: &Path, count: usize) -> String {
    const TAIL: u64 = 64 * 1024;
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        file.read_to_end(&mut bytes)
    });
    if let Err(error) = read {
        return format!("({}: {error})", path.display());
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
