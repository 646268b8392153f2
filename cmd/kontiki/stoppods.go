package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stopPodsTimeout bounds how long `dev` takes to stop its containers. What is left then is found
// again by the next start.
const stopPodsTimeout = 15 * time.Second

// stopPods stops every container, with a second of grace, and removes every sandbox, so that nothing
// of the node is left on the machine but its files. The pod objects are left alone: the next agent
// finds their containers gone and starts them again.
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
	var stops, removals errgroup.Group // no context: a failure does not cut the others short
	for _, ctr := range containers.Containers {
		stops.Go(func() error {
			_, err := c.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: ctr.Id, Timeout: 1})
			return err
		})
	}
	if err := stops.Wait(); err != nil {
		return fmt.Errorf("stop containers: %w", err)
	}
	for _, s := range sandboxes.Items {
		removals.Go(func() error {
			if _, err := c.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.Id}); err != nil {
				return err
			}
			_, err := c.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id})
			return err
		})
	}
	if err := removals.Wait(); err != nil {
		return fmt.Errorf("remove sandboxes: %w", err)
	}
	return nil
}
