#!/usr/bin/env python3
"""A small RemediationOrchestrator: turns requests into WorkflowExecutions, and follows the next step of each.

    ./orchestrator.py --target-namespace payment --target-kind deployment --target-name payment-api \\
        --workflow deployment-restart=registry.example/workflows/deployment-restart:1.0 \\
        --workflow deployment-scale=registry.example/workflows/deployment-scale:1.0 \\
        request-1

It does the same as clients/go/examples/orchestrator, with the package kubernetes (requirements.txt). It uses the
cluster of KUBECONFIG, or of its own pod, with the permissions of config/samples/remediation-orchestrator.yaml. The exit
code is 0 if all requests are remediated. It is 1 if a person must act or the program cannot continue.
"""

import argparse
import functools
import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

from kubernetes import client, config, watch
from urllib3.exceptions import HTTPError

GROUP, VERSION, PLURAL = "kubernaut.ai", "v1alpha1", "workflowexecutions"
FINAL_PHASES = ("Completed", "Failed", "Skipped")

# Seconds before a request that failed is made again.
AGAIN = 2
# Seconds after which a watch ends and begins anew, in case it has fallen silent.
WATCH = 300
# Seconds to wait if no status says so: the shortest backoff of an operator with default settings.
PAUSE = 60


def field(execution, path):
    """Returns a field by its path, such as "status.nextStep.action", or None if it is absent."""
    for name in path.split("."):
        execution = (execution or {}).get(name)
    return execution


def next_action(execution):
    """Returns what to do next: "Watch" before the end, and then what the operator has recorded in status.nextStep."""
    phase = field(execution, "status.phase")
    if phase in (None, "", "Pending", "Running"):
        return "Watch"
    return field(execution, "status.nextStep.action") or "PersonMustAct"


def has_released_target(execution):
    """Returns whether the execution has ended and nothing of its run is left on the target."""
    conditions = field(execution, "status.conditions") or []
    locked = any(one["type"] == "TargetLocked" and one["status"] == "True" for one in conditions)
    return field(execution, "status.phase") in FINAL_PHASES and not locked


def why(execution):
    """Returns the whole story of an end, for people."""
    return (
        field(execution, "status.failureDetails.naturalLanguageSummary")
        or field(execution, "status.skipDetails.message")
        or field(execution, "status.nextStep.why")
    )


def execution_of(name, target, workflow, request, recovery_of=None):
    """Returns a new execution."""
    workflow_id, image = workflow
    spec = {
        "targetResource": target,
        "workflowRef": {"workflowId": workflow_id, "version": "1.0", "containerImage": image},
        "remediationRequestRef": {"name": request},
    }
    if recovery_of:
        spec["recoveryOf"] = recovery_of
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "WorkflowExecution",
        "metadata": {"name": name},
        "spec": spec,
    }


