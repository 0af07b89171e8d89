//! Lists objects: the kinds, the namespace of each, and how a list is read page by page.

use kube::api::{ApiResource, DynamicObject, ListParams, ObjectList};
use kube::core::{DynamicResourceScope, GroupVersionKind};
use kube::{Api, Client, Resource};

use crate::index::Kind;
use crate::partial::PartialObject;

/// How many objects a page of a list has: a few megabytes at most, like the pages of the API server's own clients.
pub const PAGE: u32 = 500;

/// Returns the namespace in which objects of a kind are listed and watched; `None` for all namespaces. No list and no
/// watch has a label selector, because an object whose label was removed must not disappear from view. Whether an
/// object is used is decided when it is [read](crate::read).
#[must_use]
pub fn namespace_of<'a>(kind: Kind, execution_namespace: &'a str, watch_namespace: Option<&'a str>) -> Option<&'a str> {
    match kind {
        Kind::Execution | Kind::Schedule => watch_namespace,
        // All namespaces, even if the operator watches the executions of one namespace only. A target may be in any
        // namespace, and a pause of that namespace applies.
        Kind::Namespace => None,
        Kind::Run | Kind::TaskRun | Kind::CustomRun | Kind::Pod => Some(execution_namespace),
    }
}

/// Returns the API for objects of a kind, in one namespace or in all.
#[must_use]
pub fn objects<K>(client: &Client, kind: Kind, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource(kind)),
        None => Api::all_with(client.clone(), &resource(kind)),
    }
}

/// A list that is read page by page, with one request for each page.
#[derive(Debug)]
pub struct Pages {
    /// The request for the next page; `None` after the last page.
    next: Option<ListParams>,
    objects: Vec<DynamicObject>,
}

impl Pages {
    /// Begins a list of all selected objects.
    #[must_use]
    pub fn of(selection: ListParams) -> Self {
        Self { next: Some(selection.limit(PAGE)), objects: Vec::new() }
    }

    /// Returns the request for the next page; `None` after the last page.
    #[must_use]
    pub fn next(&self) -> Option<&ListParams> {
        self.next.as_ref()
    }

    /// Adds a page, and keeps only the objects for which `is_kept` returns true. A list may contain many more other
    /// objects.
    pub fn take_in(&mut self, page: ObjectList<PartialObject>, is_kept: impl Fn(&DynamicObject) -> bool) {
        let objects = page.items.into_iter().map(|PartialObject { object, .. }| object);
        self.objects.extend(objects.filter(is_kept));
        let token = page.metadata.continue_.filter(|token| !token.is_empty());
        self.next = token.and_then(|token| Some(self.next.take()?.continue_token(&token)));
    }

    /// Returns the collected objects.
    #[must_use]
    pub fn into_objects(self) -> Vec<DynamicObject> {
        self.objects
    }
}

fn resource(kind: Kind) -> ApiResource {
    let (group, version, name) = match kind {
        Kind::Execution => (wfe_api::GROUP, wfe_api::VERSION, "WorkflowExecution"),
        Kind::Run => (wfe_tekton::GROUP, wfe_tekton::VERSION, wfe_tekton::KIND),
        Kind::TaskRun => (wfe_tekton::GROUP, wfe_tekton::VERSION, "TaskRun"),
        // The only kind of Tekton that has no version v1.
        Kind::CustomRun => (wfe_tekton::GROUP, "v1beta1", "CustomRun"),
        Kind::Pod => ("", "v1", "Pod"),
        Kind::Namespace => ("", "v1", "Namespace"),
        Kind::Schedule => (wfe_api::GROUP, wfe_api::VERSION, "WorkflowSchedule"),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), kind.label())
}
