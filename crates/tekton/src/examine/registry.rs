//! Finds the registry that did not deliver an image.

use serde_json::Value;
use wfe_api::limits::{NAME, cut};
use wfe_core::fingerprint::registry_of;

use crate::evidence::Remains;
use crate::object::{Pod, TaskRun, list, text};

/// The name and image of a step.
type Image<'a> = (&'a str, &'a str);

/// Returns the registry host of a step's image. The sources, best first, are the pod, the resolved task and the
/// pipeline. If the step is unknown, or no source has its name, all steps must have the same host.
pub(super) fn registry_of_step(remains: Remains<'_>, task_run: TaskRun<'_>, step: Option<&str>) -> Option<Box<str>> {
    let pods = || remains.pods.iter().filter(|pod| Pod(**pod).task_run_uid() == task_run.0.uid());
    let in_pod = pods().flat_map(|pod| list(&pod.data["spec"], "containers")).filter_map(image);
    let in_pod = in_pod.filter_map(|(name, image)| Some((name.strip_prefix("step-")?, image)));
    let pipeline = remains.run.and_then(|run| run.data.pointer("/status/pipelineSpec")).unwrap_or(&Value::Null);
    let mut tasks = list(pipeline, "tasks").chain(list(pipeline, "finally"));
    let in_pipeline = tasks.find(|task| text(task, "name") == Some(task_run.0.task())).map(|task| &task["taskSpec"]);
    host(in_pod.collect(), step)
        .or_else(|| host(steps(&task_run.0.data["status"]["taskSpec"]), step))
        .or_else(|| host(steps(in_pipeline?), step))
        .map(|host| cut(&host, NAME).into())
}

fn steps(task: &Value) -> Vec<Image<'_>> {
    list(task, "steps").filter_map(image).collect()
}

fn image(container: &Value) -> Option<Image<'_>> {
    Some((text(container, "name").unwrap_or_default(), text(container, "image")?))
}

fn host(mut images: Vec<Image<'_>>, step: Option<&str>) -> Option<String> {
    let is_step = |name: &str| step == Some(name);
    if images.iter().any(|(name, _)| is_step(name)) {
        images.retain(|(name, _)| is_step(name));
    }
    // An image with an unreplaced parameter does not show its host.
    let host = |(_, image): &Image<'_>| (!image.contains("$(")).then(|| registry_of(image));
    let hosts: Option<Vec<String>> = images.iter().map(host).collect();
    let mut hosts = hosts?.into_iter();
    let first = hosts.next()?;
    hosts.all(|other| other == first).then_some(first)
}
