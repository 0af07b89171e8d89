package v1alpha1

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

// The types of conditions that a program needs. docs/concepts.md has all of them.
const (
	// ConditionBlocked is True while nothing runs on the target until a person clears it.
	ConditionBlocked = "Blocked"
	// ConditionTargetLocked is True while the execution holds its target.
	ConditionTargetLocked = "TargetLocked"
	// ConditionSucceeded is True or False once the phase is final.
	ConditionSucceeded = "Succeeded"
	// ConditionWaiting is True if an undecided execution has waited for more than ten seconds. Its
	// reason and its message name the cause.
	ConditionWaiting = "Waiting"
)

// NextActionWatch means that the execution has not ended: keep watching. No status has this value.
const NextActionWatch NextAction = "Watch"

// Pause is how long to wait if no status says so: a minute, the shortest backoff of an operator
// with default settings. An execution that is created too early is skipped, and does no harm.
const Pause = time.Minute

// Step is what a program that created an execution does next.
//
// A final phase stays. To try again, create another execution, and only if it is still needed.
type Step struct {
	// What to do.
	Action NextAction
	// With RetryAfter: the earliest time to create another execution.
	NotBefore time.Time
	// With WaitFor: the execution that holds the target. Create another execution once
	// HasReleasedTarget returns true for it. If it does not exist any more, wait for Pause.
	Holder types.NamespacedName
	// The reason, for people.
	Why string
}

// NextStep returns the step that the operator has recorded in status.nextStep.
//
// A status that this version does not understand asks for a person: PersonMustAct.
func NextStep(execution *WorkflowExecution) Step {
	if !IsFinished(execution) {
		switch execution.Status.Phase {
		case "", PhasePending, PhaseRunning:
			return Step{Action: NextActionWatch, Why: "it has not ended"}
		}
		return unclear("the phase %q is not known here", execution.Status.Phase)
	}
	recorded := execution.Status.NextStep
	if recorded == nil {
		return unclear("the operator has recorded no next step")
	}
	step := Step{Action: recorded.Action, Why: why(&execution.Status)}
	switch recorded.Action {
	case NextActionNothing, NextActionPickAlternative, NextActionPersonMustAct:
		return step
	case NextActionRetryAfter:
		if recorded.NotBefore == nil {
			return unclear("the next step is RetryAfter, and it has no time")
		}
		step.NotBefore = recorded.NotBefore.Time
		return step
	case NextActionWaitFor:
		skip := execution.Status.SkipDetails
		if skip == nil || skip.ConflictingWorkflow == nil {
			return unclear("the next step is WaitFor, and the status names no execution to wait for")
		}
		step.Holder.Namespace = skip.ConflictingWorkflow.Namespace
		step.Holder.Name = skip.ConflictingWorkflow.Name
		if step.Holder.Namespace == "" {
			step.Holder.Namespace = execution.Namespace
		}
		return step
	}
	return unclear("the next step %q is not known here", recorded.Action)
}

// IsFinished returns whether the phase is final: Completed, Failed or Skipped.
//
// A finished execution may still hold its target: see HasReleasedTarget.
func IsFinished(execution *WorkflowExecution) bool {
	switch execution.Status.Phase {
	case PhaseCompleted, PhaseFailed, PhaseSkipped:
		return true
	}
	return false
}

// BlocksTarget returns whether the execution failed such that nothing runs on its target until a
// person clears it, or a recovery repairs it.
func BlocksTarget(execution *WorkflowExecution) bool {
	return meta.IsStatusConditionTrue(execution.Status.Conditions, ConditionBlocked)
}

// HasReleasedTarget returns whether the execution has ended and nothing of its run is left on the
// target. Another execution on the target can then get its turn.
func HasReleasedTarget(execution *WorkflowExecution) bool {
	return IsFinished(execution) && !meta.IsStatusConditionTrue(execution.Status.Conditions, ConditionTargetLocked)
}

// why returns the whole story of an end, or the few words of the next step.
func why(status *WorkflowExecutionStatus) string {
	switch {
	case status.Phase == PhaseFailed && status.FailureDetails != nil && status.FailureDetails.NaturalLanguageSummary != "":
		return status.FailureDetails.NaturalLanguageSummary
	case status.Phase == PhaseSkipped && status.SkipDetails != nil && status.SkipDetails.Message != "":
		return status.SkipDetails.Message
	}
	return status.NextStep.Why
}

func unclear(format string, values ...any) Step {
	return Step{Action: NextActionPersonMustAct, Why: fmt.Sprintf(format, values...)}
}
