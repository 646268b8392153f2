package controlplane

import (
	"net"
	"strconv"

	"k8s.io/client-go/rest"

	"kontiki/internal/apiclient"
	"kontiki/internal/pki"
)

// URL is where the API server is reached from this machine.
func (c *ControlPlane) URL() string {
	host := "127.0.0.1"
	if ip := c.config.Listener.Addr().(*net.TCPAddr).IP; !ip.IsUnspecified() {
		host = ip.String()
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(c.port()))
}

// Client is how the holder of pair calls this API server (see Client).
func (c *ControlPlane) Client(name string, pair *pki.KeyPair) *rest.Config {
	return Client(c.URL(), c.config.PKI, name, pair)
}

// Client returns how the part called name calls the API server at url: through TLS like everybody,
// with a certificate of its own, in protobuf, and without client-side rate limits.
func Client(url string, trusted *pki.PKI, name string, pair *pki.KeyPair) *rest.Config {
	return apiclient.Config(&rest.Config{
		Host: url,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   trusted.CA(),
			CertData: pair.CertPEM,
			KeyData:  pair.KeyPEM,
		},
	}, "kontiki/"+name)
}
