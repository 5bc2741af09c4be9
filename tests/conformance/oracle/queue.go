package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	clocktesting "k8s.io/utils/clock/testing"
)

// tick is the unit of time in scripts, and how long each operation takes: no two pods have the same timestamp. It is a
// power of two, so that Loadmaster's floats hold it exactly.
const tick = time.Second / 512

//go:linkname flushBackoff k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushBackoff(queue *internalqueue.PriorityQueue, logger klog.Logger)

//go:linkname flushLeftover k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulableEntitiesLeftover
func flushLeftover(queue *internalqueue.PriorityQueue, logger klog.Logger)

// queueScript is what a scheduler could do with its queue: which plugins there are, then one operation after the other.
type queueScript struct {
	Profiles   map[string]profileScript `json:"profiles"`
	Operations []operation              `json:"operations"`
}

// operation names what is done in Do; the other fields are those that it needs.
type operation struct {
	Do            string       `json:"do"`
	Pod           *v1.Pod      `json:"pod"`
	Name          string       `json:"name"`
	Names         []string     `json:"names"`
	Which         int          `json:"which"`
	Unschedulable []string     `json:"unschedulable"`
	Pending       []string     `json:"pending"`
	Nominate      *string      `json:"nominate"`
	Event         *eventScript `json:"event"`
	Old           *v1.Pod      `json:"old"`
	New           *v1.Pod      `json:"new"`
	UpTo          *int32       `json:"upTo"`
	Ticks         int64        `json:"ticks"`
}

// queueRun is kube-scheduler's queue with what its event handlers and its loop keep beside it.
type queueRun struct {
	queue   *internalqueue.PriorityQueue
	clock   *clocktesting.FakeClock
	start   time.Time
	less    fwk.LessFunc
	lister  cache.Indexer
	pods    map[string]*v1.Pod
	flying  []*framework.QueuedPodInfo
	binding []*framework.QueuedPodInfo
	nodes   sets.Set[string]
	open    sets.Set[string]
}

// orQueue answers scripts for the queue, and leaves all other cases to `other`.
func orQueue(other func(context.Context, testCase) result) func(context.Context, testCase) result {
	return func(ctx context.Context, c testCase) result {
		if c.Queue == nil {
			return other(ctx, c)
		}
		steps, err := runScript(ctx, c.Queue)
		if err != nil {
			return result{Name: c.Name, Error: err.Error()}
		}
		return result{Name: c.Name, Steps: steps}
	}
}

// runScript returns for each operation what it changed: pod, or an aspect in parentheses, to its new state.
func runScript(ctx context.Context, script *queueScript) ([]map[string]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run, err := newQueueRun(ctx, script)
	if err != nil {
		return nil, err
	}
	steps, before := []map[string]string{}, map[string]string{}
	for i, op := range script.Operations {
		run.clock.Step(tick)
		if err := run.execute(ctx, op); err != nil {
			return nil, fmt.Errorf("operations[%d]: %w", i, err)
		}
		after, err := run.state()
		if err != nil {
			return nil, fmt.Errorf("after operations[%d]: %w", i, err)
		}
		steps = append(steps, changes(before, after))
		before = after
	}
	return steps, nil
}

func newQueueRun(ctx context.Context, script *queueScript) (*queueRun, error) {
	open := sets.New[string]()
	hints, gates, err := scriptedPlugins(script.Profiles, open)
	if err != nil {
		return nil, err
	}
	metrics.Register()
	start := time.Unix(1_000_000, 0)
	run := &queueRun{
		clock: clocktesting.NewFakeClock(start),
		start: start,
		less:  (&queuesort.PrioritySort{}).Less,
		pods:  map[string]*v1.Pod{},
		nodes: sets.New[string](),
		open:  open,
	}
	// Not started: the script says what the informer knows.
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	run.lister = factory.Core().V1().Pods().Informer().GetIndexer()
	run.queue = internalqueue.NewPriorityQueue(run.less, factory,
		internalqueue.WithClock(run.clock),
		internalqueue.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, 100*time.Millisecond, ctx.Done())),
		internalqueue.WithQueueingHintMapPerProfile(hints),
		internalqueue.WithPreEnqueuePluginMap(gates),
	)
	return run, nil
}

