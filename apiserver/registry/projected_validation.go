package registry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fileFields are the fields of the pod that a downward API file can show.
var fileFields = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}

func downwardFiles(path *field.Path, files []corev1.DownwardAPIVolumeFile) field.ErrorList {
	var faults field.ErrorList
	for _, f := range files { // Kubernetes gives these paths no index
		faults = append(faults, required(path.Child("path"), f.Path)...)
		faults = append(faults, projectedPath(path.Child("path"), f.Path)...)
		switch {
		case f.FieldRef != nil:
			faults = append(faults, fieldRef(path.Child("fieldRef"), f.FieldRef, fileFields)...)
			if f.ResourceFieldRef != nil {
				faults = append(faults, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
			}
		case f.ResourceFieldRef != nil:
			faults = append(faults, resourceFieldRef(path.Child("resourceFieldRef"), f.ResourceFieldRef, true)...)
		default:
			faults = append(faults, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
		}
		faults = append(faults, fileMode(path.Child("mode"), f.Mode)...)
	}
	return faults
}

// A projection judges a volume that puts files of several sources into one directory.
type projection struct {
	path   *field.Path
	taken  map[string]bool // the names of the files so far
	faults field.ErrorList
}

func projected(path *field.Path, v *corev1.ProjectedVolumeSource) field.ErrorList {
	p := projection{path: path, taken: map[string]bool{}, faults: fileMode(path.Child("defaultMode"), v.DefaultMode)}
	for i := range v.Sources {
		p.source(path.Child("sources").Index(i), &v.Sources[i])
	}
	return p.faults
}

func (p *projection) add(faults ...*field.Error) { p.faults = append(p.faults, faults...) }

// file takes a name; value is what Kubernetes' message shows if it is taken already.
func (p *projection) file(name, value string) {
	if p.taken[name] {
		p.add(field.Invalid(p.path, value, "conflicting duplicate paths"))
	}
	p.taken[name] = true
}

func (p *projection) source(at *field.Path, s *corev1.VolumeProjection) {
	sources := 0
	if s.Secret != nil {
		sources++
		p.keyed(at.Child("secret"), s.Secret.Name, s.Secret.Items)
	}
	if s.ConfigMap != nil {
		sources++
		p.keyed(at.Child("configMap"), s.ConfigMap.Name, s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		sources++
		p.add(downwardFiles(at.Child("downwardAPI"), s.DownwardAPI.Items)...)
		for _, f := range s.DownwardAPI.Items {
			if f.Path != "" {
				p.file(f.Path, f.Path)
			}
		}
	}
	if s.ServiceAccountToken != nil {
		sources++
		p.token(at.Child("serviceAccountToken"), s.ServiceAccountToken)
	}
	if s.ClusterTrustBundle != nil {
		sources++
		p.trustBundle(at.Child("clusterTrustBundle"), s.ClusterTrustBundle)
	}
	if s.PodCertificate != nil {
		sources++
		p.certificate(at.Child("podCertificate"), s.PodCertificate)
	}
	if sources > 1 {
		p.add(field.Forbidden(at, "may not specify more than 1 volume type per source"))
	}
}

func (p *projection) keyed(at *field.Path, name string, items []corev1.KeyToPath) {
	p.add(required(at.Child("name"), name)...)
	p.add(keyPaths(at.Child("items"), items)...)
	for _, item := range items {
		if item.Path != "" {
			p.file(item.Path, name)
		}
	}
}

func (p *projection) token(at *field.Path, t *corev1.ServiceAccountTokenProjection) {
	switch seconds := t.ExpirationSeconds; {
	case seconds == nil:
		p.add(field.Required(at.Child("expirationSeconds"), ""))
	case *seconds < 600:
		p.add(field.Invalid(at.Child("expirationSeconds"), *seconds, "may not specify a duration less than 10 minutes"))
	case *seconds > 1<<32:
		p.add(field.Invalid(at.Child("expirationSeconds"), *seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	name := p.path.Child("path") // the path that Kubernetes gives
	if t.Path == "" {
		p.add(field.Required(name, ""))
		return
	}
	p.add(projectedPath(name, t.Path)...)
}

func (p *projection) trustBundle(at *field.Path, b *corev1.ClusterTrustBundleProjection) {
	switch {
	case b.Name != nil && b.SignerName != nil:
		p.add(field.Invalid(at, shown(b), "only one of name and signerName may be used"))
	case b.Name != nil:
		if *b.Name == "" {
			p.add(field.Required(at.Child("name"), "must be a valid object name"))
		}
		for _, m := range trustBundleName(*b.Name, false) {
			p.add(field.Invalid(at.Child("name"), *b.Name, "not a valid clustertrustbundlename: "+m))
		}
		if b.LabelSelector != nil {
			p.add(field.Invalid(at.Child("labelSelector"), b.LabelSelector, "labelSelector must be unset if name is specified"))
		}
	case b.SignerName != nil:
		if *b.SignerName == "" {
			p.add(field.Required(at.Child("signerName"), "must be a valid signer name"))
		}
		p.add(signerName(at.Child("signerName"), *b.SignerName)...)
		p.add(metavalidation.ValidateLabelSelector(b.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, at.Child("labelSelector"))...)
	default:
		p.add(field.Required(at, "either name or signerName must be specified"))
	}
	p.add(required(at.Child("path"), b.Path)...)
	p.add(projectedPath(at.Child("path"), b.Path)...)
	p.file(b.Path, b.Path)
}

// The limits of the life of a pod's certificate, by who signs.
const (
	leastCertificateSeconds   = 3600
	mostCertificateSeconds    = 91 * 24 * 3600
	mostCertificateSecondsOwn = 24 * 3600 // for the signers of Kubernetes itself
)

func (p *projection) certificate(at *field.Path, c *corev1.PodCertificateProjection) {
	p.add(signerName(at.Child("signerName"), c.SignerName)...)
	p.add(apivalidation.ValidateAnnotations(c.UserAnnotations, at.Child("userAnnotations"))...)
	keyTypes := []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}
	if c.KeyType == "" {
		p.add(field.NotSupported(at.Child("keyType"), c.KeyType, keyTypes))
	} else {
		p.add(oneOf(at.Child("keyType"), c.KeyType, keyTypes...)...)
	}
	if n := c.MaxExpirationSeconds; n != nil {
		most := int32(mostCertificateSeconds)
		if domain, _, _ := strings.Cut(c.SignerName, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			most = mostCertificateSecondsOwn
		}
		if *n < leastCertificateSeconds {
			p.add(field.Invalid(at.Child("maxExpirationSeconds"), *n, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", leastCertificateSeconds)))
		}
		if *n > most {
			p.add(field.Invalid(at.Child("maxExpirationSeconds"), *n, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most)))
		}
	}
	files := 0
	for _, f := range [][2]string{{"credentialBundlePath", c.CredentialBundlePath}, {"keyPath", c.KeyPath}, {"certificateChainPath", c.CertificateChainPath}} {
		if f[1] == "" {
			continue
		}
		files++
		p.add(projectedPath(at.Child(f[0]), f[1])...)
		p.file(f[1], f[1])
	}
	if files == 0 {
		p.add(field.Required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
}
