package storage_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// twenty creates 20 ConfigMaps, every second one with the label odd=yes.
func twenty(t testing.TB, s *storage.Store) (all []string) {
	for i := range 20 {
		name := fmt.Sprintf("c%02d", i)
		object := configMap(name, nil)
		if i%2 == 1 {
			object.Labels = map[string]string{"odd": "yes"}
		}
		mustCreate(t, s, object)
		all = append(all, name)
	}
	return all
}

func odd() storage.Selection {
	return storage.Selection{Namespace: "t", Labels: labels.SelectorFromSet(labels.Set{"odd": "yes"})}
}

func mustList(t testing.TB, s *storage.Store, options storage.ListOptions) *storage.List {
	t.Helper()
	list, err := s.List(t.Context(), options)
	require.NoError(t, err)
	return list
}

func TestAP07_AP10_Pages(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		all := twenty(t, s)
		other := configMap("other", nil)
		other.Namespace = "u" // sorts behind: must not show
		mustCreate(t, s, other)
		for _, c := range []struct{ limit, pages int64 }{{10, 2}, {1, 20}, {20, 1}, {21, 1}, {7, 3}, {0, 1}, {-1, 1}} {
			var got []string
			pages, revision := int64(0), int64(0)
			options := storage.ListOptions{Selection: storage.Selection{Namespace: "t"}, Limit: c.limit}
			for {
				list := mustList(t, s, options)
				got = append(got, names(list.Items)...)
				if pages++; pages == 1 {
					revision = list.Revision
				}
				require.Equal(t, revision, list.Revision)
				if options.Continue = list.Continue; options.Continue == "" {
					require.Nil(t, list.RemainingItemCount)
					break
				}
				require.EqualValues(t, 20-len(got), *list.RemainingItemCount)
				mustUpdate(t, s, "c19", setData("page", fmt.Sprint(c.limit, pages))) // not to be seen
			}
			require.Equal(t, all, got, "limit %d", c.limit)
			require.Equal(t, c.pages, pages, "limit %d", c.limit)
		}
	})
}

func TestAP10_NoRemainingItemCountWithASelector(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		twenty(t, s)
		list := mustList(t, s, storage.ListOptions{Selection: odd(), Limit: 9})
		require.Nil(t, list.RemainingItemCount)
		require.Len(t, list.Items, 9)
		list = mustList(t, s, storage.ListOptions{Selection: odd(), Limit: 9, Continue: list.Continue})
		require.Equal(t, []string{"c19"}, names(list.Items))
		require.Empty(t, list.Continue)
	})
}

func TestAP07_InvalidTokens(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		twenty(t, s)
		token := func(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
		for _, bad := range []string{
			"garbage", "AAAA", token(`{}`), token(`[]`), base64.StdEncoding.EncodeToString([]byte(`{}`)),
			token(`{"v":"meta.k8s.io/v1","rv":1,"start":"../../x"}`),
			token(`{"v":"meta.k8s.io/v1","rv":1,"start":"/"}`),
			token(`{"v":"meta.k8s.io/v1","rv":1,"start":""}`),
			token(`{"v":"meta.k8s.io/v1","rv":0,"start":"c"}`),
			token(`{"v":"meta.k8s.io/v1","rv":-2,"start":"c"}`),
			token(`{"v":"v2","rv":1,"start":"c"}`),
		} {
			_, err := s.List(t.Context(), storage.ListOptions{Limit: 5, Continue: bad})
			require.ErrorIs(t, err, storage.ErrContinueToken, bad)
		}
	})
}

func TestAP09_ExpiredPageToken(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		twenty(t, s)
		selection := storage.Selection{Namespace: "t"}
		first := mustList(t, s, storage.ListOptions{Selection: selection, Limit: 8})
		mustCreate(t, s, configMap("c10-new", nil))
		_, err := s.Update(t.Context(), "t", "c12", storage.UpdateOptions{}, remove)
		require.NoError(t, err)
		compacted := mustList(t, s, storage.ListOptions{}).Revision
		e.kv.compactTo(compacted)

		// This server's cache could still undo the changes since, another one could not: both say the same.
		var expired *storage.ExpiredListError
		for _, s = range []*storage.Store{s, newEnv(t, e.kv, storage.Config{}).configMaps()} {
			_, err = s.List(t.Context(), storage.ListOptions{Selection: selection, Limit: 8, Continue: first.Continue})
			require.ErrorAs(t, err, &expired)
			require.Equal(t, []int64{first.Revision, compacted, compacted}, []int64{expired.Requested, expired.Compacted, expired.Current})
		}
		fresh := mustList(t, s, storage.ListOptions{Selection: selection, Limit: 8, Continue: expired.Continue})
		require.Equal(t, []string{"c08", "c09", "c10", "c10-new", "c11", "c13", "c14", "c15"}, names(fresh.Items))
		rest := mustList(t, s, storage.ListOptions{Selection: selection, Limit: 8, Continue: fresh.Continue})
		require.Equal(t, fresh.Revision, rest.Revision)
		require.Equal(t, []string{"c16", "c17", "c18", "c19"}, names(rest.Items))
	})
}

