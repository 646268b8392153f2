package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// A Server is one of the two that are compared.
type Server struct {
	URL    string
	Client *http.Client
}

// A session is a scenario on one server: what it has shown so far that later requests mention.
type session struct {
	server Server
	vars   map[string]string
	object string // the name of the first object that was shown: the one that vars are about
}

func newSession(server Server) *session {
	return &session{server: server, vars: map[string]string{"rv": "1", "start": "", "uid": "none", "continue": "none"}}
}

// An answer is a response as far as it is compared.
type answer struct {
	code   int
	header http.Header
	body   any // decoded JSON, a list of events for a watch, or a string
}

// do sends a step and reads the answer to its end.
func (s *session) do(ctx context.Context, step Step) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, step.Method, s.server.URL+s.fill(step.Path), strings.NewReader(s.fill(step.Body)))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("User-Agent", "differential/1")
	request.Header.Set("Accept", step.Accept)
	if step.ContentType != "" {
		request.Header.Set("Content-Type", strings.TrimSpace(step.ContentType))
	} else if step.Body != "" {
		request.Header.Set("Content-Type", jsonType)
	}
	response, err := s.server.Client.Do(request)
	if err != nil && strings.Contains(err.Error(), "INTERNAL_ERROR") {
		return answer{header: http.Header{}, body: "the server panics"}, nil // which ends the request's stream, and nothing else
	}
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", step.Name, err)
	}
	out := answer{code: response.StatusCode, header: response.Header, body: decode(response.Header.Get("Content-Type"), data)}
	if out.code == http.StatusOK && (strings.Contains(step.Path, "watch=true") || strings.Contains(step.Path, "/watch/")) && step.Accept != protobufType && step.Accept != cborType {
		out.body = events(data)
	}
	if !strings.Contains(step.Path, "dryRun=") {
		s.learn(out)
	}
	return out, nil
}

func (s *session) fill(text string) string {
	for name, value := range s.vars {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// learn notes what an answer shows of the object.
func (s *session) learn(a answer) {
	obj, _ := a.body.(map[string]any)
	meta, _ := obj["metadata"].(map[string]any)
	if meta == nil || a.code >= 300 {
		return
	}
	if token, ok := meta["continue"].(string); ok && token != "" {
		s.vars["continue"] = token
	}
	name, _ := meta["name"].(string)
	if uid, ok := meta["uid"].(string); ok && name != "" && (s.object == "" || s.object == name) {
		s.object = name
		if rv, ok := meta["resourceVersion"].(string); ok && rv != "" {
			s.vars["rv"], s.vars["uid"] = rv, uid
			if s.vars["start"] == "" {
				s.vars["start"] = rv
			}
		}
	}
}

// decode makes one form of all media types.
func decode(contentType string, data []byte) any {
	media, _, _ := strings.Cut(contentType, ";")
	var out any
	switch media {
	case jsonType:
		if json.Unmarshal(data, &out) == nil {
			return out
		}
	case yamlType:
		if yaml.Unmarshal(data, &out) == nil {
			return out
		}
	case cborType:
		if direct.Unmarshal(data, &out) != nil {
			return "CBOR that does not decode"
		}
		text, err := json.Marshal(out) // whose numbers are all of one type
		if err == nil && json.Unmarshal(text, &out) == nil {
			return out
		}
	case protobufType:
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return "protobuf that does not decode"
		}
		text, err := json.Marshal(obj)
		if err == nil && json.Unmarshal(text, &out) == nil {
			return out
		}
	}
	return string(data)
}

// events reads the frames of a watch, but for bookmarks that come when their time has come.
func events(data []byte) any {
	var out []any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	for decoder.More() {
		var event any
		if err := decoder.Decode(&event); err != nil {
			return append(out, "broken frame: "+err.Error())
		}
		if !isPeriodicBookmark(event) {
			out = append(out, event)
		}
	}
	return out
}

func isPeriodicBookmark(event any) bool {
	fields, _ := event.(map[string]any)
	object, _ := fields["object"].(map[string]any)
	return fields["type"] == "BOOKMARK" && object["kind"] != "Table" && !strings.Contains(text(object["metadata"]), metav1.InitialEventsAnnotationKey)
}
