package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"kontiki/raftstore"
)

// StoreMembers returns the members of the store and what each says about itself.
func (c *Client) StoreMembers(ctx context.Context) (members []StoreMember, err error) {
	return members, c.call(ctx, http.MethodGet, "/store/members", nil, &members)
}

// ChangeMembers makes a change of membership: add, add-learner, promote, remove, update or lead. The address is for
// those that need one.
func (c *Client) ChangeMembers(ctx context.Context, change, id, address string) error {
	return c.do(ctx, http.MethodPost, "/store/members/"+change, "id", id, "address", address)
}

// StoreHistory returns all changes of a key, oldest first.
func (c *Client) StoreHistory(ctx context.Context, key string) (changes []raftstore.KeyChange, err error) {
	return changes, c.call(ctx, http.MethodGet, "/store/history?key="+url.QueryEscape(key), nil, &changes)
}

// StoreHashes returns the fingerprints of all members at a revision, 0 being the newest.
func (c *Client) StoreHashes(ctx context.Context, revision int64) (hashes []StoreHash, err error) {
	return hashes, c.call(ctx, http.MethodGet, fmt.Sprint("/store/hashes?revision=", revision), nil, &hashes)
}

// CompactStore makes the store forget what was before a revision.
func (c *Client) CompactStore(ctx context.Context, revision int64) error {
	return c.do(ctx, http.MethodPost, "/store/compact", "revision", strconv.FormatInt(revision, 10))
}

// DefragmentStore gives free pages of a member's file back; "" is the member here.
func (c *Client) DefragmentStore(ctx context.Context, member string) error {
	return c.do(ctx, http.MethodPost, "/store/defragment", "member", member)
}

// StoreAlarms returns the alarms that are on.
func (c *Client) StoreAlarms(ctx context.Context) (alarms []raftstore.Alarm, err error) {
	return alarms, c.call(ctx, http.MethodGet, "/store/alarms", nil, &alarms)
}

// ClearStoreAlarm ends an alarm.
func (c *Client) ClearStoreAlarm(ctx context.Context, a raftstore.Alarm) error {
	return c.do(ctx, http.MethodDelete, "/store/alarms", "kind", a.Kind, "member", a.MemberID)
}

// StoreLog calls f for at most limit entries (0: all) of a member's raft log, from an index on; "" is the member here.
func (c *Client) StoreLog(ctx context.Context, member string, from uint64, limit int, f func(raftstore.LogEntry) error) error {
	body, err := c.stream(ctx, fmt.Sprintf("/store/log?member=%s&from=%d&limit=%d", url.QueryEscape(member), from, limit))
	if err != nil {
		return err
	}
	defer body.Close()
	in := json.NewDecoder(body)
	for {
		var e raftstore.LogEntry
		if err := in.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// SaveStoreSnapshot writes a snapshot of the member's store to w.
func (c *Client) SaveStoreSnapshot(ctx context.Context, w io.Writer) error {
	body, err := c.stream(ctx, "/store/snapshot")
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

// do is a call with parameters and without an answer.
func (c *Client) do(ctx context.Context, method, path string, parameters ...string) error {
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return c.call(ctx, method, path+"?"+values.Encode(), nil, new(any))
}
