package watch

// PrefixEnd is the end of the range of all keys that begin with prefix: the prefix with its last byte
// raised. prefix is not empty and ends in no 0xff byte (ours end in "/").
func PrefixEnd(prefix string) string {
	end := []byte(prefix)
	end[len(end)-1]++
	return string(end)
}
