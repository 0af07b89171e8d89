//! `kubectl wfe status`: the answer first. Without a subject: what needs a person, what runs, and what waits, with the
//! command that comes next. With a subject: what holds this target or execution now, and what ends that.

mod card;

use anyhow::{Context, Result, ensure};

use crate::cli::{ClusterArgs, ExplainArgs, Format, PageFormat, StatusArgs};
use crate::explain;
use crate::output::output;
use crate::overview::Overview;
use crate::page::Page;
use crate::subject::Subject;
use crate::view::Lookout;
use card::Card;

/// Runs the command. Yes: nothing needs a person. With a target or execution, yes means the same as for `explain`.
pub(crate) async fn run(cluster: &ClusterArgs, args: StatusArgs) -> Result<bool> {
    let StatusArgs { subject, output: format, view } = args;
    let Some(subject) = subject else {
        let lookout = Lookout::open(cluster, &view).await?;
        if format == Some(PageFormat::Html) {
            let page = Page::read(&lookout, cluster).await?;
            output().page(&page.html(None, None))?;
            return Ok(page.is_well());
        }
        let seen = lookout.look().await?;
        let overview = Overview::of(&seen, cluster.namespace.as_deref());
        match format {
            Some(_) => output().json("Status", &overview)?,
            None => write!(output(), "{}", overview.told())?,
        }
        return Ok(overview.is_well());
    };
    ensure!(format != Some(PageFormat::Html), "-o html shows the overview: name no target or execution");
    if format.is_some() {
        let output = Some(Format::Json);
        let args = ExplainArgs { subject: Some(subject), file: None, workflow: None, output, view };
        return explain::run(cluster, args).await;
    }
    let lookout = Lookout::open(cluster, &view).await?;
    let args = ExplainArgs { subject: Some(subject), file: None, workflow: None, output: None, view };
    let (report, seen) = explain::report(&lookout, cluster, &args).await?;
    let card = match (&seen, &args.subject) {
        (Some(seen), Some(Subject::Target(target))) => Card::of_target(seen, target.as_str()),
        (Some(seen), Some(Subject::Execution(name))) => {
            let object = seen.named(&lookout.namespace, name).context("it has gone meanwhile; look again")?;
            Card::of_execution(seen, object)
        }
        _ => None,
    };
    match card {
        Some(card) => write!(output(), "{}", card.told())?,
        None => write!(output(), "{}", report.brief())?,
    }
    Ok(report.is_yes())
}
