package watch

// Filter says which objects a watcher sees: those with a key in [Start, End) for which Match is true.
// The keys are checked first, without decoding anything.
type Filter struct {
	Start, End string
	Match      func(*Object) (bool, error) // nil matches all
}

// Matches reports whether the filter lets o through, and that o decodes. It is false for nil.
func (f Filter) Matches(o *Object) (bool, error) {
	if o == nil || o.Key < f.Start || o.Key >= f.End {
		return false, nil
	}
	if f.Match != nil {
		if ok, err := f.Match(o); !ok || err != nil {
			return false, err
		}
	}
	_, err := o.Get() // what is handed out is known to decode
	return err == nil, err
}
