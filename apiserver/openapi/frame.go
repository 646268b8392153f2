package openapi

import (
	"encoding/json"
	"slices"
)

// A frame is a document open at the places where fragments belong: after the paths, and after the definitions, of
// what always exists.
//
//	{"swagger":"2.0","info":{…},"paths":{"/api/":{…} | ,"/apis/example.com/v1/boats":{…} | },"definitions":{"io.k8s…":{…} | ,"com.example.v1.Boat":{…} | }}
//	head                                             | a fragment's paths                | middle                         | its definitions            | end
type frame struct{ head, middle, end []byte }

// frame makes one with paths and definitions, which are maps.
func (d dialect) frame(paths, definitions any) (frame, error) {
	about, err := json.Marshal(info())
	if err != nil {
		return frame{}, err
	}
	open, err := openObject(paths)
	if err != nil {
		return frame{}, err
	}
	known, err := openObject(definitions)
	if err != nil {
		return frame{}, err
	}
	return frame{
		head:   slices.Concat([]byte(d.opening), about, []byte(`,"paths":`), open),
		middle: slices.Concat([]byte(d.between), known),
		end:    []byte(d.closing),
	}, nil
}

// openObject is the JSON of a map without its end.
func openObject(members any) ([]byte, error) {
	if members == nil {
		return []byte("{"), nil
	}
	data, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	return data[:len(data)-1], nil
}

// encodedFrame is a frame that is kept.
type encodedFrame struct {
	head, middle, end part
	hash              string
}

func (f frame) encode() encodedFrame {
	return encodedFrame{newPart(f.head), newPart(f.middle), newPart(f.end), hashOf(slices.Concat(f.head, f.middle))}
}

// around puts fragments into their places.
func (f encodedFrame) around(fragments []*fragment) parts {
	out := parts{f.head}
	for _, fragment := range fragments {
		out = append(out, fragment.paths)
	}
	out = append(out, f.middle)
	for _, fragment := range fragments {
		out = append(out, fragment.definitions)
	}
	return append(out, f.end)
}
