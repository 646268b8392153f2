package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	discoveryv1 "k8s.io/api/discovery/v1"

	"kontiki/internal/bootstraptoken"
	"kontiki/internal/pki"
)

// tokenFlags are common to the commands about join tokens.
type tokenFlags struct {
	local
	output string
}

func tokenCommand() *cobra.Command {
	f := &tokenFlags{}
	cmd := &cobra.Command{Use: "token", Short: "Make, list and revoke the tokens with which machines join", Args: rejectArgs}
	f.addFlags(cmd)
	list := &cobra.Command{Use: "list", Short: "List the tokens, without their secret parts", Args: rejectArgs, RunE: f.list}
	list.Flags().StringVarP(&f.output, "output", "o", "", "json for JSON (default: a table)")
	cmd.AddCommand(f.createCommand(), list,
		&cobra.Command{Use: "revoke ID…", Aliases: []string{"delete"}, Short: "Revoke tokens: who has joined with one stays", RunE: f.revoke,
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return usageError{fmt.Errorf("usage: %s", cmd.UseLine())}
				}
				return nil
			}})
	return cmd
}

// admin reaches the local cluster as its administrator.
func (f *tokenFlags) admin() (*rest.Config, kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", f.dir()+"/"+adminKubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("the local cluster: %w", err)
	}
	config.Timeout = 30 * time.Second
	client, err := kubernetes.NewForConfig(config)
	return config, client, err
}

// newToken are the flags of `token create`.
type newToken struct {
	ttl         time.Duration
	usages      []string
	description string
	role        string
	server      string
	quiet       bool
}