// TestAP04_ResourceVersionOfLists walks through the table of
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
func TestAP04_ResourceVersionOfLists(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		old := fmt.Sprint(mustCreate(t, s, configMap("a", nil)).Revision)
		now := mustCreate(t, s, configMap("b", nil)).Revision
		token := mustList(t, s, storage.ListOptions{Limit: 1}).Continue
		const exact, notOlder = metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan
		for _, c := range []struct {
			rv    string
			match metav1.ResourceVersionMatch
			limit int64
			want  []string // nil: refused
		}{
			{"", "", 0, []string{"a", "b"}},
			{"0", "", 0, []string{"a", "b"}},
			{old, "", 0, []string{"a", "b"}},
			{"", "", 2, []string{"a", "b"}},
			{"0", "", 2, []string{"a", "b"}},
			{old, "", 2, []string{"a"}},
			{"", exact, 0, nil},
			{"0", exact, 0, nil},
			{old, exact, 0, []string{"a"}},
			{old, exact, 2, []string{"a"}},
			{"", notOlder, 0, nil},
			{"0", notOlder, 0, []string{"a", "b"}},
			{old, notOlder, 2, []string{"a", "b"}},
			{"abc", "", 0, nil},
			{"-1", "", 0, nil},
			{old, "Sometimes", 0, nil},
		} {
			list, err := s.List(t.Context(), storage.ListOptions{ResourceVersion: c.rv, ResourceVersionMatch: c.match, Limit: c.limit})
			if c.want == nil {
				var option *storage.OptionError
				require.ErrorAs(t, err, &option, "%+v", c)
				continue
			}
			require.NoError(t, err, "%+v", c)
			require.Equal(t, c.want, names(list.Items), "%+v", c)
		}
		for _, options := range []storage.ListOptions{
			{Continue: token, ResourceVersion: old},
			{Continue: token, ResourceVersion: old, ResourceVersionMatch: notOlder},
		} {
			_, err := s.List(t.Context(), options)
			var option *storage.OptionError
			require.ErrorAs(t, err, &option)
		}
		for _, match := range []metav1.ResourceVersionMatch{exact, notOlder} {
			_, err := s.List(t.Context(), storage.ListOptions{ResourceVersion: fmt.Sprint(now + 1000), ResourceVersionMatch: match})
			var future *storage.FutureRevisionError
			require.ErrorAs(t, err, &future)
			require.Equal(t, now+1000, future.Requested)
		}
	})
}

func TestGetAtARevision(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		first := mustCreate(t, s, configMap("a", nil))
		second := mustUpdate(t, s, "a", setData("k", "2")).Object
		get := func(rv string, exact bool) (*watch.Object, error) {
			return s.Get(t.Context(), "t", "a", storage.GetOptions{ResourceVersion: rv, Exact: exact})
		}
		got, err := get(resourceVersion(first), true)
		require.NoError(t, err)
		require.Equal(t, first.Object(), got.Object())
		got, err = get(resourceVersion(first), false)
		require.NoError(t, err)
		require.GreaterOrEqual(t, got.Revision, first.Revision)
		got, err = get(resourceVersion(second), false)
		require.NoError(t, err)
		require.Equal(t, second.Revision, got.Revision)
		_, err = get(fmt.Sprint(second.Revision+1000), false)
		var future *storage.FutureRevisionError
		require.ErrorAs(t, err, &future)
		e.kv.compactTo(second.Revision)
		_, err = get(resourceVersion(first), true)
		var gone *watch.ExpiredError
		require.ErrorAs(t, err, &gone)
		require.Equal(t, []int64{first.Revision, second.Revision}, []int64{gone.Requested, gone.Compacted})
		require.GreaterOrEqual(t, gone.Current, second.Revision)
	})
}

func TestFieldSelectors(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.rows("", "v1", "pods")
		pod := func(name, node string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
		}
		mustCreate(t, s, pod("a", "n1"))
		mustCreate(t, s, pod("b", "n2"))
		mustCreate(t, s, pod("c", ""))
		for selector, want := range map[string][]string{
			"metadata.name=b":                  {"b"},
			"metadata.name!=b":                 {"a", "c"},
			"metadata.namespace=t":             {"a", "b", "c"},
			"metadata.namespace=u":             {},
			"spec.nodeName=n1":                 {"a"},
			"spec.nodeName=":                   {"c"},
			"spec.nodeName!=,metadata.name!=a": {"b"},
			"metadata.name=a/b":                {},
		} {
			for _, namespace := range []string{"", "t"} {
				selection := storage.Selection{Namespace: namespace, Fields: fields.ParseSelectorOrDie(selector)}
				require.Equal(t, want, names(mustList(t, s, storage.ListOptions{Selection: selection}).Items), selector)
			}
		}
		_, err := s.List(t.Context(), storage.ListOptions{Selection: storage.Selection{Fields: fields.ParseSelectorOrDie("spec.color=red")}})
		require.Equal(t, &storage.FieldError{Field: "spec.color"}, err)
	})
}

func TestListNamesTheObjectThatCannotBeDecoded(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		mustCreate(t, s, configMap("a", nil))
		putRaw(t, e, "/registry/configmaps/t/b", "k8s\x00garbage")
		_, err := s.List(t.Context(), storage.ListOptions{})
		var corrupt *watch.CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Equal(t, "/registry/configmaps/t/b", corrupt.Key)
		_, err = s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
	})
}