// execute does what the event handlers, the scheduling loop or the flushers would do. What concerns a pod that is
// not there does nothing, so that a script from which operations were taken away is one still.
func (r *queueRun) execute(ctx context.Context, op operation) error {
	logger := klog.FromContext(ctx)
	switch op.Do {
	case "add", "update", "delete":
		return r.watch(ctx, op)
	case "pop":
		return r.pop(logger)
	case "fail":
		r.fail(logger, take(&r.flying, op.Which), op)
	case "fail binding":
		r.fail(logger, take(&r.binding, op.Which), op)
	case "bind":
		if info := take(&r.flying, op.Which); info != nil {
			r.queue.DeleteNominatedPodIfExists(info.Pod)
			r.queue.Done(info.Pod.UID)
			r.binding = append(r.binding, info)
		}
	case "bound":
		if info := take(&r.binding, op.Which); info != nil && r.pods[info.Pod.Name] != nil {
			return r.forget(logger, info.Pod.Name)
		}
	case "move":
		r.queue.MoveAllToActiveOrBackoffQueue(logger, op.Event.decoded(), object(op.Old), object(op.New), preCheck(op.UpTo))
	case "activate":
		named := map[string]*v1.Pod{}
		for _, name := range op.Names {
			if pod := r.pods[name]; pod != nil {
				named[name] = pod
			}
		}
		r.queue.Activate(logger, named)
	case "open":
		r.open.Clear()
		r.open.Insert(op.Names...)
	case "advance":
		r.clock.Step(time.Duration(op.Ticks) * tick)
	case "flush":
		flushBackoff(r.queue, logger)
	case "flush leftover":
		flushLeftover(r.queue, logger)
	default:
		return fmt.Errorf("unknown operation %q", op.Do)
	}
	return nil
}

// watch does what the event handlers do for a pod without a node.
func (r *queueRun) watch(ctx context.Context, op operation) error {
	if op.Do == "delete" {
		if r.pods[op.Name] == nil {
			return nil
		}
		return r.forget(klog.FromContext(ctx), op.Name)
	}
	pod := op.Pod
	old := r.pods[pod.Name]
	if (op.Do == "add") != (old == nil) {
		return nil
	}
	r.pods[pod.Name] = pod
	r.nodes.Insert(pod.Status.NominatedNodeName)
	if err := r.lister.Add(pod); err != nil {
		return err
	}
	if slices.ContainsFunc(r.binding, func(info *framework.QueuedPodInfo) bool { return info.Pod.UID == pod.UID }) {
		return nil
	}
	if old == nil {
		r.queue.Add(ctx, pod)
	} else {
		r.queue.Update(ctx, old, pod)
	}
	return nil
}

func (r *queueRun) forget(logger klog.Logger, name string) error {
	pod := r.pods[name]
	delete(r.pods, name)
	if err := r.lister.Delete(pod); err != nil {
		return err
	}
	r.queue.Delete(logger, pod)
	return nil
}

func (r *queueRun) pop(logger klog.Logger) error {
	if len(r.queue.PodsInActiveQ()) == 0 && !slices.ContainsFunc(r.queue.PodsInBackoffQ(), r.wasRefused) {
		return nil // Pop would wait.
	}
	entity, err := r.queue.Pop(logger)
	if err != nil {
		return err
	}
	info, ok := entity.(*framework.QueuedPodInfo)
	if !ok {
		return fmt.Errorf("unexpected entity %T", entity)
	}
	r.flying = append(r.flying, info)
	return nil
}

func (r *queueRun) wasRefused(pod *v1.Pod) bool {
	info, found := r.queue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
	return found && info.UnschedulablePlugins.Union(info.PendingPlugins).Len() > 0
}

// fail does what handleSchedulingFailure does with the queue.
func (r *queueRun) fail(logger klog.Logger, info *framework.QueuedPodInfo, op operation) {
	if info == nil {
		return
	}
	info.ClearRejectorPlugins()
	info.UnschedulablePlugins = sets.New(op.Unschedulable...)
	info.PendingPlugins = sets.New(op.Pending...)
	if newest := r.pods[info.Pod.Name]; newest == nil {
		r.queue.Done(info.Pod.UID)
	} else {
		info.PodInfo, _ = framework.NewPodInfo(newest.DeepCopy())
		if err := r.queue.AddUnschedulablePodIfNotPresent(logger, info, r.queue.SchedulingCycle()); err != nil {
			panic(err)
		}
	}
	var nominating *fwk.NominatingInfo
	if op.Nominate != nil {
		r.nodes.Insert(*op.Nominate)
		nominating = &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: *op.Nominate}
	}
	r.queue.AddNominatedPod(logger, info.PodInfo, nominating)
}

