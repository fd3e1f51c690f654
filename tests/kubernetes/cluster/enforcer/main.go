// policy-enforcer does for a node of the tests' cluster what a network plugin does that knows NetworkPolicies: it
// decides on each new connection to a pod of the node. What policies mean it leaves to cyclonus, by which network
// plugins are tested.
//
// The kernel hands it the first packet of each connection, by a rule such as
//
//	iptables -t mangle -A FORWARD -d PODS -m conntrack --ctstate NEW -j NFQUEUE --queue-num 100
//
// and lets none through while it does not run.
package main

import (
	"context"
	"flag"
	"log"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "by which the cluster is read: pods, namespaces and NetworkPolicies")
	number := flag.Uint("queue", 100, "number of the NFQUEUE")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatalf("the kubeconfig cannot be used: %v", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatalf("no client for the cluster: %v", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	known, err := knownBy(factory)
	if err != nil {
		log.Fatalf("pods cannot be followed: %v", err)
	}
	factory.Start(context.Background().Done())
	factory.WaitForCacheSync(context.Background().Done())
	queue, err := openQueue(uint16(*number))
	if err != nil {
		log.Fatalf("queue %d cannot be had: %v", *number, err)
	}
	log.Fatalf("the queue has ended: %v", queue.serve(known.admits))
}
