package compare

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"kontiki/internal/bench/member"
)

func (b *bench) print() {
	fmt.Fprintf(b.Out, "\nThree members of each on loopback, fsync on, medians of %d rounds of %s a load.\n", b.Rounds, b.Each)
	fmt.Fprintf(b.Out, "etcd, grpc: through client/v3 to the leader, %d clients a connection. own: goroutines in the leader's process;\n", b.PerConn)
	fmt.Fprintf(b.Out, "its CPU and memory are with the load's. CPU and memory: all members' together, and of one on average.\n\n")
	b.printFigures()
	b.printExtras()
	b.printAims()
}

func (b *bench) printFigures() {
	w := tabwriter.NewWriter(b.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "load\tclients\tcolumn\tper second\tp50\tp99\tCPU/call\tCPU s/s\tresident\tanonymous\t")
	for _, load := range member.Workloads() {
		for _, clients := range b.Clients {
			for _, c := range b.columns {
				b.printLoad(w, c, load, clients)
			}
		}
	}
	for _, c := range b.columns {
		b.printLoad(w, c, nameWatch, 0)
	}
	_ = w.Flush() // to Out, whose errors concern nobody
}

func (b *bench) printLoad(w *tabwriter.Writer, c Column, load string, clients int) {
	at := cell{c.Name, load, clients}
	get := func(of func(figures) float64) float64 { v, _ := b.results.median(at, of); return v }
	if len(b.results[at]) == 0 {
		return
	}
	fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%s\t%s\t%.0fµs\t%.2f\t%.0fM\t%.0fM\t\n", load, clients, c.Name,
		get(perSecond), short(get(p50)), short(get(p99)), 1e6*get(figures.cpuPerCall),
		get(figures.cpuPerCall)*get(perSecond), get(resident), get(anonymous))
}

func short(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(10 * time.Microsecond).String()
}

func (b *bench) printExtras() {
	w := tabwriter.NewWriter(b.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\ncolumn\tidle resident\tidle anonymous\tfail-over, each round\telections without a cause\t")
	for _, c := range b.columns {
		idle := cell{c.Name, "idle", 0}
		r, _ := b.results.median(idle, resident)
		a, _ := b.results.median(idle, anonymous)
		var overs []string
		for _, f := range b.results[cell{c.Name, nameFailOver, 0}] {
			overs = append(overs, fmt.Sprintf("%.2fs", f.value))
		}
		elections := 0.0
		for _, f := range b.results[cell{c.Name, "elections", 0}] {
			elections += f.value
		}
		fmt.Fprintf(w, "%s\t%.0fM\t%.0fM\t%s\t%.0f\t\n", c.Name, r, a, strings.Join(overs, " "), elections)
	}
	_ = w.Flush()
}

// printAims prints the ratios to etcd, as a table of Markdown.
func (b *bench) printAims() {
	if len(b.columns) == 0 || b.columns[0].Name != "etcd" {
		return
	}
	fmt.Fprintf(b.Out, "\nTimes better than etcd (memory: share of etcd's)\n\n|  |")
	for _, c := range b.columns[1:] {
		fmt.Fprintf(b.Out, " %s: aim | measured |", c.Name)
	}
	fmt.Fprintf(b.Out, "\n|---|%s\n", strings.Repeat("---|---|", len(b.columns)-1))
	for _, a := range aims {
		var line strings.Builder
		measured := false
		for _, c := range b.columns[1:] {
			goal := a.api
			if c.own {
				goal = a.own
			}
			ratios, ok := b.ratios(a, c)
			measured = measured || ok
			fmt.Fprintf(&line, " %s | %s |", goal, ratios)
		}
		if measured {
			fmt.Fprintf(b.Out, "| %s |%s\n", a.what, line.String())
		}
	}
}

// ratios are those of a line of the table, for each number of clients; false if there is none.
func (b *bench) ratios(a aim, c Column) (string, bool) {
	var list []string
	any := false
	for _, clients := range a.clients {
		mine, ok := b.results.median(cell{c.Name, a.load, clients}, a.of)
		etcd, ok2 := b.results.median(cell{"etcd", a.load, clients}, a.of)
		if !ok || !ok2 {
			list = append(list, "–")
			continue
		}
		any = true
		switch {
		case a.seconds:
			list = append(list, fmt.Sprintf("%.2f s (etcd %.2f s)", mine, etcd))
		case a.smaller:
			list = append(list, fmt.Sprintf("%.2f×", etcd/mine))
		default: // more, or a share
			list = append(list, fmt.Sprintf("%.2f×", mine/etcd))
		}
	}
	return strings.Join(list, " / "), any
}
