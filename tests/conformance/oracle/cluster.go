package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// cluster is a kube-scheduler that has seen everything in a case and has decided nothing.
type cluster struct {
	*scheduler.Scheduler
	client *fake.Clientset
	close  func()
}

// newCluster starts a scheduler on a fake API server and waits until its cache, queue and nominator are filled.
func newCluster(ctx context.Context, config *kubeconfig.KubeSchedulerConfiguration, objects []runtime.Object) (*cluster, error) {
	ctx, cancel := context.WithCancel(ctx)
	client := fake.NewSimpleClientset(copies(objects)...)
	listInOrder(client, objects)
	factory := scheduler.NewInformerFactory(client, 0, nil)
	if utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		// A pod that is held back for its group alone is not nominated when the group comes.
		factory.Scheduling().V1beta1().PodGroups().Informer()
		if utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
			factory.Scheduling().V1alpha3().CompositePodGroups().Informer()
		}
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
	sched, err := scheduler.New(ctx, client, factory, nil, silentRecorders(),
		scheduler.WithComponentConfigVersion(config.APIVersion),
		scheduler.WithProfiles(config.DeepCopy().Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithExtenders(config.Extenders...),
		// One worker finds the first error on the first node, always.
		scheduler.WithParallelism(1),
	)
	if err != nil {
		cancel()
		return nil, err
	}
	built := &cluster{Scheduler: sched, client: client, close: func() { closeAll(cancel, factory, sched) }}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	// The handlers need about a millisecond more. Looked for at once, they would be missed for the 100 ms until the next look.
	time.Sleep(2 * time.Millisecond)
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		built.close()
		return nil, fmt.Errorf("filling the caches: %w", err)
	}
	client.ClearActions()
	return built, nil
}

func closeAll(cancel context.CancelFunc, factory informers.SharedInformerFactory, sched *scheduler.Scheduler) {
	cancel()
	factory.Shutdown()
	sched.SchedulingQueue.Close()
	for _, fwk := range sched.Profiles {
		_ = fwk.Close()
	}
}

// copies keeps one cluster's changes out of the next one: the fake API server does not copy what it is given.
func copies(objects []runtime.Object) []runtime.Object {
	copied := make([]runtime.Object, len(objects))
	for i, object := range objects {
		copied[i] = object.DeepCopyObject()
	}
	return copied
}

// listInOrder has the fake API server list pods in their order in the case: by itself it goes by the order of a map.
func listInOrder(client *fake.Clientset, objects []runtime.Object) {
	places := map[types.NamespacedName]int{}
	for place, object := range objects {
		if pod, ok := object.(*v1.Pod); ok {
			places[nameOf(pod)] = place
		}
	}
	client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		found, err := client.Tracker().List(action.GetResource(), v1.SchemeGroupVersion.WithKind("Pod"), action.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		pods, ok := found.(*v1.PodList)
		if !ok {
			return true, nil, fmt.Errorf("unexpected list %T", found)
		}
		slices.SortFunc(pods.Items, func(a, b v1.Pod) int { return cmp.Compare(places[nameOf(&a)], places[nameOf(&b)]) })
		return true, pods, nil
	})
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func silentRecorders() profile.RecorderFactory {
	return func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
}

// refreshSnapshot does what a scheduling cycle begins with.
func (c *cluster) refreshSnapshot(ctx context.Context, fwk framework.Framework) error {
	snapshot, ok := fwk.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok {
		return fmt.Errorf("unexpected snapshot %T", fwk.SnapshotSharedLister())
	}
	return c.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot)
}

// evicted names the pods that PostFilter deleted.
func (c *cluster) evicted() []string {
	victims := []string{}
	for _, action := range c.client.Actions() {
		if deletion, ok := action.(clienttesting.DeleteAction); ok && deletion.GetResource().Resource == "pods" {
			victims = append(victims, deletion.GetNamespace()+"/"+deletion.GetName())
		}
	}
	return victims
}

func isPending(object runtime.Object) (*v1.Pod, bool) {
	pod, ok := object.(*v1.Pod)
	return pod, ok && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
}
