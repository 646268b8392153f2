package apiserver

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/table"
	"kontiki/watch"
)

func tableOptions(r *http.Request, f form) (table.Options, error) {
	options, err := table.ParseOptions(r.URL.Query(), time.Now())
	if err != nil {
		return options, badRequest("%v", err)
	}
	options.Version = f.version
	return options, nil
}

// writeTable answers with objects as the rows that kubectl prints.
func (s *Server) writeTable(w http.ResponseWriter, r *http.Request, t *target, f form, code int, listMeta metav1.ListMeta, items []*watch.Object) error {
	objects := make([]runtime.Object, len(items))
	for i, item := range items {
		var err error
		if objects[i], err = item.Get(); err != nil {
			return err
		}
	}
	return writeRows(w, r, t, f, code, listMeta, objects)
}

// writeRows is writeTable for objects that no store has.
func writeRows(w http.ResponseWriter, r *http.Request, t *target, f form, code int, listMeta metav1.ListMeta, objects []runtime.Object) error {
	options, err := tableOptions(r, f)
	if err != nil {
		return err
	}
	options.ListMeta = listMeta
	return writeObject(w, r, f, code, table.Convert(t.resource, objects, options))
}
