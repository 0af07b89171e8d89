// The program orchestrator is a small RemediationOrchestrator: it turns requests into
// WorkflowExecutions, and follows the next step of each.
//
//	go run . --target-namespace payment --target-kind deployment --target-name payment-api \
//	    --workflow deployment-restart=registry.example/workflows/deployment-restart:1.0 \
//	    --workflow deployment-scale=registry.example/workflows/deployment-scale:1.0 \
//	    request-1
//
// It tries the workflows in the order given. The next workflow runs only if the one before failed
// half way, as its recovery. It creates the executions of several requests at once.
//
// It uses the cluster of KUBECONFIG, or of its own pod, with the permissions of
// config/samples/remediation-orchestrator.yaml. The exit code is 0 if all requests are remediated.
// It is 1 if a person must act or the program cannot continue.
//
// After a restart with the same requests it finds its executions by name and continues. A real
// orchestrator keeps its state in a RemediationRequest, and checks whether the alert still fires
// before it tries again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wfe-operator/clients/go/v1alpha1"
)

const (
	// The wait before a request that failed is made again.
	again = 2 * time.Second
	// A watch ends after this time and begins anew, in case it has fallen silent.
	watchSeconds = int64(300)
)

func main() {
	settled, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !settled {
		os.Exit(1)
	}
}

