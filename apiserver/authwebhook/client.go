package authwebhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	maxAnswerBytes = 1 << 20
	attempts       = 3
	firstPause     = 100 * time.Millisecond // between attempts; doubled each time
)

// client posts reviews to one webhook.
type client struct {
	http    *http.Client
	url     string
	timeout time.Duration
}

// newClient reads the kubeconfig file: the server of its current context is the webhook's URL.
func newClient(kubeconfig string, timeout time.Duration) (*client, error) {
	loaded, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrKubeconfig, kubeconfig, err)
	}
	config.QPS = -1 // bounded by those who ask
	doer, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrKubeconfig, kubeconfig, err)
	}
	own := *doer // which may be http.DefaultClient, everybody's
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{http: &own, url: config.Host, timeout: timeout}, nil
}

// header is what an answer must be.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// post sends a review of a version and kind and reads the answer, which must be one of the same. It tries again when the connection
// fails or the server is overloaded. The error is ErrCall.
func (c *client) post(ctx context.Context, kind header, review, answer any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCall, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for attempt, pause := 1, firstPause; ; attempt, pause = attempt+1, pause*2 {
		text, again, err := c.send(ctx, body)
		if err == nil {
			return read(text, kind, answer)
		}
		if !again || attempt == attempts {
			return fmt.Errorf("%w: %w", ErrCall, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrCall, err)
		case <-time.After(pause):
		}
	}
}

func (c *client) send(ctx context.Context, body []byte) (text []byte, again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, ctx.Err() == nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return nil, answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500, fmt.Errorf("%s answers %s", c.url, answer.Status)
	}
	text, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
	if err == nil && len(text) > maxAnswerBytes {
		err = fmt.Errorf("%s answers more than %d bytes", c.url, maxAnswerBytes)
	}
	return text, false, err
}

func read(text []byte, kind header, answer any) error {
	var got header
	if err := json.Unmarshal(text, &got); err != nil {
		return fmt.Errorf("%w: the answer is no JSON object: %w", ErrCall, err)
	}
	if got != kind {
		return fmt.Errorf("%w: the answer is %s %s, not %s %s", ErrCall, got.APIVersion, got.Kind, kind.APIVersion, kind.Kind)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%w: %w", ErrCall, err)
	}
	return nil
}
