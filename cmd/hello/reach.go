package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// reach tries several ways to others at once, so that a test learns about all of them from one exec. A target is
// tcp://ADDRESS or udp://ADDRESS (of one that echoes), http://…, or dns://NAME. It prints a line for each, in their order:
// the target and what came back, or what went wrong; and ends with an error if anything did. It gives up after patience, or
// what follows --within.
func reach(ctx context.Context, args []string) error {
	limit := patience
	if len(args) > 1 && args[0] == "--within" {
		var err error
		if limit, err = time.ParseDuration(args[1]); err != nil {
			return wrongUsage("reach")
		}
		args = args[2:]
	}
	if len(args) == 0 {
		return wrongUsage("reach")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	lines, failures := make([]string, len(args)), make([]error, len(args))
	var tried sync.WaitGroup
	for i, target := range args {
		tried.Go(func() {
			var answer string
			answer, failures[i] = reachOne(ctx, target)
			lines[i] = target + " " + strings.TrimSpace(answer)
			if failures[i] != nil {
				lines[i] = target + " FAILED: " + failures[i].Error()
			}
		})
	}
	tried.Wait()
	fmt.Fprintln(os.Stdout, strings.Join(lines, "\n"))
	if errors.Join(failures...) != nil {
		return exitCode(1)
	}
	return nil
}

func reachOne(ctx context.Context, target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	switch u.Scheme {
	case "tcp", "udp":
		return echoed(ctx, u.Scheme, u.Host)
	case "http":
		return fetched(ctx, target)
	case "dns":
		addresses, err := net.DefaultResolver.LookupHost(ctx, u.Host)
		return strings.Join(addresses, " "), err
	}
	return "", fmt.Errorf("neither tcp, udp, http nor dns")
}

// echoed sends a word and wants it back. A datagram may be lost on the way, once in a while: it is sent again each second.
func echoed(ctx context.Context, network, address string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	word := conn.LocalAddr().String()
	reply := make([]byte, len(word))
	for {
		if _, err := io.WriteString(conn, word); err != nil {
			return "", err
		}
		wait := time.Now().Add(time.Second)
		if end, limited := ctx.Deadline(); network == "tcp" && limited {
			wait = end
		}
		if err := conn.SetReadDeadline(wait); err != nil {
			return "", err
		}
		_, err := io.ReadFull(conn, reply)
		switch {
		case err == nil && string(reply) == word:
			return "echoed " + word, nil
		case err == nil:
			return "", fmt.Errorf("%q instead of an echo of %q", reply, word)
		case !errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil:
			return "", err
		}
	}
}

func fetched(ctx context.Context, target string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode/100 != 2 {
		err = errors.New(response.Status)
	}
	return string(body), err
}