func (f *tokenFlags) createCommand() *cobra.Command {
	n := &newToken{}
	cmd := &cobra.Command{
		Use: "create", Short: "Make a token and print the command with which a machine joins", Args: rejectArgs,
		Long: `Make a token and print the command with which a machine joins. The token says which cluster it is for, so that the
machine can tell the cluster's servers from others before it shows the secret part. Whoever has it can add nodes until it
expires; with --for server it hands out the cluster's keys, which is everything: let it live for minutes.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := n.spec(time.Now())
			if err != nil {
				return err
			}
			return f.create(cmd, n, spec)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&n.ttl, "ttl", 24*time.Hour, "how long the token is good for; 0 for ever")
	flags.StringSliceVar(&n.usages, "usages", []string{"authentication", "signing"}, "what it may be used for: authentication, signing")
	flags.StringVar(&n.description, "description", "", "what it is for, shown by list")
	flags.StringVar(&n.role, "for", "agent", "who joins with it: agent or server")
	flags.StringVar(&n.server, "server", "", "URL of the API server in the printed command (default: an address that the cluster advertises)")
	flags.BoolVarP(&n.quiet, "quiet", "q", false, "print the token alone")
	return cmd
}

func (n *newToken) spec(now time.Time) (spec bootstraptoken.Spec, err error) {
	spec.Description = n.description
	switch {
	case n.ttl < 0:
		return spec, wrong("ttl", "%s is negative", n.ttl)
	case n.role != "agent" && n.role != "server":
		return spec, wrong("for", "%q is neither agent nor server", n.role)
	case n.role == "server" && n.ttl == 0:
		return spec, wrong("ttl", "a token that hands out the cluster's keys must expire")
	}
	for _, usage := range n.usages {
		switch usage {
		case "authentication":
			spec.Authentication = true
		case "signing":
			spec.Signing = true
		default:
			return spec, wrong("usages", "%q is neither authentication nor signing", usage)
		}
	}
	if n.ttl > 0 {
		spec.Expires = now.Add(n.ttl)
	}
	if n.role == "server" {
		spec.Groups = []string{bootstraptoken.ServerGroup}
	}
	return spec, nil
}

func (f *tokenFlags) create(cmd *cobra.Command, n *newToken, spec bootstraptoken.Spec) error {
	config, client, err := f.admin()
	if err != nil {
		return err
	}
	authorities, err := pki.ParseCertificates(config.CAData)
	if err != nil {
		return fmt.Errorf("%s: %w", adminKubeconfig, err)
	}
	token, err := bootstraptoken.New()
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Secrets(bootstraptoken.Namespace).Create(cmd.Context(), bootstraptoken.ToSecret(token, spec), metav1.CreateOptions{}); err != nil {
		return err
	}
	text := bootstraptoken.Join{CAHash: pki.HashOf(authorities[0]), Token: token}.Text()
	if n.quiet {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
		return err
	}
	server := n.server
	if server == "" {
		server = advertised(cmd, client, config.Host)
	}
	flag := "--server"
	if n.role == "server" {
		flag = "--join"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "kontiki %s %s %s --token %s\n", n.role, flag, server, text)
	return err
}

// advertised is the URL of an API server as other machines reach it; local if the cluster advertises none.
func advertised(cmd *cobra.Command, client kubernetes.Interface, local string) string {
	list, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(cmd.Context(), metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return local
	}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && len(slice.Ports) > 0 && slice.Ports[0].Port != nil {
				return "https://" + net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port)))
			}
		}
	}
	return local
}

// listedToken is a token as `token list` shows it.
type listedToken struct {
	ID          string     `json:"id"`
	For         string     `json:"for"`
	Expires     *time.Time `json:"expires,omitempty"` // nil: never
	Usages      []string   `json:"usages"`
	Description string     `json:"description,omitempty"`
	Groups      []string   `json:"groups,omitempty"`
	Fault       string     `json:"fault,omitempty"` // why it is good for nothing
}

func (f *tokenFlags) list(cmd *cobra.Command, _ []string) error {
	if f.output != "" && f.output != "json" && f.output != "table" {
		return wrong("output", "%q is neither json nor table", f.output)
	}
	_, client, err := f.admin()
	if err != nil {
		return err
	}
	secrets, err := client.CoreV1().Secrets(bootstraptoken.Namespace).List(cmd.Context(), metav1.ListOptions{FieldSelector: "type=" + string(bootstraptoken.Type)})
	if err != nil {
		return err
	}
	tokens := []listedToken{}
	for i := range secrets.Items {
		token, spec, err := bootstraptoken.FromSecret(&secrets.Items[i])
		if err != nil {
			tokens = append(tokens, listedToken{ID: strings.TrimPrefix(secrets.Items[i].Name, "bootstrap-token-"), Usages: []string{}, Fault: err.Error()})
			continue
		}
		tokens = append(tokens, listed(token, spec))
	}
	if f.output == "json" {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(tokens)
	}
	return writeTokens(cmd.OutOrStdout(), tokens, time.Now())
}

func listed(token bootstraptoken.Token, spec bootstraptoken.Spec) listedToken {
	out := listedToken{ID: token.ID, For: "agent", Usages: []string{}, Description: spec.Description, Groups: spec.Groups}
	if slices.Contains(spec.Groups, bootstraptoken.ServerGroup) {
		out.For = "server"
	}
	if !spec.Expires.IsZero() {
		out.Expires = &spec.Expires
	}
	if spec.Authentication {
		out.Usages = append(out.Usages, "authentication")
	}
	if spec.Signing {
		out.Usages = append(out.Usages, "signing")
	}
	return out
}

func writeTokens(out io.Writer, tokens []listedToken, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tFOR\tEXPIRES\tUSAGES\tDESCRIPTION")
	for _, t := range tokens {
		expires, description := "never", t.Description
		if t.Expires != nil {
			expires = t.Expires.Local().Format(time.DateTime)
			if !now.Before(*t.Expires) {
				expires += " (expired)"
			}
		}
		if t.Fault != "" {
			expires, description = "-", t.Fault
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", t.ID, orDash(t.For), expires, orDash(strings.Join(t.Usages, ",")), orDash(description))
	}
	return w.Flush()
}

func (f *tokenFlags) revoke(cmd *cobra.Command, args []string) error {
	_, client, err := f.admin()
	if err != nil {
		return err
	}
	var errs []error
	for _, arg := range args {
		id, _, _ := strings.Cut(arg[strings.LastIndex(arg, ":")+1:], ".") // a whole token does as well
		err := client.CoreV1().Secrets(bootstraptoken.Namespace).Delete(cmd.Context(), bootstraptoken.Token{ID: id}.SecretName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("there is no token %q", id)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