// state says of each pod where it is and what the queue remembers of it; times are ticks since the start.
func (r *queueRun) state() (map[string]string, error) {
	state := map[string]string{}
	active := []*framework.QueuedPodInfo{}
	for _, pod := range r.queue.PodsInActiveQ() {
		info, _ := r.queue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
		active = append(active, info)
		state[pod.Name] = r.describe("active", info)
	}
	slices.SortFunc(active, func(a, b *framework.QueuedPodInfo) int {
		if r.less(a, b) {
			return -1
		}
		return 1
	})
	for _, pod := range r.queue.PodsInBackoffQ() {
		info, _ := r.queue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
		state[pod.Name] = r.describe("backoff", info) + fmt.Sprintf(" until=%d", r.ticks(info.BackoffExpiration))
	}
	for _, pod := range r.queue.UnschedulablePods() {
		info, _ := r.queue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
		place := "unschedulable"
		if info.Gated() {
			place = "gated by " + info.GatingPlugin
		}
		state[pod.Name] = r.describe(place, info)
	}
	for _, info := range r.flying {
		if _, twice := state[info.Pod.Name]; twice {
			return nil, fmt.Errorf("%s is in flight and in the queue", info.Pod.Name)
		}
		state[info.Pod.Name] = r.describe("in flight", info)
	}
	if len(r.queue.InFlightPods()) != len(r.flying) {
		return nil, fmt.Errorf("%d pods are in flight instead of %d", len(r.queue.InFlightPods()), len(r.flying))
	}
	names := []string{}
	for _, info := range active {
		names = append(names, info.Pod.Name)
	}
	state["(active)"] = strings.Join(names, " ")
	state["(nominated)"] = r.nominated()
	return state, nil
}

func (r *queueRun) describe(place string, info *framework.QueuedPodInfo) string {
	first := int64(-1)
	if info.InitialAttemptTimestamp != nil {
		first = r.ticks(*info.InitialAttemptTimestamp)
	}
	return fmt.Sprintf("%s attempts=%d since=%d first=%d unschedulable=%d errors=%d by=%s pending=%s flushed=%t version=%s",
		place, info.Attempts, r.ticks(info.Timestamp), first, info.UnschedulableCount, info.ConsecutiveErrorsCount,
		strings.Join(sets.List(info.UnschedulablePlugins), ","), strings.Join(sets.List(info.PendingPlugins), ","),
		info.WasFlushedFromUnschedulable, info.Pod.ResourceVersion)
}

func (r *queueRun) nominated() string {
	nodes := []string{}
	// kube-scheduler also keeps those that were told that they have no node.
	for _, node := range sets.List(r.nodes.Clone().Delete("")) {
		names := []string{}
		for _, info := range r.queue.NominatedPodsForNode(node) {
			names = append(names, info.GetPod().Name)
		}
		if len(names) > 0 {
			nodes = append(nodes, node+": "+strings.Join(names, " "))
		}
	}
	return strings.Join(nodes, "; ")
}

func (r *queueRun) ticks(t time.Time) int64 { return int64(t.Sub(r.start) / tick) }

// take removes and returns the one with that number, counted around; nil if there are none.
func take(infos *[]*framework.QueuedPodInfo, which int) *framework.QueuedPodInfo {
	if len(*infos) == 0 {
		return nil
	}
	i := which % len(*infos)
	info := (*infos)[i]
	*infos = slices.Delete(*infos, i, i+1)
	return info
}

func changes(before, after map[string]string) map[string]string {
	changed := map[string]string{}
	for name := range maps.Keys(before) {
		if _, found := after[name]; !found {
			changed[name] = ""
		}
	}
	for name, now := range after {
		if was, found := before[name]; !found && now != "" || was != now {
			changed[name] = now
		}
	}
	return changed
}

func preCheck(upTo *int32) internalqueue.PreEnqueueCheck {
	if upTo == nil {
		return nil
	}
	return func(pod *v1.Pod) bool {
		return pod.Spec.Priority == nil && *upTo >= 0 || pod.Spec.Priority != nil && *pod.Spec.Priority <= *upTo
	}
}

// object keeps a nil pod from becoming an interface that is not nil.
func object(pod *v1.Pod) any {
	if pod == nil {
		return nil
	}
	return pod
}
