package ownership

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// ManagerName is the fieldManager parameter, or what can be told from the user agent: "kubectl" of
// "kubectl/v1.37.2 (linux/amd64)".
func ManagerName(asked, userAgent string) string {
	if asked != "" {
		return asked
	}
	prefix, _, _ := strings.Cut(userAgent, "/")
	var out strings.Builder
	for _, char := range prefix {
		if out.Len()+len(string(char)) > validation.FieldManagerMaxLength {
			break
		}
		if unicode.IsPrint(char) {
			out.WriteRune(char)
		}
	}
	return out.String()
}
