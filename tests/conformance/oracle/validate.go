package main

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	compositeapi "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apioperation "k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	corepolicyv1 "k8s.io/kubernetes/pkg/apis/policy/v1"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/resource"
	resourcev1 "k8s.io/kubernetes/pkg/apis/resource/v1"
	resourcevalidation "k8s.io/kubernetes/pkg/apis/resource/validation"
	schedulingv1alpha3 "k8s.io/kubernetes/pkg/apis/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/kubernetes/pkg/apis/scheduling/v1beta1"
	"k8s.io/kubernetes/pkg/features"
)

// objections says whether an API server could have stored the objects of a case: whether it would have accepted them,
// and whether its defaults would have changed what a scheduler reads.
func objections(_ context.Context, c testCase) result {
	found := []string{}
	if _, err := loadConfig(c.Config); err != nil {
		found = append(found, err.Error())
	}
	objects, err := decodeObjects(c.Objects)
	if err != nil {
		found = append(found, err.Error())
	}
	for _, object := range objects {
		found = append(found, objectTo(object)...)
	}
	return result{Name: c.Name, Error: strings.Join(found, "\n"), Pods: []verdict{}}
}

func objectTo(object runtime.Object) []string {
	switch object := object.(type) {
	case *v1.Pod:
		return objectToPod(object)
	case *v1.Node:
		internal := &core.Node{}
		if err := corev1.Convert_v1_Node_To_core_Node(object.DeepCopy(), internal, nil); err != nil {
			return []string{err.Error()}
		}
		return texts(object.Name, validation.ValidateNode(internal))
	case *policyv1.PodDisruptionBudget:
		internal := &policy.PodDisruptionBudget{}
		if err := corepolicyv1.Convert_v1_PodDisruptionBudget_To_policy_PodDisruptionBudget(object.DeepCopy(), internal, nil); err != nil {
			return []string{err.Error()}
		}
		return texts(object.Name, policyvalidation.ValidatePodDisruptionBudget(internal, policyvalidation.PodDisruptionBudgetValidationOptions{}))
	case *resourceapi.ResourceClaim:
		internal := &resource.ResourceClaim{}
		if err := resourcev1.Convert_v1_ResourceClaim_To_resource_ResourceClaim(object.DeepCopy(), internal, nil); err != nil {
			return []string{err.Error()}
		}
		return texts(object.Name, resourcevalidation.ValidateResourceClaim(internal))
	case *v1.Namespace:
		internal := &core.Namespace{}
		if err := corev1.Convert_v1_Namespace_To_core_Namespace(object.DeepCopy(), internal, nil); err != nil {
			return []string{err.Error()}
		}
		return texts(object.Name, validation.ValidateNamespace(internal))
	}
	return objectToGroup(object)
}

// objectToGroup validates with the feature gates for all fields.
func objectToGroup(object runtime.Object) []string {
	gates := map[string]bool{
		string(features.TopologyAwareWorkloadScheduling): true,
		string(features.CompositePodGroup):               true,
		string(features.PodGroupPreemptionPolicy):        true,
	}
	ctx := context.Background()
	create := apioperation.Operation{Type: apioperation.Create, Options: gates}
	switch object := object.(type) {
	case *schedulingapi.PodGroup:
		return texts(object.Name, schedulingv1beta1.Validate_PodGroup(ctx, create, nil, object, nil))
	case *compositeapi.CompositePodGroup:
		return texts(object.Name, schedulingv1alpha3.Validate_CompositePodGroup(ctx, create, nil, object, nil))
	}
	return nil
}

func objectToPod(pod *v1.Pod) []string {
	defaulted := pod.DeepCopy()
	corev1.SetObjectDefaults_Pod(defaulted)
	objections := []string{}
	if !apiequality.Semantic.DeepEqual(schedulingFields(pod), schedulingFields(defaulted)) {
		objections = append(objections, pod.Name+": defaulting changes what the scheduler reads")
	}
	internal := &core.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(defaulted, internal, nil); err != nil {
		return append(objections, err.Error())
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	options.ResourceIsPod = true
	return append(objections, texts(pod.Name, validation.ValidatePodCreate(internal, options))...)
}

// schedulingFields are the defaulted fields that scheduling depends on.
func schedulingFields(pod *v1.Pod) []any {
	fields := []any{pod.Spec.Resources, pod.Spec.SchedulerName, pod.Spec.Tolerations, pod.Spec.Priority}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		fields = append(fields, container.Resources.Requests, container.Ports)
	}
	return fields
}

func texts(name string, errors field.ErrorList) []string {
	found := []string{}
	for _, err := range errors {
		found = append(found, name+": "+err.Error())
	}
	return found
}
