package podspec

import "strings"

// Expand replaces $(NAME) in s by lookup(NAME). $$ is a literal $, and a reference that lookup does
// not know stays as it is written: the rules of the API's command, args and env fields.
//
//	Expand("$(HOME)/$$(HOME)/$(NOPE)", …) = "/root/$(HOME)/$(NOPE)"
func Expand(s string, lookup func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i])
		s = s[i:]
		switch s[1] {
		case '$':
			out.WriteByte('$')
			s = s[2:]
		case '(':
			end := strings.IndexByte(s, ')')
			if end < 0 {
				out.WriteString("$(")
				s = s[2:]
				continue
			}
			if v, ok := lookup(s[2:end]); ok {
				out.WriteString(v)
			} else {
				out.WriteString(s[:end+1])
			}
			s = s[end+1:]
		default:
			out.WriteByte('$')
			s = s[1:]
		}
	}
}
