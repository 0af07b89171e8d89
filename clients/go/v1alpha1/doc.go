// Package v1alpha1 has the types of the API kubernaut.ai/v1alpha1: WorkflowExecution and
// WorkflowSchedule. Its functions say how an execution stands and what to do next.
//
// The types are generated from the CRDs, and have no client: use client-go or controller-runtime.
// AddToScheme makes the kinds known to them.
//
// +groupName=kubernaut.ai
package v1alpha1
