package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// ErrNotRunning says that no kontiki serves the socket.
var ErrNotRunning = errors.New("no kontiki is running")

// Client calls the process that serves a socket.
type Client struct {
	path string
	http http.Client
}

// NewClient returns a client of the socket at path. Nothing is opened before the first call.
func NewClient(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{path: path, http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// StoreStatus returns the store member's status as JSON.
func (c *Client) StoreStatus(ctx context.Context) (json.RawMessage, error) {
	var status json.RawMessage
	err := c.call(ctx, http.MethodGet, "/store/status", nil, &status)
	return status, err
}

// StoreClientURL returns where the store's etcd API is reached from this machine.
func (c *Client) StoreClientURL(ctx context.Context) (url string, err error) {
	err = c.call(ctx, http.MethodGet, "/store/client-url", nil, &url)
	return url, err
}

// ReloadCertificates has the process take changed files of certificates into use.
func (c *Client) ReloadCertificates(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/certificates/reload", nil, new(any))
}

// ImportImages sends an archive and returns the names of the images in it.
func (c *Client) ImportImages(ctx context.Context, archive io.Reader) ([]string, error) {
	var names []string
	err := c.call(ctx, http.MethodPost, "/images", archive, &names)
	return names, err
}

func (c *Client) call(ctx context.Context, method, path string, body io.Reader, into any) error {
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	return json.NewDecoder(answer).Decode(into)
}

// stream is a call whose answer the caller reads and closes.
func (c *Client) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.open(ctx, http.MethodGet, path, nil)
}

func (c *Client) open(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://kontiki"+path, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	var dialing *net.OpError
	if errors.As(err, &dialing) && dialing.Op == "dial" {
		return nil, fmt.Errorf("%w (%v)", ErrNotRunning, dialing)
	}
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		if message := strings.TrimSpace(string(text)); message != ErrNoMember.Error() {
			return nil, errors.New(message)
		}
		return nil, ErrNoMember
	}
	return response.Body, nil
}
