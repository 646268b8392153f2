package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"kontiki/apiserver"
)

// historyOptions are the flags of `kontiki history`.
type historyOptions struct {
	cluster *genericclioptions.ConfigFlags
	output  string
	limit   int
}

func historyCommand() *cobra.Command {
	o := &historyOptions{cluster: genericclioptions.NewConfigFlags(true)}
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "List an object's revisions: when, who wrote it, and what changed",
		Long: `List an object's revisions: when, who wrote it, and what changed.

Each revision can be read:   kontiki kubectl get --raw '…/NAME?resourceVersion=REVISION&resourceVersionMatch=Exact'

The user, the user agent and the raft index come from the raft log, which is shorter than the history
(--history-retention of the server); before that, the field manager and the time come from the object.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.output != "" && o.output != "json" {
				return usageError{fmt.Errorf("--output %q is not json", o.output)}
			}
			useLocalCluster()
			return o.run(cmd, args[0])
		},
	}
	o.cluster.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json, for programs")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "how many of the newest revisions to list (default 100)")
	return cmd
}

func (o *historyOptions) run(cmd *cobra.Command, object string) error {
	kind, name, ok := strings.Cut(object, "/")
	if !ok || kind == "" || name == "" {
		return usageError{fmt.Errorf("%q is not KIND/NAME", object)}
	}
	path, err := o.path(kind, name)
	if err != nil {
		return err
	}
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return err
	}
	config.APIPath, config.GroupVersion, config.NegotiatedSerializer = "/", &schema.GroupVersion{Version: "v1"}, scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return err
	}
	result := client.Get().RequestURI(fmt.Sprintf("%s?limit=%d&objects=%t", path, o.limit, o.output == "json")).Do(cmd.Context())
	if err := result.Error(); err != nil { // with the server's words, which Raw leaves out
		return err
	}
	data, err := result.Raw()
	if err != nil {
		return err
	}
	if o.output == "json" {
		_, err := cmd.OutOrStdout().Write(append(data, '\n'))
		return err
	}
	var h apiserver.ObjectHistory
	if err := json.Unmarshal(data, &h); err != nil {
		return fmt.Errorf("this server has no histories: %w", err)
	}
	printHistory(cmd.OutOrStdout(), &h)
	return nil
}

// path finds the resource that kind means, as kubectl does, and returns where its object's history is.
func (o *historyOptions) path(kind, name string) (string, error) {
	mapper, err := o.cluster.ToRESTMapper()
	if err != nil {
		return "", err
	}
	full, short := schema.ParseResourceArg(kind)
	var gvr schema.GroupVersionResource
	err = errors.New("not asked yet")
	if full != nil {
		gvr, err = mapper.ResourceFor(*full)
	}
	if err != nil {
		if gvr, err = mapper.ResourceFor(short.WithVersion("")); meta.IsNoMatchError(err) {
			return "", fmt.Errorf("the server has no resource type %q", kind)
		} else if err != nil {
			return "", err
		}
	}
	gvk, err := mapper.KindFor(gvr)
	if err != nil {
		return "", err
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return "", err
	}
	path := "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		path = "/api/" + gvr.Version
	}
	if mapping.Scope.Name() == "namespace" {
		namespace, _, err := o.cluster.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return "", err
		}
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	return path + "/" + gvr.Resource + "/" + url.PathEscape(name) + "/history", nil
}

func printHistory(w io.Writer, h *apiserver.ObjectHistory) {
	if h.Truncated {
		fmt.Fprintf(w, "(older revisions are compacted or over the limit; %s)\n", h.Retention)
	}
	for _, r := range h.Items {
		at := "at an unknown time"
		if r.Time != nil {
			at = r.Time.Local().Format(time.RFC3339)
		}
		index := "raft index unknown"
		if r.RaftIndex > 0 {
			index = fmt.Sprintf("raft index %d", r.RaftIndex)
		}
		fmt.Fprintf(w, "revision %d  %s  %s  %s\n", r.Revision, r.Type, at, index)
		fmt.Fprintf(w, "  by %s  manager %s  agent %s\n", cmp.Or(r.User, "unknown"), cmp.Or(manager(&r), "unknown"), cmp.Or(r.UserAgent, "unknown"))
		for _, c := range r.Changes {
			fmt.Fprintln(w, "    "+c.String())
		}
	}
}

func manager(r *apiserver.ObjectRevision) string {
	if r.Subresource != "" {
		return r.Manager + "/" + r.Subresource
	}
	return r.Manager
}
