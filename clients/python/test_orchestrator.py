"""Compares what orchestrator.py reads and writes with the CRD, and plays its decisions. Needs no cluster."""

import ast
import re
import time
import unittest
from pathlib import Path
from unittest import mock

import yaml

import orchestrator

HERE = Path(__file__).parent
CRD = HERE.parent.parent / "crds" / "kubernaut.ai_workflowexecutions.yaml"
PAGE = HERE.parent.parent / "docs" / "remediation-orchestrator.md"
NEXT = "status.nextStep"


def schema():
    with open(CRD, encoding="utf-8") as file:
        return yaml.safe_load(file)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def at(path):
    """Returns the schema of a field, or None if the CRD has no such field."""
    node = schema()
    for name in path.split("."):
        node = (node or {}).get("properties", {}).get(name)
    return node


def unknown(body, node, path=""):
    """Lists the fields of an object that its schema does not have, and the required ones that it lacks."""
    if not isinstance(body, dict) or "additionalProperties" in node:
        return []
    fields = node.get("properties", {})
    problems = [f"{path}.{name} is required" for name in node.get("required", []) if name not in body]
    for name, value in body.items():
        if name not in fields:
            problems.append(f"{path}.{name} is unknown")
        else:
            problems += unknown(value, fields[name], f"{path}.{name}")
    return problems


def ended(phase, action, **status):
    return {
        "metadata": {"name": "request-1", "namespace": "payment"},
        "spec": {"workflowRef": {"workflowId": "restart"}},
        "status": {"phase": phase, "nextStep": {"action": action, "why": "short"}, **status},
    }


class SchemaTest(unittest.TestCase):
    def test_every_field_that_is_read_is_in_the_crd(self):
        tree = ast.parse((HERE / "orchestrator.py").read_text(encoding="utf-8"))
        texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        paths = {text for text in texts if re.fullmatch(r"(spec|status)(\.[A-Za-z]+)+", text)}
        self.assertGreater(len(paths), 8)
        self.assertEqual([path for path in sorted(paths) if at(path) is None], [])

    def test_every_field_that_is_written_is_in_the_crd(self):
        body = orchestrator.execution_of("a", "node/w1", ("restart", "image"), "request", "failed")
        self.assertEqual(unknown(body["spec"], at("spec"), "spec"), [])

    def test_a_wrong_field_is_found(self):
        body = {"workflow": {}, "workflowRef": {"version": "1"}}
        self.assertEqual(
            unknown(body, at("spec"), "spec"),
            [
                "spec.targetResource is required",
                "spec.workflow is unknown",
                "spec.workflowRef.containerImage is required",
                "spec.workflowRef.workflowId is required",
            ],
        )

    def test_every_action_of_the_crd_has_its_case(self):
        cases = {
            node.pattern.value.value
            for node in ast.walk(ast.parse((HERE / "orchestrator.py").read_text(encoding="utf-8")))
            if isinstance(node, ast.match_case) and isinstance(node.pattern, ast.MatchValue)
        }
        # The last case of the program is for a person.
        self.assertEqual(cases | {"PersonMustAct"}, set(at(f"{NEXT}.action")["enum"]))

    def test_the_final_phases_are_those_of_the_crd(self):
        rest = set(at("status.phase")["enum"]) - {"Pending", "Running"}
        self.assertEqual(set(orchestrator.FINAL_PHASES), rest)


class PageTest(unittest.TestCase):
    def test_the_page_shows_parts_of_this_program(self):
        def trimmed(text):
            return "\n".join(line.strip() for line in text.splitlines())

        program = trimmed((HERE / "orchestrator.py").read_text(encoding="utf-8"))
        blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        self.assertEqual(len(blocks), 2)
        for block in blocks:
            self.assertIn(trimmed(block), program)


class StepsTest(unittest.TestCase):
    def test_next_action(self):
        for status, action in [
            ({}, "Watch"),
            ({"phase": "Pending"}, "Watch"),
            ({"phase": "Running"}, "Watch"),
            ({"phase": "Completed", "nextStep": {"action": "Nothing"}}, "Nothing"),
            ({"phase": "Failed", "nextStep": {"action": "RetryAfter"}}, "RetryAfter"),
            ({"phase": "Failed"}, "PersonMustAct"),
            ({"phase": "Exploded"}, "PersonMustAct"),
        ]:
            self.assertEqual(orchestrator.next_action({"status": status}), action, status)
        self.assertEqual(orchestrator.next_action({}), "Watch")

    def test_what_holds_a_target(self):
        locked = [{"type": "TargetLocked", "status": "True"}]
        for status, released in [
            ({}, False),
            ({"phase": "Running", "conditions": locked}, False),
            ({"phase": "Failed", "conditions": locked}, False),
            ({"phase": "Failed", "conditions": []}, True),
            ({"phase": "Skipped"}, True),
        ]:
            self.assertEqual(orchestrator.has_released_target({"status": status}), released, status)

    def play(self, *executions):
        """Plays a request for which these executions end one after the other. Returns the end and the output."""
        said, asked = [], []
        program = orchestrator.Orchestrator(None, "payment", "node/w1", [("restart", "a"), ("scale", "b")], time.monotonic() + 99)
        with (
            mock.patch.object(orchestrator, "say", lambda request, words: said.append(words)),
            mock.patch.object(program, "create", lambda name, request, workflow, failed: asked.append(workflow[0])),
            mock.patch.object(program, "observe", mock.Mock(side_effect=executions)),
            mock.patch.object(program, "sleep", lambda seconds: said.append(f"sleeps {seconds:.0f}s")),
        ):
            return program.remediate("request"), asked, said

    def test_each_step_is_followed(self):
        done = ended("Completed", "Nothing")
        busy = ended("Skipped", "WaitFor", skipDetails={"message": "busy", "conflictingWorkflow": {"name": "other-1"}})
        past = ended("Skipped", "RetryAfter")
        past["status"]["nextStep"]["notBefore"] = "2026-01-02T03:04:05Z"
        half = ended("Failed", "PickAlternative")
        for executions, want in [
            ([done], (True, ["restart"], ["request-1 completed"])),
            (
                [busy, done],
                (True, ["restart"], ["request-1 was skipped: busy", "other-1 has done what request-1 was to do"]),
            ),
            (
                [past, done],
                (True, ["restart", "restart"], ["request-1 may be repeated in 0s", "sleeps 0s", "request-2 completed"]),
            ),
            ([half, half, done], (True, ["restart", "scale"], ["request-1 failed half way: short", "request-2 completed"])),
            ([ended("Failed", "PersonMustAct")], (False, ["restart"], ["request-1: a person must act: short"])),
            ([ended("Failed", "Pray")], (False, ["restart"], ["request-1: a person must act: short"])),
        ]:
            self.assertEqual(self.play(*executions), want)


if __name__ == "__main__":
    unittest.main()
