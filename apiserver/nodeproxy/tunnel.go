package nodeproxy

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"kontiki/internal/lingering"
)

// upgradeTimeout bounds the agent's answer to the upgrade.
const upgradeTimeout = 30 * time.Second

// errNoTunnel: the client's WebSocket asks for no protocol that can be tunnelled.
var errNoTunnel = errors.New("unable to upgrade: no tunneling spdy protocols provided")

// tunnel carries the bytes of a SPDY connection between the client, in the messages of a WebSocket, and the agent.
// The agent is asked first: while it has not agreed, its refusal can be passed on as an HTTP answer.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, location *url.URL) error {
	var protocols []string
	for _, name := range websocket.Subprotocols(r) {
		if rest, ok := strings.CutPrefix(name, constants.WebsocketsSPDYTunnelingPrefix); ok {
			protocols = append(protocols, rest)
		}
	}
	if len(protocols) == 0 {
		return apierrors.NewBadRequest(errNoTunnel.Error())
	}
	agent, chosen, err := p.upgradeAgent(r, location, protocols)
	if err != nil {
		return err
	}
	defer agent.Close()
	upgrader := websocket.Upgrader{
		CheckOrigin:  func(*http.Request) bool { return true }, // no cookies here: the client's certificate or token has let it in
		Subprotocols: []string{constants.WebsocketsSPDYTunnelingPrefix + chosen},
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		p.log.Debug("WebSocket could not be opened", "err", err) // the library has answered
		return nil
	}
	client := portforward.NewTunnelingConnection("server", ws)
	lingering.Join(client, agent)
	return nil
}

// upgradeAgent asks the agent for a SPDY connection and returns it with the protocol that it chose.
func (p *Proxy) upgradeAgent(r *http.Request, location *url.URL, protocols []string) (net.Conn, string, error) {
	conn, err := proxy.DialURL(r.Context(), location, p.agent.Current())
	if err != nil {
		return nil, "", errDialing(err)
	}
	resp, reader, err := requestUpgrade(r, conn, location, protocols)
	if err != nil {
		conn.Close()
		return nil, "", apierrors.NewInternalError(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer conn.Close()
		return nil, "", refusal(resp)
	}
	return &bufferedConn{conn, reader}, strings.TrimSpace(resp.Header.Get(httpstream.HeaderProtocolVersion)), nil
}

func requestUpgrade(r *http.Request, conn net.Conn, location *url.URL, protocols []string) (*http.Response, *bufio.Reader, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, location.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	req.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	for _, name := range protocols {
		req.Header.Add(httpstream.HeaderProtocolVersion, name)
	}
	if err := conn.SetDeadline(time.Now().Add(upgradeTimeout)); err != nil {
		return nil, nil, err
	}
	if err := req.Write(conn); err != nil {
		return nil, nil, err
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		return nil, nil, err
	}
	return resp, reader, conn.SetDeadline(time.Time{})
}

// bufferedConn is a connection of which a reader may hold the next bytes.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

// Read implements net.Conn.
func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }
