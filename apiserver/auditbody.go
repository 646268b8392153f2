package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apijson "k8s.io/apimachinery/pkg/util/json"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"

	"kontiki/apiserver/audit"
)

// auditBody tells the audit log which object a client has sent: as it was sent, without defaults.
func auditBody(ctx context.Context, obj runtime.Object, kind schema.GroupVersionKind) {
	record := audit.RecordOf(ctx)
	if record == nil {
		return
	}
	if m, err := meta.Accessor(obj); err == nil {
		record.RequestMeta(m)
	}
	if !record.Records(auditv1.LevelRequest) {
		return
	}
	obj = withKind(obj, kind)
	if m, err := meta.Accessor(obj); err == nil && record.OmitsManagedFields() {
		m.SetManagedFields(nil)
	}
	if data, err := json.Marshal(obj); err == nil {
		record.RequestBody(data)
	}
}

// auditPatch is auditBody for patches, which may be YAML.
func auditPatch(ctx context.Context, body []byte) {
	record := audit.RecordOf(ctx)
	if !record.Records(auditv1.LevelRequest) {
		return
	}
	if data, err := yaml.YAMLToJSON(body); err == nil {
		record.RequestBody(data)
	}
}

// auditAnswer tells the audit log what the client is sent.
func auditAnswer(ctx context.Context, contentType string, pieces [][]byte) {
	record := audit.RecordOf(ctx)
	if !record.Records(auditv1.LevelRequestResponse) {
		return
	}
	data, err := factsOf(ctx).toJSON(contentType, bytes.Join(pieces, nil))
	if err == nil && record.OmitsManagedFields() {
		data, err = withoutManagedFields(data)
	}
	if err == nil {
		record.ResponseBody(data)
	}
}

// toJSON makes JSON of an answer of ours.
func (s *Server) toJSON(contentType string, data []byte) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, err
	}
	switch mediaType {
	case runtime.ContentTypeYAML:
		return yaml.YAMLToJSON(data)
	case runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR:
		obj, kind, err := s.codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		return json.Marshal(withKind(obj, *kind))
	}
	return data, nil
}

// withoutManagedFields takes them out of an object, or of the items of a list or the rows of a table.
func withoutManagedFields(data []byte) ([]byte, error) {
	var fields map[string]any
	if err := apijson.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	dropManagedFields(fields)
	for _, list := range []string{"items", "rows"} {
		items, _ := fields[list].([]any)
		for _, item := range items {
			if item, ok := item.(map[string]any); ok {
				dropManagedFields(item)
				if object, ok := item["object"].(map[string]any); ok {
					dropManagedFields(object)
				}
			}
		}
	}
	return json.Marshal(fields)
}

func dropManagedFields(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
}

// auditStatus tells the audit log of an answer that is a Status.
func auditStatus(ctx context.Context, obj runtime.Object) {
	if status, ok := obj.(*metav1.Status); ok {
		audit.RecordOf(ctx).Status(status)
	}
}
