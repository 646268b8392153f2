package lab

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// frontContext is the context of the kubeconfig that leads to a server which is ready.
const frontContext = "lab"

// Kubeconfig is that of the lab's administrator. Its current context, lab, goes through the front, so that it works as long as
// any server does; each server has a context of its own, with its name.
func (l *Lab) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// writeKubeconfig makes it of the first server's own, which is for that machine alone. The error wraps fs.ErrNotExist until
// there is one.
func (l *Lab) writeKubeconfig() error {
	own, err := clientcmd.LoadFromFile(filepath.Join(l.Hosts[0].DataDir(), "admin.kubeconfig"))
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	from, ok := own.Contexts[own.CurrentContext]
	if !ok || own.Clusters[from.Cluster] == nil {
		return fmt.Errorf("lab: %s has no cluster", l.Hosts[0].DataDir())
	}
	config := api.NewConfig()
	config.AuthInfos, config.CurrentContext = own.AuthInfos, frontContext
	add := func(name, url string) {
		cluster := own.Clusters[from.Cluster].DeepCopy()
		cluster.Server = url
		config.Clusters[name] = cluster
		config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: from.AuthInfo}
	}
	add(frontContext, frontURL())
	for _, h := range l.Hosts {
		if h.Server {
			add(h.Name, h.url())
		}
	}
	return clientcmd.WriteToFile(*config, l.Kubeconfig())
}

// Config is how the administrator calls a machine's API server or, with an empty name, the front.
func (l *Lab) Config(machine string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: l.Kubeconfig()}, &clientcmd.ConfigOverrides{CurrentContext: machine}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return config, nil
}
