package registry

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// shown is a value as Kubernetes prints it in a fault. It judges objects in an internal form whose fields have no
// JSON names, so that its messages say {"Type":"x","RollingUpdate":null} where users wrote "type".
func shown(v any) json.Marshaler { return internalForm{v} }

type internalForm struct{ value any }

// MarshalJSON implements json.Marshaler.
func (f internalForm) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	err := writeInternal(&out, reflect.ValueOf(f.value))
	return out.Bytes(), err
}

// writeInternal writes structs of k8s.io/api by the names that their fields have in Go, all of them and in order;
// everything else as JSON does.
func writeInternal(out *bytes.Buffer, v reflect.Value) error {
	switch {
	case !v.IsValid():
		out.WriteString("null")
		return nil
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return writeInternal(out, v.Elem())
	case v.Kind() == reflect.Slice && !v.IsNil() && v.Type().Elem().Kind() == reflect.Struct:
		out.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeInternal(out, v.Index(i)); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case v.Kind() == reflect.Struct && strings.HasPrefix(v.Type().PkgPath(), "k8s.io/api/"):
		out.WriteByte('{')
		err := writeFields(out, v)
		out.WriteByte('}')
		return err
	}
	data, err := json.Marshal(v.Interface())
	out.Write(data)
	return err
}

// writeFields writes the fields of a struct; those of embedded structs stand among them.
func writeFields(out *bytes.Buffer, v reflect.Value) error {
	written := false
	for i := range v.NumField() {
		f, inner := v.Type().Field(i), v.Field(i)
		var part bytes.Buffer
		var err error
		switch {
		case f.Name == "TypeMeta": // the internal form does without
		case !f.Anonymous:
			part.WriteString(`"` + f.Name + `":`)
			err = writeInternal(&part, inner)
		case strings.HasPrefix(f.Type.PkgPath(), "k8s.io/api/"):
			err = writeFields(&part, inner)
		default: // metadata, which is the same in the internal form
			var data []byte
			data, err = json.Marshal(inner.Interface())
			part.Write(bytes.TrimSuffix(bytes.TrimPrefix(data, []byte("{")), []byte("}")))
		}
		if err != nil {
			return err
		}
		if part.Len() == 0 {
			continue
		}
		if written {
			out.WriteByte(',')
		}
		written = true
		out.Write(part.Bytes())
	}
	return nil
}
