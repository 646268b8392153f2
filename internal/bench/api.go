package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/internal/bench/apiload"
)

// benchAPI runs the loads of package apiload, alone or after those of a node.
func benchAPI(ctx context.Context, config *rest.Config, o apiload.Config) error {
	o.REST = config
	o.Report = func(what, figure, aim string) {
		if aim != "" {
			figure = fmt.Sprintf("%-50s aim %s", figure, aim)
		}
		report("API: "+what, "%s", figure)
	}
	return apiload.Run(ctx, o)
}

// benchAPIOf measures whatever API a kubeconfig leads to: a kube-apiserver, say.
func benchAPIOf(ctx context.Context, kubeconfig string, o apiload.Config) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	return benchAPI(ctx, config, o)
}

func schedulable(ctx context.Context, client kubernetes.Interface) bool {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}

func runningPods(ctx context.Context, client kubernetes.Interface) int {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=hello"})
	if err != nil {
		return 0
	}
	running := 0
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running
}
