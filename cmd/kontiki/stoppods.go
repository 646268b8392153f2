package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stopPodsTimeout bounds how long `dev` takes to stop its containers; what has not ended then is
// killed with its sandbox.
const stopPodsTimeout = 15 * time.Second

// stopPods stops every container with a second of grace, and every sandbox. The pod objects are
// left alone: the next agent finds their containers gone and starts them again.
func stopPods(ctx context.Context, conn grpc.ClientConnInterface) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPodsTimeout)
	defer cancel()
	c := runtimeapi.NewRuntimeServiceClient(conn)
	containers, err := c.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return fmt.Errorf("stop containers: %w", err)
	}
	sandboxes, err := c.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("stop containers: %w", err)
	}
	var stops []func() error
	for _, ctr := range containers.Containers {
		stops = append(stops, func() error {
			_, err := c.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: ctr.Id, Timeout: 1})
			return err
		})
	}
	if err := together(stops); err != nil {
		return err
	}
	stops = nil
	for _, s := range sandboxes.Items {
		stops = append(stops, func() error {
			_, err := c.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.Id})
			return err
		})
	}
	return together(stops)
}

// together calls all funcs at once and returns the first error.
func together(calls []func() error) error {
	var (
		running sync.WaitGroup
		once    sync.Once
		first   error
	)
	for _, call := range calls {
		running.Go(func() {
			if err := call(); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	running.Wait()
	return first
}
