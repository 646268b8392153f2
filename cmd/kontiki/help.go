package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is where the help of flags is wrapped.
const helpWidth = 120

// Commands in the help of kontiki itself, by what one wants.
const (
	groupRun     = "run"
	groupUse     = "use"
	groupOperate = "operate"
)

// groupCommands adds commands to root under a heading.
func groupCommands(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
		root.AddCommand(cmd)
	}
}

// headingKey is the annotation of a flag that stands under a heading of its own in the help.
const headingKey = "heading"

// under adds flags that the help lists under a heading: a server has too many for one list.
func under(heading string, fs *pflag.FlagSet, add func(*pflag.FlagSet)) {
	own := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	own.SortFlags = false // but as they were added, what belongs together side by side
	add(own)
	own.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{headingKey: {heading}}
		fs.AddFlag(f)
	})
	fs.SortFlags = false
}

// flagUsages is what the help says of flags: those without a heading first.
func flagUsages(fs *pflag.FlagSet) string {
	var order []string
	lists := map[string]*pflag.FlagSet{}
	fs.VisitAll(func(f *pflag.Flag) {
		heading := ""
		if noted := f.Annotations[headingKey]; len(noted) > 0 {
			heading = noted[0]
		}
		if lists[heading] == nil {
			lists[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			lists[heading].SortFlags = fs.SortFlags
			if heading != "" {
				order = append(order, heading)
			}
		}
		lists[heading].AddFlag(f)
	})
	var out strings.Builder
	if general := lists[""]; general != nil {
		out.WriteString(general.FlagUsagesWrapped(helpWidth))
	}
	for _, heading := range order {
		fmt.Fprintf(&out, "\n%s:\n%s", heading, lists[heading].FlagUsagesWrapped(helpWidth))
	}
	return out.String()
}

// listFlagsByHeading has the help of root and of all below it list flags so.
func listFlagsByHeading(root *cobra.Command) {
	cobra.AddTemplateFunc("flagUsages", flagUsages)
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), ".LocalFlags.FlagUsages", "flagUsages .LocalFlags", 1))
}
