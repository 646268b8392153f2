package registry

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// webhookURL judges where a webhook is said to be: https, and nothing that could carry a secret.
func webhookURL(path *field.Path, text string) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, "url must be a valid URL: "+err.Error()+form)}
	}
	var faults field.ErrorList
	refuse := func(bad bool, value any, detail string) {
		if bad {
			faults = append(faults, field.Invalid(path, value, detail))
		}
	}
	refuse(u.Scheme != "https", u.Scheme, "'https' is the only allowed URL scheme"+form)
	refuse(u.Host == "", u.Host, "host must be specified"+form)
	refuse(u.User != nil, userWithoutPassword(u), "user information is not permitted in the URL")
	refuse(u.Fragment != "", u.Fragment, "fragments are not permitted in the URL")
	refuse(u.RawQuery != "", u.RawQuery, "query parameters are not permitted in the URL")
	return faults
}

// userWithoutPassword is what an error shows of the user in a URL; kube-apiserver shows the password as well.
func userWithoutPassword(u *url.URL) string {
	if _, has := u.User.Password(); has {
		return u.User.Username() + ":xxxxx"
	}
	return u.User.String()
}

// servicePath judges the URL path of a webhook behind a Service.
func servicePath(path *field.Path, p string) field.ErrorList {
	if p == "/" || p == "" {
		return nil
	}
	if p == "//" {
		return field.ErrorList{field.Invalid(path, p, "segment[0] may not be empty")}
	}
	var faults field.ErrorList
	if !strings.HasPrefix(p, "/") {
		faults = append(faults, field.Invalid(path, p, "must start with a '/'"))
	}
	rest := strings.TrimSuffix(p, "/")
	for i, step := range strings.Split(strings.TrimPrefix(rest, "/"), "/") {
		if step == "" {
			faults = append(faults, field.Invalid(path, p, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, failure := range validation.IsDNS1123Subdomain(step) {
			faults = append(faults, field.Invalid(path, p, fmt.Sprintf("segment[%d]: %v", i, failure)))
		}
	}
	return faults
}
