//! Parse, run, exit code.

use ckpt_lint::cli::Cli;
use ckpt_lint::run::{Exit, Failure, run};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

/// Asks for huge pages: a page fault takes longer than parsing what is on the page.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::from_args(std::env::args_os()) {
        Ok(cli) => cli,
        Err(usage) => return ExitCode::from(usage.print()),
    };
    let mut out = BufWriter::new(Unread(io::stdout().lock()));
    let result = run(cli, &mut out, &mut io::stderr()).and_then(|done| Ok(out.flush().map(|()| done)?));
    match result {
        Ok(done) => {
            std::mem::forget(done.last);
            ExitCode::from(done.exit as u8)
        }
        Err(Failure::Io(e)) => fail(&e.to_string()),
        Err(Failure::Usage(text)) => fail(&text),
    }
}

/// Standard output that whoever reads may stop reading: `ckpt-lint . | head` is no failure of ours, and no success of the
/// checkpoint either, so the run goes on to its exit code.
struct Unread<W>(W);

impl<W: Write> Write for Unread<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        forgive(self.0.write(text), text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        forgive(self.0.flush(), ())
    }
}

fn forgive<T>(result: io::Result<T>, done: T) -> io::Result<T> {
    result.or_else(|e| if e.kind() == ErrorKind::BrokenPipe { Ok(done) } else { Err(e) })
}

fn fail(text: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "ckpt-lint: {text}");
    ExitCode::from(Exit::Error as u8)
}
