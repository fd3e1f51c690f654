package main

import (
	"log"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	listers "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
)

const byAddress = "address"

// knowledge is what of the cluster decides about a connection, as it was last heard of.
type knowledge struct {
	pods       cache.Indexer
	namespaces corelisters.NamespaceLister
	policies   listers.NetworkPolicyLister
}

// knownBy makes a knowledge that a factory keeps current once it is started.
func knownBy(factory informers.SharedInformerFactory) (*knowledge, error) {
	pods := factory.Core().V1().Pods().Informer()
	if err := pods.AddIndexers(cache.Indexers{byAddress: addresses}); err != nil {
		return nil, err
	}
	// A lister is what makes a factory follow its kind.
	return &knowledge{
		pods:       pods.GetIndexer(),
		namespaces: factory.Core().V1().Namespaces().Lister(),
		policies:   factory.Networking().V1().NetworkPolicies().Lister(),
	}, nil
}

// addresses of a pod that has some to itself: what has ended may have left its own to another.
func addresses(object any) ([]string, error) {
	pod := object.(*v1.Pod)
	if pod.Spec.HostNetwork || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return nil, nil
	}
	var found []string
	for _, each := range pod.Status.PodIPs {
		found = append(found, each.IP)
	}
	return found, nil
}

// admits tells whether the policies of the cluster let the connection be made that a packet begins.
func (k *knowledge) admits(packet []byte) bool {
	begins, ok := connectionOf(packet)
	if !ok {
		return true // of what is neither TCP, UDP nor SCTP, policies say nothing
	}
	target := k.podAt(begins.to)
	if target == nil {
		log.Printf("drop %s: no pod is known to be there", begins)
		return false // whoever connects tries again, and by then it may be known
	}
	policies, err := k.policies.List(labels.Everything())
	if err != nil {
		log.Printf("drop %s: %v", begins, err)
		return false
	}
	traffic := &matcher.Traffic{
		Source:           k.peer(begins.from, k.podAt(begins.from)),
		Destination:      k.peer(begins.to, target),
		ResolvedPort:     begins.port,
		ResolvedPortName: portName(target, begins),
		Protocol:         begins.protocol,
	}
	if !matcher.BuildNetworkPolicies(false, policies).IsTrafficAllowed(traffic).IsAllowed() {
		log.Printf("drop %s: a policy of %s/%s", begins, target.Namespace, target.Name)
		return false
	}
	return true
}

// podAt is the pod at an address; nil where none is known to be.
func (k *knowledge) podAt(address string) *v1.Pod {
	found, err := k.pods.ByIndex(byAddress, address)
	if err != nil || len(found) == 0 {
		return nil
	}
	return found[0].(*v1.Pod)
}

// peer is one end of a connection, as the matcher asks for it; without a pod, an address of the world.
func (k *knowledge) peer(address string, pod *v1.Pod) *matcher.TrafficPeer {
	if pod == nil {
		return &matcher.TrafficPeer{IP: address}
	}
	inside := &matcher.InternalPeer{PodLabels: pod.Labels, Namespace: pod.Namespace}
	if namespace, err := k.namespaces.Get(pod.Namespace); err == nil {
		inside.NamespaceLabels = namespace.Labels
	}
	return &matcher.TrafficPeer{Internal: inside, IP: address}
}

// portName is what a pod calls the port; empty where it has no name for it.
func portName(pod *v1.Pod, begins connection) string {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if int(port.ContainerPort) == begins.port && port.Protocol == begins.protocol {
				return port.Name
			}
		}
	}
	return ""
}
