package apiserver

import "k8s.io/apimachinery/pkg/util/rand"

// A generated name is the wish and five random letters that make no words, 63 characters at most.
const (
	maxGeneratedNameLength = 63
	randomLetters          = 5
)

// generateNameAttempts is how often a generated name that is taken is replaced by another. Of
// 27^5 names, eight in a row are taken only if nearly all are (KEP-4420).
const generateNameAttempts = 8

func generateName(wish string) string {
	if room := maxGeneratedNameLength - randomLetters; len(wish) > room {
		wish = wish[:room]
	}
	return wish + rand.String(randomLetters)
}
