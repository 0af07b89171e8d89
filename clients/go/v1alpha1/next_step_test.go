package v1alpha1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func ended(phase Phase, step *RecordedStep) *WorkflowExecution {
	execution := &WorkflowExecution{ObjectMeta: metav1.ObjectMeta{Namespace: "payment", Name: "rr-7-1"}}
	execution.Status.Phase, execution.Status.NextStep = phase, step
	return execution
}

func TestNextStep(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	busy := func(conflict *ConflictingWorkflow) *WorkflowExecution {
		execution := ended(PhaseSkipped, &RecordedStep{Action: NextActionWaitFor, Why: "short"})
		execution.Status.SkipDetails = &SkipDetails{Message: "disk-01 runs", ConflictingWorkflow: conflict}
		return execution
	}
	failed := ended(PhaseFailed, &RecordedStep{Action: NextActionPickAlternative, Why: "short"})
	failed.Status.FailureDetails = &FailureDetails{NaturalLanguageSummary: "the whole story"}
	for name, test := range map[string]struct {
		execution *WorkflowExecution
		want      Step
	}{
		"no phase": {ended("", nil), Step{Action: NextActionWatch, Why: "it has not ended"}},
		"pending":  {ended(PhasePending, nil), Step{Action: NextActionWatch, Why: "it has not ended"}},
		"running":  {ended(PhaseRunning, nil), Step{Action: NextActionWatch, Why: "it has not ended"}},
		"completed": {
			ended(PhaseCompleted, &RecordedStep{Action: NextActionNothing, Why: "it completed"}),
			Step{Action: NextActionNothing, Why: "it completed"},
		},
		"retry": {
			ended(PhaseSkipped, &RecordedStep{Action: NextActionRetryAfter, NotBefore: &at, Why: "cooldown"}),
			Step{Action: NextActionRetryAfter, NotBefore: at.Time, Why: "cooldown"},
		},
		"alternative": {failed, Step{Action: NextActionPickAlternative, Why: "the whole story"}},
		"busy": {
			busy(&ConflictingWorkflow{Namespace: "other", Name: "disk-01"}),
			Step{Action: NextActionWaitFor, Holder: types.NamespacedName{Namespace: "other", Name: "disk-01"}, Why: "disk-01 runs"},
		},
		"busy, without a namespace": {
			busy(&ConflictingWorkflow{Name: "disk-01"}),
			Step{Action: NextActionWaitFor, Holder: types.NamespacedName{Namespace: "payment", Name: "disk-01"}, Why: "disk-01 runs"},
		},
		"busy, without a holder": {
			busy(nil),
			Step{Action: NextActionPersonMustAct, Why: "the next step is WaitFor, and the status names no execution to wait for"},
		},
		"retry without a time": {
			ended(PhaseFailed, &RecordedStep{Action: NextActionRetryAfter}),
			Step{Action: NextActionPersonMustAct, Why: "the next step is RetryAfter, and it has no time"},
		},
		"a phase of a later version": {
			ended("Exploded", nil),
			Step{Action: NextActionPersonMustAct, Why: `the phase "Exploded" is not known here`},
		},
		"an action of a later version": {
			ended(PhaseFailed, &RecordedStep{Action: "Pray"}),
			Step{Action: NextActionPersonMustAct, Why: `the next step "Pray" is not known here`},
		},
		"a status of an earlier version": {
			ended(PhaseFailed, nil),
			Step{Action: NextActionPersonMustAct, Why: "the operator has recorded no next step"},
		},
	} {
		if have := NextStep(test.execution); have != test.want {
			t.Errorf("%s: %+v, not %+v", name, have, test.want)
		}
	}
}

func TestWhatHoldsATarget(t *testing.T) {
	with := func(phase Phase, kind string, status metav1.ConditionStatus) *WorkflowExecution {
		execution := ended(phase, nil)
		execution.Status.Conditions = []metav1.Condition{{Type: kind, Status: status}}
		return execution
	}
	for name, test := range map[string]struct {
		execution                  *WorkflowExecution
		finished, blocks, released bool
	}{
		"no status":               {ended("", nil), false, false, false},
		"running":                 {with(PhaseRunning, ConditionTargetLocked, metav1.ConditionTrue), false, false, false},
		"draining":                {with(PhaseFailed, ConditionTargetLocked, metav1.ConditionTrue), true, false, false},
		"free":                    {with(PhaseCompleted, ConditionTargetLocked, metav1.ConditionFalse), true, false, true},
		"skipped":                 {ended(PhaseSkipped, nil), true, false, true},
		"blocking":                {with(PhaseFailed, ConditionBlocked, metav1.ConditionTrue), true, true, true},
		"cleared":                 {with(PhaseFailed, ConditionBlocked, metav1.ConditionFalse), true, false, true},
		"a phase that is unknown": {ended("Exploded", nil), false, false, false},
	} {
		have := [3]bool{IsFinished(test.execution), BlocksTarget(test.execution), HasReleasedTarget(test.execution)}
		if have != [3]bool{test.finished, test.blocks, test.released} {
			t.Errorf("%s: finished, blocks, released: %v", name, have)
		}
	}
}