class Orchestrator:
    def __init__(self, api, namespace, target, workflows, deadline):
        self.api, self.namespace, self.target = api, namespace, target
        self.workflows, self.deadline = workflows, deadline

    def remediate(self, request):
        """Handles a request to its end. Returns whether the target is remediated."""
        failed = []
        for attempt in itertools.count(1):
            tried = [field(execution, "spec.workflowRef.workflowId") for execution in failed]
            # In a real orchestrator an AIAnalysis chooses.
            workflow = next((one for one in self.workflows if one[0] not in tried), None)
            if workflow is None:
                say(request, "no workflow is left to try, a person must act")
                return False
            name = f"{request}-{attempt}"
            self.create(name, request, workflow, failed)
            execution = self.wait(self.namespace, name, lambda one: next_action(one) != "Watch")
            if execution is None:
                raise RuntimeError(f"{name} was deleted")
            match next_action(execution):
                case "Nothing":
                    say(request, f"{name} completed")
                    return True
                case "PickAlternative":
                    say(request, f"{name} failed half way: {why(execution)}")
                    failed.append(execution)
                    # While something of its run is still stopping, a new execution would be skipped.
                    self.wait_for_release(self.namespace, name)
                case "WaitFor":
                    say(request, f"{name} was skipped: {why(execution)}")
                    holder = field(execution, "status.skipDetails.conflictingWorkflow.name")
                    namespace = field(execution, "status.skipDetails.conflictingWorkflow.namespace")
                    ended = self.wait_for_release(namespace or self.namespace, holder)
                    same = field(ended, "spec.workflowRef.workflowId") == workflow[0]
                    if same and field(ended, "status.phase") == "Completed":
                        say(request, f"{holder} has done what {name} was to do")
                        return True
                case "RetryAfter":
                    wait = seconds_until(field(execution, "status.nextStep.notBefore"))
                    say(request, f"{name} may be repeated in {wait:.0f}s")
                    self.sleep(wait)
                case _:
                    say(request, f"{name}: a person must act: {why(execution)}")
                    return False

    def create(self, name, request, workflow, failed):
        """Creates an execution, as the recovery of the last one that failed. An execution that exists already was
        created before a restart of this program."""
        recovery_of = failed[-1]["metadata"]["name"] if failed else None
        body = execution_of(name, self.target, workflow, request, recovery_of)
        try:
            self.api.create_namespaced_custom_object(
                GROUP, VERSION, self.namespace, PLURAL, body, field_validation="Strict"
            )
        except client.ApiException as error:
            if error.status != 409:
                raise
            say(request, f"found {name}")
            return
        say(request, f"created {name} ({workflow[0]}{', recovery of ' + recovery_of if recovery_of else ''})")

    def wait_for_release(self, namespace, name):
        """Waits until an execution has released its target. Returns None if it does not exist any more."""
        execution = self.wait(namespace, name, has_released_target)
        if execution is None:
            # Its run may still be stopping, and nothing shows when that ends.
            self.sleep(PAUSE)
        return execution

    def wait(self, namespace, name, found):
        """Watches an execution until found returns true for it. Returns None if the execution does not exist."""
        while True:
            try:
                execution = self.observe(namespace, name, found)
                if execution is None or found(execution):
                    return execution
            except (client.ApiException, HTTPError) as error:
                print(f"WorkflowExecution {namespace}/{name}: {getattr(error, 'reason', error)}", file=sys.stderr)
            self.sleep(AGAIN)

    def observe(self, namespace, name, found):
        """Lists and watches one execution until found returns true or the watch ends. Returns the last state."""
        # A connection that is silent for longer than a watch lasts is broken.
        only = {"field_selector": f"metadata.name={name}", "_request_timeout": WATCH + AGAIN}
        listed = self.api.list_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, **only)
        if not listed["items"]:
            return None
        execution = listed["items"][0]
        if found(execution):
            return execution
        events = watch.Watch().stream(
            functools.partial(self.api.list_namespaced_custom_object, GROUP, VERSION, namespace, PLURAL),
            resource_version=listed["metadata"]["resourceVersion"],
            timeout_seconds=max(1, min(WATCH, int(self.deadline - time.monotonic()))),
            **only,
        )
        for event in events:
            if event["type"] == "DELETED":
                return None
            execution = event["object"]
            if found(execution):
                break
        return execution

    def sleep(self, seconds):
        """Waits. Raises an error if the time of the program is up."""
        left = self.deadline - time.monotonic()
        time.sleep(max(0, min(seconds, left)))
        if seconds >= left:
            raise TimeoutError("nothing was settled in time")


def seconds_until(moment):
    """Returns how many seconds are left until a time of the API."""
    at = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())


def say(request, words):
    print(f"{request}: {words}", flush=True)


def own_namespace():
    """Loads the credentials, and returns the namespace of the kubeconfig or of the own pod."""
    try:
        config.load_kube_config()
        return config.list_kube_config_contexts()[1]["context"].get("namespace", "default")
    except config.ConfigException:
        config.load_incluster_config()
        with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:
            return file.read()


def workflow_of(text):
    workflow_id, found, image = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError("expected ID=IMAGE")
    return workflow_id, image


def main():
    parser = argparse.ArgumentParser(description="Turns requests into WorkflowExecutions, and follows them.")
    parser.add_argument("--target-namespace", help="leave it out for a cluster-scoped target")
    parser.add_argument("--target-kind", required=True)
    parser.add_argument("--target-name", required=True)
    parser.add_argument("--workflow", type=workflow_of, action="append", required=True, metavar="ID=IMAGE",
                        help="repeat it for several, the best first")
    parser.add_argument("--give-up-after", type=int, default=60, metavar="MINUTES")
    parser.add_argument("requests", nargs="+")
    arguments = parser.parse_args()
    parts = (arguments.target_namespace, arguments.target_kind, arguments.target_name)
    namespace = own_namespace()
    orchestrator = Orchestrator(
        client.CustomObjectsApi(),
        namespace,
        "/".join(part for part in parts if part),
        arguments.workflow,
        time.monotonic() + arguments.give_up_after * 60,
    )
    # One thread for each request, as in a storm of alerts.
    with ThreadPoolExecutor(max_workers=len(arguments.requests)) as threads:
        settled = list(threads.map(orchestrator.remediate, arguments.requests))
    sys.exit(0 if all(settled) else 1)


if __name__ == "__main__":
    main()
