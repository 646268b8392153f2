package nftables

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// watchPeriod is how often a Watcher has its owner look without being told: where the kernel does not tell, or a message was
// lost.
const watchPeriod = 30 * time.Second

// Watcher notices that somebody takes tables away, or the rules of one of their chains: "nft flush ruleset", which a reload
// of Debian's nftables.service is, or "nft flush table". In that time connection tracking stands still, and what a flow sends
// goes where it should not: the sooner the rules are back, the fewer flows end.
type Watcher struct {
	chain  string
	tables []string
	socket *nl.NetlinkSocket // nil where the kernel does not tell
	period time.Duration
}

// NewWatcher listens to what becomes of the tables, of whatever family, and of the rules of a chain in them; in the network
// namespace of the calling thread.
func NewWatcher(chain string, tables ...string) *Watcher {
	w := &Watcher{chain: chain, tables: tables, period: watchPeriod}
	if socket, err := nl.Subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES); err == nil {
		w.socket = socket
	}
	return w
}

// Run calls lost whenever something has been taken away, by whomever, this process included, and now and then without; until
// ctx ends. Whoever is called looks (Table.Verify). lost must not block.
func (w *Watcher) Run(ctx context.Context, lost func()) {
	if w.socket != nil {
		listened := make(chan struct{})
		go func() {
			defer close(listened)
			w.listen(ctx, lost)
		}()
		defer func() {
			w.socket.Close() // ends listen
			<-listened
		}()
	}
	ticker := time.NewTicker(w.period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			lost()
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) listen(ctx context.Context, lost func()) {
	for {
		messages, _, err := w.socket.Receive()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENOBUFS): // more was said than there was room for
			lost()
		case err != nil:
			return // the ticker goes on
		case slices.ContainsFunc(messages, w.isLoss):
			lost()
		}
	}
}

// What is heard: messages and their attributes (linux/netfilter/nfnetlink.h, nf_tables.h).
const (
	subsystem         = unix.NFNL_SUBSYS_NFTABLES << 8
	deleteTable       = subsystem | unix.NFT_MSG_DELTABLE
	deleteRule        = subsystem | unix.NFT_MSG_DELRULE
	headerSize        = 4         // of struct nfgenmsg
	attributeTable    = 1         // NFTA_TABLE_NAME, NFTA_RULE_TABLE
	attributeChain    = 2         // NFTA_RULE_CHAIN
	attributeTypeMask = 1<<14 - 1 // NLA_TYPE_MASK of linux/netlink.h
)

// isLoss says whether a message tells of something that this Watcher is for.
func (w *Watcher) isLoss(m syscall.NetlinkMessage) bool {
	if m.Header.Type != deleteTable && m.Header.Type != deleteRule || len(m.Data) < headerSize {
		return false
	}
	attributes, err := nl.ParseRouteAttr(m.Data[headerSize:])
	if err != nil {
		return true // look rather than guess
	}
	var table, chain string
	for _, a := range attributes {
		switch a.Attr.Type & attributeTypeMask {
		case attributeTable:
			table = unix.ByteSliceToString(a.Value)
		case attributeChain:
			chain = unix.ByteSliceToString(a.Value)
		}
	}
	return slices.Contains(w.tables, table) && (m.Header.Type == deleteTable || chain == w.chain)
}