func run() (bool, error) {
	orchestrator := orchestrator{}
	namespace := flag.String("target-namespace", "", "namespace of the target; leave it out for a cluster-scoped target")
	kind := flag.String("target-kind", "", "kind of the target")
	name := flag.String("target-name", "", "name of the target")
	minutes := flag.Int("give-up-after", 60, "minutes until the program gives up")
	flag.Func("workflow", "a workflow, as `ID=IMAGE`; repeat the flag for several, the best first", func(text string) error {
		id, image, found := strings.Cut(text, "=")
		if !found {
			return errors.New("expected ID=IMAGE")
		}
		orchestrator.workflows = append(orchestrator.workflows, workflow{id, image})
		return nil
	})
	flag.Parse()
	if *kind == "" || *name == "" || len(orchestrator.workflows) == 0 || flag.NArg() == 0 {
		return false, errors.New("a target, a workflow and a request are needed: see --help")
	}
	orchestrator.target = strings.TrimPrefix(*namespace+"/"+*kind+"/"+*name, "/")
	if err := orchestrator.connect(); err != nil {
		return false, fmt.Errorf("there is no cluster to speak to: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*minutes)*time.Minute)
	defer cancel()

	// One goroutine for each request, as in a storm of alerts.
	settled, failures := make([]bool, flag.NArg()), make([]error, flag.NArg())
	var requests sync.WaitGroup
	for i, request := range flag.Args() {
		requests.Go(func() { settled[i], failures[i] = orchestrator.remediate(ctx, request) })
	}
	requests.Wait()
	all := true
	for _, one := range settled {
		all = all && one
	}
	return all, errors.Join(failures...)
}

// workflow is a workflow of the catalogue.
type workflow struct{ id, image string }

type orchestrator struct {
	client.WithWatch
	namespace string
	target    string
	workflows []workflow
}

// connect makes the client, which knows the kinds of the API, for the namespace of the kubeconfig.
func (o *orchestrator) connect() error {
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := loading.ClientConfig()
	if err != nil {
		return err
	}
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	if o.namespace, _, err = loading.Namespace(); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	o.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return err
}

// remediate handles a request to its end. It returns whether the target is remediated.
func (o *orchestrator) remediate(ctx context.Context, request string) (bool, error) {
	var failed []*v1alpha1.WorkflowExecution
	for attempt := 1; ; attempt++ {
		workflow := o.choose(failed)
		if workflow == nil {
			fmt.Printf("%s: no workflow is left to try, a person must act\n", request)
			return false, nil
		}
		name := fmt.Sprintf("%s-%d", request, attempt)
		if err := o.create(ctx, name, request, workflow, failed); err != nil {
			return false, fmt.Errorf("%s cannot be created: %w", name, err)
		}
		key := types.NamespacedName{Namespace: o.namespace, Name: name}
		execution, err := o.await(ctx, key, func(execution *v1alpha1.WorkflowExecution) bool {
			return v1alpha1.NextStep(execution).Action != v1alpha1.NextActionWatch
		})
		if err != nil {
			return false, err
		}
		if execution == nil {
			return false, fmt.Errorf("%s was deleted", name)
		}
		switch step := v1alpha1.NextStep(execution); step.Action {
		case v1alpha1.NextActionNothing:
			fmt.Printf("%s: %s completed\n", request, name)
			return true, nil
		case v1alpha1.NextActionPickAlternative:
			fmt.Printf("%s: %s failed half way: %s\n", request, name, step.Why)
			failed = append(failed, execution)
			// While something of its run is still stopping, a new execution would be skipped.
			if _, err := o.awaitRelease(ctx, key); err != nil {
				return false, err
			}
		case v1alpha1.NextActionWaitFor:
			fmt.Printf("%s: %s was skipped: %s\n", request, name, step.Why)
			holder, err := o.awaitRelease(ctx, step.Holder)
			if err != nil {
				return false, err
			}
			if holder != nil && holder.Status.Phase == v1alpha1.PhaseCompleted && holder.Spec.WorkflowRef.WorkflowID == workflow.id {
				fmt.Printf("%s: %s has done what %s was to do\n", request, holder.Name, name)
				return true, nil
			}
		case v1alpha1.NextActionRetryAfter:
			wait := max(time.Until(step.NotBefore), 0)
			fmt.Printf("%s: %s may be repeated in %s\n", request, name, wait.Round(time.Second))
			if err := sleep(ctx, wait); err != nil {
				return false, err
			}
		default:
			fmt.Printf("%s: %s: a person must act: %s\n", request, name, step.Why)
			return false, nil
		}
	}
}

// choose returns a workflow that has not failed half way yet. In a real orchestrator an AIAnalysis
// chooses.
func (o *orchestrator) choose(failed []*v1alpha1.WorkflowExecution) *workflow {
next:
	for i := range o.workflows {
		for _, execution := range failed {
			if execution.Spec.WorkflowRef.WorkflowID == o.workflows[i].id {
				continue next
			}
		}
		return &o.workflows[i]
	}
	return nil
}

// create creates an execution, as the recovery of the last one that failed. An execution that
// exists already was created before a restart of this program.
func (o *orchestrator) create(ctx context.Context, name, request string, workflow *workflow, failed []*v1alpha1.WorkflowExecution) error {
	execution := &v1alpha1.WorkflowExecution{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
		Spec: v1alpha1.WorkflowExecutionSpec{
			TargetResource:        o.target,
			WorkflowRef:           v1alpha1.WorkflowRef{WorkflowID: workflow.id, Version: "1.0", ContainerImage: workflow.image},
			RemediationRequestRef: &v1alpha1.RemediationRequestRef{Name: request},
		},
	}
	recovers := ""
	if len(failed) > 0 {
		execution.Spec.RecoveryOf = failed[len(failed)-1].Name
		recovers = ", recovery of " + execution.Spec.RecoveryOf
	}
	switch err := o.Create(ctx, execution); {
	case err == nil:
		fmt.Printf("%s: created %s (%s%s)\n", request, name, workflow.id, recovers)
	case apierrors.IsAlreadyExists(err):
		fmt.Printf("%s: found %s\n", request, name)
	default:
		return err
	}
	return nil
}

// awaitRelease waits until an execution has released its target. It returns nil if the execution
// does not exist any more.
func (o *orchestrator) awaitRelease(ctx context.Context, key types.NamespacedName) (*v1alpha1.WorkflowExecution, error) {
	execution, err := o.await(ctx, key, v1alpha1.HasReleasedTarget)
	if err == nil && execution == nil {
		// Its run may still be stopping, and nothing shows when that ends.
		err = sleep(ctx, v1alpha1.Pause)
	}
	return execution, err
}

// await watches an execution until found returns true for it. It returns nil if the execution does
// not exist. The deadline of the context ends the wait.
func (o *orchestrator) await(
	ctx context.Context, key types.NamespacedName, found func(*v1alpha1.WorkflowExecution) bool,
) (*v1alpha1.WorkflowExecution, error) {
	for {
		execution, err := o.observe(ctx, key, found)
		if err == nil && (execution == nil || found(execution)) {
			return execution, nil
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "WorkflowExecution %s: %v\n", key, err)
		}
		if err := sleep(ctx, again); err != nil {
			return nil, fmt.Errorf("%s: nothing was settled in time: %w", key, err)
		}
	}
}

// observe lists and watches one execution until found returns true or the watch ends. It returns
// the last state, or nil if the execution does not exist.
func (o *orchestrator) observe(
	ctx context.Context, key types.NamespacedName, found func(*v1alpha1.WorkflowExecution) bool,
) (*v1alpha1.WorkflowExecution, error) {
	only := client.ListOptions{Namespace: key.Namespace}
	client.MatchingFields{"metadata.name": key.Name}.ApplyToList(&only)
	var list v1alpha1.WorkflowExecutionList
	if err := o.List(ctx, &list, &only); err != nil || len(list.Items) == 0 {
		return nil, err
	}
	last := &list.Items[0]
	if found(last) {
		return last, nil
	}
	timeout := watchSeconds
	only.Raw = &metav1.ListOptions{ResourceVersion: list.ResourceVersion, TimeoutSeconds: &timeout}
	watching, err := o.Watch(ctx, &v1alpha1.WorkflowExecutionList{}, &only)
	if err != nil {
		return last, err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		execution, is := event.Object.(*v1alpha1.WorkflowExecution)
		switch {
		case event.Type == watch.Deleted:
			return nil, nil
		case !is:
			return last, apierrors.FromObject(event.Object)
		case found(execution):
			return execution, nil
		}
		last = execution
	}
	return last, nil
}

// sleep waits, and returns an error if the time of the program is up.
func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
