package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// WebhookConfig is a server that is sent the events: a POST of an audit.k8s.io/v1 EventList, which it answers with any 2xx.
type WebhookConfig struct {
	// REST is where the server is and how it is called; its path is that of the requests.
	REST *rest.Config
	// InitialBackoff is how long a webhook waits before it calls again after a failure, half as long again each time, four
	// times in all; 0 means 10 s.
	InitialBackoff time.Duration
	Mode           Mode
	Batch          BatchConfig // of ModeBatch
}

// LoadWebhook reads where a webhook is from a kubeconfig, the file of --audit-webhook-config-file.
func LoadWebhook(path string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(config.Host)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, fmt.Errorf("%s: the server must be a URL such as https://audit.example/events", path)
	}
	config.UserAgent = "kontiki-audit"
	return config, nil
}

const (
	defaultBackoff   = 10 * time.Second
	backoffFactor    = 1.5
	webhookAttempts  = 5
	webhookTimeout   = 30 * time.Second // of a call
	maxWebhookAnswer = 4 << 10          // that is read of the answer, so that the connection can be used again
)

// webhook is the sink of a WebhookConfig.
type webhook struct {
	config WebhookConfig
	client *http.Client

	closing context.Context // done when calls under way are to be given up
	giveUp  context.CancelFunc
}

func openWebhook(config WebhookConfig) (*webhook, error) {
	if config.InitialBackoff == 0 {
		config.InitialBackoff = defaultBackoff
	}
	client, err := rest.HTTPClientFor(config.REST)
	if err != nil {
		return nil, fmt.Errorf("audit webhook: %w", err)
	}
	own := *client                                                                                    // which may be http.DefaultClient, everybody's
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // events and credentials are for this server alone
	h := &webhook{config: config, client: &own}
	h.closing, h.giveUp = context.WithCancel(context.Background())
	return h, nil
}

// errRefused: the webhook does not want what it was sent; sending it again would change nothing.
var errRefused = errors.New("refused")

// write implements sink.
func (h *webhook) write(events [][]byte) error {
	body := eventList(events)
	wait := h.config.InitialBackoff
	for attempt := 1; ; attempt++ {
		err := h.post(body)
		if err == nil {
			return nil
		}
		if attempt == webhookAttempts || errors.Is(err, errRefused) || h.closing.Err() != nil {
			return fmt.Errorf("audit webhook, attempt %d: %w", attempt, err)
		}
		select {
		case <-h.closing.Done():
		case <-time.After(wait + rand.N(wait/5+1)):
		}
		wait = time.Duration(float64(wait) * backoffFactor)
	}
}

func (h *webhook) post(body []byte) error {
	ctx, cancel := context.WithTimeout(h.closing, webhookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.config.REST.Host, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := h.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxWebhookAnswer)
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return fmt.Errorf("it answered %s", answer.Status)
	default:
		return fmt.Errorf("%w: it answered %s", errRefused, answer.Status)
	}
}

// eventList puts encoded events into the JSON of a list.
func eventList(events [][]byte) []byte {
	size := 0
	for _, event := range events {
		size += len(event) + 1
	}
	const head = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`
	body := append(make([]byte, 0, size+len(head)+2), head...)
	body = append(body, bytes.Join(events, []byte(","))...)
	return append(body, "]}"...)
}

// close implements sink.
func (h *webhook) close() error {
	h.giveUp()
	h.client.CloseIdleConnections()
	return nil
}
