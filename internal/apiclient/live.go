package apiclient

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"kontiki/internal/livetls"
)

// Live is how the API server at url is called by somebody whose certificate, or idea of whom to trust, may change while
// it runs. All requests share the connections of one transport.
func Live(url string, source livetls.Source) *rest.Config {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &rest.Config{Host: url, Transport: livetls.NewTransport(source, func(config *tls.Config) *http.Transport {
		return &http.Transport{
			DialContext:         dialer.DialContext,
			TLSClientConfig:     config,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 25,
		}
	})}
}
