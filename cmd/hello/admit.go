package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// review is the part of an AdmissionReview (admission.k8s.io/v1) that admit looks at, and what it answers.
type review struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID    string `json:"uid"`
	Object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	} `json:"object"`
}

type reviewResponse struct {
	UID     string            `json:"uid"`
	Allowed bool              `json:"allowed"`
	Status  map[string]string `json:"status,omitempty"`
}

// admit is an admission webhook: it denies objects that have the label deny, for the reason that its value says.
func admit(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return wrongUsage("admit")
	}
	server := &http.Server{Addr: args[0], Handler: http.HandlerFunc(answerReview), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Println("hello: admitting on", args[0])
	if err := server.ListenAndServeTLS(args[1], args[2]); ctx.Err() == nil {
		return err
	}
	return nil
}

func answerReview(w http.ResponseWriter, r *http.Request) {
	var asked review
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<20)).Decode(&asked); err != nil || asked.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	why, denied := asked.Request.Object.Metadata.Labels["deny"]
	answer := &reviewResponse{UID: asked.Request.UID, Allowed: !denied}
	if denied {
		answer.Status = map[string]string{"message": why}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review{APIVersion: asked.APIVersion, Kind: asked.Kind, Response: answer})
}
