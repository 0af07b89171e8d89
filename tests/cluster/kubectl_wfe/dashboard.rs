//! The overview as a page: in a file, and served to one person's browser.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wfe_testkit::{Terminal, World};

use super::{Caller, has};
use crate::history::past::{Past, past};

/// Sends a request to a server, and returns the whole answer.
async fn answer(host: &str, line: &str, named: &str) -> Result<String> {
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(format!("{line} HTTP/1.1\r\nHost: {named}\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn the_dashboard_shows_what_needs_a_person_to_its_address_alone() -> Result<()> {
    let world = World::new("page").await?;
    let jo = Caller::new(&world, "jo", &["wfe-explain"]).await?;
    past(&world, "broken", "node/n", "w1", 1, TimeDelta::minutes(20), Past::Ran).await?;
    let frozen = jo.says(1, &["status", "-o", "html"]).await?;
    has(&frozen, &["<!DOCTYPE html>", "1 needs a person", "kubectl wfe clear node/n --reason", ", frozen"]);
    has(&jo.says(2, &["status", "node/n", "-o", "html"]).await?, &["name no target or execution"]);

    let terminal = Terminal::start(jo.command(&["dashboard"])?)?;
    terminal.await_text("Ctrl-C ends it").await?;
    let screen = terminal.screen();
    let address = screen.lines().find_map(|line| line.strip_prefix("http://")).context(screen.clone())?;
    let (host, path) = address.split_once('/').context(screen.clone())?;
    let get = format!("GET /{path}");
    let page = answer(host, &get, host).await?;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    has(&page, &["node/n", "blocked for 20m", &format!("{}/broken", world.namespace()), "data-refresh="]);
    for (line, named, status) in
        [(&*get, "evil.example", 403), (&format!("POST /{path}"), host, 405), ("GET /0123/", host, 404)]
    {
        let refused = answer(host, line, named).await?;
        assert!(refused.starts_with(&format!("HTTP/1.1 {status} ")) && !refused.contains("node/n"), "{refused}");
    }
    // Each request reads the objects again, with a short delay.
    past(&world, "again", "node/m", "w1", 1, TimeDelta::minutes(10), Past::Ran).await?;
    let is_shown = async || anyhow::Ok(answer(host, &get, host).await?.contains("2 need a person"));
    wfe_testkit::awaits::ask_until(super::IN_FORCE_WITHIN, "the new block is shown", is_shown, |shown| *shown).await?;

    terminal.interrupt()?;
    let (status, screen) = terminal.ended().await?;
    assert_eq!(status.code(), Some(0), "{screen}");
    world.close().await
}
