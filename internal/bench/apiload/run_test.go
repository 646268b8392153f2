package apiload

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

var (
	each = flag.Duration("each", 50*time.Millisecond, "how long each load runs")
	only = flag.String("only", "", "the loads to run")
	many = flag.Int("definitions", 5, "how many definitions are installed")
)

// All loads run and succeed on a control plane. For a profile of the server and client together:
// go test -run TestLoads -each 5s -only create -cpuprofile cpu.out ./internal/bench/apiload
func TestLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: thousands of pods are made")
	}
	cluster := testcluster.Start(t)
	config := Config{REST: cluster.REST(pki.Admin), Each: *each, Definitions: *many, Report: func(what, figure, aim string) {
		require.NotEmpty(t, figure)
		t.Logf("%-50s %s", what, figure)
	}}
	if *only != "" {
		config.Only = strings.Split(*only, ",")
	}
	require.NoError(t, Run(t.Context(), config))
}
