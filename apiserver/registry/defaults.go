package registry

// setDefault sets *field to value if it is the zero value of its type.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// setPointer sets *field to a pointer to value if it is nil.
func setPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// setKey sets m[key] to value if there is none.
func setKey(m map[string]string, key, value string) {
	if _, ok := m[key]; !ok {
		m[key] = value
	}
}
