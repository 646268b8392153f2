package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"kontiki/internal/bench/apiload"
	"kontiki/internal/bench/load"
)

// benchCustom measures custom resources on a server of their own, whose pods are simulated: what many definitions cost,
// large ones, and what their objects cost beside ConfigMaps.
func benchCustom(ctx context.Context, bin, dir string, api apiload.Config) error {
	n := &node{bin: bin, dir: filepath.Join(dir, "custom"), flags: []string{"--node-runtime", "simulated"}}
	var err error
	if n.https, n.port, err = twoPorts(); err != nil {
		return err
	}
	if err := n.start(ctx); err != nil {
		return err
	}
	return errors.Join(n.measureCustom(ctx, api), n.stop())
}

func (n *node) measureCustom(ctx context.Context, api apiload.Config) error {
	if err := load.Pause(ctx, 5*time.Second); err != nil {
		return err
	}
	config, err := n.config()
	if err != nil {
		return err
	}
	if len(api.Only) == 0 {
		api.Only = apiload.CustomNames()
	}
	api.Memory = func() int {
		kilobytes, err := n.memory()
		if err != nil {
			return 0 // it has ended, which the next request says
		}
		return kilobytes["VmRSS:"] >> 10
	}
	if err := n.reportMemory("custom: idle memory"); err != nil {
		return err
	}
	if err := benchAPI(ctx, config, api); err != nil {
		return fmt.Errorf("API: %w", err)
	}
	return n.reportMemory("custom: memory after this load")
}
